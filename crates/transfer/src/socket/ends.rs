//! Which of our addresses a datagram came to, and sending from that one.
//!
//! A socket that waits at all addresses would send from the one that the kernel likes best on the way to the peer, who calls
//! another one maybe, and hears that one alone.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};

/// The two ends of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The other one.
    pub peer: SocketAddr,
    /// This one; `None`: the kernel knows it, or chooses.
    pub here: Option<Here>,
}

impl From<SocketAddr> for Ends {
    fn from(peer: SocketAddr) -> Self {
        Ends { peer, here: None }
    }
}

/// One of our addresses, as the kernel takes it to send from. The interface is not told, so that the routes choose it, but for an
/// address that is one of a link only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Here(Info);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Info {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl Here {
    fn new(told: ControlMessageOwned) -> Option<Here> {
        match told {
            // of a datagram to a group or to all, `ipi_spec_dst` is the address to answer from
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let from = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: info.ipi_spec_dst,
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                (info.ipi_spec_dst.s_addr != 0).then_some(Here(Info::V4(from)))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                let group = ip.to_canonical().is_multicast();
                let from = libc::in6_pktinfo {
                    ipi6_addr: info.ipi6_addr,
                    ipi6_ifindex: info.ipi6_ifindex * u32::from(ip.is_unicast_link_local()),
                };
                (!group && !ip.is_unspecified()).then_some(Here(Info::V6(from)))
            }
            _ => None,
        }
    }
}

/// Room for what the kernel tells of a datagram.
#[derive(Debug)]
pub(super) struct Asked(Vec<u8>);

impl Asked {
    /// Asks the kernel to tell, where `socket`, bound to `address`, has more than one address.
    pub fn of(socket: &UdpSocket, address: SocketAddr) -> Option<Asked> {
        if !address.ip().to_canonical().is_unspecified() {
            return None;
        }
        let done = if address.is_ipv4() {
            setsockopt(socket, sockopt::Ipv4PacketInfo, &true)
        } else {
            // of packets of IPv4, too, with addresses as that has them in IPv6
            setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)
        };
        // where the kernel cannot tell, it chooses what is sent from
        done.ok().map(|()| Asked(nix::cmsg_space!(libc::in6_pktinfo)))
    }

    /// The next datagram: how long it is, what is cut off not counted.
    pub fn receive(&mut self, socket: &UdpSocket, octets: &mut [u8]) -> io::Result<(usize, Ends)> {
        let parts = &mut [IoSliceMut::new(octets)];
        let room = Some(&mut self.0[..]);
        let got = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), parts, room, MsgFlags::empty())?;
        let peer = got
            .address
            .as_ref()
            .and_then(address)
            .ok_or(Errno::EAFNOSUPPORT)?;
        let here = got.cmsgs().ok().and_then(|mut told| told.find_map(Here::new));
        Ok((got.bytes, Ends { peer, here }))
    }
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let four = of.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
    four.or_else(|| of.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())))
}

/// Sends one datagram, from anywhere if the address is none of ours any more.
pub(super) fn send(socket: &UdpSocket, Ends { peer, here }: Ends, datagram: &[u8]) -> io::Result<usize> {
    let Some(Here(info)) = here else {
        return socket.send_to(datagram, peer);
    };
    let from = match &info {
        Info::V4(info) => ControlMessage::Ipv4PacketInfo(info),
        Info::V6(info) => ControlMessage::Ipv6PacketInfo(info),
    };
    let (parts, to) = ([IoSlice::new(datagram)], SockaddrStorage::from(peer));
    match sendmsg(socket.as_raw_fd(), &parts, &[from], MsgFlags::empty(), Some(&to)) {
        Err(Errno::EINVAL | Errno::ENODEV | Errno::ENETUNREACH | Errno::EADDRNOTAVAIL) => {
            socket.send_to(datagram, peer)
        }
        sent => Ok(sent?),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use super::*;

    fn bind(at: impl Into<IpAddr>) -> UdpSocket {
        let socket = UdpSocket::bind((at.into(), 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn four(address: Ipv4Addr) -> Option<Here> {
        let in_order = libc::in_addr {
            s_addr: u32::from(address).to_be(),
        };
        Here::new(ControlMessageOwned::Ipv4PacketInfo(libc::in_pktinfo {
            ipi_ifindex: 7,
            ipi_spec_dst: in_order,
            ipi_addr: in_order,
        }))
    }

    /// The interface that is told, to send from; `None`: no such address is.
    fn six(address: &str) -> Option<u32> {
        let ip: Ipv6Addr = address.parse().unwrap();
        let told = libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr { s6_addr: ip.octets() },
            ipi6_ifindex: 7,
        };
        let here = Here::new(ControlMessageOwned::Ipv6PacketInfo(told))?;
        let Info::V6(info) = here.0 else {
            panic!("{here:?}")
        };
        assert_eq!(info.ipi6_addr.s6_addr, ip.octets());
        Some(info.ipi6_ifindex)
    }

    #[test]
    fn an_interface_goes_with_addresses_of_a_link_only() {
        let here = four(Ipv4Addr::LOCALHOST).unwrap();
        assert!(matches!(here.0, Info::V4(info) if info.ipi_ifindex == 0));
        assert_eq!(four(Ipv4Addr::UNSPECIFIED), None);
        assert_eq!(
            ["2001:db8::1", "fd00::1", "::1", "::ffff:192.0.2.1"].map(six),
            [Some(0); 4]
        );
        assert_eq!(six("fe80::1"), Some(7));
        assert_eq!(["ff02::1", "::", "::ffff:224.0.0.1"].map(six), [None; 3]);
    }

    /// Who calls two of our addresses from one port is answered from each.
    #[test]
    fn each_datagram_is_answered_from_where_it_came() {
        let ours = bind(Ipv4Addr::UNSPECIFIED);
        let port = ours.local_addr().unwrap().port();
        let mut asked = Asked::of(&ours, ours.local_addr().unwrap()).unwrap();
        let theirs = bind(Ipv4Addr::LOCALHOST);
        let mut octets = [0; 10];
        for last in [3, 2, 1] {
            let to = SocketAddr::from(([127, 0, 0, last], port));
            theirs.send_to(&[last], to).unwrap();
            let (n, ends) = asked.receive(&ours, &mut octets).unwrap();
            assert_eq!(
                (&octets[..n], ends.peer),
                (&[last][..], theirs.local_addr().unwrap())
            );
            assert_eq!(send(&ours, ends, b"answer").unwrap(), 6);
            assert_eq!(theirs.recv_from(&mut octets).unwrap(), (6, to));
        }
        // what is cut off is not counted
        theirs.send_to(&[7; 11], ("127.0.0.2", port)).unwrap();
        assert_eq!(asked.receive(&ours, &mut octets).unwrap().0, octets.len());
    }

    /// It may have been taken from the interface since.
    #[test]
    fn an_address_that_is_gone_is_not_insisted_on() {
        let (ours, theirs) = (bind(Ipv4Addr::UNSPECIFIED), bind(Ipv4Addr::LOCALHOST));
        let ends = Ends {
            peer: theirs.local_addr().unwrap(),
            here: four(Ipv4Addr::new(192, 0, 2, 77)),
        };
        send(&ours, ends, b"hello").unwrap();
        assert_eq!(theirs.recv(&mut [0; 10]).unwrap(), 5);
    }

    /// There is nothing to ask of one address.
    #[test]
    fn only_who_has_all_addresses_asks() {
        let one = bind(Ipv4Addr::LOCALHOST);
        assert!(Asked::of(&one, one.local_addr().unwrap()).is_none());
    }
}
