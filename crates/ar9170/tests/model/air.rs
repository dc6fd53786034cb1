//! An air without anybody else, and a protocol that sends and counts under the law checker.

use std::collections::BTreeMap;

use ar9170::codec::{Eeprom, Firmware, firmware};
use ar9170::driver::{Buffers, Config, Hybrid};
use ar9170::emulated::{Knobs, Plugged};
use frame::mac::{FrameControl, Kind};
use frame::{MacAddr, Rate};
use radio::{
    AdapterId, Attribute, AttributeName, Checked, Confirm, Duration, Event, Indication, Instant, Msdu,
    Outcome, Protocol, Radio, Stamps, Token, Tsf, TxHow,
};

pub const ME: MacAddr = MacAddr::local(1);
pub const PEER: MacAddr = MacAddr::local(2);

/// A data frame with its number.
pub fn data(to: MacAddr, number: u16) -> Vec<u8> {
    let mut m = vec![0; 80];
    m[..2].copy_from_slice(&FrameControl::new(Kind::DATA, frame::mac::Flags::NONE).0);
    m[4..10].copy_from_slice(&to.0);
    m[10..16].copy_from_slice(&ME.0);
    m[24..26].copy_from_slice(&number.to_be_bytes());
    m
}

/// The same from the peer.
pub fn from_peer(to: MacAddr, number: u16) -> Vec<u8> {
    let mut m = data(to, number);
    m[10..16].copy_from_slice(&PEER.0);
    m
}

/// A frame as the air tells it.
pub fn indication(frame: &[u8]) -> Indication<'_> {
    Indication {
        frame,
        rate: Rate::OFDM_24,
        signal_dbm: Some(-61),
        tsf: None,
        adapter: AdapterId::FIRST,
        stamps: Stamps::NONE,
    }
}

/// What it sends, when, and how; what it asks for, and what it was told. Behind the last of `asks` it sees to it that the stick is
/// awake.
#[derive(Clone, Default)]
pub struct Sends {
    pub plan: Vec<(Duration, Vec<u8>, TxHow)>,
    pub sets: Vec<Attribute>,
    /// Changes of attributes, in order of time since the start.
    pub asks: Vec<(Duration, Attribute)>,
    pub asked: usize,
    /// When it is to be asked to wake, and the request that does so.
    pub wakes: Option<Instant>,
    pub waking: Option<Token>,
    pub next: usize,
    pub start: Option<Instant>,
    pub confirms: Vec<Confirm>,
    pub answers: Vec<bool>,
    pub heard: Vec<Vec<u8>>,
    /// How strong what it heard was, dBm.
    pub signals: Vec<Option<i8>>,
}

impl Sends {
    /// `count` frames to the peer, one every `every`.
    pub fn every(every: Duration, count: u16) -> Sends {
        let how = TxHow::one_shot(Rate::OFDM_6);
        let plan = (0..count).map(|n| (every.times(n.into()), data(PEER, n), how));
        Sends {
            plan: plan.collect(),
            ..Sends::default()
        }
    }

    pub fn outcomes(&self, outcome: Outcome) -> usize {
        self.confirms.iter().filter(|c| c.outcome == outcome).count()
    }
}

impl Protocol for Sends {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                self.start = Some(now);
                for attribute in self.sets.clone() {
                    set(radio, attribute);
                }
                self.wakes = self.asks.last().map(|ask| now + ask.0 + PAUSE);
            }
            Event::Confirm(c) => self.confirms.push(c),
            Event::Set(answer) => {
                self.answers.push(answer.result.is_ok());
                // a stick that was not there, or had too much to do, is asked again
                if self.waking.take_if(|t| *t == answer.token).is_some() && answer.result.is_err() {
                    self.wakes = Some(now + PAUSE);
                }
            }
            Event::Indication(i) => {
                self.heard.push(i.frame.to_vec());
                self.signals.push(i.signal_dbm);
                radio.deliver(Msdu::new(PEER, &i.frame[24..]));
            }
            Event::Beacon(beacon) => self.heard.push(beacon.received.frame.to_vec()),
            _ => {}
        }
        let start = self.start.unwrap_or(now);
        while let Some((_, frame, how)) = self.plan.get(self.next).filter(|p| start + p.0 <= now) {
            let token = radio.token();
            radio.request(token, frame, how);
            self.next += 1;
        }
        while let Some((_, attribute)) = self.asks.get(self.asked).filter(|a| start + a.0 <= now) {
            set(radio, *attribute);
            self.asked += 1;
        }
        if self.wakes.take_if(|t| *t <= now).is_some() {
            self.waking = Some(set(radio, Attribute::Reception(true)));
            self.asked += 1;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let start = self.start?;
        let sends = self.plan.get(self.next).map(|p| start + p.0);
        let asks = self.asks.get(self.asked).map(|a| start + a.0);
        [sends, asks, self.wakes].into_iter().flatten().min()
    }
}

