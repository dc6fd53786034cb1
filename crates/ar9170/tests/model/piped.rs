//! The driver as on a board: behind a pipe, which has no room for the longest transfers.

use ar9170::codec::stream::{RESPONSE_MARK, write_unit};
use ar9170::codec::{Firmware, RxFrame, rx};
use ar9170::driver::{Bus, BusEvent, Config, Counts, Driver, Dynamic, Reason};
use ar9170::emulated::{Far, Faults, Knobs, Remote};
use ar9170::pipe::{DRIVER_OCTETS, Decoder, MAX_TRANSFER_OCTETS, Tell};
use frame::Rate;
use radio::{Duration, Event, Instant, Outcome, Protocol};

use crate::air::{Air, ME, Node, Sends, acked, computer, eeprom, file, from_peer, indication};

const MS: fn(u64) -> Duration = Duration::from_ms;
/// Frames that are sent, one each 10 ms.
const FRAMES: u16 = 200;

/// What it is told goes over the pipe.
struct Board<'f> {
    driver: Driver<'f, Node, (), Dynamic<3_072>, 64, 600>,
    decoder: Box<Decoder<DRIVER_OCTETS>>,
}

impl Far for Board<'_> {
    fn tell(&mut self, now: Instant, event: Option<BusEvent<'_>>, bus: &mut dyn Bus) -> Option<Instant> {
        let decoder = &mut self.decoder;
        let tell = event.map_or(Tell::Timer, Tell::Usb);
        assert!(tell.write(now, &mut |part| assert_eq!(decoder.feed(part), part.len())));
        let told = decoder.packet().and_then(Tell::parse);
        match told.expect("the board has room for it") {
            (now, Tell::Usb(event)) => self.driver.handle(now, event, bus),
            (_, told) => assert_eq!(told, Tell::Timer),
        }
        self.driver.run(now, bus);
        self.driver.deadline()
    }
}

/// What became of a run of two seconds in which the board sends, and hears a frame of 1400 octets each half millisecond.
struct Run {
    acked: usize,
    unknown: usize,
    heard: usize,
    counts: Counts,
    faults: Faults,
}

fn run(knobs: Knobs) -> Run {
    let file = file();
    let sends = Sends::every(MS(10), FRAMES);
    let node = Node::strict(sends.clone()).with_twin(sends);
    let firmware = Firmware::parse(&file).expect("a good file");
    let board = Board {
        driver: Driver::new(firmware, Config::DEFAULT, node, (), Dynamic::new()),
        decoder: Box::default(),
    };
    let mut remote = Remote::new(eeprom(), knobs, board);
    let mut air = Air::new(acked);
    air.run(&mut remote, Instant::ZERO + MS(200));
    for number in 0..4_000 {
        let mut frame = from_peer(ME, number);
        frame.resize(1_400, 0);
        remote.handle(air.now, Event::Indication(indication(&frame)), &mut air);
        let until = air.now + Duration::from_us(500);
        air.run(&mut remote, until);
    }
    let until = air.now + MS(20_000);
    air.run(&mut remote, until);
    let driver = &remote.computer().driver;
    assert!(driver.is_up(), "it comes back");
    assert_eq!(driver.protocol().violations(), 0);
    let sends = driver.protocol().inner();
    assert_eq!(
        sends.confirms.len(),
        FRAMES.into(),
        "each request has its confirm"
    );
    Run {
        acked: sends.outcomes(Outcome::Acked),
        unknown: sends.outcomes(Outcome::Unknown),
        heard: sends.heard.len(),
        counts: *driver.counts(),
        faults: remote.faults(),
    }
}

/// The stick puts responses at the front: the frames at the end are lost, and nothing else.
#[test]
fn of_a_transfer_that_is_too_long_the_front_is_taken_in() {
    let knobs = Knobs {
        transfer_ns: 2_000_000,
        ..Knobs::default()
    };
    let run = run(knobs);
    assert_eq!((run.acked, run.counts.all_restarts()), (FRAMES.into(), 0));
    let cut = run.counts.cut_transfers;
    assert!(cut > 500, "{cut} cut");
    assert!(run.heard as u64 >= cut, "{} heard, {cut} cut", run.heard);
    assert!(run.heard < 4_000 && run.counts.damaged_octets == 0);
}

/// A unit with this payload.
fn unit(payload: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0; 4_096];
    let octets = write_unit(payload, &mut out).expect("there is room");
    out.truncate(octets);
    out
}

/// A unit with this frame, as it was received.
fn received(mpdu: &[u8]) -> Vec<u8> {
    let frame = RxFrame {
        mpdu,
        rate: Some(Rate::OFDM_6),
        above_noise_db: Some(40),
        position: rx::Position::Single,
    };
    let mut out = vec![0; mpdu.len() + 64];
    let octets = frame.emit(false, &mut out).expect("there is room");
    unit(&[&out[..octets]])
}

/// What the cut has left of a frame is not searched for responses.
#[test]
fn a_frame_that_was_cut_cannot_speak_for_the_firmware() {
    let file = file();
    let mut computer = computer(&file, Config::DEFAULT, Knobs::default(), Sends::default());
    let mut air = Air::new(acked);
    air.run(&mut computer, Instant::ZERO + MS(200));
    let whole = received(&from_peer(ME, 1));
    // "the watchdog has bitten"
    let mut long = from_peer(ME, 2);
    long.extend(unit(&[&RESPONSE_MARK, &[0, 0xc6, 0, 0]]));
    long.resize(2_000, 0);
    let mut transfer = [whole, received(&long)].concat();
    transfer.truncate(MAX_TRANSFER_OCTETS);
    computer.disturb(air.now, BusEvent::Cut(&transfer));
    computer.handle(air.now, Event::Timer, &mut air);
    let counts = *computer.counts();
    assert_eq!((counts.cut_transfers, counts.indications), (1, 1));
    assert_eq!((counts.all_restarts(), counts.strange), (0, 0));
    assert!(computer.is_up());
}

#[test]
fn all_faults_at_once() {
    let knobs = Knobs {
        transfer_ns: 500_000,
        skipped_sequence: 0.005,
        lost_completion: 0.02,
        late_interrupt: 0.1,
        late_ns: 3_000_000,
        ..Knobs::default()
    };
    let run = run(knobs);
    let Faults {
        skipped_sequences,
        grouped_transfers,
        lost_completions,
        late_interrupts,
        ..
    } = run.faults;
    let met = [
        skipped_sequences,
        grouped_transfers,
        lost_completions,
        late_interrupts,
    ];
    assert!(met.iter().all(|n| *n > 0), "{met:?}");
    // of those skipped while a stick comes up, the first shows nothing: no number is expected yet
    let restarts = run.counts.restarts_for(Reason::LostResponse);
    assert!(
        restarts > 0 && restarts <= skipped_sequences,
        "{restarts} restarts"
    );
    assert!(run.counts.lost_completions > 0);
    assert!(run.acked + run.unknown > usize::from(FRAMES) / 2, "{}", run.acked);
}
