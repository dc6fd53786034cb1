//! The room: nodes, an ideal medium, a script.

use super::clock::{Clock, Dice};
use super::seat::{Seat, Sitter};
use frame::mac::header::set_retry;
use frame::mac::{Header, Kind};
use frame::{AccessCategory, Band, MacAddr, airtime, ppdu_us};
use radio::{
    AdapterId, Attribute, AttributeName, Beacon, Capabilities, Confirm, Event, Indication, Instant, Msdu,
    Outcome, Plane, Protocol, Radio, Refusal, SetAnswer, SetError, Stamps, Token, Tsf, TxHow,
};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::vec::Vec;

const SIFS_NS: u64 = 16_000;
const ACK_NS: u64 = 44_000;
const ACK_TIMEOUT_NS: u64 = 25_000;
const DIFS_NS: u64 = 34_000;

/// How long the paths between protocol and air take, in nanoseconds: drawn evenly from these ranges.
#[derive(Clone, Debug)]
pub struct Delays {
    /// From the request to the first bit on the air.
    pub request_ns: RangeInclusive<u64>,
    /// From the end of the exchange to the confirm.
    pub confirm_ns: RangeInclusive<u64>,
    /// From the end of a frame to its indication.
    pub indicate_ns: RangeInclusive<u64>,
    /// From a deadline to the timer event.
    pub timer_ns: RangeInclusive<u64>,
}

impl Delays {
    /// The same every time: 10 us down, 20 us up, timers on time.
    pub const STEADY: Delays = Delays {
        request_ns: 10_000..=10_000,
        confirm_ns: 20_000..=20_000,
        indicate_ns: 20_000..=20_000,
        timer_ns: 0..=0,
    };
}

/// What the script decides about one attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Data and ACK arrive.
    Arrives,
    /// Nobody hears it.
    DataLost,
    /// It arrives, the ACK does not.
    AckLost,
    /// It arrives, but its confirm is lost: the host gives up after 1 ms.
    ConfirmLost,
    /// The host refuses; nothing goes on the air.
    Refused(Refusal),
    /// The adapter is reset; nothing goes on the air.
    Reset,
}

/// One attempt, before its fate is known.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// True time of its first bit in nanoseconds.
    pub at_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// The MPDU without FCS.
    pub frame: &'a [u8],
    /// As it was requested.
    pub how: &'a TxHow,
    /// Attempts of the same request before it.
    pub before: u16,
}

/// One frame on the air.
#[derive(Clone, Debug)]
pub struct Flight {
    /// True time of its first bit in nanoseconds.
    pub start_ns: u64,
    /// True time of the end of the exchange, ACK included if one comes, in nanoseconds.
    pub end_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// The MPDU without FCS.
    pub frame: Vec<u8>,
    /// What became of it; `DataLost` if it collided.
    pub fate: Fate,
    /// Another frame was on the air at the same time.
    pub collided: bool,
}

/// An MSDU that a node handed up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// True time in nanoseconds.
    pub at_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// Source.
    pub peer: MacAddr,
    /// Payload.
    pub payload: Vec<u8>,
}

struct Request {
    token: Token,
    frame: Vec<u8>,
    how: TxHow,
    attempts: u16,
    stamps: Stamps,
}

/// Something on its way.
enum Item {
    /// A request reaches the air.
    Start(usize, Request),
    /// The last bit of a frame has left.
    End(usize, Request, usize),
    /// A frame from outside the room ends.
    Hear(usize, Vec<u8>, frame::Rate),
    /// An event becomes visible.
    Visible(usize, Owned),
}

enum Owned {
    Submit(MacAddr, AccessCategory, Option<Instant>, Vec<u8>),
    Confirm(Confirm),
    Heard(Vec<u8>, frame::Rate, Tsf, Stamps),
    Set(SetAnswer),
}

struct Node {
    address: MacAddr,
    clock: Clock,
    tsf: Clock,
    seat: Box<dyn Sitter>,
    timer: Option<(Instant, u64)>,
    last_visible: u64,
    tokens: u64,
}

