//! The room: nodes, an ideal medium, a script.

mod air;

use super::clock::{Clock, Dice};
use super::desk::{Act, Desk};
use super::script::{Attempt, Delays, Delivered, Fate, Flight};
use super::seat::{Seat, Sitter};
use frame::{AccessCategory, MacAddr, Wire, mgmt};
use radio::{
    AdapterId, Beacon, Confirm, Event, Indication, Instant, Msdu, Outcome, Plane, Protocol, Refusal,
    SetAnswer, SetError, Stamps, Token, Tsf, TxHow,
};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::vec::Vec;

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
    Heard(AdapterId, Vec<u8>, frame::Rate, Tsf, Stamps),
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
    /// Series of one request that hosts take.
    pub series: u8,
    /// Whether attributes can be set.
    pub settable: bool,
    /// Whether adapter time can be read.
    pub reads_tsf: bool,
    /// Whether a frame waits until the medium is idle.
    pub carrier_sense: bool,
    /// What waits for the medium ends when its time is over.
    pub takes_back: bool,
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
            series: radio::tx::MAX_SERIES as u8,
            settable: true,
            reads_tsf: true,
            carrier_sense: true,
            takes_back: true,
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
            Item::Hear(node, frame, rate) => {
                self.indicate(self.now, self.now, node, AdapterId::FIRST, &frame, rate);
            }
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
                Owned::Heard(adapter, frame, rate, tsf, stamps) => {
                    let received = Indication {
                        frame: &frame,
                        rate,
                        signal_dbm: None,
                        tsf: Some(tsf),
                        adapter,
                        stamps,
                    };
                    match mgmt::Beacon::parse(&frame) {
                        Ok(beacon) => {
                            let beacon = Beacon {
                                bssid: beacon.header.bssid,
                                timestamp: Tsf(beacon.timestamp_us),
                                interval_tu: beacon.interval_tu,
                                received,
                            };
                            self.handle(node, Event::Beacon(beacon));
                        }
                        Err(_) => self.handle(node, Event::Indication(received)),
                    }
                }
            },
        }
    }

    /// What a node hears from the air keeps its order.
    fn visible(&mut self, at: u64, node: usize, event: Owned) {
        let at = at.max(self.nodes[node].last_visible);
        self.nodes[node].last_visible = at;
        self.put(at, Item::Visible(node, event));
    }

    fn handle(&mut self, index: usize, event: Event<'_>) {
        let node = &mut self.nodes[index];
        let now = Instant::from_ns(node.clock.shows(self.now));
        let mut desk = Desk {
            tsf: self.reads_tsf.then_some(Tsf(node.tsf.shows(self.now) / 1_000)),
            address: node.address,
            holds_back: self.holds_back,
            series: self.series,
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
                let too_many = how.series.as_slice().len() > usize::from(self.series);
                if too_many || how.not_before.is_some() && !self.holds_back {
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
                let answer = Owned::Set(SetAnswer { token, result });
                self.put(self.now + 1_000_000, Item::Visible(node, answer));
            }
            Act::Abort(token) => {
                // one that is on the air is not tried again
                let open = |item: &Item| match item {
                    Item::Start(n, r) | Item::End(n, r, _) => *n == node && r.token == token,
                    _ => false,
                };
                if self.queue.values().any(open) {
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
