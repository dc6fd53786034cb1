//! Reference broadcasts: two receivers look at their clocks when they hear the same frame of a third party, and one tells
//! the other what its clock showed (RBS, Elson et al. 2002; for Wi-Fi RBIS, Cena et al. 2015). Neither the sender's clock
//! nor the time that it takes to send is in the result, only how differently two receivers stamp.
//!
//! The frames are the beacons of an access point that need not know of this. Their timestamp field is the name of the
//! event, nothing more. The node whose host clock is network time tells in a follow-up what it showed at the
//! last one; the others take that for a sample, if they heard the same one.
//!
//! **Error model.** With a stamp error of standard deviation s at each receiver a sample has s * sqrt(2), and a least
//! squares line through the last 8, evenly spaced, is off by
//! s * sqrt(2) * sqrt(1/8 + 4.5^2 / 42) = 1.10 s one step behind the last of them. What all receivers have in common,
//! however late it is, is not in it; propagation is (3.3 ns for each metre of difference).

use super::{NetworkTime, Sync, on_air_local, seen};
use frame::element::{Elements, ElementsBuilder, Vendor};
use frame::mac::SequenceControl;
use frame::mgmt::{Action, MgmtHeader};
use frame::{MacAddr, Wire};
use radio::{Beacon, Instant, Radio};

/// Events that a node remembers.
const REMEMBERED: usize = 4;
/// Organisation with the local bit set, as that of the schedules.
const OUI: [u8; 3] = [0x02, 0x73, 0x64];
/// Action category of vendors (IEEE 802.11-2016, Table 9-47).
const VENDOR_SPECIFIC: u8 = 127;
const FOLLOW_UP: u8 = 4;
const BODY: usize = 3 + 1 + 8 + 8;
/// Octets of the elements behind a follow-up at most.
pub const MAX_MORE: usize = 32;

/// Octets of a follow-up with FCS, without elements behind it.
pub const FOLLOW_UP_OCTETS: usize = 24 + 1 + BODY + 4;

/// What a node remembers of the beacons that it heard.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Name and time on the host's clock, newest last.
    heard: [Option<(u64, Instant)>; REMEMBERED],
}

impl References {
    /// Takes in a beacon at the event that tells of it.
    pub fn heard(&mut self, now: Instant, beacon: &Beacon<'_>, radio: &dyn Radio) {
        let received = &beacon.received;
        let at = on_air_local(now, received, radio).unwrap_or_else(|| seen(&received.stamps, now));
        self.note(beacon.timestamp.0, at);
    }

    /// Takes in that an event with this name was heard at `at`.
    pub fn note(&mut self, name: u64, at: Instant) {
        self.heard.rotate_left(1);
        self.heard[REMEMBERED - 1] = Some((name, at));
    }

    /// What the node tells that keeps the time: of the last event.
    pub fn follow_up(&self) -> Option<FollowUp> {
        let (name, at) = self.heard[REMEMBERED - 1]?;
        Some(FollowUp {
            name,
            network: NetworkTime(at.as_ns()),
        })
    }

    /// Takes in what it told. False if this node has not heard that event.
    pub fn follow(&self, told: &FollowUp, sync: &mut Sync) -> bool {
        let mine = self.heard.iter().flatten().find(|h| h.0 == told.name);
        if let Some((_, at)) = mine {
            sync.sample(*at, told.network);
        }
        mine.is_some()
    }
}

/// When the clock that counts showed what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FollowUp {
    /// Timestamp field of the beacon.
    pub name: u64,
    /// What the host clock of the sender showed.
    pub network: NetworkTime,
}

