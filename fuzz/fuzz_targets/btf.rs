//! The kernel's type information is taken as any octets: as those of the kernel, and as those of a module on top.
#![no_main]

#[path = "../../crates/linux/src/probe/btf.rs"]
mod btf;

use btf::Btf;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Ok(base) = Btf::parse(octets, None) else { return };
    for types in [Some(base), Btf::parse(octets, Some(&base)).ok()].into_iter().flatten() {
        let found = types.function("send").unwrap_or(1);
        for n in 0..3 {
            let _ = types.argument(found, n);
        }
    }
});
