//! A veth pair in a network namespace of its own: two interfaces joined by a cable, seen by nobody else.

use std::io;
use std::os::fd::OwnedFd;

use crate::netlink::{Socket, attribute, interface, message, set_up, text};
use crate::sys::{self, NamespaceError};

/// Interface numbers of the two ends; high, because a new namespace may come with tunnel devices.
pub(super) const ENDS: [u32; 2] = [1000, 1001];

/// The peer's `ifinfomsg` and attributes inside `IFLA_INFO_DATA` (linux/veth.h).
const VETH_INFO_PEER: u16 = 1;

/// Why there is no pair.
#[derive(Debug, thiserror::Error)]
pub(super) enum VethError {
    #[error("no new network namespace: {}", namespace_error(.0))]
    Namespace(io::Error),
    #[error("no packet socket in the new network namespace: {0}")]
    Socket(io::Error),
    #[error("no veth interfaces: {0}")]
    Interfaces(io::Error),
}

/// unshare(2) says ENOSPC, "No space left on device", when the limit on namespaces is reached.
fn namespace_error(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => "the limit on namespaces is 0 or reached".into(),
        _ => error.to_string(),
    }
}

/// Makes the namespace, the pair, both ends up, and gives two packet sockets of that namespace, not yet bound. All
/// of it goes when the sockets are closed.
pub(super) fn pair() -> Result<[OwnedFd; 2], VethError> {
    // With the right to it, a network namespace alone; without, one that a user namespace of ours owns.
    let sockets = sys::sockets_in_new_namespace(false)
        .or_else(|_| sys::sockets_in_new_namespace(true))
        .map_err(|error| match error {
            NamespaceError::Child(error) | NamespaceError::Unshare(error) => VethError::Namespace(error),
            NamespaceError::Socket(error) => VethError::Socket(error),
        })?;
    create(sockets.route).map_err(VethError::Interfaces)?;
    Ok(sockets.packet)
}

fn create(route: OwnedFd) -> io::Result<()> {
    let mut route = Socket::of(route)?;
    route.ask(new_link())?;
    // Only now: an end cannot come up before it has its other end.
    route.ask(set_up(ENDS[0], true))?;
    route.ask(set_up(ENDS[1], true))?;
    Ok(())
}

/// `ip link add name sdmac0 index 1000 type veth peer name sdmac1 index 1001` (rtnetlink(7)).
fn new_link() -> Vec<u8> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    message(libc::RTM_NEWLINK, flags, |m| {
        interface(m, ENDS[0]);
        text(m, libc::IFLA_IFNAME, "sdmac0");
        attribute(m, libc::IFLA_LINKINFO, |m| {
            attribute(m, libc::IFLA_INFO_KIND, |m| m.extend(b"veth"));
            attribute(m, libc::IFLA_INFO_DATA, |m| {
                attribute(m, VETH_INFO_PEER, |m| {
                    interface(m, ENDS[1]);
                    text(m, libc::IFLA_IFNAME, "sdmac1");
                });
            });
        });
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use rustix::net::SendFlags;
    use rustix::net::sockopt::{Timeout, set_socket_timeout};

    use super::*;

    #[test]
    fn the_request_is_what_ip_link_add_sends() {
        let message = new_link();
        assert_eq!(message.len() % 4, 0);
        assert_eq!(
            u32::from_ne_bytes(message[..4].try_into().unwrap()) as usize,
            message.len()
        );
        if cfg!(target_endian = "little") {
            // Nested lengths by hand: peer 4+16+12, data 4+32, kind 4+4, linkinfo 4+8+36.
            assert_eq!(message[16 + 16..][..12], *b"\x0b\0\x03\0sdmac0\0\0");
            assert_eq!(message[44..][..12], *b"\x30\0\x12\0\x08\0\x01\0veth");
            assert_eq!(message[56..][..8], *b"\x24\0\x02\0\x20\0\x01\0");
            assert_eq!(message.len(), 64 + 16 + 12);
        }
    }

    #[test]
    fn a_frame_goes_from_one_end_to_the_other_or_the_reason_is_a_right() {
        let sockets = match pair() {
            Ok(sockets) => sockets,
            Err(VethError::Namespace(_) | VethError::Socket(_)) => return, // Not allowed here.
            Err(error) => panic!("{error}"),
        };
        sys::packet::bind_packet(sockets[0].as_fd(), ENDS[0], 0).unwrap();
        sys::packet::bind_packet(sockets[1].as_fd(), ENDS[1], 0x88B5).unwrap();
        set_socket_timeout(&sockets[1], Timeout::Recv, Some(Duration::from_millis(100))).unwrap();
        let mut frame = [0xFF; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xB5]);
        let mut got = [0; 100];
        let arrived = (0..100).any(|_| {
            let _ = rustix::net::send(&sockets[0], &frame, SendFlags::empty());
            sys::packet::receive_stamped(sockets[1].as_fd(), &mut got).is_ok()
        });
        assert!(arrived);
        assert_eq!(got[..60], frame);
    }
}
