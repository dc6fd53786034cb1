//! Lists of elements and each of their kinds take any octets.
#![no_main]

#[path = "../../crates/frame/tests/shared/mod.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| shared::try_elements(octets));
