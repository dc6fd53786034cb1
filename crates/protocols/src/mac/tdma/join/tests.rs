//! Lists under any losses, as a model; and whole cells whose stations come and go.

use super::registrar::flows;
use super::wire::{List, MAX_LIST_OCTETS, Word};
use super::*;
use crate::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use crate::mac::data::Identity;
use crate::mac::sender::{Sender, SenderConfig};
use crate::mac::sync::{NetworkTime, Sync, SyncConfig};
use crate::mac::tdma::schedule::{BeaconSlot, Release, Slot, SlotCosts, SlotUse, TdmaPlan};
use crate::mac::tdma::watch::{Verdict, judge};
use crate::mac::tdma::{Tdma, TdmaConfig};
use crate::testing::{Clock, Dice, Fate, Room};
use frame::{Band, MacAddr, Phy, Rate, RateSet};
use proptest::prelude::*;
use radio::{Instant, Protocol, Queue};
use std::vec::Vec;

const AP: MacAddr = MacAddr::local(0);
const US: fn(u64) -> Duration = Duration::from_us;
const CYCLE_NS: u64 = 4_000_000;
const EVERY: u64 = 2;
const RULES: Rules = Rules {
    lease: 8,
    silent: 60,
    confirm: Duration::from_us(100),
    held: 64,
};

fn open() -> TdmaPlan<64> {
    open_for(10)
}

/// With what the release path takes at least; it takes 10 us.
fn open_for(release_us: u64) -> TdmaPlan<64> {
    let release = Release {
        min: US(release_us),
        high: US(release_us + 4),
    };
    let costs = SlotCosts {
        basic: RateSet::OFDM_6_ONLY,
        ..SlotCosts::new(Phy::A, Rate::OFDM_54, release, US(3))
    };
    let frame = BeaconFrame {
        bssid: AP,
        interval_tu: 8,
        ssid: b"sdmac",
        basic: BeaconFrame::basic_for(Rate::OFDM_6),
        sequence: 0,
    };
    let bare = frame.emit(&mut [0; MAX_BEACON_OCTETS]).len() + 4;
    let beacon = BeaconSlot {
        from: AP,
        octets: (bare + MAX_LIST_OCTETS) as u16,
        rate: Rate::OFDM_6,
        every: EVERY as u32,
    };
    TdmaPlan::open(Duration::from_ns(CYCLE_NS), beacon, &costs).unwrap()
}

fn stay(deadline_us: u32) -> Stay {
    Stay {
        wish: Wish {
            up_octets: 50,
            down_octets: 50,
            period_us: 8_000,
            deadline_us,
            per_ppm: 0,
            target_ppb: 1_000,
        },
        join_after: Duration::ZERO,
        leave_after: None,
        sign: 15,
        ask_again: 100,
    }
}

/// A coordinator and stations without any radio: beacons and asks arrive as the dice say.
struct Model {
    dice: Dice,
    plan: TdmaPlan<64>,
    registrar: Registrar,
    stations: Vec<Ticket>,
    /// Not before this cycle does a station do anything.
    dead_until: Vec<u64>,
    cycle: u64,
    /// Out of 100.
    loss: u64,
}

impl Model {
    fn new(seed: u64, stations: u32, loss: u64) -> Model {
        let ticket = |i| Ticket::new(stay(8_000), MacAddr::local(i));
        Model {
            dice: Dice::new(seed),
            plan: open(),
            registrar: Registrar::new(RULES, AP),
            stations: (1..=stations).map(ticket).collect(),
            dead_until: std::vec![0; stations as usize],
            cycle: 1_000,
            loss,
        }
    }

    fn lost(&mut self) -> bool {
        self.dice.within(0..=99) < self.loss
    }

