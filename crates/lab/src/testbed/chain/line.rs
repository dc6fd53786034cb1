//! The whole chain on real kernels: the air, the nodes, and one run over them.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use frame::MacAddr;
use linux::wifi::Control;
use protocols::transport::wire::{Control as Flags, Header, ProtocolId};

use super::ends::{self, PORT};
use super::place::{Place, Post, address, hello, set_up, settle};
use super::{Case, ChainError, Real, sending};
use crate::scenario::Scenario;
use crate::testbed::air::{self, Begins, Seating};

/// Frames to all, from each node in turn, so that neighbours know each other although some are lost.
const HELLOS: u32 = 10;
const BETWEEN_HELLOS: Duration = Duration::from_millis(20);
/// Small datagrams along the whole chain and back before the flows, as in the simulator: hops have measured something then.
const GREETINGS: u32 = 4;
const BETWEEN_GREETINGS: Duration = Duration::from_millis(100);
/// One of them on its way.
const GREETING_PATIENCE: Duration = Duration::from_millis(500);
/// Greetings that may get lost.
const MOST_GREETINGS: u32 = 40;
/// From the last greeting to the first flow: the channel is idle then.
const QUIET: Duration = Duration::from_millis(500);

/// The nodes of a chain.
pub(super) struct Line {
    /// In their order.
    pub places: Vec<Place>,
    /// Names of their interfaces.
    pub interfaces: Vec<String>,
}

/// Runs a case on the radios of this kernel, with the scenario as their air. `sdmac` is the program with the commands `atp` and
/// `hop`. Needs root, and takes every radio of the first nodes away from this network namespace: it is for a guest of the lab.
///
/// # Errors
/// [`ChainError`].
///
/// # Panics
/// If a thread panics.
pub fn real(
    scenario: &Scenario,
    case: &Case,
    seed: u64,
    sdmac: &Path,
    stop: &AtomicBool,
) -> Result<Real, ChainError> {
    sending(scenario)?;
    let (carried, summary) = air::beside(scenario, seed, Begins::WithAir, |seating, _| {
        ends::carry(&lay(scenario, seating)?, case, seed, sdmac, stop)
    })?;
    Ok(Real {
        outcome: carried.outcome,
        hops: carried.hops,
        failures: carried.failures,
        tries: summary.total.tries,
        overlapping: summary.total.overlapping,
        not_acked: summary.total.not_acked,
        refused: summary.total.refused,
        latest_us: summary.latest_us,
    })
}

/// Gives each radio a place, and joins them to a network.
fn lay(scenario: &Scenario, seating: &Seating) -> Result<Line, ChainError> {
    let radios: Vec<&String> = seating.nodes.iter().filter_map(|s| s.radio.as_ref()).collect();
    if radios.len() < seating.nodes.len() {
        return Err(ChainError::Radios {
            nodes: scenario.nodes(),
            radios: radios.len(),
        });
    }
    let (rate, _) = sending(scenario)?;
    let first = |error| ChainError::Radio { node: 0, error };
    let mut control = Control::open().map_err(first)?;
    let interfaces = control.interfaces().map_err(first)?;
    let (mut places, mut stations) = (Vec::new(), Vec::new());
    for (node, radio) in (0..).zip(radios) {
        let wrong = |error| ChainError::Radio { node, error };
        let cannot = |what| move |error| ChainError::Node { node, what, error };
        let wiphy = control.wiphy(radio).map_err(wrong)?;
        let place = Place::new().map_err(cannot("make a network namespace"))?;
        place.run(set_up).map_err(cannot("set up its network"))?;
        control.give(wiphy.index, place.thread).map_err(wrong)?;
        let interface = interfaces.iter().find(|i| i.wiphy == wiphy.index);
        stations.push(interface.map_or(MacAddr::ZERO, |i| i.address));
        places.push(place);
    }
    let mhz = scenario.first_mhz();
    let mut settled = Vec::new();
    for (node, place) in (0..).zip(&places) {
        let post = Post {
            node,
            stations: stations.clone(),
            mhz,
            rate,
        };
        settled.push(place.run(move || settle(&post))?);
    }
    for _ in 0..HELLOS {
        for ((_, socket), station) in settled.iter().zip(&stations) {
            // one that cannot go out now is like one that is lost
            let _ = socket.send(&hello(*station));
            thread::sleep(BETWEEN_HELLOS);
        }
    }
    Ok(Line {
        places,
        interfaces: settled.into_iter().map(|(name, _)| name).collect(),
    })
}

impl Line {
    /// The number of the last node.
    pub fn last(&self) -> u32 {
        self.places.len() as u32 - 1
    }

    /// Greetings both ways, until so many have arrived that every hop has measured something.
    pub fn greet(&self) -> Result<(), ChainError> {
        let last = self.last();
        let [head, tail] = [0, last].map(|node| {
            let place = &self.places[node as usize];
            let open = move || -> std::io::Result<UdpSocket> {
                let socket = UdpSocket::bind((address(node), PORT))?;
                socket.set_read_timeout(Some(GREETING_PATIENCE))?;
                Ok(socket)
            };
            let what = "open a socket for greetings";
            place
                .run(open)
                .map_err(|error| ChainError::Node { node, what, error })
        });
        let ends = [(0, head?), (last, tail?)];
        let mut arrived = [0; 2];
        for _ in 0..MOST_GREETINGS {
            for way in 0..2 {
                let ((_, from), (to, other)) = (&ends[way], &ends[1 - way]);
                let header = Header::new(ProtocolId::Atp, Flags::ACK);
                let greeting = [&header.octets()[..], &[0; 44]].concat();
                // a neighbour that is not known yet shows in what does not arrive
                let _ = from.send_to(&greeting, (address(*to), PORT));
                arrived[way] += u32::from(other.recv(&mut [0; 100]).is_ok());
            }
            if arrived.iter().all(|n| *n >= GREETINGS) {
                thread::sleep(QUIET);
                return Ok(());
            }
            thread::sleep(BETWEEN_GREETINGS);
        }
        let (from, to) = if arrived[0] < GREETINGS {
            (0, last)
        } else {
            (last, 0)
        };
        Err(ChainError::Silent { from, to })
    }
}
