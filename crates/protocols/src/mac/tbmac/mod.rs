//! Slots that the hosts of a cell agree on among themselves (TBMAC, Cunningham and Cahill 2002): the plane is divided
//! into [`cell`]s, time into [`rounds`] of a contention-free and a contention period. A host that owns a slot of the
//! contention-free period sends in it in every round; who has none asks for one in the contention period. How the
//! hosts agree without a coordinator is in [`member`], what they believe in [`table`], what they tell each other
//! in [`message`]. The rules are this project's: the paper's own were not available.
//!
//! The overlay holds the requests of the protocol above and sends one in each of its slots, whole, behind its report, to
//! all hosts of the cell at once, as QoS data, so that it is in the queue that it says on every host: there are no ACKs, so a
//! request ends as not acked. The inner frame is told to the
//! protocol above as if it had been on the air by itself. A host that has nothing to send sends its report alone.
//!
//! Hosts know the time and where they are. The clock is a [`Sync`]; whoever knows the position says
//! [`Tbmac::go_to`] when the host is about to enter another cell, at least a round ahead if others shall learn that its slot
//! is free. Without a clock that is to be trusted the host is silent.

mod borders;
pub mod cell;
mod crossing;
mod drive;
pub mod member;
pub mod message;
mod places;
pub mod rounds;
pub mod table;
pub mod way;

use super::data::{ETHERTYPE_PROTOCOL, Framer, Identity, Role};
use super::overlay::{Above, Access, AccessSetting, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use super::sync::Sync;
use super::tally::Tally;
use borders::Borders;
use cell::Cell;
use drive::Mark;
use frame::MacAddr;
use member::{Member, PATIENCE};
use message::Request;
use places::Places;
use radio::{AdapterId, Confirm, Duration, Event, Instant, Outcome, Protocol, Queue, Radio, Token};
use rounds::Rounds;
use way::Onward;

/// Slots of a contention-free period, if nothing else is said.
pub const DEFAULT_SLOTS: usize = 16;
/// Frames of its own and changes of channel that may be open below.
const OPEN: usize = 8;

/// How a [`Tbmac`] works.
#[derive(Clone, Debug)]
pub struct TbmacConfig {
    /// Its own address.
    pub me: MacAddr,
    /// The cell that it is in.
    pub cell: Cell,
    /// Centre frequencies of the three [colours](Cell::colour) of cells, in MHz. `None`: all cells on one channel, which
    /// is not changed.
    pub channels: Option<[u16; 3]>,
    /// The times of a round, the same in all hosts.
    pub rounds: Rounds,
    /// The clock.
    pub sync: Sync,
    /// Whose beacons the clock follows, if it does.
    pub follows: Option<MacAddr>,
    /// Each time it has asked for a slot in vain so often it asks half as often, down to every eighth round; 0: never.
    pub patience: u8,
    /// Which queue of the adapter.
    pub queue: Queue,
    /// Which adapter.
    pub adapter: AdapterId,
    /// Channel access to be set at the start; see [`Access::without_backoff`].
    pub access: Option<Access>,
}

impl TbmacConfig {
    /// In `cell` on a channel that is not changed, with a perfect clock, the first adapter and no backoff.
    pub fn new(me: MacAddr, cell: Cell, rounds: Rounds) -> TbmacConfig {
        TbmacConfig {
            me,
            cell,
            channels: None,
            rounds,
            sync: Sync::perfect(0),
            follows: None,
            patience: PATIENCE,
            queue: Queue::Voice,
            adapter: AdapterId::FIRST,
            access: Some(Access::without_backoff(Queue::Voice, 2)),
        }
    }
}

/// What a [`Tbmac`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TbmacCounters {
    /// Requests released in slots of its own.
    pub released: u64,
    /// Of these, too late for the slot; they go in the next one.
    pub late: u64,
    /// Slots lost because the timer came too late.
    pub overruns: u64,
    /// Times that it asked for a slot.
    pub asked: u64,
    /// Times that it came to own one.
    pub granted: u64,
    /// Rounds that it was in without a slot of its own.
    pub without: u64,
    /// Times that it gave one up because others had it too or did not hear it.
    pub lost: u64,
    /// Requests dropped at their deadline.
    pub expired: u64,
    /// Requests refused: too long for a slot.
    pub too_long: u64,
    /// Frames sent over a border.
    pub crossed: u64,
    /// Frames from another cell sent on in its own slot.
    pub relayed: u64,
    /// Its own frames that went in search of a receiver, since nobody knew its cell.
    pub searched: u64,
    /// Frames that ended on their way from cell to cell: no room, no open border that leads on, their lifetime was over, or the
    /// receiver was gone. Not the copies of a search that find nobody.
    pub uncrossed: u64,
    /// Outcomes of reports alone and of requests for slots.
    pub own: Tally,
}

