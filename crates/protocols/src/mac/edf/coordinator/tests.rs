//! Coordinator and responders together.

use super::*;
use crate::mac::data::Identity;
use crate::mac::edf::PATIENCE;
use crate::mac::edf::responder::{Responder, ResponderConfig};
use crate::mac::overlay::Access;
use crate::testing::{Attempt, Dice, Fate, Room};
use frame::Rate;
use proptest::prelude::*;
use radio::{Duration, Queue, TxHow};
use std::vec::Vec;

const AP: MacAddr = MacAddr::local(100);
const US: fn(u64) -> Duration = Duration::from_us;
const CYCLE_NS: u64 = 4_000_000;

type Controller = Coordinator<8, 64>;

fn coordinator() -> CoordinatorConfig {
    CoordinatorConfig {
        identity: Identity::access_point(AP),
        how: TxHow::one_shot(Rate::OFDM_54).queue(Queue::Voice),
        qos: true,
        attempt: US(150),
        // 20 indication, 10 request, 34 + 19 DIFS after the ACK, 36 data, 20 indication, less 20 of the confirm
        answer: US(150),
        default_deadline: US(4_000),
        max_attempts: u16::MAX,
        gap: Duration::ZERO,
        poll_again: None,
        patience: PATIENCE,
        access: Some(Access::without_backoff(Queue::Voice, 2)),
    }
}

fn responder(me: MacAddr) -> ResponderConfig {
    ResponderConfig {
        identity: Identity::station(me, AP),
        coordinator: AP,
        how: TxHow::one_shot(Rate::OFDM_54).queue(Queue::Voice),
        qos: true,
        within: US(100),
        patience: PATIENCE,
        access: Some(Access::without_backoff(Queue::Voice, 2)),
    }
}

fn node(i: u32) -> MacAddr {
    MacAddr::local(i)
}

/// A controller (0) and `nodes` nodes (1 ...) with one payload each way in each of `cycles` cycles:
/// `[direction, node, cycle]` and 47 zeroes.
fn cell(seed: u64, config: CoordinatorConfig, nodes: u32, cycles: u64) -> Room {
    let mut room = Room::new(seed);
    room.add(AP, move || Controller::new(config));
    for i in 1..=nodes {
        room.add(node(i), move || Responder::<64>::new(responder(node(i))));
    }
    for cycle in 0..cycles {
        let (at, until) = (cycle * CYCLE_NS, (cycle + 1) * CYCLE_NS);
        for i in 1..=nodes {
            let mut payload = [0; 50];
            payload[..3].copy_from_slice(&[0, i as u8, cycle as u8]);
            room.submit(at + 1_000, 0, node(i), &payload, Some(until));
            payload[0] = 1;
            room.submit(at, i as usize, AP, &payload, Some(until));
        }
    }
    room
}

/// After a failure the same node is polled again no sooner than the gap says.
#[test]
fn a_failed_exchange_waits_for_the_gap() {
    let again = |gap| {
        let mut room = cell(1, CoordinatorConfig { gap, ..coordinator() }, 1, 1);
        let mut is_first = true;
        room.script(move |a| match a.node == 0 && std::mem::take(&mut is_first) {
            true => Fate::DataLost,
            false => Fate::Arrives,
        });
        room.run_until(CYCLE_NS);
        let polls = room.flights.iter().filter(|f| f.node == 0).map(|f| f.start_ns);
        let polls: Vec<_> = polls.collect();
        polls[1] - polls[0]
    };
    let (none, some) = (again(Duration::ZERO), again(US(700)));
    assert!(
        none < 600_000 && (700_000..none + 800_000).contains(&some),
        "{none} {some}"
    );
}

/// Of the payloads `[direction, node, cycle]` that were delivered: how many in their cycle, and how many twice.
fn in_time(room: &Room) -> (usize, usize) {
    let mut seen = std::collections::BTreeSet::new();
    let late = |p: &[u8], at: u64| at > (u64::from(p[2]) + 1) * CYCLE_NS;
    let good = room.delivered.iter().filter(|d| !late(&d.payload, d.at_ns));
    let first = good.filter(|d| seen.insert(d.payload[..3].to_vec())).count();
    let all: std::collections::BTreeSet<_> = room.delivered.iter().map(|d| &d.payload[..3]).collect();
    (first, room.delivered.len() - all.len())
}

