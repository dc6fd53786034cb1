//! Microcontrollers in QEMU, each with an emulated AR9170 stick behind a serial pipe, in one air of the simulator; and a
//! station of this computer among them.
//!
//! ```text
//! QEMU: firmware <- serial pipe -> stick \
//! QEMU: firmware <- serial pipe -> stick - adapters and medium of the simulator
//! station of this computer, its stick    /
//! ```
//!
//! Time is that of the simulator: a board is told what time it is with each message, and the simulator waits for its
//! answer. So a run is the same on every computer, however slow, and what a board computes takes no time.
//!
//! [`qemu`] is one board, [`network`] all of them; [`counts`] is a board without a stick, which counts its instructions.

pub mod counts;
pub mod network;
pub mod qemu;

pub use network::{Heard, Network, Options};
pub use qemu::{Board, BoardError};

/// Where the firmware is when it was built in its folder, from the root of the repository.
pub const FIRMWARE: &str = "firmware/cortex-m3/target/thumbv7m-none-eabi/release/node";
/// The program that runs boards, and its Debian package.
pub const QEMU: super::tools::Tool = ("qemu-system-arm", "qemu-system-arm");
