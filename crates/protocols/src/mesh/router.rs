//! A node of the mesh that finds its routes by itself: OLSR beside the [`Forwarder`] that follows its routes.

use super::forward::{Forwarder, ForwarderConfig};
use super::header::{ETHERTYPE, Header};
use super::olsr::{self, Olsr, OlsrConfig};
use crate::mac::data::Received;
use frame::MacAddr;
use radio::{Event, Instant, Protocol, Radio};

/// See the [module](self). Knows up to `N` nodes, itself among them; its queue holds `Q` datagrams, those of OLSR too,
/// as they share the queue of the adapter on any system.
#[derive(Clone, Debug)]
pub struct Router<const Q: usize = 50, const N: usize = 32> {
    forwarder: Forwarder<Q, N>,
    olsr: Olsr<N>,
}

impl<const Q: usize, const N: usize> Router<Q, N> {
    /// A node that knows nobody.
    pub fn new(config: &ForwarderConfig, olsr: &OlsrConfig) -> Self {
        Router {
            forwarder: Forwarder::new(config),
            olsr: Olsr::new(olsr),
        }
    }

    /// The part that forwards.
    pub fn forwarder(&self) -> &Forwarder<Q, N> {
        &self.forwarder
    }

    /// The part that routes.
    pub fn olsr(&self) -> &Olsr<N> {
        &self.olsr
    }

    fn update(&mut self) {
        let routes = self.olsr.routes().map(|r| (r.to, r.next));
        self.forwarder.set_routes(routes);
    }

    /// A packet of OLSR and the neighbour that has sent it.
    fn routing(mpdu: &[u8]) -> Option<(MacAddr, &[u8])> {
        let r = Received::parse(mpdu).filter(|r| r.ethertype == ETHERTYPE)?;
        let (header, payload) = Header::parse(r.payload)?;
        (header.destination.is_group() && header.to_port == olsr::PORT).then_some((r.transmitter, payload))
    }

    fn emit(&mut self, now: Instant, radio: &mut dyn Radio) {
        let mut out = [0; olsr::MAX_PACKET_OCTETS];
        if let Some(packet) = self.olsr.emit(now, &mut out) {
            self.forwarder.broadcast(now, olsr::PORT, packet, radio);
        }
        self.update();
    }
}

impl<const Q: usize, const N: usize> Protocol for Router<Q, N> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Timer if self.olsr.deadline() <= now => self.emit(now, radio),
            Event::Indication(i) => match Self::routing(i.frame) {
                Some((from, packet)) => {
                    self.olsr.hear(now, from, packet);
                    self.update();
                }
                None => self.forwarder.handle(now, event, radio),
            },
            _ => self.forwarder.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.olsr.deadline())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::data::{Identity, Role};
    use crate::testing::{Fate, Room};
    use crate::transport::hop::HopConfig;
    use frame::Rate;
    use radio::TxHow;

    const fn node(n: usize) -> MacAddr {
        MacAddr::local(n as u32 + 1)
    }

    fn router(n: usize) -> Router<4, 8> {
        let identity = Identity {
            me: node(n),
            role: Role::Direct {
                bssid: MacAddr::local(99),
            },
        };
        let config = ForwarderConfig {
            identity,
            how: TxHow::one_shot(Rate::OFDM_54),
            group: TxHow::one_shot(Rate::OFDM_6),
            hop: HopConfig::default(),
            gone_after: None,
        };
        Router::new(&config, &OlsrConfig::standard(node(n), 5))
    }

    /// All hear each other until the air goes dead.
    #[test]
    fn routes_come_and_go() {
        let mut room = Room::new(1);
        for n in 0..3 {
            room.add(node(n), move || router(n));
        }
        let cut = 20_000_000_000;
        room.script(move |a| match a.at_ns {
            at if at > cut => Fate::DataLost,
            _ => Fate::Arrives,
        });
        for at in [1_000, cut - 1_000_000, cut + 1_000_000, cut + 10_000_000_000] {
            room.submit(at, 0, node(2), &[0, 1, 0, 2, 77], None);
        }
        room.run_until(cut + 11_000_000_000);
        let r = room.protocol::<Router<4, 8>>(0);
        let own = r.forwarder().counters();
        let c = r.olsr().counters();
        // not known yet; straight on; lost while OLSR does not know; not known any more
        assert_eq!(
            (own.submitted - c.hellos - c.tcs, own.unroutable, own.unheard),
            (4, 2, 1)
        );
        assert_eq!(room.delivered.len(), 1);
        assert_eq!((c.lost_neighbours, c.withdrawn, c.malformed), (2, 2, 0));
        room.close();
    }
}
