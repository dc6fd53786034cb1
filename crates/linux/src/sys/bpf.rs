//! bpf(2), as far as probes at functions need it: small programs, a ring that they write to, and their links. Whatever is
//! made here is gone when its descriptor is closed, however the process ends.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Octets of `union bpf_attr` that are used here, and more; the rest is 0.
const ATTRIBUTES: usize = 128;

/// Commands (linux/bpf.h).
const MAP_CREATE: libc::c_int = 0;
const PROG_LOAD: libc::c_int = 5;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BTF_GET_FD_BY_ID: libc::c_int = 19;
const BTF_GET_NEXT_ID: libc::c_int = 23;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_RINGBUF: u32 = 27;
const MAP_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_TRACING: u32 = 26;
const TRACE_FENTRY: u32 = 24;
const TRACE_FEXIT: u32 = 25;

/// The arguments of one call.
struct Arguments([u64; ATTRIBUTES / 8]);

impl Arguments {
    fn new() -> Arguments {
        Arguments([0; ATTRIBUTES / 8])
    }

    /// A number of four octets at an offset that is a multiple of four.
    fn word(mut self, offset: usize, value: u32) -> Arguments {
        let shift = if offset.is_multiple_of(8) == cfg!(target_endian = "little") {
            0
        } else {
            32
        };
        self.0[offset / 8] |= u64::from(value) << shift;
        self
    }

    /// A number or an address of eight octets.
    fn long(mut self, offset: usize, value: u64) -> Arguments {
        self.0[offset / 8] = value;
        self
    }

    /// # Safety
    /// Every address in it must be good for what the command does with it.
    unsafe fn call(&mut self, command: libc::c_int) -> io::Result<i32> {
        // SAFETY: the octets live and are as many as is said; the addresses in them are the caller's affair.
        let done = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), ATTRIBUTES) };
        match done {
            0.. => Ok(done as i32),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// # Safety
    /// As [`call`](Arguments::call), for a command that gives a new descriptor.
    unsafe fn open(&mut self, command: libc::c_int) -> io::Result<OwnedFd> {
        // SAFETY: as promised by the caller; the descriptor is new, and nobody else has it.
        unsafe { Ok(OwnedFd::from_raw_fd(self.call(command)?)) }
    }
}

/// One instruction of the kernel's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// The type information of a module, loaded; `None` if the kernel has none of that name.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN.
pub fn types_of(module: &str) -> io::Result<Option<OwnedFd>> {
    let mut id = 0;
    loop {
        let mut next = Arguments::new().word(0, id);
        // SAFETY: no address is in it; the kernel writes a number into it.
        match unsafe { next.call(BTF_GET_NEXT_ID) } {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            Err(error) => return Err(error),
        }
        // The next number stands in the second word.
        id = if cfg!(target_endian = "little") {
            (next.0[0] >> 32) as u32
        } else {
            next.0[0] as u32
        };
        // SAFETY: no address is in it.
        let Ok(types) = (unsafe { Arguments::new().word(0, id).open(BTF_GET_FD_BY_ID) }) else {
            continue; // It has gone meanwhile.
        };
        // struct bpf_btf_info: address and size of the types, number, address and size of the name, the kernel's own.
        let mut name = [0_u8; 64];
        let mut info = [0_u64, 0, name.as_mut_ptr() as u64, name.len() as u64];
        let mut ask = Arguments::new()
            .word(0, types.as_raw_fd() as u32)
            .word(4, size_of_val(&info) as u32)
            .long(8, info.as_mut_ptr() as u64);
        // SAFETY: `info` and `name` live and are as long as they say, and the kernel writes to them and to nothing else.
        let told = unsafe { ask.call(OBJ_GET_INFO_BY_FD) };
        let is_kernels = if cfg!(target_endian = "little") {
            info[3] >> 32 != 0
        } else {
            info[3] as u32 != 0
        };
        let end = name.iter().position(|c| *c == 0).unwrap_or(name.len());
        if told.is_ok() && is_kernels && &name[..end] == module.as_bytes() {
            return Ok(Some(types));
        }
    }
}

/// A counter that programs add to and that is read without a system call.
#[derive(Debug)]
pub struct Counter {
    map: OwnedFd,
    page: Mapping,
}

impl Counter {
    /// A new one, at 0.
    ///
    /// # Errors
    /// `EPERM` without CAP_BPF; as bpf(2).
    pub fn new() -> io::Result<Counter> {
        let mut new = Arguments::new()
            .word(0, MAP_TYPE_ARRAY)
            .word(4, 4)
            .word(8, 8)
            .word(12, 1)
            .word(16, MAP_MMAPABLE);
        // SAFETY: no address is in it.
        let map = unsafe { new.open(MAP_CREATE) }?;
        let page = Mapping::new(&map, ProtFlags::READ | ProtFlags::WRITE, page_size(), 0)?;
        Ok(Counter { map, page })
    }

