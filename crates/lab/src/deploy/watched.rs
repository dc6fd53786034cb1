//! A deployed protocol with its tape, and what its events tell of the host.

use std::cell::RefCell;
use std::rc::Rc;

use protocols::mac::tally::Tally;
use radio::tape::Tape;
use radio::{Event, Hooks, Instant, Outcome, Plane, Protocol, Radio, Tap, Token, TxHow};

use super::feed::{MOST_LATENCIES, Sources};
use super::refused::Refusals;
use super::tape::Strip;
use crate::scenario::Program;
use crate::stats::Running;

/// A protocol with its tape, and what its events tell of the host.
pub(super) struct Watched {
    pub tape: Tape<Program, Strip>,
    pub sources: Rc<RefCell<Sources>>,
    pub since: Instant,
    pub tries: u64,
    pub latencies_us: Vec<f64>,
    pub confirm_us: Running,
    pub all_planes: u64,
    pub attributes_refused: u64,
    pub refusals: Refusals,
    pub outcomes: Tally,
}

impl Watched {
    pub fn new(program: Program, sources: &Rc<RefCell<Sources>>, tape_octets: usize) -> Watched {
        Watched {
            tape: Tape::new(program, Strip::new(tape_octets)),
            sources: Rc::clone(sources),
            since: Instant::ZERO,
            tries: 0,
            latencies_us: Vec::with_capacity(MOST_LATENCIES),
            confirm_us: Running::default(),
            all_planes: 0,
            attributes_refused: 0,
            refusals: Refusals::default(),
            outcomes: Tally::default(),
        }
    }
}

/// Requests are told to the sources of traffic, and go on.
struct Asked<'a>(&'a RefCell<Sources>);

impl Hooks for Asked<'_> {
    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow, radio: &mut dyn Radio) {
        self.0.borrow_mut().requested(token, frame);
        radio.request(token, frame, how);
    }
}

impl Protocol for Watched {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let mut ended = None;
        match &event {
            Event::Confirm(c) => {
                ended = Some((c.token, c.outcome));
                self.outcomes.note(c);
                if let Outcome::Refused(reason) = c.outcome {
                    self.refusals.add(reason);
                }
                self.all_planes += u64::from(c.stamps.count() == 9);
                if now >= self.since {
                    self.tries += u64::from(c.attempts);
                }
                let [t1, t9] = [Plane::T1, Plane::T9].map(|p| c.stamps.get_host(p));
                if let (Some(t1), Some(t9)) = (t1, t9) {
                    let us = t9.since(t1).as_ns() as f64 / 1e3;
                    if self.latencies_us.len() < MOST_LATENCIES {
                        self.latencies_us.push(us);
                    }
                    if now >= self.since && matches!(c.outcome, Outcome::Acked | Outcome::NotAcked) {
                        self.confirm_us.push(us);
                    }
                }
            }
            Event::Set(answer) => self.attributes_refused += u64::from(answer.result.is_err()),
            _ => {}
        }
        let sources = &self.sources;
        self.tape.handle(now, event, &mut Tap::new(radio, Asked(sources)));
        self.tape.sink().mark();
        if let Some((token, outcome)) = ended {
            self.sources.borrow_mut().ended(now, token, outcome);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.tape.deadline()
    }
}
