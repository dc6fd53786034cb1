//! When a deployed node begins, counts and ends.

use std::sync::atomic::{AtomicBool, Ordering};

use linux::wifi::Host;
use radio::{Duration, Instant};

use crate::run;
use crate::scenario::Scenario;

/// Between two looks at the stop flag before the start.
const GLANCE: Duration = Duration::from_ms(10);

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
    /// Of a scenario that begins at `begun`.
    pub(super) fn of(scenario: &Scenario, begun: Instant) -> Times {
        let after = |ns| begun + Duration::from_ns(ns);
        Times {
            begun,
            since: after(scenario.warm_up_ns()),
            until: after(scenario.duration_ns()),
            settle: after(run::settle_ns(scenario)),
        }
    }

    /// Waits for the node's own start, so many ns after the beginning, and tells when that is: its traffic counts from there,
    /// however late this thread is.
    pub(super) fn wait(&self, start_ns: u64, stop: &AtomicBool) -> Instant {
        let start = self.begun + Duration::from_ns(start_ns);
        loop {
            let left = start.since(Host::now()).min(GLANCE);
            if left == Duration::ZERO || stop.load(Ordering::Relaxed) {
                return start;
            }
            std::thread::sleep(std::time::Duration::from_nanos(left.as_ns()));
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
