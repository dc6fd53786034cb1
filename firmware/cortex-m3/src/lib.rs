//! What the programs for the board share.
#![no_std]

pub mod board;
