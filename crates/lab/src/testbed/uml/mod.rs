//! A User-Mode-Linux kernel with mac80211 and the radios of mac80211_hwsim, in virtual time.
//!
//! The kernel is built from Debian's source package, unpatched, and is an ordinary program: it needs no root, no
//! hardware and no virtualisation. With `time-travel=inf-cpu` its clock stands still while anything computes, and
//! jumps to the next timer when all sleep: the simulator's own kind of time, under the stack that real adapters use.
//!
//! [`source`] gets the source, [`config`] says what is built into the kernel, [`build`] builds it, [`boot`] starts it.

pub mod boot;
pub mod build;
pub mod config;
pub mod source;
