//! The other station: notes which shots arrive, and tells when it is asked. Its adapter acknowledges by itself.

use frame::MacAddr;
use radio::{Event, Instant, Protocol, Radio, TxHow};

use super::shots::TRIES;
use super::talk::{Heard, MOST_SHOTS, Said, Talk};

/// Runs that are kept; of more the one goes that began first.
const RUNS: usize = 16;

/// What was heard of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Who shoots.
    pub from: MacAddr,
    /// Number of the run.
    pub number: u32,
    /// The shots.
    pub heard: Heard,
    /// Questions answered.
    pub answers: u64,
    /// 0: nobody's yet.
    order: u64,
}

/// The other station of a measurement: see the head of this file. It allocates nothing once it is made.
#[derive(Debug)]
pub struct Ear {
    me: MacAddr,
    runs: Vec<Run>,
    begun: u64,
    sequence: u16,
    frame: Vec<u8>,
}

impl Ear {
    /// For an adapter with this address.
    pub fn new(me: MacAddr) -> Ear {
        let run = |_| Run {
            from: MacAddr::ZERO,
            number: 0,
            heard: Heard::new(MOST_SHOTS),
            answers: 0,
            order: 0,
        };
        Ear {
            me,
            runs: (0..RUNS).map(run).collect(),
            begun: 0,
            sequence: 0,
            frame: vec![0; 1_600],
        }
    }

    /// It is on an adapter with this address; before it starts.
    pub(super) fn is(&mut self, me: MacAddr) {
        self.me = me;
    }

    /// The runs, as they began.
    pub fn runs(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().filter(|run| run.order > 0).collect();
        runs.sort_by_key(|run| run.order);
        runs
    }

    fn run(&mut self, from: MacAddr, number: u32) -> &mut Run {
        let is_it = |run: &Run| run.order > 0 && (run.from, run.number) == (from, number);
        let known = self.runs.iter().position(is_it);
        let place = known.or_else(|| (0..RUNS).min_by_key(|n| self.runs[*n].order));
        let run = &mut self.runs[place.unwrap_or(0)];
        if known.is_none() {
            self.begun += 1;
            // fresh ones hold nothing, and their pages need not be touched
            if run.order > 0 {
                run.heard.clear();
            }
            (run.from, run.number, run.answers, run.order) = (from, number, 0, self.begun);
        }
        run
    }
}

impl Protocol for Ear {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let Event::Indication(i) = event else { return };
        let Some(said) = Said::parse(i.frame).filter(|s| s.to == self.me) else {
            return;
        };
        let run = self.run(said.from, said.run);
        match said.talk {
            Talk::Shot { number } => run.heard.add(number),
            Talk::Ask { block } => {
                run.answers += 1;
                let bits = run.heard.block(block);
                let answer = Said {
                    run: said.run,
                    from: self.me,
                    to: said.from,
                    talk: Talk::Heard { block, bits: &bits },
                };
                self.sequence = self.sequence.wrapping_add(1);
                let length = answer.emit(0, self.sequence, &mut self.frame).unwrap_or(0);
                let token = radio.token();
                radio.request(token, &self.frame[..length], &TxHow::multi_shot(i.rate, TRIES));
            }
            Talk::Heard { .. } => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
