#![no_std]
//! MAC protocols and overlays as sans-IO state machines.
