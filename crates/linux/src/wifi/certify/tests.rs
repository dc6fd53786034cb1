//! Certificates of simulated radios, in the lab; elsewhere each test says that it is skipped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::super::config::{AdapterConfig, Carrier};
use super::super::nl80211::Monitor;
use super::super::simulated::{SimulatedRadios, simulated_radios};
use super::super::{Adapter, Control, Error};
use super::medium::Medium;
use super::requests::ABSENT;
use super::station::AccessPoint;
use super::*;

/// Whether hwsim was started with a rate table, as some drivers for hardware have it.
fn has_rate_table() -> bool {
    let value = std::fs::read_to_string("/sys/module/mac80211_hwsim/parameters/rctbl").unwrap();
    value.trim() == "Y"
}

fn plan(radios: &SimulatedRadios) -> CertifyPlan {
    CertifyPlan {
        peer: Some(Peer::Radio(radios.names[1].clone())),
        channel_mhz: Some(2412),
        frames: 500,
        each: 20,
        ..CertifyPlan::new(&radios.names[0])
    }
}

fn certificate(plan: &CertifyPlan) -> Certificate {
    certify(plan, &|_, _, _| (), &AtomicBool::new(false)).unwrap()
}

#[track_caller]
fn assert_verdicts(certificate: &Certificate, expect: &[(&str, Verdict)]) {
    for (what, verdict) in expect {
        let row = certificate.row(what).unwrap_or_else(|| panic!("no row `{what}`"));
        assert_eq!(row.verdict, *verdict, "{row:?}");
    }
}

use Verdict::{CannotBeSeen, DoesNotHold, Holds};

/// Where every try is made, a rate table shows: it adds tries for stations that Linux knows, and for nobody else.
#[test]
fn a_rate_table_adds_tries_for_known_stations() {
    let Some(radios) = simulated_radios(2) else { return };
    let _medium = Medium::start(radios.names.len() as u8);
    let c = certificate(&plan(&radios));
    let to_stations = if has_rate_table() { DoesNotHold } else { Holds };
    assert_verdicts(
        &c,
        &[
            ("one-shot", Holds),
            ("one-shot to a known station", to_stations),
            ("no-ack", Holds),
            ("no-ack to a known station", Holds),
            ("retries", Holds),
            ("legacy rates", Holds),
            ("a status for each frame", Holds),
            ("acked or not, as it was", Holds),
            ("beacons of the adapter", Holds),
            ("acknowledges as active monitor", Holds),
            // This medium answers for both, which no adapter does.
            ("acknowledges as plain monitor", CannotBeSeen),
        ],
    );
    // Hwsim's limit.
    assert_eq!(c.proven.max_tries, Some(11));
    assert_eq!(c.proven.one_shot_to_stations, Some(!has_rate_table()));
    assert_eq!((c.driver.as_str(), c.partial), ("mac80211_hwsim", false));

    // What was seen is what the host then does.
    let open = |certificate| {
        let config = AdapterConfig {
            certificate: Some(certificate),
            max_tries: 20,
            ..AdapterConfig::new(&radios.names[0], 2412)
        };
        Adapter::open(config)
    };
    let refusal = |adapter: &Adapter, from, how| {
        let ask = bench::Ask {
            kind: frame::mac::Kind::DATA,
            to: ABSENT,
            from,
            tid: 0,
            rate: frame::Rate::OFDM_6,
            tries: 1,
            ack: true,
            padding: 0,
        };
        let mpdu = bench::marked_frame(&ask, 1);
        adapter.refusal(&frame::mac::Header::parse(&mpdu).unwrap(), &how)
    };
    let how = |tries| radio::TxHow::multi_shot(frame::Rate::OFDM_6, tries);
    let mut adapter = open(c.clone()).unwrap();
    let me = adapter.address();
    assert!(adapter.capabilities(1).one_shot);
    assert_eq!(refusal(&adapter, me, how(11)), None);
    assert_eq!(refusal(&adapter, me, how(12)), Some(radio::Refusal::NotSupported));
    let wiphy = Control::open().unwrap().wiphy(&radios.names[0]).unwrap();
    let point = AccessPoint::start(&wiphy, 2412).unwrap();
    adapter.refresh();
    let refused = has_rate_table().then_some(radio::Refusal::NotSupported);
    assert_eq!(refusal(&adapter, point.address, how(1)), refused);
    assert_eq!(
        refusal(&adapter, point.address, how(1).no_ack()),
        None,
        "the path that holds"
    );
    assert_eq!(
        adapter.capabilities(1).one_shot,
        point.address != me || !has_rate_table()
    );
    drop((point, adapter));
    let elsewhere = Adapter::open(AdapterConfig {
        certificate: Some(c.clone()),
        ..AdapterConfig::new(&radios.names[1], 2412)
    });
    assert!(
        matches!(elsewhere, Err(Error::Certificate { what: "address", .. })),
        "another radio with the same driver"
    );
    let other = Certificate {
        driver: "ath9k".into(),
        ..c
    };
    assert!(matches!(
        open(other),
        Err(Error::Certificate { what: "driver", .. })
    ));
}

