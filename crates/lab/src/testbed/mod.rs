//! Real kernels without hardware: where the same protocols meet the 802.11 stack of Linux on the desk.
//!
//! * [`uml`]: the stack in virtual time, as a User-Mode-Linux kernel that is an ordinary program.
//! * [`qemu`]: Debian's own kernels, standard and PREEMPT_RT, in an emulated computer: for probes, modules, and the real
//!   boot path. Its time is that of an emulated CPU: good for order and for ratios, not for absolute values.
//! * [`air`]: the air of a scenario between the simulated radios of a kernel.
//! * [`compare`]: a scenario in the simulator and on real stacks, number by number.
//! * [`chain`]: files over several hops of real stacks, and over those of the simulator.
//! * [`ar9170`]: computers with emulated AR9170 sticks, whose air is that of the simulator. No kernel is in it.
//! * [`board`]: microcontrollers in QEMU with such sticks, behind serial pipes.
//!
//! Both kernels give a program all files of this computer, and pass on what it writes: [`run`] starts the kernel, [`guest`] is
//! the first process inside, and [`job`] is what the two sides tell each other. Kernels are made at a [`site`] and kept in
//! the [`cache`]. [`guard`] sees to it that no guest outlives its user.

pub mod air;
pub mod ar9170;
pub mod board;
pub mod cache;
pub mod chain;
pub mod compare;
mod group;
pub mod guard;
pub mod guest;
pub mod job;
pub mod qemu;
pub mod run;
pub mod site;
pub mod tools;
pub mod uml;
