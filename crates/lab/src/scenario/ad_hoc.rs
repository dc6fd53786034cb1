//! `protocol.ibss`: stations of an ad hoc network, with power save, over one hop or along a line.

use std::ops::Range;

use frame::{MacAddr, Phy};
use protocols::mac::ccmp::Secret;
use protocols::mac::ibss::{Ibss, IbssConfig, Network, PowerProfile};
use protocols::mesh::{Relay, RouteTable};
use radio::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::check::Check;
use super::file::Group;
use super::node::duration;
use super::program::Program;
use super::protocol::{Protocol, Sending};
use super::source::ScenarioError;
use super::units::*;

/// Messages that wait at a station, octets of the longest, with the 20 octets of its header on a line; and stations of the
/// longest line.
const QUEUE: usize = 16;
/// See [`QUEUE`].
const LONGEST: usize = 1_500;
/// See [`QUEUE`].
const LINE: usize = 64;
/// Until a station on a stick knows of another's beacon, in round numbers: of three in a room about one then sends in each interval.
const ON_RADIOS: Duration = Duration::from_us(400);
/// Octets of LLC/SNAP and of the header of a datagram.
const HEADERS: u32 = 8 + 20;
/// All have the same from the beginning, so that there is one network. Nobody has been given it.
const BSSID: MacAddr = MacAddr([0x02, b'i', b'b', b's', b's', 0]);

/// A station.
pub type Station = Ibss<QUEUE, LONGEST>;
/// A station of a line.
pub type LineStation = Relay<QUEUE, LONGEST, LINE>;

/// Parameters of a station in the ad hoc network of the scenario.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdHoc {
    /// Beacon interval, TU.
    #[serde(default = "hundred")]
    #[schemars(with = "Small")]
    pub interval_tu: Spanned<Small>,
    /// ATIM window, TU, below the interval; 0: nobody saves power.
    #[serde(default = "none")]
    #[schemars(with = "TimeUnits")]
    pub window_tu: Spanned<TimeUnits>,
    /// A station that is awake only because it sent the beacon dozes, and repeats the beacon in this period.
    #[schemars(with = "Option<Time>")]
    pub soft_beacon: Option<Spanned<Time>>,
    /// How long before a TBTT a station wakes up: at most half of what the window leaves of an interval, which is the time for data.
    /// Left out: 1 TU.
    #[schemars(with = "Option<Time>")]
    pub wake_ahead: Option<Spanned<Time>>,
    /// That time adapts itself, between 2 and 16 TU.
    #[serde(default)]
    pub adapt_wake_ahead: bool,
    /// The delay before a beacon is 0 to 2 CWmin of these. Longer than it takes until a station knows of another's beacon, or
    /// everybody sends one in each interval. Left out: the slot of the PHY, and on a radio of a computer 400us, or less if they would
    /// not end within the window or, without one, the interval.
    #[schemars(with = "Option<Time>")]
    pub slot: Option<Spanned<Time>>,
    /// The nodes of the group relay for each other, from neighbour to neighbour in the order of their numbers. Otherwise all
    /// reach each other over one hop.
    #[serde(default)]
    pub line: bool,
    /// ATIMs name the final destination and are handed on.
    #[serde(default)]
    pub multi_hop: bool,
    /// What an adapter with a receive filter tells of received frames follows the part of the interval. Of the hosts here AR9170
    /// sticks have one, and the simulator's adapters do not.
    #[serde(default)]
    pub receive_filter: bool,
    /// Data frames are protected by CCMP-128 with this key. All stations of the network have the same, or none.
    #[schemars(with = "Option<Key>")]
    pub key: Option<Spanned<Key>>,
    /// What the radio draws. Left out: round numbers.
    pub power: Option<Power>,
    /// How data frames are sent: rate, tries, and the rate of all else.
    pub send: Sending,
}

/// What a radio draws by state, in milliwatts.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// While it sends.
    pub transmit_mw: Milliwatts,
    /// While it receives a frame.
    pub receive_mw: Milliwatts,
    /// While it listens.
    pub listen_mw: Milliwatts,
    /// While it dozes.
    pub doze_mw: Milliwatts,
}