    fn chaos(&mut self) {
        let n = self.dice.within(0..=self.stations.len() as u64 - 1) as usize;
        match self.dice.within(0..=199) {
            0 => {
                self.stations[n] = Ticket::new(stay(8_000), MacAddr::local(n as u32 + 1));
                self.dead_until[n] = self.cycle + self.dice.within(0..=150);
            }
            1 | 2 => self.stations[n].want(false),
            3..=5 => self.stations[n].want(true),
            6 if self.dice.within(0..=9) == 0 => self.registrar = Registrar::new(RULES, AP),
            _ => {}
        }
    }

    /// One cycle: beacon, the slot to ask in, and signs of life.
    fn step(&mut self) {
        let cycle = self.cycle;
        let now = Instant::from_ns(cycle * CYCLE_NS);
        let alive: Vec<usize> = (0..self.stations.len())
            .filter(|n| self.dead_until[*n] <= cycle)
            .collect();
        for n in &alive {
            self.stations[*n].start(Instant::ZERO);
            self.stations[*n].tick(now, cycle);
        }
        if cycle.is_multiple_of(EVERY) {
            let word = Word {
                list: Some(self.registrar.publish(cycle, EVERY, &self.plan)),
                refusals: self.registrar.refusals(),
                ..Word::EMPTY
            };
            for n in &alive {
                if !self.lost() {
                    self.stations[*n].hear(&word, cycle, EVERY);
                    self.stations[*n].tick(now, cycle);
                }
            }
        }
        self.check();
        let asking: Vec<usize> = alive
            .iter()
            .copied()
            .filter(|n| self.stations[*n].asks(cycle).is_some())
            .collect();
        for n in &asking {
            let arrives = asking.len() == 1 && !self.lost();
            let ask = self.stations[*n].asks(cycle).unwrap();
            if arrives {
                let me = MacAddr::local(*n as u32 + 1);
                self.registrar.ask(me, ask, cycle, &self.plan);
            }
            let acked = arrives && !self.lost();
            self.stations[*n].asked(true, acked, cycle, EVERY);
        }
        for n in alive {
            if self.stations[n].owes_sign(cycle) && self.stations[n].until() > cycle && !self.lost() {
                self.registrar.heard(MacAddr::local(n as u32 + 1), cycle);
                self.stations[n].was_heard(cycle);
            }
        }
        self.cycle += 1;
    }

    /// Who uses a list in this cycle uses the same one.
    fn check(&self) {
        let holds =
            |t: &&Ticket| t.current().is_some_and(|l| l.starts <= self.cycle) && t.until() > self.cycle;
        let mut lists = self.stations.iter().filter(holds).filter_map(Ticket::current);
        let key = |l: &List| (l.version, l.starts, l.roster);
        if let Some(first) = lists.next() {
            assert!(lists.all(|l| key(l) == key(first)), "cycle {}", self.cycle);
        }
    }

