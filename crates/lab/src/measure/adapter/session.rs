//! A measurement from beginning to end: the radio is opened, its thread takes its seat, and for each load the task is
//! carried out.

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ar9170::usb::UsbError;
use frame::{MacAddr, Rate};
use linux::host::{Environment, Load, LoadReport, environment, under_load};
use linux::probe::Way;
use linux::wifi::certify::Certificate;
use linux::wifi::confirm::Path;
use linux::wifi::{Adapter, AdapterConfig, Control, Host, HostConfig, Seat};
use radio::{Duration, Plane};

use super::over_stick::{self, Stick};
use super::table::{Air, Sorting};
use super::{Ear, MOST_SHOTS, Taken, Task, hear, take};
use crate::deploy::stick_at;

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The radio, by its name or that of one of its interfaces; `usb:PLACE` or `usb:any` is an AR9170 stick.
    pub radio: String,
    /// Centre frequency, MHz; `None`: where the radio is, or else the first channel where one may send.
    pub channel_mhz: Option<u16>,
    /// The station that acknowledges.
    pub to: MacAddr,
    /// Rate of the shots.
    pub rate: Rate,
    /// Octets of payload, 13 to 1500.
    pub payload: usize,
    /// From one shot to the next, us.
    pub period_us: u32,
    /// Shots under each load, 1 to 16,777,216.
    pub count: u32,
    /// The loads, one after the other.
    pub loads: Vec<Load>,
    /// Stamp the planes t2 to t8.
    pub probes: Option<Way>,
    /// By which way outcomes come up.
    pub confirm: Path,
    /// Of the thread that sends.
    pub seat: Seat,
    /// What the radio was seen to do.
    pub certificate: Option<Certificate>,
    /// File of a stick's firmware; `None`: where Linux has it.
    pub firmware: Option<PathBuf>,
}

impl Plan {
    /// Whether count and period are in their ranges.
    pub(in crate::measure) fn check_numbers(&self) -> Result<(), MeasureError> {
        if !(1..=MOST_SHOTS).contains(&self.count) {
            return Err(MeasureError::Plan("the number of shots is 1 to 16777216"));
        }
        if !(100..=10_000_000).contains(&self.period_us) {
            return Err(MeasureError::Plan("the period is 100 us to 10 s"));
        }
        let is_virtual = std::env::var("SDMAC_LAB").as_deref() == Ok("virtual");
        if is_virtual && self.loads.iter().any(|load| *load != Load::Idle) {
            return Err(MeasureError::Plan(
                "virtual time stands still while a load computes, so none would end here: measure under load with `sdmac lab run --qemu`",
            ));
        }
        Ok(())
    }
}

/// Under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Which.
    pub load: Load,
    /// What came of the shots.
    pub taken: Taken,
    /// Sorted.
    pub sorting: Sorting,
    /// What the load did.
    pub report: LoadReport,
}