impl AdHoc {
    /// What its radio draws.
    pub fn power(&self) -> PowerProfile {
        self.power.map_or(PowerProfile::TYPICAL, |p| PowerProfile {
            transmit_mw: p.transmit_mw.0,
            receive_mw: p.receive_mw.0,
            listen_mw: p.listen_mw.0,
            doze_mw: p.doze_mw.0,
        })
    }
}

/// A key of 128 bits, written as 32 hexadecimal digits. It is not printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Key, D::Error> {
        let digits = String::deserialize(d)?;
        // without the digits: what is nearly a key is not to be printed either
        let wrong = || serde::de::Error::custom("this is no key: 32 hexadecimal digits");
        let is_key = digits.len() == 32 && digits.bytes().all(|c| c.is_ascii_hexdigit());
        let number = is_key.then(|| u128::from_str_radix(&digits, 16).ok()).flatten();
        Ok(Key(number.ok_or_else(wrong)?.to_be_bytes()))
    }
}

impl JsonSchema for Key {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Key".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "a key of 32 hexadecimal digits", "pattern": "^[0-9a-fA-F]{32}$" })
    }
}

fn hundred() -> Spanned<Small> {
    Spanned::new(0..0, Small(100))
}
fn none() -> Spanned<TimeUnits> {
    Spanned::new(0..0, TimeUnits(0))
}

impl Check<'_> {
    /// A station and its numbers.
    pub(super) fn ad_hoc(&self, p: &AdHoc, group: &Group, phy: &Phy) -> Result<(), ScenarioError> {
        let wrong = |span: Range<usize>, what: String| Err(self.source.at(span, what));
        let window = &p.window_tu;
        if window.get_ref().0 >= p.interval_tu.get_ref().0 {
            let what = format!(
                "a window of {} TU leaves nothing of an interval of {} TU: make it shorter",
                window.get_ref().0,
                p.interval_tu.get_ref().0
            );
            return wrong(window.span(), what);
        }
        if let Some(period) = &p.soft_beacon
            && period.get_ref().0 < 1_000_000
        {
            let what = format!("{period} is too short for soft beacons: 1ms or more");
            return wrong(period.span(), what);
        }
        let network = Network {
            bssid: BSSID,
            interval_tu: p.interval_tu.get_ref().0,
            atim_window_tu: window.get_ref().0,
        };
        let longest = network.longest_wake_ahead();
        if let Some(ahead) = &p.wake_ahead
            && window.get_ref().0 > 0
            && duration(*ahead.get_ref()) > longest
        {
            let what = format!(
                "{ahead} before a TBTT leaves too little time for data between two windows: {} or less",
                Time(longest.as_ns())
            );
            return wrong(ahead.span(), what);
        }
        if let Some(slot) = &p.slot {
            let slots = u64::from(2 * phy.cw_min);
            let most_ns = u64::from(p.interval_tu.get_ref().0) * 1_024_000 / slots;
            if !(1_000..=most_ns).contains(&slot.get_ref().0) {
                let what = format!(
                    "a slot of {slot} does not fit: 1us to {}, so that {slots} of them end within the interval",
                    Time(most_ns / 1_000 * 1_000)
                );
                return wrong(slot.span(), what);
            }
        }
        let other = self.file.group.iter().find_map(|g| match &g.protocol {
            Protocol::Ibss(o) if key(o) != key(p) => Some(g.name.get_ref()),
            _ => None,
        });
        if let (Some(own), Some(other)) = (&p.key, other) {
            let what = format!(
                "the stations of {other:?} have another key or none, and hear nothing: give all the same"
            );
            return wrong(own.span(), what);
        }
        if p.line && group.count.0 as usize > LINE {
            let what = format!(
                "a line has at most {LINE} stations, this one has {}",
                group.count.0
            );
            return wrong(group.name.span(), what);
        }
        let send = &p.send;
        if send.queue.is_some() || send.qos || send.rts || !send.ack || send.adapter.get_ref().0 > 0 {
            let what = "an ad hoc network sends plain data with ACKs on the first adapter: of `send` it takes rate, tries and \
                        broadcast_rate";
            return wrong(send.rate.span(), what.into());
        }
        Ok(())
    }

    /// What goes from or to the ad hoc network stays in it, and along a line within the line.
    pub(super) fn stays_in_network(
        &self,
        from: (&Group, u32),
        to: &Group,
        span: Range<usize>,
    ) -> Result<(), ScenarioError> {
        let (from, octets) = from;
        let parameters = |g: &Group| match &g.protocol {
            Protocol::Ibss(p) => Some(p.line),
            _ => None,
        };
        let what = match (parameters(from), parameters(to)) {
            (None, None) => return Ok(()),
            (Some(false), Some(false)) => None,
            (Some(true), Some(true)) if from.name == to.name => None,
            (Some(_), Some(_)) => Some("a line reaches its own stations only: put both into one group"),
            _ => {
                Some("one of them is in the ad hoc network and the other is not: give both the protocol ibss")
            }
        };
        if let Some(why) = what {
            let (a, b) = (from.name.get_ref(), to.name.get_ref());
            let what = format!("nothing gets from {a:?} to {b:?}: {why}");
            return Err(self.source.at(span, what));
        }
        if octets > LONGEST as u32 + 8 - HEADERS {
            let most = LONGEST as u32 + 8 - HEADERS;
            let what = format!("{octets} octets are too long for the ad hoc network, which takes {most}");
            return Err(self.source.at(span, what));
        }
        Ok(())
    }
}

