//! Real kernels without hardware: where the same protocols meet the 802.11 stack of Linux on the desk.
//!
//! * [`uml`]: the stack in virtual time, as a User-Mode-Linux kernel that is an ordinary program.

pub mod uml;
