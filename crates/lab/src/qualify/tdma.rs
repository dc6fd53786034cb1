//! The schedule that `qualify` tries: one slot per message and cycle with second chances in what is left, or more of them
//! where that is not enough and they fit.

use super::bench::{Bench, Seat};
use super::joining::{Joining, open_plan};
use super::layers::counted;
use super::own::Sum;
use super::question::{Question, Scheme};
use crate::guard;
use frame::{AccessCategory, edca_default};
use protocols::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::sync::{SHIFTS_OCTETS, Sync, SyncConfig};
use protocols::mac::tdma::join::wire::{ASK_OCTETS, MAX_LIST_OCTETS};
use protocols::mac::tdma::schedule::{BeaconSlot, Flow, NO_RTS, PlanError, Release, SlotCosts, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{AdapterId, Duration, Queue, RtsPolicy};

/// Time between two beacons, about, ns.
pub(super) const BEACON_NS: u64 = 50_000_000;
/// A clock is trusted for this long after its last beacon, ns ...
const HOLDOVER_NS: u64 = 1_000_000_000;
/// ... and for so many beacons that are lost in a row.
const HOLDOVER_BEACONS: u64 = 8;

/// Time between two beacons, ns: one cycle, if that is longer.
pub(super) const fn beacon_interval_ns(cycle_ns: u64) -> u64 {
    if cycle_ns > BEACON_NS { cycle_ns } else { BEACON_NS }
}

/// Time until all clocks are trusted, ns.
pub(super) const fn settling_ns(cycle_ns: u64) -> u64 {
    guard::SETTLING_BEACONS * beacon_interval_ns(cycle_ns)
}

/// How long a clock is trusted after its last beacon.
pub(super) fn holdover(cycle_ns: u64) -> Duration {
    Duration::from_ns(HOLDOVER_NS.max(HOLDOVER_BEACONS * beacon_interval_ns(cycle_ns)))
}

/// How the schedule was computed.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Slots {
    /// Length of a message's slot: guard, data, SIFS, ACK, DIFS, or EIFS behind the data where the carrier is sensed and that is longer, ns;
    /// RTS, CTS and two SIFS more with RTS.
    pub slot_ns: u64,
    /// Guard: jitter of the release path, error of the clocks, and the longest backoff if that is left on, ns.
    pub guard_ns: u64,
    /// From waking up to the first bit on the air: the smallest value, which is compensated, ns.
    pub release_min_ns: u64,
    /// Its quantile `quantile`, ns.
    pub release_high_ns: u64,
    /// The guard probability of the question.
    pub quantile: f64,
    /// Share of the frames with messages that were too late for their slot, as the nodes counted them in the run: not on the air by the end of the
    /// guard, or not even asked for by then; `null` if nothing was run.
    pub late_share: Option<f64>,
    /// Error of the clocks in the guard, ns: from the slowest to the fastest, as far apart as they were with
    /// probability `quantile` at either end in a run of its own with the same hosts, clocks and links.
    pub sync_error_ns: u64,
    /// Beacons of that run; 0 if no clock heard one, and the resolution of adapter time stands in.
    pub sync_beacons: u64,
    /// Slots of a message in a cycle, second chances included; 0 if the schedule does not fit.
    pub rounds: u32,
    /// Slots that are shared by those who failed.
    pub shared: u32,
    /// Shortest cycle with one slot per message, ns.
    pub one_round_ns: u64,
    /// What joining costs, if nodes do.
    pub joining: Option<Joining>,
}

impl Slots {
    /// Whether each message has a slot, and each node that asks is given those of its own.
    pub fn are_enough(&self) -> bool {
        self.rounds > 0 && self.joining.is_none_or(|j| j.is_whole())
    }
}

impl Bench {
    pub(super) fn costs(&self, sync_error_ns: u64) -> SlotCosts {
        let wake = &self.facts.wake;
        let release = Release {
            min: Duration::from_ns(wake.min_ns),
            high: Duration::from_ns(wake.guarded_ns),
        };
        let q = &self.question;
        SlotCosts::new(q.phy, q.rate, release, Duration::from_ns(sync_error_ns))
    }

