//! The driver on the emulated stick, in an air that acknowledges everything: what goes well, what goes wrong, and what
//! must never happen.

mod adversary;
mod air;
mod doze;
mod faults;
mod piped;
mod redirected;
mod script;
mod stick;
mod work;
