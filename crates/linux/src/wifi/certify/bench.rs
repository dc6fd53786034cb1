//! The radio under test and the second one: sends what is asked, and notes what comes back and what is heard.
//!
//! Every frame ends in a number of its own, by which its status and its copies are known.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::mac::{AckPolicy, Flags, FrameControl, Header, Kind, QosControl, SequenceControl};
use frame::radiotap::Packet;
use frame::{MacAddr, Rate, Wire};
use radio::{Duration, Instant, Refusal};

use super::super::adapter::Adapter;
use super::super::desk::now;
use super::super::error::Error;
use super::super::packet::{radiotap, status, write};
use super::super::source::{Shows, Source};
use super::super::wait::{Wait, Waiter};

/// Requests that wait for their status at once.
const WINDOW: usize = 32;
/// A status that has not come after this long does not come.
const PATIENCE: Duration = Duration::from_ms(1_000);
/// Copies that are heard come within this time after the last status.
const ECHO: Duration = Duration::from_ms(20);
/// Longest wait without a look at the stop flag.
const LOOK: Duration = Duration::from_ms(50);
/// Starts the mark at the end of each frame; the number follows.
const MARK: &[u8; 8] = b"certify:";

/// The radio under test.
pub(super) const TESTED: usize = 0;
/// The second one.
pub(super) const EAR: usize = 1;

/// One frame to send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub kind: Kind,
    pub to: MacAddr,
    pub from: MacAddr,
    pub tid: u8,
    pub rate: Rate,
    pub tries: u8,
    pub ack: bool,
    /// Octets of nothing in its body, up to 2000.
    pub padding: usize,
}

/// What the kernel said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    pub acked: bool,
    pub attempts: Option<u16>,
    pub rate: Option<Rate>,
}

/// A copy of it that the other radio heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Copy {
    /// How many frames were heard before it.
    pub order: u64,
    pub rate: Option<Rate>,
    pub tid: Option<u8>,
    /// Timestamp in it, of a beacon.
    pub timestamp_us: Option<u64>,
    /// Time of its reception by the adapter's clock.
    pub tsft_us: Option<u64>,
    /// Time at which the kernel had it.
    pub at: Instant,
}

/// What was seen of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    pub refused: Option<Refusal>,
    pub status: Option<Told>,
    /// How many there were of it.
    pub statuses: u32,
    pub copies: Vec<Copy>,
}

/// What became of a frame that was sent while the second radio sent others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amid {
    /// From the request to its status; `None` if none came.
    pub delay: Option<Duration>,
    /// It was acknowledged.
    pub acked: bool,
    /// From the first request of the second radio to the last status of these.
    pub occupied: Duration,
}

enum Note {
    Status(Told),
    Copy(Copy),
}

/// See the [module](self).
pub(super) struct Bench {
    radios: Vec<Adapter>,
    sources: Vec<Source>,
    waiter: Waiter,
    next_number: u64,
    heard: u64,
    /// Beacons of others that a radio has heard: by whom, transmitter, timestamp, and when the kernel had it.
    pub beacons: Vec<(usize, MacAddr, u64, Instant)>,
}

impl Bench {
    /// With the radio under test, and the second one if there is one.
    pub fn new(tested: Adapter, ear: Option<Adapter>) -> Result<Bench, Error> {
        let wait = Error::control("wait for packets");
        let waiter = Waiter::new(Wait::Timerfd).map_err(&wait)?;
        let mut radios = vec![tested];
        radios.extend(ear);
        for socket in radios.iter().flat_map(Adapter::sockets) {
            waiter.add(socket.as_fd()).map_err(&wait)?;
        }
        let all = 0..radios.len() as u8;
        Ok(Bench {
            sources: all
                .flat_map(|r| [Shows::Received, Shows::Sent].map(|shows| Source::new(r, shows)))
                .collect(),
            radios,
            waiter,
            next_number: 1,
            heard: 0,
            beacons: Vec::new(),
        })
    }

    /// Whether there is a second radio.
    pub fn listens(&self) -> bool {
        self.radios.len() > 1
    }

    /// The radio under test.
    pub fn tested(&mut self) -> &mut Adapter {
        &mut self.radios[TESTED]
    }

    /// The second one.
    pub fn ear(&mut self) -> Option<&mut Adapter> {
        self.radios.get_mut(EAR)
    }

    /// Whether the interfaces of both are still there and up.
    pub fn is_whole(&mut self) -> bool {
        self.radios.iter_mut().all(Adapter::is_up)
    }

