//! An adapter and this computer together, as in section IV of SDMAC (Cena et al. 2018): one-shots to a station that
//! acknowledges, stamped at the planes, sorted by what became of them, as tables and figures and as a host profile.
//!
//! Set A: acked. L_D: the data frame did not arrive. L_A: it arrived, and its ACK did not. Only the other station knows
//! which of the two it was; without its word they are one set, L.

#[cfg(test)]
mod no_allocation;
mod over_stick;
mod page;
mod peer;
mod profile;
mod session;
mod shots;
mod table;
mod talk;

pub use page::{figures, page, samples};
pub use peer::{Ear, Run};
pub use profile::{Described, describe};
pub(super) use session::channel;
pub use session::{Condition, MeasureError, Measured, Plan, listen, measure};
pub use shots::{Shot, Shots, Task};
pub use table::{Air, Counts, Row, Set, Sorting};
pub use talk::{Heard, LEAST_OCTETS, MOST_OCTETS, MOST_SHOTS, Said, Talk};

use std::sync::atomic::{AtomicBool, Ordering};

use linux::wifi::{Error, Host};
use radio::{Duration, Instant};

/// How often progress is told, and stopping is looked at.
const LOOK: Duration = Duration::from_ms(100);
/// The longest that the other station is asked.
const ASKING: Duration = Duration::from_ms(10_000);

/// What a run has brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// In the order of their ends.
    pub shots: Vec<Shot>,
    /// When frames of others were heard, in order.
    pub foreign: Vec<Instant>,
    /// Foreign frames beyond those.
    pub forgotten: u64,
    /// What the other station heard, if it answered.
    pub heard: Option<Heard>,
    /// It was stopped before the end.
    pub interrupted: bool,
}

impl Taken {
    fn of(shots: Shots, interrupted: bool) -> Taken {
        let mut foreign = shots.foreign;
        foreign.sort_unstable();
        Taken {
            shots: shots.shots,
            foreign,
            forgotten: shots.forgotten,
            heard: shots.heard,
            interrupted,
        }
    }
}

/// Carries out a task with the host's first adapter. When `stop` is set it ends with what there is, after a last question to
/// the other station. `progress` is told how many shots have ended; it must return at once.
///
/// # Errors
/// As [`Host::run`].
pub fn take(host: &mut Host, task: Task, progress: &dyn Fn(u32), stop: &AtomicBool) -> Result<Taken, Error> {
    let me = host.adapters()[0].address();
    let mut shots = Shots::new(task, me);
    while !shots.is_shot() && !stop.load(Ordering::Relaxed) {
        host.run(&mut shots, &mut (), Some(Host::now() + LOOK), stop)?;
        progress(shots.shots.len() as u32);
    }
    let interrupted = !shots.is_shot();
    shots.ask(Host::now());
    let (patience, never) = (Host::now() + ASKING, AtomicBool::new(false));
    while !shots.is_done() && Host::now() < patience {
        host.run(&mut shots, &mut (), Some(Host::now() + LOOK), &never)?;
    }
    host.finish(&mut shots, &mut ())?;
    Ok(Taken::of(shots, interrupted))
}

/// Hears shots and answers questions with the host's first adapter, until `stop` is set.
///
/// # Errors
/// As [`Host::run`].
pub fn hear(host: &mut Host, stop: &AtomicBool) -> Result<Ear, Error> {
    let mut ear = Ear::new(host.adapters()[0].address());
    host.run(&mut ear, &mut (), None, stop)?;
    host.finish(&mut ear, &mut ())?;
    Ok(ear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radio::{Outcome, Plane, Stamps};

    pub(super) const AIR: Air = Air {
        acked_ns: 80_000,
        timeout_ns: 90_000,
    };

    /// Shots as an adapter might give them, each fifth lost; t2 to t8 if they were probed.
    pub(super) fn shots(count: u32, probed: bool) -> Vec<Shot> {
        let mut shots = Vec::new();
        for number in 0..count {
            let jitter = sim::rng::mix3(1, number.into(), 0) % 100;
            let lost = number % 5 == 4;
            let hardware = if lost { 90_000 + 13_000 } else { 80_000 + 20_000 };
            let mut at = u64::from(number) * 50_000_000 + 1_000_000_000;
            let mut stamps = Stamps::NONE;
            for (plane, after) in Plane::ALL
                .into_iter()
                .zip([0, 1_000, 700, 800, hardware, 5_000, 3_000, 100, 1_000])
            {
                at += after + jitter;
                if probed || matches!(plane, Plane::T1 | Plane::T9) {
                    stamps.host(plane, Instant::from_ns(at));
                }
            }
            shots.push(Shot {
                number,
                outcome: if lost { Outcome::NotAcked } else { Outcome::Acked },
                attempts: 1,
                stamps,
            });
        }
        shots
    }

    pub(super) fn taken(count: u32, probed: bool) -> Taken {
        Taken {
            shots: shots(count, probed),
            foreign: Vec::new(),
            forgotten: 0,
            heard: None,
            interrupted: false,
        }
    }

    pub(super) fn sorting(count: u32, probed: bool) -> Sorting {
        Sorting::new(&taken(count, probed), AIR)
    }
}