/// See the [module](super).
pub struct Room {
    /// Paths of all nodes.
    pub delays: Delays,
    /// Whether nodes can hold frames back until `not_before`.
    pub holds_back: bool,
    /// Whether attributes can be set.
    pub settable: bool,
    /// Whether a frame waits until the medium is idle.
    pub carrier_sense: bool,
    /// Every frame that was on the air.
    pub flights: Vec<Flight>,
    /// Every MSDU that was handed up.
    pub delivered: Vec<Delivered>,
    /// Every confirm: node, true time in nanoseconds, confirm.
    pub confirms: Vec<(usize, u64, Confirm)>,
    script: Box<dyn FnMut(&Attempt<'_>) -> Fate>,
    nodes: Vec<Node>,
    queue: BTreeMap<(u64, u64), Item>,
    aborted: Vec<(usize, Token)>,
    order: u64,
    now: u64,
    dice: Dice,
}

impl Room {
    /// An empty room in which everything arrives.
    pub fn new(seed: u64) -> Room {
        Room {
            delays: Delays::STEADY,
            holds_back: false,
            settable: true,
            carrier_sense: true,
            flights: Vec::new(),
            delivered: Vec::new(),
            confirms: Vec::new(),
            script: Box::new(|_| Fate::Arrives),
            nodes: Vec::new(),
            queue: BTreeMap::new(),
            aborted: Vec::new(),
            order: 0,
            now: 0,
            dice: Dice::new(seed),
        }
    }

    /// Decides the fate of every attempt from now on.
    pub fn script(&mut self, script: impl FnMut(&Attempt<'_>) -> Fate + 'static) {
        self.script = Box::new(script);
    }

    /// Lets a node in and starts it; `make` is called three times (for the node, its twin, and the replay).
    pub fn add<P: Protocol + 'static>(&mut self, address: MacAddr, make: impl Fn() -> P) -> usize {
        self.add_with_clocks(address, Clock::default(), Clock::default(), make)
    }

    /// As [`Room::add`], with a host clock and an adapter clock of its own.
    pub fn add_with_clocks<P: Protocol + 'static>(
        &mut self,
        address: MacAddr,
        clock: Clock,
        tsf: Clock,
        make: impl Fn() -> P,
    ) -> usize {
        self.nodes.push(Node {
            address,
            clock,
            tsf,
            seat: Seat::boxed(make),
            timer: None,
            last_visible: self.now,
            tokens: 0,
        });
        let node = self.nodes.len() - 1;
        self.handle(node, Event::Start);
        node
    }

