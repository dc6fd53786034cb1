//! Sticks at this computer: the driver as a host in the time of this computer, over the USB of Linux.
//!
//! ```text
//! Protocol <- Driver <- UsbHost: one thread, one loop
//!                  \-> UsbBus: transfers of usbfs, many at once  -> stick
//! ```
//!
//! A stick is named `any`, if there is but one, or by where it is plugged in, as Linux names the place (`1-2`; the names of
//! links in /sys/bus/usb/devices). [`sticks`] lists those there are.

mod bus;
mod error;
mod file;
mod host;
mod pipe;
mod stick;

pub use bus::UsbBus;
pub use error::UsbError;
pub use file::{FIRMWARE_FILES, firmware_for, read_firmware};
pub use host::UsbHost;
pub use stick::{IDS, Stick, sticks};
