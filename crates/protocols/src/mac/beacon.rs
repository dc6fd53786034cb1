//! Sends beacons around any other protocol: `Beaconer<Sink>` is the access point of the measurement task.
//!
//! The beacon is requested at its target time (TBTT) in the beacon queue. The adapter fills in the timestamp, as
//! adapters do (IEEE 802.11-2016, 11.1.3). A TBTT that the host's timer misses altogether is left out; the next
//! ones stay on their grid.

use super::tally::Tally;
use frame::element::{ElementsBuilder, RateOctets, Ssid, Vendor};
use frame::mac::SequenceControl;
use frame::mgmt::{Beacon, Capability, MgmtHeader};
use frame::{MacAddr, Rate, RateSet, Wire};
use radio::{Duration, Event, Instant, Protocol, Queue, Radio, Token, TxHow};

/// Octets of the longest network name (IEEE 802.11-2016, 9.4.2.2).
pub const MAX_SSID_OCTETS: usize = 32;

/// Octets of the elements: network name and up to eight rates.
const MAX_ELEMENTS_OCTETS: usize = 2 + MAX_SSID_OCTETS + 2 + 8;
/// Octets of the longest element.
const MAX_ELEMENT_OCTETS: usize = 2 + 255;

/// Octets of the longest beacon frame that [`BeaconFrame`] writes, without FCS.
pub const MAX_BEACON_OCTETS: usize = 24 + 12 + MAX_ELEMENTS_OCTETS;

/// What the beacons of this crate say; they are [`Beacon`] frames with a network name and rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeaconFrame<'a> {
    /// Sender and BSSID.
    pub bssid: MacAddr,
    /// Beacon interval in time units of 1024 us.
    pub interval_tu: u16,
    /// Network name; what is beyond 32 octets is cut off.
    pub ssid: &'a [u8],
    /// Basic rates; what is beyond eight is left out.
    pub basic: RateSet,
    /// Sequence number, 0 to 4095.
    pub sequence: u16,
}

impl BeaconFrame<'_> {
    /// Basic rates of a network whose beacons go at `rate`: that one, or 6 Mb/s if it is an HT rate.
    pub const fn basic_for(rate: Rate) -> RateSet {
        let basic = RateSet::EMPTY.with(rate);
        if basic.is_empty() {
            RateSet::OFDM_6_ONLY
        } else {
            basic
        }
    }

    /// Writes the frame with an empty timestamp and returns its octets.
    pub fn emit<'o>(&self, out: &'o mut [u8; MAX_BEACON_OCTETS]) -> &'o [u8] {
        self.emit_with(&[], out)
    }

    /// As [`emit`](BeaconFrame::emit), with up to two elements behind those.
    ///
    /// # Panics
    /// If `out` is shorter than [`MAX_BEACON_OCTETS`] and the elements, or there are more of them.
    pub fn emit_with<'o>(&self, vendors: &[Vendor<'_>], out: &'o mut [u8]) -> &'o [u8] {
        let mut octets = [0; MAX_ELEMENTS_OCTETS + 2 * MAX_ELEMENT_OCTETS];
        let mut elements = ElementsBuilder::new(&mut octets);
        let ssid = &self.ssid[..self.ssid.len().min(MAX_SSID_OCTETS)];
        elements.push(Ssid(ssid)).expect("cut to what fits");
        let rates = RateOctets::new(RateSet::EMPTY, self.basic);
        if !self.basic.is_empty() {
            elements.push(rates.supported()).expect("one to eight rates");
        }
        for vendor in vendors {
            elements
                .push(*vendor)
                .expect("there is room for any two elements");
        }
        let mut header = MgmtHeader::new(MacAddr::BROADCAST, self.bssid, self.bssid);
        header.sequence = SequenceControl::new(self.sequence, 0);
        let beacon = Beacon {
            header,
            timestamp_us: 0,
            interval_tu: self.interval_tu,
            capability: Capability::ESS,
            elements: elements.finish(),
        };
        let n = beacon.emit(out).expect("the buffer is long enough");
        &out[..n]
    }
}

/// How a [`Beaconer`] sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeaconerConfig {
    /// Address of the access point.
    pub bssid: MacAddr,
    /// Network name.
    pub ssid: &'static str,
    /// From one TBTT to the next; at least 1 us. On the air it is rounded to time units.
    pub interval: Duration,
    /// First TBTT after the start.
    pub first: Duration,
    /// Rate; should be a basic rate.
    pub rate: Rate,
}

