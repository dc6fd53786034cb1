//! The body of tests that every host runs, on the 802.11 stack of Linux: on the kernel's own air and on one that makes all
//! tries, with outcomes by each way that carries requests, and with probes.

use std::path::Path;

use super::*;
use lab::conformance::{Air, LinuxWifi, Report, body};
use lab::scenario::Scenario;
use linux::probe::Way;
use linux::wifi::{AdHoc, Carrier, Control, Interface, TsfSource, confirm};

const BOOK: &str = include_str!("../../../../docs/src/contract.md");

/// The first two radios, which hear each other well.
const PAIR: &str = r#"
[run]
duration = "1s"

[medium]
loss.fixed_power_dbm = -50
error = "perfect"

[[group]]
name = "station"
count = 2
protocol.sender = { rate = "54M" }
"#;

fn pair() -> Air {
    let scenario = Scenario::parse(Path::new("pair.toml"), PAIR, &[]);
    Air::Scenario(Box::new(scenario.unwrap_or_else(|e| panic!("{e}"))))
}

/// All cases hold but for these, which are declared; and the book's table of attributes tells the truth of this host.
fn kept(radios: &[String], tsf: TsfSource, air: Air, config: HostConfig, declared: &[&str]) {
    let host = match is_virtual() {
        true => "Linux, UML",
        false => "Linux, QEMU",
    };
    let radio = |i: usize| AdapterConfig {
        tsf,
        ..AdapterConfig::new(&radios[i], CHANNEL)
    };
    let mut subject = LinuxWifi::new([radio(0), radio(1)], air, config).unwrap();
    let report = held(&mut subject, declared);
    let mut wrong = report.differences(BOOK, host);
    if tsf == TsfSource::Computer {
        // The book's column is that of the adapter's time.
        wrong.retain(|(name, seen, _)| (name.as_str(), *seen) != ("Tsf", "read, set"));
    }
    assert_eq!(wrong, [], "seen, and written");
}

/// All cases hold but for these, which are declared.
fn held(subject: &mut LinuxWifi, declared: &[&str]) -> Report {
    let report = body(subject);
    println!("{report}");
    assert_eq!(report.failures().collect::<Vec<_>>(), []);
    assert_eq!(report.declared().collect::<Vec<_>>(), declared);
    report
}

fn is_virtual() -> bool {
    std::env::var("SDMAC_LAB").as_deref() == Ok("virtual")
}

#[test]
fn the_contract_is_kept_on_the_kernels_own_air() {
    let Some((_lab, radios)) = lab() else { return };
    // Whose time it is does not depend on the kernel: both in virtual time, where they cost little.
    let all = [TsfSource::Adapter, TsfSource::Computer];
    for tsf in all.into_iter().take(if is_virtual() { 2 } else { 1 }) {
        let declared = ["outcome not acked after all tries"];
        kept(&radios, tsf, Air::Kernel, HostConfig::default(), &declared);
    }
}

/// Where the kernel has probes, with them: all nine planes are then promised, and stamped. Of the two ways one on each kernel.
#[test]
fn the_contract_is_kept_on_an_air_that_makes_all_tries() {
    let Some((_lab, radios)) = lab() else { return };
    let probes = match (is_virtual(), Path::new("/sys/kernel/realtime").exists()) {
        (true, _) => None, // User-Mode Linux has none.
        (_, true) => Some(Way::Kprobe),
        (_, false) => Some(Way::Fentry),
    };
    let config = HostConfig {
        probes,
        ..HostConfig::default()
    };
    kept(&radios, TsfSource::Adapter, pair(), config, &[]);
}

/// In a lab with our kernel module: `sdmac lab run --qemu standard --radios 4 --module kernel`.
#[test]
fn the_contract_is_kept_with_outcomes_by_the_device() {
    let Some((_lab, radios)) = lab() else { return };
    if std::env::var_os("SDMAC_LAB_MODULE").is_none() {
        return eprintln!("skipped: there is no module here");
    }
    let config = HostConfig {
        confirm: confirm::Path::Device,
        ..HostConfig::default()
    };
    kept(&radios, TsfSource::Adapter, pair(), config, &[]);
}

/// Not the channel of the other tests: once Linux has heard beacons on a channel, it asks for networks there instead of listening, in
/// frames to address zero (mac80211 6.1), which nobody answers.
const ORDINARY: u16 = 5220;

/// Through ordinary interfaces, in an ad hoc network of Linux's, with outcomes by SO_WIFI_STATUS.
#[test]
fn the_contract_is_kept_through_ordinary_interfaces() {
    let Some((_lab, radios)) = lab() else { return };
    let mut control = Control::open().unwrap();
    let network: AdHoc<'static> = AdHoc {
        ssid: "sdmac",
        mhz: ORDINARY,
        bssid: Some(MacAddr::local(0x1b55)),
    };
    let mut all: Vec<Interface> = radios[..3].iter().map(|r| ordinary(&mut control, r)).collect();
    let third = all.pop().unwrap();
    for one in &all {
        // Nothing but the nodes is to be heard.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", one.name), "1");
        control.join_ad_hoc(one, &network).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_secs(20));
    let rate = Rate::OFDM_24;
    let config = |i: usize| AdapterConfig {
        carrier: Carrier::Ordinary(rate),
        ..AdapterConfig::new(&all[i].name, ORDINARY)
    };
    let by_status = HostConfig {
        confirm: confirm::Path::Status,
        ..HostConfig::default()
    };
    let subject = LinuxWifi::new([config(0), config(1)], Air::Kernel, by_status).unwrap();
    let declared = [
        "outcome acked, and the frame is heard as it was sent",
        "outcome not acked: nobody is there, nobody is asked",
        "outcome not acked after all tries",
        "RTS goes ahead or is refused, and an expiry is about the start of the exchange",
        "a beacon is told as a beacon",
    ];
    let mut subject = subject.with_gone(third, network).unwrap();
    let report = held(&mut subject, &declared);
    assert_eq!(
        report.differences(BOOK, "Linux, ordinary"),
        [],
        "seen, and written"
    );
    for one in &all {
        control.set_down(one).unwrap();
    }
}

/// The ordinary interface of a radio.
fn ordinary(control: &mut Control, radio: &str) -> Interface {
    let wiphy = control.wiphy(radio).unwrap();
    let all = control.interfaces().unwrap();
    let is_it = |i: &Interface| i.wiphy == wiphy.index && i.name.starts_with("wlan");
    all.into_iter().find(is_it).unwrap()
}
