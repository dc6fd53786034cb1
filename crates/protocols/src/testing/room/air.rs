//! From the request over the air to the confirm and the indications.

use super::{Attempt, Fate, Flight, Item, Owned, Request, Room};
use frame::mac::header::set_retry;
use frame::mac::{Header, Kind};
use frame::{Band, MacAddr, Rate, airtime, ppdu_us};
use radio::{AdapterId, Confirm, Outcome, Plane, Refusal, Stamps, Tsf};

const SIFS_NS: u64 = 16_000;
const ACK_NS: u64 = 44_000;
const ACK_TIMEOUT_NS: u64 = 25_000;
const DIFS_NS: u64 = 34_000;

impl Room {
    pub(super) fn start(&mut self, node: usize, mut request: Request) {
        let local = self.local(node, self.now);
        if let Some(i) = self.aborted.iter().position(|a| *a == (node, request.token)) {
            self.aborted.swap_remove(i);
            return self.confirm(node, request, Outcome::Aborted, 0);
        }
        if Header::parse(&request.frame).is_err() {
            let why = Outcome::Refused(Refusal::BadFrame);
            return self.confirm(node, request, why, 0);
        }
        if request.how.expires.is_some_and(|t| t < local) {
            return self.confirm(node, request, Outcome::Expired, 0);
        }
        let channel = request.how.adapter;
        let busy_until = self
            .flights
            .iter()
            .rev()
            .take(64)
            .filter(|f| f.adapter == channel)
            .map(|f| f.end_ns)
            .max()
            .unwrap_or(0);
        if self.carrier_sense && busy_until + DIFS_NS > self.now && busy_until > 0 {
            if !self.takes_back {
                request.how.expires = None;
            }
            return self.put(busy_until + DIFS_NS, Item::Start(node, request));
        }
        let attempt = Attempt {
            at_ns: self.now,
            node,
            frame: &request.frame,
            how: &request.how,
            before: request.attempts,
        };
        let fate = (self.script)(&attempt);
        match fate {
            Fate::Refused(why) => return self.confirm(node, request, Outcome::Refused(why), 0),
            Fate::Reset => return self.confirm(node, request, Outcome::Aborted, 0),
            Fate::Silent => {
                let patience = self.delays.patience_ns;
                return self.confirm(node, request, Outcome::Unknown, patience);
            }
            _ => {}
        }
        let rate = request.rate();
        let length = request.frame.len() as u32 + 4;
        let end = self.now + 1_000 * u64::from(ppdu_us(rate, length, Band::Ghz5));
        let acked = matches!(fate, Fate::Arrives | Fate::ConfirmLost) && wants_ack(&request);
        let mut flight = Flight {
            start_ns: self.now,
            end_ns: end + if acked { SIFS_NS + ACK_NS } else { 0 },
            node,
            adapter: channel,
            frame: request.frame.clone(),
            fate,
            collided: false,
        };
        if Header::parse(&request.frame).is_ok_and(|h| h.kind() == Kind::BEACON) && request.frame.len() >= 32
        {
            let at = self.now + bit_ns(rate, 24 * 8);
            let timestamp = self.nodes[node].tsf.shows(at) / 1_000;
            flight.frame[24..32].copy_from_slice(&timestamp.to_le_bytes());
        }
        for other in self
            .flights
            .iter_mut()
            .rev()
            .take(64)
            .filter(|f| f.end_ns > self.now && f.adapter == channel)
        {
            (other.collided, flight.collided) = (true, true);
        }
        request.attempts += 1;
        self.flights.push(flight);
        self.put(end, Item::End(node, request, self.flights.len() - 1));
    }