/// All that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// This computer.
    pub environment: Environment,
    /// The processor is emulated: its times are good for order and ratios only.
    pub emulated: bool,
    /// Name of the driver.
    pub driver: String,
    /// Centre frequency.
    pub channel_mhz: u16,
    /// Which function was which plane.
    pub functions: Vec<(Plane, &'static str)>,
    /// Hits of probes that found no room.
    pub lost_hits: u64,
    /// One for each load that was measured.
    pub conditions: Vec<Condition>,
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The radio, its host, or the seat.
    #[error(transparent)]
    Wifi(#[from] linux::wifi::Error),
    /// The stick.
    #[error(transparent)]
    Usb(#[from] UsbError),
    /// A stick cannot be used so.
    #[error("a stick (usb:) {0}")]
    Stick(&'static str),
    /// A number out of its range.
    #[error("{0}")]
    Plan(&'static str),
    /// There is no channel to send on.
    #[error("radio {0} has no channel on which one may send: set the country (iw reg set)")]
    NoChannel(String),
    /// The load does not run.
    #[error("the {} load does not start: {source}", .load.name())]
    Load {
        /// Which.
        load: Load,
        /// Why.
        source: io::Error,
    },
}

/// Where the radio is, or else the first channel where one may send.
pub(in crate::measure) fn channel(radio: &str) -> Result<u16, MeasureError> {
    let mut control = Control::open()?;
    let wiphy = control.wiphy(radio)?;
    let here = control
        .interfaces()?
        .into_iter()
        .find(|i| i.wiphy == wiphy.index && i.mhz.is_some());
    let open = wiphy
        .bands
        .iter()
        .flat_map(|b| &b.channels)
        .find(|c| c.may_send());
    let found = here.and_then(|i| i.mhz).or(open.map(|c| c.mhz));
    found.ok_or_else(|| MeasureError::NoChannel(radio.to_owned()))
}

/// What shoots.
enum Means<'a> {
    Kernel(Box<Host>),
    Stick(&'a Stick<'a>),
}

impl Means<'_> {
    fn take(&mut self, task: Task, progress: &dyn Fn(u32), stop: &AtomicBool) -> Result<Taken, MeasureError> {
        match self {
            Means::Kernel(host) => Ok(take(host, task, progress, stop)?),
            Means::Stick(stick) => stick.take(task, progress, stop),
        }
    }

    fn lost_hits(&self) -> u64 {
        match self {
            Means::Kernel(host) => host.probes().map_or(0, |p| p.lost()),
            Means::Stick(_) => 0,
        }
    }
}

/// Opens a radio for measuring, or for hearing.
fn open(
    radio: &str,
    channel_mhz: Option<u16>,
    certificate: Option<Certificate>,
    probes: Option<Way>,
    confirm: Path,
) -> Result<(Host, u16), MeasureError> {
    let mhz = channel_mhz.map_or_else(|| channel(radio), Ok)?;
    let adapter = Adapter::open(AdapterConfig {
        certificate,
        ..AdapterConfig::new(radio, mhz)
    })?;
    let config = HostConfig {
        probes,
        confirm,
        ..HostConfig::default()
    };
    Ok((Host::new(vec![adapter], config)?, mhz))
}

/// Measures. `progress` is told how many shots of all have ended, and under which load, between two events of the task: it
/// must return at once, so it may set a number that another thread shows, and not write to a terminal. When `stop` is set, what there
/// is comes back.
///
/// # Errors
/// [`MeasureError`].
pub fn measure(
    plan: &Plan,
    progress: &(dyn Fn(u64, u64, Load) + Sync),
    stop: &AtomicBool,
) -> Result<Measured, MeasureError> {
    plan.check_numbers()?;
    if !(super::LEAST_OCTETS..=super::MOST_OCTETS).contains(&plan.payload) {
        return Err(MeasureError::Plan("the payload is 13 to 1500 octets"));
    }
    let environment = environment();
    let emulated = environment.is_emulated();
    if stick_at(&plan.radio).is_some() {
        over_stick::check(plan)?;
    }
    let stick = Stick::named(&plan.radio, plan.channel_mhz, plan.firmware.as_deref()).transpose()?;
    let anew = |mhz| -> Result<(Means<'_>, u16), MeasureError> {
        if let Some(stick) = &stick {
            return Ok((Means::Stick(stick), stick.mhz));
        }
        let certificate = plan.certificate.clone();
        let (host, mhz) = open(&plan.radio, mhz, certificate, plan.probes, plan.confirm)?;
        Ok((Means::Kernel(Box::new(host)), mhz))
    };
    let (means, channel_mhz) = anew(plan.channel_mhz)?;
    let (driver, functions) = match &means {
        Means::Kernel(host) => (
            host.adapters()[0].driver().unwrap_or_default().to_owned(),
            host.probes().map(|p| p.functions().to_vec()).unwrap_or_default(),
        ),
        Means::Stick(_) => (over_stick::DRIVER.to_owned(), Vec::new()),
    };
    let air = Air::of(plan.payload, plan.rate, channel_mhz, &driver);
    let mut measured = Measured {
        environment,
        emulated,
        driver,
        channel_mhz,
        functions,
        lost_hits: 0,
        conditions: Vec::new(),
    };
    let all = u64::from(plan.count) * plan.loads.len() as u64;
    // Each host starts once, so each load has one of its own.
    let mut means = Some(means);
    for (index, load) in plan.loads.iter().copied().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut means = match means.take() {
            Some(means) => means,
            None => anew(Some(channel_mhz))?.0,
        };
        let task = Task {
            to: plan.to,
            run: run_number(),
            rate: plan.rate,
            payload: plan.payload,
            period: Duration::from_us(plan.period_us.into()),
            count: plan.count,
        };
        let before = index as u64 * u64::from(plan.count);
        let told = |done: u32| progress(before + u64::from(done), all, load);
        // The load stays where the starter may be; the seat is that of a thread of its own.
        let body = || {
            std::thread::scope(|scope| {
                let (means, told) = (&mut means, &told);
                let seated = scope.spawn(move || {
                    plan.seat.take().map_err(MeasureError::from)?;
                    means.take(task, told, stop)
                });
                seated
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        };
        let (taken, report) =
            under_load(load, stop, body).map_err(|source| MeasureError::Load { load, source })?;
        let taken = taken?;
        measured.lost_hits += means.lost_hits();
        measured.conditions.push(Condition {
            load,
            sorting: Sorting::new(&taken, air),
            taken,
            report,
        });
    }
    Ok(measured)
}

/// Hears what others measure until `stop` is set. `ready` is told the address, and the channel in MHz.
///
/// # Errors
/// [`MeasureError`].
pub fn listen(
    radio: &str,
    channel_mhz: Option<u16>,
    firmware: Option<&FilePath>,
    ready: impl FnOnce(MacAddr, u16),
    stop: &AtomicBool,
) -> Result<Ear, MeasureError> {
    if let Some(stick) = Stick::named(radio, channel_mhz, firmware) {
        return stick?.hear(ready, stop);
    }
    let (mut host, mhz) = open(radio, channel_mhz, None, None, Path::Monitor)?;
    ready(host.adapters()[0].address(), mhz);
    Ok(hear(&mut host, stop)?)
}

/// Names a run to the other station: different enough for those that it keeps.
fn run_number() -> u32 {
    let now = Host::now().as_ns();
    (now >> 16) as u32 ^ std::process::id().rotate_left(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_told() {
        let plan = Plan {
            radio: "none".into(),
            channel_mhz: None,
            to: MacAddr::local(1),
            rate: Rate::OFDM_6,
            payload: 50,
            period_us: 5_000,
            count: 1,
            loads: vec![Load::Idle],
            probes: None,
            confirm: Path::Monitor,
            seat: Seat::default(),
            certificate: None,
            firmware: None,
        };
        let stick = Plan {
            radio: "usb:any".into(),
            ..plan.clone()
        };
        for wrong in [
            Plan {
                count: 0,
                ..plan.clone()
            },
            Plan {
                period_us: 99,
                ..plan.clone()
            },
            Plan {
                payload: 12,
                ..plan.clone()
            },
            Plan {
                payload: 1_501,
                ..plan
            },
        ] {
            let error = measure(&wrong, &|_, _, _| {}, &AtomicBool::new(false)).unwrap_err();
            assert!(matches!(error, MeasureError::Plan(_)), "{error}");
        }
        // told before a stick or its firmware is looked for
        for (wrong, why) in [
            (
                Plan {
                    confirm: Path::Device,
                    ..stick.clone()
                },
                "leave --probes and --confirm out",
            ),
            (
                Plan {
                    probes: Some(Way::Auto),
                    ..stick
                },
                "leave --probes and --confirm out",
            ),
        ] {
            let error = measure(&wrong, &|_, _, _| {}, &AtomicBool::new(false)).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
