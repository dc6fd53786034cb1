//! `protocol.tbmac` and `protocol.slotted`: slots that hosts agree on, and slots that are all one node's.

use frame::radiotap::Channel;
use frame::{MacAddr, Phy};
use protocols::mac::data::{Identity, Role};
use protocols::mac::overlay::{Access, DEFAULT_HELD_OCTETS};
use protocols::mac::redundancy::trailer;
use protocols::mac::slotted::{LeftOn, SlotBeacon, SlottedConfig};
use protocols::mac::sync::Sync;
use protocols::mac::tbmac::cell::Cell;
use protocols::mac::tbmac::member::PATIENCE;
use protocols::mac::tbmac::rounds::{RoundCosts, Rounds, mpdu_octets};
use protocols::mac::tbmac::{DEFAULT_SLOTS, TbmacConfig};
use radio::{AdapterId, Duration, Queue};
use schemars::JsonSchema;
use serde::Deserialize;
use sim::Position;
use sim::rng::{Cause, Stream};
use toml::Spanned;

use super::attempt::share_a_channel;
use super::build::LLC_SNAP_OCTETS;
use super::check::Check;
use super::file::{File, Group};
use super::node::{category, duration, sender};
use super::protocol::{Protocol, Sending};
use super::release::Release;
use super::source::ScenarioError;
use super::units::*;
use super::walking::Walking;
use super::world::Traffic;

/// Octets of a data frame around its payload at most: QoS header and LLC/SNAP.
const INNER_OCTETS: usize = 26 + 8;

/// Parameters of a host in a cell with 16 slots.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tbmac {
    /// Slots of a contention period, 1 to 8.
    #[serde(default = "four")]
    #[schemars(with = "Small")]
    pub asks: Spanned<Small>,
    /// Longest payload that a slot has room for.
    #[schemars(with = "Small")]
    pub payload_octets: Spanned<Small>,
    /// From waking up for a slot to the first bit on the air, as the host takes it.
    #[serde(default)]
    pub release: Release,
    /// How far the clocks of two hosts may be apart.
    #[serde(default)]
    pub sync_error: Time,
    /// From the end of a frame on the air to the protocol, as the host takes it.
    #[serde(default)]
    pub heard: Time,
    /// Each time a host has asked for a slot in vain so often it asks half as often, down to every eighth round; 0: never.
    #[serde(default = "patience")]
    pub patience: u8,
    /// Many cells, each host in that of its place. Without it all are in one cell, on the channel of the group.
    pub cells: Option<Cells>,
    /// How frames are sent; the queue is `voice` by default.
    pub send: Sending,
}

/// `cells` of `tbmac`: the plane in hexagons, neighbours on different channels, with slots between cells.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cells {
    /// Radius of the circle around a cell: half the range, so that all members hear each other.
    #[schemars(with = "Distance")]
    pub radius_m: Spanned<Distance>,
    /// Numbers of the channels.
    #[schemars(with = "[ChannelNumber; 3]")]
    pub channels: Spanned<[ChannelNumber; 3]>,
    /// What a change of channel takes.
    #[serde(default = "retune")]
    pub retune: Time,
}

fn retune() -> Time {
    Time(200_000)
}
fn four() -> Spanned<Small> {
    Spanned::new(0..0, Small(4))
}
fn patience() -> u8 {
    PATIENCE
}

/// Parameters of a node that owns all slots.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slotted {
    /// Length of a slot.
    #[schemars(with = "Time")]
    pub slot: Spanned<Time>,
    /// How long after the beginning of a slot a frame may still go in it; later it waits for the next one. At any time by default.
    #[schemars(with = "Option<Time>")]
    pub guard: Option<Spanned<Time>>,
    /// Slots from one beacon to the next, 2 or more; none by default.
    pub beacon_every: Option<u32>,
    /// What is not switched off.
    #[serde(default)]
    pub left_on: Switches,
    /// How frames are sent; the queue is `best_effort` by default.
    pub send: Sending,
}

/// What is not switched off at the adapter.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Switches {
    /// ACKs and retries.
    pub acks: bool,
    /// RTS before frames beyond the threshold.
    pub rts: bool,
    /// Duration fields of others are respected.
    pub virtual_carrier_sense: bool,
    /// The medium is sensed.
    pub carrier_sense: bool,
    /// The contention window.
    pub backoff: bool,
    /// Frames are received.
    pub reception: bool,
}

