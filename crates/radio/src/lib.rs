#![no_std]
//! The contract between a MAC protocol and whatever carries its frames: events in, actions out.