    /// What it has come to.
    pub fn value(&self) -> u64 {
        self.page.long(0).load(Ordering::Relaxed)
    }
}

/// What a program writes about each call of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Call {
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// The argument that was asked for, or 0.
    pub argument: u64,
    /// Which thread was running; an interrupt runs on top of any.
    pub thread: u32,
    /// Which CPU.
    pub cpu: u32,
    /// What the program was told to write.
    pub mark: u32,
}

/// Octets of a [`Call`] in the ring.
const CALL_OCTETS: usize = 32;

/// A ring that programs of all CPUs write to, in the order in which they take their places.
#[derive(Debug)]
pub struct CallRing {
    map: OwnedFd,
    ours: Mapping,
    theirs: Mapping,
    size: usize,
    next: u64,
}

fn page_size() -> usize {
    rustix::param::page_size()
}

impl CallRing {
    /// A new one. `pages` is a power of two.
    ///
    /// # Errors
    /// `EPERM` without CAP_BPF; `EINVAL` on kernels without rings (before 5.8).
    pub fn new(pages: usize) -> io::Result<CallRing> {
        let size = pages * page_size();
        let mut new = Arguments::new().word(0, MAP_TYPE_RINGBUF).word(12, size as u32);
        // SAFETY: no address is in it.
        let map = unsafe { new.open(MAP_CREATE) }?;
        let ours = Mapping::new(&map, ProtFlags::READ | ProtFlags::WRITE, page_size(), 0)?;
        // The entries are mapped twice, one after the other, so that none is cut.
        let theirs = Mapping::new(&map, ProtFlags::READ, page_size() + 2 * size, page_size() as u64)?;
        // Touched now, and not on the way of a frame.
        for page in 0..=2 * pages {
            std::hint::black_box(theirs.long(page * page_size()).load(Ordering::Relaxed));
        }
        Ok(CallRing {
            map,
            ours,
            theirs,
            size,
            next: 0,
        })
    }

    /// The oldest call that was not told yet; `None` if there is none, or its program is not done with it.
    pub fn next(&mut self) -> Option<Call> {
        const BUSY: u32 = 1 << 31;
        const DISCARDED: u32 = 1 << 30;
        loop {
            if self.next >= self.theirs.long(0).load(Ordering::Acquire) {
                return None;
            }
            let at = page_size() + (self.next as usize & (self.size - 1));
            let head = self.theirs.word(at).load(Ordering::Acquire);
            if head & BUSY != 0 {
                return None;
            }
            let octets = (head & !DISCARDED) as usize;
            let word = |n: usize| self.theirs.word(at + 8 + 4 * n).load(Ordering::Relaxed);
            let long = |n: usize| self.theirs.long(at + 8 + 8 * n).load(Ordering::Relaxed);
            let call = (octets == CALL_OCTETS && head & DISCARDED == 0).then(|| Call {
                time_ns: long(0),
                argument: long(1),
                thread: word(4),
                cpu: word(6),
                mark: word(7),
            });
            self.next += (octets as u64 + 8).next_multiple_of(8);
            self.ours.long(0).store(self.next, Ordering::Release);
            if call.is_some() {
                return call;
            }
        }
    }
}

/// Pages shared with the kernel.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    octets: usize,
}

// SAFETY: the mapping belongs to this value alone, and nothing about it belongs to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(map: &OwnedFd, protection: ProtFlags, octets: usize, offset: u64) -> io::Result<Mapping> {
        // SAFETY: a new mapping at a place of the kernel's choice; nothing of ours is there.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                octets,
                protection,
                MapFlags::SHARED,
                map,
                offset,
            )
        }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, octets })
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.octets);
        // SAFETY: within the mapping, which lives as long as `self`, and aligned; what both sides use is used as an atomic
        // or not before the other side has let go of it.
        unsafe { self.start.cast::<u8>().add(offset).cast::<AtomicU64>().as_ref() }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.octets);
        // SAFETY: as above.
        unsafe { self.start.cast::<u8>().add(offset).cast::<AtomicU32>().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, as long as it was made, and nobody has a reference into it.
        let _ = unsafe { munmap(self.start.as_ptr(), self.octets) };
    }
}

/// Where a program is to be.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The module's types; `None`: those of the kernel itself.
    pub types: Option<BorrowedFd<'a>>,
    /// The function's number among the types.
    pub function: u32,
    /// When it returns, and not when it is called.
    pub at_return: bool,
}

