//! Events of a USB are told in any order, with any octets: the driver of the AR9170 comes back, and a pipe goes on.
#![no_main]

#[path = "../../crates/ar9170/tests/model/air.rs"]
#[allow(dead_code)]
mod air;
#[path = "../../crates/ar9170/tests/model/script.rs"]
#[allow(dead_code)]
mod script;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    script::try_driver(octets);
    script::try_pipe(octets);
});
