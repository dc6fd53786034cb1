//! The flows of a user from here to the same computer: they share a rate ([`Macroflow`]), whatever program each is of.
//!
//! It is kept in a file of some kB for each other computer, in a folder that only its user can read: that of `XDG_RUNTIME_DIR`, or one of /dev/shm or
//! of the folder for temporary files. Each flow reads all of it and writes its own record and the common rate. Nothing is locked: who reads while another one
//! writes finds a sum that is wrong and leaves that record out, and of two changes of the rate at the same time one is lost. A record whose program has ended
//! without a word counts for a few seconds. The last flow removes the file, unless its program is killed. Where none can be had a flow is alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path as FilePath, PathBuf};

use protocols::transport::atp::macroflow::{MOST_FLOWS, Member};
use protocols::transport::atp::{Connection, Macroflow};
use protocols::transport::{Event, Path, Sent, Transport};
use radio::{Duration, Instant};
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};

use crate::memory::Memory;

/// Octets of a record: four numbers of 64 bits, the last of which is a sum of the others.
const RECORD_OCTETS: usize = 32;
/// The first record has the rate, and what the file is.
const FILE_OCTETS: usize = RECORD_OCTETS * (1 + MOST_FLOWS);
/// "sdmacfl1".
const FORM: u64 = u64::from_be_bytes(*b"sdmacfl1");
/// Octets that have arrived of a flow before it has companions.
const SHORT_OCTETS: u64 = 1 << 16;
/// Between two looks.
const LOOK: Duration = Duration::from_ms(1);
/// Packets per second that may be a rate, octets per second that may be a goodput, and how long a record may count: what says anything else was not written by
/// a flow of now.
const RATES: RangeInclusive<f64> = 1e-3..=1e7;
const MOST_GOODPUT: f64 = 1e12;
const COUNTS: Duration = Duration::from_ms(5_000);
/// A record that says the same is written again after so long.
const AGAIN: Duration = Duration::from_ms(250);

type Record = [u64; 3];

fn sum(record: &Record) -> u64 {
    // no cipher: it finds records of which one half is old
    record.iter().fold(FORM, |sum, n| {
        (sum ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    })
}

fn octets(record: &Record) -> [u8; RECORD_OCTETS] {
    let mut octets = [0; RECORD_OCTETS];
    let numbers = record.iter().copied().chain([sum(record)]);
    for (place, number) in octets.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    octets
}

fn record(octets: &[u8]) -> Option<Record> {
    let mut numbers = octets
        .as_chunks::<8>()
        .0
        .iter()
        .map(|number| u64::from_ne_bytes(*number));
    let record = [numbers.next()?, numbers.next()?, numbers.next()?];
    (numbers.next()? == sum(&record)).then_some(record)
}

/// A flow that may have some.
pub type Atp = Connection<Memory, Vec<Sent>>;

/// Those of one flow.
#[derive(Debug)]
pub struct Companions {
    peer: SocketAddr,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The flow has hardly sent anything: most never do, and nothing is written for somebody who only calls.
    Short,
    Among(Box<Shared>),
    /// They cannot be had, or the peer is a program of this computer: what is behind that nobody knows.
    Alone,
}

impl Companions {
    /// Of a flow to `peer`.
    pub fn to(peer: SocketAddr) -> Companions {
        let state = if peer.ip().to_canonical().is_loopback() {
            State::Alone
        } else {
            State::Short
        };
        Companions { peer, state }
    }

    /// Lets the flow handle an event among them.
    pub fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path, flow: &mut Atp) {
        if matches!(self.state, State::Short) && flow.acknowledged_octets() >= SHORT_OCTETS {
            let shared = folder().and_then(|folder| Shared::within(&folder, self.peer));
            self.state = shared.map_or(State::Alone, |shared| State::Among(Box::new(shared)));
        }
        match &mut self.state {
            State::Among(shared) => shared.handle(now, event, path, flow),
            State::Short | State::Alone => flow.handle(now, event, path),
        }
    }
}

/// What is shared, and the record of one flow in it.
#[derive(Debug)]
struct Shared {
    file: File,
    name: PathBuf,
    /// Drawn at random.
    id: u64,
    macroflow: Macroflow,
    /// Where its record is, and what that says.
    own: Option<(usize, Member)>,
    looked_at: Option<Instant>,
}