/// Puts a program at a function: it writes a [`Call`] with this mark and this argument of the function into the ring, or
/// counts one in `lost`. It is there until the link is dropped.
///
/// # Errors
/// `EPERM` without CAP_BPF and CAP_PERFMON; `EINVAL` for functions that cannot have such programs; as bpf(2).
pub fn attach(
    target: Target<'_>,
    argument: Option<usize>,
    mark: u32,
    ring: &CallRing,
    lost: &Counter,
) -> io::Result<OwnedFd> {
    let program = program(argument, mark, ring.map.as_raw_fd(), lost.map.as_raw_fd());
    // One of those that the kernel takes as free enough for all of its functions.
    let license = c"Dual MIT/GPL";
    let mut load = Arguments::new()
        .word(0, PROG_TYPE_TRACING)
        .word(4, program.len() as u32)
        .long(8, program.as_ptr() as u64)
        .long(16, license.as_ptr() as u64)
        .word(
            68,
            if target.at_return {
                TRACE_FEXIT
            } else {
                TRACE_FENTRY
            },
        )
        .word(108, target.function)
        .word(112, target.types.map_or(0, |fd| fd.as_raw_fd() as u32));
    // SAFETY: program and license live, and are as long as is said; the kernel reads both and keeps neither.
    let program = unsafe { load.open(PROG_LOAD) }?;
    let mut open = Arguments::new().word(8, program.as_fd().as_raw_fd() as u32);
    // SAFETY: no address is in it but that of the name, which is 0 for such programs.
    unsafe { open.open(RAW_TRACEPOINT_OPEN) }
}

/// The program, by hand. R6 is the argument, R7 the time, R8 the place in the ring.
fn program(argument: Option<usize>, mark: u32, ring: i32, lost: i32) -> Vec<Instruction> {
    let op = |code: u8, to: u8, from: u8, offset: i16, value: i32| Instruction {
        code,
        registers: if cfg!(target_endian = "little") {
            from << 4 | to
        } else {
            to << 4 | from
        },
        offset,
        value,
    };
    let call = |function: i32| op(0x85, 0, 0, 0, function);
    let set = |to: u8, value: i32| op(0xb7, to, 0, 0, value);
    let copy = |to: u8, from: u8| op(0xbf, to, from, 0, 0);
    let store = |offset: i16, from: u8| op(0x7b, 8, from, offset, 0);
    let store_word = |offset: i16, from: u8| op(0x63, 8, from, offset, 0);
    let nothing = op(0, 0, 0, 0, 0); // The second half of a number of 64 bits.
    vec![
        match argument {
            Some(n) => op(0x79, 6, 1, 8 * n as i16, 0), // R1 has the arguments.
            None => set(6, 0),
        },
        call(5), // ktime_get_ns
        copy(7, 0),
        op(0x18, 1, 1, 0, ring),
        nothing,
        set(2, CALL_OCTETS as i32),
        set(3, 0),
        call(131),            // ringbuf_reserve
        op(0x55, 0, 0, 6, 0), // if there is room, go on below
        op(0x18, 1, 2, 0, lost),
        nothing,
        set(2, 1),
        op(0xdb, 1, 2, 0, 0), // add, atomically
        set(0, 0),
        op(0x95, 0, 0, 0, 0),
        copy(8, 0),
        store(0, 7),
        store(8, 6),
        call(14), // get_current_pid_tgid: the thread is the lower half
        store(16, 0),
        call(8), // get_smp_processor_id
        store_word(24, 0),
        op(0x62, 8, 0, 28, mark as i32),
        copy(1, 8),
        set(2, 1), // wake nobody up
        call(132), // ringbuf_submit
        set(0, 0),
        op(0x95, 0, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_as_the_kernel_has_them() {
        assert_eq!(size_of::<Instruction>(), 8);
        let all = program(Some(2), 7, 5, 6);
        let jump = all.iter().position(|i| i.code == 0x55).unwrap();
        // Where it goes, the ring's place is kept: the call's result.
        let target = &all[jump + 1 + all[jump].offset as usize];
        assert_eq!((target.code, target.registers), (0xbf, 0x08));
        assert_eq!(all[0].offset, 16);
        assert_eq!(all.last().unwrap().code, 0x95);
    }

    #[test]
    fn words_and_longs_have_their_places() {
        let a = Arguments::new().word(0, 1).word(4, 2).long(8, 3).word(68, 4);
        let octets: Vec<u8> = a.0.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let word = |n: usize| u32::from_ne_bytes(*octets[n..].first_chunk().unwrap());
        assert_eq!((word(0), word(4), word(68)), (1, 2, 4));
        assert_eq!(u64::from_ne_bytes(*octets[8..].first_chunk().unwrap()), 3);
    }
}
