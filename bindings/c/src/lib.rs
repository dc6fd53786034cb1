//! The primitives of SDMAC (Cena et al. 2018, Table I) for C programs: `SDMAC_DATA_req`, `con`, `ind`, `set`, `get` and
//! `SDMAC_beacon_ind`, blocking and non-blocking, over the simulator, Linux's 802.11 stack, and emulated AR9170 sticks.
//!
//! ```text
//! C program -> border (extern "C") -> Host -> Engine: a world of the simulator, or a host of Linux
//!                                       \-> Mailbox <-> Agent, the protocol that runs there
//! ```
//!
//! The [`agent`] is a protocol that decides nothing: what C asks for waits in its mailbox until the host calls it, and what
//! the host tells it waits there for C. Time passes only in calls that wait.
//!
//! What belongs here: the border to C. What does not: protocols; they are written in Rust against the contract.

mod agent;
mod border;
mod engine;
mod host;
mod types;
mod value;

pub use border::*;
pub use types::{
    Beacon, Confirm, How, Indication, Name, Outcome, Queue, Refusal, Rts, Series, SetAnswer, Status,
};
pub use value::{BeaconTiming, Counters, Edca, Value};
