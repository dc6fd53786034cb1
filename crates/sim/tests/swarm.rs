//! Random worlds in which everything goes wrong at once: all laws hold, every token is confirmed, nothing grows.
//!
//! An hour of virtual time in all. A failure names its seed; run that one alone with `SWARM_SEED=...`.
mod common;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use radio::{
    AdapterId, Attribute, Checked, Event, Instant, Msdu, Protocol, Queue, Radio, RtsPolicy, Series,
    SeriesList, Token, TxHow,
};
use sim::adapter::{AccessRules, AdapterConfig};
use sim::clock::Clock;
use sim::fault::{HostFaults, Incident};
use sim::medium::{Capture, ErrorModel, LossModel, MediumConfig, Position};
use sim::rng::{Cause, Stream};
use sim::traffic::{Pattern, Traffic};
use sim::{LinkLoss, NodeConfig, NoiseConfig, Process, World};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Does something at random with every event.
#[derive(Clone)]
struct Monkey {
    dice: Stream,
    nodes: u32,
    me: u32,
    sequence: u16,
    open: Vec<Token>,
    tick: Option<Instant>,
    until: Instant,
}

impl Monkey {
    fn how(&mut self, now: Instant) -> TxHow {
        let d = &mut self.dice;
        let rates = [Rate::OFDM_54, Rate::OFDM_24, Rate::OFDM_6, Rate::DSSS_11];
        let series: Vec<Series> = (0..1 + d.below(4))
            .map(|_| Series {
                rate: rates[d.below(4) as usize],
                tries: 1 + d.below(3) as u8,
            })
            .collect();
        let mut how = TxHow::one_shot(rates[0]).series(SeriesList::new(&series).unwrap());
        how.queue = Queue::ALL[d.below(5) as usize];
        how.rts = [RtsPolicy::Always, RtsPolicy::Never, RtsPolicy::Threshold][d.below(3) as usize];
        how.adapter = AdapterId(u8::from(d.chance(0.01)));
        if d.chance(0.1) {
            how = how.no_ack();
        }
        if d.chance(0.2) {
            how.expires = Some(Instant::from_ns(now.as_ns() + d.below(5 * MS)));
        }
        if d.chance(0.2) {
            how.not_before = Some(Instant::from_ns(now.as_ns() + d.below(5 * MS)));
        }
        how
    }

    fn send(&mut self, now: Instant, peer: MacAddr, payload: &[u8], radio: &mut dyn Radio) {
        if self.open.len() >= 100 || now > self.until {
            return;
        }
        let kind = [0x08, 0x08, 0x88, 0x80][self.dice.below(4) as usize];
        let mut f = vec![kind, 0, 0, 0];
        f.extend_from_slice(&peer.0);
        f.extend_from_slice(&MacAddr::local(self.me).0);
        f.extend_from_slice(&MacAddr::ZERO.0);
        f.extend_from_slice(&(self.sequence << 4).to_le_bytes());
        self.sequence = (self.sequence + 1) & 0xfff;
        if kind == 0x88 {
            f.extend_from_slice(&[0, 0]);
        }
        f.extend_from_slice(payload);
        let how = self.how(now);
        let token = radio.token();
        self.open.push(token);
        radio.request(token, &f, &how);
    }

    fn attribute(&mut self) -> Attribute {
        let d = &mut self.dice;
        let on = d.chance(0.9);
        match d.below(13) {
            0 => Attribute::Channel([5180, 5200, 2412, 9][d.below(4) as usize]),
            1 => Attribute::CarrierSense(on),
            2 => Attribute::VirtualCarrierSense(on),
            3 => Attribute::Reception(on),
            4 => Attribute::AckGeneration(on),
            5 => Attribute::Promiscuous(!on),
            6 => Attribute::TxPower(d.below(60) as i8 - 25),
            7 => Attribute::AckTimeout(d.below(80) as u16),
            8 => Attribute::SlotTime(d.below(30) as u16),
            9 => Attribute::RtsThreshold(d.below(2_000) as u16),
            10 => Attribute::Tsf(radio::Tsf(d.next_u64() >> d.below(64))),
            11 => Attribute::Address(MacAddr::local(d.below(u64::from(self.nodes)) as u32)),
            _ => {
                let cw = |e: u64| ((1u32 << e) - 1) as u16;
                let low = d.below(6);
                let p = frame::EdcaParams {
                    aifsn: d.below(17) as u8,
                    cw_min: cw(low),
                    cw_max: cw(low + d.below(6)),
                    txop_us: d.below(3) as u32 * 1_504,
                };
                Attribute::Edca(Queue::ALL[d.below(5) as usize], p)
            }
        }
    }
}

