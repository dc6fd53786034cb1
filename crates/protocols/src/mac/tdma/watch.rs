//! Whether others keep to their slots: every frame that is heard is held against the schedule.
//!
//! A frame has to begin between the start of a slot of its transmitter and the end of the guard, and to end before the
//! next slot may begin. What is beyond that by more than the clocks may be apart is an overrun. The node that sends the
//! beacons tells the transmitter in them, and that one holds back what would be as late (or as early) again: it gives
//! up so much of the guard at that end. With each further beacon that tells of nothing it takes a sixteenth back.
//!
//! When a frame was on the air only the adapter knows. Where it does not tell, nothing is checked, unless the host knows how late it sees
//! frames ([`SyncConfig::latency_spread`](super::super::sync::SyncConfig::latency_spread)).
//!
//! A node looks back at its own frames, too: one that the adapter could not take back may have waited for the medium until it was in
//! somebody else's slot. What it is told of that it knows, and it does not hold back for it: its next frame would wait no less.

use super::schedule::{SlotUse, TdmaPlan};
use crate::mac::sync::NetworkTime;
use frame::MacAddr;
use radio::Duration;

/// What the coordinator tells a node about its overruns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Who it was.
    pub address: MacAddr,
    /// Another number for each overrun that is told, so that one knows it from the one before; modulo 256.
    pub count: u8,
    /// How far the last one was off, in microseconds: behind the end of the guard or the slot, or, below 0, ahead of
    /// the slot.
    pub off_us: i16,
}

/// What is to be said about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is where it belongs.
    InSlot,
    /// So many nanoseconds behind what is allowed, or ahead of it, below 0.
    Outside(i64),
    /// Its transmitter has no slot at all.
    NoSlot,
}

/// Holds a frame of `from` that was on the air from `begun` to `ended` (without an ACK) against the plan; `tolerance` is
/// what the clocks may be apart.
pub fn judge<const S: usize>(
    plan: &TdmaPlan<S>,
    from: MacAddr,
    begun: NetworkTime,
    ended: NetworkTime,
    tolerance: Duration,
) -> Verdict {
    let cycle = plan.cycle().as_ns() as i64;
    let guard = plan.costs().guard().as_ns() as i64;
    let tolerance = tolerance.as_ns() as i64;
    let at = (begun.0 % cycle as u64) as i64;
    let lasted = ended.0.saturating_sub(begun.0) as i64;
    let mut off = None;
    let mut known = false;
    for slot in plan.slots() {
        match slot.owner {
            SlotUse::Beacon if plan.beacon().is_some_and(|b| b.from == from) => known = true,
            SlotUse::Flow { flow, .. } if plan.flow(flow).is_some_and(|f| f.from == from) => known = true,
            SlotUse::Shared | SlotUse::Ask => {}
            _ => continue,
        }
        // the first slots may belong to the next cycle, the last ones to the one before
        let start = slot.start.as_ns() as i64;
        let after = (at - start + cycle / 2).rem_euclid(cycle) - cycle / 2;
        let late = (after - guard).max(after + lasted - guard - slot.exchange.as_ns() as i64);
        let by = match (after, late) {
            (..0, _) => after,
            (_, 1..) => late,
            _ => 0,
        };
        if off.is_none_or(|o: i64| by.abs() < o.abs()) {
            off = Some(by);
        }
    }
    match off {
        Some(by) if by.abs() <= tolerance => Verdict::InSlot,
        Some(by) if known => Verdict::Outside(by),
        _ => Verdict::NoSlot,
    }
}

/// Beacons that tell of an overrun.
const TOLD: u8 = 4;

/// The overruns that a coordinator still has to tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reports {
    /// With the number of beacons that still have them.
    open: [Option<(Report, u8)>; super::join::wire::MAX_REPORTS],
    /// For the next that is seen for the first time.
    count: u8,
}

