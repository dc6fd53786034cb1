//! Real kernels without hardware: where the same protocols meet the 802.11 stack of Linux on the desk.
//!
//! * [`uml`]: the stack in virtual time, as a User-Mode-Linux kernel that is an ordinary program.
//! * [`air`]: the air of a scenario between the simulated radios of a kernel.

pub mod air;
pub mod uml;
