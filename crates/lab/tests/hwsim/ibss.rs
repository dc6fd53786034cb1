//! Ad hoc networks of Linux's own stack and of our protocol, which are one: whoever comes second joins whoever was first,
//! and of two networks the one whose clock is behind joins the other. Then datagrams go both ways between an ordinary UDP
//! socket on Linux's interface and our station.
//!
//! mac80211_hwsim is no hardware that moves its own TSF, so what can be seen of clocks here is which network joins which. Its
//! own air says of frames that a program has made that they came at time 0, which is before every timestamp; so where two
//! clocks are compared, the simulator is the air.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration as Time;

use super::*;
use lab::scenario::Scenario;
use lab::testbed::air;
use linux::wifi::{AdHoc, Control, Interface, TsfSource};
use protocols::mac::ibss::{Ibss, IbssConfig, Network};
use radio::{AdapterId, Attribute, AttributeName, Beacon, Event, Radio, Tsf};

/// A channel from which the others are not heard.
const ELSEWHERE: u16 = 5_240;
const SSID: &str = "robots";
const LINUX: [u8; 4] = [10, 9, 0, 1];
const OURS: [u8; 4] = [10, 9, 0, 2];
const PORT: u16 = 4_000;
/// Datagrams each way.
const EACH: u32 = 10;

/// Our station, which sets its clock when it starts and changes its channel later.
struct Station {
    inner: Ibss<16, 300>,
    ahead_us: u64,
    /// When it comes to the channel of the others.
    comes: Option<Instant>,
    /// By how much Linux's TSF was ahead of ours when its last beacon in our network was heard, us.
    behind_us: Option<i64>,
}

impl Station {
    fn compare(&mut self, beacon: &Beacon<'_>, radio: &dyn Radio) {
        let is_ours = |network: &Network| network.bssid == beacon.bssid;
        if let Some(Attribute::Tsf(tsf)) = radio.get(AdapterId::FIRST, AttributeName::Tsf)
            && self.inner.network().is_some_and(is_ours)
        {
            self.behind_us = Some(beacon.timestamp.minus(tsf));
        }
    }
}

