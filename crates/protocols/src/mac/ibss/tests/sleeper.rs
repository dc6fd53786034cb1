//! A station in a room whose adapter is deaf while it dozes, and has a receive filter; what the station misses by either is
//! counted.

use super::*;

/// See the module.
pub(super) struct Sleeper<P> {
    pub(super) station: P,
    /// The last doze, on the host's clock; without an end so far if it dozes.
    doze: (Instant, Instant),
    /// From when on the adapter may drop what a filter drops, and until when; without an end so far if it is on.
    pub(super) filters: Vec<(Instant, Instant, ReceiveFilter)>,
    /// Filters that were asked for, and are not answered yet.
    asked: Vec<(Token, ReceiveFilter)>,
    /// The last that was asked of the receiver. It hears nothing from the request to turn it off until the answer to that which turns it
    /// on.
    receiver: Option<(Token, bool)>,
    /// Data and ATIMs for it, or for all, that came while it dozed or did not pass the filter.
    pub(super) missed: u64,
    /// Beacons that did not pass it.
    pub(super) spared: u64,
}

/// The room's radio, and a filter.
struct Filtering<'a> {
    radio: &'a mut dyn Radio,
    asked: &'a mut Vec<(Token, ReceiveFilter)>,
    receiver: &'a mut Option<(Token, bool)>,
}

impl Radio for Filtering<'_> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &radio::TxHow) {
        self.radio.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        if let Attribute::ReceiveFilter(filter) = attribute {
            self.asked.push((token, filter));
        }
        if let Attribute::Reception(on) = attribute {
            *self.receiver = Some((token, on));
        }
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        match self.radio.get(adapter, name)? {
            Attribute::Capabilities(mut can) => {
                can.settable = can.settable.with(&Attribute::ReceiveFilter(ReceiveFilter::All));
                Some(Attribute::Capabilities(can))
            }
            other => Some(other),
        }
    }

    fn abort(&mut self, token: Token) {
        self.radio.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.radio.deliver(msdu);
    }
}

fn passes(filter: ReceiveFilter, header: &Header<'_>) -> bool {
    let kind = header.kind();
    match filter {
        ReceiveFilter::All => true,
        ReceiveFilter::Management => kind != Kind::DATA,
        ReceiveFilter::Data => !matches!(kind, Kind::BEACON | Kind::ATIM),
        ReceiveFilter::Unicast => !matches!(kind, Kind::BEACON | Kind::ATIM) && !header.is_group(),
    }
}

impl<P> Sleeper<P> {
    pub(super) fn new(station: P) -> Sleeper<P> {
        Sleeper {
            station,
            doze: (Instant::ZERO, Instant::ZERO),
            filters: vec![(Instant::ZERO, Instant::MAX, ReceiveFilter::All)],
            asked: Vec::new(),
            receiver: None,
            missed: 0,
            spared: 0,
        }
    }

    /// Whether a frame that began at `begin` does not reach the station.
    fn is_lost(&mut self, begin: Instant, header: &Header<'_>) -> bool {
        let kind = header.kind();
        let deaf = (self.doze.0..self.doze.1).contains(&begin);
        let drops =
            |f: &&(Instant, Instant, ReceiveFilter)| (f.0..f.1).contains(&begin) && !passes(f.2, header);
        let dropped = self.filters.iter().rev().take(8).any(|f| drops(&f));
        self.missed += u64::from((deaf || dropped) && matches!(kind, Kind::DATA | Kind::ATIM));
        self.spared += u64::from(dropped && kind == Kind::BEACON);
        deaf || dropped
    }
}

impl<P: Protocol> Protocol for Sleeper<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        // clocks of adapter and host are the same in these rooms
        if let Event::Indication(received) | Event::Beacon(radio::Beacon { received, .. }) = &event
            && let Some(begin) = received.tsf
            && self.is_lost(Instant::from_us(begin.0), &Header::parse(received.frame).unwrap())
        {
            return;
        }
        if let Event::Set(answer) = &event
            && let Some(at) = self.asked.iter().position(|(token, _)| *token == answer.token)
        {
            // the one before it is surely over now
            self.asked.remove(at);
            let before = self.filters.len() - 2 - self.asked.len();
            self.filters[before].1 = now;
        }
        if let Event::Set(answer) = &event
            && self.receiver == Some((answer.token, true))
        {
            self.doze.1 = now;
        }
        let known = self.asked.len();
        let (asked, receiver) = (&mut self.asked, &mut self.receiver);
        let mut radio = Filtering {
            radio,
            asked,
            receiver,
        };
        self.station.handle(now, event, &mut radio);
        let new = self.asked[known..].iter();
        self.filters
            .extend(new.map(|(_, filter)| (now, Instant::MAX, *filter)));
        if matches!(self.receiver, Some((_, false))) && self.doze.1 < Instant::MAX {
            self.doze = (now, Instant::MAX);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.station.deadline()
    }
}
