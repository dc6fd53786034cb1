//! Datagrams from anywhere between two connected ends.
#![no_main]

#[path = "../../crates/protocols/tests/shared/mod.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| shared::try_connection(octets));