    fn inside(&self) -> usize {
        let me = |n: usize| MacAddr::local(n as u32 + 1);
        let listed = |n: usize, l: &List| l.roster.iter().flatten().any(|m| m.address == me(n));
        let holds = |n: usize| {
            let t = &self.stations[n];
            t.until() > self.cycle && t.current().is_some_and(|l| listed(n, l))
        };
        (0..self.stations.len()).filter(|n| holds(*n)).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Stations come, go and crash, the coordinator is restarted, and most of what is sent may get lost: two stations
    /// never use different lists. When the air is quiet again all find in.
    #[test]
    fn one_list_at_a_time(seed: u64, stations in 1u32..8, loss in 0u64..90) {
        let mut model = Model::new(seed, stations, loss);
        for _ in 0..1_500 {
            model.chaos();
            model.step();
        }
        model.loss = 0;
        for station in &mut model.stations {
            station.want(true);
        }
        for _ in 0..1_500 {
            model.step();
        }
        prop_assert_eq!(model.inside(), stations as usize);
    }
}

#[test]
fn a_change_takes_a_lease_and_the_crashed_are_dropped() {
    let mut model = Model::new(1, 3, 0);
    let begun = model.cycle;
    while model.inside() < 3 {
        model.step();
    }
    // the first list, asks that may collide, and a change or two
    assert!(model.cycle - begun < 100, "{}", model.cycle - begun);
    model.dead_until[0] = u64::MAX;
    let crashed = model.cycle;
    while model.registrar.newest().unwrap().roster.iter().flatten().count() == 3 {
        model.step();
    }
    let silent = model.cycle - crashed;
    let (lease, sign) = (u64::from(RULES.lease), 15);
    let after = u64::from(RULES.silent);
    assert!(
        (after - sign..=after + lease + EVERY).contains(&silent),
        "{silent}"
    );
    assert_eq!(model.registrar.counters().lapsed, 1);
    // its slots are free for the others to know a lease later
    let starts = model.registrar.newest().unwrap().starts;
    assert!(starts - model.cycle <= lease, "{starts}");
}

#[test]
fn who_does_not_fit_is_told_why() {
    let plan = open();
    let ask = |r: &mut Registrar, n: u32, wish| {
        r.ask(MacAddr::local(n), wire::Ask::Join(wish), 5, &plan);
        let refused = r.refusals();
        refused
            .iter()
            .flatten()
            .find(|f| f.0 == MacAddr::local(n))
            .map(|f| f.1)
    };
    let wish = stay(8_000).wish;
    let mut r = Registrar::new(RULES, AP);
    let lossy = Wish {
        per_ppm: 1_000_000,
        ..wish
    };
    assert_eq!(ask(&mut r, 1, lossy), Some(Reason::TooLossy));
    let hasty = Wish {
        deadline_us: 100,
        ..wish
    };
    assert_eq!(ask(&mut r, 1, hasty), Some(Reason::TooSlow));
    assert_eq!(ask(&mut r, 1, wish), None);
    let mut n = 2;
    let last = loop {
        match ask(&mut r, n, wish) {
            None => n += 1,
            Some(reason) => break reason,
        }
    };
    // 4 ms less those of beacons and asks have 23 slots of 137 us
    assert_eq!((n, last), (12, Reason::NoRoom));
    // who has slots keeps them, and who asks again for the same is not refused
    assert_eq!(ask(&mut r, 1, wish), None);
    // a second chance in each cycle makes 3 ms possible, as long as there are few
    let tight = Wish {
        deadline_us: 3_000,
        period_us: 3_000,
        ..wish
    };
    let mut few = Registrar::new(RULES, AP);
    assert_eq!(ask(&mut few, 1, tight), None);
    // they keep their second slots while those of others have one, and nobody else comes in where these would be too late
    let (mut joined, mut others) = (0, None);
    while others.is_none() {
        joined += 1;
        others = ask(&mut few, joined + 1, wish);
    }
    assert_eq!((joined, others), (10, Some(Reason::OthersTooSlow)));
    let list = few.publish(5, EVERY, &plan);
    let slots: std::vec::Vec<_> = list
        .roster
        .iter()
        .flatten()
        .map(|m| (m.up_slots, m.down_slots))
        .collect();
    assert!(
        slots[0] == (2, 2) && slots[1..].iter().all(|s| *s == (1, 1)),
        "{slots:?}"
    );
    // once the others are gone rounds do again
    for n in 2..=joined {
        few.ask(MacAddr::local(n), wire::Ask::Leave, 6, &plan);
    }
    let list = few.publish(list.starts + 1, EVERY, &plan);
    let slots: std::vec::Vec<_> = list
        .roster
        .iter()
        .flatten()
        .map(|m| (m.up_slots, m.down_slots))
        .collect();
    assert_eq!(slots, [(1, 1)]);
    assert!(Reason::from_code(0).is_none() && Reason::from_code(6).is_none());
    // sixteen, if the slots are short
    let mut many = Registrar::new(RULES, AP);
    let small = Wish {
        up_octets: 1,
        down_octets: 0,
        ..wish
    };
    let refused = (1..=17).filter_map(|n| ask(&mut many, n, small));
    assert_eq!(refused.collect::<Vec<_>>(), [Reason::Full]);
}

type Stack = Tdma<Sender, 16, 256, 64>;

fn cell(seed: u64, stations: u32, stay_of: impl Fn(u32) -> Stay + Copy + 'static) -> Room {
    cell_with(seed, stations, stay_of, None, true, Duration::from_ms(300))
}

/// What is wrong with a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Off {
    /// It wakes up 9 us too early.
    Early,
    /// Its clock is 10 us behind.
    Behind,
}