/// The overlay; see the [module](self). The contention-free period has `S` slots, 1 to 16; it holds up to `N` requests
/// with frames of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Tbmac<
    P,
    const S: usize = DEFAULT_SLOTS,
    const N: usize = DEFAULT_HELD,
    const L: usize = DEFAULT_HELD_OCTETS,
> {
    above: Above<P, N, L>,
    config: TbmacConfig,
    access: AccessSetting,
    framer: Framer,
    /// `None` until the clock is to be trusted.
    member: Option<Member<S>>,
    borders: Borders<S, L>,
    places: Places,
    /// A request in flight that goes over borders where the host itself is the gateway.
    parting: Option<(usize, Onward)>,
    /// The last frame in its own slot came from another cell.
    was_relay: bool,
    round: u64,
    mark: Mark,
    /// Its frame in its own slot of this round; `None` if it was not on the air.
    spoke: Option<Token>,
    /// What it sends in the contention period of this round.
    ask: Option<Request>,
    /// Where it goes.
    leaving: Option<Cell>,
    /// The others have been told in this round that it leaves.
    farewell: bool,
    /// Frames of its own and changes of channel that are not confirmed.
    open: [Option<Token>; OPEN],
    counters: TbmacCounters,
}

impl<P: Protocol, const S: usize, const N: usize, const L: usize> Tbmac<P, S, N, L> {
    /// TBMAC below `protocol`.
    ///
    /// # Panics
    /// If the rounds have another number of slots than `S`.
    pub fn new(config: TbmacConfig, protocol: P) -> Self {
        assert_eq!(usize::from(config.rounds.slots()), S, "slots of the rounds");
        // whole MPDUs travel in frames to all, outside of any BSS
        let identity = Identity {
            me: config.me,
            role: Role::Direct {
                bssid: MacAddr::BROADCAST,
            },
        };
        Tbmac {
            above: Above::new(protocol),
            access: AccessSetting::new(config.access),
            framer: Framer::all_qos(identity, ETHERTYPE_PROTOCOL),
            member: None,
            borders: Borders::new(0),
            places: Places::EMPTY,
            parting: None,
            was_relay: false,
            round: 0,
            mark: Mark::Slot,
            spoke: None,
            ask: None,
            leaving: None,
            farewell: false,
            open: [None; OPEN],
            counters: TbmacCounters::default(),
            config,
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted.
    pub fn counters(&self) -> &TbmacCounters {
        &self.counters
    }

    /// What it knows of its cell; `None` until its clock is to be trusted.
    pub fn member(&self) -> Option<&Member<S>> {
        self.member.as_ref()
    }

    /// The cell that it is in.
    pub fn cell(&self) -> Cell {
        self.config.cell
    }

    /// The number of the round.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The slot that it owns, and in which round: the present one until its contention-free period is over, and then the next one.
    /// `None` if it owns none.
    pub fn owns(&self) -> Option<(u64, u8)> {
        let over = matches!(self.mark, Mark::Ask | Mark::RoundOver);
        let slot = self.member.as_ref().and_then(Member::slot)?;
        Some((self.round + u64::from(over), slot))
    }

    /// The host is about to enter another cell. It tells the others in its next slot, and is in the new cell from the end
    /// of that round on; one that owns no slot goes at the end of this round.
    pub fn go_to(&mut self, cell: Cell) {
        self.leaving = (cell != self.config.cell).then_some(cell);
    }

    /// Borders of its cell that the host is near, as bits ([`Cell::near`]): it can be the gateway there. Without slots
    /// [between cells](Rounds::with_borders) nobody asks.
    pub fn set_near(&mut self, borders: u8) {
        self.borders.set_near(borders & 0x3f);
    }

    fn settle(&mut self, now: Instant, radio: &mut dyn Radio) {
        loop {
            self.counters.expired += self.above.held.expire(now) as u64;
            self.refuse_what_is_too_long();
            self.pass_marks(now, radio);
            if !self.above.pay(now, radio) {
                return;
            }
        }
    }

    fn refuse_what_is_too_long(&mut self) {
        for i in 0..N {
            let held = self.above.held.get(i).filter(|h| h.is_waiting());
            if held.is_some_and(|h| h.frame().len() > self.config.rounds.room()) {
                self.counters.too_long += 1;
                let why = radio::Refusal::NotSupported;
                self.above.held.end(i, Outcome::Refused(why));
            }
        }
    }

    fn land(&mut self, now: Instant, index: usize, confirm: &Confirm) {
        let held = self.above.held.get(index).expect("it was in flight");
        let over = held.is_unwanted() || held.how.expires.is_some_and(|t| t < now);
        let refused = matches!(confirm.outcome, Outcome::Refused(_));
        let again = never_went(confirm) && !refused && !over;
        self.counters.late += u64::from(confirm.outcome == Outcome::Expired);
        if self.parting.is_some_and(|(parting, _)| parting == index) {
            if never_went(confirm) {
                self.parting = None;
            } else {
                self.part();
            }
        }
        if again {
            self.above.held.wait_again(index);
        } else {
            self.above.held.finish(index, confirm);
        }
    }

    /// True if `token` is that of a frame of its own or of a change of channel.
    fn is_mine(&mut self, token: Token) -> bool {
        let found = self.open.iter_mut().find(|t| **t == Some(token));
        found.is_some_and(|place| place.take().is_some())
    }
}

impl<P: Protocol, const S: usize, const N: usize, const L: usize> Protocol for Tbmac<P, S, N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if let Event::Confirm(c) = event
            && self.spoke == Some(c.token)
            && never_went(&c)
        {
            self.spoke = None;
        }
        match event {
            Event::Confirm(c) if self.is_mine(c.token) => self.counters.own.note(&c),
            Event::Confirm(c) => match self.above.held.landed(&c) {
                Some(index) => self.land(now, index, &c),
                None => self.above.tell(now, event, radio),
            },
            Event::Set(answer) if self.access.is_answered_by(&answer) => {}
            Event::Set(answer) if self.is_mine(answer.token) => {}
            Event::Timer => self.above.timer(now, radio),
            Event::Start => {
                self.access.start(radio);
                self.tune(self.config.cell, radio);
                self.above.tell(now, event, radio);
            }
            Event::Beacon(b) => {
                if self.config.follows == Some(b.bssid) {
                    self.config.sync.heard(now, &b, radio);
                }
                self.above.tell(now, event, radio);
            }
            Event::Indication(i) => {
                // a timer that is late must not keep it in a round that is over
                self.pass_marks(now, radio);
                self.hear(now, &i, radio);
            }
            Event::Submit(_) | Event::Set(_) => self.above.tell(now, event, radio),
        }
        self.settle(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let expiry = self.above.held.next_expiry().map(|t| t + Duration::from_ns(1));
        let mark = self.member.as_ref().and_then(|_| self.due());
        [mark, expiry, self.above.deadline()].into_iter().flatten().min()
    }
}

/// Whether a request for one try ended before it was on the air. A reset of the adapter may come later.
fn never_went(confirm: &Confirm) -> bool {
    match confirm.outcome {
        Outcome::Expired | Outcome::Refused(_) => true,
        Outcome::Aborted => confirm.attempts == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
