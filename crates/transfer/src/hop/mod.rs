//! A Linux computer as a hop of ATP: what `sdmac hop` does. Packets of ATP that leave through an interface are held, their
//! delay is raised to this node's, and they go on.
//!
//! | module | what it is |
//! |---|---|
//! | [`delay`] | where this node's delay comes from |
//! | [`export`] | the delay as a file that any program can read |
//!
//! What a hop does to a packet is [`protocols::transport::hop`]; how packets get here is [`linux::netfilter`].

pub mod delay;
pub mod export;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use linux::netfilter::Queue;
use protocols::transport::hop::{Hop, HopConfig};
use radio::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use delay::DelaySource;
use export::Export;

/// Between two looks at what does not wake the loop, and two writings of the delay.
const LOOK: Duration = Duration::from_ms(100);
const SHOW: Duration = Duration::from_ms(1_000);
/// Batches of packets between two looks at the clock.
const BATCHES: usize = 8;

/// What a hop has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that came, and were let go on. Those that waited here when the rules were taken away (`lapses`) the kernel had dropped by then; they are
    /// counted all the same.
    pub packets: u64,
    /// Of these, packets that were counted and marked with the delay; the others are feedback, fragments, or not ATP.
    pub marked: u64,
    /// Of these, first fragments of packets that were cut before, which cannot be marked.
    pub fragments: u64,
    /// Packets that went on as they were, because this program was too slow.
    pub missed: u64,
    /// Verdicts that the kernel said it did not take: of packets that it had dropped. It does not say so of each.
    pub refused: u64,
    /// How often this program did not run for so long that its rules were taken away, and packets went by uncounted.
    pub lapses: u64,
    /// The node's delay, us; 0 before the first sample.
    pub delay_us: u32,
    /// Samples that the delay rests on.
    pub samples: u64,
}

/// Marks packets until it is stopped, and then leaves the network as it was. `shown` is called once a second.
///
/// # Errors
/// The queue is broken, the interface is gone, the rules cannot be made anew, or the delay cannot be written. Packets flow on as they
/// are then.
pub fn run(
    mut queue: Queue,
    source: &mut dyn DelaySource,
    config: &HopConfig,
    mut export: Option<Export>,
    stop: &AtomicBool,
    mut shown: impl FnMut(&Counts),
) -> io::Result<Counts> {
    let mut hop = Hop::new(config);
    let mut counts = Counts::default();
    let mut show_at = now().after(SHOW);
    // how long it took to get here is no lapse
    queue.keep(now()).map_err(io::Error::other)?;
    while !stop.load(Ordering::Relaxed) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK.as_ns() as _,
        };
        let mut fds = vec![PollFd::from_borrowed_fd(queue.as_fd(), PollFlags::IN)];
        fds.extend(source.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        // a signal ends the wait early, which does no harm
        let _ = poll(&mut fds, Some(&timeout));
        for _ in 0..BATCHES {
            let now = now();
            source.turn(now, &mut hop);
            let taken = queue.turn(|payload| {
                let marked = hop.pass(now, payload);
                // feedback, too: the delay is that of all packets, and feedback waits for the same medium
                source.released(now, payload);
                marked
            })?;
            counts.packets += taken.packets;
            counts.marked += taken.changed;
            counts.fragments += taken.fragments;
            counts.missed += taken.missed;
            counts.refused += taken.refused;
            if taken.packets == 0 {
                break;
            }
        }
        let now = now();
        counts.lapses += u64::from(queue.keep(now).map_err(io::Error::other)?);
        (counts.delay_us, counts.samples) = (hop.delay_us(), source.samples());
        if let Some(export) = &mut export {
            export.show(now, counts.delay_us)?;
        }
        if now >= show_at {
            if !queue.has_interface() {
                let gone = "the interface is gone; start `sdmac hop` again when it is back";
                return Err(io::Error::new(io::ErrorKind::NotFound, gone));
            }
            shown(&counts);
            show_at = now.after(SHOW);
        }
    }
    let last = queue.close()?;
    counts.packets += last.packets;
    counts.fragments += last.fragments;
    counts.missed += last.missed;
    counts.refused += last.refused;
    Ok(counts)
}

/// CLOCK_MONOTONIC, which the stamps of the kernel are compared with.
fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