impl Reports {
    /// Notes an overrun. What finds no place among others is not told.
    pub(super) fn note(&mut self, address: MacAddr, off_ns: i64) {
        let mine = |r: &Option<(Report, u8)>| r.is_some_and(|(r, _)| r.address == address);
        let place = self.open.iter().position(mine);
        let Some(place) = place.or_else(|| self.open.iter().position(Option::is_none)) else {
            return;
        };
        // one count for all: a node sees that it is another one than before
        self.count = self.count.wrapping_add(1);
        let off_us = (off_ns / 1_000).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        let count = self.count;
        self.open[place] = Some((
            Report {
                address,
                count,
                off_us,
            },
            TOLD,
        ));
    }

    /// What the next beacon says: at most `room` reports. They count as told once more.
    pub(super) fn tell(&mut self, room: usize) -> [Option<Report>; super::join::wire::MAX_REPORTS] {
        let mut told = [None; super::join::wire::MAX_REPORTS];
        let open = self.open.iter_mut().filter(|r| r.is_some()).take(room);
        for (place, entry) in told.iter_mut().zip(open) {
            let (report, left) = (*entry).expect("filtered");
            *place = Some(report);
            *entry = (left > 1).then_some((report, left - 1));
        }
        told
    }
}

/// What a node that was told does about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Restraint {
    last: Option<u8>,
    /// So much later than its slot it may begin.
    pub(super) early: Duration,
    /// So much ahead of the end of the guard it has to begin.
    pub(super) late: Duration,
    /// What it has seen of its own lateness since it was told last: its clock is right about that, so beginning sooner does not help.
    known: Duration,
}

impl Restraint {
    /// By its own clock, too, a frame of its own was so late, and no more: the medium was not free, or the adapter slow.
    pub(super) fn knows(&mut self, late: Duration) {
        self.known = self.known.max(late);
    }

    /// A beacon was heard, with or without a report. Tells whether it was told something new.
    pub(super) fn hear(&mut self, report: Option<&Report>, guard: Duration) -> bool {
        let new = report.filter(|r| self.last != Some(r.count));
        if let Some(report) = new {
            self.last = Some(report.count);
            let off = Duration::from_us(u64::from(report.off_us.unsigned_abs()));
            let known = core::mem::take(&mut self.known);
            let (side, off) = match report.off_us {
                0.. => (&mut self.late, off.less(known)),
                // so late that it was ahead of the next slot of its own
                _ if known > Duration::ZERO => (&mut self.early, Duration::ZERO),
                _ => (&mut self.early, off),
            };
            *side = (*side + off).min(guard);
        } else {
            let sixteenth = |d: Duration| Duration::from_ns(d.as_ns().div_ceil(16));
            self.early = self.early.less(sixteenth(self.early));
            self.late = self.late.less(sixteenth(self.late));
            self.known = self.known.less(sixteenth(self.known));
        }
        new.is_some()
    }

