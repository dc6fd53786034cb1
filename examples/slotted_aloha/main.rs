//! The throughput of slotted ALOHA against its textbook curve, S = G e^-G.
//!
//! `cargo run --example slotted_aloha`. The stations run on a channel that is nothing but the model of the textbook: a
//! frame that is alone in its slot gets an ACK, frames that meet do not. They run under [`Checked`], which panics if
//! one of the seven laws is broken.

mod aloha;

use aloha::SlottedAloha;
use frame::{MacAddr, Rate};
use protocols::mac::data::Identity;
use radio::{
    AdapterId, Attribute, AttributeName, Checked, Confirm, Duration, Event, Instant, Msdu, Outcome, Protocol,
    Radio, SetAnswer, SetError, Token, TxHow,
};

const SLOT: Duration = Duration::from_us(1_000);
const ACCESS_POINT: MacAddr = MacAddr::local(0);
const STATIONS: u32 = 64;

/// The radio of one station: notes what is asked for.
#[derive(Default)]
struct Desk {
    tokens: u64,
    requested: Option<Token>,
    set: Vec<Token>,
}

impl Radio for Desk {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }
    fn request(&mut self, token: Token, _frame: &[u8], _how: &TxHow) {
        self.requested = Some(token);
    }
    fn set(&mut self, token: Token, _: AdapterId, _: Attribute) {
        self.set.push(token);
    }
    fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
        None
    }
    fn abort(&mut self, _: Token) {}
    fn deliver(&mut self, _: Msdu<'_>) {}
}

/// Offered load G and throughput S in frames per slot, when each of the stations, which always have something to
/// send, sends with probability `chance` / 65536 in each slot.
fn measure(chance: u16, slots: u64) -> (f64, f64) {
    let station = |i: u32| {
        let identity = Identity::station(MacAddr::local(i), ACCESS_POINT);
        let make = || SlottedAloha::new(identity, SLOT, chance, i.into());
        (Checked::<_, 8>::strict(make()).with_twin(make()), Desk::default())
    };
    let mut stations: Vec<_> = (1..=STATIONS).map(station).collect();
    for (station, desk) in &mut stations {
        station.handle(Instant::ZERO, Event::Start, desk);
        for token in core::mem::take(&mut desk.set) {
            let result = Err(SetError::NotSupported);
            station.handle(Instant::ZERO, Event::Set(SetAnswer { token, result }), desk);
        }
    }
    let (mut attempts, mut successes) = (0, 0);
    for slot in 0..slots {
        let start = Instant::ZERO + SLOT.times(slot);
        for (station, desk) in &mut stations {
            if !station.inner().is_backlogged() {
                station.handle(start, Event::Submit(Msdu::new(ACCESS_POINT, b"payload")), desk);
            }
            station.handle(start, Event::Timer, desk);
        }
        let senders = stations
            .iter()
            .filter(|(_, desk)| desk.requested.is_some())
            .count();
        let outcome = if senders == 1 {
            Outcome::Acked
        } else {
            Outcome::NotAcked
        };
        for (station, desk) in &mut stations {
            if let Some(token) = desk.requested.take() {
                let confirm = Confirm::without_air(token, outcome, Rate::OFDM_6);
                let confirm = Confirm {
                    attempts: 1,
                    ..confirm
                };
                station.handle(start + Duration::from_us(900), Event::Confirm(confirm), desk);
            }
        }
        attempts += senders;
        successes += usize::from(senders == 1);
    }
    (attempts as f64 / slots as f64, successes as f64 / slots as f64)
}

fn main() {
    println!("{:>8} {:>8} {:>8}", "G", "S", "G e^-G");
    for tenths in [1, 2, 5, 8, 10, 12, 15, 20, 30, 40] {
        let chance = tenths * 65_536 / (10 * STATIONS);
        let (g, s) = measure(chance as u16, 20_000);
        println!("{g:8.3} {s:8.3} {:8.3}", g * (-g).exp());
    }
}

#[test]
fn the_textbook_curve() {
    for tenths in [2, 5, 10, 20, 30] {
        let chance = tenths * 65_536 / (10 * STATIONS);
        let (g, s) = measure(chance as u16, 10_000);
        let expected = g * (-g).exp();
        // 10,000 slots: a standard deviation of at most 0.005; 64 stations instead of infinitely many: 0.004 at most
        assert!(
            (s - expected).abs() < 0.02,
            "G = {g}: S = {s}, the textbook has {expected}"
        );
    }
}
