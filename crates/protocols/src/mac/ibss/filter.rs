//! Which received frames a station is told of in each part of a beacon interval, where the adapter has a filter: an idea of Contiki80211
//! (Glaropoulos et al. 2014, II.A). A slow host deals with one frame after the other, and an ATIM behind many others comes too
//! late: the window is over, and perhaps the station dozes.
//!
//! ```text
//!      |<----------- ATIM window ---->|
//! TBTT |- management ---------|- all ----| what is for it alone -----|- all -|- management -| TBTT
//!                             |<----->|<-|                           |<-------------------->|
//! ```
//!
//! - What the filter drops is acknowledged all the same, so it is lifted before others may send what it drops, by the time that waking up
//!   takes, too ([`Ibss::wake_ahead`]): data from the end of the window on, beacons and ATIMs from the TBTT on. Half of this time
//!   is left to data that others have still sent. A window that is not longer than it has no filter.
//! - Behind the end of the window all pass for half of this time: the windows of others end later by what clocks differ, and so do
//!   ATIMs that are on the air.
//! - Group-addressed data passes behind the window if an ATIM has announced some.
//! - Who has sent the beacon hears all: others look for it, and it finds other networks of the name. Who dozes has the filter of the
//!   next window already.
//! - Where nobody dozes there are no windows, and no filter.

use super::{Ibss, Routing};
use radio::{AdapterId, Attribute, AttributeName, Duration, Instant, Radio, ReceiveFilter};

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// Finds out whether the adapter has a filter.
    pub(super) fn find_filter(&mut self, radio: &mut dyn Radio) {
        let can = radio.get(AdapterId::FIRST, AttributeName::Capabilities);
        let all = Attribute::ReceiveFilter(ReceiveFilter::All);
        let has = matches!(can, Some(Attribute::Capabilities(can)) if can.settable.contains(&all));
        self.filter = (self.config.receive_filter && has).then_some(ReceiveFilter::All);
    }

    /// Asks for a filter, unless the adapter has none or this one.
    pub(super) fn receive(&mut self, wanted: ReceiveFilter, radio: &mut dyn Radio) {
        if self.filter.is_some_and(|is| is != wanted) {
            self.filter = Some(wanted);
            Self::set(radio, Attribute::ReceiveFilter(wanted));
        }
    }

    /// Whether windows are long enough for a filter.
    fn filters_windows(&self) -> bool {
        let window = self.network().map_or(0, |n| n.atim_window_tu);
        Duration::from_tu(window.into()) > self.wake_ahead()
    }

    /// At the TBTT.
    pub(super) fn filter_window(&mut self, now: Instant, radio: &mut dyn Radio) {
        let ahead = self.wake_ahead();
        let wanted = match self.window_end {
            Some(end) if now + ahead < end => ReceiveFilter::Management,
            _ => ReceiveFilter::All,
        };
        self.receive(wanted, radio);
    }

    /// At the end of the window, if it dozes from now on: the filter of the next one.
    pub(super) fn filter_doze(&mut self, radio: &mut dyn Radio) {
        self.calm = true;
        let wanted = match self.filters_windows() && !self.sent_beacon {
            true => ReceiveFilter::Management,
            false => ReceiveFilter::All,
        };
        self.receive(wanted, radio);
    }

    /// The filter that hangs on time alone, once its time has come.
    pub(super) fn filter_on_time(&mut self, now: Instant, radio: &mut dyn Radio) {
        if let Some((_, filter)) = self.next_filter().filter(|(at, _)| *at <= now) {
            self.calm |= self.window_end.is_none();
            self.receive(filter, radio);
        }
    }

    /// When another filter is due that hangs on time alone, and which.
    pub(super) fn next_filter(&self) -> Option<(Instant, ReceiveFilter)> {
        let ahead = self.wake_ahead();
        let half = Duration::from_ns(ahead.as_ns() / 2);
        match (self.filter?, self.window_end) {
            (ReceiveFilter::Management, Some(end)) => Some((end - ahead, ReceiveFilter::All)),
            (ReceiveFilter::Data | ReceiveFilter::Unicast, _) => {
                Some((self.tbtt - ahead, ReceiveFilter::All))
            }
            (ReceiveFilter::All, None) if !self.calm && !self.sent_beacon => {
                let network = self.network()?;
                let begin = self.tbtt - Duration::from_tu(network.interval_tu.into());
                let end = begin + Duration::from_tu(network.atim_window_tu.into());
                let wanted = match self.hears_group {
                    true => ReceiveFilter::Data,
                    false => ReceiveFilter::Unicast,
                };
                (network.atim_window_tu > 0).then_some((end + half, wanted))
            }
            (ReceiveFilter::All, None) if self.filters_windows() => {
                Some((self.tbtt - half, ReceiveFilter::Management))
            }
            _ => None,
        }
    }
}
