//! One static link, four ways to choose rates for it: Linux's rate control, Linux with one rate, our host with one rate, and
//! our Minstrel over the host; and the last two in the simulator.
//!
//! The table of the book: `sdmac lab run --radios 2 -- TEST rate:: --ignored --nocapture`, see there.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;
use frame::Rate;
use lab::testbed::compare;
use linux::inet::Inet;
use linux::wifi::{AdHoc, Control, Interface, OrdinarySocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// An EtherType that nobody has (IEEE 802, local experimental 1).
const NOBODYS: u16 = 0x88b5;
/// With LLC/SNAP, which Linux puts in place of the EtherType.
const OCTETS: usize = 1_200;
const LLC_SNAP: usize = 8;
/// Frames that Linux has at a time.
const BACKLOG: usize = 4;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(3);

/// The link, and what the station does in the runs of ours.
fn link(dbm: i32, station: &str) -> Scenario {
    scenario(&format!(
        r#"
title = "link"
run = {{ duration = "4s", warm_up = "1s" }}
medium.loss.fixed_power_dbm = {dbm}

[[group]]
name = "ap"
protocol.sender = {{ rate = "24M", qos = true }}

[[group]]
name = "station"
{station}

[[traffic]]
from = "station"
to = "ap"
octets = {OCTETS}
pattern.saturated = {{ backlog = 4 }}
"#
    ))
}

fn one_rate(rate: Rate) -> String {
    let mbps = rate.kbps100() / 10;
    format!(r#"protocol.sender = {{ rate = "{mbps}M", tries = 7, qos = true }}"#)
}

fn minstrel() -> String {
    format!("rate_control = \"minstrel\"\n{}", one_rate(Rate::OFDM_54))
}

/// Mb/s over the host, under the air of the same scenario.
fn by_the_host(scenario: &Scenario) -> f64 {
    let never = AtomicBool::new(false);
    let real = compare::real(scenario, 1, &|_| None, &|_| {}, &never).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((real.refused, real.unknown), (0, 0), "{real:?}");
    real.numbers.throughput_mbps.unwrap_or(0.0)
}

/// Mb/s in the simulator.
fn simulated(scenario: &Scenario) -> f64 {
    let run = lab::run::run(scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap();
    run.result.metrics["throughput_mbps"]
}

/// An interface of Linux's in an ad hoc network, which goes down when this is dropped.
struct Member {
    control: Control,
    interface: Interface,
    socket: OrdinarySocket,
}

impl Member {
    fn join(phy: &str, bssid: MacAddr) -> Member {
        let mut control = Control::open().unwrap();
        let wiphy = control.wiphy(phy).unwrap().index;
        let all = control.interfaces().unwrap();
        let interface = all.into_iter().find(|i| i.wiphy == wiphy).unwrap();
        let network = AdHoc {
            ssid: "sdmac-rate",
            mhz: CHANNEL,
            bssid: Some(bssid),
        };
        control.join_ad_hoc(&interface, &network).unwrap();
        let mut inet = Inet::open().unwrap();
        while !inet.is_running(interface.index).unwrap() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let socket = OrdinarySocket::hearing(&interface.name, NOBODYS).unwrap();
        Member {
            control,
            interface,
            socket,
        }
    }

    fn frame(&self, to: MacAddr) -> Vec<u8> {
        let head = [&to.0[..], &self.interface.address.0, &NOBODYS.to_be_bytes()].concat();
        [head, vec![0; OCTETS - LLC_SNAP]].concat()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // the next one begins with it
        let _ = self.control.set_down(&self.interface);
    }
}

/// Mb/s that arrive from the second radio at the first, with Linux's rate control or with one rate.
fn by_linux(scenario: &Scenario, rate: Option<Rate>) -> f64 {
    let (mbps, summary) = under(scenario, 1, |_| {
        let bssid = MacAddr::local(0x7a7e);
        let receiver = Member::join("phy0", bssid);
        let mut sender = Member::join("phy1", bssid);
        let Member {
            control, interface, ..
        } = &mut sender;
        match rate {
            Some(rate) => control.pin_rate(interface, CHANNEL, rate).unwrap(),
            None => control.free_rates(interface.index).unwrap(),
        }
        get_acquainted(&sender, &receiver);
        saturated(&sender, &receiver)
    });
    assert_eq!(summary.total.refused, 0, "{summary:?}");
    mbps
}

/// Until the sender knows all rates of the receiver, from its beacons, of which there are ten in a second. mac80211_hwsim
/// sends those of all stations in the same microsecond, and they collide: so the sender's are moved.
fn get_acquainted(sender: &Member, receiver: &Member) {
    let folder = format!(
        "/sys/kernel/debug/ieee80211/phy1/netdev:{}",
        sender.interface.name
    );
    let known = format!("{folder}/stations/{}/rc_stats", receiver.interface.address);
    for _ in 0..10 {
        std::fs::write(format!("{folder}/tsf"), "+7000").unwrap();
        for member in [receiver, sender].into_iter().cycle().take(20) {
            let _ = member.socket.send(&member.frame(MacAddr::BROADCAST));
            std::thread::sleep(Duration::from_millis(50));
        }
        if std::fs::read_to_string(&known).is_ok_and(|table| table.contains("54.0M")) {
            return;
        }
    }
    panic!(
        "no beacon of the receiver was heard in ten seconds: {:?}",
        std::fs::read_to_string(&known)
    );
}

fn saturated(sender: &Member, receiver: &Member) -> f64 {
    let frame = sender.frame(receiver.interface.address);
    let mut buffer = [0; 2_048];
    let (mut open, mut arrived) = (0, 0);
    let begun = Instant::now();
    let glance = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    while begun.elapsed() < WARM_UP + MEASURED {
        while open < BACKLOG && sender.socket.send(&frame).is_ok() {
            open += 1;
        }
        let mut both = [
            PollFd::from_borrowed_fd(sender.socket.as_fd(), PollFlags::empty()),
            PollFd::from_borrowed_fd(receiver.socket.as_fd(), PollFlags::IN),
        ];
        let some = poll(&mut both, Some(&glance)).unwrap();
        let [told, heard] = both.map(|p| !p.revents().is_empty());
        if some == 0 {
            // statuses can be lost
            open = 0;
        }
        if told && sender.socket.status(&mut buffer).unwrap().is_some() {
            open -= 1;
        }
        if heard && receiver.socket.receive(&mut buffer).unwrap() == Some(frame.len()) {
            arrived += u64::from(begun.elapsed() >= WARM_UP);
        }
    }
    arrived as f64 * OCTETS as f64 * 8e-6 / MEASURED.as_secs_f64()
}

/// The rates that Linux can be told to stay at in an ad hoc network: the basic ones.
const PINNED: [Rate; 3] = [Rate::OFDM_6, Rate::OFDM_12, Rate::OFDM_24];

/// On the same air: our Minstrel carries 95 % of the best fixed rate, over the host as in the simulator; Linux's rate control
/// carries no more than that rate, and ours no less than Linux's, give or take what sampling costs.
#[test]
fn minstrel_beside_that_of_linux() {
    beside(&[]);
}

#[test]
#[ignore = "the table of the book, which has Linux at fixed rates, too"]
fn minstrel_beside_fixed_rates_of_linux() {
    beside(&PINNED);
}

fn beside(pinned: &[Rate]) {
    let Some(_lab) = lab(2) else { return };
    println!("dBm, the rate that carries most, and Mb/s: it over the host, in the simulator;");
    println!("Minstrel over the host, in the simulator; Linux by itself, at {pinned:?}");
    let rates = protocols::mac::rate::Rates::of(&frame::Phy::A);
    for dbm in [-60, -74, -82] {
        let fixed = rates
            .as_slice()
            .iter()
            .map(|rate| (*rate, simulated(&link(dbm, &one_rate(*rate)))));
        let (rate, best) = fixed.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let scenario = link(dbm, &one_rate(rate));
        let over_host = by_the_host(&scenario);
        let fixed = pinned.iter().map(|rate| by_linux(&scenario, Some(*rate)));
        let fixed: Vec<f64> = fixed.collect();
        let linux = by_linux(&scenario, None);
        let scenario = link(dbm, &minstrel());
        let (ours, ours_simulated) = (by_the_host(&scenario), simulated(&scenario));
        println!(
            "{dbm} {}: {over_host:.2} {best:.2}; {ours:.2} {ours_simulated:.2}; {linux:.2}, {fixed:.2?}",
            rate.kbps100() / 10
        );
        assert!(
            (over_host - best).abs() < 0.01 * best,
            "the air is that of the simulator"
        );
        assert!(ours > 0.95 * over_host && ours_simulated > 0.95 * best);
        assert!((ours - ours_simulated).abs() < 0.05 * ours_simulated);
        assert!(linux < 1.01 * over_host && ours > 0.98 * linux, "{linux}");
    }
}
