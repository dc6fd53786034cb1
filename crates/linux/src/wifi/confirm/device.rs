//! `/dev/sdmac`, read without waiting; to wait there is poll(2).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use radio::Instant;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::record::{OCTETS, Record, RecordError};
use crate::wifi::desk::now;
use crate::wifi::error::Error;

/// Where the module tells.
const PATH: &str = "/dev/sdmac";
/// Records that are read at once.
const BATCH: usize = 32;

/// The character device, open. Everybody who has it open gets all records of all radios, each in a ring of its own.
#[derive(Debug)]
pub struct Device {
    file: OwnedFd,
    octets: Box<[u8; BATCH * OCTETS]>,
    at: usize,
    end: usize,
}

impl Device {
    /// Opens it.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where the module is not loaded, [`Error::NoPermission`] without CAP_NET_ADMIN,
    /// [`Error::Kernel`] also if 16 others have it open.
    pub fn open() -> Result<Device, Error> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(PATH, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => Error::NoDevice,
            errno => Error::control("open /dev/sdmac")(errno.into()),
        })?;
        Ok(Device {
            file,
            octets: Box::new([0; BATCH * OCTETS]),
            at: 0,
            end: 0,
        })
    }

    /// The next record; `None` if there is none yet. Does not allocate.
    ///
    /// # Errors
    /// As read(2); [`RecordError`] inside an `InvalidData` if the module is of another version.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        if self.at == self.end {
            match rustix::io::retry_on_intr(|| rustix::io::read(&self.file, &mut self.octets[..])) {
                Ok(octets) => (self.at, self.end) = (0, octets),
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
        if self.at == self.end {
            return Ok(None);
        }
        let wrong = |e: RecordError| io::Error::new(io::ErrorKind::InvalidData, e);
        let record = Record::parse(&self.octets[self.at..self.end]).map_err(wrong);
        // of what cannot be read nothing behind it can
        self.at = record.as_ref().map_or(self.end, |_| self.at + OCTETS);
        record.map(Some)
    }
}

impl Device {
    /// Some of what was read is not taken yet: poll(2) does not tell of it.
    fn has_more(&self) -> bool {
        self.at < self.end
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The device with the record that has come and is not told yet.
#[derive(Debug)]
pub(in crate::wifi) struct Records {
    device: Device,
    waiting: Option<(Record, Instant)>,
    lost: u32,
}

impl Records {
    pub fn new(device: Device) -> Records {
        Records {
            device,
            waiting: None,
            lost: 0,
        }
    }

    /// Fetches a record if none is waiting; tells how many were lost before it, and whether one could not be read.
    pub fn fetch(&mut self) -> (u32, bool) {
        if self.waiting.is_some() {
            return (0, false);
        }
        match self.device.next_record() {
            Ok(Some(record)) => {
                self.waiting = Some((record, now()));
                let more = record.lost.wrapping_sub(self.lost);
                self.lost = record.lost;
                (more, false)
            }
            Ok(None) => (0, false),
            Err(_) => (0, true),
        }
    }

    /// Some have been read that [`Records::fetch`] gives without asking the kernel.
    pub fn has_more(&self) -> bool {
        self.device.has_more()
    }

    /// When the record that waits was told by the kernel; when we had it, if it does not say.
    pub fn came(&self) -> Option<Instant> {
        let told = |(record, t9): &(Record, Instant)| {
            let stamps = record.stamps();
            let t8 = stamps.get_host(radio::Plane::T8);
            t8.or_else(|| stamps.get_host(radio::Plane::T7)).unwrap_or(*t9)
        };
        self.waiting.as_ref().map(told)
    }

    /// The record that waits, with t9; it then waits no more.
    pub fn take(&mut self) -> Option<(Record, Instant)> {
        self.waiting.take()
    }
}

impl AsFd for Records {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