impl Protocol for Monkey {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.tick = Some(now),
            Event::Submit(m) => {
                let (peer, payload) = (m.peer, m.payload.to_vec());
                self.send(now, peer, &payload, radio);
            }
            Event::Confirm(c) => self.open.retain(|t| *t != c.token),
            Event::Indication(i) if i.frame.len() > 30 => {
                let peer = MacAddr(i.frame[10..16].try_into().unwrap());
                radio.deliver(Msdu::new(peer, &i.frame[24..]));
            }
            Event::Timer => {
                self.tick =
                    (now < self.until).then(|| Instant::from_ns(now.as_ns() + 1 + self.dice.below(10 * MS)));
                if self.dice.chance(0.5) {
                    let to = self.dice.below(u64::from(self.nodes)) as u32;
                    self.send(now, MacAddr::local(to), &[7; 60], radio);
                }
                if self.dice.chance(0.3)
                    && let Some(t) = self.open.first()
                {
                    radio.abort(*t);
                }
                if self.dice.chance(0.005) && now < self.until {
                    let a = self.attribute();
                    let token = radio.token();
                    radio.set(token, AdapterId::FIRST, a);
                }
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.tick
    }
}

fn medium(d: &mut Stream) -> MediumConfig {
    MediumConfig {
        loss: match d.below(3) {
            0 => LossModel::FixedPower(-60.0),
            1 => LossModel::FreeSpace,
            _ => LossModel::LogDistance {
                at_1m_db: 46.7,
                exponent: 3.5,
                shadowing_db: 6.0,
            },
        },
        error: [ErrorModel::Nist, ErrorModel::Threshold(5.0), ErrorModel::Perfect][d.below(3) as usize]
            .clone(),
        capture: [
            Capture::Sinr,
            Capture::None,
            Capture::FirstWins(10.0),
            Capture::MessageInMessage {
                by_db: 5.0,
                window_us: 16,
            },
        ][d.below(4) as usize],
        preamble_detection: d.chance(0.8),
        energy_dbm: if d.chance(0.5) { -62.0 } else { -82.0 },
        ..MediumConfig::default()
    }
}

