//! A node over an AR9170 stick at this computer.

use std::sync::atomic::AtomicBool;

use ar9170::codec::Firmware;
use ar9170::driver::{Config, Counts, SHORTEST_BEACON_INTERVAL_TU};
use ar9170::usb::{UsbBus, UsbHost, firmware_for};
use frame::MacAddr;
use linux::wifi::confirm::Path;
use linux::wifi::{Host, HostCounters};
use protocols::mac::tally::Tally;
use radio::{Duration, Instant};

use super::feed::Feed;
use super::watched::Watched;
use super::{Carried, DeployError, LOOK, Site, Times};
use crate::scenario::{Program, Scenario, Station};

/// What the names of sticks begin with.
const PREFIX: &str = "usb:";
/// How long a stick may take to come up, and requests to end.
const PATIENCE: Duration = Duration::from_ms(20_000);
/// Requests that may be open at once.
const REQUESTS: usize = 64;

/// The stick that carries a node, if one does.
pub(super) fn name(radios: &[String]) -> Option<&str> {
    radios.iter().find_map(|radio| stick_at(radio))
}

/// Where the stick is plugged in that a radio's name says, `any` included; `None`: it is no stick.
pub fn stick_at(radio: &str) -> Option<&str> {
    radio.strip_prefix(PREFIX)
}

fn check(site: &Site, program: &Program) -> Result<(), DeployError> {
    let no = |why| Err(DeployError::Stick(why));
    if program
        .beacon_interval_tu()
        .is_some_and(|tu| tu < SHORTEST_BEACON_INTERVAL_TU)
    {
        return no(
            "has a timer for beacon intervals of 15 TU and more, and the scenario's is shorter: make interval_tu longer",
        );
    }
    if site.radios.len() > 1 {
        return no("carries a node with one adapter, and this one has several");
    }
    if site.probes.is_some() || site.confirm != Path::Monitor {
        return no(
            "is driven by this program, so no kernel driver can be probed or asked for outcomes: leave --probes and --confirm out",
        );
    }
    if site.certificates.iter().any(Option::is_some) {
        return no("needs no certificate: its firmware tells the tries of each frame");
    }
    if site.wait.is_some() {
        return no("has one way to wait: leave --wait out");
    }
    Ok(())
}

/// Runs it.
#[allow(clippy::too_many_arguments, reason = "those of `deploy`, and the stick")]
pub(super) fn carry(
    scenario: &Scenario,
    station: Station,
    seed: u64,
    stick: &str,
    site: &Site,
    ready: impl FnOnce(&[MacAddr]) -> Instant,
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
) -> Result<Carried, DeployError> {
    check(site, &station.program)?;
    let file = firmware_for(stick, site.firmware.as_deref())?;
    let firmware = Firmware::parse(&file).map_err(|_| DeployError::Stick("has no firmware"))?;
    let adapter = &station.config.adapters[0];
    let config = Config {
        mhz: adapter.mhz,
        address: Some(adapter.address),
        ..Config::default()
    };
    let feed = Feed::new(station.flows, &station.room, seed, REQUESTS);
    let watched = Watched::new(station.program, &feed.sources, site.tape_octets);
    site.seat.take()?;
    let mut host = UsbHost::new(UsbBus::open(stick)?, firmware, config, watched, feed);
    host.bring_up(PATIENCE, stop)?;
    let addresses = vec![host.address()];
    let times = Times::of(scenario, ready(&addresses));
    let start = times.wait(station.config.start_ns, stop);
    host.application_mut().start(start, times.since, times.settle);
    host.protocol_mut().since = times.since;
    while !times.is_over(stop) {
        host.run(Some((Host::now() + LOOK).min(times.until)), stop);
        progress(times.end().0);
    }
    let (ran_ns, interrupted) = times.end();
    host.finish(PATIENCE);
    let counts = *host.counts();
    let (watched, feed) = host.into_parts();
    let counters = counters(&counts, &watched.outcomes);
    Ok(Carried {
        host: None,
        watched,
        feed,
        addresses,
        counters,
        ran_ns,
        interrupted,
    })
}

/// What both have counted, in the words of the host on Linux.
fn counters(counts: &Counts, outcomes: &Tally) -> HostCounters {
    HostCounters {
        sent: counts.frames,
        acked: outcomes.acked,
        not_acked: outcomes.not_acked,
        refused: outcomes.refused,
        aborted: outcomes.aborted,
        expired: outcomes.expired,
        unknown: outcomes.unknown,
        indications: counts.indications,
        duplicates: counts.duplicates,
        unreadable: counts.unreadable,
        ..HostCounters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::wifi::Wait;

    #[test]
    fn a_stick_is_named_with_its_prefix() {
        let name = |radio: &str| name(&[radio.to_owned()]).map(str::to_owned);
        assert_eq!(name("usb:any").as_deref(), Some("any"));
        assert_eq!(name("usb:1-2.3").as_deref(), Some("1-2.3"));
        assert_eq!(name("phy0"), None);
    }

    #[test]
    fn what_is_for_kernel_drivers_is_refused() {
        let program = |line: &str| {
            let text = format!("[run]\nduration = \"1s\"\n[[group]]\nname = \"a\"\nphy = \"g\"\n{line}\n");
            let scenario = Scenario::parse(std::path::Path::new("t.toml"), &text, &[]);
            scenario
                .unwrap_or_else(|e| panic!("{e}"))
                .station("a", 1)
                .unwrap()
                .program
        };
        let none = program("protocol.sink = {}");
        let site = |change: &dyn Fn(&mut Site)| {
            let mut site = Site {
                radios: vec!["usb:any".to_owned()],
                ..Site::default()
            };
            change(&mut site);
            check(&site, &none).map_err(|e| e.to_string())
        };
        assert_eq!(site(&|_| ()), Ok(()));
        let error = |change: &dyn Fn(&mut Site)| site(change).unwrap_err();
        assert!(error(&|s| s.radios.push("phy0".to_owned())).contains("one adapter"));
        assert!(error(&|s| s.confirm = Path::Device).contains("--confirm"));
        assert!(error(&|s| s.confirm = Path::Status).contains("--confirm"));
        assert!(error(&|s| s.wait = Some(Wait::Spin)).contains("--wait"));
        let ad_hoc = |tu: u16| {
            let line = format!("protocol.ibss = {{ interval_tu = {tu}, send = {{ rate = \"24M\" }} }}");
            let usb = Site {
                radios: vec!["usb:any".to_owned()],
                ..Site::default()
            };
            check(&usb, &program(&line)).map_err(|e| e.to_string())
        };
        assert_eq!(ad_hoc(15), Ok(()));
        let short = ad_hoc(14).unwrap_err();
        assert!(
            short.contains("15 TU and more") && short.contains("interval_tu"),
            "{short}"
        );
    }
}
