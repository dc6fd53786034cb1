//! The file of the stick's firmware.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::string::ToString;
use std::vec::Vec;

use super::error::UsbError;
use super::stick::named;
use crate::codec::Firmware;

/// Where Linux has the open firmware, and Debian's package firmware-linux-free puts it.
pub const FIRMWARE_FILES: [&str; 2] = ["/lib/firmware/carl9170-1.fw", "/usr/lib/firmware/carl9170-1.fw"];
/// More than a firmware may have: what has no end is not read to it.
const ENOUGH: u64 = 1 << 16;

/// Reads the firmware from `path`, else from the first of [`FIRMWARE_FILES`], and checks that it is one: what it gives back
/// is for [`Firmware::parse`].
///
/// # Errors
/// [`UsbError::NoFirmware`], [`UsbError::Unreadable`], [`UsbError::Firmware`].
pub fn read_firmware(path: Option<&Path>) -> Result<Vec<u8>, UsbError> {
    let found = match path {
        Some(path) => path,
        None => FIRMWARE_FILES
            .iter()
            .map(Path::new)
            .find(|file| file.exists())
            .ok_or_else(|| UsbError::NoFirmware {
                tried: FIRMWARE_FILES[0].to_string(),
            })?,
    };
    let name = || found.display().to_string();
    let mut octets = Vec::new();
    std::fs::File::open(found)
        .and_then(|file| file.take(ENOUGH).read_to_end(&mut octets))
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => UsbError::NoFirmware { tried: name() },
            _ => UsbError::Unreadable { path: name(), error },
        })?;
    match Firmware::parse(&octets) {
        Ok(_) => Ok(octets),
        Err(error) => Err(UsbError::Firmware { path: name(), error }),
    }
}

/// [`read_firmware`] for the stick of this name, which has to be there: nobody is sent for a file who lacks the stick.
///
/// # Errors
/// Those of [`UsbBus::open`](super::UsbBus::open) for a stick that is not there, before those of [`read_firmware`].
pub fn firmware_for(stick: &str, path: Option<&Path>) -> Result<Vec<u8>, UsbError> {
    named(stick)?;
    read_firmware(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stick_that_is_not_there_is_told_first() {
        let error = firmware_for("zz", Some(Path::new("/nowhere/x.fw"))).unwrap_err();
        assert!(
            matches!(error, UsbError::NoSuchStick { .. } | UsbError::NoUsb),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_none_gets_a_sentence() {
        let error = |path: &str| read_firmware(Some(Path::new(path))).unwrap_err().to_string();
        assert!(error("/nowhere/x.fw").contains("/nowhere/x.fw is not there"));
        assert!(error("/dev/zero").contains("octets, not 32 to 16384"));
        assert!(error("/").starts_with("/: "));
    }
}
