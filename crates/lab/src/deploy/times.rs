//! When a deployed node begins, counts and ends.

use std::sync::atomic::{AtomicBool, Ordering};

use linux::wifi::Host;
use radio::{Duration, Instant};

use crate::run;
use crate::scenario::Scenario;

/// When what is, on the host's clock.
pub(super) struct Times {
    begun: Instant,
    /// The end of the warm-up.
    pub since: Instant,
    pub until: Instant,
    /// From when on nothing counts whose delivery may be missed by the end.
    pub settle: Instant,
}

impl Times {
    pub(super) fn from_now(scenario: &Scenario) -> Times {
        let begun = Host::now();
        let after = |ns| begun + Duration::from_ns(ns);
        Times {
            begun,
            since: after(scenario.warm_up_ns()),
            until: after(scenario.duration_ns()),
            settle: after(run::settle_ns(scenario)),
        }
    }

    /// Waits for the node's own start.
    pub(super) fn wait(&self, start_ns: u64, stop: &AtomicBool) {
        let start = self.begun + Duration::from_ns(start_ns);
        while Host::now() < start && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(super) fn is_over(&self, stop: &AtomicBool) -> bool {
        Host::now() >= self.until || stop.load(Ordering::Relaxed)
    }

    /// How long it has run, ns, and whether that was too short.
    pub(super) fn end(&self) -> (u64, bool) {
        let now = Host::now();
        (now.since(self.begun).as_ns(), now < self.until)
    }
}
