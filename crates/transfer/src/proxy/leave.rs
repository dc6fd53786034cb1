//! Where connections leave: ATP is called, TCP connects.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::link::Link;
use super::{BATCH, Ended, MAX_CONNECTIONS, Wait};
use crate::door::{Door, make_room};
use crate::flow::FlowConfig;
use crate::socket::{Clock, Octets, Socket, new_octets, without_timer_slack};

/// Connects every flow that calls `socket` with `to`, until it is stopped. What goes wrong with one is told.
pub fn leave(
    mut socket: Socket,
    to: SocketAddr,
    config: &FlowConfig,
    stop: &AtomicBool,
    mut tell: impl FnMut(Ended),
) {
    without_timer_slack();
    let clock = Clock::default();
    let (mut octets, mut room): (Octets, Octets) = (new_octets(), new_octets());
    let mut guests: BTreeMap<SocketAddr, Link> = BTreeMap::new();
    let mut door = Door::new(config);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BATCH {
            let Some((datagram, peer)) = socket.receive(&mut octets) else {
                break;
            };
            let now = clock.now();
            if let Some(link) = guests.get_mut(&peer) {
                link.datagram(now, &mut socket, peer, datagram, &mut room);
                continue;
            }
            let Some((guard, packet)) = door.admit(now, &mut socket, peer, datagram, &mut room) else {
                continue;
            };
            if !make_room(&mut guests, MAX_CONNECTIONS, now, |link| {
                (link.state(), link.since)
            }) {
                door.turn_away(now, peer, guard);
                continue;
            }
            let link = Link::leaving(to, guard, config, now);
            guests
                .entry(peer)
                .or_insert(link)
                .packet(now, &mut socket, peer, packet);
        }
        for (peer, link) in &mut guests {
            if let Some(result) = link.turn(clock.now(), &mut socket, *peer) {
                tell(Ended {
                    peer: *peer,
                    octets: link.octets,
                    result,
                });
            }
        }
        let now = clock.now();
        guests.retain(|_, link| !link.is_over(now));
        // what the network says of one peer is not about the others
        socket.complaint = None;
        let mut wait = Wait::new();
        wait.readable(&socket);
        for link in guests.values() {
            wait.link(link);
        }
        wait.wait(clock.now());
    }
    for (peer, link) in &mut guests {
        link.abort(clock.now(), &mut socket, *peer);
    }
}