    /// With the error of the clocks that was measured.
    fn measured_costs(&self, scheme: Scheme) -> SlotCosts {
        let costs = self.costs(self.clock_error.map_or(0, |e| e.spread_ns));
        SlotCosts {
            overhead_octets: costs.overhead_octets + scheme.trailer_octets() as u16,
            acked: scheme.left_on.acks,
            carrier_sense: scheme.left_on.carrier_sense,
            rts_threshold: if scheme.left_on.rts { 0 } else { NO_RTS },
            cw_min: match scheme.left_on.backoff {
                // as at an access point
                true => edca_default(AccessCategory::Voice, &costs.phy).cw_min,
                false => 0,
            },
            ..costs
        }
    }

    /// Down and up of a node follow each other.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let controller = Question::address(0);
        let flow = |from, to| Flow {
            from,
            to,
            payload_octets: self.question.simulated_octets() as u16,
        };
        let both = |n| {
            let node = Question::address(n);
            [flow(controller, node), flow(node, controller)]
        };
        (1..=self.question.nodes).flat_map(both).collect()
    }

    pub(super) fn beacon(&self, scheme: Scheme, cycle_ns: u64) -> BeaconSlot {
        let frame = BeaconFrame {
            bssid: Question::address(0),
            interval_tu: 100,
            ssid: b"sdmac",
            basic: frame::RateSet::OFDM_6_ONLY,
            sequence: 0,
        };
        let clocks = if scheme.is_redundant() { SHIFTS_OCTETS } else { 0 };
        let list = if scheme.joins { MAX_LIST_OCTETS } else { 0 };
        BeaconSlot {
            from: Question::address(0),
            octets: (frame.emit(&mut [0; MAX_BEACON_OCTETS]).len() + clocks + list + 4) as u16,
            rate: self.question.phy.lowest,
            every: (BEACON_NS / cycle_ns).max(1) as u32,
        }
    }

    /// The schedule with slots as the messages need them; in rounds if there are not enough for that.
    fn plan<const S: usize>(&self, scheme: Scheme, cycle_ns: u64) -> Result<TdmaPlan<S>, PlanError> {
        let cycle = Duration::from_ns(cycle_ns);
        if scheme.joins {
            let (beacon, costs) = (self.beacon(scheme, cycle_ns), self.measured_costs(scheme));
            return open_plan(cycle, beacon, &self.flows(), &costs);
        }
        let rounds = self.rounds_only(scheme, cycle_ns)?;
        match self.share(scheme, cycle_ns) {
            Ok(Some(slots)) => rounds.with_slots(&self.flows(), &slots),
            Ok(None) | Err(_) => Ok(rounds),
        }
    }

    /// One slot for each message, and rounds of second chances in what is left.
    pub(super) fn rounds_only<const S: usize>(
        &self,
        scheme: Scheme,
        cycle_ns: u64,
    ) -> Result<TdmaPlan<S>, PlanError> {
        let (beacon, costs) = (self.beacon(scheme, cycle_ns), self.measured_costs(scheme));
        TdmaPlan::new(&self.flows(), Duration::from_ns(cycle_ns), Some(beacon), &costs)
    }

    /// What the schedule for a cycle looks like.
    pub(super) fn slots(&self, scheme: Scheme, cycle_ns: u64) -> Slots {
        let costs = self.measured_costs(scheme);
        let plan = match self.question.nodes {
            ..=30 => self
                .plan::<128>(scheme, cycle_ns)
                .map(|p| (p.rounds(), p.shared())),
            31..=120 => self
                .plan::<512>(scheme, cycle_ns)
                .map(|p| (p.rounds(), p.shared())),
            _ => self
                .plan::<1024>(scheme, cycle_ns)
                .map(|p| (p.rounds(), p.shared())),
        };
        let (rounds, shared) = plan.unwrap_or((0, 0));
        Slots {
            slot_ns: self.slot_ns(scheme),
            guard_ns: costs.guard().as_ns(),
            release_min_ns: costs.release.min.as_ns(),
            release_high_ns: costs.release.high.as_ns(),
            quantile: self.question.guard_probability,
            late_share: None,
            sync_error_ns: costs.sync_error.as_ns(),
            sync_beacons: self
                .clock_error
                .filter(|e| e.comparisons > 0)
                .map_or(0, |e| e.beacons),
            rounds,
            shared: shared as u32,
            one_round_ns: self.one_round_ns(scheme, cycle_ns),
            joining: scheme
                .joins
                .then(|| self.measure_joining(scheme, cycle_ns, &costs)),
        }
    }

    fn slot_ns(&self, scheme: Scheme) -> u64 {
        let flows = self.flows();
        TdmaPlan::<1>::shortest_cycle(&flows[..1], None, &self.measured_costs(scheme), 0).as_ns()
    }

    fn one_round_ns(&self, scheme: Scheme, cycle_ns: u64) -> u64 {
        let beacon = Some(self.beacon(scheme, cycle_ns));
        let costs = self.measured_costs(scheme);
        let asking = match scheme.joins {
            true => costs.slot(costs.exchange(ASK_OCTETS as u32, self.question.phy.lowest, true)),
            false => Duration::ZERO,
        };
        (TdmaPlan::<1>::shortest_cycle(&self.flows(), beacon, &costs, 0) + asking).as_ns()
    }

    /// Shortest cycle that TDMA needs, ns: one slot for all, shared slots for what fails, and time for the last
    /// message to reach its application.
    pub(super) fn tdma_cycle_ns(&self, scheme: Scheme) -> u64 {
        let q = &self.question;
        let late = 1.0 - self.question.guard_probability;
        // a shared slot is used by one of several at random: two for each failure
        let shared = 2 * u64::from(self.facts.retries(2 * q.nodes, q.miss, late));
        self.one_round_ns(scheme, q.cycle_ns)
            + shared * self.slot_ns(scheme)
            + self.facts.indication.p99_99_ns
    }

    pub(super) fn tdma(&self, scheme: Scheme, node: u32, cycle_ns: u64, sum: &Sum) -> Seat {
        let short = self.question.simulated_octets() <= 300;
        match (node, self.question.nodes, short) {
            (0, ..=30, true) => self.tdma_of::<32, 32, 400, 128>(scheme, node, cycle_ns, sum),
            (0, ..=30, false) => self.tdma_of::<32, 32, 1600, 128>(scheme, node, cycle_ns, sum),
            (0, 31..=120, true) => self.tdma_of::<128, 128, 400, 512>(scheme, node, cycle_ns, sum),
            (0, 31..=120, false) => self.tdma_of::<128, 128, 1600, 512>(scheme, node, cycle_ns, sum),
            (0, _, true) => self.tdma_of::<256, 256, 400, 1024>(scheme, node, cycle_ns, sum),
            (0, _, false) => self.tdma_of::<256, 256, 1600, 1024>(scheme, node, cycle_ns, sum),
            (_, ..=30, _) => self.tdma_of::<1, 4, 1600, 128>(scheme, node, cycle_ns, sum),
            (_, 31..=120, _) => self.tdma_of::<1, 4, 1600, 512>(scheme, node, cycle_ns, sum),
            _ => self.tdma_of::<1, 4, 1600, 1024>(scheme, node, cycle_ns, sum),
        }
    }

    // inlined, all nine have their places on one stack at once: 3 MB
    #[inline(never)]
    fn tdma_of<const D: usize, const N: usize, const L: usize, const S: usize>(
        &self,
        scheme: Scheme,
        node: u32,
        cycle_ns: u64,
        sum: &Sum,
    ) -> Seat {
        let plan = self
            .plan::<S>(scheme, cycle_ns)
            .expect("only schedules that fit are run");
        let band = self.question.phy.band;
        let holdover = holdover(cycle_ns);
        let sync = match node {
            0 => SyncConfig::own(band, holdover),
            _ => SyncConfig::new(band, holdover),
        };
        let sync = SyncConfig {
            second: scheme.is_redundant().then_some(AdapterId(1)),
            ..sync
        };
        let (me, controller) = (Question::address(node), Question::address(0));
        let mut config = TdmaConfig::new(me, plan, Sync::tracking(sync), controller, Queue::Voice);
        config.left_on = scheme.left_on;
        if scheme.left_on.backoff {
            config.access = None;
        }
        let mut sender = SenderConfig::new(self.identity(node), self.question.rate);
        if !scheme.left_on.acks {
            // so that no layer in between waits for one and repeats
            sender.how = sender.how.no_ack();
        }
        if scheme.left_on.rts {
            sender.how.rts = RtsPolicy::Always;
        }
        let sender = Sender::<D>::new(sender);
        if scheme.ordered {
            // a slot without a frame in time is of no use: an attempt costs a slot
            let cost = Duration::from_ns(self.slot_ns(scheme));
            let seat = self.ordered(scheme, node, cycle_ns, cost, Seat(Box::new(sender)), sum);
            return counted(Box::new(Tdma::<_, N, L, S>::new(config, seat)), sum);
        }
        counted(Box::new(Tdma::<_, N, L, S>::new(config, sender)), sum)
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::replicate;
    use super::super::question::Link;
    use super::*;

    fn bench(host: &str, nodes: u32) -> Bench {
        let q = Question {
            nodes,
            host: sim::host::Profile::built_in(host).unwrap(),
            link: Link::Per { data: 0.0, ack: 0.0 },
            ..Question::example()
        };
        Bench::new(&q).unwrap()
    }

    /// 36 us data, 94 EIFS, and the clocks.
    #[test]
    fn slots_of_an_ideal_host() {
        let s = bench("ideal", 8).slots(Scheme::TDMA, 4_000_000);
        assert_eq!(
            (s.guard_ns, s.slot_ns),
            (s.sync_error_ns, 130_000 + s.sync_error_ns)
        );
        assert!((500..4_000).contains(&s.sync_error_ns), "{s:?}");
        assert_eq!(s.rounds, 1, "16 slots of about 132 us do not fit twice");
        // beside a beacon of about 60 octets at 6 Mb/s
        let beacon = s.one_round_ns - 16 * s.slot_ns;
        assert!((100_000..200_000).contains(&beacon), "{beacon}");
    }

    #[test]
    fn the_paper_s_host_needs_a_guard() {
        let s = bench("table5", 8).slots(Scheme::TDMA, 4_000_000);
        assert_eq!(s.guard_ns, s.release_high_ns - s.release_min_ns + s.sync_error_ns);
        assert!((8_000..60_000).contains(&s.guard_ns), "{s:?}");
    }

    /// A lower probability makes a smaller guard, and the run counts more frames that miss it: about as many as it leaves out, and fewer
    /// where the part for the clocks is not used up.
    #[test]
    fn the_guard_is_what_its_probability_says() {
        let of = |guard_probability| {
            let q = Question {
                nodes: 4,
                guard_probability,
                link: Link::Per { data: 0.0, ack: 0.0 },
                ..Question::example()
            };
            let b = Bench::new(&q).unwrap();
            let t = replicate(&b, Scheme::TDMA, 5, 4_000_000, 2_000, 1);
            let share = t.own.late as f64 / t.own.due as f64;
            (b.slots(Scheme::TDMA, 4_000_000).guard_ns, share)
        };
        let all = [0.5, 0.9, 0.99, 0.9999].map(|p| (p, of(p)));
        println!("{all:?}");
        for pair in all.windows(2) {
            assert!(pair[0].1.0 < pair[1].1.0 && pair[0].1.1 > pair[1].1.1, "{all:?}");
        }
        for (p, (_, share)) in all {
            assert!(share <= 1.2 * (1.0 - p) + 1e-4, "{all:?}");
        }
        for (p, (_, share)) in &all[..3] {
            assert!(*share > 0.1 * (1.0 - p), "{all:?}");
        }
    }

    /// Reception is switched off behind each slot: not before a frame is over that began at the end of the guard.
    #[test]
    fn who_listens_in_its_slots_only_hears_late_frames_too() {
        let b = bench("table5", 2);
        for scheme in ["tdma-reception-acks", "tdma-reception-carrier_sense-acks"] {
            let t = replicate(&b, Scheme::parse(scheme).unwrap(), 5, 10_000_000, 1_000, 1);
            assert_eq!(t.batches.trials(), 4_000);
            let (missed, late) = (t.batches.misses(), t.own.late);
            assert!(
                missed <= late,
                "{scheme}: {missed} missed, and {late} late for their slot"
            );
        }
    }

    /// Nobody acknowledges, so that nobody repeats: not even a layer above the slots.
    #[test]
    fn without_acks_each_message_goes_once() {
        let b = bench("ideal", 4);
        let scheme = Scheme::parse("tdma-acks+edf").unwrap();
        let t = replicate(&b, scheme, 5, 10_000_000, 200, 1);
        assert_eq!((t.batches.trials(), t.batches.misses()), (1_600, 0));
        assert_eq!(t.tries.count(), t.batches.trials());
    }

    /// RTS and CTS of 28 us each at 24 Mb/s, and two SIFS, make each slot longer; the exchanges are in it all the same.
    #[test]
    fn rts_goes_ahead_within_the_slot() {
        let b = bench("ideal", 4);
        let rts = Scheme::parse("tdma+rts").unwrap();
        let slot_ns = |scheme| b.slots(scheme, 10_000_000).slot_ns;
        assert_eq!(slot_ns(rts), slot_ns(Scheme::TDMA) + 88_000);
        let [with, without] = [rts, Scheme::TDMA].map(|scheme| replicate(&b, scheme, 5, 10_000_000, 200, 1));
        for t in [&with, &without] {
            assert_eq!(
                (t.batches.trials(), t.batches.misses(), t.collided),
                (1_600, 0, 0)
            );
        }
        assert_eq!(with.tries.count(), with.batches.trials());
        let more_ns = with.air.overhead_ns - without.air.overhead_ns;
        assert_eq!(more_ns, 1_600 * 56_000, "beacons, and nothing else, are in both");
    }

    /// The window of voice is three slots of 9 us: a slot that it is left on in is longer by that, and no frame is late.
    #[test]
    fn a_contention_window_that_is_left_on_is_in_the_guard() {
        let b = bench("ideal", 4);
        for (with, without) in [
            ("tdma+backoff", "tdma"),
            ("tdma-carrier_sense+backoff", "tdma-carrier_sense"),
        ] {
            let [with, without] = [with, without].map(|s| Scheme::parse(s).unwrap());
            let t = replicate(&b, with, 5, 10_000_000, 500, 1);
            let guard_ns = |scheme| b.slots(scheme, 10_000_000).guard_ns;
            assert!(b.admission(with).unwrap().admitted);
            assert_eq!(
                (t.own.late, t.batches.misses()),
                (0, 0),
                "{with}: {} due",
                t.own.due
            );
            assert_eq!(guard_ns(with), guard_ns(without) + 27_000, "{with}");
        }
    }

    /// With ideal hosts and drifting clocks every message has its slot: nothing collides, nothing is missed.
    #[test]
    fn clocks_that_follow_beacons_keep_their_slots() {
        let b = bench("ideal", 8);
        let t = replicate(&b, Scheme::TDMA, 5, 4_000_000, 500, 1);
        assert_eq!(
            (t.batches.trials(), t.batches.misses(), t.collided),
            (8_000, 0, 0)
        );
    }
}