/// Hwsim's own medium makes one try whatever was asked, tells the time of reception, and has no queues.
#[test]
fn the_perfect_medium() {
    let Some(radios) = simulated_radios(2) else { return };
    let c = certificate(&plan(&radios));
    assert_verdicts(
        &c,
        &[
            ("one-shot", CannotBeSeen),
            ("one-shot to a known station", CannotBeSeen),
            ("retries", DoesNotHold),
            ("legacy rates", Holds),
            ("HT rates", Holds),
            ("queue by traffic identifier", CannotBeSeen),
            ("a status for each frame", Holds),
            ("a status for each group frame", Holds),
            ("acked or not, as it was", Holds),
            ("adapter time of received frames", Holds),
            ("adapter time can be read", Holds),
            ("adapter time can be set", Holds),
            ("beacons made by us", Holds),
            ("beacons of the adapter", Holds),
            ("carrier sense", CannotBeSeen),
            ("carrier sense can be switched off", DoesNotHold),
            ("channel", Holds),
            ("acknowledges as active monitor", Holds),
            ("acknowledges as plain monitor", DoesNotHold),
            ("abort of what the host holds back", Holds),
            ("abort of what the kernel has", DoesNotHold),
        ],
    );
    assert_eq!(c.proven.max_tries, Some(1));
    let left = Control::open().unwrap().interfaces().unwrap();
    assert!(left.iter().all(|i| !i.name.starts_with("sdmac")), "{left:?}");
}

/// Alone, a radio can be caught telling of too many tries, but not cleared.
#[test]
fn alone_less_can_be_seen() {
    let Some(radios) = simulated_radios(2) else { return };
    let c = certificate(&CertifyPlan {
        peer: None,
        ..plan(&radios)
    });
    assert_verdicts(
        &c,
        &[
            ("one-shot", CannotBeSeen),
            ("legacy rates", CannotBeSeen),
            ("a status for each frame", Holds),
            ("acked or not, as it was", CannotBeSeen),
            ("carrier sense", CannotBeSeen),
            ("acknowledges as active monitor", CannotBeSeen),
            ("abort of what the host holds back", CannotBeSeen),
        ],
    );
    assert_eq!((c.proven.one_shot, c.peer), (None, None));
    let station = CertifyPlan {
        peer: Some(Peer::Station(ABSENT)),
        ..plan(&radios)
    };
    assert_verdicts(
        &certificate(&station),
        &[("acked or not, as it was", CannotBeSeen)],
    );
}

#[test]
fn what_is_stopped_is_partial() {
    let Some(radios) = simulated_radios(2) else { return };
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let step = |done: usize, _: usize, _: &'static str| {
        asked.store(done, Ordering::Relaxed);
        stop.store(done == 3, Ordering::Relaxed);
    };
    let c = certify(&plan(&radios), &step, &stop).unwrap();
    assert!(c.partial);
    assert!(
        c.row("legacy rates").is_some() && c.row("no-ack").is_none(),
        "{:?}",
        c.rows
    );
    assert_eq!(c.proven.no_ack, None);
}

/// What is asked of an interface that was set down is no answer, and no later question is asked of it; be it the one that
/// sends or the one that shows statuses.
#[test]
fn what_is_broken_off_is_partial() {
    let Some(radios) = simulated_radios(2) else { return };
    for which in 0..2 {
        let step = |done: usize, _: usize, _: &'static str| {
            if done == 5 {
                let mut control = Control::open().unwrap();
                let index = control.wiphy(&radios.names[0]).unwrap().index;
                let all = control.interfaces().unwrap();
                let mut ours = all
                    .iter()
                    .filter(|i| i.wiphy == index && i.name.starts_with("sdmac"));
                control.set_up(ours.nth(which).unwrap().index, false).unwrap();
            }
        };
        let c = certify(&plan(&radios), &step, &AtomicBool::new(false)).unwrap();
        assert!(c.partial && c.row("legacy rates").is_some(), "{:?}", c.rows);
        let last = c.rows.last().unwrap();
        assert_eq!((last.what.as_str(), last.verdict), ("statuses", CannotBeSeen));
        assert!(last.seen.contains("set down"), "{last:?}");
    }
}

/// Also where /sys does not show a radio, its interfaces tell which one it is.
#[test]
fn a_radio_is_known_without_sys() {
    let Some(radios) = simulated_radios(2) else { return };
    let adapter = Adapter::open(AdapterConfig::new(&radios.names[1], 2412)).unwrap();
    let mut control = Control::open().unwrap();
    let index = control.wiphy(&radios.names[1]).unwrap().index;
    let address = control.permanent_address(index).unwrap().to_string();
    let (driver, same) = identity(&radios.names[1]).unwrap();
    assert_eq!((driver.as_str(), same), ("mac80211_hwsim", address));
    let name = adapter.interfaces().next().unwrap();
    assert_eq!(crate::sys::driver_of(name).unwrap(), "mac80211_hwsim");
}

#[test]
fn what_cannot_be_certified_is_said() {
    let Some(radios) = simulated_radios(2) else { return };
    let fails = |plan: CertifyPlan| {
        let done = certify(&plan, &|_, _, _| (), &AtomicBool::new(false));
        done.unwrap_err().to_string()
    };
    let plan = || plan(&radios);
    let same = Some(Peer::Radio(radios.names[0].clone()));
    assert!(fails(CertifyPlan { peer: same, ..plan() }).contains("same radio"));
    assert!(
        fails(CertifyPlan {
            radio: "phy77".into(),
            ..plan()
        })
        .contains("there is no radio `phy77`")
    );
    assert!(
        fails(CertifyPlan {
            channel_mhz: Some(2484),
            ..plan()
        })
        .contains("2484")
    );
    assert!(fails(CertifyPlan { frames: 0, ..plan() }).contains("1 to 1000000"));
    let held = Adapter::open(AdapterConfig {
        carrier: Carrier::Monitor(Some(Monitor::Plain)),
        ..AdapterConfig::new(&radios.names[1], 2412)
    });
    let _held = held.unwrap();
    assert!(fails(plan()).contains("in use"), "the second radio");
}
