//! Stations in a static schedule of slots: nobody ever collides.

use super::*;
use frame::{AccessCategory, Phy, Rate};
use protocols::mac::data::{Identity, Role};
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::sync::Sync;
use protocols::mac::tdma::schedule::{Flow, Release, SlotCosts, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{Duration, MAX_FRAME_OCTETS, Msdu, Queue, Submission};

const STATIONS: usize = 8;
const RATE: Rate = Rate::OFDM_54;

const CELL: &str = r#"
[run]
duration = "1s"

[medium]
loss.fixed_power_dbm = -50

[[group]]
name = "sta"
count = 8
protocol.sender = { rate = "54M" }
"#;

/// One MSDU in each cycle, at its beginning.
struct Each {
    to: MacAddr,
    next: Instant,
    cycle: Duration,
    left: u64,
    delivered: u64,
}

impl Application for Each {
    fn due(&self) -> Option<Instant> {
        (self.left > 0).then_some(self.next)
    }

    fn take(&mut self, now: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        if self.left == 0 || now < self.next {
            return None;
        }
        self.left -= 1;
        self.next += self.cycle;
        payload[..50].fill(1);
        Some(Submission {
            peer: self.to,
            category: AccessCategory::Voice,
            deadline: None,
            octets: 50,
        })
    }

    fn deliver(&mut self, _: Instant, _: Msdu<'_>) {
        self.delivered += 1;
    }
}

fn plan(all: &[MacAddr], cycle: Duration) -> Result<TdmaPlan, impl std::fmt::Debug> {
    let flows: Vec<_> = (0..STATIONS)
        .map(|i| Flow {
            from: all[i],
            to: all[(i + 1) % STATIONS],
            payload_octets: 50,
        })
        .collect();
    let release = Release {
        min: Duration::from_us(0),
        high: Duration::from_us(4), // a timer of the lab is up to a microsecond late, and the clock has steps
    };
    let costs = SlotCosts::new(Phy::A, RATE, release, Duration::from_us(2));
    TdmaPlan::new(&flows, cycle, None, &costs)
}

#[test]
fn nobody_collides_in_two_thousand_cycles() {
    nobody_collides_in(2_000);
}

#[test]
#[ignore = "takes minutes"]
fn nobody_collides_in_ten_thousand_cycles() {
    nobody_collides_in(10_000);
}

fn nobody_collides_in(cycles: u64) {
    let Some(_lab) = lab(STATIONS) else { return };
    let cycle = Duration::from_us(2_000);
    let scenario = scenario(CELL);
    let (done, summary) = under(&scenario, 1, |_| {
        let adapters = radios(STATIONS);
        let addresses = addresses(&adapters);
        let now = Host::now().as_ns() + 20_000_000;
        let start = Instant::from_ns(now.next_multiple_of(cycle.as_ns()));
        let until = start + cycle.times(cycles + 3);
        let station = |(i, adapter): (usize, Adapter)| {
            let me = addresses[i];
            let identity = Identity {
                me,
                role: Role::Direct { bssid: MacAddr::ZERO },
            };
            let plan = plan(&addresses, cycle).unwrap();
            let config = TdmaConfig::new(me, plan, Sync::perfect(0), MacAddr::ZERO, Queue::Voice);
            let sender = Sender::<32>::new(SenderConfig::new(identity, RATE));
            let app = Each {
                to: addresses[(i + 1) % STATIONS],
                next: start,
                cycle,
                left: cycles,
                delivered: 0,
            };
            (adapter, Tdma::<_, 16, 256>::new(config, sender), app)
        };
        all(adapters.into_iter().enumerate().map(station).collect(), until)
    });
    let total = summary.total;
    eprintln!(
        "{cycles} cycles of {STATIONS} stations: {} tries, {} overlapping, {} acknowledged; latest {} us",
        total.tries, total.overlapping, total.acked, summary.latest_us
    );
    let frames = cycles * STATIONS as u64;
    assert_eq!((total.tries, total.acked, total.overlapping), (frames, frames, 0));
    for station in &done {
        let c = station.protocol.counters();
        assert_eq!((c.released, c.failed), (cycles, 0), "{c:?}");
        assert_eq!(station.app.delivered, cycles);
    }
}

/// The scenario as it is, clocks by beacons included, only shorter: each node by `deploy`, as users have it.
#[test]
fn the_scenario_keeps_its_slots_apart() {
    let Some(_lab) = lab(9) else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tdma.toml");
    let points = lab::plan::grid(&["duration=700ms".to_owned()]).unwrap();
    let scenario = Scenario::open(&file, &points[0]).unwrap();
    let never = AtomicBool::new(false);
    let real = lab::testbed::compare::real(&scenario, 1, &|_| None, &|_| (), &never).unwrap();
    let sim = lab::testbed::compare::simulated(&scenario, 1, &never).unwrap();
    eprintln!("{sim:?} in the simulator, {real:?}");
    assert_eq!((real.overlapping, real.unknown, real.refused), (0, 0, 0));
    assert!(real.lateness.is_empty(), "{:?}", real.lateness);
    assert_eq!((real.numbers.lost_ratio, sim.lost_ratio), (Some(0.0), Some(0.0)));
}