/// A controller (0) and stations, in a room without carrier sense, with clocks of their own. One may be off.
fn cell_with(
    seed: u64,
    stations: u32,
    stay_of: impl Fn(u32) -> Stay + Copy + 'static,
    off: Option<(u32, Off)>,
    watch: bool,
    holdover: Duration,
) -> Room {
    let mut room = Room::new(seed);
    room.carrier_sense = false;
    room.delays.timer_ns = 0..=4_000;
    let mut dice = Dice::new(seed);
    for i in 0..=stations {
        let mut clock = || Clock {
            offset_ns: dice.within(0..=10_000_000_000),
            ppb: dice.within(0..=40_000) as i64 - 20_000,
        };
        let (mut host, mut tsf) = (clock(), clock());
        let me = MacAddr::local(i);
        let is = |what| off == Some((i, what));
        if off.is_some_and(|off| off.1 == Off::Behind) {
            // the time of the network is the true one, and who is behind does not follow beacons
            tsf = if i == 0 { Clock::default() } else { tsf };
            host = if is(Off::Behind) { Clock::default() } else { host };
        }
        let (early, behind) = (is(Off::Early), is(Off::Behind));
        room.add_with_clocks(me, host, tsf, move || {
            let (sync, identity, membership) = match i {
                0 => (
                    SyncConfig::own(Band::Ghz5, holdover),
                    Identity::access_point(AP),
                    Membership::Coordinator(RULES),
                ),
                _ => (
                    SyncConfig::new(Band::Ghz5, holdover),
                    Identity::station(me, AP),
                    Membership::Station(stay_of(i)),
                ),
            };
            let config = TdmaConfig {
                membership,
                watch,
                ..TdmaConfig::new(
                    me,
                    open_for(if early { 19 } else { 10 }),
                    if behind {
                        Sync::perfect(-10_000)
                    } else {
                        Sync::tracking(sync)
                    },
                    AP,
                    Queue::Voice,
                )
            };
            Stack::new(config, Sender::new(SenderConfig::new(identity, Rate::OFDM_54)))
        });
    }
    room
}

/// A payload each way in each cycle, with one cycle to live.
fn submit(room: &mut Room, stations: u32, cycles: core::ops::Range<u64>) {
    for cycle in cycles {
        for i in 1..=stations {
            let (at, until) = (cycle * CYCLE_NS, (cycle + 2) * CYCLE_NS);
            room.submit(at, i as usize, AP, &[0; 50], Some(until));
            room.submit(at, 0, MacAddr::local(i), &[0; 50], Some(until));
        }
    }
}

