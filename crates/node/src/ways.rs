//! What multi-hop power save is told of a node's routes.

use crate::address;
use crate::routes::{DESTINATIONS, Routes};
use frame::MacAddr;
use protocols::mac::ibss::Routing;
use smoltcp::wire::Ipv6Packet;

/// Destinations, each with its next hop, as the routes were at the node's last turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways {
    /// Places that are empty have the address of nobody.
    known: [(MacAddr, MacAddr); DESTINATIONS],
}

impl Ways {
    pub(crate) const NONE: Ways = Ways {
        known: [(MacAddr::ZERO, MacAddr::ZERO); DESTINATIONS],
    };

    /// Those of these routes.
    pub(crate) fn of(routes: &Routes) -> Ways {
        let mut ways = Ways::NONE;
        for (place, route) in ways.known.iter_mut().zip(routes.iter()) {
            *place = (route.to, route.next);
        }
        ways
    }
}

impl Routing for Ways {
    fn destination(&self, next: MacAddr, payload: &[u8]) -> MacAddr {
        let packet = Ipv6Packet::new_checked(payload).ok();
        packet.and_then(|p| address::mac(p.dst_addr())).unwrap_or(next)
    }

    fn next_hop(&self, destination: MacAddr) -> Option<MacAddr> {
        let mut known = self.known.iter().filter(|(to, _)| *to != MacAddr::ZERO);
        known.find(|(to, _)| *to == destination).map(|(_, next)| *next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radio::Instant;

    #[test]
    fn as_the_routes_are() {
        let [me, near, far] = [1, 2, 3].map(MacAddr::local);
        let mut neighbour = Routes::new(near, Instant::ZERO);
        neighbour.heard(Instant::ZERO, far, &[2, 0, 0, 0, 0, 3, 2, 0, 0, 0]);
        let mut out = [0; crate::routes::MAX_OCTETS];
        let told = neighbour.tell(Instant::ZERO, &mut out).unwrap();
        let mut routes = Routes::new(me, Instant::ZERO);
        routes.heard(Instant::ZERO, near, &out[..told]);
        let ways = Ways::of(&routes);
        assert_eq!([near, far].map(|to| ways.next_hop(to)), [Some(near); 2]);
        assert_eq!([me, MacAddr::ZERO].map(|to| ways.next_hop(to)), [None; 2]);
        // a packet says whom it is for
        let mut packet = [0; 40];
        (packet[0], packet[6]) = (0x60, 59);
        packet[24..].copy_from_slice(&address::of(far).octets());
        assert_eq!(ways.destination(near, &packet), far);
        packet[24] = 0xff;
        assert_eq!(ways.destination(near, &packet), near, "of another network");
        assert_eq!(ways.destination(near, b"no packet"), near);
    }
}
