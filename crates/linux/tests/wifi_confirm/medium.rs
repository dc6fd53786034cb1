//! A medium that loses what it is told to lose.

use std::sync::atomic::{AtomicBool, Ordering};

use linux::hwsim::{self, MAX_SERIES, Medium, Series, Status};

use super::TRIES;

/// What becomes of a frame: how often it is tried, and whether an ACK comes in the end; `None`: nothing is ever told of it.
pub(crate) type Fate = Option<(u8, bool)>;

/// What the medium does with frame `n`: how often it is tried, and whether an ACK comes in the end.
pub(crate) fn fate(n: u16) -> (u8, bool) {
    match n % 7 {
        0 => (TRIES, false),
        r => (1 + (r as u8) % TRIES, true),
    }
}

/// The sequence number of a frame.
pub(crate) fn number(frame: &[u8]) -> u16 {
    u16::from_le_bytes([frame[22], frame[23]]) >> 4
}

/// The number at the end of a frame of the comparison, whoever has made its header.
pub(crate) fn marked(frame: &[u8]) -> Option<u64> {
    let (rest, number) = frame.split_last_chunk()?;
    rest.ends_with(b"confirm:").then(|| u64::from_le_bytes(*number))
}

/// Does with each frame what `of` says, 20 us after it.
fn medium(of: fn(&[u8]) -> Fate, stop: &AtomicBool, ready: &AtomicBool) {
    let mut medium = Medium::open().unwrap();
    medium.register().unwrap();
    ready.store(true, Ordering::Release);
    while !stop.load(Ordering::Relaxed) {
        medium.wait(Medium::now_ns() + 1_000_000).unwrap();
        while let Some(event) = medium.receive().unwrap() {
            let hwsim::Event::Sent(sent) = event else { continue };
            let Some((tries, acked)) = of(&sent.frame) else {
                continue;
            };
            std::thread::sleep(std::time::Duration::from_micros(20));
            let mut done = [Series::NONE; MAX_SERIES];
            done[0] = Series {
                tries,
                ..sent.plan[0]
            };
            let status = Status {
                radio: sent.radio,
                cookie: sent.cookie,
                flags: sent.flags,
                acked,
                signal_dbm: -50,
                done,
            };
            medium.report(&status).unwrap();
        }
    }
}

/// Does something while there is a medium that loses as [`fate`] says.
pub(crate) fn with_medium<T>(body: impl FnOnce() -> T) -> T {
    with_fates(|frame| Some(fate(number(frame))), body)
}

/// The same with other fates.
pub(crate) fn with_fates<T>(of: fn(&[u8]) -> Fate, body: impl FnOnce() -> T) -> T {
    let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| medium(of, &stop, &ready));
        while !ready.load(Ordering::Acquire) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let result = body();
        stop.store(true, Ordering::Relaxed);
        result
    })
}
