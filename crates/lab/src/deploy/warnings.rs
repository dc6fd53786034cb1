//! What is to be said of a node that has run: one sentence for each thing that went wrong, with what to do.

use linux::wifi::confirm::Path;

use super::Deployed;

/// What a node that was to watch the slots of others must know on Linux.
pub const UNWATCHED: &str = "`watch` has no effect here: Linux cannot be asked for the time of an adapter, and where the computer keeps the time \
     in its place, that of a received frame is another clock: nobody's slots were checked by this node; `seen_within` of the schedule, how long after \
     its end this host has seen a frame at the latest, takes its place";

impl Deployed {
    /// All that is to be said, each in one sentence, by this way of outcomes.
    pub fn warnings(&self, confirm: Path) -> impl Iterator<Item = String> {
        let all = [
            self.refusal(),
            self.distrust(),
            self.lateness(),
            self.silence(confirm),
            self.unwatched.map(str::to_owned),
        ];
        all.into_iter().flatten()
    }

    /// One sentence if its clock was never to be trusted, so that it was silent in its slots.
    pub fn distrust(&self) -> Option<String> {
        let (node, clock) = (&self.node, self.clock.filter(|c| !c.trusted)?);
        let why = match (clock.own, clock.samples) {
            (true, _) => {
                "it sends the beacons, and its radio told neither its own time nor that of a beacon: run it on another one".to_owned()
            }
            (false, 0) => {
                "it has heard no beacon of the schedule: see whether the node that sends them runs, on this channel and in reach".to_owned()
            }
            (false, n) => format!(
                "it has taken {n} of the beacons of the schedule, and needs some more in a row: let it run for longer, or see what keeps the others from it"
            ),
        };
        Some(format!(
            "{node}: its clock was never to be trusted, so it sent nothing in slots: {why}"
        ))
    }

    /// One sentence if requests were refused: the commonest reason, and what to do.
    pub fn refusal(&self) -> Option<String> {
        self.requests.refusals.warning(&self.node, self.requests.ended())
    }

    /// One sentence if most requests ended without a status, by this way of outcomes.
    pub fn silence(&self, confirm: Path) -> Option<String> {
        let (unknown, ended) = (self.requests.unknown, self.requests.ended());
        let why = match confirm {
            Path::Status => {
                "Linux tells nothing of a frame to a group, or to a station that is not in its network: see whether `iw dev IFACE station \
                 dump` has the receiver, and let all join with one BSSID (iw dev IFACE ibss join NAME MHZ fixed-freq BSSID)"
            }
            _ => {
                "the driver or its medium tells nothing of them: `sdmac certify` says for which frames it does, and under `sdmac air` \
                 or the like that program may have gone"
            }
        };
        (unknown * 2 > ended).then(|| {
            let node = &self.node;
            format!("{node}: {unknown} of {ended} requests ended without a status: {why}")
        })
    }

    /// One sentence if slots were lost because this host was late.
    pub fn lateness(&self) -> Option<String> {
        let of_slots = self.slots.map(|s| (s.overruns, s.late, s.released));
        let of_cell = self.cell.map(|c| (c.overruns, c.late, c.released));
        let (overruns, late, released) = of_slots.or(of_cell).filter(|s| s.0 + s.1 > 0)?;
        Some(format!(
            "{}: {overruns} slots were over before the node woke up for them, and {late} of {released} released frames were not on the air by the \
             end of their guard: this host needs more than the schedule's release.high says; give it what this host keeps \
             (`sdmac measure` tells; an emulated CPU needs milliseconds, and in the lab's virtual time nodes wait for each \
             other's readings of the clock)",
            self.node
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy::slots::Clock;
    use crate::deploy::{Requests, Window};
    use linux::wifi::HostCounters;

    fn deployed(clock: Option<Clock>) -> Deployed {
        Deployed {
            node: "a".into(),
            uncertified: None,
            emulated: false,
            addresses: Vec::new(),
            ran_ns: 1,
            interrupted: false,
            requests: Requests::new(&HostCounters::default(), crate::deploy::Refusals::default()),
            submitted: std::collections::BTreeMap::new(),
            delivered: std::collections::BTreeMap::new(),
            measured: Window {
                window_ns: 1,
                submitted: 0,
                delivered: 0,
                delivered_octets: 0,
                tries: None,
                latency_us: None,
            },
            slots: None,
            clock,
            unwatched: None,
            cell: None,
            roamed: None,
            confirm_us: None,
            all_planes: 0,
            attributes_refused: 0,
        }
    }

    #[test]
    fn a_clock_that_was_never_trusted_is_told_with_its_reason() {
        let clock = |own, samples, trusted| Clock {
            own,
            samples,
            refused: 0,
            restarts: 0,
            trusted,
        };
        let said = |c| deployed(Some(c)).distrust();
        assert_eq!(
            (said(clock(false, 9, true)), deployed(None).distrust()),
            (None, None)
        );
        for (c, part) in [
            (clock(false, 0, false), "heard no beacon"),
            (clock(false, 2, false), "taken 2 of the beacons"),
            (clock(true, 0, false), "its own time"),
        ] {
            let sentence = said(c).unwrap();
            assert!(
                sentence.starts_with("a: its clock was never to be trusted") && sentence.contains(part),
                "{sentence}"
            );
        }
        let unwatched = Deployed {
            unwatched: Some(UNWATCHED),
            ..deployed(Some(clock(false, 0, false)))
        };
        let all: Vec<String> = unwatched.warnings(Path::Monitor).collect();
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[1].starts_with("`watch` has no effect"), "{all:?}");
    }
}
