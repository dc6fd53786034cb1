//! The link of the paper: an access point that releases a frame of 1500 octets in each slot of 256 us, and a station that
//! stamps what arrives.

use std::cell::RefCell;
use std::rc::Rc;

use frame::{AccessCategory, GuardInterval, MacAddr, Phy, Rate, RateSet, Width};
use protocols::mac::data::Identity;
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::slotted::{LeftOn, SlotBeacon, Slotted, SlottedConfig};
use radio::{AckPolicy, Confirm, Duration, Event, Instant, Protocol, Queue, Radio, RtsPolicy, Token, TxHow};
use sim::host::InterruptConfig;
use sim::rng::{Cause, Stream};
use sim::trace::{OnAir, ReceptionEnd, Transmission};
use sim::{
    AdapterConfig, LinkLoss, LossModel, MediumConfig, NodeConfig, Observer, Pattern, Position, Process,
    Traffic, World,
};

use super::super::counts::Counts;
use super::calibrate::{Model, STEP_US};

/// A slot, ns.
pub const SLOT_NS: u64 = 256_000;
/// Slots from beacon to beacon.
pub const BEACON_EVERY: u32 = 400;
/// Payload of a frame.
pub const OCTETS: usize = 1_500;
/// How much slower the station's clock runs: mean intervals of 255.995 us.
const SLOW_PPM: f64 = 19.5;
const AP: MacAddr = MacAddr::local(1);
const STATION: MacAddr = MacAddr::local(2);
/// Numbers of the nodes.
const AP_NODE: u32 = 0;
const STATION_NODE: u32 = 1;

/// MCS 5 at 40 MHz with the long guard interval.
pub fn rate() -> Rate {
    Rate::ht(5, Width::Mhz40, GuardInterval::Long).expect("an MCS")
}

/// Others on the channel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Foreign {
    /// Nobody.
    Nobody,
    /// Probe requests of so many octets (with FCS), at all times of a slot.
    Probes(u16, Rate),
    /// Two stations that exchange 500 octets at 6 Mb/s with RTS and CTS, every 5.3 ms.
    Pair,
}

/// How the access point sends its beacons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beacons {
    /// In slots of their own and in the queue of the data, as the paper does: all go in their order.
    InLine,
    /// In slots of their own, but in the queue that goes before all others.
    First,
    /// In that queue, at 6 Mb/s with [`BEACON_OCTETS`], by a timer that knows nothing of slots.
    OwnTimer,
}

/// Length of a beacon of 802.11n, with FCS; 200 to 300 octets.
pub const BEACON_OCTETS: u16 = 250;
/// From one probe request to the next, and between beacons by a timer of their own: they come at all times of a slot.
const EVERY: Duration = Duration::from_us(10_100);

/// How the link is run.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditions {
    /// What is not switched off at the access point.
    pub left_on: LeftOn,
    /// RTS is asked for with every frame; it is sent if it is left on.
    pub rts: bool,
    /// Late releases; `None`: all are on time.
    pub model: Option<Model>,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Who else is there.
    pub foreign: Foreign,
    /// How beacons are sent.
    pub beacons: Beacons,
    /// 5 GHz, or 2.4.
    pub phy: Phy,
}

/// What the station and the air say.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Arrivals {
    /// Intervals between packets that follow each other with no beacon between, in ns of whole us.
    pub intervals: Counts,
    /// Packets received.
    pub received: u64,
    /// Packets sent and not received.
    pub lost: u64,
    /// Beacons sent.
    pub beacons: u64,
    /// From the release of a packet to the end of its exchange, less the packet's own time on the air.
    pub waits: Counts,
}

impl Arrivals {
    /// Takes in another part of the same experiment.
    pub fn merge(&mut self, other: &Arrivals) {
        self.intervals.merge(&other.intervals);
        self.waits.merge(&other.waits);
        self.received += other.received;
        self.lost += other.lost;
        self.beacons += other.beacons;
    }
}

