//! The `sdmac` command line.

fn main() {}
