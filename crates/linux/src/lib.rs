//! The Linux side: measuring this computer, and (later) the 802.11 stack as a radio.
//!
//! * [`host`] measures the computer it runs on: timers, the packet path and thread wake-ups, idle and under load.
//! * `sys` (private) holds every `unsafe` block of this library: system calls that rustix does not offer.

pub mod host;
mod sys;