    /// Sends all of them from one of the radios, a few at a time, and waits for what comes of them.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses to wait.
    pub fn run(&mut self, by: usize, asks: &[Ask], stop: &AtomicBool) -> Result<Vec<Seen>, Error> {
        self.forget();
        let first = self.next_number;
        self.next_number += asks.len() as u64;
        let mut seen = vec![Seen::default(); asks.len()];
        let (mut next, mut open, mut silences) = (0, 0_usize, 0);
        let mut last = now();
        loop {
            while next < asks.len() && open < WINDOW && silences < 2 && !stop.load(Ordering::Relaxed) {
                match self.send(by, &asks[next], first + next as u64) {
                    Ok(()) => open += 1,
                    Err(Refusal::QueueFull) if open > 0 => break,
                    Err(why) => seen[next].refused = Some(why),
                }
                next += 1;
                last = now();
            }
            if let Some((number, note)) = self.note(by) {
                last = now();
                let index = number.checked_sub(first).map_or(usize::MAX, |i| i as usize);
                let Some(seen) = seen.get_mut(index) else { continue };
                match note {
                    Note::Status(told) => {
                        seen.status.get_or_insert(told);
                        seen.statuses += 1;
                        open = open.saturating_sub(1);
                    }
                    Note::Copy(copy) => seen.copies.push(copy),
                }
                continue;
            }
            let quiet = now().since(last);
            let all_sent = next == asks.len() || silences == 2 || stop.load(Ordering::Relaxed);
            if open > 0 && quiet >= PATIENCE {
                // What has no status by now gets none; twice, and it is not worth while to go on.
                (open, silences) = (0, silences + 1);
            } else if all_sent && open == 0 && quiet >= ECHO {
                return Ok(seen);
            }
            let patience = if open > 0 { PATIENCE } else { ECHO };
            self.rest((last + patience).min(now() + LOOK))?;
        }
    }

    /// Listens for a while.
    ///
    /// # Errors
    /// As [`Bench::run`].
    pub fn listen(&mut self, time: Duration, stop: &AtomicBool) -> Result<(), Error> {
        self.forget();
        let until = now() + time;
        while now() < until && !stop.load(Ordering::Relaxed) {
            if self.note(TESTED).is_none() {
                self.rest(until.min(now() + LOOK))?;
            }
        }
        Ok(())
    }

    /// Sends a frame from the radio under test `after` the second one was told to send `others`, all at once.
    ///
    /// # Errors
    /// As [`Bench::run`].
    pub fn amid(
        &mut self,
        ask: &Ask,
        others: &[Ask],
        after: Duration,
        stop: &AtomicBool,
    ) -> Result<Amid, Error> {
        self.forget();
        let first = self.next_number;
        self.next_number += 1 + others.len() as u64;
        let begun = now();
        let mut open = 0;
        for (number, other) in (first + 1..).zip(others) {
            open += usize::from(self.send(EAR, other, number).is_ok());
        }
        let mut seen = Amid {
            delay: None,
            acked: false,
            occupied: Duration::ZERO,
        };
        while now() < begun + after {
            self.rest(begun + after)?;
        }
        let sent = now();
        let mut waits = self.send(TESTED, ask, first).is_ok();
        while (waits || open > 0) && now() < sent + PATIENCE && !stop.load(Ordering::Relaxed) {
            match self.next() {
                Some((TESTED, number, Note::Status(told), at)) if number == first => {
                    (seen.delay, seen.acked, waits) = (Some(at.since(sent)), told.acked, false);
                }
                Some((EAR, number, Note::Status(_), at)) if number > first => {
                    open = open.saturating_sub(1);
                    seen.occupied = at.since(begun);
                }
                Some(_) => {}
                None => self.rest((sent + PATIENCE).min(now() + LOOK))?,
            }
        }
        Ok(seen)
    }

    fn rest(&mut self, until: Instant) -> Result<(), Error> {
        self.waiter
            .wait(until.as_ns())
            .map_err(Error::control("wait for packets"))
    }

    /// Throws away what has come so far.
    fn forget(&mut self) {
        while self.note(TESTED).is_some() {}
        self.beacons.clear();
        self.heard = 0;
    }

    fn send(&mut self, by: usize, ask: &Ask, number: u64) -> Result<(), Refusal> {
        let mut packet = [0; 2_400];
        let tries = if ask.ack { ask.tries } else { 1 };
        let frame = marked_frame(ask, number);
        let how = radiotap(ask.rate, tries, ask.ack);
        let (_, octets) = write(how, &frame, &mut packet).ok_or(Refusal::BadFrame)?;
        self.radios[by].send(&packet[..octets], 0)
    }

