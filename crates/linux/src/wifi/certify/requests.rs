//! Questions about requests from our own address: tries, rates, ACKs, queues, statuses.

use std::fmt::Write as _;

use frame::mac::Kind;
use frame::rate::{GuardInterval, Width};
use frame::{MacAddr, Rate};

use super::super::error::Error;
use super::super::nl80211::Monitor;
use super::Peer;
use super::bench::{Ask, EAR, TESTED};
use super::certificate::{Row, Verdict};
use super::inspector::Inspector;
use super::judge::{Tries, of_statuses, proof, verdict};

/// Nobody has this address.
pub(super) const ABSENT: MacAddr = MacAddr::local(0x00ab_5e47);
/// Numbers of tries to ask for, besides one.
const TRIES: [u8; 7] = [2, 3, 4, 7, 10, 11, 16];
/// Frames in the background that one of voice is to overtake.
const AHEAD: usize = 16;

impl Inspector<'_> {
    /// A frame to nobody, from our own address, at the band's slowest OFDM rate.
    pub(super) fn ask(&self) -> Ask {
        Ask {
            kind: Kind::DATA,
            to: ABSENT,
            from: self.me,
            tid: 0,
            rate: Rate::OFDM_6,
            tries: 1,
            ack: true,
            padding: 0,
        }
    }

    /// As many requests of one kind as there are to be for each question.
    pub(super) fn tries(&mut self, ask: Ask) -> Result<Tries, Error> {
        let asks = vec![ask; self.each()];
        let listened = self.bench()?.listens();
        let stop = self.stop;
        let seen = self.bench()?.run(TESTED, &asks, stop)?;
        let asked = if ask.ack { u16::from(ask.tries) } else { 1 };
        Ok(Tries::of(asked, &seen, listened))
    }

    pub(super) fn one_shot(&mut self) -> Result<(), Error> {
        let tries = self.tries(self.ask())?;
        let verdict = self.one_try("one-shot", "1 try to nobody", &tries);
        self.proven.one_shot = proof(verdict);
        Ok(())
    }

    /// The row of requests for one try. Where nothing was ever sent twice, be it asked for, that there was one says nothing.
    pub(super) fn one_try(&mut self, what: &'static str, asked: &str, tries: &Tries) -> Verdict {
        let (mut text, mut verdict) = (tries.text(), tries.verdict());
        if verdict == Verdict::Holds && !self.retries_show {
            text += "; but a second try was never seen here, asked for or not";
            verdict = Verdict::CannotBeSeen;
        }
        self.add(what, asked, text, verdict);
        verdict
    }

    pub(super) fn retries(&mut self) -> Result<(), Error> {
        let (mut seen, mut first, mut most) = (String::new(), Verdict::CannotBeSeen, None);
        for asked in TRIES {
            let t = self.tries(Ask {
                tries: asked,
                ..self.ask()
            })?;
            if asked == TRIES[0] {
                first = t.verdict();
            }
            self.retries_show |= t.copies > 1 || t.told.is_some_and(|(_, most)| most > 1);
            if t.verdict() == Verdict::Holds {
                most = Some(asked);
            }
            let told = t.told.map_or("-".into(), |(_, most)| most.to_string());
            let heard = if t.listened {
                t.copies.to_string()
            } else {
                "-".into()
            };
            let _ = write!(
                seen,
                "{}{asked}: {told} told, {heard} heard",
                if seen.is_empty() { "" } else { "; " }
            );
        }
        if let Some(most) = most {
            let _ = write!(seen, "; up to {most} as asked");
        }
        self.proven.max_tries = match first {
            Verdict::CannotBeSeen => None,
            _ => Some(most.unwrap_or(1)),
        };
        self.add("retries", "2 to 16 tries to nobody", seen, first);
        Ok(())
    }

    pub(super) fn rates(&mut self) -> Result<(), Error> {
        let Some(band) = self.bench()?.tested().band().cloned() else {
            return Ok(());
        };
        let ht = (0..32).filter_map(|i| Rate::ht(i, Width::Mhz20, GuardInterval::Long));
        let ht: Vec<Rate> = ht.filter(|rate| band.sends(*rate, Width::Mhz20)).collect();
        self.rates_of("legacy rates", &band.rates)?;
        if !ht.is_empty() {
            self.rates_of("HT rates", &ht)?;
        }
        Ok(())
    }

    fn rates_of(&mut self, what: &str, rates: &[Rate]) -> Result<(), Error> {
        const EACH: usize = 4;
        let ask = |rate: &Rate| {
            [Ask {
                rate: *rate,
                ..self.ask()
            }; EACH]
        };
        let asks: Vec<Ask> = rates.iter().flat_map(ask).collect();
        let stop = self.stop;
        let bench = self.bench()?;
        let listens = bench.listens();
        let seen = bench.run(TESTED, &asks, stop)?;
        let (mut right, mut silent, mut wrong) = (0, 0, String::new());
        for (rate, seen) in rates.iter().zip(seen.chunks(EACH)) {
            let told = seen.iter().filter_map(|s| s.status?.rate);
            let heard: Vec<Rate> = seen
                .iter()
                .flat_map(|s| &s.copies)
                .filter_map(|c| c.rate)
                .collect();
            match told.chain(heard.iter().copied()).find(|other| other != rate) {
                Some(other) => {
                    let _ = write!(wrong, "; {rate} went as {other}");
                }
                None if heard.is_empty() => silent += 1,
                None => right += 1,
            }
        }
        let text = format!(
            "{right} of {} heard as asked, {silent} not heard{wrong}",
            rates.len()
        );
        let verdict = match (
            wrong.is_empty(),
            listens && right > 0 && silent * 10 <= rates.len(),
        ) {
            (false, _) => Verdict::DoesNotHold,
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::CannotBeSeen,
        };
        self.add(
            what,
            format!("{} rates, {EACH} frames each", rates.len()),
            text,
            verdict,
        );
        Ok(())
    }

    pub(super) fn no_ack(&mut self) -> Result<(), Error> {
        let tries = self.tries(Ask {
            ack: false,
            ..self.ask()
        })?;
        self.proven.no_ack = proof(tries.verdict());
        let asked = "1 frame to nobody that asks for no ACK";
        self.add("no-ack", asked, tries.text(), tries.verdict());
        Ok(())
    }

    /// Of what waits in several queues, voice goes first.
    pub(super) fn queues(&mut self) -> Result<(), Error> {
        let qos = Ask {
            kind: Kind::QOS_DATA,
            ..self.ask()
        };
        let mut burst = vec![Ask { tid: 1, ..qos }; AHEAD];
        burst.push(Ask { tid: 6, ..qos });
        let bursts = (self.each() / AHEAD).max(2);
        let (mut overtook, mut wrong, mut heard) = (0, 0, 0);
        let stop = self.stop;
        for _ in 0..bursts {
            let seen = self.bench()?.run(TESTED, &burst, stop)?;
            let first = |s: &super::bench::Seen| s.copies.first().copied();
            let voice = seen.last().and_then(first);
            let behind = seen[..AHEAD].iter().filter_map(first);
            let passed = voice.map_or(0, |v| behind.filter(|b| b.order > v.order).count());
            overtook += usize::from(passed > 0);
            heard += usize::from(voice.is_some());
            let tids = burst
                .iter()
                .zip(&seen)
                .filter_map(|(ask, s)| Some((ask.tid, first(s)?.tid)));
            wrong += tids.filter(|(asked, heard)| Some(*asked) != *heard).count();
        }
        let seen = format!(
            "overtook in {overtook} of {heard} bursts that were heard, {wrong} frames with another identifier"
        );
        let verdict = match (wrong, overtook) {
            (1.., _) => Verdict::DoesNotHold,
            (0, 1..) => Verdict::Holds,
            // Where nothing waits, nothing can be overtaken; nor does anybody tell in which queue a frame was.
            (0, 0) => Verdict::CannotBeSeen,
        };
        let asked = format!("voice behind {AHEAD} in the background, {bursts} times");
        self.add("queue by traffic identifier", asked, seen, verdict);
        Ok(())
    }

    /// A status for each frame, and a true one.
    pub(super) fn statuses(&mut self) -> Result<(), Error> {
        let to = match (&self.plan.peer, self.bench()?.ear()) {
            (_, Some(ear)) => ear.address(),
            (Some(Peer::Station(address)), None) => *address,
            _ => ABSENT,
        };
        let (stop, count) = (self.stop, self.plan.frames as usize);
        let asks = vec![Ask { to, ..self.ask() }; count];
        let bench = self.bench()?;
        let listens = bench.listens();
        let seen = bench.run(TESTED, &asks, stop)?;
        let told = seen.iter().filter(|s| s.status.is_some()).count();
        let twice = seen.iter().filter(|s| s.statuses > 1).count();
        let refused = seen.iter().filter(|s| s.refused.is_some()).count();
        let text = format!("{told} statuses, {twice} frames with more than one, {refused} not taken");
        self.add(
            "a status for each frame",
            format!("{count} frames"),
            text,
            of_statuses(count, told, twice, refused),
        );

        let group = vec![
            Ask {
                to: MacAddr::BROADCAST,
                ..self.ask()
            };
            self.each()
        ];
        let groups = self.bench()?.run(TESTED, &group, stop)?;
        let told = groups.iter().filter(|s| s.status.is_some()).count();
        let refused = groups.iter().filter(|s| s.refused.is_some()).count();
        let asked = format!("{} frames to all", group.len());
        self.add(
            "a status for each group frame",
            asked,
            format!("{told} statuses, {refused} not taken"),
            of_statuses(group.len(), told, 0, refused),
        );

        if to == ABSENT {
            let why = "there is no peer that could acknowledge: name one";
            self.add(
                "acked or not, as it was",
                "frames to a peer and to nobody",
                why,
                Verdict::CannotBeSeen,
            );
            return Ok(());
        }
        let acked =
            |seen: &[super::bench::Seen]| seen.iter().filter(|s| s.status.is_some_and(|t| t.acked)).count();
        let unheard = seen
            .iter()
            .filter(|s| s.copies.is_empty() && s.status.is_some_and(|t| t.acked))
            .count();
        let nobody = vec![self.ask(); self.each()];
        let lost = acked(&self.bench()?.run(TESTED, &nobody, stop)?);
        let mut text = format!(
            "{} of {count} acked by the peer, {lost} of {} by nobody",
            acked(&seen),
            nobody.len()
        );
        if listens {
            let _ = write!(text, "; {unheard} acked that the peer's socket did not show");
        }
        let verdict = match (acked(&seen), lost) {
            (_, 1..) => Verdict::DoesNotHold,
            (0, 0) => Verdict::CannotBeSeen,
            _ => Verdict::Holds,
        };
        self.add(
            "acked or not, as it was",
            "frames to a peer and to nobody",
            text,
            verdict,
        );
        Ok(())
    }

    /// Whether it acknowledges what the second radio sends it.
    pub(super) fn acknowledges(&mut self) -> Result<Row, Error> {
        let (stop, me, each) = (self.stop, self.me, self.each());
        let tested = self.bench()?.tested();
        let plain = tested.monitor() == Monitor::Plain;
        let by_the_air = plain && tested.driver() == Some("mac80211_hwsim");
        let kind = super::certificate::name(tested.monitor());
        let mut row = Row {
            what: format!("acknowledges as {kind} monitor"),
            asked: "frames from the second radio".into(),
            seen: "there is no second radio that could ask: name one with --peer".into(),
            verdict: Verdict::CannotBeSeen,
        };
        let Some(from) = self.bench()?.ear().map(|ear| ear.address()) else {
            return Ok(row);
        };
        let ask = Ask {
            from,
            to: me,
            tries: 4,
            ..self.ask()
        };
        let seen = self.bench()?.run(EAR, &vec![ask; each], stop)?;
        let heard = seen.iter().filter(|s| !s.copies.is_empty()).count();
        let acked = seen.iter().filter(|s| s.status.is_some_and(|t| t.acked)).count();
        row.seen = format!("{heard} of {each} heard, {acked} acknowledged");
        row.verdict = match (heard, acked) {
            (0, 0) => Verdict::CannotBeSeen,
            // The driver hands on what it receives, and never answers itself.
            (_, 1..) if by_the_air => {
                row.seen += "; the program that is the air of mac80211_hwsim has answered, which cannot tell a plain monitor from \
                             an active one";
                Verdict::CannotBeSeen
            }
            (_, acked) => verdict(acked * 2 > each),
        };
        Ok(row)
    }
}
