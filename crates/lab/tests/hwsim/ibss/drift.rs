//! Clocks of our own stations that drift, on radios of Linux's.

use super::*;

/// One of two stations of our own: its clock is ahead at the start and gains more with each [`STEP`]; it notes when its
/// intervals begin.
struct Drifting {
    inner: Ibss<4, 300>,
    ahead_us: u64,
    gains_us: u64,
    next: Instant,
    tbtts: Vec<Instant>,
}

/// How often a clock gains.
const STEP: Duration = Duration::from_ms(10);

impl Protocol for Drifting {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let due = event != Event::Timer || self.inner.deadline().is_some_and(|t| t <= now);
        let mut gain = if event == Event::Start { self.ahead_us } else { 0 };
        if self.next <= now {
            self.next = now + STEP;
            gain += self.gains_us;
        }
        if let Some(Attribute::Tsf(tsf)) = radio.get(AdapterId::FIRST, AttributeName::Tsf)
            && gain > 0
        {
            let token = radio.token();
            radio.set(token, AdapterId::FIRST, Attribute::Tsf(Tsf(tsf.0 + gain)));
        }
        if due {
            let before = self.inner.counters().intervals;
            self.inner.handle(now, event, radio);
            if self.inner.counters().intervals > before {
                self.tbtts.push(now);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [self.inner.deadline(), Some(self.next)]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Two stations of our own, in one network from the beginning, as a scenario has them. The clock of one is 40 ms ahead and
/// gains 300 us in a second, 6 ms in all; the TBTTs of both stay together, since the other one follows it.
#[test]
fn clocks_that_drift_stay_together() {
    let Some((_lab, radios)) = lab() else { return };
    const BSSID: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x77]);
    let until = Host::now() + Duration::from_ms(20_000);
    let station = |i: usize| {
        let config = AdapterConfig {
            tsf: TsfSource::Computer,
            ..AdapterConfig::new(&radios[i], CHANNEL)
        };
        let adapter = Adapter::open(config).unwrap();
        let config = IbssConfig {
            bssid: Some(BSSID),
            scan: Duration::from_ms(1),
            active_scan: false,
            slot: Duration::from_us(200),
            ..IbssConfig::new(adapter.address(), SSID, RATE)
        };
        let drifting = Drifting {
            inner: Ibss::new(config),
            ahead_us: if i == 0 { 40_000 } else { 0 },
            gains_us: if i == 0 { 3 } else { 0 },
            next: Instant::ZERO,
            tbtts: Vec::new(),
        };
        (adapter, drifting)
    };
    let stations = [station(0), station(1)];
    let done = std::thread::scope(|scope| {
        let run = |(adapter, station): (Adapter, Drifting)| {
            scope.spawn(move || drive(adapter, station, App::default(), until).protocol)
        };
        let threads: Vec<_> = stations.into_iter().map(run).collect();
        let done = threads.into_iter().map(|t| t.join().unwrap());
        done.collect::<Vec<_>>()
    });
    let [fast, slow] = &done[..] else {
        unreachable!("there are two")
    };
    let apart = |t: &Instant| {
        let to = |u: &Instant| t.since(*u).max(u.since(*t)).as_us();
        fast.tbtts.iter().map(to).min().expect("it has some")
    };
    let (_, later) = slow.tbtts.split_at(30);
    let worst = later.iter().map(apart).max().expect("there are more");
    let (f, s) = (fast.inner.counters(), slow.inner.counters());
    println!(
        "in {} intervals at most {worst} us apart; {f:?}; {s:?}",
        later.len()
    );
    assert!(worst < 1_000, "{worst} us");
    assert!(s.adoptions > 30 && f.adoptions <= 1, "{f:?} {s:?}");
    assert!(f.beacons > 30 && s.beacons > 0);
}