    /// The next thing that came about a frame of ours which `by` has sent.
    fn note(&mut self, by: usize) -> Option<(u64, Note)> {
        loop {
            let (radio, number, note, _) = self.next()?;
            match note {
                Note::Status(_) if radio == by => return Some((number, note)),
                Note::Copy(copy) if radio != by => {
                    self.heard += 1;
                    let order = self.heard;
                    return Some((number, Note::Copy(Copy { order, ..copy })));
                }
                _ => {}
            }
        }
    }

    /// The next thing that came about a frame of ours: at which radio, and when the kernel had it.
    fn next(&mut self) -> Option<(usize, u64, Note, Instant)> {
        loop {
            for source in &mut self.sources {
                let [received, sent] = self.radios[usize::from(source.adapter)].sockets();
                source.fetch(if source.shows == Shows::Sent {
                    sent
                } else {
                    received
                });
            }
            let waiting = self.sources.iter_mut().filter(|s| s.came().is_some());
            let source = waiting.min_by_key(|s| s.came())?;
            let (radio, is_sent) = (usize::from(source.adapter), source.shows == Shows::Sent);
            let (waiting, octets) = source.take()?;
            let at = waiting.t8.unwrap_or(waiting.t9);
            if is_sent {
                let Some(status) = status(octets) else { continue };
                let Some(number) = number(status.frame) else {
                    continue;
                };
                let told = Told {
                    acked: !status.failed,
                    attempts: status.attempts,
                    rate: status.rate,
                };
                return Some((radio, number, Note::Status(told), at));
            }
            let Ok(packet) = Packet::parse(octets) else {
                continue;
            };
            let Ok(mpdu) = packet.mpdu() else { continue };
            let Ok(header) = Header::parse(mpdu) else { continue };
            let timestamp_us = frame::mac::header::timestamp_us(mpdu);
            let Some(number) = number(mpdu) else {
                if let (Some(stamp), Some(from)) = (timestamp_us, header.transmitter()) {
                    self.beacons.push((radio, from, stamp, at));
                }
                continue;
            };
            let copy = Copy {
                order: 0,
                rate: packet.radiotap.rate(),
                tid: header.tid(),
                timestamp_us,
                tsft_us: packet.radiotap.tsft_us,
                at,
            };
            return Some((radio, number, Note::Copy(copy), at));
        }
    }
}

/// The frame, with its number at the end.
pub(super) fn marked_frame(ask: &Ask, number: u64) -> Vec<u8> {
    let mut m = vec![0; 24];
    m[..2].copy_from_slice(&FrameControl::new(ask.kind, Flags::NONE).0);
    m[4..10].copy_from_slice(&ask.to.0);
    m[10..16].copy_from_slice(&ask.from.0);
    m[16..22].copy_from_slice(&ask.from.0);
    let sequence = SequenceControl::new((number & 0xfff) as u16, 0);
    m[22..24].copy_from_slice(&sequence.0.to_le_bytes());
    if ask.kind.is_qos() {
        m.extend(QosControl::new(ask.tid, AckPolicy::Normal).0.to_le_bytes());
    }
    if ask.kind == Kind::BEACON {
        m.extend([0; 8]); // Timestamp.
        m.extend([100, 0, 0, 0]); // Interval, TU; capabilities: none, so nobody joins.
        m.extend([221, (MARK.len() + 8) as u8]); // Vendor specific (IEEE 802.11-2016, 9.4.2.26).
    }
    m.resize(m.len() + ask.padding, 0);
    m.extend(MARK);
    m.extend(number.to_be_bytes());
    m
}

/// The number at the end of a frame of ours.
fn number(mpdu: &[u8]) -> Option<u64> {
    let (rest, number) = mpdu.split_last_chunk::<8>()?;
    rest.ends_with(MARK).then(|| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_known_by_its_number() {
        for kind in [Kind::DATA, Kind::QOS_DATA, Kind::BEACON] {
            let ask = Ask {
                kind,
                to: MacAddr::local(1),
                from: MacAddr::local(2),
                tid: 5,
                rate: Rate::OFDM_6,
                tries: 1,
                ack: true,
                padding: 3,
            };
            let mpdu = marked_frame(&ask, 0x1_2345);
            assert_eq!(number(&mpdu), Some(0x1_2345));
            let header = Header::parse(&mpdu).unwrap();
            assert_eq!((header.kind(), header.receiver()), (kind, ask.to));
            assert_eq!(header.tid(), (kind == Kind::QOS_DATA).then_some(5));
            assert_eq!(number(&mpdu[..mpdu.len() - 1]), None);
        }
    }
}