/// A world in which nodes are busy for `busy` and can then finish.
fn world(seed: u64, busy: u64) -> World<Checked<Monkey>> {
    let mut d = Stream::new(seed, 0, Cause::Place);
    let mut w = World::new(&medium(&mut d), seed);
    let nodes = 2 + d.below(7) as u32;
    let place = |d: &mut Stream| Position::new(d.unit() * 120.0, d.unit() * 120.0);
    for i in 0..nodes {
        let phy = [Phy::A, Phy::G, Phy::N5][d.below(3) as usize];
        let mut adapter = AdapterConfig::station(MacAddr::local(i), phy, 5180, d.chance(0.5));
        if d.chance(0.3) {
            adapter.rules = AccessRules::ns3();
        }
        adapter.rules.countdown_at_space_end = d.chance(0.3);
        adapter.queue_limit = 1 + d.below(30) as u16;
        let clock = Clock {
            offset_ns: d.below(SECOND),
            drift_ppb: d.below(40_000) as i64 - 20_000,
        };
        let faults = HostFaults {
            lost_confirm: 0.02,
            late_timer: 0.1,
            late_timer_ns: d.below(MS),
        };
        let monkey = Monkey {
            dice: Stream::new(seed, u64::from(i), Cause::Protocol),
            nodes,
            me: i,
            sequence: 0,
            open: Vec::new(),
            tick: None,
            until: Instant::from_ns(clock.show(busy)),
        };
        let config = NodeConfig {
            clock,
            faults,
            honours_not_before: d.chance(0.7),
            start_ns: d.below(MS),
            ..NodeConfig::ideal(place(&mut d), adapter)
        };
        w.add_node(config, Checked::strict(monkey.clone()).with_twin(monkey));
    }
    for i in 0..nodes {
        let to = d.below(u64::from(nodes) + 1) as u32;
        let traffic = Traffic {
            to: if to == nodes {
                MacAddr::BROADCAST
            } else {
                MacAddr::local(to)
            },
            category: AccessCategory::BestEffort,
            octets: d.below(1_500) as usize,
            pattern: if d.chance(0.5) {
                Pattern::Poisson {
                    mean_ns: 1 + d.below(20 * MS),
                }
            } else {
                Pattern::Saturated {
                    backlog: 5,
                    phase_ns: 0,
                }
            },
            lifetime_ns: None,
            count: Some((busy / (20 * MS)) as u32),
        };
        w.add_traffic(i, traffic);
        let process = Process::GilbertElliott {
            good_ns: 1e8,
            bad_ns: 1e7,
            good_loss: 0.01,
            bad_loss: 0.9,
        };
        let loss = LinkLoss {
            data: Some(process),
            response: Some(Process::Fixed(0.05)),
            heard: d.unit(),
        };
        w.set_link_loss(i, (i + 1) % nodes, loss);
    }
    w.add_noise(&NoiseConfig {
        position: place(&mut d),
        mhz: 5180,
        tx_dbm: d.unit() * 40.0 - 20.0,
        on_ns: 1 + d.below(MS),
        off_ns: d.below(20 * MS),
        random: true,
        start_ns: d.below(SECOND),
    });
    for _ in 0..busy / (200 * MS) {
        let (at, node) = (d.below(busy), d.below(u64::from(nodes)) as u32);
        match d.below(5) {
            0 => w.plan_move(at, node, place(&mut d)),
            1 => w.plan_loss(
                at,
                node,
                (node + 1) % nodes,
                if d.chance(0.3) { f64::INFINITY } else { 80.0 },
            ),
            2 => w.plan_incident(at, node, Incident::AdapterReset { adapter: 0 }),
            3 => w.plan_incident(
                at,
                node,
                Incident::TsfJump {
                    adapter: 0,
                    to_us: d.below(1 << 40),
                },
            ),
            _ => w.plan_incident(
                at,
                node,
                Incident::ClockJump {
                    ahead_ns: d.below(MS),
                },
            ),
        }
    }
    w
}

/// Hash, frames on the air, frames acknowledged.
fn run(seed: u64, busy: u64) -> (u64, u64, u64) {
    let mut w = world(seed, busy);
    w.run_until(busy / 2);
    let half = w.objects();
    w.run_until(busy);
    // at most twice as many objects after twice the time would be a leak
    let whole = w.objects();
    assert!(
        whole <= half + half / 2 + 200,
        "seed {seed}: {half} objects, then {whole}"
    );
    // whoever waits for a jammed medium needs its time, and lost confirms come after 100 ms
    w.run_until(busy + 20 * SECOND);
    for n in 0..w.nodes() {
        assert_eq!(w.open_requests(n), 0, "seed {seed}: node {n} has open requests");
        w.protocol_mut(n).finish();
    }
    let acked = (0..w.nodes()).map(|n| w.counters(n, 0).tx_acked).sum();
    (w.trace_hash(), w.frames_on_air(), acked)
}

#[test]
fn an_hour_of_chaos() {
    if let Ok(seed) = std::env::var("SWARM_SEED") {
        run(seed.parse().expect("a number"), 10 * SECOND);
        return;
    }
    let (mut frames, mut acked) = (0, 0);
    for seed in 0..120 {
        let (_, f, a) = run(seed, 10 * SECOND);
        (frames, acked) = (frames + f, acked + a);
    }
    assert!(
        frames > 1 && acked > 1,
        "hardly anything happened: {frames} frames, {acked} acknowledged"
    );
}

#[test]
fn chaos_repeats() {
    for seed in 1_000..1_005 {
        assert_eq!(run(seed, 2 * SECOND), run(seed, 2 * SECOND), "seed {seed}");
    }
}
