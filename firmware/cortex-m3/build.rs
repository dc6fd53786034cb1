//! The linker's map of the memory, and the file for the emulated stick, which runs none of it.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("memory.x"), include_bytes!("memory.x")).expect("cargo's folder can be written to");
    fs::write(out.join("stick.fw"), ar9170::codec::firmware::blank())
        .expect("cargo's folder can be written to");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=memory.x");
}
