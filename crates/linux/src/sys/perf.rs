//! perf_event_open(2), as far as kernel probes need it: a probe lives as long as its descriptor, and what it sees is
//! written to a ring that is shared with the kernel.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// `struct perf_event_attr` up to version 5 (linux/perf_event.h); what is not named is 0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// `PERF_SAMPLE_TID`, `_TIME`, `_IDENTIFIER`, `_REGS_INTR`.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 16 | 1 << 18;
/// `use_clockid`.
const USE_CLOCKID: u64 = 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_SET_OUTPUT` and `PERF_EVENT_IOC_ID`.
const SET_OUTPUT: libc::Ioctl = 0x2405;
const ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;

/// Registers of the first three arguments of a function, as bits of the kernel's numbering, and where they stand among
/// the values of a sample (asm/perf_regs.h). `None` where this is not known.
const ARGUMENTS: Option<(u64, [usize; 3])> = if cfg!(target_arch = "x86_64") {
    Some((1 << 3 | 1 << 4 | 1 << 5, [2, 1, 0])) // DX, SI, DI
} else if cfg!(target_arch = "aarch64") {
    Some((0b111, [0, 1, 2])) // X0, X1, X2
} else {
    None
};

/// Puts a probe at the first instruction of a function of the kernel or of a module, or at its return, for one CPU.
/// `kind` is the number of the kernel's source of events called `kprobe`. Its samples have [`Sample`]s.
///
/// # Errors
/// `EACCES` or `EPERM` without CAP_PERFMON; `ENOENT`, `EINVAL` or `EADDRNOTAVAIL` if there is no such function, or none
/// that can be probed; `EMFILE`; `Unsupported` on processors whose registers are not known here.
pub fn open_probe(kind: u32, function: &CStr, at_return: bool, cpu: usize) -> io::Result<OwnedFd> {
    let (registers, _) = ARGUMENTS.ok_or(io::ErrorKind::Unsupported)?;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config: at_return.into(),
        config1: function.as_ptr() as u64,
        sample_period: 1,
        sample_type: SAMPLE,
        flags: USE_CLOCKID,
        clockid: libc::CLOCK_MONOTONIC,
        sample_regs_intr: registers,
        ..Attributes::default()
    };
    let cpu = cpu as libc::c_int;
    // SAFETY: `attributes` lives and is as long as it says, and so does the name that it points to; the kernel reads both
    // and keeps neither.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1,
            cpu,
            -1,
            CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The number by which samples of a probe are told.
///
/// # Errors
/// As ioctl(2).
pub fn identity(probe: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0_u64;
    // SAFETY: the kernel writes eight octets to the live `id`.
    match unsafe { libc::ioctl(probe.as_raw_fd(), ID, &raw mut id) } {
        0 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What a probe saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Which probe.
    pub id: u64,
    /// Which thread was running; an interrupt runs on top of any.
    pub thread: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// The first three arguments of the function; at a return whatever the registers hold.
    pub arguments: [u64; 3],
}

/// One entry of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// See there.
    Sample(Sample),
    /// So many samples found no room.
    Lost(u64),
}

/// Octets of the longest entry that is of interest.
const ENTRY_OCTETS: usize = 64;
/// Where the kernel has its place in the ring, and where ours is to be written (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The ring of all probes of one CPU.
#[derive(Debug)]
pub struct Ring {
    /// One page of places, then the entries.
    start: NonNull<c_void>,
    page: usize,
    /// Octets of the entries, a power of two.
    size: usize,
    tail: u64,
    _owner: OwnedFd,
}

// SAFETY: the mapping belongs to this value alone, and nothing about it belongs to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes the ring of a probe. `pages` is a power of two.
    ///
    /// # Errors
    /// `EPERM` when it is more locked memory than the user may have.
    pub fn new(probe: OwnedFd, pages: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        let size = pages * page;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice; nothing of ours is there.
        let start = unsafe { mmap(std::ptr::null_mut(), page + size, protection, flags, &probe, 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = Ring {
            start,
            page,
            size,
            tail: 0,
            _owner: probe,
        };
        // Locked memory or not, such pages are mapped when they are touched: now, and not on the way of a frame.
        ring.place(TAIL).store(0, Ordering::Release);
        let mut octet = [0];
        for page in 0..pages {
            ring.copy(page as u64 * ring.page as u64, &mut octet);
            std::hint::black_box(octet);
        }
        Ok(ring)
    }

    /// Lets another probe of the same CPU write to this ring.
    ///
    /// # Errors
    /// As ioctl(2).
    pub fn share(&self, probe: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: both are descriptors that live; the kernel writes nothing.
        match unsafe { libc::ioctl(probe.as_raw_fd(), SET_OUTPUT, self._owner.as_fd().as_raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn place(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self` lives, both offsets are multiples of eight within it, and
        // both sides use these words as atomics only.
        unsafe { self.start.cast::<u8>().add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// The oldest entry that was not told yet; `None` if there is none. Others than samples and losses are skipped.
    pub fn next(&mut self) -> Option<Entry> {
        loop {
            let head = self.place(HEAD).load(Ordering::Acquire);
            if self.tail >= head {
                return None;
            }
            let mut octets = [0; ENTRY_OCTETS];
            self.copy(self.tail, &mut octets[..8]);
            let size = u16::from_le_bytes([octets[6], octets[7]]);
            let kind = u32::from_le_bytes([octets[0], octets[1], octets[2], octets[3]]);
            if usize::from(size) <= ENTRY_OCTETS {
                self.copy(self.tail, &mut octets[..size.into()]);
            }
            self.tail = if size < 8 {
                head
            } else {
                self.tail + u64::from(size)
            };
            self.place(TAIL).store(self.tail, Ordering::Release);
            let entry = entry(kind, &octets[..usize::from(size).min(ENTRY_OCTETS)]);
            if entry.is_some() {
                return entry;
            }
        }
    }

    /// Octets from a place on.
    fn copy(&self, from: u64, to: &mut [u8]) {
        let at = from as usize & (self.size - 1);
        let first = to.len().min(self.size - at);
        // SAFETY: `at` is within the entries, and `first` octets from there are, too; the rest goes on at their start.
        // What is used of it lies between our place and the kernel's, where it writes nothing before we have moved ours.
        unsafe {
            let entries = self.start.cast::<u8>().add(self.page);
            entries
                .add(at)
                .copy_to_nonoverlapping(NonNull::from(&mut *to).cast(), first);
            let rest = NonNull::from(&mut to[first..]).cast();
            entries.copy_to_nonoverlapping(rest, to.len() - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, as long as it was made, and nobody has a reference into it.
        let _ = unsafe { munmap(self.start.as_ptr(), self.page + self.size) };
    }
}

/// Reads an entry with its header.
fn entry(kind: u32, octets: &[u8]) -> Option<Entry> {
    const LOST: u32 = 2;
    const SAMPLE: u32 = 9;
    let word = |n: usize| Some(u64::from_ne_bytes(*octets.get(8 + 8 * n..)?.first_chunk()?));
    match kind {
        LOST => Some(Entry::Lost(word(1)?)),
        SAMPLE => {
            let (_, places) = ARGUMENTS?;
            // Identifier, process and thread, time, whether there are registers, registers.
            let argument = |n: usize| word(4 + places[n]).unwrap_or(0);
            Some(Entry::Sample(Sample {
                id: word(0)?,
                thread: u32::from_ne_bytes(*octets.get(20..)?.first_chunk()?),
                time_ns: word(2)?,
                arguments: [argument(0), argument(1), argument(2)],
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    #[test]
    fn entries_are_read_and_short_ones_are_none() {
        let sample = octets(&[0, 77, 5 | 6 << 32, 1_000, 2, 10, 11, 12]);
        let Some(Entry::Sample(s)) = entry(9, &sample) else {
            assert!(ARGUMENTS.is_none());
            return;
        };
        assert_eq!((s.id, s.thread, s.time_ns), (77, 6, 1_000));
        let expect = if cfg!(target_arch = "x86_64") {
            [12, 11, 10]
        } else {
            [10, 11, 12]
        };
        assert_eq!(s.arguments, expect);
        assert_eq!(entry(2, &octets(&[0, 1, 42])), Some(Entry::Lost(42)));
        for end in 0..32 {
            assert_eq!(entry(9, &sample[..end]), None);
        }
        assert_eq!(entry(1, &sample), None);
    }

    #[test]
    fn the_kernel_knows_the_attributes() {
        assert_eq!(size_of::<Attributes>(), 112); // PERF_ATTR_SIZE_VER5
        let error = open_probe(u32::MAX, c"nothing", false, 0).unwrap_err();
        // E2BIG would mean another layout.
        assert_ne!(error.raw_os_error(), Some(libc::E2BIG));
    }
}