#[test]
fn every_node_once_each_way_per_cycle() {
    let mut room = cell(1, coordinator(), 8, 20);
    room.run_until(20 * CYCLE_NS);
    assert_eq!(in_time(&room), (8 * 2 * 20, 0));
    assert_eq!(
        room.flights.len(),
        8 * 2 * 20,
        "one frame down, one frame up, no separate polls"
    );
    let c = room.protocol::<Controller>(0).counters();
    assert_eq!((c.exchanges, c.down_done, c.up_done), (160, 160, 160));
    assert_eq!(
        (c.down_missed, c.up_missed, c.timeouts, c.late_or_again),
        (0, 0, 0, 0)
    );
    assert_eq!(room.protocol::<Controller>(0).access_taken(), Some(true));
    assert_eq!(room.collisions().count(), 0);
    room.close();
}

fn header(a: &Attempt<'_>) -> PollHeader {
    PollHeader::parse(Received::parse(a.frame).unwrap().payload)
        .unwrap()
        .0
}

/// What is repeated after which loss, as (is answer, has data, polls) of each frame on the air.
fn repeats(fates: &'static [Fate]) -> (Vec<(bool, bool, bool)>, Room) {
    let mut room = cell(1, coordinator(), 1, 1);
    let frames = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let log = frames.clone();
    room.script(move |a| {
        let h = header(a);
        log.borrow_mut().push((h.answer, h.data, h.poll));
        fates
            .get(log.borrow().len() - 1)
            .copied()
            .unwrap_or(Fate::Arrives)
    });
    room.run_until(CYCLE_NS);
    let frames = frames.borrow().clone();
    (frames, room)
}

const DATA_POLL: (bool, bool, bool) = (false, true, true);
const POLL: (bool, bool, bool) = (false, false, true);
const ANSWER: (bool, bool, bool) = (true, true, false);

#[test]
fn only_what_is_missing_is_repeated() {
    use Fate::{AckLost, Arrives, ConfirmLost, DataLost};
    let (frames, room) = repeats(&[DataLost]);
    assert_eq!(frames, [DATA_POLL, DATA_POLL, ANSWER]);
    assert_eq!(in_time(&room), (2, 0));

    let (frames, room) = repeats(&[Arrives, DataLost]);
    assert_eq!(frames, [DATA_POLL, ANSWER, POLL, ANSWER]);
    assert_eq!(in_time(&room), (2, 0));
    assert_eq!(room.protocol::<Controller>(0).counters().timeouts, 1);

    // the confirm is lost, but the answer proves that the data arrived
    let (frames, room) = repeats(&[ConfirmLost]);
    assert_eq!(frames, [DATA_POLL, ANSWER]);
    assert_eq!(in_time(&room), (2, 0));

    // so it does if only the ACK is lost: a repetition would meet it
    let (frames, room) = repeats(&[AckLost]);
    assert_eq!(frames, [DATA_POLL, ANSWER]);
    assert_eq!(in_time(&room), (2, 0));
    assert_eq!(room.collisions().count(), 0);

    // the node does not know that its answer arrived, and sends it again in the next cycle if nothing newer comes
    let (frames, room) = repeats(&[Arrives, AckLost]);
    assert_eq!(frames, [DATA_POLL, ANSWER]);
    assert_eq!(in_time(&room), (2, 0));
}

/// The host finds out after a long time that it has lost a status.
const LONG_NS: u64 = 100_000_000;

/// So long the coordinator waits for a confirm: four times 150 us.
const PATIENCE_NS: u64 = 600_000;

/// The controller goes on without a confirm, awaits the answer if it has not come, and repeats what is missing then.
#[test]
fn a_confirm_that_stays_away_holds_the_others_up_for_a_while() {
    use Fate::{Arrives, ConfirmLost, DataLost, Silent};
    // the answer has come meanwhile, was lost, or the poll itself was
    for (fates, frames, timeouts) in [
        (&[ConfirmLost, Arrives][..], &[DATA_POLL, ANSWER][..], 0),
        (
            &[ConfirmLost, DataLost],
            &[DATA_POLL, ANSWER, DATA_POLL, ANSWER],
            1,
        ),
        (&[Silent], &[DATA_POLL, DATA_POLL, ANSWER], 1),
    ] {
        let mut room = cell(1, coordinator(), 2, 1);
        room.delays.patience_ns = LONG_NS;
        let log = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let of_first = log.clone();
        room.script(move |a| {
            let r = Received::parse(a.frame).unwrap();
            let mut log = of_first.borrow_mut();
            if ![r.source, r.destination].contains(&node(1)) {
                return Arrives;
            }
            let h = header(a);
            log.push((h.answer, h.data, h.poll));
            fates.get(log.len() - 1).copied().unwrap_or(Arrives)
        });
        room.run_until(CYCLE_NS);
        assert_eq!(*log.borrow(), frames, "{fates:?}");
        assert_eq!(in_time(&room), (4, 0), "{fates:?}");
        assert_eq!(room.collisions().count(), 0);
        let c = *room.protocol::<Controller>(0).counters();
        assert_eq!(
            (c.silent, c.timeouts, c.confirms.unknown),
            (1, timeouts, 1),
            "{c:?}"
        );
        assert_eq!((c.down_done, c.up_done), (2, 2), "{c:?}");
        // what the controller sends next: behind the patience, and perhaps an answer that does not come
        let mut next = room
            .flights
            .iter()
            .filter(|f| f.node == 0 && f.start_ns > 100_000);
        let next = next.next().unwrap().start_ns;
        let most = PATIENCE_NS + 150_000 + 20_000;
        assert!((PATIENCE_NS..most).contains(&next), "{next}");
        // the confirms that come at last change nothing, and the laws hold
        room.run_until(2 * LONG_NS);
        let later = *room.protocol::<Controller>(0).counters();
        assert_eq!(later, c);
        room.close();
    }
}