impl FollowUp {
    /// Writes the frame to all with one more element behind it, or none, and returns its octets without FCS.
    ///
    /// # Panics
    /// If `out` is shorter than [`FOLLOW_UP_OCTETS`] and the element, or that has more than [`MAX_MORE`] octets.
    pub fn emit<'o>(
        self,
        me: MacAddr,
        sequence: u16,
        more: Option<Vendor<'_>>,
        out: &'o mut [u8],
    ) -> &'o [u8] {
        let mut body = [0; BODY + MAX_MORE];
        body[..3].copy_from_slice(&OUI);
        body[3] = FOLLOW_UP;
        body[4..12].copy_from_slice(&self.name.to_le_bytes());
        body[12..BODY].copy_from_slice(&self.network.0.to_le_bytes());
        let mut elements = ElementsBuilder::new(&mut body[BODY..]);
        if let Some(vendor) = more {
            elements.push(vendor).expect("it has at most MAX_MORE octets");
        }
        let octets = BODY + elements.finish().octets().len();
        let mut header = MgmtHeader::new(MacAddr::BROADCAST, me, me);
        header.sequence = SequenceControl::new(sequence & 0xfff, 0);
        let action = Action {
            header,
            category: VENDOR_SPECIFIC,
            body: &body[..octets],
        };
        let n = action.emit(out).expect("the buffer is for it");
        &out[..n]
    }

    /// Reads a frame: who tells what, and the elements behind it.
    pub fn parse(mpdu: &[u8]) -> Option<(MacAddr, FollowUp, Elements<'_>)> {
        let action = Action::parse(mpdu).ok()?;
        let (body, more) = action.body.split_at_checked(BODY)?;
        if action.category != VENDOR_SPECIFIC || body[..3] != OUI || body[3] != FOLLOW_UP {
            return None;
        }
        let number = |at: usize| u64::from_le_bytes(body[at..][..8].try_into().expect("eight octets"));
        let told = FollowUp {
            name: number(4),
            network: NetworkTime(number(12)),
        };
        Some((action.header.source, told, Elements::new(more)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::SyncConfig;
    use super::*;
    use crate::dice::Dice;
    use frame::Band;
    use proptest::prelude::*;
    use radio::Duration;
    use std::vec::Vec;

    /// Beacon interval of the model, ns.
    const INTERVAL: u64 = 102_400_000;

    /// A number with mean 0 and standard deviation 1, nearly normal: twelve even ones.
    fn normal(dice: &mut Dice) -> f64 {
        (0..12)
            .map(|_| dice.below(1 << 32) as f64 / 4_294_967_296.0)
            .sum::<f64>()
            - 6.0
    }

    /// How a receiver stamps: standard deviation, and one stamp in so many that is late by up to 100 us. `step`: what its clock counts in.
    #[derive(Clone, Copy)]
    struct Stamper {
        sd_ns: f64,
        late_one_in: u64,
        step: u64,
    }

    impl Stamper {
        fn stamp(&self, true_ns: u64, dice: &mut Dice) -> u64 {
            let late = match self.late_one_in {
                0 => 0,
                n if dice.below(n) == 0 => dice.below(100_000),
                _ => 0,
            };
            let noisy = true_ns as f64 + 12_000.0 + self.sd_ns * normal(dice);
            (noisy as u64 + late) / self.step * self.step
        }
    }

    /// Errors just before the next beacon, in ns, sorted by size: by reference broadcasts, and by timestamps (whole
    /// microseconds) of a sender whose clock counts, with the mean latency compensated.
    fn errors(stamper: Stamper, ppb: i64, seed: u64, beacons: u64) -> [Vec<f64>; 2] {
        let mut dice = Dice(seed);
        let config = SyncConfig::new(Band::Ghz5, Duration::from_ms(1_000));
        let mut by = [Sync::tracking(config), Sync::tracking(config)];
        let (mut master, mut slave) = (References::default(), References::default());
        let mut off = [Vec::new(), Vec::new()];
        // the clock of the slave, against true time
        let local = |t: u64| (t as i64 + (t as i128 * i128::from(ppb) / 1_000_000_000) as i64) as u64;
        for k in 1..=beacons {
            let sent = k * INTERVAL + dice.below(1_000_000);
            let mine = Instant::from_ns(local(stamper.stamp(sent, &mut dice)));
            master.note(k, Instant::from_ns(stamper.stamp(sent, &mut dice)));
            slave.note(k, mine);
            assert!(slave.follow(&master.follow_up().unwrap(), &mut by[0]));
            by[1].sample(mine - Duration::from_us(12), NetworkTime(sent / 1_000 * 1_000));
            if k > 8 {
                let at = (k + 1) * INTERVAL;
                for (sync, off) in by.iter().zip(&mut off) {
                    let shows = sync.to_network(Instant::from_ns(local(at))).unwrap().0;
                    off.push(shows as f64 - at as f64);
                }
            }
        }
        for o in &mut off {
            o.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        }
        off
    }

    fn quantile(sorted: &[f64], p: f64) -> f64 {
        sorted[((sorted.len() - 1) as f64 * p) as usize].abs()
    }

    fn sd(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        (squares / values.len() as f64).sqrt()
    }

    /// The numbers of the book: how far two clocks are apart, by stamp error and drift.
    #[test]
    fn errors_by_jitter_and_drift() {
        const N: u64 = 20_000;
        std::println!("stamp sd ns | late 1 in | ppm | scheme | p50 | p99 | p99.9 | max | sd / model");
        for (sd_ns, late_one_in, step) in [(240.0, 0, 1), (1_000.0, 0, 1), (240.0, 200, 1), (240.0, 0, 1_000)]
        {
            for ppm in [0, 20, 40] {
                let stamper = Stamper {
                    sd_ns,
                    late_one_in,
                    step,
                };
                let off = errors(stamper, ppm * 1_000, 7, N);
                for (name, o) in ["reference", "timestamp"].iter().zip(&off) {
                    let [a, b, c, d] = [0.5, 0.99, 0.999, 1.0].map(|p| quantile(o, p).round());
                    let model = 1.10 * sd_ns;
                    std::println!(
                        "{sd_ns} / {step} | {late_one_in} | {ppm} | {name} | {a} | {b} | {c} | {d} | {:.2}",
                        sd(o) / model
                    );
                }
                // what the model says, for a line through medians that is a little worse than least squares
                if late_one_in == 0 && step == 1 {
                    let ratio = sd(&off[0]) / (1.10 * sd_ns);
                    assert!((0.95..1.25).contains(&ratio), "{ratio}");
                }
                // late stamps are left out, whatever the drift
                assert!(
                    quantile(&off[0], 0.99) < 5.0 * sd_ns.max(step as f64),
                    "{sd_ns} {ppm}"
                );
            }
        }
    }

    #[test]
    fn only_what_both_have_heard_counts() {
        let mut sync = Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(500)));
        let (mut master, mut slave) = (References::default(), References::default());
        assert_eq!(master.follow_up(), None);
        for k in 0..6u64 {
            master.note(k, Instant::from_ns(1_000 * (k + 1)));
            if k % 2 == 0 {
                slave.note(k, Instant::from_ns(2_000 * (k + 1)));
            }
            assert_eq!(slave.follow(&master.follow_up().unwrap(), &mut sync), k % 2 == 0);
        }
        assert_eq!(sync.counters().samples, 3);
        let forgotten = FollowUp {
            name: 77,
            network: NetworkTime(5),
        };
        assert!(!slave.follow(&forgotten, &mut sync));
    }

    proptest! {
        #[test]
        fn there_and_back(
            me: [u8; 6],
            number: u16,
            name: u64,
            network: u64,
            body in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..=MAX_MORE - 5)),
        ) {
            let told = FollowUp { name, network: NetworkTime(network) };
            let mut out = [0; FOLLOW_UP_OCTETS + MAX_MORE];
            let more = body.as_ref().map(|body| Vendor { oui: OUI, body });
            let mpdu = told.emit(MacAddr(me), number, more, &mut out);
            prop_assert_eq!(mpdu.len() + 4, FOLLOW_UP_OCTETS + body.as_ref().map_or(0, |b| 5 + b.len()));
            let (from, read, elements) = FollowUp::parse(mpdu).unwrap();
            prop_assert_eq!((from, read), (MacAddr(me), told));
            prop_assert_eq!(elements.get::<Vendor<'_>>(), more);
        }

        #[test]
        fn any_octets(mpdu in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = FollowUp::parse(&mpdu);
        }
    }
}
