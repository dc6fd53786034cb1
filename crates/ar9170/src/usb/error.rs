//! Why there is no stick.

use std::format;
use std::string::String;
use std::vec::Vec;

use crate::codec::firmware::FirmwareError;

/// Why a stick cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UsbError {
    /// The kernel shows no USB.
    #[error("this computer shows no USB in /sys/bus/usb: load its USB driver, or mount /sys")]
    NoUsb,
    /// There is none.
    #[error("no AR9170 stick is plugged in: none of the USB devices has one of its numbers")]
    NoStick,
    /// `any` is not clear.
    #[error("there are several AR9170 sticks: name one of {}", .0.join(", "))]
    Several(Vec<String>),
    /// The name is that of no stick.
    #[error("no AR9170 stick is plugged in at `{name}`{}", instead(.have))]
    NoSuchStick {
        /// What was asked for.
        name: String,
        /// What there is.
        have: Vec<String>,
    },
    /// The device may not be written to.
    #[error(
        "not allowed to open the stick at {place}: run as root, or give yourself write access to {file} (a udev rule keeps it)"
    )]
    NoPermission {
        /// Where it is plugged in.
        place: String,
        /// The device file.
        file: String,
    },
    /// Another program has it.
    #[error("another program uses the stick at {0}: end it first")]
    InUse(String),
    /// It lacks an endpoint, or has another kind of it.
    #[error("the device at {place} is no AR9170 with its loader: {why}")]
    NotOne {
        /// Where it is plugged in.
        place: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The kernel refuses something else.
    #[error("cannot {what} the stick at {place}: {error}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Where it is plugged in.
        place: String,
        /// What it says.
        error: nusb::Error,
    },
    /// It does not answer.
    #[error(
        "the stick at {place} did not come up within {seconds} s, after {restarts} restarts: plug it in anew"
    )]
    Silent {
        /// Where it is plugged in.
        place: String,
        /// How long it was waited for.
        seconds: u64,
        /// Tries.
        restarts: u64,
    },
    /// No file of the firmware.
    #[error(
        "no firmware for the stick ({tried} is not there): install Debian's firmware-linux-free, or name a file with --firmware"
    )]
    NoFirmware {
        /// Where it was looked for.
        tried: String,
    },
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// Which file.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The file is no firmware.
    #[error("{path}: {error}")]
    Firmware {
        /// Which file.
        path: String,
        /// The reason.
        error: FirmwareError,
    },
}

/// What to do for one that is not there.
fn instead(have: &[String]) -> String {
    if have.is_empty() {
        return ", and none elsewhere: plug one in".into();
    }
    format!(": name one of {}", have.join(", "))
}