struct Recorder {
    arrivals: Arrivals,
    step: f64,
    stream: Stream,
    /// Stamp of the last packet, if what follows makes an interval with it.
    last_us: Option<u64>,
    /// A beacon was the last to go on the air.
    is_beacon: bool,
    /// Packets that are released and not confirmed.
    released: Vec<(Token, u64)>,
    sent: u64,
}

impl Recorder {
    fn transmission(&mut self, t: &Transmission<'_>) {
        if t.node != AP_NODE || t.what != OnAir::Frame {
            return;
        }
        self.is_beacon = t.frame[0] == 0x80;
        if self.is_beacon {
            self.arrivals.beacons += 1;
            self.last_us = None;
        }
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        if r.adapter != STATION_NODE || r.from != AP_NODE || r.what != OnAir::Frame || self.is_beacon {
            return;
        }
        if !r.ok {
            self.last_us = None;
            return;
        }
        self.arrivals.received += 1;
        // the clock of the station, in whole us, and its steps
        let shown = r.at_ns as f64 * (1.0 - SLOW_PPM / 1e6) / 1e3;
        let step = if self.stream.chance(self.step) { STEP_US } else { 0 };
        let stamp = shown as u64 + step;
        if let Some(last) = self.last_us.replace(stamp) {
            self.arrivals.intervals.push((stamp - last) * 1_000);
        }
    }

    fn confirmed(&mut self, token: Token, exchange_ns: Option<(u64, u64)>) {
        let Some(i) = self.released.iter().position(|r| r.0 == token) else {
            return;
        };
        let (_, at) = self.released.swap_remove(i);
        if let Some((_, end)) = exchange_ns {
            self.sent += 1;
            let airtime = u64::from(frame::ppdu_us(rate(), OCTETS as u32 + 38, Phy::N5.band)) * 1_000;
            self.arrivals.waits.push((end - at).saturating_sub(airtime));
        }
    }
}

struct Shared(Rc<RefCell<Recorder>>);

impl Observer for Shared {
    fn transmission(&mut self, t: &Transmission<'_>) {
        self.0.borrow_mut().transmission(t);
    }
    fn reception(&mut self, r: &ReceptionEnd) {
        self.0.borrow_mut().reception(r);
    }
    fn requested(&mut self, now_ns: u64, node: u32, token: Token, frame: &[u8]) {
        if node == AP_NODE && frame[0] != 0x80 {
            self.0.borrow_mut().released.push((token, now_ns));
        }
    }
    fn confirmed(&mut self, _: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        if node == AP_NODE {
            self.0.borrow_mut().confirmed(confirm.token, exchange_ns);
        }
    }
}

/// Sends a frame of a fixed length now and then.
struct Prober {
    octets: u16,
    how: TxHow,
    /// First octet of its frames: what they are.
    kind: u8,
    next: Instant,
    token: Token,
}

impl Prober {
    fn new(octets: u16, kind: u8, how: TxHow) -> Prober {
        Prober {
            octets,
            how,
            kind,
            next: Instant::from_us(5_000),
            token: Token(u64::MAX),
        }
    }
}

impl Protocol for Prober {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if event != Event::Timer {
            return;
        }
        let mut frame = vec![0; usize::from(self.octets) - 4];
        frame[0] = self.kind;
        frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
        frame[10..16].copy_from_slice(&MacAddr::local(9).0);
        frame[16..22].copy_from_slice(&MacAddr::BROADCAST.0);
        self.token = radio.token();
        radio.request(self.token, &frame, &self.how);
        self.next += EVERY;
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

#[allow(clippy::large_enum_variant, reason = "a handful of nodes for each world")]
enum Role {
    /// With beacons that know nothing of slots, or without.
    AccessPoint(Slotted<Sender<1>, 8>, Option<Prober>),
    Other(Sender<4>),
    Prober(Prober),
}

impl Protocol for Role {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Role::AccessPoint(_, Some(beacons)) if matches!(event, Event::Confirm(c) if c.token == beacons.token) =>
                {}
            Role::AccessPoint(slots, beacons) => {
                if let Some(beacons) = beacons.as_mut().filter(|b| b.next <= now) {
                    beacons.handle(now, event, radio);
                }
                slots.handle(now, event, radio);
            }
            Role::Other(p) => p.handle(now, event, radio),
            Role::Prober(p) => p.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Role::AccessPoint(slots, beacons) => {
                let all = [slots.deadline(), beacons.as_ref().and_then(Prober::deadline)];
                all.into_iter().flatten().min()
            }
            Role::Other(p) => p.deadline(),
            Role::Prober(p) => p.deadline(),
        }
    }
}

