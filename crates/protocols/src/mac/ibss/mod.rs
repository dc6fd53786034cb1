//! Ad hoc networks (IBSS) with power save (IEEE 802.11-2016, 11.1.4 and 11.2.5): the innermost protocol of stations
//! that talk to each other without an access point.
//!
//! ```text
//! Idle --begin--> Scanning --heard a network of the name--> Member
//!                    +-------- time is over: creates one --->+
//!
//! interval of a member:
//! TBTT |- beacon after a random delay, unless another's comes first; ATIMs -| data to those who are awake, or doze |
//!      |<---------------------- ATIM window ------------------------------->|
//! ```
//!
//! - The TSF of the adapter is the clock of the network: who hears a later timestamp adopts it. Of two networks of one
//!   name the one that is behind joins the other.
//! - Without an ATIM window everything is sent at once.
//! - With one, everybody is awake in it. Who has something for another says so with an ATIM; after the window it goes to
//!   whoever acknowledged that. Who has neither sent nor received an ATIM nor sent the beacon dozes until the next TBTT.
//! - ATIMs may go on from station to station within a window, up to whom the packet is for ([`Routing`]).
//! - Whoever sent the last beacon answers probe requests, and who is asked by its address does; or dozes, too, and repeats the beacon
//!   ([`IbssConfig::soft_beacon`]).
//!
//! It asks the host for: [`Attribute::Tsf`] to read and to set, [`Attribute::Bssid`], [`Attribute::Reception`], which
//! is how it dozes, and where it is there [`Attribute::ReceiveFilter`], so that a slow host is spared what is of no use in
//! a part of the interval. A host that cannot tell the TSF gets a network that runs on its own clock. An adapter that knows
//! [`Attribute::BeaconTiming`] is told that of the network, and later timestamps of it are left to it: what is reckoned here would
//! come too late. Elsewhere they are adopted here; where the adapter does not say when a frame came, a station so stays
//! behind the first by up to the latency of its host and the time of a beacon on the air. The delay before a beacon
//! is counted here, so a late host contends late; whoever then finds the medium busy draws the backoff of its queue.
//!
//! Frames are plain data with LLC/SNAP; with the feature `ccmp` and a key ([`IbssConfig`]) protected by CCMP.

mod adapt;
mod config;
mod energy;
mod filter;
mod interval;
mod member;
mod multihop;
mod neighbours;
mod network;
mod protection;
mod queue;
mod receive;
mod soft_beacon;
mod traffic;

pub use config::{IbssConfig, IbssCounters};
pub use energy::{Energy, PowerProfile};
pub use multihop::{Direct, Ended, Routing};
pub use neighbours::Neighbour;
pub use network::Network;

use super::data::Duplicates;
use crate::dice::Dice;
use adapt::Ahead;
use energy::Ledger;
use frame::phy::ACK_OCTETS;
use frame::{Band, MacAddr, Rate, RateSet, ppdu_us, response_rate};
use neighbours::Neighbours;
use protection::Protection;
use queue::Queue;
use radio::{
    AdapterId, Attribute, AttributeName, Confirm, Duration, Event, Instant, Msdu, Protocol, Radio,
    ReceiveFilter, Token, Tsf,
};

/// Transmitters of which repetitions are known.
const KNOWN: usize = 16;
/// Where a frame says whom it is for.
const RECEIVER: core::ops::Range<usize> = 4..10;

/// Where a station stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Scanning(Instant),
    Member(Network),
}

/// A request that is below.
#[derive(Clone, Copy, Debug)]
struct Sent {
    token: Token,
    to: MacAddr,
    octets: usize,
}

/// See the [module](self). Up to `Q` MSDUs of up to `L` octets wait for their receivers. `W` knows the ways over several hops
/// ([`IbssConfig::multi_hop`]).
#[derive(Clone, Debug)]
pub struct Ibss<const Q: usize = 16, const L: usize = 1_500, W = Direct> {
    config: IbssConfig,
    routing: W,
    phase: Phase,
    dice: Dice,
    sequence: u16,
    neighbours: Neighbours,
    queue: Queue<Q, L>,
    duplicates: Duplicates<KNOWN>,
    protection: Protection,
    ledger: Ledger,
    ahead: Ahead,
    counters: IbssCounters,
    band: Band,
    /// The next TBTT, and when the last one of this network was told.
    tbtt: Instant,
    begun: Option<Instant>,
    beacon_at: Option<Instant>,
    window_end: Option<Instant>,
    beacon: Option<Sent>,
    atim: Option<Sent>,
    /// Whom the frames that this ATIM announces are for in the end.
    atim_for: MacAddr,
    data: Option<Sent>,
    other: Option<Sent>,
    setting_tsf: Option<Token>,
    group_announced: bool,
    /// In this interval there is data for a group.
    hears_group: bool,
    /// The filter behind the window has been set.
    calm: bool,
    sent_last_beacon: bool,
    /// In this interval it has sent the beacon, and there is a reason besides that to stay awake.
    sent_beacon: bool,
    stays: bool,
    /// It is in a soft-beacon window.
    soft: bool,
    dozes: bool,
    /// The adapter is being put to sleep.
    dozing: Option<Token>,
    /// What it has asked to be told of; `None`: the adapter has no filter.
    filter: Option<ReceiveFilter>,
}

