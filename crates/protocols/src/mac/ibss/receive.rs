//! What comes in: networks, probes, ATIMs, data.

use super::super::data::Received;
use super::super::sync::seen;
use super::network;
use super::protection::OPEN_OCTETS;
use super::{Ibss, Phase, Routing};
use frame::airtime::{octets_ns, timestamp_ns};
use frame::mac::{Header, Kind};
use radio::{Attribute, Indication, Instant, Msdu, Radio, Tsf};

/// A timestamp counts as later from here on, us: below it is what is lost by rounding on both sides.
const LATER_US: i64 = 2;

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// A beacon or probe response of a network with our name.
    fn network_heard(
        &mut self,
        now: Instant,
        heard: &network::Heard,
        received: &Indication<'_>,
        is_beacon: bool,
        radio: &mut dyn Radio,
    ) {
        let ahead_us = heard.timestamp.minus(Self::stamped_at(now, received, radio));
        match self.phase {
            Phase::Idle => return,
            Phase::Scanning(_) if self.config.bssid.is_none_or(|ours| ours == heard.network.bssid) => {
                self.enter(now, heard.network, ahead_us, radio);
            }
            Phase::Scanning(_) => return,
            Phase::Member(ours) if ours.bssid == heard.network.bssid => {
                if is_beacon {
                    self.counters.beacons_heard += 1;
                    self.spare_beacon(radio);
                }
                if ahead_us > LATER_US && !Self::is_followed(&ours, radio) {
                    self.counters.adoptions += 1;
                    let tsf = Self::tsf(now, radio).plus(ahead_us);
                    self.setting_tsf = Some(Self::set(radio, Attribute::Tsf(tsf)));
                }
            }
            Phase::Member(_) if ahead_us > LATER_US && self.config.bssid.is_none() => {
                self.counters.merges += 1;
                self.enter(now, heard.network, ahead_us, radio);
            }
            Phase::Member(_) => return,
        }
        self.neighbours.heard(heard.from, now);
    }

    /// Our TSF when the first bit of the timestamp arrived. Where the adapter does not say when a frame came, it is the latest
    /// that it can have been: the frame began when the host had it. A medium may take no time at all, and two stations that
    /// reckon with too much of it set each other ahead for ever.
    fn stamped_at(now: Instant, received: &Indication<'_>, radio: &dyn Radio) -> Tsf {
        let us = |ns: u64| (ns / 1_000) as i64;
        match received.tsf {
            Some(first_bit) => first_bit.plus(us(octets_ns(24, received.rate))),
            None => {
                let ago = now.since(seen(&received.stamps, now));
                Self::tsf(now, radio).plus(us(timestamp_ns(received.rate)) - ago.as_us() as i64)
            }
        }
    }

    pub(super) fn indication(&mut self, now: Instant, received: &Indication<'_>, radio: &mut dyn Radio) {
        let Ok(header) = Header::parse(received.frame) else {
            return;
        };
        let member = self.network().copied();
        let of_network = member.is_some_and(|n| header.address3() == Some(n.bssid));
        match header.kind() {
            Kind::BEACON | Kind::PROBE_RESPONSE => {
                if let Some(heard) = network::read(received.frame, &self.config) {
                    self.network_heard(now, &heard, received, header.kind() == Kind::BEACON, radio);
                }
            }
            Kind::PROBE_REQUEST if member.is_some() => {
                let last = self.sent_last_beacon;
                if let Some(from) = network::asks_for_us(received.frame, &self.config, last) {
                    self.answer_probe(from, radio);
                }
            }
            Kind::ATIM if of_network || self.config.multi_hop && member.is_some() => {
                self.atim_heard(now, &header, of_network, radio);
            }
            Kind::DATA | Kind::QOS_DATA if of_network => {
                if let Some(from) = header.transmitter() {
                    self.neighbours.heard(from, now);
                }
                self.deliver(received.frame, radio);
            }
            _ => {}
        }
    }

    fn deliver(&mut self, mpdu: &[u8], radio: &mut dyn Radio) {
        let mut room = [0; OPEN_OCTETS];
        let Some(mpdu) = self.protection.open(mpdu, &mut room) else {
            return;
        };
        let Some(data) = Received::parse(mpdu).filter(|d| d.is_for(self.config.me)) else {
            return;
        };
        if self.duplicates.is_duplicate(&data) {
            self.counters.duplicates += 1;
        } else if data.ethertype == self.config.ethertype {
            self.counters.delivered += 1;
            radio.deliver(Msdu {
                peer: data.source,
                category: data.category(),
                deadline: None,
                payload: data.payload,
            });
        }
    }
}
