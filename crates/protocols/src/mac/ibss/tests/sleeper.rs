//! A station in a room whose adapter is deaf while it dozes, and counts what it misses by that.

use super::*;

/// See the module.
pub(super) struct Sleeper<P> {
    pub(super) station: P,
    /// The last doze, on the host's clock; without an end so far if it dozes.
    doze: (Instant, Instant),
    /// Frames for it, or for all, that came while it dozed.
    pub(super) missed: u64,
}

/// What can doze.
pub(super) trait Dozes: Protocol {
    fn dozes(&self) -> bool;
}

impl<const Q: usize, const L: usize> Dozes for Ibss<Q, L> {
    fn dozes(&self) -> bool {
        self.is_dozing()
    }
}

impl<P> Sleeper<P> {
    pub(super) fn new(station: P) -> Sleeper<P> {
        Sleeper {
            station,
            doze: (Instant::ZERO, Instant::ZERO),
            missed: 0,
        }
    }
}

impl<P: Dozes> Protocol for Sleeper<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        // clocks of adapter and host are the same in these rooms
        if let Event::Indication(radio::Indication {
            frame, tsf: Some(t), ..
        }) = &event
        {
            let begin = Instant::from_us(t.0);
            if (self.doze.0..self.doze.1).contains(&begin) {
                let kind = Header::parse(frame).unwrap().kind();
                self.missed += u64::from(matches!(kind, Kind::DATA | Kind::ATIM));
                return;
            }
        }
        if let Event::Beacon(beacon) = &event
            && let Some(t) = beacon.received.tsf
            && (self.doze.0..self.doze.1).contains(&Instant::from_us(t.0))
        {
            return;
        }
        self.station.handle(now, event, radio);
        match (self.station.dozes(), self.doze.1 == Instant::MAX) {
            (true, false) => self.doze = (now, Instant::MAX),
            (false, true) => self.doze.1 = now,
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.station.deadline()
    }
}
