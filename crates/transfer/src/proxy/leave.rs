//! Where connections leave: ATP is called, TCP connects.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::link::Link;
use super::{Ended, Wait, most_connections};
use crate::TransferError;
use crate::door::Door;
use crate::flow::FlowConfig;
use crate::socket::{Clock, Socket, new_octets, without_timer_slack};

/// Connects every flow that calls `socket` with the first of `to` that answers, until it is stopped. How each has ended is told, and
/// who calls with another key.
pub fn leave(
    mut socket: Socket,
    to: &[SocketAddr],
    config: &FlowConfig,
    stop: &AtomicBool,
    mut tell: impl FnMut(Ended),
) {
    without_timer_slack();
    let clock = Clock::default();
    let to: Arc<[SocketAddr]> = to.into();
    let mut rooms = [new_octets(), new_octets()];
    let mut guests: BTreeMap<SocketAddr, Link> = BTreeMap::new();
    let mut door = Door::new(config, most_connections(2));
    while !stop.load(Ordering::Relaxed) {
        door.take(
            &clock,
            &mut socket,
            &mut guests,
            &mut rooms,
            |peer, guard, now| Link::leaving(peer, Arc::clone(&to), guard, config, now),
        );
        if let Some((peer, stranger)) = door.stranger() {
            tell(Ended {
                peer,
                octets: (0, 0),
                result: Err(TransferError::Stranger(stranger)),
            });
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
        if let Some(octets) = link.abort(clock.now(), &mut socket, *peer) {
            tell(Ended::stopped(*peer, octets));
        }
    }
}
