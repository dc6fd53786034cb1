//! The Linux side: measuring this computer, and its 802.11 stack as a radio.
//!
//! * [`wifi`] lets protocols drive the radios of this computer through the unpatched 802.11 stack.
//! * [`hwsim`] makes a program the air between the simulated radios of the kernel.
//! * [`host`] measures the computer it runs on: timers, the packet path and thread wake-ups, idle and under load.
//! * [`inet`] gives a thread a network namespace of its own, and IPv4 in it.
//! * [`machine`] says what of the computer costs determinism, and tunes it.
//! * [`netfilter`] lets a program read and change packets that leave through an interface.
//! * [`probe`] stamps frames within the kernel.
//! * [`tcp`] tells what the kernel knows of a TCP connection.
//! * `sys` (private) holds every `unsafe` block of this library: system calls that rustix does not offer.

mod clock;
mod generic;
pub mod host;
pub mod hwsim;
pub mod inet;
pub mod machine;
pub mod netfilter;
mod netlink;
pub mod probe;
mod sys;
pub mod wifi;

pub use sys::tcp;