/// A node whose answer has no confirm answers the next poll nevertheless, and a poll that follows at once it does not.
#[test]
fn a_node_whose_confirm_stays_away_answers_again() {
    let mut room = cell(1, coordinator(), 1, 4);
    room.delays.patience_ns = LONG_NS;
    let mut answers = 0;
    room.script(move |a| {
        answers += u32::from(header(a).answer);
        match header(a).answer && answers == 1 {
            true => Fate::ConfirmLost,
            false => Fate::Arrives,
        }
    });
    room.run_until(4 * CYCLE_NS);
    assert_eq!(in_time(&room), (8, 0));
    let c = *room.protocol::<Responder<64>>(1).counters();
    assert_eq!(
        (c.polls, c.busy, c.silent, c.answers.unknown),
        (4, 0, 1, 1),
        "{c:?}"
    );
    assert_eq!(c.answers.total(), 4);
    room.close();

    // the controller does not hear the first answer, and polls again before the node's patience of 400 us is over
    let mut room = cell(1, coordinator(), 1, 1);
    room.delays.patience_ns = LONG_NS;
    let mut answers = 0;
    room.script(move |a| {
        answers += u32::from(header(a).answer);
        match header(a).answer && answers == 1 {
            true => Fate::Silent,
            false => Fate::Arrives,
        }
    });
    room.run_until(CYCLE_NS);
    assert_eq!(in_time(&room), (2, 0));
    let c = *room.protocol::<Responder<64>>(1).counters();
    assert!(c.busy >= 1 && c.silent == 1, "{c:?}");
    room.close();
}

#[test]
fn a_downlink_that_cannot_have_an_answer_in_time_goes_without_poll() {
    let mut room = cell(1, coordinator(), 1, 0);
    room.submit(0, 0, node(1), &[7; 50], Some(200_000));
    room.run_until(CYCLE_NS);
    let c = *room.protocol::<Controller>(0).counters();
    assert_eq!(
        (room.flights.len(), c.down_done, c.up_missed, c.timeouts),
        (1, 1, 1, 0)
    );
    room.close();
}

/// While a poll is under way something else is submitted, and less time is left than another attempt would take: its answer is
/// awaited nevertheless, and nobody is polled in its way.
#[test]
fn what_is_under_way_is_not_given_up() {
    let mut room = cell(1, coordinator(), 2, 0);
    room.submit(0, 1, AP, &[1; 50], Some(310_000));
    room.submit(0, 0, node(1), &[7; 50], Some(310_000));
    // the poll is on the air, and has no confirm
    room.submit(50_000, 0, node(2), &[8; 50], Some(CYCLE_NS));
    room.run_until(CYCLE_NS);
    let c = *room.protocol::<Controller>(0).counters();
    assert_eq!((c.down_done, c.up_done, c.up_missed), (2, 1, 0), "{c:?}");
    assert!(room.delivered.iter().any(|d| d.node == 0 && d.payload[0] == 1));
    assert_eq!(room.collisions().count(), 0);
    room.close();
}

#[test]
fn an_empty_answer_counts_or_is_polled_again() {
    for (poll_again, polls) in [(None, 1), (Some(US(1_000)), 3)] {
        let mut room = cell(
            1,
            CoordinatorConfig {
                poll_again,
                ..coordinator()
            },
            1,
            0,
        );
        room.submit(0, 0, node(1), &[7; 50], Some(CYCLE_NS));
        room.submit(2_000_000, 1, AP, &[8; 50], Some(CYCLE_NS));
        room.run_until(CYCLE_NS);
        assert_eq!(room.protocol::<Responder<64>>(1).counters().polls, polls);
        let c = *room.protocol::<Controller>(0).counters();
        assert_eq!((c.up_done, c.up_empty), if polls == 1 { (0, 1) } else { (1, 0) });
        room.close();
    }
}

