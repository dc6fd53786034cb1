//! IPv4 of a small network by hand: a network namespace for a thread, and in it addresses, routes and neighbours, as `ip` sets
//! them.
//!
//! Numbers are those of linux/rtnetlink.h and linux/neighbour.h.

use std::io;
use std::net::Ipv4Addr;

use frame::MacAddr;

use crate::netlink::{Socket, attribute, interface, message, number, set_up, u32_of};
use crate::sys;

/// The interface of a namespace with itself, the first that there is.
const LOOPBACK: u32 = 1;
const WHOLE_ADDRESS: u8 = 32;
const TABLE_MAIN: u8 = 254;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_GLOBAL: u8 = 0;
const SCOPE_LINK: u8 = 253;
const UNICAST: u8 = 1;
/// The neighbour is on the link, whatever its address looks like.
const ON_LINK: u32 = 4;
const PERMANENT: u16 = 0x80;

/// Moves the calling thread into a new network namespace, in which there is nothing but a loopback that is down. Threads and
/// processes that it starts from now on share it; it ends with the last of them.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN, `ENOSPC` where the limit on namespaces is reached.
pub fn enter_new_network() -> io::Result<()> {
    sys::enter_new_network()
}

/// The connection through which addresses and routes of a network namespace are set. Changing them needs CAP_NET_ADMIN.
#[derive(Debug)]
pub struct Inet(Socket);

impl Inet {
    /// Of the namespace that this thread is in.
    ///
    /// # Errors
    /// As socket(2).
    pub fn open() -> io::Result<Inet> {
        Ok(Inet(Socket::open(None)?))
    }

    /// Sets the loopback up.
    ///
    /// # Errors
    /// `EPERM` without the right to it.
    pub fn set_loopback_up(&mut self) -> io::Result<()> {
        self.0.ask(set_up(LOOPBACK, true)).map(drop)
    }

    /// Whether an interface is up and has a network.
    ///
    /// # Errors
    /// `ENODEV` if there is no such interface.
    pub fn is_running(&mut self, index: u32) -> io::Result<bool> {
        let ask = message(libc::RTM_GETLINK, libc::NLM_F_ACK, |m| interface(m, index));
        let parts = self.0.ask(ask)?;
        // `struct ifinfomsg`: family, device type, number, flags
        let flags = parts.iter().find_map(|p| u32_of(p.body.get(8..)?));
        let running = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        Ok(flags.is_some_and(|flags| flags & running == running))
    }

    /// Gives an interface an address, of which no network follows.
    ///
    /// # Errors
    /// What the kernel answers: `ENODEV` if there is no such interface.
    pub fn add_address(&mut self, interface: u32, address: Ipv4Addr) -> io::Result<()> {
        self.0.ask(new_address(interface, address)).map(drop)
    }

    /// Packets for `to` go through an interface from now on: to this neighbour, or, without one, to `to` itself.
    ///
    /// # Errors
    /// What the kernel answers: `ENETDOWN` if the interface is down.
    pub fn set_route(&mut self, interface: u32, to: Ipv4Addr, via: Option<Ipv4Addr>) -> io::Result<()> {
        self.0.ask(new_route(interface, to, via)).map(drop)
    }

    /// Says which station has the address of a neighbour, so that nobody is asked.
    ///
    /// # Errors
    /// What the kernel answers: `ENETDOWN` if the interface is down.
    pub fn set_neighbour(&mut self, interface: u32, address: Ipv4Addr, station: MacAddr) -> io::Result<()> {
        self.0.ask(new_neighbour(interface, address, station)).map(drop)
    }
}

fn request(kind: u16, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE | libc::NLM_F_ACK;
    message(kind, flags, |m| {
        m.push(libc::AF_INET as u8);
        body(m);
    })
}

fn address(m: &mut Vec<u8>, kind: u16, address: Ipv4Addr) {
    attribute(m, kind, |m| m.extend(address.octets()));
}

