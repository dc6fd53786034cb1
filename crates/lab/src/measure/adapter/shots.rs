//! The measurement task of SDMAC (section IV.B) on a host of the kernel: one confirmed one-shot in each period; beside it
//! every foreign frame is noted. Afterwards the other station is asked which shots arrived.

use frame::{MacAddr, Rate};
use radio::Plane;
use radio::{
    AdapterId, Attribute, Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, Stamps, Token, TxHow,
};

use super::talk::{BLOCK, Heard, Said, Talk};

/// Foreign frames that are noted; a channel with more is not one to measure on.
const MOST_FOREIGN: usize = 1 << 20;
/// Questions for one block before the other station is given up.
const QUESTIONS: u32 = 20;
/// From a question to the next one, if no answer comes.
const PATIENCE: Duration = Duration::from_ms(50);
/// Tries of a question.
pub(super) const TRIES: u8 = 7;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// The station that acknowledges, and hears.
    pub to: MacAddr,
    /// Names this run to it.
    pub run: u32,
    /// Rate of the shots.
    pub rate: Rate,
    /// Octets of their payload, 13 to 1500.
    pub payload: usize,
    /// From one shot to the next.
    pub period: Duration,
    /// How many.
    pub count: u32,
}

/// What became of one shot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shot {
    /// Its number.
    pub number: u32,
    /// As confirmed.
    pub outcome: Outcome,
    /// Frames on the air, as the adapter tells.
    pub attempts: u16,
    /// Times at the planes.
    pub stamps: Stamps,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Shooting,
    /// For this block it was asked so often.
    Asking(u32, u32),
    Done,
}

/// The measurement task: see the head of this file.
#[derive(Debug)]
pub struct Shots {
    task: Task,
    me: MacAddr,
    phase: Phase,
    next: u32,
    open: Option<(Token, u32)>,
    due: Instant,
    sequence: u16,
    frame: Vec<u8>,
    /// The shots that have ended.
    pub shots: Vec<Shot>,
    /// When frames of others were heard.
    pub foreign: Vec<Instant>,
    /// Foreign frames that were not noted, for want of room.
    pub forgotten: u64,
    /// What the other station heard, if it has told.
    pub heard: Option<Heard>,
    telling: Heard,
}

impl Shots {
    /// For an adapter with this address.
    pub fn new(task: Task, me: MacAddr) -> Shots {
        Shots {
            task,
            me,
            phase: Phase::Shooting,
            next: 0,
            open: None,
            due: Instant::ZERO,
            sequence: 0,
            frame: vec![0; 1_600],
            shots: Vec::with_capacity(task.count as usize),
            foreign: Vec::with_capacity(MOST_FOREIGN),
            forgotten: 0,
            heard: None,
            telling: Heard::new(task.count),
        }
    }

    /// It is for an adapter with this address; before it starts.
    pub(super) fn is(&mut self, me: MacAddr) {
        self.me = me;
    }

    /// All shots have ended.
    pub fn is_shot(&self) -> bool {
        self.next == self.task.count && self.open.is_none()
    }

    /// From now on the other station is asked.
    pub fn ask(&mut self, now: Instant) {
        self.phase = Phase::Asking(0, 0);
        self.due = now;
    }

    /// It has answered all, or none came.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    fn send(&mut self, talk: Talk<'_>, octets: usize, tries: u8, radio: &mut dyn Radio) -> Token {
        let said = Said {
            run: self.task.run,
            from: self.me,
            to: self.task.to,
            talk,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let length = said.emit(octets, self.sequence, &mut self.frame).unwrap_or(0);
        let token = radio.token();
        // An empty frame is refused, which is told.
        radio.request(
            token,
            &self.frame[..length],
            &TxHow::multi_shot(self.task.rate, tries),
        );
        token
    }

    fn timer(&mut self, now: Instant, radio: &mut dyn Radio) {
        match self.phase {
            Phase::Shooting => {
                while self.due <= now {
                    self.due += self.task.period;
                }
                if self.open.is_none() && self.next < self.task.count {
                    let number = self.next;
                    self.next += 1;
                    let token = self.send(Talk::Shot { number }, self.task.payload, 1, radio);
                    self.open = Some((token, number));
                }
            }
            Phase::Asking(_, QUESTIONS) => self.phase = Phase::Done,
            Phase::Asking(block, asked) => {
                self.phase = Phase::Asking(block, asked + 1);
                self.due = now + PATIENCE;
                self.send(Talk::Ask { block }, 0, TRIES, radio);
            }
            Phase::Done => {}
        }
    }

    fn confirm(&mut self, c: Confirm) {
        if let Some((_, number)) = self.open.take_if(|(token, _)| *token == c.token) {
            self.shots.push(Shot {
                number,
                outcome: c.outcome,
                attempts: c.attempts,
                stamps: c.stamps,
            });
        }
    }

    fn told(&mut self, now: Instant, said: &Said<'_>) {
        let (Phase::Asking(asked, _), Talk::Heard { block, bits }) = (self.phase, said.talk) else {
            return;
        };
        if said.run != self.task.run || block != asked {
            return;
        }
        self.telling.take(block, bits);
        if (block + 1) * BLOCK < self.task.count {
            self.phase = Phase::Asking(block + 1, 0);
            self.due = now;
        } else {
            self.phase = Phase::Done;
            self.heard = Some(std::mem::take(&mut self.telling));
        }
    }

    fn foreign(&mut self, at: Instant) {
        if self.foreign.len() < MOST_FOREIGN {
            self.foreign.push(at);
        } else {
            self.forgotten += 1;
        }
    }
}

impl Protocol for Shots {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                self.due = now + self.task.period;
                let token = radio.token();
                radio.set(token, AdapterId::FIRST, Attribute::Promiscuous(true));
            }
            Event::Timer => self.timer(now, radio),
            Event::Confirm(c) => self.confirm(c),
            Event::Indication(i) => match Said::parse(i.frame).filter(|s| s.from == self.task.to) {
                Some(said) if said.to == self.me => self.told(now, &said),
                Some(_) => {}
                None => self.foreign(i.stamps.get_host(Plane::T8).unwrap_or(now)),
            },
            Event::Beacon(b) => self.foreign(b.received.stamps.get_host(Plane::T8).unwrap_or(now)),
            Event::Submit(_) | Event::Set(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Shooting if self.next < self.task.count => Some(self.due),
            Phase::Asking(..) => Some(self.due),
            _ => None,
        }
    }
}
