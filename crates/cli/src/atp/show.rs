//! How transfers are shown: to people while they go on and when they have ended, and to machines.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::json;
use transfer::Progress;
use transfer::call::Feedback;

use crate::ui::{self, Failure, Ui};

/// Which end this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Sends,
    Receives,
}

impl End {
    /// Packets that were in vain, as this end knows them.
    fn again(self, p: &Progress) -> String {
        match self {
            End::Sends => format!(", {} packets repeated", p.resent),
            End::Receives => p
                .repeated
                .map_or(String::new(), |n| format!(", {n} packets came twice")),
        }
    }
}

/// One sentence on a transfer that went well.
pub(super) fn summary(end: End, name: &str, p: &Progress, seconds: f64) -> String {
    let new = p.done - p.resumed.min(p.done);
    let what = match end {
        End::Sends => "sent",
        End::Receives => "received",
    };
    let resumed = match p.resumed {
        0 => String::new(),
        n => format!(", {} of them were there before", octets(n)),
    };
    format!(
        "{what} {name}: {}{resumed}, {:.2} s, {:.2} Mb/s{}",
        octets(p.done),
        seconds,
        new as f64 * 8.0 / 1e6 / seconds.max(1e-6),
        end.again(p)
    )
}

/// A transfer for machines. What this end does not know of it is null.
pub(super) fn document(
    end: End,
    name: &str,
    p: &Progress,
    seconds: f64,
    failed: Option<&str>,
) -> serde_json::Value {
    let mut document = json!({
        "name": name,
        "octets": p.done,
        "resumed_octets": p.resumed,
        "seconds": seconds,
        "delay_us": known(p.delay_us),
        "spacing_us": known(p.spacing_us),
        "packet_octets": known(p.packet_octets.into()),
        "failed": failed,
    });
    match end {
        End::Sends => document["resent"] = p.resent.into(),
        End::Receives => document["repeated"] = p.repeated.into(),
    }
    document
}

/// A number that is 0 while nobody knows it.
fn known(n: u32) -> Option<u32> {
    (n > 0).then_some(n)
}

/// Octets as people read them.
fn octets(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} octets"),
        10_000..10_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.2} GB", n as f64 / 1e9),
    }
}

/// So far back the live line looks to say how fast it goes; with a step of the ring, two seconds.
const RECENT: Duration = Duration::from_millis(1_900);
/// Between two samples of it.
const STEP: Duration = Duration::from_millis(90);

/// What had come when, lately. It begins with nothing at the start.
#[derive(Default)]
struct Recent {
    ring: [(Duration, u64); 24],
    newest: usize,
}

impl Recent {
    /// Octets each second over the last two seconds, or since the start where that is less, with so many of them `now`, after the start.
    fn rate(&mut self, now: Duration, octets: u64) -> f64 {
        let n = self.ring.len();
        let mut back = (0..n).map(|i| self.ring[(self.newest + n - i) % n]);
        let is_old = |(at, _): &(Duration, u64)| now.saturating_sub(*at) >= RECENT;
        let oldest = self.ring[(self.newest + 1) % n];
        let (at, had) = back.find(is_old).unwrap_or(oldest);
        let seconds = now.saturating_sub(at).as_secs_f64();
        if now.saturating_sub(self.ring[self.newest].0) >= STEP {
            self.newest = (self.newest + 1) % n;
            self.ring[self.newest] = (now, octets);
        }
        octets.saturating_sub(had) as f64 / seconds.max(1e-3)
    }
}

/// The live line: how much, how fast at the moment, D and the rate of the transport.
pub(super) struct Line {
    bar: crate::ui::Live,
    end: End,
    /// Of each transfer that goes on, by who sends it.
    recent: BTreeMap<Option<SocketAddr>, Recent>,
}

impl Line {
    pub fn new(ui: &Ui, end: End) -> Line {
        let bar = ui.live();
        let recent = BTreeMap::new();
        Line { bar, end, recent }
    }

