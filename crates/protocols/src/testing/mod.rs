//! For tests of protocols: a [`Room`] of nodes with clocks of their own, an ideal medium between them, and a
//! script that decides the fate of every attempt. Virtual time, no randomness but from the seed.
//!
//! Every node runs under [`Checked::strict`](radio::Checked::strict) with a twin and on a tape;
//! [`Room::close`] replays the tapes. This is not a model of 802.11: there is no contention, only frames that
//! take their airtime and arrive or not. The simulator has the physics.

mod clock;
mod desk;
mod probe;
mod room;
mod script;
mod seat;

pub use clock::{Clock, Dice};
pub use probe::Probe;
pub use room::Room;
pub use script::{Attempt, Delays, Delivered, Fate, Flight};
