//! Sends beacons around any other protocol: `Beaconer<Sink>` is the access point of the measurement task.
//!
//! The beacon is requested at its target time (TBTT) in the beacon queue. The adapter fills in the timestamp, as
//! adapters do (IEEE 802.11-2016, 11.1.3). A TBTT that the host's timer misses altogether is left out; the next
//! ones stay on their grid.

use super::tally::Tally;
use frame::mac::{Flags, FrameControl, Kind, SequenceControl};
use frame::{MacAddr, Rate};
use radio::{Duration, Event, Instant, Protocol, Queue, Radio, Token, TxHow};

/// Octets of the longest network name (IEEE 802.11-2016, 9.4.2.2).
pub const MAX_SSID_OCTETS: usize = 32;

/// Octets of the longest beacon frame that [`BeaconFrame`] writes, without FCS.
pub const MAX_BEACON_OCTETS: usize = 24 + 12 + 2 + MAX_SSID_OCTETS + 2 + 8;

/// What a beacon says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeaconFrame<'a> {
    /// Sender and BSSID.
    pub bssid: MacAddr,
    /// Beacon interval in time units of 1024 us.
    pub interval_tu: u16,
    /// Network name; what is beyond 32 octets is cut off.
    pub ssid: &'a [u8],
    /// Basic rates in units of 500 kb/s (the basic-rate bit is added); what is beyond eight is cut off.
    pub basic_500kbps: &'a [u8],
    /// Sequence number.
    pub sequence: u16,
}

impl BeaconFrame<'_> {
    /// Writes the frame with an empty timestamp (IEEE 802.11-2016, 9.3.3.3) and returns its octets.
    pub fn emit<'o>(&self, out: &'o mut [u8; MAX_BEACON_OCTETS]) -> &'o [u8] {
        let ssid = &self.ssid[..self.ssid.len().min(MAX_SSID_OCTETS)];
        let rates = &self.basic_500kbps[..self.basic_500kbps.len().min(8)];
        out.fill(0);
        out[..2].copy_from_slice(&FrameControl::new(Kind::BEACON, Flags::NONE).0);
        out[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
        out[10..16].copy_from_slice(&self.bssid.0);
        out[16..22].copy_from_slice(&self.bssid.0);
        out[22..24].copy_from_slice(&SequenceControl::new(self.sequence, 0).0.to_le_bytes());
        // 24..32: timestamp
        out[32..34].copy_from_slice(&self.interval_tu.to_le_bytes());
        out[34] = 1; // capability: ESS
        out[36..38].copy_from_slice(&[0, ssid.len() as u8]);
        let at = 38 + ssid.len();
        out[38..at].copy_from_slice(ssid);
        out[at..at + 2].copy_from_slice(&[1, rates.len() as u8]);
        for (place, rate) in out[at + 2..].iter_mut().zip(rates) {
            *place = rate | 0x80;
        }
        &out[..at + 2 + rates.len()]
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
            basic_500kbps: &[rate.to_500kbps().unwrap_or(12)],
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