    /// `peer`: who sends it, where several may; `seconds` since it began.
    pub fn show(&mut self, peer: Option<SocketAddr>, name: &str, seconds: f64, p: &Progress) {
        let now = Duration::from_secs_f64(seconds);
        let new = p.done - p.resumed.min(p.done);
        let of = p
            .total
            .map_or(String::new(), |total| format!(" of {}", octets(total)));
        let d = match (p.delay_us, p.spacing_us) {
            (0, 0) => String::new(),
            (0, s) => format!(", a packet of {} every {s} us", p.packet_octets),
            (d, 0) => format!(", D {d} us"),
            (d, s) => format!(", D {d} us, a packet of {} every {s} us", p.packet_octets),
        };
        self.bar.set(&format!(
            "{name}: {}{of}, {:.2} Mb/s{d}{}",
            octets(p.done),
            self.recent.entry(peer).or_default().rate(now, new) * 8.0 / 1e6,
            self.end.again(p)
        ));
    }

    pub fn clear(&self) {
        self.bar.clear();
    }

    /// What this one sends has ended.
    pub fn ended(&mut self, peer: SocketAddr) {
        self.recent.remove(&Some(peer));
        self.clear();
    }
}

/// Within so long of the last one, a connection that ended alike has no line of its own.
const ALIKE: Duration = Duration::from_secs(1);

/// Connections that ended early: when a path goes, all of them do at once.
#[derive(Default)]
pub(super) struct Alike {
    last: Option<(String, Instant)>,
    unsaid: u64,
}

impl Alike {
    /// What is said of one more, if anything. Those are alike whose `why` is the same.
    pub fn told(&mut self, now: Instant, why: String, sentence: String) -> Option<String> {
        let is_alike = |(last, at): &(String, Instant)| *last == why && now < *at + ALIKE;
        let unsaid = self.last.as_ref().is_some_and(is_alike);
        self.last = Some((why, now));
        if unsaid {
            self.unsaid += 1;
            return None;
        }
        Some(match std::mem::take(&mut self.unsaid) {
            0 => sentence,
            n => format!("{sentence} ({n} more ended as the one before)"),
        })
    }
}

/// The file of `--trace`.
pub(super) struct Trace {
    path: PathBuf,
    file: BufWriter<File>,
    begun: bool,
    /// Why something could not be written.
    failed: Option<io::Error>,
}

