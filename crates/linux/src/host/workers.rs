//! The threads of the loads: each works until told to stop, and counts what it does.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

use super::link::{Frame, Link};
use super::pace::{monotonic_ns, sleep_until};
use super::thread::bind_to;

/// Octets written to the file and synced at a time.
const BLOCK_OCTETS: usize = 1 << 20;
/// Least time from block to block: 256 MiB/s are enough to be a load, without wearing out flash memory.
const BLOCK_NS: u64 = 1_000_000_000 / 256;
/// Computes on one CPU; counts its CPU time in ns.
pub(super) fn compute(cpu: usize, stop: &AtomicBool, cpu_ns: &AtomicU64) -> io::Result<()> {
    bind_to(cpu)?;
    let mut state = 1_u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..10_000 {
            state = std::hint::black_box(state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1));
        }
        let used = clock_gettime(ClockId::ThreadCPUTime);
        cpu_ns.store(
            used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64,
            Ordering::Relaxed,
        );
    }
    Ok(())
}

/// Writes the file round and round, each block synced; counts octets.
pub(super) fn write_and_sync(
    file: &File,
    file_octets: u64,
    stop: &AtomicBool,
    written: &AtomicU64,
) -> io::Result<()> {
    // Not compressible, so that no file system gets it for free.
    let mut state = 1_u64;
    let mut block: Vec<u8> = Vec::with_capacity(BLOCK_OCTETS);
    while block.len() < BLOCK_OCTETS {
        state = state
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        block.extend((state >> 32).to_le_bytes());
    }
    let (mut due_ns, mut offset) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        sleep_until(due_ns);
        due_ns = monotonic_ns() + BLOCK_NS;
        file.write_all_at(&block, offset)?;
        file.sync_all()?;
        written.fetch_add(BLOCK_OCTETS as u64, Ordering::Relaxed);
        offset += BLOCK_OCTETS as u64;
        if offset + BLOCK_OCTETS as u64 > file_octets {
            offset = 0;
        }
    }
    Ok(())
}

/// Sends frames from one CPU as fast as it can; counts them.
pub(super) fn flood(cpu: usize, link: &Link, stop: &AtomicBool, sent: &AtomicU64) -> io::Result<()> {
    bind_to(cpu)?;
    let mut frame = Frame::new(100);
    let octets = frame.numbered(0, 0);
    while !stop.load(Ordering::Relaxed) {
        if link.send(octets)? {
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Is woken by a timer in every period, on one CPU, and sleeps again; counts the wake-ups.
pub(super) fn wake_and_sleep(
    cpu: usize,
    period_ns: u64,
    stop: &AtomicBool,
    woken: &AtomicU64,
) -> io::Result<()> {
    bind_to(cpu)?;
    set_current_timer_slack(NonZeroU64::new(1))?;
    let mut due_ns = monotonic_ns();
    while !stop.load(Ordering::Relaxed) {
        // What was missed is not made up for: ten threads that catch up would be a load of another kind.
        due_ns = (due_ns + period_ns).max(monotonic_ns());
        sleep_until(due_ns);
        woken.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Receives frames; counts them.
pub(super) fn drain_frames(link: &Link, stop: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    let mut buffer = [0; 128];
    while !stop.load(Ordering::Relaxed) {
        match link.receive(&mut buffer) {
            Ok(_) => {
                received.fetch_add(1, Ordering::Relaxed);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The file system of a folder: its name if it is common (linux/magic.h), else its number.
pub(super) fn file_system(folder: &Path) -> String {
    let Ok(found) = File::open(folder).and_then(|file| Ok(rustix::fs::fstatfs(file.as_fd())?)) else {
        return "unknown".into();
    };
    match found.f_type as u32 {
        0x0000_EF53 => "ext4".into(),
        0x0102_1994 => "tmpfs".into(),
        0x5846_5342 => "xfs".into(),
        0x9123_683E => "btrfs".into(),
        0xF2F5_2010 => "f2fs".into(),
        0x794C_7630 => "overlay".into(),
        0x2FC1_2FC1 => "zfs".into(),
        0x0000_6969 => "nfs".into(),
        number => format!("{number:#x}"),
    }
}