/// Between two tries to wake the stick.
const PAUSE: Duration = Duration::from_ms(5);

fn set(radio: &mut dyn Radio, attribute: Attribute) -> Token {
    let token = radio.token();
    radio.set(token, AdapterId::FIRST, attribute);
    token
}

pub type Node = Checked<Sends>;
pub type Computer<'f, B = Hybrid<16, 8_192>> = Plugged<'f, Node, B, 64, 600>;

/// A computer with a stick, whose protocol is watched by the law checker.
pub fn computer<'f>(file: &'f [u8], config: Config, knobs: Knobs, sends: Sends) -> Computer<'f> {
    computer_with(file, config, knobs, sends, Hybrid::default())
}

/// The same with another memory for received frames.
pub fn computer_with<'f, B: Buffers>(
    file: &'f [u8],
    config: Config,
    knobs: Knobs,
    sends: Sends,
    buffers: B,
) -> Computer<'f, B> {
    let node = Node::strict(sends.clone()).with_twin(sends);
    plugged(file, config, knobs, node, buffers)
}

/// A computer with any protocol, and a stick in it.
pub fn plugged<P: Protocol, B: Buffers, const N: usize, const L: usize>(
    file: &[u8],
    config: Config,
    knobs: Knobs,
    node: P,
    buffers: B,
) -> Plugged<'_, P, B, N, L> {
    let firmware = Firmware::parse(file).expect("a good file");
    Plugged::new(firmware, config, eeprom(), knobs, node, buffers)
}

/// What the stick is.
pub fn eeprom() -> Eeprom {
    Eeprom {
        ghz5: true,
        ghz2_4: true,
        domain: 0,
        address: ME,
        receive_chains: 1,
        transmit_chains: 1,
    }
}

pub fn file() -> Vec<u8> {
    firmware::blank()
}

/// How frames end.
pub type Fate = fn(&[u8], &TxHow) -> (Outcome, u16);

pub fn acked(_: &[u8], _: &TxHow) -> (Outcome, u16) {
    (Outcome::Acked, 1)
}

/// The air: ends each frame after 200 us, and keeps what it was asked.
pub struct Air {
    pub now: Instant,
    pub fate: Fate,
    pub sent: Vec<(Instant, Vec<u8>, TxHow)>,
    pub attributes: Vec<Attribute>,
    pub delivered: usize,
    /// How many frames were on the air each time that the receiver was switched off.
    pub asleep_with: Vec<usize>,
    pub pending: BTreeMap<(Instant, u64), Confirm>,
    /// How far its TSF is ahead of the time, us.
    ahead_us: u64,
    tokens: u64,
}

impl Air {
    pub fn new(fate: Fate) -> Air {
        Air {
            now: Instant::ZERO,
            fate,
            sent: Vec::new(),
            attributes: Vec::new(),
            delivered: 0,
            asleep_with: Vec::new(),
            pending: BTreeMap::new(),
            ahead_us: 0,
            tokens: 0,
        }
    }

    /// Runs until `until`.
    pub fn run(&mut self, computer: &mut impl Protocol, until: Instant) {
        if self.now == Instant::ZERO {
            computer.handle(self.now, Event::Start, self);
        }
        for _ in 0..10_000_000 {
            let air = self.pending.keys().next().map(|k| k.0);
            let due = computer.deadline();
            let Some(next) = [air, due].into_iter().flatten().min().filter(|t| *t <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            if air.is_some_and(|t| t <= self.now) {
                let (_, confirm) = self.pending.pop_first().expect("just seen");
                computer.handle(self.now, Event::Confirm(confirm), self);
            } else {
                computer.handle(self.now, Event::Timer, self);
            }
        }
        panic!("time does not go on");
    }
}

impl Radio for Air {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.sent.push((self.now, frame.to_vec(), *how));
        let (outcome, attempts) = (self.fate)(frame, how);
        let rate = how.series.as_slice()[0].rate;
        let confirm = Confirm {
            attempts,
            ..Confirm::without_air(token, outcome, rate)
        };
        self.pending
            .insert((self.now + Duration::from_us(200), token.0), confirm);
    }

    fn set(&mut self, _: Token, _: AdapterId, attribute: Attribute) {
        if attribute == Attribute::Reception(false) {
            self.asleep_with.push(self.pending.len());
        }
        if let Attribute::Tsf(tsf) = attribute {
            self.ahead_us = tsf.0.wrapping_sub(self.now.as_ns() / 1_000);
        }
        self.attributes.push(attribute);
    }

    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        let tsf_us = (self.now.as_ns() / 1_000).wrapping_add(self.ahead_us);
        (name == AttributeName::Tsf).then_some(Attribute::Tsf(Tsf(tsf_us)))
    }

    fn abort(&mut self, _: Token) {}

    fn deliver(&mut self, _: Msdu<'_>) {
        self.delivered += 1;
    }
}
