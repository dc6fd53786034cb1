//! The same over an AR9170 stick at this computer, which this program drives itself.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ar9170::codec::Firmware;
use ar9170::driver::Config;
use ar9170::usb::{UsbBus, UsbHost, firmware_for};
use frame::MacAddr;
use linux::wifi::confirm;
use radio::{Duration, Protocol};

use super::session::{MeasureError, Plan};
use super::shots::{Shots, Task};
use super::{ASKING, Ear, LOOK, Taken};
use crate::deploy::stick_at;

/// How long a stick may take to come up, and requests to end.
const PATIENCE: Duration = Duration::from_ms(20_000);
/// Where it is if nobody says a channel: the first that it has.
const FIRST_MHZ: u16 = 2_412;
/// Name of the driver.
pub(super) const DRIVER: &str = "ar9170 of sdmac";

/// A stick and what it takes.
pub(super) struct Stick<'a> {
    place: &'a str,
    firmware: Vec<u8>,
    pub mhz: u16,
}

impl<'a> Stick<'a> {
    /// The stick that a radio's name says, if it says one.
    pub(super) fn named(
        radio: &'a str,
        mhz: Option<u16>,
        firmware: Option<&Path>,
    ) -> Option<Result<Stick<'a>, MeasureError>> {
        let place = stick_at(radio)?;
        Some(
            firmware_for(place, firmware)
                .map_err(MeasureError::from)
                .map(|firmware| Stick {
                    place,
                    firmware,
                    mhz: mhz.unwrap_or(FIRST_MHZ),
                }),
        )
    }

    fn host<P: Protocol>(&self, protocol: P, stop: &AtomicBool) -> Result<UsbHost<'_, P, ()>, MeasureError> {
        let firmware = Firmware::parse(&self.firmware).map_err(|_| MeasureError::Stick("has no firmware"))?;
        let config = Config {
            mhz: self.mhz,
            ..Config::default()
        };
        let mut host = UsbHost::new(UsbBus::open(self.place)?, firmware, config, protocol, ());
        host.bring_up(PATIENCE, stop)?;
        Ok(host)
    }

    /// As [`super::take`].
    pub(super) fn take(
        &self,
        task: Task,
        progress: &dyn Fn(u32),
        stop: &AtomicBool,
    ) -> Result<Taken, MeasureError> {
        // who it is says the stick, before it starts
        let mut host = self.host(Shots::new(task, MacAddr::ZERO), stop)?;
        let me = host.address();
        host.protocol_mut().is(me);
        let soon = || UsbHost::<Shots, ()>::now() + LOOK;
        while !host.protocol().is_shot() && !stop.load(Ordering::Relaxed) {
            host.run(Some(soon()), stop);
            progress(host.protocol().shots.len() as u32);
        }
        let interrupted = !host.protocol().is_shot();
        let (now, never) = (UsbHost::<Shots, ()>::now(), AtomicBool::new(false));
        host.protocol_mut().ask(now);
        while !host.protocol().is_done() && UsbHost::<Shots, ()>::now() < now + ASKING {
            host.run(Some(soon()), &never);
        }
        host.finish(PATIENCE);
        let (shots, ()) = host.into_parts();
        Ok(Taken::of(shots, interrupted))
    }

    /// As [`super::hear`].
    pub(super) fn hear(
        &self,
        ready: impl FnOnce(MacAddr, u16),
        stop: &AtomicBool,
    ) -> Result<Ear, MeasureError> {
        let mut host = self.host(Ear::new(MacAddr::ZERO), stop)?;
        let me = host.address();
        host.protocol_mut().is(me);
        ready(me, self.mhz);
        host.run(None, stop);
        host.finish(PATIENCE);
        let (ear, ()) = host.into_parts();
        Ok(ear)
    }
}

/// Whether a plan asks only for what a stick has.
///
/// # Errors
/// What it has not.
pub(super) fn check(plan: &Plan) -> Result<(), MeasureError> {
    let no = |why| Err(MeasureError::Stick(why));
    if plan.probes.is_some() || plan.confirm != confirm::Path::Monitor {
        return no(
            "is driven by this program, so no kernel driver can be probed or asked for outcomes: leave --probes and --confirm out",
        );
    }
    if plan.certificate.is_some() {
        return no("needs no certificate: its firmware tells the tries of each frame");
    }
    Ok(())
}