impl Protocol for Station {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if event == Event::Start && self.ahead_us > 0 {
            let token = radio.token();
            radio.set(token, AdapterId::FIRST, Attribute::Tsf(Tsf(self.ahead_us)));
        }
        if self.comes.take_if(|t| *t <= now).is_some() {
            let token = radio.token();
            radio.set(token, AdapterId::FIRST, Attribute::Channel(CHANNEL));
        }
        let early = event == Event::Timer && self.inner.deadline().is_none_or(|t| t > now);
        if !early {
            let beacon = match &event {
                Event::Beacon(beacon) => Some(*beacon),
                _ => None,
            };
            self.inner.handle(now, event, radio);
            if let Some(beacon) = beacon {
                self.compare(&beacon, radio);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [self.inner.deadline(), self.comes].into_iter().flatten().min()
    }
}

/// Above our station: it sends back what comes to its port, and sends datagrams of its own.
struct Datagrams {
    peer: MacAddr,
    begins: Instant,
    own: u32,
    back: Vec<Vec<u8>>,
    /// Datagrams that came, of those that it had sent; and others.
    returned: u32,
    came: u32,
}

/// IPv4 and UDP (without a checksum, which IPv4 allows) around a payload.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let length = 28 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(OURS);
    packet.extend(LINUX);
    let words = packet
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    for word in [PORT, PORT, length - 20, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

impl Application for Datagrams {
    fn due(&self) -> Option<Instant> {
        let next = self.begins + Duration::from_ms(200).times(self.own.into());
        let own = (self.own < EACH).then_some(next);
        let back = (!self.back.is_empty()).then_some(Instant::ZERO);
        [own, back].into_iter().flatten().min()
    }

    fn take(&mut self, _: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        let packet = match self.back.pop() {
            Some(packet) => packet,
            None => {
                self.own += 1;
                datagram(format!("ours {}", self.own).as_bytes())
            }
        };
        payload[..packet.len()].copy_from_slice(&packet);
        Some(Submission {
            peer: self.peer,
            category: AccessCategory::BestEffort,
            deadline: None,
            octets: packet.len(),
        })
    }

    fn deliver(&mut self, _: Instant, msdu: Msdu<'_>) {
        let mut packet = msdu.payload.to_vec();
        if packet.len() < 28 || packet[9] != 17 || packet[16..20] != OURS {
            return;
        }
        if packet[28..].starts_with(b"ours") {
            self.returned += 1;
            return;
        }
        self.came += 1;
        // back to where it came from: neither checksum minds
        packet[12..20].rotate_left(4);
        packet[20..24].rotate_left(2);
        self.back.push(packet);
    }
}

/// Linux's interface on the radio, with an address, and with ours known to it.
fn linux_station(control: &mut Control, radio: &str, ours: MacAddr) -> Interface {
    let wiphy = control.wiphy(radio).unwrap().index;
    let all = control.interfaces().unwrap();
    let interface = all
        .into_iter()
        .find(|i| i.wiphy == wiphy && i.name.starts_with("wlan"));
    let interface = interface.expect("an interface of Linux's");
    let name = &interface.name;
    let ours = ours.to_string();
    for words in [
        format!("address replace 10.9.0.1/24 dev {name}"),
        format!("neighbour replace 10.9.0.2 lladdr {ours} dev {name} nud permanent"),
    ] {
        let done = Command::new("ip").args(words.split(' ')).status().unwrap();
        assert!(done.success(), "ip {words}");
    }
    interface
}

/// Datagrams from Linux to our station and back, and the way of ours: how many of its own came back.
fn exchange(until: Instant) -> u32 {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::from(LINUX), PORT)).unwrap();
    socket.set_read_timeout(Some(Time::from_millis(100))).unwrap();
    let (mut sent, mut back, mut buffer) = (0, 0, [0; 300]);
    while Host::now() < until && (back < EACH || sent < 3 * EACH) {
        if back < EACH {
            sent += 1;
            let _ = socket.send_to(
                format!("linux {sent}").as_bytes(),
                (std::net::Ipv4Addr::from(OURS), PORT),
            );
        }
        let waited = Host::now();
        while Host::now() < waited + Duration::from_ms(200) {
            let Ok((octets, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            match buffer[..octets].starts_with(b"linux") {
                true => back += 1,
                false => drop(socket.send_to(&buffer[..octets], from)),
            }
        }
    }
    back
}

/// What happens when.
struct Plan {
    linux_ms: u64,
    ours_scans_ms: u64,
    ahead_us: u64,
    comes_ms: Option<u64>,
    exchange_ms: u64,
    end_ms: u64,
}

/// The air of two stations that hear each other.
const PAIR: &str = r#"
[run]
duration = "1s"

[medium]
loss.fixed_power_dbm = -50
error = "perfect"

[[group]]
name = "linux"
protocol.sender = { rate = "54M" }

[[group]]
name = "ours"
protocol.sender = { rate = "54M" }
"#;

/// As the plan says, on the air of mac80211_hwsim.
fn play(plan: &Plan) -> Option<Done> {
    let (_lab, radios) = lab()?;
    Some(play_on(&radios, plan))
}

/// As the plan says, with the simulator as the air.
fn play_under_scenario(plan: &Plan) -> Option<Done> {
    let (_lab, radios) = lab()?;
    if std::env::var("SDMAC_LAB").as_deref() != Ok("virtual") {
        eprintln!("skipped: the simulator is the air in virtual time only");
        return None;
    }
    let scenario = Scenario::parse(Path::new("pair.toml"), PAIR, &[]).unwrap_or_else(|e| panic!("{e}"));
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let air = scope.spawn(|| air::run(&scenario, 1, &stop, |_| ready.send(()).unwrap()));
        is_ready.recv().expect("the air is ready");
        let counters = play_on(&radios, plan);
        stop.store(true, Ordering::Relaxed);
        air.join().unwrap().unwrap_or_else(|e| panic!("{e}"));
        Some(counters)
    })
}