impl<const Q: usize, const L: usize> Ibss<Q, L> {
    /// A station that is in no network.
    pub fn new(config: IbssConfig) -> Self {
        Self::with_routing(config, Direct)
    }
}

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// A station that is in no network. Where packets go over several hops, `routing` knows the ways.
    pub fn with_routing(config: IbssConfig, routing: W) -> Self {
        let [.., a, b, c, d] = config.me.0;
        let address = u64::from(u32::from_be_bytes([a, b, c, d]));
        Ibss {
            config,
            routing,
            phase: Phase::Idle,
            dice: Dice(
                config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ address.wrapping_mul(0xbf58_476d_1ce4_e5b9),
            ),
            sequence: 0,
            neighbours: Neighbours::new(),
            queue: Queue::new(),
            duplicates: Duplicates::default(),
            protection: Protection::new(&config),
            ledger: Ledger::default(),
            ahead: Ahead::new(&config),
            counters: IbssCounters::default(),
            band: Band::Ghz5,
            tbtt: Instant::ZERO,
            begun: None,
            beacon_at: None,
            window_end: None,
            beacon: None,
            atim: None,
            atim_for: MacAddr::ZERO,
            data: None,
            other: None,
            setting_tsf: None,
            group_announced: false,
            hears_group: false,
            calm: false,
            sent_last_beacon: false,
            sent_beacon: false,
            stays: false,
            soft: false,
            dozes: false,
            dozing: None,
            filter: None,
        }
    }

    /// How it takes part.
    pub fn config(&self) -> &IbssConfig {
        &self.config
    }

    /// The network that it is in.
    pub fn network(&self) -> Option<&Network> {
        match &self.phase {
            Phase::Member(network) => Some(network),
            _ => None,
        }
    }

    /// What knows the ways.
    pub fn routing(&self) -> &W {
        &self.routing
    }

    /// What knows the ways, to be told of others.
    pub fn routing_mut(&mut self) -> &mut W {
        &mut self.routing
    }

    /// What it has counted.
    pub fn counters(&self) -> &IbssCounters {
        &self.counters
    }

    /// What was protected and opened; `None` without a key.
    #[cfg(feature = "ccmp")]
    pub fn protected(&self) -> Option<&super::ccmp::CcmpCounters> {
        self.protection.counters()
    }

    /// Packet numbers go on from `first_pn` at least: for who learns later than [`IbssConfig::secret`] which were not used yet.
    #[cfg(feature = "ccmp")]
    pub fn number_packets_from(&mut self, first_pn: u64) {
        self.protection.number_from(first_pn);
    }

    /// [`IbssConfig::slot`] from the next TBTT on: the host is another one than the configuration was made for.
    pub fn set_beacon_slot(&mut self, slot: Duration) {
        self.config.slot = slot;
    }

    /// Stations that were heard of late.
    pub fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.iter()
    }

    /// Where its radio's time went until `now`.
    pub fn energy(&self, now: Instant) -> Energy {
        self.ledger.close(now)
    }

    /// How long before a TBTT it wakes up: as configured or adapted, and at most half of what the ATIM window leaves of an
    /// interval. The other half is for data, which ends that long before a TBTT.
    pub fn wake_ahead(&self) -> Duration {
        let wanted = self.ahead.time(&self.config);
        self.network()
            .filter(|network| network.atim_window_tu > 0)
            .map_or(wanted, |network| wanted.min(network.longest_wake_ahead()))
    }

    /// MSDUs that wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether it dozes.
    pub fn is_dozing(&self) -> bool {
        self.dozes
    }

    /// A number below `n`, all equally likely.
    fn draw(&mut self, n: u64) -> u64 {
        self.dice.below(n)
    }

    fn next_sequence(&mut self) -> u16 {
        self.sequence = (self.sequence + 1) & 0xfff;
        self.sequence
    }

    /// The adapter's TSF; where the host cannot tell it, its own clock stands in.
    fn tsf(now: Instant, radio: &dyn Radio) -> Tsf {
        match radio.get(AdapterId::FIRST, AttributeName::Tsf) {
            Some(Attribute::Tsf(tsf)) => tsf,
            _ => Tsf(now.as_ns() / 1_000),
        }
    }

    fn set(radio: &mut dyn Radio, attribute: Attribute) -> Token {
        let token = radio.token();
        radio.set(token, AdapterId::FIRST, attribute);
        token
    }

    /// Time on the air of `octets` without FCS.
    fn airtime(&self, rate: Rate, octets: usize) -> Duration {
        Duration::from_us(ppdu_us(rate, octets as u32 + 4, self.band).into())
    }

    /// Time on the air of the ACK that answers a frame sent at `rate`.
    fn ack_airtime(&self, rate: Rate) -> Duration {
        let rate = response_rate(rate, RateSet::EMPTY.with(self.config.group_rate));
        Duration::from_us(ppdu_us(rate, ACK_OCTETS, self.band).into())
    }

    fn start(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.ledger.start(now);
        self.find_filter(radio);
        if let Some(Attribute::Channel(0..3_000)) = radio.get(AdapterId::FIRST, AttributeName::Channel) {
            self.band = Band::Ghz2_4;
        }
        if self.config.autostart {
            self.begin(now, radio);
        }
    }

    fn timer(&mut self, now: Instant, radio: &mut dyn Radio) {
        match self.phase {
            Phase::Scanning(until) if until <= now => self.create(now, radio),
            Phase::Member(network) => self.member_timer(now, &network, radio),
            _ => {}
        }
    }

    fn submit(&mut self, msdu: &Msdu<'_>) {
        self.counters.submitted += 1;
        let fits = msdu.payload.len() <= super::data::MAX_PAYLOAD_OCTETS;
        if !fits || !self.queue.push(msdu) {
            self.counters.no_room += 1;
        }
    }

    fn confirm(&mut self, now: Instant, confirm: &Confirm, radio: &mut dyn Radio) {
        let ours = |sent: &mut Sent| sent.token == confirm.token;
        let (sent, which) = if let Some(sent) = self.beacon.take_if(ours) {
            self.beacon_confirmed(confirm);
            (sent, self.config.group_rate)
        } else if let Some(sent) = self.atim.take_if(ours) {
            self.atim_confirmed(&sent, confirm);
            (sent, self.config.group_rate)
        } else if let Some(sent) = self.data.take_if(ours) {
            self.data_confirmed(now, confirm);
            (sent, confirm.rate)
        } else if let Some(sent) = self.other.take_if(ours) {
            (sent, self.config.group_rate)
        } else {
            return;
        };
        let once = self.airtime(which, sent.octets);
        self.ledger.sent(once.times(confirm.attempts.into()));
        if confirm.outcome.is_acked() {
            self.ledger.received(self.ack_airtime(which));
        }
        self.pump(now, radio);
        self.doze_on(now, radio);
    }
}

