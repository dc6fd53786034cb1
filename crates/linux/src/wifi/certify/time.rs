//! Questions about adapter time, beacons that we send, and channels.

use std::path::Path;

use frame::MacAddr;
use frame::mac::Kind;
use radio::Attribute;

use super::super::desk::now;
use super::super::error::Error;
use super::bench::{Ask, EAR, TESTED};
use super::certificate::Verdict;
use super::inspector::Inspector;
use super::judge::verdict;

/// Changes of the channel, there and back.
const CHANGES: usize = 10;
/// An adapter's clock is within 100 ppm of a computer's (IEEE 802.11-2016, 11.1.3.9), and the stamps of the kernel
/// jump: ten times that, and a millisecond.
const SLACK_PPM: u64 = 1_000;
const SLACK_US: u64 = 1_000;

impl Inspector<'_> {
    /// Adapter time of received frames goes forward, as fast as the computer's.
    pub(super) fn tsf_of_frames(&mut self) -> Result<(), Error> {
        const WHAT: &str = "adapter time of received frames";
        let (stop, me, each) = (self.stop, self.me, self.each());
        let Some(from) = self.bench()?.ear().map(|ear| ear.address()) else {
            let why = "there is no second radio that could send: name one with --peer";
            self.add(WHAT, "frames from the second radio", why, Verdict::CannotBeSeen);
            return Ok(());
        };
        let ask = Ask {
            from,
            to: me,
            ..self.ask()
        };
        let mut told = Vec::new();
        for _ in 0..each {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let seen = self.bench()?.run(EAR, &[ask], stop)?;
            let copies = seen.iter().flat_map(|s| s.copies.first());
            told.extend(copies.filter_map(|c| Some((c.tsft_us?, c.at.as_ns() / 1_000))));
        }
        let (seen, verdict) = progress(&told, each);
        self.add(
            WHAT,
            format!("{each} frames from the second radio"),
            seen,
            verdict,
        );
        Ok(())
    }

    /// Beacons that we make.
    pub(super) fn beacons(&mut self) -> Result<(), Error> {
        let (stop, each) = (self.stop, self.each());
        let ask = Ask {
            kind: Kind::BEACON,
            to: MacAddr::BROADCAST,
            ..self.ask()
        };
        let bench = self.bench()?;
        let listens = bench.listens();
        let seen = bench.run(TESTED, &vec![ask; each], stop)?;
        let told = seen.iter().filter(|s| s.status.is_some()).count();
        let copies = seen.iter().filter_map(|s| s.copies.first());
        let stamped = copies
            .clone()
            .filter(|c| c.timestamp_us.is_some_and(|t| t != 0))
            .count();
        let heard = copies.count();
        let (text, verdict) = match listens {
            true => (
                format!("{heard} heard, {told} statuses; the adapter wrote its time into {stamped}"),
                verdict(heard * 10 >= each * 9),
            ),
            false => (
                format!("{told} statuses, nobody to hear it"),
                Verdict::CannotBeSeen,
            ),
        };
        self.add(
            "beacons made by us",
            format!("{each} beacons, timestamp 0"),
            text,
            verdict,
        );
        Ok(())
    }

    /// Another channel takes frames there, and takes this long.
    pub(super) fn channels(&mut self) -> Result<(), Error> {
        const WHAT: &str = "channel";
        let (stop, home) = (self.stop, self.channel_mhz);
        let here = self.wiphy.channel(home).map(|(band, _)| band.band);
        let same_band = self.wiphy.bands.iter().filter(|b| Some(b.band) == here);
        let open = same_band.flat_map(|b| &b.channels).filter(|c| c.may_send());
        // Far enough that a receiver on the old one hears nothing of it.
        let Some(away) = open.map(|c| c.mhz).find(|mhz| mhz.abs_diff(home) >= 25) else {
            self.add(
                WHAT,
                "another channel",
                "there is no other one",
                Verdict::CannotBeSeen,
            );
            return Ok(());
        };
        let ask = Ask {
            to: MacAddr::BROADCAST,
            ..self.ask()
        };
        let bench = self.bench()?;
        let (mut times_us, mut heard_away, mut heard_home) = (Vec::new(), 0, 0);
        for _ in 0..CHANGES {
            for (mhz, heard) in [(away, &mut heard_away), (home, &mut heard_home)] {
                let before = now();
                if let Err(why) = bench.tested().set(Attribute::Channel(mhz)) {
                    let text = format!("{mhz} MHz was refused: {why:?}");
                    bench.tested().set(Attribute::Channel(home)).ok();
                    self.add(WHAT, format!("{home} to {away} MHz"), text, Verdict::DoesNotHold);
                    return Ok(());
                }
                times_us.push(now().since(before).as_us());
                let seen = bench.run(TESTED, &[ask; 4], stop)?;
                *heard += seen.iter().filter(|s| !s.copies.is_empty()).count();
            }
        }
        let listens = bench.listens();
        times_us.sort_unstable();
        let text = format!(
            "{} to {} us, {} in the middle; heard on {home} MHz: {heard_home} sent there, {heard_away} sent elsewhere",
            times_us[0],
            times_us[times_us.len() - 1],
            times_us[times_us.len() / 2],
        );
        let verdict = match listens {
            true => verdict(heard_away == 0 && heard_home > 0),
            false => Verdict::CannotBeSeen,
        };
        self.add(
            WHAT,
            format!("{home} to {away} MHz and back, {CHANGES} times"),
            text,
            verdict,
        );
        Ok(())
    }
}

