//! The step `firmware`: the firmware for a Cortex-M3 builds within its memory, and boards with it talk to each other in QEMU.

use anyhow::Result;

use super::Outcome;
use super::lab::get_qemu;
use super::steps::{THUMB, count, done, partly, skipped};
use super::tools::{cargo_at_root, run, rust_target};
use crate::workspace::Workspace;

/// Where it is: a workspace of its own.
const FOLDER: &str = "firmware/cortex-m3";

/// Flash and RAM are limits of the linker, the link layer's share is an assertion of the firmware: more does not build.
pub(super) fn firmware(workspace: &Workspace) -> Result<Outcome> {
    if let Err(why) = rust_target(workspace, THUMB) {
        return skipped(why);
    }
    let mut build = cargo_at_root(workspace, "build --release --locked");
    run(build
        .current_dir(workspace.root.join(FOLDER))
        .env_remove("CARGO_TARGET_DIR"))?;
    if let Err(why) = get_qemu("qemu-system-arm", "qemu-system-arm") {
        let missing = format!("boards in QEMU: there is no qemu-system-arm, {why}");
        return partly(vec!["built".to_owned()], vec![missing]);
    }
    // of all packages: with fewer, their dependencies have fewer features, and are built anew
    let tests = "test --workspace --test firmware -- --ignored --nocapture --test-threads 1";
    done(format!(
        "built; in QEMU: {}",
        count(&mut cargo_at_root(workspace, tests))?
    ))
}