/// Runs the link for `slots` slots.
pub fn run(conditions: &Conditions, seed: u64, slots: u64) -> Arrivals {
    let mhz = if conditions.phy == Phy::N5 { 5_180 } else { 2_437 };
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world = World::new(&medium, seed);
    let node = |address| {
        let adapter = AdapterConfig {
            basic: RateSet::OFDM_6_ONLY,
            ..AdapterConfig::station(address, conditions.phy, mhz, true)
        };
        NodeConfig::ideal(Position::default(), adapter)
    };
    let mut sender = SenderConfig::new(Identity::access_point(AP), rate());
    if !conditions.left_on.acks {
        // the frame says so too, or the station would send ACKs into the next slot
        sender.how.ack = AckPolicy::NoAck;
    }
    if conditions.rts {
        sender.how.rts = RtsPolicy::Always;
    }
    let slotted = SlottedConfig {
        beacon: (conditions.beacons != Beacons::OwnTimer).then_some(SlotBeacon {
            every: BEACON_EVERY,
            rate: rate(),
            ssid: "slots",
            queue: match conditions.beacons {
                Beacons::InLine => Queue::BestEffort,
                Beacons::First | Beacons::OwnTimer => Queue::Beacon,
            },
        }),
        left_on: conditions.left_on,
        ..SlottedConfig::new(AP, Duration::from_ns(SLOT_NS))
    };
    let interrupts = conditions.model.as_ref().map(|m| InterruptConfig {
        late: m.late.clone(),
        ..InterruptConfig::default()
    });
    let access_point = NodeConfig {
        interrupts,
        ..node(AP)
    };
    let own_timer = (conditions.beacons == Beacons::OwnTimer).then(|| {
        let how = TxHow::one_shot(Rate::OFDM_6).queue(Queue::Beacon);
        Prober::new(BEACON_OCTETS, 0x80, how)
    });
    let slotted = Slotted::new(slotted, Sender::new(sender));
    world.add_node(access_point, Role::AccessPoint(slotted, own_timer));
    let receiver = SenderConfig::new(Identity::station(STATION, AP), rate());
    world.add_node(node(STATION), Role::Other(Sender::new(receiver)));
    add_foreigners(&mut world, conditions.foreign, node);
    if conditions.loss > 0.0 {
        let loss = LinkLoss {
            data: Some(Process::Fixed(conditions.loss)),
            heard: 1.0,
            ..LinkLoss::default()
        };
        world.set_link_loss(AP_NODE, STATION_NODE, loss);
    }
    let traffic = Traffic {
        to: STATION,
        category: AccessCategory::BestEffort,
        octets: OCTETS,
        pattern: Pattern::Saturated {
            backlog: 4,
            phase_ns: 0,
        },
        lifetime_ns: None,
        count: None,
    };
    world.add_traffic(AP_NODE, traffic);
    let recorder = Rc::new(RefCell::new(Recorder {
        arrivals: Arrivals::default(),
        step: conditions.model.as_ref().map_or(0.0, |m| m.step),
        stream: Stream::new(seed, u64::MAX, Cause::Host),
        last_us: None,
        is_beacon: false,
        released: Vec::new(),
        sent: 0,
    }));
    world.set_observer(Box::new(Shared(Rc::clone(&recorder))));
    world.run_until(slots * SLOT_NS - 1);
    let mut recorder = recorder.borrow_mut();
    let mut arrivals = std::mem::take(&mut recorder.arrivals);
    arrivals.lost = recorder.sent.saturating_sub(arrivals.received);
    arrivals
}