/// The slot on a radio of a computer, if the scenario says none: with that of the PHY nobody there knows of another's beacon in time,
/// and everybody sends one in each interval and stays awake for it.
pub(super) fn slot_on_radios(p: &AdHoc, phy: &Phy) -> Option<Duration> {
    let within_tu = match p.window_tu.get_ref().0 {
        0 => p.interval_tu.get_ref().0,
        window => window,
    };
    let most_us = u64::from(within_tu) * 1_024 / u64::from(2 * phy.cw_min);
    let slot = Duration::from_us(most_us).min(ON_RADIOS);
    p.slot
        .is_none()
        .then(|| slot.max(Duration::from_us(u64::from(phy.slot_us))))
}

fn key(p: &AdHoc) -> Option<Key> {
    p.key.as_ref().map(|key| *key.get_ref())
}

/// A station of `group`, whose nodes have these numbers.
pub(super) fn station(p: &AdHoc, phy: &Phy, group: &Range<u32>, node: u32, seed: u64) -> Program {
    let send = &p.send;
    let me = MacAddr::local(node);
    let config = IbssConfig {
        interval_tu: p.interval_tu.get_ref().0,
        atim_window_tu: p.window_tu.get_ref().0,
        bssid: Some(BSSID),
        scan: Duration::from_ms(1),
        active_scan: false,
        wake_ahead: p
            .wake_ahead
            .as_ref()
            .map_or(Duration::from_tu(1), |t| duration(*t.get_ref())),
        adapt_wake_ahead: p.adapt_wake_ahead,
        soft_beacon: p.soft_beacon.as_ref().map(|t| duration(*t.get_ref())),
        multi_hop: p.multi_hop,
        receive_filter: p.receive_filter,
        // a world of its own begins at 1; what runs on a radio is told another number
        secret: key(p).map(|Key(key)| Secret {
            key,
            id: 0,
            first_pn: 1,
        }),
        group_rate: send.group_rate(phy),
        tries: send.tries.0,
        slot: p
            .slot
            .as_ref()
            .map_or(Duration::from_us(u64::from(phy.slot_us)), |t| {
                duration(*t.get_ref())
            }),
        cw_min: phy.cw_min,
        seed,
        ..IbssConfig::new(me, "sdmac", send.rate.get_ref().0)
    };
    if !p.line {
        return Program::Ibss(Box::new(Station::new(config)));
    }
    let others = group.clone().filter(|to| *to != node);
    let routes = others.map(|to| {
        let next = if to > node { node + 1 } else { node - 1 };
        (MacAddr::local(to), MacAddr::local(next))
    });
    Program::Relay(Box::new(LineStation::new(config, RouteTable::new(routes))))
}