impl Check<'_> {
    /// A host in a cell: its rounds must exist, and its clock must be exact.
    pub(super) fn tbmac(&self, p: &Tbmac, group: &Group) -> Result<(), ScenarioError> {
        let phy = super::node::phy(group.sending_adapter(&p.send).phy);
        let trailer = trailer_octets(group);
        let most = DEFAULT_HELD_OCTETS - INNER_OCTETS - trailer;
        if usize::from(p.payload_octets.get_ref().0) > most {
            let what = format!("a host holds payloads of {most} octets at most");
            return Err(self.source.at(p.payload_octets.span(), what));
        }
        if let Err(e) = rounds(p, &phy, trailer) {
            return Err(self.source.at(p.asks.span(), e.to_string()));
        }
        if p.patience == 0 && p.asks.get_ref().0 == 1 {
            let what = "hosts that ask in the same round would collide in all rounds: more slots to ask in, or a patience";
            return Err(self.source.at(p.asks.span(), what));
        }
        self.release_told(&p.release)?;
        self.cells(p, &phy)?;
        let clock = &group.clock;
        if clock.offset.0 > 0 || clock.drift_ppm.is_some() || clock.drift_within_ppm.is_some() {
            let what = "the hosts of a cell know the time: their clock has no offset and no drift";
            return Err(self.source.at(group.name.span(), what));
        }
        Ok(())
    }

    /// A slot of a host has room for its messages.
    pub(super) fn fits_rounds(&self, group: &Group, t: &Traffic) -> Result<(), ScenarioError> {
        let Protocol::Tbmac(p) = &group.protocol else {
            return Ok(());
        };
        // behind LLC and SNAP
        let (octets, room) = (t.octets.0 - LLC_SNAP_OCTETS, p.payload_octets.get_ref().0);
        if octets <= u32::from(room) {
            return Ok(());
        }
        let what = format!(
            "a message of {octets} octets (without LLC/SNAP) does not fit a slot of {:?}, whose payload_octets is {room}",
            group.name.get_ref()
        );
        Err(self.source.at(t.from.span(), what))
    }

    /// Hosts of one cell have the same rounds, and those without cells are no more than one has slots.
    pub(super) fn agreement(&self) -> Result<(), ScenarioError> {
        let hosts: Vec<(&Group, &Tbmac)> = (self.file.group.iter())
            .filter_map(|g| match &g.protocol {
                Protocol::Tbmac(p) => Some((g, p)),
                _ => None,
            })
            .collect();
        for (n, (group, p)) in hosts.iter().enumerate() {
            let same = |(g, q): &&(&Group, &Tbmac)| match (&p.cells, &q.cells) {
                (Some(_), Some(_)) => true,
                _ => share_a_channel(group, g),
            };
            let times = |group: &Group, p: &Tbmac| {
                let phy = super::node::phy(group.sending_adapter(&p.send).phy);
                let cells = p.cells.as_ref();
                let plane = cells.map(|c| (c.radius_m.get_ref().0, c.mhz(&phy)));
                (rounds(p, &phy, trailer_octets(group)).ok(), plane)
            };
            let earlier = hosts[..n].iter().filter(same);
            for (other, q) in earlier.clone() {
                if times(group, p) != times(other, q) {
                    let what = format!(
                        "the hosts of {:?} and {:?} share a cell, and their rounds differ: give both the same parameters of tbmac, PHY and rate",
                        group.name.get_ref(),
                        other.name.get_ref()
                    );
                    return Err(self.source.at(group.name.span(), what));
                }
            }
            let count = earlier.map(|(g, _)| g.count.0).sum::<u32>() + group.count.0;
            if p.cells.is_none() && count > DEFAULT_SLOTS as u32 {
                let what = format!(
                    "a cell has {DEFAULT_SLOTS} slots, one for each host, and this group makes {count} hosts"
                );
                return Err(self.source.at(group.name.span(), what));
            }
        }
        Ok(())
    }

    fn cells(&self, p: &Tbmac, phy: &Phy) -> Result<(), ScenarioError> {
        let Some(cells) = &p.cells else {
            return Ok(());
        };
        if cells.radius_m.get_ref().0 < 1.0 {
            let what = format!(
                "{}m is no radius of a cell: it has 1m at least",
                cells.radius_m.get_ref().0
            );
            return Err(self.source.at(cells.radius_m.span(), what));
        }
        if cells.mhz(phy).is_none() {
            let what = format!(
                "802.11{} has not all of these channels, or two are the same",
                phy.name
            );
            return Err(self.source.at(cells.channels.span(), what));
        }
        Ok(())
    }

    /// Slots must be slots, and beacons must come.
    pub(super) fn slotted(&self, p: &Slotted) -> Result<(), ScenarioError> {
        self.positive(&p.slot, "a slot")?;
        if let Some(guard) = p.guard.as_ref().filter(|g| g.get_ref() >= p.slot.get_ref()) {
            let what = format!(
                "a guard is shorter than its slot of {}: leave it out for none",
                p.slot
            );
            return Err(self.source.at(guard.span(), what));
        }
        if p.beacon_every.is_some_and(|every| every < 2) {
            return Err(self.source.at(
                p.slot.span(),
                "beacon_every is 2 or more, so that slots are left for data; leave it out for no beacons",
            ));
        }
        Ok(())
    }
}

