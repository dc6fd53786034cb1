//! Whatever comes over a connection of usbredir is taken as any octets, and a stick at its end lives through it.
#![no_main]

#[path = "../../crates/ar9170/tests/shared/usbredir.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| shared::try_stream(octets));