    pub(super) fn end(&mut self, node: usize, mut request: Request, index: usize) {
        if self.flights[index].collided {
            self.flights[index].fate = Fate::DataLost;
        }
        let Flight {
            fate,
            start_ns,
            adapter,
            ref frame,
            ..
        } = self.flights[index];
        let frame = frame.clone();
        if fate != Fate::DataLost {
            let to = Header::parse(&frame).map_or(MacAddr::BROADCAST, |h| h.receiver());
            for n in (0..self.nodes.len()).filter(|n| *n != node) {
                if to.is_group() || self.nodes[n].address == to {
                    let rate = request.rate();
                    self.indicate(start_ns, self.now, n, adapter, &frame, rate);
                }
            }
        }
        match fate {
            Fate::ArrivesBeforeReset => self.confirm(node, request, Outcome::Aborted, 0),
            Fate::ConfirmLost => self.confirm(node, request, Outcome::Unknown, self.delays.patience_ns),
            Fate::Arrives if wants_ack(&request) => {
                self.confirm(node, request, Outcome::Acked, SIFS_NS + ACK_NS);
            }
            _ => {
                let more = request.attempts < request.how.series.attempts() && wants_ack(&request);
                if more {
                    set_retry(&mut request.frame, true).expect("a frame with a header");
                    self.put(self.now + ACK_TIMEOUT_NS + DIFS_NS, Item::Start(node, request));
                } else {
                    let wait = if wants_ack(&request) { ACK_TIMEOUT_NS } else { 0 };
                    self.confirm(node, request, Outcome::NotAcked, wait);
                }
            }
        }
    }

    pub(super) fn confirm(&mut self, node: usize, mut request: Request, outcome: Outcome, after: u64) {
        let attempts = match outcome {
            Outcome::Unknown => 0,
            _ => request.attempts,
        };
        let interrupt = self.now + after + 5_000;
        request.stamps.host(Plane::T5, self.local(node, interrupt));
        let c = Confirm {
            attempts,
            rate: request.rate(),
            series: request
                .how
                .series
                .at(request.attempts.saturating_sub(1))
                .map_or(0, |s| s.0),
            stamps: request.stamps,
            tsf: Some(Tsf(self.nodes[node].tsf.shows(self.now + after) / 1_000)),
            ..Confirm::without_air(request.token, outcome, request.rate())
        };
        let path = self.draw(self.delays.confirm_ns.clone()).max(5_000);
        let at = self.now + after + path;
        match outcome {
            // the host's own timer, behind which nothing waits
            Outcome::Unknown => self.put(at, Item::Visible(node, Owned::Confirm(c))),
            _ => self.visible(at, node, Owned::Confirm(c)),
        }
    }

    pub(super) fn indicate(
        &mut self,
        start: u64,
        end: u64,
        node: usize,
        adapter: AdapterId,
        frame: &[u8],
        rate: Rate,
    ) {
        let path = self.draw(self.delays.indicate_ns.clone());
        let mut stamps = Stamps::NONE;
        stamps.host(Plane::T5, self.local(node, end + path / 2));
        let tsf = Tsf(self.nodes[node].tsf.shows(start + bit_ns(rate, 0)) / 1_000);
        self.visible(
            end + path,
            node,
            Owned::Heard(adapter, frame.into(), rate, tsf, stamps),
        );
    }
}

/// From the start of a PPDU to bit `bit` of its MPDU, behind preamble and (OFDM) SERVICE field.
fn bit_ns(rate: Rate, bit: u64) -> u64 {
    let service = if matches!(rate, Rate::Dsss(..)) { 0 } else { 16 };
    1_000 * u64::from(airtime::preamble_us(rate)) + (service + bit) * 10_000 / u64::from(rate.kbps100())
}

fn wants_ack(request: &Request) -> bool {
    request.how.ack == radio::AckPolicy::Normal && Header::parse(&request.frame).is_ok_and(|h| h.wants_ack())
}

impl Request {
    fn rate(&self) -> Rate {
        let series = &self.how.series;
        series
            .at(self.attempts)
            .map_or(series.as_slice()[0].rate, |s| s.1.rate)
    }
}
