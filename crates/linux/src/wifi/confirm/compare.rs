//! The four paths on the same frames.
//!
//! No frame can be told of by all of them, so there are three kinds that take turns: injected through a monitor interface,
//! data of an ordinary interface (an access point of our own, which knows the other station as if it had associated), and
//! management frames through nl80211. One frame is on its way at a time. All paths are open all the time and are read for each
//! frame; but one of them is waited for first, and they take turns in that: the time from before the send until that one
//! was read is its latency. The monitor is there for each kind, and what it tells is what the others are held against.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use frame::MacAddr;
use frame::mac::{Flags, FrameControl, Kind as FrameKind, SequenceControl};
use radio::{Duration, Instant};

use super::management::Management;
pub use super::sample::{Comparison, Kind, Sample, Task, Told};
use super::{Device, Path};
use crate::wifi::adapter::Adapter;
use crate::wifi::certify::AccessPoint;
use crate::wifi::config::AdapterConfig;
use crate::wifi::desk::now;
use crate::wifi::error::Error;
use crate::wifi::nl80211::Control;
use crate::wifi::ordinary::OrdinarySocket;
use crate::wifi::packet::{radiotap, status, write};
use crate::wifi::source::{Shows, Source};
use crate::wifi::wait::{Wait, Waiter};

/// An outcome that has not come after this long does not come.
const PATIENCE: Duration = Duration::from_ms(1_000);
/// After the first outcome the others come within this time.
const ECHO: Duration = Duration::from_ms(50);
/// Least octets of payload: the mark and a number; and most of them.
const LEAST_PAYLOAD: usize = 16;
const MOST_PAYLOAD: usize = 1_400;
/// Starts the end of each frame; its number follows.
const MARK: &[u8; 8] = b"confirm:";
/// EtherType for experiments (IEEE 802-2014, 9.2.3).
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
/// An action frame of a vendor (IEEE 802.11-2016, 9.6.6) with an address of nobody as the vendor.
const ACTION: [u8; 4] = [127, 0x02, 0, 0];

/// Compares the paths with frames of a radio. `progress` is told how many frames have ended.
///
/// # Errors
/// Those of opening the radio and of an access point on it; a device that is not there is none.
pub fn compare(
    config: AdapterConfig,
    task: Task,
    progress: &dyn Fn(u32),
    stop: &AtomicBool,
) -> Result<Comparison, Error> {
    if !(LEAST_PAYLOAD..=MOST_PAYLOAD).contains(&task.payload) {
        return Err(Error::Config("the payload of such frames is 16 to 1400 octets"));
    }
    let mut bench = Bench::open(config, task)?;
    let mut all = Comparison {
        samples: Vec::with_capacity(task.count as usize),
        no_device: bench.no_device.clone(),
        refused: BTreeMap::new(),
    };
    let mut due = now();
    for n in 0..task.count {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let kind = Kind::ALL[n as usize % Kind::ALL.len()];
        let paths = kind
            .paths()
            .iter()
            .copied()
            .filter(|p| *p != Path::Device || bench.device.is_some());
        let paths: Vec<Path> = paths.collect();
        let awaited = paths[n as usize / Kind::ALL.len() % paths.len()];
        match bench.shoot(n, kind, awaited, &paths)? {
            Ok(sample) => all.samples.push(sample),
            Err(why) => *all.refused.entry(format!("{}: {why}", kind.name())).or_default() += 1,
        }
        progress(n + 1);
        due = (due + task.period).max(now());
        std::thread::sleep(std::time::Duration::from_nanos(due.since(now()).as_ns()));
    }
    Ok(all)
}

/// Everything that is open.
struct Bench {
    task: Task,
    me: MacAddr,
    adapter: Adapter,
    point: AccessPoint,
    monitor: OwnedFd,
    source: Source,
    ordinary: OrdinarySocket,
    management: Management,
    device: Option<Device>,
    no_device: Option<String>,
    waiters: Vec<(Path, Waiter)>,
    any: Waiter,
    /// Cookie of the frame on its way, if it has one.
    cookie: Option<u64>,
    told: [Option<Told>; 4],
}

