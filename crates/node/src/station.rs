//! A whole node as one protocol of the contract: [`Net`] over [`Ibss`]. It runs wherever protocols run.

use crate::net::{Board, Net, Status, Storage};
use crate::setup::Setup;
use crate::ways::Ways;
use protocols::mac::ibss::Ibss;
use radio::{Event, Instant, Msdu, Protocol, Radio, Tap};

/// The link layer of a node, with room for `Q` packets of up to `L` octets. It knows the routes, for multi-hop power save.
pub type Link<const Q: usize, const L: usize> = Ibss<Q, L, Ways>;

/// A node whose link layer has room for `Q` packets of up to `L` octets.
pub struct Station<'a, const Q: usize, const L: usize> {
    link: Link<Q, L>,
    net: Net<'a>,
    /// Whether it was in a network when last looked at.
    member: bool,
}

impl<'a, const Q: usize, const L: usize> Station<'a, Q, L> {
    /// A node that begins at `now`.
    pub fn new(now: Instant, setup: &Setup, storage: &'a mut Storage<'a>, board: fn() -> Board) -> Self {
        Station {
            link: Link::with_routing(setup.ibss(), Ways::NONE),
            net: Net::new(now, setup.address, storage, board),
            member: false,
        }
    }

    /// Its link layer.
    pub fn link(&self) -> &Link<Q, L> {
        &self.link
    }

    /// What is above it.
    pub fn net(&self) -> &Net<'a> {
        &self.net
    }

    /// What the net has to do, and to send, as far as there is room below.
    fn work(&mut self, now: Instant, radio: &mut dyn Radio) {
        let was = core::mem::replace(&mut self.member, self.link.network().is_some());
        if !self.member {
            return;
        }
        if !was {
            self.net.join(now);
        }
        let counters = self.link.counters();
        let status = Status {
            neighbours: self.link.neighbours().count(),
            intervals: counters.intervals,
            dozed: counters.intervals_dozed,
        };
        self.net.poll(now, &status);
        *self.link.routing_mut() = Ways::of(self.net.routes());
        while self.link.waiting() < Q
            && let Some((to, packet)) = self.net.next_packet()
        {
            self.link.handle(now, Event::Submit(Msdu::new(to, packet)), radio);
        }
    }
}

impl<const Q: usize, const L: usize> Protocol for Station<'_, Q, L> {
    /// An MSDU from above is the path of something that its receiver is asked for ([`Net::get`]), unless a question is
    /// open already; [`Net::answer`] tells the answer.
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if let Event::Submit(msdu) = event {
            let path = core::str::from_utf8(msdu.payload).unwrap_or_default();
            self.net.get(now, msdu.peer, path);
        } else {
            let up = |msdu: Msdu<'_>, _: &mut dyn Radio| self.net.receive(now, msdu.payload);
            self.link.handle(now, event, &mut Tap::delivering(radio, up));
        }
        self.work(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let member = self.link.network().is_some();
        let net = self.net.deadline().filter(|_| member);
        [self.link.deadline(), net].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::MacAddr;
    use protocols::testing::Room;
    use std::boxed::Box;
    use std::string::{String, ToString};

    const S: u64 = 1_000_000_000;
    type Small = Station<'static, 8, 1_280>;

    fn room(stations: u32, window_tu: u16) -> Room {
        let mut room = Room::new(1);
        for i in 0..stations {
            let setup = Setup {
                address: MacAddr::local(i + 1),
                scan_ms: 150 + 400 * i as u16,
                interval_tu: 100,
                window_tu,
                multi_hop: window_tu == 20,
            };
            room.add(setup.address, || {
                Small::new(Instant::ZERO, &setup, Box::leak(Box::default()), Board::default)
            });
        }
        room
    }

    /// What the node 0 gets from node `from`.
    fn get(room: &mut Room, at: u64, from: u32, path: &str) -> Option<(u8, String)> {
        room.submit(at, 0, MacAddr::local(from + 1), path.as_bytes(), None);
        room.run_until(at + 4 * S);
        let answer = room.protocol::<Small>(0).net().answer()?;
        let text = String::from_utf8_lossy(answer.payload()).to_string();
        Some((answer.code.unwrap_or(0), text))
    }

    #[test]
    fn a_node_answers_another() {
        for window in [0, 19, 20] {
            let mut room = room(3, window);
            let (code, text) = get(&mut room, 5 * S, 2, "/link").unwrap();
            assert_eq!(code, 0x45);
            assert!(text.starts_with("neighbours 2 intervals "), "{text}");
            let dozed = text.rsplit_once("dozed ").unwrap().1;
            assert_eq!(dozed != "0", window > 0, "{text}");
            assert_eq!(get(&mut room, 10 * S, 1, "/nothing"), Some((0x84, String::new())));
            let (_, routes) = get(&mut room, 15 * S, 1, "/routes").unwrap();
            assert!(
                routes.contains("02:00:00:00:00:03 over 02:00:00:00:00:03 hops 1"),
                "{routes}"
            );
            room.close();
        }
    }
}