fn play_on(radios: &[String], plan: &Plan) -> Done {
    let config = AdapterConfig {
        tsf: TsfSource::Computer,
        ..AdapterConfig::new(
            &radios[1],
            if plan.comes_ms.is_some() {
                ELSEWHERE
            } else {
                CHANNEL
            },
        )
    };
    let adapter = Adapter::open(config).unwrap();
    let ours = adapter.address();
    let mut control = Control::open().unwrap();
    let interface = linux_station(&mut control, &radios[0], ours);
    let begun = Host::now();
    let at = |ms| begun + Duration::from_ms(ms);
    let (begins, until) = (at(plan.exchange_ms), at(plan.end_ms));
    let station = Station {
        inner: Ibss::new(IbssConfig {
            ethertype: 0x0800,
            scan: Duration::from_ms(plan.ours_scans_ms),
            // on this host it takes longer than a slot of the PHY until one knows of another's beacon
            slot: Duration::from_us(200),
            ..IbssConfig::new(ours, SSID, RATE)
        }),
        ahead_us: plan.ahead_us,
        comes: plan.comes_ms.map(at),
        behind_us: None,
    };
    let above = Datagrams {
        peer: interface.address,
        begins: begins + Duration::from_ms(100), // Linux's socket is to be there before
        own: 0,
        back: Vec::new(),
        returned: 0,
        came: 0,
    };
    let (station, above, back) = std::thread::scope(|scope| {
        let run = scope.spawn(move || {
            let mut host = Host::new(vec![adapter], HostConfig::default()).unwrap();
            let mut node: Checked<_> = Checked::strict(station);
            let mut above = above;
            host.run(&mut node, &mut above, Some(until), &AtomicBool::new(false))
                .unwrap();
            host.finish(&mut node, &mut above).unwrap();
            node.finish();
            (node.into_inner(), above)
        });
        let sleep = |until: Instant| std::thread::sleep(Time::from_nanos(until.since(Host::now()).as_ns()));
        sleep(at(plan.linux_ms));
        let network = AdHoc {
            ssid: SSID,
            mhz: CHANNEL,
            bssid: None,
        };
        control.join_ad_hoc(&interface, &network).unwrap();
        // addresses go when an interface changes what it is
        linux_station(&mut control, &radios[0], ours);
        sleep(begins);
        let back = exchange(until);
        let (station, above) = run.join().unwrap();
        (station, above, back)
    });
    control.set_down(&interface).unwrap();
    let counters = *station.inner.counters();
    println!(
        "{counters:?}; {back} of Linux's came back, {} of ours; behind by {:?} us",
        above.returned, station.behind_us
    );
    assert!(
        back >= EACH,
        "of Linux's datagrams {back} came back; {} came",
        above.came
    );
    assert_eq!(above.returned, EACH, "all of ours came back");
    assert!(
        counters.beacons > 0 && counters.beacons_heard > 0,
        "both send beacons"
    );
    Done {
        merges: counters.merges,
        behind_us: station.behind_us.expect("Linux has sent beacons in our network"),
    }
}

/// What came of it.
#[derive(Debug)]
struct Done {
    merges: u64,
    /// See [`Station::behind_us`].
    behind_us: i64,
}

/// What a beacon takes on the air, and what a host takes to tell it and to set its clock, us: in virtual time 54 were seen.
const NEAR_US: u64 = 1_000;

impl Done {
    /// Both have the same time, as far as hosts can tell.
    fn agree(&self) -> bool {
        self.behind_us.unsigned_abs() < NEAR_US
    }
}

#[test]
fn we_join_a_network_that_linux_has_made() {
    let done = play(&Plan {
        linux_ms: 0,
        ours_scans_ms: 30_000,
        ahead_us: 0,
        comes_ms: None,
        exchange_ms: 20_000,
        end_ms: 30_000,
    });
    // who joins takes the clock over
    assert!(
        done.as_ref().is_none_or(|d| d.merges == 0 && d.agree()),
        "{done:?}"
    );
}

#[test]
fn linux_joins_a_network_that_we_have_made() {
    let done = play(&Plan {
        linux_ms: 2_000,
        ours_scans_ms: 500,
        ahead_us: 0,
        comes_ms: None,
        exchange_ms: 15_000,
        end_ms: 25_000,
    });
    // on these radios no hardware moves Linux's clock: whoever it is that has the later one, ours does not fall behind it
    assert!(
        done.as_ref()
            .is_none_or(|d| d.merges == 0 && d.behind_us < NEAR_US as i64),
        "{done:?}"
    );
}

#[test]
fn our_network_joins_linuxs_whose_clock_is_ahead() {
    let done = play_under_scenario(&Plan {
        linux_ms: 0,
        ours_scans_ms: 500,
        ahead_us: 0,
        comes_ms: Some(15_000),
        exchange_ms: 20_000,
        end_ms: 30_000,
    });
    // it has taken the later clock over
    assert!(
        done.as_ref().is_none_or(|d| d.merges == 1 && d.agree()),
        "{done:?}"
    );
}

#[test]
fn linuxs_network_joins_ours_whose_clock_is_ahead() {
    // the radios of mac80211_hwsim have the time of day
    let day_us = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    let done = play_under_scenario(&Plan {
        linux_ms: 0,
        ours_scans_ms: 500,
        ahead_us: day_us + 1_000_000_000,
        comes_ms: Some(15_000),
        exchange_ms: 30_000,
        end_ms: 40_000,
    });
    // on these radios no hardware moves Linux's clock: whoever it is that has the later one, ours does not fall behind it
    assert!(
        done.as_ref()
            .is_none_or(|d| d.merges == 0 && d.behind_us < NEAR_US as i64),
        "{done:?}"
    );
}

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
