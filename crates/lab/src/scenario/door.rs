//! Access points to which stations roam: doors of one network, with a wire behind them that takes no time.

use std::sync::{Arc, Mutex, PoisonError};

use protocols::mac::beacon::Beaconer;
use protocols::mac::roam::gate::Gate;
use protocols::mac::roam::wire::Arrivals;
use protocols::mac::sender::Sender;
use radio::{Event, Instant, Protocol, Radio};

use super::Scenario;
use super::program::Program;

/// What has come in through any of the doors.
pub(super) type Wire = Arc<Mutex<Arrivals<256>>>;

/// An access point. What came in through another door of its network before does not come in through it.
#[derive(Debug)]
pub struct Door {
    inner: Beaconer<Gate<Sender<8>>>,
    wire: Option<Wire>,
    dropped: u64,
}

impl Door {
    /// The only door.
    pub(super) fn new(inner: Beaconer<Gate<Sender<8>>>) -> Door {
        Door {
            inner,
            wire: None,
            dropped: 0,
        }
    }

    /// Frames that had come in before.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn is_first(&mut self, frame: &[u8], now: Instant) -> bool {
        let Some(wire) = &self.wire else { return true };
        let first = wire
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_first(frame, now);
        self.dropped += u64::from(!first);
        first
    }
}

impl Protocol for Door {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Indication(i) if !self.is_first(i.frame, now) => {}
            _ => self.inner.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
}

impl Program {
    /// Puts an access point to which stations roam at this end of the wire.
    pub(super) fn connect(&mut self, s: &Scenario, g: usize, wire: &Wire) {
        let group = &s.file.group[g];
        let lists = s.file.group.iter().filter_map(|g| g.roam.as_ref());
        let mut all = lists.flat_map(|roam| roam.access_points.get_ref());
        let named = |ap: &str| ap.split('.').next() == Some(group.name.get_ref());
        if let Program::Beaconer(door) = self
            && all.any(|ap| named(ap.get_ref()))
        {
            door.wire = Some(Arc::clone(wire));
        }
    }

    /// Frames that an access point had heard of already, from another one.
    pub fn dropped_copies(&self) -> Option<u64> {
        match self {
            Program::Beaconer(door) => Some(door.dropped()),
            _ => None,
        }
    }
}
