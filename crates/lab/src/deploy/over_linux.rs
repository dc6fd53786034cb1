//! A node over the 802.11 stack of Linux.

use std::sync::atomic::AtomicBool;

use frame::{MacAddr, Rate};
use linux::wifi::confirm::Path;
use linux::wifi::{Adapter, AdapterConfig, Carrier, Error, Host, HostConfig, TsfSource, Wait};
use radio::Instant;

use super::feed::Feed;
use super::watched::Watched;
use super::{Carried, DeployError, LOOK, Site, Times};
use crate::scenario::{Scenario, Station};

/// Runs it.
pub(super) fn carry(
    scenario: &Scenario,
    station: Station,
    seed: u64,
    site: &Site,
    ready: impl FnOnce(&[MacAddr]) -> Instant,
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
) -> Result<Carried, DeployError> {
    let open = |(i, (a, radio)): (usize, (&sim::AdapterConfig, &String))| {
        let carrier = match site.confirm {
            // Who sends nothing has a rate that every network has.
            Path::Status => Carrier::Ordinary(station.rate.unwrap_or(match a.mhz {
                ..3_000 => Rate::DSSS_1,
                _ => Rate::OFDM_6,
            })),
            _ => Carrier::Monitor(None),
        };
        Adapter::open(AdapterConfig {
            carrier,
            address: Some(a.address),
            tsf: if station.keeps_time {
                TsfSource::Computer
            } else {
                TsfSource::Adapter
            },
            certificate: site.certificate(i),
            softmac: site.softmac.get(i).cloned().flatten(),
            width: scenario.width(a.mhz),
            ..AdapterConfig::new(radio, a.mhz)
        })
    };
    let adapters = station.config.adapters.iter().zip(&site.radios);
    let opened: Result<Vec<Adapter>, Error> = adapters.enumerate().map(open).collect();
    let config = HostConfig {
        probes: site.probes,
        confirm: site.confirm,
        wait: site.wait.unwrap_or(match station.config.wait {
            sim::host::Wait::Spin => Wait::Spin,
            sim::host::Wait::Sleep => Wait::Sleep,
            sim::host::Wait::Timerfd => Wait::Timerfd,
        }),
        ..HostConfig::default()
    };
    let mut host = Host::new(opened?, config)?;
    let mut feed = Feed::new(station.flows, &station.room, seed, config.outstanding.into());
    let mut watched = Watched::new(station.program, &feed.sources, site.tape_octets);
    site.seat.take()?;
    let addresses: Vec<MacAddr> = host.adapters().iter().map(Adapter::address).collect();
    host.prepare();
    let times = Times::of(scenario, ready(&addresses));
    let start = times.wait(station.config.start_ns, stop);
    host.begin_at(start);
    feed.start(start, times.since, times.settle);
    watched.since = times.since;
    while !times.is_over(stop) {
        let look = (Host::now() + LOOK).min(times.until);
        host.run(&mut watched, &mut feed, Some(look), stop)?;
        progress(times.end().0);
    }
    let (ran_ns, interrupted) = times.end();
    host.finish(&mut watched, &mut feed)?;
    let counters = *host.counters();
    Ok(Carried {
        host: Some(host),
        watched,
        feed,
        addresses,
        counters,
        ran_ns,
        interrupted,
    })
}