impl BeaconerConfig {
    /// Beacons of the network `sdmac` every `interval` from the start on.
    pub const fn new(bssid: MacAddr, interval: Duration, rate: Rate) -> BeaconerConfig {
        BeaconerConfig {
            bssid,
            ssid: "sdmac",
            interval,
            first: Duration::ZERO,
            rate,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Beaconer<P> {
    inner: P,
    config: BeaconerConfig,
    next: Option<Instant>,
    sending: Option<Token>,
    sequence: u16,
    skipped: u64,
    confirms: Tally,
}

impl<P: Protocol> Beaconer<P> {
    /// Beacons around `inner`.
    pub fn new(config: BeaconerConfig, inner: P) -> Self {
        Beaconer {
            inner,
            config,
            next: None,
            sending: None,
            sequence: 0,
            skipped: 0,
            confirms: Tally::default(),
        }
    }

    /// The protocol inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Beacons left out: the timer came too late, or the beacon before was not confirmed yet.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Outcomes so far. Beacons get no ACK: those that were sent are counted as not acked.
    pub fn confirms(&self) -> &Tally {
        &self.confirms
    }

    fn send_due(&mut self, now: Instant, radio: &mut dyn Radio) {
        let Some(tbtt) = self.next.filter(|t| *t <= now) else {
            return;
        };
        let interval = self.config.interval.as_ns().max(1_000);
        let late = now.since(tbtt).as_ns() / interval;
        let next = tbtt + Duration::from_ns(interval.saturating_mul(late + 1));
        self.next = Some(next);
        self.skipped += late;
        if self.sending.is_some() {
            self.skipped += 1;
            return;
        }
        let interval_tu = (interval + 512_000) / 1_024_000;
        let rate = self.config.rate;
        let beacon = BeaconFrame {
            bssid: self.config.bssid,
            interval_tu: interval_tu.clamp(1, u64::from(u16::MAX)) as u16,
            ssid: self.config.ssid.as_bytes(),
            basic: BeaconFrame::basic_for(rate),
            sequence: self.sequence,
        };
        self.sequence = (self.sequence + 1) & 0xfff;
        let token = radio.token();
        self.sending = Some(token);
        let how = TxHow::one_shot(rate).queue(Queue::Beacon).expires(next);
        radio.request(token, beacon.emit(&mut [0; MAX_BEACON_OCTETS]), &how);
    }
}

impl<P: Protocol> Protocol for Beaconer<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                self.next = Some(now + self.config.first);
                self.send_due(now, radio);
            }
            Event::Timer => {
                self.send_due(now, radio);
                // the timer may have been for the beacon alone
                if self.inner.deadline().is_none_or(|t| t > now) {
                    return;
                }
            }
            Event::Confirm(c) if Some(c.token) == self.sending => {
                self.sending = None;
                self.confirms.note(&c);
                return;
            }
            _ => {}
        }
        self.inner.handle(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        [self.next, self.inner.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ssid: &[u8], basic: RateSet) -> BeaconFrame<'_> {
        BeaconFrame {
            bssid: MacAddr::local(1),
            interval_tu: 100,
            ssid,
            basic,
            sequence: 0x123,
        }
    }

    #[test]
    fn octets_of_the_standard() {
        let mut out = [0xff; MAX_BEACON_OCTETS];
        #[rustfmt::skip]
        assert_eq!(frame(b"net", RateSet::OFDM_MANDATORY).emit(&mut out), [
            0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x30, 0x12,
            0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 1, 0, 0, 3, b'n', b'e', b't', 1, 3, 0x8c, 0x98, 0xb0,
        ]);
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let mut out = [0; MAX_BEACON_OCTETS];
        let all = (0..=255)
            .filter_map(Rate::from_500kbps)
            .fold(RateSet::EMPTY, RateSet::with);
        let mpdu = frame(&[b'n'; 40], all).emit(&mut out);
        assert_eq!(mpdu.len(), MAX_BEACON_OCTETS);
        let elements = Beacon::parse(mpdu).unwrap().elements;
        assert_eq!(elements.get(), Some(Ssid(&[b'n'; 32])));
        assert_eq!(elements.octets()[34..36], [1, 8]);
        // the standard allows no empty element of rates
        let mpdu = frame(b"", RateSet::EMPTY).emit(&mut out);
        assert_eq!(Beacon::parse(mpdu).unwrap().elements.octets(), [0, 0]);
        let ht = Rate::ht(7, frame::Width::Mhz20, frame::GuardInterval::Long).unwrap();
        assert_eq!(BeaconFrame::basic_for(ht), RateSet::OFDM_6_ONLY);
    }
}