fn add_foreigners(world: &mut World<Role>, foreign: Foreign, node: impl Fn(MacAddr) -> NodeConfig) {
    match foreign {
        Foreign::Nobody => {}
        Foreign::Probes(octets, rate) => {
            let prober = Prober::new(octets, 0x40, TxHow::one_shot(rate));
            world.add_node(node(MacAddr::local(9)), Role::Prober(prober));
        }
        Foreign::Pair => {
            let [a, b] = [MacAddr::local(7), MacAddr::local(8)];
            for me in [a, b] {
                let mut config = SenderConfig::new(Identity::station(me, MacAddr::local(6)), Rate::OFDM_6);
                config.identity.role = protocols::mac::data::Role::Direct {
                    bssid: MacAddr::local(6),
                };
                config.how.rts = RtsPolicy::Always;
                world.add_node(node(me), Role::Other(Sender::new(config)));
            }
            let traffic = Traffic {
                to: b,
                category: AccessCategory::Voice,
                octets: 500,
                pattern: Pattern::Periodic {
                    period_ns: 5_300_000,
                    phase_ns: 1_000_000,
                },
                lifetime_ns: None,
                count: None,
            };
            world.add_traffic(2, traffic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Conditions {
        Conditions {
            left_on: LeftOn::default(),
            rts: false,
            model: None,
            loss: 0.0,
            foreign: Foreign::Nobody,
            beacons: Beacons::InLine,
            phy: Phy::N5,
        }
    }

    #[test]
    fn every_slot_has_its_frame_on_time() {
        let found = run(&quiet(), 1, 8_000);
        assert_eq!((found.beacons, found.lost), (20, 0));
        assert_eq!(found.received, 8_000 - 20);
        let intervals: Vec<_> = found.intervals.iter().map(|(ns, _)| ns / 1_000).collect();
        assert_eq!(intervals, [255, 256]);
    }

    /// A probe request that is being received holds the release up until its end; with reception off it does not.
    #[test]
    fn a_reception_delays_the_release() {
        let probes = Foreign::Probes(150, Rate::OFDM_6);
        let longest = |reception| {
            let conditions = Conditions {
                left_on: LeftOn {
                    reception,
                    ..LeftOn::default()
                },
                foreign: probes,
                ..quiet()
            };
            run(&conditions, 1, 8_000).waits.max(8_000).map(|e| e.value)
        };
        let airtime = f64::from(frame::ppdu_us(Rate::OFDM_6, 150, Phy::N5.band));
        let (on, off) = (longest(true).unwrap(), longest(false).unwrap());
        assert!(
            on > 0.5 * airtime && on <= airtime + 25.0 && off < 26.0,
            "{on} {off}"
        );
    }
    /// A beacon of a timer that knows nothing of slots holds packets up for as long as it is on the air, whatever is off; one in a slot
    /// does not.
    #[test]
    fn a_beacon_in_the_queue_that_goes_first_delays_the_release() {
        let longest = |beacons| run(&Conditions { beacons, ..quiet() }, 1, 8_000);
        let (own, slot) = (longest(Beacons::OwnTimer), longest(Beacons::InLine));
        assert_eq!((own.lost, slot.lost, slot.beacons), (0, 0, 20));
        assert!((200..205).contains(&own.beacons), "{}", own.beacons);
        let of = |a: &Arrivals| a.waits.max(a.waits.count()).unwrap().value;
        let octets = u32::from(BEACON_OCTETS);
        let airtime = f64::from(frame::ppdu_us(Rate::OFDM_6, octets, Phy::N5.band));
        let (own, slot) = (of(&own), of(&slot));
        assert!(
            own > 0.9 * airtime && own <= airtime + 34.0 && slot == 0.0,
            "{own} {slot}"
        );
    }
}