impl<const Q: usize, const L: usize, W: Routing> Protocol for Ibss<Q, L, W> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.start(now, radio),
            Event::Timer => self.timer(now, radio),
            Event::Submit(msdu) => self.submit(&msdu),
            Event::Confirm(confirm) => return self.confirm(now, &confirm, radio),
            Event::Indication(received) | Event::Beacon(radio::Beacon { received, .. }) => {
                let time = self.airtime(received.rate, received.frame.len());
                self.ledger.received(time);
                if received.frame.get(RECEIVER) == Some(&self.config.me.0) {
                    self.ledger.sent(self.ack_airtime(received.rate));
                }
                self.indication(now, &received, radio);
            }
            Event::Set(answer) => {
                if self.ahead.is_awake(answer.token) {
                    self.woken(now > self.tbtt);
                }
                if self.setting_tsf.take_if(|t| *t == answer.token).is_some() {
                    self.plan(now, radio);
                }
                if self.dozing.take_if(|t| *t == answer.token).is_some() && answer.result.is_err() {
                    self.cannot_doze();
                }
            }
        }
        self.pump(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Idle => None,
            Phase::Scanning(until) => Some(until),
            Phase::Member(_) if self.dozes => {
                let wakes = self.tbtt - self.wake_ahead();
                Some(self.beacon_at.map_or(wakes, |t| t.min(wakes)))
            }
            Phase::Member(_) => {
                let all = [
                    Some(self.tbtt),
                    self.beacon_at,
                    self.window_end,
                    self.next_filter().map(|(at, _)| at),
                ];
                all.into_iter().flatten().min()
            }
        }
    }
}

#[cfg(test)]
mod tests;
