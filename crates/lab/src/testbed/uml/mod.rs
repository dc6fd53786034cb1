//! A User-Mode-Linux kernel with mac80211 and the radios of mac80211_hwsim, in virtual time.
//!
//! The kernel is built from Debian's source package, unpatched, and is an ordinary program: it needs no root, no
//! hardware and no virtualisation. With `time-travel=inf-cpu` its clock stands still while anything computes, and
//! jumps to the next timer when all sleep: the simulator's own kind of time, under the stack that real adapters use.
//!
//! From top to bottom: [`source`] gets the source, [`config`] says what is built into the kernel, [`build`] builds it
//! into the [`cache`], [`run`] runs a program in it. Inside, [`guest`] is the first process, and [`job`] is what the
//! two sides tell each other. [`guard`] sees to it that no guest outlives its user.

pub mod build;
pub mod cache;
pub mod config;
mod group;
pub mod guard;
pub mod guest;
pub mod job;
pub mod run;
pub mod source;
pub mod tools;
