//! The attempts that are below, and how long others wait for them.

use frame::MacAddr;
use radio::Instant;

/// An attempt that is below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// Which of the held requests.
    pub index: usize,
    pub to: MacAddr,
    pub since: Instant,
    /// So long others wait for its confirm.
    pub until: Instant,
    /// Whether that is over.
    silent: bool,
}

impl Flight {
    /// One that goes down now.
    pub fn new(index: usize, to: MacAddr, since: Instant, until: Instant) -> Flight {
        Flight {
            index,
            to,
            since,
            until,
            silent: false,
        }
    }
}

/// At most one for each of `N` held requests.
#[derive(Clone, Debug)]
pub(super) struct Flights<const N: usize> {
    /// The first `below` of them.
    places: [Flight; N],
    below: usize,
}

impl<const N: usize> Flights<N> {
    /// Nothing is below.
    pub fn new() -> Self {
        let nothing = Flight::new(0, MacAddr::ZERO, Instant::ZERO, Instant::ZERO);
        Flights {
            places: [nothing; N],
            below: 0,
        }
    }

    /// An attempt goes down.
    pub fn add(&mut self, flight: Flight) {
        self.places[self.below] = flight;
        self.below += 1;
    }

    /// The attempt of this request has come back.
    pub fn came_back(&mut self, index: usize) -> Option<Flight> {
        let below = &self.places[..self.below];
        let at = below.iter().position(|f| f.index == index)?;
        let flight = self.places[at];
        self.below -= 1;
        self.places[at] = self.places[self.below];
        Some(flight)
    }

    /// Gives up waiting for those that have been silent for too long; how many.
    pub fn give_up(&mut self, now: Instant) -> u64 {
        let below = &mut self.places[..self.below];
        let late = below.iter_mut().filter(|f| !f.silent && f.until <= now);
        late.map(|f| f.silent = true).count() as u64
    }

    /// Until when one to `to` has to wait, or one to anybody; `None`: it has not.
    pub fn busy_until(&self, to: Option<MacAddr>) -> Option<Instant> {
        let below = self.places[..self.below].iter().filter(|f| !f.silent);
        let in_the_way = below.filter(|f| to.is_none_or(|to| f.to == to));
        in_the_way.map(|f| f.until).max()
    }
}