/// What waits goes by its deadline, whenever it came; at equal deadlines what came first goes first.
#[test]
fn the_earliest_deadline_goes_first() {
    let mut room = cell(1, coordinator(), 3, 0);
    // the first of each three finds the channel free; node 2 is the second that the coordinator has heard of
    for (at, msdus) in [
        (0, [(1, 2_000_000), (2, 3_000_000), (3, 1_000_000)]),
        (CYCLE_NS, [(1, 2_000_000), (3, 3_000_000), (2, 3_000_000)]),
    ] {
        for (i, until) in msdus {
            room.submit(at, 0, node(i), &[0; 50], Some(at + until));
        }
    }
    room.run_until(2 * CYCLE_NS);
    let down = room.flights.iter().filter(|f| f.node == 0);
    let to: Vec<_> = down
        .map(|f| Received::parse(&f.frame).unwrap().destination)
        .collect();
    assert_eq!(to, [1, 3, 2, 1, 3, 2].map(node));
    room.close();
}

#[test]
fn what_does_not_fit_is_rejected() {
    let mut room = cell(1, coordinator(), 9, 1);
    room.submit(10_000, 0, node(1), &[0; 65], None);
    room.submit(10_000, 0, MacAddr::BROADCAST, &[0; 5], None);
    room.run_until(CYCLE_NS);
    assert_eq!(
        room.protocol::<Controller>(0).counters().rejected,
        3,
        "the ninth node, too long, a group"
    );
    room.close();
}

#[test]
fn the_number_of_attempts_is_limited() {
    let mut room = cell(
        1,
        CoordinatorConfig {
            max_attempts: 3,
            ..coordinator()
        },
        1,
        1,
    );
    room.script(|_| Fate::DataLost);
    room.run_until(CYCLE_NS);
    let c = *room.protocol::<Controller>(0).counters();
    assert_eq!((room.flights.len(), c.down_missed, c.up_missed), (3, 1, 1));
    room.close();
}

/// All are due at once, and one of them is gone: it is asked again when all others have had their turn, for as long as there is time.
#[test]
fn a_node_that_is_gone_takes_no_time_of_others() {
    let mut room = cell(1, coordinator(), 5, 10);
    room.script(|a| {
        let gone = a.node == 2 || a.frame[4..10] == node(2).0;
        if gone { Fate::DataLost } else { Fate::Arrives }
    });
    room.run_until(10 * CYCLE_NS);
    assert_eq!(in_time(&room), (4 * 2 * 10, 0));
    let asked = room
        .flights
        .iter()
        .filter(|f| f.node == 0 && f.frame[4..10] == node(2).0);
    assert!(asked.count() > 100, "it may come back");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Losses of data and ACKs at random: with retries nearly all still arrive in time, exactly once each; and no two
    /// frames are on the air at a time.
    #[test]
    fn losses(seed: u64, nodes in 1u32..=6, gap_us in prop_oneof![Just(0u64), 100u64..800]) {
        let config = CoordinatorConfig { gap: US(gap_us), ..coordinator() };
        let mut room = cell(seed, config, nodes, 10);
        let mut dice = Dice::new(seed);
        room.script(move |_| match dice.within(0..=19) {
            0..=1 => Fate::DataLost,
            2 => Fate::AckLost,
            _ => Fate::Arrives,
        });
        room.run_until(10 * CYCLE_NS);
        let (good, twice) = in_time(&room);
        prop_assert_eq!(twice, 0);
        prop_assert!(good + 4 >= nodes as usize * 20, "{good} of {}", nodes * 20);
        prop_assert_eq!(room.collisions().count(), 0);
        room.close();
    }

    /// Everything at random: no law is broken, nothing is delivered twice, the counters add up.
    #[test]
    fn any_air(seed: u64, nodes in 1u32..=8) {
        let mut room = cell(seed, coordinator(), nodes, 10);
        room.delays.confirm_ns = 5_000..=200_000;
        room.delays.indicate_ns = 0..=200_000;
        room.delays.timer_ns = 0..=100_000;
        let mut dice = Dice::new(seed);
        room.script(move |_| match dice.within(0..=19) {
            0..=11 => Fate::Arrives,
            12..=14 => Fate::DataLost,
            15 => Fate::AckLost,
            16..=17 => Fate::ConfirmLost,
            18 => Fate::Reset,
            _ => Fate::Refused(radio::Refusal::QueueFull),
        });
        room.run_until(11 * CYCLE_NS);
        prop_assert_eq!(in_time(&room).1, 0);
        let c = *room.protocol::<Controller>(0).counters();
        prop_assert_eq!(c.exchanges, 10 * u64::from(nodes));
        prop_assert_eq!(c.down_done + c.down_missed, c.exchanges);
        prop_assert_eq!(c.up_done + c.up_empty + c.up_missed, c.exchanges);
        room.close();
    }
}