    /// The protocol of `node`.
    ///
    /// # Panics
    /// If it is of another type.
    pub fn protocol<P: Protocol + 'static>(&self, node: usize) -> &P {
        self.nodes[node]
            .seat
            .protocol()
            .downcast_ref()
            .expect("of this type")
    }

    /// True time in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now
    }

    /// What the host clock of `node` shows at true time `t_ns`.
    pub fn local(&self, node: usize, t_ns: u64) -> Instant {
        Instant::from_ns(self.nodes[node].clock.shows(t_ns))
    }

    /// Hands an MSDU to `node` at true time `at_ns`; `deadline_ns` is true time too.
    pub fn submit(&mut self, at_ns: u64, node: usize, to: MacAddr, payload: &[u8], deadline_ns: Option<u64>) {
        let deadline = deadline_ns.map(|t| self.local(node, t));
        let msdu = Owned::Submit(to, AccessCategory::BestEffort, deadline, payload.into());
        self.put(at_ns, Item::Visible(node, msdu));
    }

    /// Lets `node` hear a frame whose last bit arrives at true time `at_ns`.
    pub fn hear(&mut self, at_ns: u64, node: usize, frame: &[u8], rate: frame::Rate) {
        self.put(at_ns, Item::Hear(node, frame.into(), rate));
    }

    /// The frames that were on the air together with others.
    pub fn collisions(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter().filter(|f| f.collided)
    }

    /// Runs until true time `t_ns`.
    pub fn run_until(&mut self, t_ns: u64) {
        while self.step(t_ns, true) {}
        self.now = self.now.max(t_ns);
    }

    /// Finishes what is on its way without further timers, then checks law 1 and replays all tapes.
    pub fn close(mut self) -> Room {
        while self.step(u64::MAX, false) {}
        for node in &mut self.nodes {
            node.seat.close();
        }
        self
    }

    fn put(&mut self, at: u64, item: Item) {
        self.order += 1;
        self.queue.insert((at, self.order), item);
    }

    fn draw(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.dice.within(range)
    }

    /// The next thing that happens before `end`; false if there is none.
    fn step(&mut self, end: u64, timers: bool) -> bool {
        let timer = (0..self.nodes.len())
            .filter_map(|n| self.nodes[n].timer.map(|(_, at)| (at, n)))
            .filter(|_| timers)
            .min();
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        match (timer, queued) {
            (Some((at, node)), q) if at < end && q.is_none_or(|q| at < q) => {
                self.now = self.now.max(at);
                self.nodes[node].timer = None;
                self.handle(node, Event::Timer);
            }
            (_, Some(at)) if at < end => {
                let (_, item) = self.queue.pop_first().expect("just seen");
                self.now = self.now.max(at);
                self.happen(item);
            }
            _ => return false,
        }
        true
    }

    fn happen(&mut self, item: Item) {
        match item {
            Item::Start(node, request) => self.start(node, request),
            Item::End(node, request, flight) => self.end(node, request, flight),
            Item::Hear(node, frame, rate) => self.indicate(self.now, self.now, node, &frame, rate),
            Item::Visible(node, event) => match event {
                Owned::Submit(peer, category, deadline, payload) => {
                    let payload = &payload;
                    self.handle(
                        node,
                        Event::Submit(Msdu {
                            peer,
                            category,
                            deadline,
                            payload,
                        }),
                    );
                }
                Owned::Confirm(c) => {
                    self.confirms.push((node, self.now, c));
                    self.handle(node, Event::Confirm(c));
                }
                Owned::Set(answer) => self.handle(node, Event::Set(answer)),
                Owned::Heard(frame, rate, tsf, stamps) => {
                    let received = Indication {
                        frame: &frame,
                        rate,
                        signal_dbm: None,
                        tsf: Some(tsf),
                        adapter: AdapterId::FIRST,
                        stamps,
                    };
                    let h = Header::parse(&frame).ok().filter(|h| h.kind() == Kind::BEACON);
                    match h.and_then(|h| Some((h.transmitter()?, h.body().first_chunk::<10>()?))) {
                        Some((bssid, fixed)) => {
                            let (timestamp, interval) = fixed.split_at(8);
                            let timestamp = u64::from_le_bytes(timestamp.try_into().expect("8 octets"));
                            let interval_tu = u16::from_le_bytes(interval.try_into().expect("2 octets"));
                            let timestamp = Tsf(timestamp);
                            self.handle(
                                node,
                                Event::Beacon(Beacon {
                                    bssid,
                                    timestamp,
                                    interval_tu,
                                    received,
                                }),
                            );
                        }
                        None => self.handle(node, Event::Indication(received)),
                    }
                }
            },
        }
    }

    fn start(&mut self, node: usize, mut request: Request) {
        let local = self.local(node, self.now);
        if let Some(i) = self.aborted.iter().position(|a| *a == (node, request.token)) {
            self.aborted.swap_remove(i);
            return self.confirm(node, request, Outcome::Aborted, 0);
        }
        if request.how.expires.is_some_and(|t| t < local) {
            return self.confirm(node, request, Outcome::Expired, 0);
        }
        let busy_until = self
            .flights
            .iter()
            .rev()
            .take(64)
            .map(|f| f.end_ns)
            .max()
            .unwrap_or(0);
        if self.carrier_sense && busy_until + DIFS_NS > self.now && busy_until > 0 {
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
            frame: request.frame.clone(),
            fate,
            collided: false,
        };
        if Header::parse(&request.frame).is_ok_and(|h| h.kind() == Kind::BEACON) && request.frame.len() >= 32
        {
            let at = self.now
                + 1_000 * u64::from(airtime::preamble_us(rate))
                + 24 * 8_000 * 10 / u64::from(rate.kbps100());
            let timestamp = self.nodes[node].tsf.shows(at) / 1_000;
            flight.frame[24..32].copy_from_slice(&timestamp.to_le_bytes());
        }
        for other in self
            .flights
            .iter_mut()
            .rev()
            .take(64)
            .filter(|f| f.end_ns > self.now)
        {
            (other.collided, flight.collided) = (true, true);
        }
        request.attempts += 1;
        self.flights.push(flight);
        self.put(end, Item::End(node, request, self.flights.len() - 1));
    }

    fn end(&mut self, node: usize, mut request: Request, index: usize) {
        if self.flights[index].collided {
            self.flights[index].fate = Fate::DataLost;
        }
        let Flight {
            fate,
            start_ns,
            ref frame,
            ..
        } = self.flights[index];
        let frame = frame.clone();
        if fate != Fate::DataLost {
            let to = Header::parse(&frame).map_or(MacAddr::BROADCAST, |h| h.receiver());
            for n in (0..self.nodes.len()).filter(|n| *n != node) {
                if to.is_group() || self.nodes[n].address == to {
                    self.indicate(start_ns, self.now, n, &frame, request.rate());
                }
            }
        }
        match fate {
            Fate::ConfirmLost => self.confirm(node, request, Outcome::Unknown, 1_000_000),
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

    fn confirm(&mut self, node: usize, mut request: Request, outcome: Outcome, after: u64) {
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
        self.visible(self.now + after + path, node, Owned::Confirm(c));
    }

    fn indicate(&mut self, start: u64, end: u64, node: usize, frame: &[u8], rate: frame::Rate) {
        let path = self.draw(self.delays.indicate_ns.clone());
        let mut stamps = Stamps::NONE;
        stamps.host(Plane::T5, self.local(node, end + path / 2));
        let tsf = Tsf(self.nodes[node].tsf.shows(start) / 1_000);
        self.visible(end + path, node, Owned::Heard(frame.into(), rate, tsf, stamps));
    }

    /// Events of one node keep their order.
    fn visible(&mut self, at: u64, node: usize, event: Owned) {
        let at = at.max(self.nodes[node].last_visible);
        self.nodes[node].last_visible = at;
        self.put(at, Item::Visible(node, event));
    }

    fn handle(&mut self, index: usize, event: Event<'_>) {
        let node = &mut self.nodes[index];
        let now = Instant::from_ns(node.clock.shows(self.now));
        let mut desk = Desk {
            tsf: Tsf(node.tsf.shows(self.now) / 1_000),
            address: node.address,
            holds_back: self.holds_back,
            tokens: node.tokens,
            acts: Vec::new(),
        };
        node.seat.handle(now, event, &mut desk);
        node.tokens = desk.tokens;
        for act in desk.acts {
            self.act(index, act);
        }
        let deadline = self.nodes[index].seat.deadline();
        if self.nodes[index].timer.map(|t| t.0) != deadline {
            self.nodes[index].timer = deadline.map(|d| {
                let due = self.nodes[index].clock.when(d.as_ns()).max(self.now);
                (d, due + self.dice.within(self.delays.timer_ns.clone()))
            });
        }
    }

    fn act(&mut self, node: usize, act: Act) {
        match act {
            Act::Request(token, frame, how) => {
                let mut stamps = Stamps::NONE;
                stamps.host(Plane::T1, self.local(node, self.now));
                let request = Request {
                    token,
                    frame,
                    how,
                    attempts: 0,
                    stamps,
                };
                if how.not_before.is_some() && !self.holds_back {
                    return self.confirm(node, request, Outcome::Refused(Refusal::NotSupported), 0);
                }
                let earliest = how
                    .not_before
                    .map_or(0, |t| self.nodes[node].clock.when(t.as_ns()));
                let path = self.draw(self.delays.request_ns.clone());
                self.put((self.now + path).max(earliest), Item::Start(node, request));
            }
            Act::Set(token) => {
                let result = if self.settable {
                    Ok(())
                } else {
                    Err(SetError::NotSupported)
                };
                self.visible(
                    self.now + 1_000_000,
                    node,
                    Owned::Set(SetAnswer { token, result }),
                );
            }
            Act::Abort(token) => {
                let waiting =
                    |item: &Item| matches!(item, Item::Start(n, r) if *n == node && r.token == token);
                if self.queue.values().any(waiting) {
                    self.aborted.push((node, token));
                }
            }
            Act::Deliver(peer, payload) => self.delivered.push(Delivered {
                at_ns: self.now,
                node,
                peer,
                payload,
            }),
        }
    }
}

fn wants_ack(request: &Request) -> bool {
    request.how.ack == radio::AckPolicy::Normal && Header::parse(&request.frame).is_ok_and(|h| h.wants_ack())
}

impl Request {
    fn rate(&self) -> frame::Rate {
        let series = &self.how.series;
        series
            .at(self.attempts)
            .map_or(series.as_slice()[0].rate, |s| s.1.rate)
    }
}

enum Act {
    Request(Token, Vec<u8>, TxHow),
    Set(Token),
    Abort(Token),
    Deliver(MacAddr, Vec<u8>),
}

/// The radio of one `handle`: notes what is asked for.
struct Desk {
    tsf: Tsf,
    address: MacAddr,
    holds_back: bool,
    tokens: u64,
    acts: Vec<Act>,
}

impl Radio for Desk {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.acts.push(Act::Request(token, frame.into(), *how));
    }

    fn set(&mut self, token: Token, _: AdapterId, _: Attribute) {
        self.acts.push(Act::Set(token));
    }

    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        match name {
            AttributeName::Capabilities => Some(Attribute::Capabilities(Capabilities {
                not_before: self.holds_back,
                abort: true,
                one_shot: true,
                attempts: true,
                ..Capabilities::default()
            })),
            AttributeName::Address => Some(Attribute::Address(self.address)),
            AttributeName::Tsf => Some(Attribute::Tsf(self.tsf)),
            _ => None,
        }
    }

    fn abort(&mut self, token: Token) {
        self.acts.push(Act::Abort(token));
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.acts.push(Act::Deliver(msdu.peer, msdu.payload.into()));
    }
}