/// Six stations come within 200 ms; one leaves, one crashes, one loses every third frame. Collisions happen where they ask,
/// and in shared slots, and nowhere else, and who stays is served.
#[test]
fn stations_come_and_go() {
    let stay_of = |i: u32| Stay {
        join_after: Duration::from_ms(40 * u64::from(i)),
        leave_after: (i == 2).then_some(Duration::from_ms(2_000)),
        ..stay(8_000)
    };
    for seed in 0..4 {
        let mut room = cell(seed, 6, stay_of);
        let mut dice = Dice::new(seed ^ 77);
        room.script(move |a| match a.node {
            3 if a.at_ns > 1_500_000_000 => Fate::DataLost,
            4 if dice.within(0..=2) == 0 => Fate::DataLost,
            _ => Fate::Arrives,
        });
        submit(&mut room, 6, 250..750);
        let (mut seen, mut before) = (0, open());
        for step in 1..=64 {
            room.run_until(step * 50_000_000);
            // plans change with the members: what collides is held against that before and that behind
            let after = room.protocol::<Stack>(0).plan().clone();
            for f in room.collisions().skip(seen) {
                let at = room
                    .protocol::<Stack>(f.node)
                    .sync()
                    .to_network(room.local(f.node, f.start_ns));
                let at = at.unwrap().0 % CYCLE_NS;
                let is_in = |s: &Slot| (s.start.as_ns() - 3_000..(s.start + s.length).as_ns()).contains(&at);
                let mut all = before.slots().chain(after.slots());
                let open = all.any(|s| matches!(s.owner, SlotUse::Shared | SlotUse::Ask) && is_in(s));
                assert!(open, "seed {seed}: {at}, {f:?}");
            }
            (seen, before) = (room.collisions().count(), after);
        }
        let ap = room.protocol::<Stack>(0);
        let joined = ap.join_counters().unwrap();
        assert_eq!((joined.left, joined.lapsed), (1, 1), "seed {seed} {joined:?}");
        assert_eq!((ap.counters().outside, ap.counters().strays), (0, 0));
        // up and down of 1, 5 and 6 in all 500 cycles, those in flight at the change included
        for i in [1, 5, 6] {
            let up = room
                .delivered
                .iter()
                .filter(|d| d.peer == MacAddr::local(i))
                .count();
            let down = room.delivered.iter().filter(|d| d.node == i as usize).count();
            assert_eq!((up, down), (500, 500), "seed {seed}, station {i}");
        }
        let left = room.protocol::<Stack>(2);
        assert_eq!(left.join_counters().unwrap().left, 1);
        room.close();
    }
}

/// The coordinator falls silent. Who has no clock any more waits for nothing that has passed.
#[test]
fn who_loses_its_clock_is_not_woken_for_ever() {
    for seed in 0..20 {
        // shorter than the lease
        let mut room = cell_with(seed, 3, |_| stay(8_000), None, true, Duration::from_ms(50));
        room.script(|a| match a.node {
            0 if a.at_ns > 1_000_000_000 => Fate::DataLost,
            _ => Fate::Arrives,
        });
        submit(&mut room, 3, 100..250);
        room.run_until(3_000_000_000);
        for i in 1..=3 {
            let station = room.protocol::<Stack>(i);
            let now = room.local(i, room.now_ns());
            assert!(!station.sync().is_good(now));
            assert!(
                Protocol::deadline(station).is_none_or(|t| t > now),
                "seed {seed}, {i}"
            );
        }
        room.close();
    }
}

/// Frames of station 1 that began outside of its slots by more than the clocks may be apart, among all of them, when it
/// is off, and the coordinator watches or does not.
fn outside(off: Off, watch: bool) -> (usize, usize, Room) {
    let odd = Some((1, off));
    let mut room = cell_with(3, 2, |_| stay(8_000), odd, watch, Duration::from_ms(300));
    submit(&mut room, 2, 201..601);
    room.run_until(2_500_000_000);
    let plan = room.protocol::<Stack>(0).plan().clone();
    let (mut outside, mut sent, mut beacon) = (0, 0, None);
    for f in room.flights.iter().filter(|f| f.start_ns > 804_000_000) {
        if f.frame[0] == 0x80 {
            // adapter time at octet 24 at 6 Mb/s, behind a preamble of 20 us and two octets
            let at = u64::from_le_bytes(f.frame[24..32].try_into().unwrap());
            beacon = Some((at * 1_000, f.start_ns + 54_667));
        } else if let (1, Some((network, at))) = (f.node, beacon) {
            let begun = NetworkTime(network + f.start_ns - at);
            let verdict = judge(&plan, MacAddr::local(1), begun, begun, US(5));
            let this_side = match off {
                Off::Early => matches!(verdict, Verdict::Outside(..0)),
                Off::Behind => matches!(verdict, Verdict::Outside(1..)),
            };
            outside += usize::from(this_side);
            sent += 1;
        }
    }
    (outside, sent, room)
}

