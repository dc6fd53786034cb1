//! The other station: notes which shots arrive, and tells when it is asked. Its adapter acknowledges by itself.

use std::collections::BTreeMap;

use frame::MacAddr;
use radio::{Event, Instant, Protocol, Radio, TxHow};

use super::shots::TRIES;
use super::talk::{Heard, Said, Talk};

/// Runs that are kept; of more the one goes that began first.
const RUNS: usize = 16;

/// What was heard of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The shots.
    pub heard: Heard,
    /// Questions answered.
    pub answers: u64,
    order: u64,
}

/// The other station of a measurement: see the head of this file.
#[derive(Debug)]
pub struct Ear {
    me: MacAddr,
    runs: BTreeMap<(MacAddr, u32), Run>,
    begun: u64,
    sequence: u16,
    frame: Vec<u8>,
}

impl Ear {
    /// For an adapter with this address.
    pub fn new(me: MacAddr) -> Ear {
        Ear {
            me,
            runs: BTreeMap::new(),
            begun: 0,
            sequence: 0,
            frame: vec![0; 1_600],
        }
    }

    /// The runs, by who shoots and its number.
    pub fn runs(&self) -> &BTreeMap<(MacAddr, u32), Run> {
        &self.runs
    }

    fn run(&mut self, key: (MacAddr, u32)) -> &mut Run {
        if !self.runs.contains_key(&key) && self.runs.len() == RUNS {
            let oldest = self
                .runs
                .iter()
                .min_by_key(|(_, run)| run.order)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                self.runs.remove(&oldest);
            }
        }
        let begun = &mut self.begun;
        self.runs.entry(key).or_insert_with(|| {
            *begun += 1;
            Run {
                order: *begun,
                ..Run::default()
            }
        })
    }
}

impl Protocol for Ear {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let Event::Indication(i) = event else { return };
        let Some(said) = Said::parse(i.frame).filter(|s| s.to == self.me) else {
            return;
        };
        let run = self.run((said.from, said.run));
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
