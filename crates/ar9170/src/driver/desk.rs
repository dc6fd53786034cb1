//! What the protocol acts through: requests and changes are taken in or refused; nothing is told inside a call.

use super::Upper;
use super::chain::Chain;
use super::flight::State;
use super::machine::{Change, Machine};
use super::settings::band;
use super::wish::Wish;
use crate::codec::tx::{DESCRIPTOR_OCTETS, Protection};
use frame::Band;
use frame::fcs::FCS_OCTETS;
use frame::mac::{Header, Kind};
use radio::{
    AckPolicy, AdapterId, Attribute, AttributeName, Capabilities, MAX_FRAME_OCTETS, Msdu, Outcome,
    PacketState, Plane, Radio, Refusal, RtsPolicy, SeriesList, SetError, Settable, Token, TxHow,
};

impl<const N: usize, const L: usize> Machine<'_, N, L> {
    /// Octets of the longest frame.
    pub(super) const MAX_FRAME: usize = {
        let room = L.saturating_sub(DESCRIPTOR_OCTETS);
        if room < MAX_FRAME_OCTETS {
            room
        } else {
            MAX_FRAME_OCTETS
        }
    };

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        if let Err(why) = self.take_in(token, frame, how) {
            self.refuse(token, why, how.series.as_slice()[0].rate);
        }
    }

    fn take_in(&mut self, token: Token, frame: &[u8], how: &TxHow) -> Result<(), Refusal> {
        if how.adapter != AdapterId::FIRST || self.is_down() || self.closing {
            return Err(Refusal::NoAdapter);
        }
        if frame.len() > Self::MAX_FRAME {
            return Err(Refusal::BadFrame);
        }
        let header = Header::parse(frame).map_err(|_| Refusal::BadFrame)?;
        let expects_ack = how.ack == AckPolicy::Normal && header.wants_ack();
        let chain = self.chain(how, frame.len(), expects_ack, &how.series)?;
        let open = self.flights.iter().filter(|(_, f)| f.is_open()).count();
        if open >= self.config.requests.into() {
            return Err(Refusal::QueueFull);
        }
        let stamped = matches!(header.kind(), Kind::BEACON | Kind::PROBE_RESPONSE);
        let (now, order) = (self.now, self.next_order());
        let limit = usize::from(self.firmware.cookies());
        let flight = self
            .flights
            .take(limit, token, how, frame)
            .ok_or(Refusal::QueueFull)?;
        flight.chain = chain;
        (flight.expects_ack, flight.stamped, flight.order) = (expects_ack, stamped, order);
        flight.stamps.host(Plane::T1, now);
        Ok(())
    }

    fn chain(
        &self,
        how: &TxHow,
        octets: usize,
        expects_ack: bool,
        series: &SeriesList,
    ) -> Result<Chain, Refusal> {
        let s = &self.settings;
        let long = octets + FCS_OCTETS > usize::from(s.rts_threshold);
        let rts = match how.rts {
            RtsPolicy::Always => true,
            RtsPolicy::Never => false,
            RtsPolicy::Threshold => long,
        };
        let protection = if rts && expects_ack {
            Protection::Rts
        } else {
            Protection::None
        };
        let band = band(s.mhz).unwrap_or(Band::Ghz2_4);
        Chain::new(series, expects_ack, protection, s.half_dbm(), band)
    }

    /// Gives a packet that is still here another retry chain.
    pub(super) fn change_series(&mut self, token: Token, series: SeriesList) -> Result<(), SetError> {
        let index = self.flights.find(token).ok_or(SetError::NotFound)?;
        let flight = self.flights.get(index).ok_or(SetError::NotFound)?;
        let (how, octets, expects_ack) = (flight.how, flight.frame().len(), flight.expects_ack);
        if !flight.is_held() {
            return Err(SetError::OutOfRange);
        }
        let chain = self.chain(&how, octets, expects_ack, &series);
        let chain = chain.map_err(|_| SetError::OutOfRange)?;
        if let Some(flight) = self.flights.get_mut(index) {
            flight.how.series = series;
            flight.chain = chain;
        }
        Ok(())
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        if adapter != AdapterId::FIRST || self.is_down() {
            // see `refuse_all`
            self.settings.awake |= adapter == AdapterId::FIRST && attribute == Attribute::Reception(true);
            return self.answer_set(token, Err(SetError::NotFound));
        }
        let wish = Wish::new(&attribute);
        if !self.works.push(Change { token, wish, part: 0 }) {
            self.answer_set(token, Err(SetError::NotSupported));
        }
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        if adapter != AdapterId::FIRST {
            return None;
        }
        match name {
            AttributeName::Capabilities => Some(Attribute::Capabilities(self.capabilities())),
            AttributeName::QueueLength(queue) => {
                let waiting = |f: &super::flight::Flight<L>| f.is_open() && f.how.queue == queue;
                let count = self.flights.iter().filter(|(_, f)| waiting(f)).count();
                Some(Attribute::QueueLength(queue, count as u16))
            }
            AttributeName::Packet(token) => {
                let flight = self.flights.get(self.flights.find(token)?)?;
                // how often the stick has tried it is known at its end
                flight.is_held().then_some(Attribute::Packet(
                    token,
                    PacketState {
                        attempts: 0,
                        at_head: false,
                        stamps: flight.stamps,
                    },
                ))
            }
            name => {
                if name == AttributeName::Tsf && self.settings.tsf_is_old(self.now) {
                    self.wants_tsf.set(true);
                }
                self.settings.get(self.now, name)
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        let bit = |plane: Plane| 1 << plane.index();
        let some = frame::EdcaParams::dcf(&frame::Phy::G);
        let settable = [
            Attribute::Address(frame::MacAddr::ZERO),
            Attribute::Bssid(frame::MacAddr::ZERO),
            Attribute::Channel(0),
            Attribute::SlotTime(0),
            Attribute::Tsf(radio::Tsf(0)),
            Attribute::TxPower(0),
            Attribute::BasicRates(frame::RateSet::EMPTY),
            Attribute::RtsThreshold(0),
            Attribute::Reception(true),
            Attribute::Promiscuous(true),
            Attribute::Edca(radio::Queue::Voice, some),
            Attribute::PacketSeries(Token(0), SeriesList::one(frame::Rate::OFDM_6, 1)),
            Attribute::BeaconTiming(radio::BeaconTiming::default()),
            Attribute::ReceiveFilter(radio::ReceiveFilter::All),
        ];
        Capabilities {
            not_before: true,
            abort: true,
            one_shot: true,
            attempts: true,
            tsf: false,
            // its transmission status has none
            ack_signal: false,
            series: radio::tx::MAX_SERIES as u8,
            planes: bit(Plane::T1) | bit(Plane::T4) | bit(Plane::T9),
            max_outstanding: self
                .config
                .requests
                .min(N.min(self.firmware.cookies().into()) as u16),
            max_frame_octets: Self::MAX_FRAME as u16,
            settable: settable.iter().fold(Settable::NONE, |all, a| all.with(a)),
        }
    }

    fn abort(&mut self, token: Token) {
        // what the stick has, it sends
        let held = |i: &usize| self.flights.get(*i).is_some_and(|f| f.state == State::Held);
        if let Some(index) = self.flights.find(token).filter(held) {
            self.end(index, Outcome::Aborted);
        }
    }
}

/// The radio of one event.
pub(super) struct Seat<'a, 'f, U: ?Sized, const N: usize, const L: usize> {
    pub machine: &'a mut Machine<'f, N, L>,
    pub upper: &'a mut U,
}

impl<U: Upper + ?Sized, const N: usize, const L: usize> Radio for Seat<'_, '_, U, N, L> {
    fn token(&mut self) -> Token {
        self.machine.tokens += 1;
        Token(self.machine.tokens)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.machine.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.machine.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.machine.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.machine.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.upper.deliver(self.machine.now, msdu);
    }
}