fn new_address(interface: u32, of: Ipv4Addr) -> Vec<u8> {
    request(libc::RTM_NEWADDR, |m| {
        m.extend([WHOLE_ADDRESS, 0, SCOPE_GLOBAL]); // Prefix, flags, scope.
        m.extend(interface.to_ne_bytes());
        address(m, libc::IFA_LOCAL, of);
        address(m, libc::IFA_ADDRESS, of);
    })
}

fn new_route(interface: u32, to: Ipv4Addr, via: Option<Ipv4Addr>) -> Vec<u8> {
    request(libc::RTM_NEWROUTE, |m| {
        let (scope, flags) = match via {
            None => (SCOPE_LINK, 0),
            Some(_) => (SCOPE_GLOBAL, ON_LINK),
        };
        m.extend([WHOLE_ADDRESS, 0, 0]); // Of the destination, of the source, type of service.
        m.extend([TABLE_MAIN, PROTOCOL_STATIC, scope, UNICAST]);
        m.extend(flags.to_ne_bytes());
        address(m, libc::RTA_DST, to);
        if let Some(via) = via {
            address(m, libc::RTA_GATEWAY, via);
        }
        number(m, libc::RTA_OIF, interface);
    })
}

fn new_neighbour(interface: u32, of: Ipv4Addr, station: MacAddr) -> Vec<u8> {
    request(libc::RTM_NEWNEIGH, |m| {
        m.extend([0; 3]); // Padding.
        m.extend(interface.to_ne_bytes());
        m.extend(PERMANENT.to_ne_bytes());
        m.extend([0, UNICAST]); // Flags, type.
        address(m, libc::NDA_DST, of);
        attribute(m, libc::NDA_LLADDR, |m| m.extend(station.0));
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 2);

    /// What follows `struct nlmsghdr` for `ip route add 10.7.0.1 via 10.7.0.2 dev 3 onlink proto static`, and for
    /// `ip neigh add 10.7.0.2 lladdr 02:00:00:00:00:05 dev 3`.
    #[test]
    fn the_requests_are_those_of_ip() {
        if cfg!(target_endian = "little") {
            #[rustfmt::skip]
            let route = [
                2, 32, 0, 0, 254, 4, 0, 1, 4, 0, 0, 0,
                8, 0, 1, 0, 10, 7, 0, 1,
                8, 0, 5, 0, 10, 7, 0, 2,
                8, 0, 4, 0, 3, 0, 0, 0,
            ];
            assert_eq!(new_route(3, A, Some(B))[16..], route);
            #[rustfmt::skip]
            let neighbour = [
                2, 0, 0, 0, 3, 0, 0, 0, 0x80, 0, 0, 1,
                8, 0, 1, 0, 10, 7, 0, 2,
                10, 0, 2, 0, 2, 0, 0, 0, 0, 5, 0, 0,
            ];
            assert_eq!(new_neighbour(3, B, MacAddr([2, 0, 0, 0, 0, 5]))[16..], neighbour);
        }
    }

    /// Where this user may make namespaces: the thread is in another one, its neighbours are not, and an address that is
    /// set there can be bound there and nowhere else.
    #[test]
    fn a_thread_with_a_network_of_its_own() {
        let here = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let before = here();
        let bound = std::thread::spawn(move || -> io::Result<UdpSocket> {
            enter_new_network()?;
            assert_ne!(here(), before);
            let mut inet = Inet::open()?;
            assert!(!inet.is_running(LOOPBACK)?);
            inet.set_loopback_up()?;
            assert!(inet.is_running(LOOPBACK)?);
            inet.add_address(LOOPBACK, A)?;
            inet.set_route(LOOPBACK, B, None)?;
            let none = inet.add_address(0x7fff_fff0, B).unwrap_err();
            assert_eq!(none.raw_os_error(), Some(libc::ENODEV));
            UdpSocket::bind((A, 7))
        })
        .join()
        .unwrap();
        match bound {
            Ok(_) => assert!(UdpSocket::bind((A, 7)).is_err()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
    }
}
