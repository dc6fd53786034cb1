//! Where a habit is broken on purpose, and why. All exceptions stand here, so that they can be read at once.

/// One file that may break one rule.
pub(super) struct Exception {
    /// Name of the rule, as `cargo xtask tidy --list` prints it.
    pub(super) rule: &'static str,
    /// The file, relative to the root.
    pub(super) path: &'static str,
    /// Why it may.
    pub(super) reason: &'static str,
}

/// All of them. One that covers nothing any more is itself a finding.
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "clock",
        path: "crates/ar9170/src/usb/bus.rs",
        reason: "it looks for a stick that was unplugged, in the time of this computer",
    },
    Exception {
        rule: "clock",
        path: "crates/ar9170/src/usb/host.rs",
        reason: "a host in the time of this computer",
    },
    Exception {
        rule: "clock",
        path: "crates/ar9170/src/usb/pipe.rs",
        reason: "a transfer that was cancelled is waited for",
    },
    Exception {
        rule: "unsafe",
        path: "crates/sim/tests/memory.rs",
        reason: "an allocator that counts: there is no other way to show that nothing is allocated",
    },
    Exception {
        rule: "unsafe",
        path: "crates/lab/src/counting.rs",
        reason: "an allocator that counts, in tests: there is no other way to show that nothing is allocated",
    },
    Exception {
        rule: "unsafe",
        path: "bindings/c/src/border.rs",
        reason: "pointers of C, which are nowhere else in the crate",
    },
    Exception {
        rule: "unsafe",
        path: "bindings/c/tests/primitives.rs",
        reason: "the functions for C are called as C calls them",
    },
    Exception {
        rule: "unsafe",
        path: "bindings/ibss/src/border.rs",
        reason: "pointers of C, which are nowhere else in the library",
    },
    Exception {
        rule: "unsafe",
        path: "bindings/ibss/src/radio_of_c.rs",
        reason: "functions of C are called, which nobody can check",
    },
    Exception {
        rule: "unsafe",
        path: "firmware/cortex-m3/src/board.rs",
        reason: "registers of a microcontroller are at addresses, and its stack is read to see how much was used",
    },
];