/// Judges pairs of adapter time and computer's time, us, of frames in a row.
fn progress(told: &[(u64, u64)], frames: usize) -> (String, Verdict) {
    let (Some(first), Some(last)) = (told.first(), told.last()) else {
        return (format!("no time in {frames} frames"), Verdict::DoesNotHold);
    };
    let back = told.windows(2).filter(|pair| pair[1].0 <= pair[0].0).count();
    let (adapter, computer) = (last.0.wrapping_sub(first.0), last.1.saturating_sub(first.1));
    let apart = adapter.abs_diff(computer);
    let resolution = told.iter().fold(0, |g, t| gcd(g, t.0.abs_diff(first.0)));
    let text = format!(
        "in {} of {frames} frames, {back} times not later; {adapter} us where the computer has {computer} us; \
         steps of {resolution} us",
        told.len()
    );
    let holds = back == 0 && apart <= SLACK_US + computer / 1_000_000 * SLACK_PPM;
    match told.len() {
        0..=1 => (text, Verdict::CannotBeSeen),
        _ => (text, verdict(holds)),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Reads, sets and reads adapter time through the file that debugfs has for an interface.
pub(super) fn through_file(file: &Path) -> [(String, Verdict); 2] {
    const STEP_US: u64 = 1_000_000;
    let read = || {
        let text = std::fs::read_to_string(file)?;
        let digits = text.trim().trim_start_matches("0x");
        u64::from_str_radix(digits, 16).map_err(std::io::Error::other)
    };
    let unseen = |why: String| (why, Verdict::CannotBeSeen);
    let (first, second) = match (read(), read()) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(why), _) | (_, Err(why)) => {
            let why = format!("this kernel or driver does not show it (CONFIG_MAC80211_DEBUGFS): {why}");
            return [unseen(why.clone()), unseen(why)];
        }
    };
    if first == u64::MAX {
        let why = "the driver does not tell it".to_owned();
        return [(why.clone(), Verdict::DoesNotHold), (why, Verdict::DoesNotHold)];
    }
    let reading = (
        format!("{first} us, then {second} us"),
        verdict((first..first.saturating_add(STEP_US)).contains(&second)),
    );
    let target = second.wrapping_add(1_000 * STEP_US);
    let set = std::fs::write(file, target.to_string()).and_then(|()| read());
    let setting = match set {
        Ok(found) => (
            format!("set to {target} us, then {found} us"),
            verdict((target..target.saturating_add(STEP_US)).contains(&found)),
        ),
        Err(why) => (format!("refused: {why}"), Verdict::DoesNotHold),
    };
    [reading, setting]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapter_time_has_to_go_on_as_the_computers_does() {
        let at = |n: u64| (7 + n * 2_000, 500 + n * 2_000);
        let good: Vec<_> = (0..50).map(at).collect();
        assert_eq!(progress(&good, 50).1, Verdict::Holds);
        assert!(progress(&good, 50).0.ends_with("steps of 2000 us"));
        assert_eq!(progress(&[], 50).1, Verdict::DoesNotHold);
        assert_eq!(progress(&good[..1], 50).1, Verdict::CannotBeSeen);
        let mut back = good.clone();
        back[7].0 = back[6].0;
        assert_eq!(progress(&back, 50).1, Verdict::DoesNotHold);
        let fast: Vec<_> = (0..50).map(|n| (n * 2_100, n * 2_000)).collect();
        assert_eq!(progress(&fast, 50).1, Verdict::DoesNotHold);
    }

    #[test]
    fn a_file_that_is_not_there_shows_nothing() {
        let [read, set] = through_file(Path::new("/nonexistent/tsf"));
        assert_eq!((read.1, set.1), (Verdict::CannotBeSeen, Verdict::CannotBeSeen));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0x00000000000000ff\n").unwrap();
        let [read, set] = through_file(file.path());
        assert_eq!(read.1, Verdict::Holds);
        assert_eq!(
            set.1,
            Verdict::DoesNotHold,
            "a plain file gives back decimal digits: {}",
            set.0
        );
        std::fs::write(file.path(), "0xffffffffffffffff\n").unwrap();
        assert_eq!(through_file(file.path())[0].1, Verdict::DoesNotHold);
    }
}
