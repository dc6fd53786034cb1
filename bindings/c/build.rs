//! The name by which programs look for the library when they start.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsdmac.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
