//! The nine measuring planes t1 to t9 of a transmission (SDMAC, Cena et al. 2018, Table II), and the time
//! stamps taken there.

use crate::time::{Instant, Tsf};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A place on the way of a frame from the application to the air and of its outcome back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Plane {
    /// Just before the request is called.
    T1,
    /// First instruction in the driver.
    T2,
    /// First device-dependent instruction of the driver.
    T3,
    /// Just after the frame was queued in the ring.
    T4,
    /// First instruction of the interrupt routine.
    T5,
    /// First instruction of the tasklet.
    T6,
    /// First device-independent instruction of the status path.
    T7,
    /// Just before the outcome is handed to user space.
    T8,
    /// Just after the confirm returned.
    T9,
}

impl Plane {
    /// All nine, in the order of a transmission.
    pub const ALL: [Plane; 9] = [
        Plane::T1,
        Plane::T2,
        Plane::T3,
        Plane::T4,
        Plane::T5,
        Plane::T6,
        Plane::T7,
        Plane::T8,
        Plane::T9,
    ];

    /// 0 for t1 to 8 for t9.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.index() + 1)
    }
}

/// A time taken at a plane, on the clock that the host has there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Stamp {
    /// On the host's clock.
    Host(Instant),
    /// On the adapter's timer.
    Adapter(Tsf),
}

/// What was stamped on the way of one frame. A host leaves out the planes it cannot see and never invents one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Stamps {
    value: [u64; 9],
    taken: u16,
    by_adapter: u16,
}

impl Stamps {
    /// No plane stamped.
    pub const NONE: Stamps = Stamps {
        value: [0; 9],
        taken: 0,
        by_adapter: 0,
    };

    /// Notes a stamp; a second one for the same plane replaces the first.
    pub fn set(&mut self, plane: Plane, stamp: Stamp) {
        let bit = 1 << plane.index();
        self.taken |= bit;
        match stamp {
            Stamp::Host(t) => {
                self.by_adapter &= !bit;
                self.value[plane.index()] = t.as_ns();
            }
            Stamp::Adapter(t) => {
                self.by_adapter |= bit;
                self.value[plane.index()] = t.0;
            }
        }
    }

    /// Notes a stamp on the host's clock.
    pub fn host(&mut self, plane: Plane, t: Instant) {
        self.set(plane, Stamp::Host(t));
    }

    /// The stamp at `plane`, if one was taken.
    pub fn get(&self, plane: Plane) -> Option<Stamp> {
        let bit = 1 << plane.index();
        let value = self.value[plane.index()];
        (self.taken & bit != 0).then(|| {
            if self.by_adapter & bit != 0 {
                Stamp::Adapter(Tsf(value))
            } else {
                Stamp::Host(Instant::from_ns(value))
            }
        })
    }

    /// The stamp at `plane` if it was taken on the host's clock.
    pub fn get_host(&self, plane: Plane) -> Option<Instant> {
        match self.get(plane) {
            Some(Stamp::Host(t)) => Some(t),
            _ => None,
        }
    }

    /// Number of planes stamped, 0 to 9.
    pub fn count(&self) -> u32 {
        self.taken.count_ones()
    }

    /// True if the host stamps that were taken never go back from t1 to t9.
    pub fn in_order(&self) -> bool {
        let mut last = Instant::ZERO;
        Plane::ALL.iter().filter_map(|p| self.get_host(*p)).all(|t| {
            let ok = t >= last;
            last = t;
            ok
        })
    }
}

impl fmt::Debug for Stamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut m = f.debug_map();
        for p in Plane::ALL {
            if let Some(s) = self.get(p) {
                m.entry(&format_args!("{p}"), &s);
            }
        }
        m.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blind_planes_stay_empty() {
        let mut s = Stamps::NONE;
        s.host(Plane::T1, Instant::from_ns(5));
        s.set(Plane::T5, Stamp::Adapter(Tsf(77)));
        s.host(Plane::T9, Instant::from_ns(9));
        assert_eq!(s.count(), 3);
        assert_eq!(s.get(Plane::T2), None);
        assert_eq!(s.get(Plane::T5), Some(Stamp::Adapter(Tsf(77))));
        assert_eq!(s.get_host(Plane::T5), None);
        assert!(s.in_order());
        s.host(Plane::T4, Instant::from_ns(10));
        assert!(!s.in_order());
        s.set(Plane::T5, Stamp::Host(Instant::from_ns(1)));
        assert_eq!(s.get(Plane::T5), Some(Stamp::Host(Instant::from_ns(1))));
    }
}