impl Trace {
    /// For what is sent from the file `sent`. What is in its place stays until there is something to write.
    pub fn create(path: &Path, sent: &Path, stop: &AtomicBool) -> Result<Trace, Failure> {
        let wrong = |why: String| Failure::input(format!("--trace {}: {why}", path.display()));
        let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        if let (Ok(a), Ok(b)) = (path.metadata(), sent.metadata())
            && same(a, b)
        {
            return Err(wrong(
                "this is the file that is to be sent: name another one".to_owned(),
            ));
        }
        let mut options = OpenOptions::new();
        let file = ui::open(options.write(true).create(true).truncate(false), path, stop);
        Ok(Trace {
            path: path.to_owned(),
            file: BufWriter::new(
                file.map_err(|e| Failure::opening(format!("--trace {}", path.display()), &e))?,
            ),
            begun: false,
            failed: None,
        })
    }

    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            // a pipe has no length
            let _ = self.file.get_ref().set_len(0);
            self.line("seconds,delay_us,spacing_us,hops,resent");
        }
    }

    pub fn add(&mut self, f: &Feedback) {
        self.begin();
        let seconds = f.after.as_ns() as f64 / 1e9;
        self.line(&format!(
            "{seconds:.6},{},{},{},{}",
            f.delay_us, f.spacing_us, f.hops, f.resent
        ));
    }

    fn line(&mut self, text: &str) {
        // the first that goes wrong is told in the end: the transfer goes on
        if self.failed.is_none() {
            self.failed = writeln!(self.file, "{text}").err();
        }
    }

    /// The transfer is over.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.begin();
        let failed = self.failed.take().or(self.file.flush().err());
        failed.map_or(Ok(()), |e| {
            Err(Failure::on_the_way(format!(
                "{}: {e}; the transfer is not concerned",
                self.path.display()
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_a_row_for_each_feedback() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let path = folder.path().join("trace.csv");
        let sent = folder.path().join("sent");
        std::fs::write(&sent, "content").unwrap();
        std::fs::write(&path, "of another transfer, which was longer than this one").unwrap();
        let mut trace = Trace::create(&path, &sent, &stop).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("of another"));
        trace.add(&Feedback {
            after: radio::Duration::from_us(1_234_567),
            delay_us: 2_000,
            hops: 3,
            spacing_us: 2_500,
            resent: 7,
        });
        trace.flush().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "seconds,delay_us,spacing_us,hops,resent\n1.234567,2000,2500,3,7\n"
        );
        assert!(Trace::create(folder.path(), &sent, &stop).is_err(), "a folder");
        assert!(Trace::create(&sent, &sent, &stop).is_err());
        assert_eq!(std::fs::read_to_string(&sent).unwrap(), "content");
        // a disk that is full
        let mut trace = Trace::create(Path::new("/dev/full"), &sent, &stop).unwrap();
        assert!(trace.flush().is_err());
    }

    #[test]
    fn what_nobody_knows_is_null() {
        let nothing = Progress::default();
        let told = Progress {
            delay_us: 1,
            spacing_us: 2,
            packet_octets: 3,
            ..nothing
        };
        for end in [End::Sends, End::Receives] {
            for (p, expected) in [(nothing, [None; 3]), (told, [Some(1), Some(2), Some(3)])] {
                let document = document(end, "x", &p, 0.0, None);
                let said = ["delay_us", "spacing_us", "packet_octets"].map(|key| document[key].as_u64());
                assert_eq!(said, expected, "{document}");
            }
        }
    }

    #[test]
    fn many_that_end_at_once_are_one_line() {
        let now = Instant::now();
        let mut alike = Alike::default();
        let mut told = |ms, why: &str| {
            let now = now + Duration::from_millis(ms);
            alike.told(now, why.to_owned(), format!("connection: {why}"))
        };
        assert_eq!(told(0, "silent").unwrap(), "connection: silent");
        assert!(told(500, "silent").is_none() && told(1_400, "silent").is_none());
        let next = "connection: reset (2 more ended as the one before)";
        assert_eq!(told(1_500, "reset").unwrap(), next);
        assert_eq!(told(2_600, "reset").unwrap(), "connection: reset");
    }

    #[test]
    fn how_fast_it_goes_now() {
        let mut recent = Recent::default();
        let mut rate = |ms, octets| recent.rate(Duration::from_millis(ms), octets).round() as u64;
        assert_eq!([rate(0, 0), rate(0, 0)], [0, 0]);
        // 1 kB/s from the beginning on, told every 100 ms or more often
        for ms in (10..1_000).step_by(10).chain((1_000..=10_000).step_by(100)) {
            assert_eq!(rate(ms, ms), 1_000, "after {ms} ms");
        }
        // nothing for three seconds: less and less, and nothing after two
        assert_eq!(rate(11_000, 10_000), 474);
        for ms in (11_100..13_000).step_by(100) {
            let now = rate(ms, 10_000);
            assert_eq!(now == 0, ms >= 11_900, "after {ms} ms: {now}");
        }
        // 4 kB/s: two seconds later it goes so fast
        for ms in (13_000..=20_000).step_by(100) {
            let now = rate(ms, 10_000 + (ms - 13_000) * 4);
            assert_eq!(now == 4_000, ms >= 14_900, "after {ms} ms: {now}");
        }
        // nobody looked for a minute
        assert_eq!(rate(80_000, 38_000 + 60_000), 1_000);
        // fewer than before, as when the beginning is found to have been there
        assert_eq!(rate(80_100, 0), 0);
    }

    #[test]
    fn sizes() {
        assert_eq!(
            [9_999, 10_000, 10_000_000, 10_000_000_000].map(octets),
            ["9999 octets", "10.0 kB", "10.0 MB", "10.00 GB"]
        );
    }
}
