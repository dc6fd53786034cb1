//! Whatever comes over the USB of an AR9170, and what goes there, is taken as any octets.
#![no_main]

#[path = "../../crates/ar9170/tests/shared/mod.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    shared::try_transfer(octets);
    shared::try_others(octets);
});
