//! What goes over the USB of an AR9170 that runs the open firmware, octet for octet. All fields are little-endian.
//!
//! ```text
//! command  ->  ep 4    Order            one of at most 64 octets
//! response <-  ep 2    stream::Units -> response::Responses -> Response, TxStatus
//! received <-  ep 2    stream::Units -> RxFrame
//! frame    ->  ep 1    TxFrame          descriptors and MPDU
//! firmware ->  ep 0    Firmware         image and the descriptors behind it
//! ```
//!
//! Nothing here has state. The formats are those of the open firmware `carl9170fw` 1.9.6 and of Linux 6.1's driver for
//! it; where a number stands without another source it is theirs.

pub mod command;
pub mod eeprom;
pub mod firmware;
pub mod phy;
pub mod register;
pub mod response;
pub mod rx;
pub mod stream;
pub mod tx;

pub use command::{Code, Order};
pub use eeprom::Eeprom;
pub use firmware::Firmware;
pub use phy::PhyControl;
pub use response::{Notice, Response, TxStatus};
pub use rx::RxFrame;
pub use stream::Units;
pub use tx::TxFrame;

/// The first `N` octets from `at` on; `None` beyond the end.
pub(crate) fn array<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..)?.first_chunk().copied()
}

/// A 16-bit field.
pub(crate) fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    array(octets, at).map(u16::from_le_bytes)
}

/// A 32-bit field.
pub(crate) fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    array(octets, at).map(u32::from_le_bytes)
}
