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
    #[error("no queueing discipline etf: {}", discipline_error(.0))]
    Discipline(io::Error),
}

/// A kernel says ENOENT, "No such file or directory", of a discipline that it does not know.
fn discipline_error(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "this kernel has none (CONFIG_NET_SCH_ETF, module sch_etf)".into(),
        _ => error.to_string(),
    }
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
    pair_with(&[])
}

/// The same, with the queueing discipline etf at the first end, which lets frames go `lead_ns` before their time.
pub(super) fn pair_with_etf(lead_ns: u32) -> Result<[OwnedFd; 2], VethError> {
    pair_with(&[etf(lead_ns)])
}

/// The pair, with further requests at the end.
fn pair_with(requests: &[Vec<u8>]) -> Result<[OwnedFd; 2], VethError> {
    // With the right to it, a network namespace alone; without, one that a user namespace of ours owns.
    let sockets = sys::sockets_in_new_namespace(false)
        .or_else(|_| sys::sockets_in_new_namespace(true))
        .map_err(|error| match error {
            NamespaceError::Child(error) | NamespaceError::Unshare(error) => VethError::Namespace(error),
            NamespaceError::Socket(error) => VethError::Socket(error),
        })?;
    let mut route = Socket::of(sockets.route).map_err(VethError::Interfaces)?;
    create(&mut route).map_err(VethError::Interfaces)?;
    for request in requests {
        route.ask(request.clone()).map_err(VethError::Discipline)?;
    }
    Ok(sockets.packet)
}

fn create(route: &mut Socket) -> io::Result<()> {
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

/// Parent of the discipline at the root (linux/pkt_sched.h).
const TC_H_ROOT: u32 = 0xFFFF_FFFF;
/// The parameters of etf within `TCA_OPTIONS` (linux/pkt_sched.h).
const TCA_ETF_PARMS: u16 = 1;

/// `tc qdisc add dev sdmac0 root etf clockid CLOCK_TAI delta LEAD` (tc-etf(8)); etf knows no other clock.
fn etf(lead_ns: u32) -> Vec<u8> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    message(libc::RTM_NEWQDISC, flags, |m| {
        // tcmsg: family and padding, interface, handle, parent, info
        for field in [0, ENDS[0], 0, TC_H_ROOT, 0] {
            m.extend(field.to_ne_bytes());
        }
        text(m, libc::TCA_KIND, "etf");
        attribute(m, libc::TCA_OPTIONS, |m| {
            attribute(m, TCA_ETF_PARMS, |m| {
                // tc_etf_qopt: delta, clock, flags
                for field in [lead_ns, libc::CLOCK_TAI as u32, 0] {
                    m.extend(field.to_ne_bytes());
                }
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
    fn the_request_is_what_tc_qdisc_add_sends() {
        let message = etf(200_000);
        if cfg!(target_endian = "little") {
            assert_eq!(message[16 + 4..][..4], 1000_u32.to_le_bytes());
            assert_eq!(message[16 + 12..][..4], [0xFF; 4]);
            assert_eq!(message[36..][..8], *b"\x08\0\x01\0etf\0");
            assert_eq!(message[44..][..8], *b"\x14\0\x02\0\x10\0\x01\0");
            assert_eq!(message[52..], *b"\x40\x0d\x03\0\x0b\0\0\0\0\0\0\0");
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