impl Shared {
    fn within(folder: &FilePath, peer: SocketAddr) -> Option<Shared> {
        // in another network the same address is another computer
        let network = fs::metadata("/proc/self/ns/net").ok()?.ino();
        let scope = match peer {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let address = match peer.ip().to_canonical() {
            IpAddr::V4(v4) => format!("{v4}"),
            IpAddr::V6(v6) => format!("{v6}%{scope}"),
        };
        let name = folder.join(format!("flows-{network}-{address}"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(&name)
            .ok()?;
        file.metadata().ok().filter(fs::Metadata::is_file)?;
        let mut id = [0; 8];
        rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty()).ok()?;
        Some(Shared {
            file,
            name,
            id: u64::from_ne_bytes(id),
            macroflow: Macroflow::default(),
            own: None,
            looked_at: None,
        })
    }

    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path, flow: &mut Atp) {
        if self.looked_at.is_some_and(|at| now.since(at) < LOOK) {
            flow.handle(now, event, path);
            if self.own.is_some() && !flow.shares() {
                self.read(&Clock::at(now));
                flow.leave(self.id, &mut self.macroflow);
                self.give_up();
            }
            return;
        }
        self.looked_at = Some(now);
        let clock = Clock::at(now);
        self.read(&clock);
        let rate = self.macroflow.hz;
        flow.handle_among(now, event, path, self.id, &mut self.macroflow);
        if self.macroflow.hz.to_bits() != rate.to_bits() {
            self.write(0, &[FORM, self.macroflow.hz.to_bits(), 0]);
        }
        self.tell(&clock);
    }

    fn read(&mut self, clock: &Clock) {
        let mut all = [0; FILE_OCTETS];
        let mut had = 0;
        while let Ok(n @ 1..) = self.file.read_at(&mut all[had..], had as u64) {
            had += n;
        }
        let mut records = all[..had].chunks_exact(RECORD_OCTETS).map(record);
        let rate = records.next().flatten().filter(|[form, ..]| *form == FORM);
        let hz = rate.map_or(0.0, |[_, hz, _]| f64::from_bits(hz));
        self.macroflow = Macroflow {
            hz: if RATES.contains(&hz) { hz } else { 0.0 },
            ..Macroflow::default()
        };
        for (place, record) in self.macroflow.members.iter_mut().zip(records) {
            *place = record.and_then(|record| clock.member(&record));
        }
        // another one has taken its place at the same time: it is to take another
        self.own = self.own.filter(|(place, _)| self.is_at(*place));
    }

    fn is_at(&self, place: usize) -> bool {
        self.macroflow.members[place].is_some_and(|m| m.id == self.id)
    }

    /// Its record is no longer there. After a look.
    fn give_up(&mut self) {
        if let Some((place, _)) = self.own.take() {
            self.write(1 + place, &[0; 3]);
        }
    }

    /// Writes its own record, if that is another one now.
    fn tell(&mut self, clock: &Clock) {
        let own = (0..MOST_FLOWS)
            .find(|place| self.is_at(*place))
            .and_then(|place| Some((place, self.macroflow.members[place]?)));
        let Some((place, member)) = own else {
            return self.give_up();
        };
        let is_new = self.own.is_none_or(|(_, old)| {
            let later = member.until.since(old.until);
            member.goodput != old.goodput || later > AGAIN || old.until > member.until
        });
        if is_new {
            self.write(1 + place, &clock.record(&member));
            self.own = own;
        }
    }

    /// What cannot be written the others do not learn.
    fn write(&self, place: usize, record: &Record) {
        let _ = self
            .file
            .write_all_at(&octets(record), (place * RECORD_OCTETS) as u64);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.read(&Clock::at(Instant::ZERO));
        self.give_up();
        let ino = |of: io::Result<fs::Metadata>| of.ok().map(|m| (m.dev(), m.ino()));
        let others = self.macroflow.members.iter().flatten();
        let is_last = others.filter(|m| m.id != self.id).count() == 0;
        // one that comes just now goes on with a file that nobody else finds: it is alone
        if is_last && ino(fs::symlink_metadata(&self.name)) == ino(self.file.metadata()) {
            let _ = fs::remove_file(&self.name);
        }
    }
}

/// The clock of a flow and that of the computer, in ns.
struct Clock {
    own: u64,
    common: u64,
}

impl Clock {
    fn at(now: Instant) -> Clock {
        let time = clock_gettime(ClockId::Monotonic);
        Clock {
            own: now.as_ns(),
            common: (time.tv_sec as u64)
                .saturating_mul(1_000_000_000)
                .saturating_add(time.tv_nsec as u64),
        }
    }

    fn record(&self, member: &Member) -> Record {
        let left = member.until.as_ns().saturating_sub(self.own);
        let goodput = member.goodput.unwrap_or(f64::NAN);
        [member.id, self.common.saturating_add(left), goodput.to_bits()]
    }

    /// `None` of one that is over, or is none.
    fn member(&self, [id, until, goodput]: &Record) -> Option<Member> {
        let left = until
            .checked_sub(self.common)
            .filter(|left| *left <= COUNTS.as_ns())?;
        let goodput = Some(f64::from_bits(*goodput));
        (*id != 0).then(|| Member {
            id: *id,
            until: Instant::from_ns(self.own.saturating_add(left)),
            goodput: goodput.filter(|goodput| (0.0..=MOST_GOODPUT).contains(goodput)),
        })
    }
}

/// That of this user, which nobody else can read or change.
fn folder() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    // somebody who has become another user may still have that of the first
    let is_own = |run: &PathBuf| {
        fs::symlink_metadata(run).is_ok_and(|m| m.is_dir() && m.uid() == user && m.mode() & 0o022 == 0)
    };
    let run = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(is_own);
    let name = format!("sdmac-{user}");
    let memory = PathBuf::from("/dev/shm");
    let places = [memory, std::env::temp_dir()].map(|place| place.join(&name));
    let run = run.map(|run| run.join("sdmac"));
    run.into_iter().chain(places).find_map(own_folder)
}

/// Makes it, if it is not there.
fn own_folder(folder: PathBuf) -> Option<PathBuf> {
    // whether it is there now is what is looked at
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let found = fs::symlink_metadata(&folder).ok()?;
    let is_own =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    is_own.then_some(folder)
}

#[cfg(test)]
mod tests;
