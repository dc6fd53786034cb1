//! Whether what nodes answer to a `coordinator` is in time: a message waits for the next poll, and then until its exchange ends.

use super::admission::flow_name;
use super::attempt::Nodes;
use super::check::Check;
use super::units::Time;
use super::world::{Pattern, Phase, Traffic};
use super::{To, names};

/// A periodic flow.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Beat {
    period_ns: u64,
    /// Its first message comes not before this, ns ...
    earliest_ns: u64,
    /// ... and not after this; the same if it is known.
    latest_ns: u64,
    count: Option<u32>,
}

impl Beat {
    /// Of a node that starts at a given time; `None` if the messages have no period.
    fn of(t: &Traffic, start: Time) -> Option<Beat> {
        let Pattern::Periodic { period, phase } = &t.pattern else {
            return None;
        };
        let (earliest, latest) = match phase {
            Phase::Fixed(at) => (*at, *at),
            Phase::Random(within) => (Time(0), *within),
            Phase::Mix3 { within, .. } => (Time(0), *within.get_ref()),
        };
        Some(Beat {
            period_ns: period.get_ref().0,
            earliest_ns: earliest.max(start).0,
            latest_ns: latest.max(start).0,
            count: t.count,
        })
    }

    fn is_known(&self) -> bool {
        self.earliest_ns == self.latest_ns
    }

    /// The longest time from one of its messages to the next poll, ns.
    fn waits_ns(&self, polls: &Beat) -> u64 {
        let between = if self.is_known() && polls.is_known() {
            // a message comes in all steps of the common divisor between two polls
            let step = gcd(self.period_ns, polls.period_ns);
            let ahead = (polls.latest_ns % step + step - self.earliest_ns % step) % step;
            polls.period_ns - step + ahead
        } else {
            polls.period_ns
        };
        // the first ones may come long before the first poll
        between.max(polls.latest_ns.saturating_sub(self.earliest_ns))
    }

