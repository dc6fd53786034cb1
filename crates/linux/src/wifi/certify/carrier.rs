//! Whether a radio waits for a medium that is busy: the second one fills the air with long frames, and one goes amid them.

use frame::{Rate, ppdu_us};
use radio::{Attribute, Duration, SetError};

use super::super::error::Error;
use super::bench::{Amid, Ask};
use super::certificate::Verdict;
use super::inspector::Inspector;
use super::requests::ABSENT;

/// Frames of the second radio, and octets of each between header and number: 2 ms at 6 Mb/s.
const OTHERS: usize = 8;
const PADDING: usize = 1_440;
/// Octets of header, mark, number and FCS around these.
const AROUND: u32 = 24 + 16 + 4;
const RATE: Rate = Rate::OFDM_6;
/// Trials with others, and as many without, at most.
const TRIALS: usize = 20;

impl Inspector<'_> {
    pub(super) fn carrier_sense(&mut self) -> Result<(), Error> {
        const WHAT: &str = "carrier sense";
        let (stop, trials) = (self.stop, self.each().min(TRIALS));
        let band = self.wiphy.channel(self.channel_mhz).map(|(band, _)| band.band);
        let frame_us = ppdu_us(RATE, AROUND + PADDING as u32, band.unwrap_or(frame::Band::Ghz5));
        let asked = format!("a frame amid {OTHERS} of {frame_us} us from the second radio, {trials} times");
        let Some(ear) = self.bench()?.ear().map(|ear| ear.address()) else {
            let why =
                "not tried: there is no second radio that could keep the air busy: name one with --peer";
            self.add(WHAT, asked, why, Verdict::CannotBeSeen);
            return Ok(());
        };
        let ask = Ask {
            to: ear,
            ..self.ask()
        };
        let other = Ask {
            from: ear,
            to: ABSENT,
            ack: false,
            padding: PADDING,
            rate: RATE,
            ..ask
        };
        let frame = Duration::from_us(frame_us.into());
        // In the third frame at the earliest: not where the first one begins, and long before the last one ends.
        let after = Duration::from_ns(frame.as_ns() * 5 / 2);
        let (mut idle, mut busy) = (Vec::new(), Vec::new());
        for _ in 0..trials {
            let bench = self.bench()?;
            idle.push(bench.amid(&ask, &[], after, stop)?);
            busy.push(bench.amid(&ask, &[other; OTHERS], after, stop)?);
        }
        let (seen, verdict) = judge(&idle, &busy, frame);
        self.add(WHAT, asked, seen, verdict);
        Ok(())
    }

    /// Switches that no interface of Linux has are refused, and that is all there is to see.
    pub(super) fn carrier_sense_off(&mut self) -> Result<(), Error> {
        let answer = self.bench()?.tested().set(Attribute::CarrierSense(false));
        let (text, verdict) = match answer {
            Err(SetError::NotSupported) => (
                "refused: nl80211 has no such switch, so no frame was sent".into(),
                Verdict::DoesNotHold,
            ),
            other => (
                format!("{other:?}, and nothing shows its effect"),
                Verdict::CannotBeSeen,
            ),
        };
        self.add("carrier sense can be switched off", "off", text, verdict);
        Ok(())
    }
}

/// A radio that waits is later than without others, by half a frame on average: a quarter of one counts. One that does not
/// sends into the frames of the other, which hears nothing meanwhile and acknowledges nothing.
fn judge(idle: &[Amid], busy: &[Amid], frame: Duration) -> (String, Verdict) {
    let unseen = |why: String| (format!("not tried: {why}"), Verdict::CannotBeSeen);
    let median = |all: &[Amid]| {
        let mut delays: Vec<Duration> = all.iter().filter_map(|a| a.delay).collect();
        delays.sort_unstable();
        delays.get(delays.len() / 2).copied()
    };
    let Some((alone, amid)) = median(idle).zip(median(busy)) else {
        return unseen("no frame had a status".into());
    };
    let needed = frame.times(OTHERS as u64 / 2);
    let occupied = busy.iter().filter(|a| a.occupied >= needed).count();
    if occupied * 2 <= busy.len() {
        let longest = busy.iter().map(|a| a.occupied).max().unwrap_or_default();
        if longest == Duration::ZERO {
            return unseen("no frame of the second radio had a status".into());
        }
        return unseen(format!(
            "the frames of the second radio were over after {} us and less, so the air was never busy (that of \
             mac80211_hwsim takes no time: `sdmac air` beside it does)",
            longest.as_us()
        ));
    }
    let acked = |all: &[Amid]| all.iter().filter(|a| a.acked).count();
    let quarter = Duration::from_ns(frame.as_ns() / 4);
    let later = |a: &&Amid| a.delay.is_some_and(|d| d >= alone + quarter);
    let waited = busy.iter().filter(later).count();
    let text = format!(
        "{waited} of {} waited, {} us in the middle where it is {} us on an idle air; {} acked, {} of {} on an idle air",
        busy.len(),
        amid.as_us(),
        alone.as_us(),
        acked(busy),
        acked(idle),
        idle.len()
    );
    let verdict = match (waited * 2 > busy.len(), acked(busy) * 2 > acked(idle)) {
        (true, true) => Verdict::Holds,
        (false, _) => Verdict::DoesNotHold,
        // It may have waited for something else.
        (true, false) => Verdict::CannotBeSeen,
    };
    (text, verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amid(delay_us: u64, acked: bool, occupied_us: u64) -> Amid {
        Amid {
            delay: Some(Duration::from_us(delay_us)),
            acked,
            occupied: Duration::from_us(occupied_us),
        }
    }

    #[test]
    fn who_waits_is_later_and_heard() {
        let frame = Duration::from_us(2_000);
        let idle = [amid(100, true, 0); 5];
        let verdict = |busy: Amid| judge(&idle, &[busy; 5], frame).1;
        assert_eq!(verdict(amid(900, true, 17_000)), Verdict::Holds);
        assert_eq!(verdict(amid(110, false, 17_000)), Verdict::DoesNotHold);
        assert_eq!(verdict(amid(900, false, 17_000)), Verdict::CannotBeSeen);
        assert_eq!(verdict(amid(110, true, 17_000)), Verdict::DoesNotHold);
    }

    #[test]
    fn an_air_that_was_not_busy_shows_nothing() {
        let frame = Duration::from_us(2_000);
        let idle = [amid(100, true, 0); 5];
        let (seen, verdict) = judge(&idle, &[amid(900, true, 70); 5], frame);
        assert_eq!(verdict, Verdict::CannotBeSeen);
        assert!(seen.starts_with("not tried") && seen.contains("70 us"), "{seen}");
        let silent = Amid {
            delay: None,
            ..amid(0, false, 17_000)
        };
        let (seen, verdict) = judge(&idle, &[silent; 5], frame);
        assert_eq!(
            (seen.as_str(), verdict),
            ("not tried: no frame had a status", Verdict::CannotBeSeen)
        );
    }
}