impl Cells {
    /// Centre frequencies of three different channels.
    fn mhz(&self, phy: &Phy) -> Option<[u16; 3]> {
        let of = |n: ChannelNumber| Channel::of(phy.band, n.0, phy.lowest).map(|c| c.mhz);
        let [a, b, c] = *self.channels.get_ref();
        let all = [of(a)?, of(b)?, of(c)?];
        (all[0] != all[1] && all[1] != all[2] && all[0] != all[2]).then_some(all)
    }
}

/// Octets behind the frames of a group that tell copies.
fn trailer_octets(group: &Group) -> usize {
    group.redundancy.as_ref().map_or(0, |_| trailer::OCTETS)
}

fn rounds(
    p: &Tbmac,
    phy: &Phy,
    trailer: usize,
) -> Result<Rounds, protocols::mac::tbmac::rounds::RoundsError> {
    let asks = p.asks.get_ref().0.min(255) as u8;
    let inner = usize::from(p.payload_octets.get_ref().0) + INNER_OCTETS + trailer;
    let costs = RoundCosts {
        phy: *phy,
        eifs: true,
        rate: p.send.rate.get_ref().0,
        octets: mpdu_octets(inner, asks).min(u16::MAX.into()) as u16,
        asks,
        release: p.release.of_slots(),
        sync_error: duration(p.sync_error),
        heard: duration(p.heard),
    };
    let rounds = Rounds::new(&costs, DEFAULT_SLOTS as u8)?;
    Ok(match &p.cells {
        Some(cells) => rounds.with_borders(duration(cells.retune)),
        None => rounds,
    })
}

/// Who draws the time that all hosts of a run begin at: no node.
const ROUNDS: u64 = 1 << 42;
/// It is drawn from so long: 18 minutes, which are many thousands of rounds.
const WITHIN_NS: u64 = 1 << 40;

/// The host `node`, which starts so long after the scenario, and goes this way. All hosts of a `seed` know the same time,
/// and each seed begins at another one: rounds begin anywhere between messages, and the chances, which hang on round and
/// address, are others.
pub(super) fn host(
    p: &Tbmac,
    (group, phy): (&Group, &Phy),
    (node, seed): (u32, u64),
    start: Duration,
    first: Position,
    way: &[(u64, Position)],
) -> Walking {
    let me = MacAddr::local(node);
    let rounds = rounds(p, phy, trailer_octets(group)).expect("checked");
    let queue: Queue = p.send.queue.map_or(Queue::Voice, |q| category(q).into());
    let adapter = AdapterId(p.send.adapter.get_ref().0);
    let now = Stream::new(seed, ROUNDS, Cause::Place).below(WITHIN_NS);
    let config = TbmacConfig {
        sync: Sync::perfect(now as i64),
        patience: p.patience,
        queue,
        adapter,
        access: Some(Access {
            adapter,
            ..Access::without_backoff(queue, 2)
        }),
        channels: p.cells.as_ref().and_then(|c| c.mhz(phy)),
        ..TbmacConfig::new(me, Cell::default(), rounds)
    };
    let identity = Identity {
        me,
        role: Role::Direct { bssid: MacAddr::ZERO },
    };
    let radius_m = p.cells.as_ref().map(|c| c.radius_m.get_ref().0);
    Walking::new(
        config,
        sender(identity, &p.send, phy),
        radius_m,
        start,
        first,
        way,
    )
}

/// How the node `node` uses its slots.
pub(super) fn slotted(p: &Slotted, node: u32) -> SlottedConfig {
    let on = p.left_on;
    SlottedConfig {
        guard: p.guard.as_ref().map(|g| duration(*g.get_ref())),
        beacon: p.beacon_every.map(|every| SlotBeacon {
            every,
            rate: p.send.rate.get_ref().0,
            ssid: "sdmac",
            queue: Queue::Beacon,
        }),
        queue: p.send.queue.map_or(Queue::BestEffort, |q| category(q).into()),
        adapter: AdapterId(p.send.adapter.get_ref().0),
        left_on: LeftOn {
            acks: on.acks,
            rts: on.rts,
            virtual_carrier_sense: on.virtual_carrier_sense,
            carrier_sense: on.carrier_sense,
            backoff: on.backoff,
            reception: on.reception,
        },
        ..SlottedConfig::new(MacAddr::local(node), duration(*p.slot.get_ref()))
    }
}

impl File {
    /// Whether hosts of TBMAC are in several cells.
    pub fn has_borders(&self) -> bool {
        let several = |g: &Group| matches!(&g.protocol, Protocol::Tbmac(p) if p.cells.is_some());
        self.group.iter().any(several)
    }
}
