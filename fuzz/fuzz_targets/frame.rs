//! Every frame kind takes any octets, and what was accepted is written back octet for octet.
#![no_main]

#[path = "../../crates/frame/tests/shared/mod.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| shared::try_frame(octets));
