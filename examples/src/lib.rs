//! Small protocols to learn from, each with the world it runs in.
//!
//! What belongs here: protocols that are not part of the project, short enough to be read at one go, and what the
//! book includes.
#![forbid(unsafe_code)]

pub mod aloha_world;
pub mod first_protocol;
pub mod slotted_aloha;