/// Who overruns is told, and then does so much less often: it loses slots rather than be in those of others.
#[test]
fn who_overruns_is_told() {
    let (early, sent, room) = outside(Off::Early, false);
    assert!(early * 2 > sent, "{early} of {sent}");
    assert_eq!(room.protocol::<Stack>(1).counters().told, 0);
    room.close();
    let (after, sent, room) = outside(Off::Early, true);
    assert!(after > 0 && after * 8 < early, "{after} of {sent}, not {early}");
    let (ap, me) = (
        room.protocol::<Stack>(0).counters(),
        room.protocol::<Stack>(1).counters(),
    );
    assert!(ap.outside > 0 && me.told > 0 && ap.strays == 0, "{ap:?} {me:?}");
    assert_eq!(room.protocol::<Stack>(2).counters().told, 0, "nobody else is");
    room.close();
}

/// Who is behind is told, too: it gives up the end of its guard, and sends what is in time by that.
#[test]
fn who_is_behind_gives_up_the_end_of_its_guard() {
    let (late, sent, room) = outside(Off::Behind, false);
    assert!(late * 4 > sent, "{late} of {sent}");
    assert_eq!(room.protocol::<Stack>(1).counters().told, 0);
    room.close();
    let (after, sent, room) = outside(Off::Behind, true);
    let (ap, me) = (room.protocol::<Stack>(0), room.protocol::<Stack>(1));
    std::println!("{after} of {sent}, not {late}; {:?}", me.restraint);
    assert!(after > 0 && after * 6 < late, "{after} of {sent}, not {late}");
    assert!(sent > 8 * after, "{after} of {sent}: it is not silent");
    assert!(
        ap.counters().outside > 0 && me.counters().told > 0,
        "{:?}",
        me.counters()
    );
    assert!(me.restraint.late > Duration::ZERO && me.restraint.early == Duration::ZERO);
    assert_eq!(room.protocol::<Stack>(2).counters().told, 0, "nobody else is");
    room.close();
}

/// Who is new cannot be heard before its list begins to hold: it is given its time from there on.
#[test]
fn the_new_are_not_silent_before_their_list_holds() {
    let plan = open();
    let rules = Rules { silent: 4, ..RULES };
    let mut registrar = Registrar::new(rules, AP);
    registrar.ask(MacAddr::local(1), wire::Ask::Join(stay(8_000).wish), 5, &plan);
    let list = registrar.publish(6, EVERY, &plan);
    assert!(list.starts > 6 + u64::from(rules.silent), "{list:?}");
    let mut at = |cycle| {
        let list = registrar.publish(cycle, EVERY, &plan);
        (list.roster.iter().flatten().count(), registrar.counters().lapsed)
    };
    for cycle in (8..=list.starts + u64::from(rules.silent)).step_by(EVERY as usize) {
        assert_eq!(at(cycle), (1, 0), "cycle {cycle}");
    }
    let after = list.starts + u64::from(rules.silent) + 1;
    assert_eq!(at(after).1, 1, "who is not heard then is dropped");
}

/// Every list fits: so many flows can be made from it.
#[test]
fn a_full_list_has_two_flows_each() {
    let member = |n| wire::Entry {
        address: MacAddr::local(n),
        up_octets: 9,
        down_octets: 9,
        up_slots: 1,
        down_slots: 2,
    };
    let roster = core::array::from_fn(|n| Some(member(n as u32 + 1)));
    let (all, slots, count) = flows(&roster, AP);
    assert_eq!((count, all[1].from, all[1].to), (32, AP, MacAddr::local(1)));
    assert_eq!(slots[..4], [1, 2, 1, 2]);
}
