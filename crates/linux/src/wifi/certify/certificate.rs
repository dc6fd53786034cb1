//! The result: rows for people, and what of it a host needs to know.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::error::Error;
use super::super::nl80211::{Control, Monitor};
use crate::host::environment;

/// Version of the form in which certificates are written.
const VERSION: u32 = 2;

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It does what is asked.
    #[serde(rename = "holds")]
    Holds,
    /// It does something else.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// From here nobody can tell; the row says why.
    #[serde(rename = "cannot be seen here")]
    CannotBeSeen,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::CannotBeSeen => "cannot be seen here",
        })
    }
}

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What it is about, in a few words.
    pub what: String,
    /// What was asked.
    pub asked: String,
    /// What was seen, in counts.
    pub seen: String,
    /// What follows.
    pub verdict: Verdict,
}

/// What a host does otherwise, depending on what was seen; `None` where it could not be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proven {
    /// One try is one frame, from our own address.
    pub one_shot: Option<bool>,
    /// One try is one frame, from the address of an interface that is up, to a station that Linux knows: drivers with
    /// a rate table add tries of their own.
    pub one_shot_to_stations: Option<bool>,
    /// A frame that asks for no ACK is one frame, from our own address.
    pub no_ack: Option<bool>,
    /// The same as `one_shot_to_stations` for a frame that asks for no ACK.
    pub no_ack_to_stations: Option<bool>,
    /// Most tries that were made as asked.
    pub max_tries: Option<u8>,
    /// It acknowledges what it receives.
    pub acknowledges: Option<bool>,
}

/// What a radio was seen to do, under one kernel and one driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Version of this form: 2.
    pub certificate: u32,
    /// Version of sdmac that wrote it.
    pub sdmac: String,
    /// It was stopped before its end, or broken off because an adapter was gone.
    pub partial: bool,
    /// Release of the kernel, as `uname -r` has it.
    pub kernel: String,
    /// Name of the driver.
    pub driver: String,
    /// Name of the radio.
    pub radio: String,
    /// Its permanent address.
    #[serde(default)]
    pub address: String,
    /// The processor was emulated, or its time virtual: times in the rows are good for order and ratios only
    /// ([`EMULATED`](crate::host::EMULATED)).
    #[serde(default)]
    pub emulated: bool,
    /// What its interface was: `active` or `plain`.
    pub monitor: String,
    /// Centre frequency.
    pub channel_mhz: u16,
    /// The second radio, or the station; none if there was none.
    pub peer: Option<String>,
    /// Question by question.
    pub rows: Vec<Row>,
    /// What a host takes from it.
    pub proven: Proven,
}

impl Certificate {
    pub(super) fn new(radio: &str, monitor: Monitor, channel_mhz: u16, peer: Option<String>) -> Certificate {
        Certificate {
            certificate: VERSION,
            sdmac: env!("CARGO_PKG_VERSION").into(),
            partial: false,
            kernel: kernel(),
            driver: driver(radio),
            radio: radio.into(),
            address: address(radio),
            emulated: environment().is_emulated(),
            monitor: name(monitor).into(),
            channel_mhz,
            peer,
            rows: Vec::new(),
            proven: Proven::default(),
        }
    }

    /// Whether it counts for a radio, by its name or that of one of its interfaces, if that is opened as well as it can be.
    ///
    /// # Errors
    /// [`Error::Certificate`] if it is about something else; others if there is no such radio.
    pub fn check(&self, radio: &str) -> Result<(), Error> {
        let wiphy = Control::open()?.wiphy(radio)?;
        let monitor = match wiphy.has_active_monitor {
            true => Monitor::Active,
            false => Monitor::Plain,
        };
        self.proven_for(&wiphy.name, monitor).map(|_| ())
    }

    /// The row about `what`.
    pub fn row(&self, what: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.what == what)
    }

    /// What it proves for a radio that is open as `monitor` now.
    ///
    /// # Errors
    /// [`Error::Certificate`] if it is about another kernel, driver, radio or kind of interface, or of another version.
    pub(in super::super) fn proven_for(&self, radio: &str, monitor: Monitor) -> Result<Proven, Error> {
        self.proven_here(&driver(radio), &address(radio), monitor)
    }

    fn proven_here(&self, driver: &str, address: &str, monitor: Monitor) -> Result<Proven, Error> {
        let same = |what, certified: &str, now: &str| match certified == now {
            true => Ok(()),
            false => Err(Error::Certificate {
                what,
                certified: certified.into(),
                now: now.into(),
            }),
        };
        same("form", &self.certificate.to_string(), &VERSION.to_string())?;
        same("kernel", &self.kernel, &kernel())?;
        same("driver", &self.driver, driver)?;
        same("address", &self.address, address)?;
        same("monitor interface", &self.monitor, name(monitor))?;
        Ok(self.proven)
    }
}

/// Driver and permanent address of a radio, by its name or that of one of its interfaces: what stays from boot to boot. Empty
/// where the kernel does not tell: /sys may show another network namespace, and then only interfaces of the radio know.
///
/// # Errors
/// [`Error`] if there is no such radio.
pub fn identity(radio: &str) -> Result<(String, String), Error> {
    let name = Control::open()?.wiphy(radio)?.name;
    let driver = super::super::simulated::driver(&name).unwrap_or_default();
    Ok((driver, address(&name)))
}

/// The permanent address of a radio; empty where nobody tells.
fn address(radio: &str) -> String {
    let by_sys = std::fs::read_to_string(format!("/sys/class/ieee80211/{radio}/macaddress"));
    if let Ok(address) = by_sys {
        return address.trim().to_owned();
    }
    let ask = || {
        let mut control = Control::open().ok()?;
        let index = control.wiphy(radio).ok()?.index;
        control.permanent_address(index)
    };
    ask().map_or_else(String::new, |address| address.to_string())
}

pub(super) fn name(monitor: Monitor) -> &'static str {
    match monitor {
        Monitor::Active => "active",
        Monitor::Plain => "plain",
        Monitor::Cook => "cook",
    }
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn driver(radio: &str) -> String {
    super::super::simulated::driver(radio).unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_one_kernel_driver_radio_and_kind_of_interface() {
        let mut c = Certificate::new("phy99", Monitor::Active, 2412, None);
        c.proven.max_tries = Some(7);
        assert_eq!(c.proven_for("phy99", Monitor::Active).unwrap().max_tries, Some(7));
        let error = c.proven_for("phy99", Monitor::Plain).unwrap_err().to_string();
        assert!(error.contains("active") && error.contains("plain"), "{error}");
        c.address = "02:00:00:00:00:00".into();
        let of = |address| c.proven_here("unknown", address, Monitor::Active);
        assert_eq!(of("02:00:00:00:00:00").unwrap().max_tries, Some(7));
        let error = of("02:00:00:00:01:00").unwrap_err().to_string();
        assert!(
            error.contains("02:00:00:00:00:00") && error.contains("02:00:00:00:01:00"),
            "{error}"
        );
        assert!(of("").is_err(), "a radio that nobody knows is no other one");
        c.address = String::new();
        c.kernel = "0.99".into();
        let error = c.proven_for("phy99", Monitor::Active).unwrap_err().to_string();
        assert!(
            error.contains("0.99") && error.contains("sdmac certify"),
            "{error}"
        );
    }
}