    /// Whether nothing is left of the guard.
    pub(super) fn silences(&self, guard: Duration) -> bool {
        self.early + self.late >= guard && self.early + self.late > Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::{Flow, Release, SlotCosts};
    use super::*;
    use frame::{Phy, Rate};

    const US: fn(u64) -> Duration = Duration::from_us;
    const AP: MacAddr = MacAddr::local(0);
    const A: MacAddr = MacAddr::local(1);
    const B: MacAddr = MacAddr::local(2);

    fn plan() -> TdmaPlan<16> {
        let release = Release {
            min: US(10),
            high: US(14),
        };
        let costs = SlotCosts::new(Phy::A, Rate::OFDM_54, release, US(3));
        let flow = |from| Flow {
            from,
            to: AP,
            payload_octets: 50,
        };
        // slots of 7 + 36 + 94 = 137 us, and no room for more
        TdmaPlan::new(&[flow(A), flow(B)], US(280), None, &costs).unwrap()
    }

    fn at(us: i64, lasts: u64) -> (NetworkTime, NetworkTime) {
        let begun = (280_000 * 1_000 + us * 1_000) as u64;
        (NetworkTime(begun), NetworkTime(begun + lasts * 1_000))
    }

    #[test]
    fn a_frame_belongs_between_slot_and_guard() {
        let plan = plan();
        assert_eq!(plan.slots().count(), 2);
        let of = |from, us, lasts| {
            let (begun, ended) = at(us, lasts);
            judge(&plan, from, begun, ended, US(3))
        };
        for us in [-3, 0, 7, 10] {
            assert_eq!(of(A, us, 36), Verdict::InSlot, "{us}");
        }
        assert_eq!(of(A, 11, 36), Verdict::Outside(4_000));
        assert_eq!(of(A, -4, 36), Verdict::Outside(-4_000), "ahead of the cycle");
        assert_eq!(of(B, 137 + 20, 36), Verdict::Outside(13_000));
        assert_eq!(
            of(A, 0, 200),
            Verdict::Outside(200_000 - 7_000 - 96_000),
            "too long"
        );
        assert_eq!(of(AP, 50, 36), Verdict::NoSlot);
    }

    #[test]
    fn reports_are_told_four_times_and_new_ones_again() {
        let mut reports = Reports::default();
        reports.note(A, 5_500);
        for _ in 0..TOLD {
            let [Some(told), None, ..] = reports.tell(4) else {
                panic!("it is told")
            };
            assert_eq!((told.address, told.off_us), (A, 5));
        }
        assert_eq!(reports.tell(4), [None; 4]);
        reports.note(B, -7_000);
        reports.note(A, 1_000);
        assert_eq!(reports.tell(1).iter().flatten().count(), 1);
        let told = reports.tell(4);
        assert_eq!(told.iter().flatten().count(), 2);
    }

    fn report(count: u8, off_us: i16) -> Report {
        Report {
            address: A,
            count,
            off_us,
        }
    }

    #[test]
    fn who_is_told_holds_back_for_a_while() {
        let mut mine = Restraint::default();
        let guard = US(7);
        assert!(mine.hear(Some(&report(1, 4)), guard));
        assert!(!mine.hear(Some(&report(1, 4)), guard), "the same again");
        assert!(mine.late < US(4) && mine.late > US(3) && mine.early == US(0));
        assert!(mine.hear(Some(&report(2, -20)), guard) && mine.early == guard);
        assert!(mine.silences(guard));
        for _ in 0..400 {
            mine.hear(None, guard);
        }
        assert_eq!((mine.early, mine.late), (US(0), US(0)));
        assert!(!mine.silences(guard) && !Restraint::default().silences(US(0)));
    }

    /// What it has seen itself is no error of its clock; what is more than that is.
    #[test]
    fn who_knows_why_it_was_late_does_not_hold_back() {
        let mut mine = Restraint::default();
        let guard = US(50);
        mine.knows(US(300));
        mine.knows(US(200));
        assert!(mine.hear(Some(&report(1, 299)), guard), "it is told");
        assert_eq!(mine.late, US(0));
        assert!(mine.hear(Some(&report(2, 20)), guard), "that was another one");
        assert_eq!(mine.late, US(20));
        mine.knows(US(300));
        assert!(mine.hear(Some(&report(3, 310)), guard));
        assert_eq!(mine.late, US(30));
        mine.knows(US(300));
        assert!(
            mine.hear(Some(&report(4, -9)), guard),
            "late for one slot is early for the next"
        );
        assert_eq!((mine.early, mine.late), (US(0), US(30)));
        assert!(mine.hear(Some(&report(5, -9)), guard));
        assert_eq!((mine.early, mine.late), (US(9), US(30)));
        // long ago
        mine.knows(US(300));
        for _ in 0..400 {
            mine.hear(None, guard);
        }
        assert!(mine.hear(Some(&report(6, 40)), guard));
        assert_eq!(mine.late, US(40));
    }
}
