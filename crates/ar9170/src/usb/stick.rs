//! Which USB devices are sticks, and where they are.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use nusb::{DeviceInfo, MaybeFuture};

use super::error::UsbError;

/// Vendor and product of the devices with an AR9170 that Linux's driver takes (6.1, carl9170/usb.c).
pub const IDS: [(u16, u16); 28] = [
    (0x0cf3, 0x9170),
    (0x0cf3, 0x1001),
    (0x0cf3, 0x1002),
    (0x0cf3, 0x1010),
    (0x0cf3, 0x1011),
    (0xcace, 0x0300),
    (0x07d1, 0x3c10),
    (0x07d1, 0x3a09),
    (0x07d1, 0x3a0f),
    (0x0846, 0x9040),
    (0x0846, 0x9010),
    (0x0846, 0x9001),
    (0x0ace, 0x1221),
    (0x1435, 0x0804),
    (0x1435, 0x0326),
    (0x0586, 0x3417),
    (0x0cde, 0x0023),
    (0x0cde, 0x0026),
    (0x0cde, 0x0027),
    (0x083a, 0xf522),
    (0x2019, 0x5304),
    (0x04bb, 0x093f),
    (0x0409, 0x0249),
    (0x0409, 0x02b4),
    (0x057c, 0x8401),
    (0x057c, 0x8402),
    (0x1668, 0x1200),
    (0x1b75, 0x9170),
];

/// A stick that is plugged in.
#[derive(Debug, Clone)]
pub struct Stick {
    pub(super) info: DeviceInfo,
}

impl Stick {
    /// Where it is plugged in: bus, and ports from the root on (`1-2.4`).
    pub fn place(&self) -> String {
        let name = self.info.sysfs_path().file_name();
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Vendor and product.
    pub fn id(&self) -> (u16, u16) {
        (self.info.vendor_id(), self.info.product_id())
    }

    /// The file by which programs reach it.
    pub fn file(&self) -> String {
        format!(
            "/dev/bus/usb/{:03}/{:03}",
            self.info.busnum(),
            self.info.device_address()
        )
    }
}

/// The sticks that are plugged in, by their places.
///
/// # Errors
/// [`UsbError::NoUsb`].
pub fn sticks() -> Result<Vec<Stick>, UsbError> {
    let devices = nusb::list_devices().wait().map_err(|_| UsbError::NoUsb)?;
    let known = devices.map(|info| Stick { info });
    let mut all: Vec<Stick> = known.filter(|stick| IDS.contains(&stick.id())).collect();
    all.sort_by_key(Stick::place);
    Ok(all)
}

/// The stick of this name.
pub(super) fn named(name: &str) -> Result<Stick, UsbError> {
    let all = sticks()?;
    let have: Vec<String> = all.iter().map(Stick::place).collect();
    let chosen = choose(name, &have)?;
    let stick = all.into_iter().nth(chosen);
    stick.ok_or(UsbError::NoStick)
}

/// Which of these places a name means.
fn choose(name: &str, have: &[String]) -> Result<usize, UsbError> {
    match (name, have) {
        ("any", []) => Err(UsbError::NoStick),
        ("any", [_]) => Ok(0),
        ("any", _) => Err(UsbError::Several(have.to_vec())),
        _ => {
            let found = have.iter().position(|place| place == name);
            found.ok_or_else(|| UsbError::NoSuchStick {
                name: name.to_string(),
                have: have.to_vec(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stick_is_named_by_its_place_or_is_the_only_one() {
        let have = |places: &[&str]| places.iter().map(|p| p.to_string()).collect::<Vec<_>>();
        assert_eq!(choose("any", &have(&["1-2"])).unwrap(), 0);
        assert_eq!(choose("2-1", &have(&["1-2", "2-1"])).unwrap(), 1);
        let error = |name, places: &[&str]| choose(name, &have(places)).unwrap_err().to_string();
        assert!(error("any", &[]).starts_with("no AR9170 stick"));
        assert!(error("any", &["1-2", "2-1"]).ends_with("one of 1-2, 2-1"));
        assert!(error("1-3", &["1-2", "2-1"]).contains("at `1-3`: name one of 1-2, 2-1"));
        assert!(error("zz", &[]).contains("at `zz`, and none elsewhere: plug one in"));
    }

    #[test]
    fn no_id_is_there_twice() {
        let mut ids = IDS;
        ids.sort_unstable();
        assert!(ids.windows(2).all(|w| w[0] != w[1]));
    }
}
