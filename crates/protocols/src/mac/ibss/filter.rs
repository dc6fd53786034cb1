//! Which received frames a station is told of in each part of a beacon interval, where the adapter has a filter: an idea of Contiki80211
//! (Glaropoulos et al. 2014, II.A). A slow host deals with one frame after the other, and an ATIM behind many others comes too
//! late: the window is over, and perhaps the station dozes.
//!
//! ```text
//! TBTT |- management --------|- all -| data, or all if it has sent the beacon -|- all -| TBTT
//!      |<---------- ATIM window ---->|                                         |<----->|
//!                            |<----->| as long as it wakes up before a TBTT ------^
//! ```
//!
//! - What the filter drops is acknowledged all the same, so it is lifted before others may send what it drops: data from the end of the
//!   window on, beacons and ATIMs from the TBTT on. How long before is what waking up takes, too ([`Ibss::wake_ahead`]). A window that
//!   is not longer than that has no filter.
//! - Who has sent the beacon hears all: others look for it, and it finds other networks of the name.
//! - Where nobody dozes there are no windows, and no filter.

use super::{Ibss, Routing};
use radio::{AdapterId, Attribute, AttributeName, Instant, Radio, ReceiveFilter};

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

    /// At the TBTT, in a network with an ATIM window.
    pub(super) fn filter_window(&mut self, now: Instant, radio: &mut dyn Radio) {
        let ahead = self.wake_ahead();
        let wanted = match self.window_end {
            Some(end) if now + ahead < end => ReceiveFilter::Management,
            _ => ReceiveFilter::All,
        };
        self.receive(wanted, radio);
    }

    /// At the end of the window. A station that dozes then is to hear all as soon as it is awake.
    pub(super) fn filter_behind_window(&mut self, dozes: bool, radio: &mut dyn Radio) {
        self.receive(
            match dozes || self.sent_beacon {
                true => ReceiveFilter::All,
                false => ReceiveFilter::Data,
            },
            radio,
        );
    }

    /// When the filter is to be lifted, if there is one.
    pub(super) fn filter_ends(&self) -> Option<Instant> {
        let end = match self.filter? {
            ReceiveFilter::All => return None,
            ReceiveFilter::Management => self.window_end?,
            ReceiveFilter::Data => self.tbtt,
        };
        Some(end - self.wake_ahead())
    }
}