impl Bench {
    fn open(config: AdapterConfig, task: Task) -> Result<Bench, Error> {
        let adapter = Adapter::open(config.clone())?;
        let wiphy = Control::open()?.wiphy(&config.radio)?;
        let start = Error::control("start an access point beside the monitor");
        let mut point = AccessPoint::start(&wiphy, config.channel_mhz).map_err(&start)?;
        point.know(task.to).map_err(&start)?;
        let (device, no_device) = match Device::open() {
            Ok(device) => (Some(device), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let monitor = adapter.show_all_sent()?;
        let ordinary = OrdinarySocket::on(point.index(), 0).map_err(Error::packet("open a packet socket"))?;
        let management = Management::open(point.index())?;
        let wait = Error::control("wait for outcomes");
        let any = Waiter::new(Wait::Timerfd).map_err(&wait)?;
        let mut waiters = Vec::new();
        let mut add = |path, descriptor: BorrowedFd<'_>| {
            let waiter = Waiter::new(Wait::Timerfd).map_err(&wait)?;
            waiter
                .add(descriptor)
                .and_then(|()| any.add(descriptor))
                .map_err(&wait)?;
            waiters.push((path, waiter));
            Ok::<(), Error>(())
        };
        add(Path::Monitor, monitor.as_fd())?;
        add(Path::Status, ordinary.as_fd())?;
        add(Path::Nl80211, management.as_fd())?;
        if let Some(device) = &device {
            add(Path::Device, device.as_fd())?;
        }
        Ok(Bench {
            me: adapter.address(),
            task,
            adapter,
            point,
            monitor,
            source: Source::new(0, Shows::Sent),
            ordinary,
            management,
            device,
            no_device,
            waiters,
            any,
            cookie: None,
            told: [None; 4],
        })
    }

    /// Sends one frame and waits for what is told of it; inside, the reason if the kernel does not take it.
    fn shoot(
        &mut self,
        n: u32,
        kind: Kind,
        awaited: Path,
        paths: &[Path],
    ) -> Result<io::Result<Sample>, Error> {
        // what came late of the one before
        for path in paths {
            self.look(*path, kind, u32::MAX);
        }
        (self.told, self.cookie) = ([None; 4], None);
        let begun = now();
        if let Err(why) = self.send(n, kind) {
            return Ok(Err(why));
        }
        let (at, until) = (awaited as usize, begun + PATIENCE);
        let mut latency_ns = None;
        loop {
            self.look(awaited, kind, n);
            let here = now();
            if self.told[at].is_some() {
                latency_ns = Some(here.since(begun).as_ns());
                break;
            }
            if here >= until {
                break;
            }
            self.wait(Some(awaited), until)?;
        }
        // the others, and whether one tells twice
        let until = now() + ECHO;
        while now() < until && !paths.iter().all(|p| self.told[*p as usize].is_some()) {
            for path in paths {
                self.look(*path, kind, n);
            }
            if !paths.iter().all(|p| self.told[*p as usize].is_some()) {
                self.wait(None, until)?;
            }
        }
        for path in paths {
            self.look(*path, kind, n);
        }
        Ok(Ok(Sample {
            kind,
            awaited,
            latency_ns,
            told: self.told,
        }))
    }

    fn wait(&mut self, for_: Option<Path>, until: Instant) -> Result<(), Error> {
        let one = self.waiters.iter_mut().find(|(path, _)| Some(*path) == for_);
        let waiter = one.map_or(&mut self.any, |(_, waiter)| waiter);
        waiter
            .wait(until.as_ns())
            .map_err(Error::control("wait for outcomes"))
    }

    fn send(&mut self, n: u32, kind: Kind) -> io::Result<()> {
        let mut tail = vec![0; self.task.payload - LEAST_PAYLOAD];
        tail.extend(MARK);
        tail.extend(u64::from(n).to_le_bytes());
        match kind {
            Kind::Injected => {
                let mut frame = header(FrameKind::DATA, self.task.to, self.me, n);
                frame.extend(tail);
                let mut packet = vec![0; frame.len() + 64];
                let how = radiotap(self.task.rate, self.task.tries, true);
                let (_, octets) = write(how, &frame, &mut packet).ok_or(io::ErrorKind::InvalidInput)?;
                let sent = self.adapter.send(&packet[..octets], 0);
                sent.map_err(|why| io::Error::other(format!("{why:?}")))
            }
            Kind::Ordinary => {
                let head = [&self.task.to.0[..], &self.point.address.0, &ETHER_TYPE].concat();
                self.ordinary.send(&[head, tail].concat())
            }
            Kind::Management => {
                let mut frame = header(FrameKind::ACTION, self.task.to, self.point.address, n);
                frame.extend(ACTION);
                frame.extend(tail);
                self.cookie = Some(self.management.send(&frame)?);
                Ok(())
            }
        }
    }

    /// Reads all that a path has, and notes what is about frame `n`.
    fn look(&mut self, path: Path, kind: Kind, n: u32) {
        let told = &mut self.told[path as usize];
        let mut note = |new: Told| match told {
            Some(before) => before.again = true,
            None => *told = Some(new),
        };
        let only = |acked| Told {
            acked,
            attempts: None,
            rate: None,
            series: None,
            again: false,
        };
        match path {
            Path::Monitor => loop {
                self.source.fetch(self.monitor.as_fd());
                let Some((_, octets)) = self.source.take() else {
                    return;
                };
                let Some(status) = status(octets).filter(|s| number(s.frame) == Some(n)) else {
                    continue;
                };
                note(Told {
                    attempts: status.attempts,
                    rate: status.rate,
                    ..only(!status.failed)
                });
            },
            Path::Status => {
                let mut frame = [0; 2_048];
                while let Ok(Some(status)) = self.ordinary.status(&mut frame) {
                    if number(&frame[..status.octets.min(frame.len())]) == Some(n) {
                        note(only(status.acked));
                    }
                }
            }
            Path::Nl80211 => {
                let wanted = self.cookie;
                // what it had to leave out is not told, and counts as that
                let _ = self.management.outcomes(|cookie, acked| {
                    if Some(cookie) == wanted {
                        note(only(acked));
                    }
                });
            }
            Path::Device => {
                let Some(device) = &mut self.device else { return };
                let from = if kind == Kind::Injected {
                    self.me
                } else {
                    self.point.address
                };
                // action; data, with QoS or without
                let kinds: &[u8] = if kind == Kind::Management {
                    &[0xd0]
                } else {
                    &[0x08, 0x88]
                };
                while let Ok(Some(record)) = device.next_record() {
                    let ours = record.is_of(self.adapter.wiphy_name())
                        && kinds.contains(&record.head[0])
                        && record.head[4..10] == self.task.to.0
                        && record.head[10..16] == from.0;
                    if ours && n != u32::MAX {
                        note(Told {
                            attempts: Some(record.attempts()),
                            rate: record.series[0].and_then(|s| s.rate()),
                            series: Some(record.series.map(|s| s.map_or(0, |s| s.tries))),
                            ..only(record.acked)
                        });
                    }
                }
            }
        }
    }
}

fn header(kind: FrameKind, to: MacAddr, from: MacAddr, n: u32) -> Vec<u8> {
    let mut m = vec![0; 24];
    m[..2].copy_from_slice(&FrameControl::new(kind, Flags::NONE).0);
    m[4..10].copy_from_slice(&to.0);
    m[10..16].copy_from_slice(&from.0);
    m[16..22].copy_from_slice(&from.0);
    m[22..24].copy_from_slice(&SequenceControl::new((n & 0xfff) as u16, 0).0.to_le_bytes());
    m
}

/// The number at the end of a frame of ours.
fn number(frame: &[u8]) -> Option<u32> {
    let (rest, number) = frame.split_last_chunk::<8>()?;
    let number = rest.ends_with(MARK).then(|| u64::from_le_bytes(*number))?;
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_the_mark_alone() {
        let frame = [b"header confirm:", &7_u64.to_le_bytes()[..]].concat();
        assert_eq!(number(&frame), Some(7));
        for cut in 0..frame.len() {
            assert_eq!(number(&frame[..cut]), None);
        }
    }
}
