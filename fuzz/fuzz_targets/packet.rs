//! The header of the transports takes any octets.
#![no_main]

#[path = "../../crates/protocols/tests/shared/mod.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| shared::try_packet(octets));