    /// Whether there are no more polls after some of its messages.
    fn outlasts(&self, polls: &Beat) -> bool {
        let last = |first_ns: u64, beat: &Beat| {
            let count = beat.count.map(|n| u64::from(n).saturating_sub(1));
            count.map(|n| first_ns.saturating_add(n.saturating_mul(beat.period_ns)))
        };
        match (last(self.latest_ns, self), last(polls.earliest_ns, polls)) {
            (_, None) => false,
            (own, Some(polls)) => own.is_none_or(|own| own > polls),
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A flow between two nodes.
type Pair<'t> = (&'t Traffic, u32, To);

impl Check<'_> {
    /// Whether the messages of a coordinator that passes its test, and those of its nodes, are in time. It has one flow to each node, and
    /// each node one flow to it: of two messages for a node, and of two that wait there, only the newer one counts. `deadline`: of its
    /// messages without a lifetime.
    pub(super) fn polled(&self, coordinator: u32, deadline: Time, nodes: &Nodes<'_>) -> Result<(), String> {
        let all = self.file.traffic.iter().zip(nodes.flows);
        let all = all.flat_map(|(t, plan)| plan.pairs().map(move |(from, to)| (t, from, to)));
        let all: Vec<Pair<'_>> = all.collect();
        let lifetime = |t: &Traffic| t.lifetime.unwrap_or(deadline);
        // how much later than its period, by which the test goes, a message is due
        let beyond = |t: &Traffic| {
            let period_ns = self.beat(t, coordinator, nodes).map_or(0, |b| b.period_ns);
            lifetime(t).0.saturating_sub(period_ns)
        };
        let own = || all.iter().filter(|(_, from, _)| *from == coordinator);
        let least = own().map(|(t, ..)| beyond(t)).min();
        for (t, from, to) in &all {
            let (node, back) = match to {
                To::Node(node) if *from == coordinator => (*node, false),
                To::Node(to) if *to == coordinator => (*from, true),
                _ if *from == coordinator => return Err("it can poll single nodes only".to_owned()),
                _ => continue,
            };
            let name = flow_name(t);
            if all.iter().filter(|(_, f, t)| f == from && t == to).count() > 1 {
                return Err(format!(
                    "{name}: a newer message of another flow takes the place of one that waits"
                ));
            }
            let group = |node| names::group_of(nodes.groups, node);
            let begins = group(node).zip(group(coordinator));
            if let Some((begins, within)) = begins.and_then(|(of, to)| self.answer_begins(of, to, nodes))
                && within < begins
            {
                return Err(format!(
                    "{name}: an answer may begin {begins} after its poll, and within is {within}: give it that long, or no_backoff_aifsn"
                ));
            }
            let polls = own().find(|(.., to)| *to == To::Node(node)).map(|(t, ..)| *t);
            if back {
                self.answered((t, node), (polls, coordinator), lifetime, nodes)?;
            } else if least.is_some_and(|least| beyond(t) > least) {
                return Err(format!(
                    "{name}: a newer message takes the place of one that waits, and what is due earlier goes first: give it a lifetime \
                     that is not longer than its period"
                ));
            }
        }
        Ok(())
    }

    fn beat(&self, t: &Traffic, node: u32, nodes: &Nodes<'_>) -> Option<Beat> {
        let group = names::group_of(nodes.groups, node);
        Beat::of(t, group.map_or(Time(0), |g| self.file.group[g].start))
    }

    /// Whether messages of a node to its coordinator arrive in time, with these polls: the test has said that an exchange ends by the
    /// deadline of its poll, and a message that just missed one has to wait for the next.
    fn answered(
        &self,
        (t, node): (&Traffic, u32),
        (polls, coordinator): (Option<&Traffic>, u32),
        lifetime: impl Fn(&Traffic) -> Time,
        nodes: &Nodes<'_>,
    ) -> Result<(), String> {
        let name = flow_name(t);
        let own = self.beat(t, node, nodes);
        let polled = polls.and_then(|polls| Some((polls, self.beat(polls, coordinator, nodes)?)));
        let (Some(own), Some((polls, beat))) = (own, polled) else {
            return Err(format!("{name}: it is not polled as often as it has messages"));
        };
        if beat.period_ns > own.period_ns {
            return Err(format!("{name}: it is not polled as often as it has messages"));
        }
        if own.outlasts(&beat) {
            return Err(format!("{name}: its polls end before its messages"));
        }
        let (waits, lasts) = (
            Time(own.waits_ns(&beat)),
            Time(lifetime(polls).0.min(beat.period_ns)),
        );
        let (limit, what) = match t.lifetime.filter(|l| l.0 <= own.period_ns) {
            Some(lifetime) => (lifetime, "its lifetime"),
            None => (
                Time(own.period_ns),
                "its period, after which a newer one takes its place",
            ),
        };
        if waits.0.saturating_add(lasts.0) <= limit.0 {
            return Ok(());
        }
        let phases = match own.is_known() && beat.is_known() {
            true => "",
            false => ", or give both flows fixed phases",
        };
        Err(format!(
            "{name}: a message may wait {waits} for the next poll and {lasts} until that is answered, and {limit} is {what}: poll more \
             often, give the polls a shorter lifetime{phases}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(period_ns: u64, earliest_ns: u64, latest_ns: u64) -> Beat {
        Beat {
            period_ns,
            earliest_ns,
            latest_ns,
            count: None,
        }
    }

    /// The longest wait is that of some message, one after the other.
    #[test]
    fn the_longest_wait_is_that_of_some_message() {
        for (period, polls) in [(12, 12), (12, 4), (12, 8), (9, 6), (7, 5), (5, 5), (30, 12)] {
            for (own, poll) in [(0, 0), (3, 0), (0, 3), (1, 29), (40, 2)] {
                let longest = (0..1_000u64)
                    .map(|j| own + j * period)
                    .map(|at| (0..).map(|k| poll + k * polls).find(|p| *p >= at).unwrap() - at)
                    .max();
                let told = beat(period, own, own).waits_ns(&beat(polls, poll, poll));
                assert_eq!(Some(told), longest, "{period} {polls} {own} {poll}");
            }
        }
        let random = beat(12, 0, 12);
        assert_eq!(random.waits_ns(&beat(4, 1, 1)), 4);
        assert_eq!(random.waits_ns(&beat(4, 0, 100)), 100);
    }

    #[test]
    fn polls_that_end_leave_messages_behind() {
        let (own, polls) = (beat(4, 2, 2), beat(4, 2, 2));
        let with = |beat: Beat, count| Beat {
            count: Some(count),
            ..beat
        };
        assert!(!own.outlasts(&polls) && own.outlasts(&with(polls, 9)));
        assert!(with(own, 10).outlasts(&with(polls, 9)) && !with(own, 9).outlasts(&with(polls, 9)));
    }
}
