//! The stick as an adversary: any event at any time, any octets of any length. The driver does not panic, keeps the laws
//! towards its protocol, and is up again within a bounded time after the last of it.

use ar9170::driver::BusEvent;
use ar9170::emulated::{Knobs, Random};
use radio::{Duration, Event, Instant, Protocol};

use crate::air::{Air, Sends, acked, computer, file};
use crate::script::{CONFIG, MS, asks, hears, is_gone, recovers, try_driver, try_pipe};
use proptest::prelude::*;

/// Something that looks like what the firmware says, with one thing or another wrong.
fn transfer(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.below(4) {
        let mut payload = Vec::new();
        if random.below(3) > 0 {
            payload.extend([0xff; 12]);
        }
        for _ in 0..random.below(4) {
            const CODES: [u8; 14] = [
                0, 1, 2, 6, 7, 0x20, 0x21, 0x24, 0xc0, 0xc1, 0xc2, 0xca, 0xcf, 0xc6,
            ];
            let length = [0, 4, 8, 32, random.below(64) as u8][random.below(5) as usize];
            let code = CODES[random.below(CODES.len() as u64) as usize];
            payload.extend([length, code, random.below(17) as u8, random.below(20) as u8]);
            payload.extend((0..length).map(|_| random.bits() as u8 & 0x1f));
        }
        payload.extend((0..random.below(80)).map(|_| random.bits() as u8));
        out.extend((payload.len() as u16).to_le_bytes());
        out.extend([0, 0x4e]);
        out.extend(&payload);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    for _ in 0..random.below(3) {
        let at = random.below(out.len() as u64) as usize;
        if let Some(octet) = out.get_mut(at) {
            *octet = random.bits() as u8;
        }
    }
    out.truncate(out.len() - random.below(out.len() as u64 / 4 + 1) as usize);
    out
}

fn disturb(random: &mut Random) -> (u64, Vec<u8>) {
    let kind = random.below(16);
    let octets = match kind {
        0..8 => transfer(random),
        8 => (0..random.below(9_000)).map(|_| random.bits() as u8).collect(),
        _ => Vec::new(),
    };
    (kind, octets)
}

/// What the protocol does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    Sends,
    /// It sends, changes attributes, dozes, and has the stick speak of beacons.
    IsBusy,
    /// It asks for nothing at all.
    Listens,
}

/// Disturbs a stick from `seed` on: how long it was until it was up for good, and how many attributes were changed.
fn disturbed(seed: u64, habit: Habit) -> (Duration, usize) {
    let file = file();
    let mut random = Random::new(seed);
    let knobs = Knobs {
        seed,
        ..Knobs::default()
    };
    let mut busy = Random::new(!seed);
    let octets: Vec<u8> = (0..150).map(|_| busy.bits() as u8).collect();
    let sends = match habit {
        Habit::Sends => Sends::every(MS(1), 2_000),
        Habit::IsBusy => Sends {
            asks: asks(&octets),
            ..Sends::every(MS(1), 2_000)
        },
        Habit::Listens => Sends::default(),
    };
    let frames = sends.plan.len();
    let mut computer = computer(&file, CONFIG, knobs, sends);
    let mut air = Air::new(acked);
    // from the first moment on, or from some time after it came up
    let quiet = Duration::from_us(1 + random.below(60_000));
    air.run(&mut computer, Instant::ZERO + quiet);
    let mut gone = false;
    for _ in 0..random.below(200) {
        let (kind, octets) = disturb(&mut random);
        let event = match kind {
            0..8 => BusEvent::Received(&octets),
            8 => BusEvent::Cut(&octets),
            9 => BusEvent::Sent(random.below(60) as u32, random.below(4) > 0),
            10 => BusEvent::ControlDone(random.below(2) > 0),
            11 => BusEvent::ReadFailed,
            12 => BusEvent::Attached,
            13 => BusEvent::Detached,
            14 => {
                computer.hang();
                continue;
            }
            _ => BusEvent::Sent(random.bits() as u32, true),
        };
        gone = is_gone(&event, gone);
        computer.disturb(air.now, event);
        let until = air.now + Duration::from_us(random.below(2_000));
        computer.handle(air.now, Event::Timer, &mut air);
        air.run(&mut computer, until);
    }
    let took = recovers(&mut computer, &mut air, gone);
    assert!(habit != Habit::Listens || hears(&mut computer, &mut air));
    let until = air.now + MS(2_000);
    air.run(&mut computer, until);
    let mut node = computer.into_protocol();
    node.finish();
    assert_eq!(node.violations(), 0);
    let node = node.inner();
    assert_eq!(node.confirms.len(), frames, "seed {seed}");
    assert_eq!(node.answers.len(), node.asked, "seed {seed}");
    (took, node.asked)
}

#[test]
fn comes_back_from_every_disturbance() {
    for (habit, name) in [
        (Habit::Sends, "sends"),
        (Habit::IsBusy, "is busy"),
        (Habit::Listens, "listens"),
    ] {
        let (mut worst, mut asked) = (Duration::ZERO, 0);
        for seed in 0..60 {
            let (took, changes) = disturbed(seed, habit);
            (worst, asked) = (worst.max(took), asked + changes);
        }
        println!("who {name}: up again after {worst:?} at the latest; {asked} changes of attributes");
        assert_eq!(asked > 0, habit == Habit::IsBusy);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// What a fuzzer may say, too: any octets are a script of events.
    #[test]
    fn comes_back_from_any_script(octets in proptest::collection::vec(any::<u8>(), 0..1_500)) {
        try_driver(&octets);
    }

    #[test]
    fn a_pipe_takes_any_octets(octets in proptest::collection::vec(any::<u8>(), 0..3_000)) {
        try_pipe(&octets);
    }
}
