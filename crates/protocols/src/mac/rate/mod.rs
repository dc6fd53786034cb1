//! Rate control above the adapter: an overlay that fills in the retry chain (up to four rates with their tries) of every
//! frame for one receiver, from what became of the frames before.
//!
//! | module | what it is |
//! |---|---|
//! | [`minstrel`] | the rate control of Linux for 802.11a/b/g, here for n, too: tries everything now and then, keeps what carries most |
//! | [`rsin`] | the chain with the least residual loss that still fits before the deadline, from the strength of ACKs or of what is heard |
//!
//! The request says among which rates: those that are [like](Rates::like) its first one. So an MCS stands for the eight of its width,
//! guard interval and number of spatial streams, and a legacy rate for the legacy rates. What is known of a receiver is kept apart
//! for each kind that requests to it have.
//!
//! The number of tries is the protocol's above: a one-shot stays a one-shot, at a rate that is chosen here. Frames to
//! groups, and frames that expect no ACK, pass unchanged. On a host that takes one rate for each request
//! ([`Capabilities::series`](radio::Capabilities)) a chain goes down in pieces.

mod costs;
mod firsts;
mod known;
pub mod minstrel;
mod pieces;
mod rates;
pub mod rsin;
#[cfg(test)]
mod tests;

use frame::mac::Header;
use frame::{MacAddr, Rate};
use pieces::{First, Pieces};
use radio::tx::MAX_SERIES;
use radio::{
    AckPolicy, AdapterId, Attribute, AttributeName, Confirm, Duration, Event, Indication, Instant, Msdu,
    Outcome, Protocol, Radio, Series, SeriesList, Token, TxHow,
};
use rates::Kind;
pub use rates::{MAX_RATES, Rates};

/// The next frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Octets of the MPDU with FCS.
    pub octets: u32,
    /// Frames on the air at most, 1 or more.
    pub tries: u16,
    /// Time until it is of no use any more.
    pub left: Option<Duration>,
    /// First rate of the request. Those of the chain are [like](Rates::like) it; and there an algorithm begins that knows nothing yet,
    /// if it has nothing better.
    pub rate: Rate,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its chain.
    pub chain: SeriesList,
    /// Frames on the air by series.
    pub used: [u16; MAX_SERIES],
    /// Whether the last of them was acknowledged.
    pub acked: bool,
    /// Strength of the ACK in dBm, where the adapter tells.
    pub ack_signal_dbm: Option<i8>,
}

impl Sent {
    /// What a confirm says about a chain; `None` if it tells nothing (no frame was on the air, or nobody knows).
    pub fn of(chain: SeriesList, confirm: &Confirm) -> Option<Sent> {
        if confirm.attempts == 0 || confirm.outcome == Outcome::Unknown {
            return None;
        }
        let mut left = confirm.attempts;
        let mut used = [0; MAX_SERIES];
        for (used, series) in used.iter_mut().zip(chain.as_slice()) {
            *used = left.min(u16::from(series.tries));
            left -= *used;
        }
        Some(Sent {
            chain,
            used,
            acked: confirm.outcome.is_acked(),
            ack_signal_dbm: confirm.ack_signal_dbm,
        })
    }

    /// Index of the last series that was used.
    pub fn last(&self) -> usize {
        self.used.iter().rposition(|n| *n > 0).unwrap_or(0)
    }
}

/// A way to choose chains for one receiver, among the rates that are [like](Rates::like) that of the first frame asked for.
pub trait Algorithm {
    /// The chain of the next frame. More tries than asked for are cut off.
    fn chain(&mut self, now: Instant, ask: &Ask) -> SeriesList;
    /// Learns.
    fn learn(&mut self, now: Instant, sent: &Sent);
    /// The receiver itself was heard sending, so strong. Nothing follows from it unless an algorithm says so.
    fn hear(&mut self, _now: Instant, _signal_dbm: i8) {}
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    token: Token,
    peer: (MacAddr, Kind),
    chain: SeriesList,
}

#[derive(Clone, Debug)]
struct Peer<A> {
    address: MacAddr,
    kind: Kind,
    last: Instant,
    algorithm: A,
}

impl<A> Peer<A> {
    fn is(&self, address: MacAddr, kind: Kind) -> bool {
        (self.address, self.kind) == (address, kind)
    }
}

/// See the [module](self). One `A` for each of up to `PEERS` receivers (a new one takes the place of the one that was
/// used least lately; a receiver of frames of two kinds of rate counts twice), and up to `N` requests without confirm; more pass unchanged.
#[derive(Clone, Debug)]
pub struct RateControl<P, A, const PEERS: usize = 8, const N: usize = 16> {
    above: P,
    control: Control<A, PEERS, N>,
}

impl<P: Protocol, A: Algorithm + Clone, const PEERS: usize, const N: usize> RateControl<P, A, PEERS, N> {
    /// `fresh` is what is known of a receiver at first.
    pub fn new(fresh: A, above: P) -> Self {
        RateControl {
            above,
            control: Control {
                fresh,
                peers: core::array::from_fn(|_| None),
                flights: [None; N],
                pieces: Pieces::new(),
            },
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        &self.above
    }

    /// What is known of a receiver, by the kind of rates that was asked for last.
    pub fn algorithm(&self, peer: MacAddr) -> Option<&A> {
        let known = self.control.peers.iter().flatten();
        let latest = known.filter(|p| p.address == peer).max_by_key(|p| p.last);
        latest.map(|p| &p.algorithm)
    }
}

#[derive(Clone, Debug)]
struct Control<A, const PEERS: usize, const N: usize> {
    fresh: A,
    peers: [Option<Peer<A>>; PEERS],
    flights: [Option<Flight>; N],
    pieces: Pieces,
}

impl<A: Algorithm + Clone, const PEERS: usize, const N: usize> Control<A, PEERS, N> {
    fn peer(&mut self, (address, kind): (MacAddr, Kind), now: Instant) -> Option<&mut Peer<A>> {
        let known = self
            .peers
            .iter()
            .position(|p| p.as_ref().is_some_and(|p| p.is(address, kind)));
        let oldest = || (0..PEERS).min_by_key(|i| self.peers[*i].as_ref().map(|p| p.last));
        let index = known.or_else(oldest)?;
        if known.is_none() {
            self.peers[index] = Some(Peer {
                address,
                kind,
                last: now,
                algorithm: self.fresh.clone(),
            });
        }
        self.peers[index].as_mut()
    }

    /// Chooses the chain of a request.
    fn choose(&mut self, now: Instant, token: Token, frame: &[u8], how: &TxHow) -> Option<SeriesList> {
        let header = Header::parse(frame).ok().filter(Header::wants_ack)?;
        if how.ack == AckPolicy::NoAck {
            return None;
        }
        let free = self.flights.iter().position(Option::is_none)?;
        let from = how.not_before.map_or(now, |t| t.max(now));
        let ask = Ask {
            octets: frame.len() as u32 + 4,
            tries: how.series.attempts(),
            left: how.expires.map(|t| t.since(from)),
            rate: how.series.as_slice()[0].rate,
        };
        let whose = (header.receiver(), Kind::of(ask.rate));
        let peer = self.peer(whose, now)?;
        peer.last = now;
        let chain = cut(peer.algorithm.chain(now, &ask), ask.tries);
        self.flights[free] = Some(Flight {
            token,
            peer: whose,
            chain,
        });
        Some(chain)
    }

    /// A frame came in: what it says about the way to who sent it, if that is a receiver of ours.
    fn hear(&mut self, now: Instant, received: &Indication<'_>) {
        let (Some(dbm), Ok(header)) = (received.signal_dbm, Header::parse(received.frame)) else {
            return;
        };
        let from = header.transmitter();
        let known = self.peers.iter_mut().flatten();
        for peer in known.filter(|p| Some(p.address) == from) {
            peer.algorithm.hear(now, dbm);
        }
    }

    /// The chain with which a request went down.
    fn flies(&mut self, token: Token, chain: SeriesList) {
        if let Some(flight) = self.flights.iter_mut().flatten().find(|f| f.token == token) {
            flight.chain = chain;
        }
    }

    fn learn(&mut self, now: Instant, confirm: &Confirm) {
        let mine = |f: &Option<Flight>| f.is_some_and(|f| f.token == confirm.token);
        let Some(flight) = self.flights.iter_mut().find(|f| mine(f)).and_then(Option::take) else {
            return;
        };
        // a peer that was forgotten meanwhile learns nothing
        let (address, kind) = flight.peer;
        let peer = self.peers.iter_mut().flatten().find(|p| p.is(address, kind));
        if let (Some(peer), Some(sent)) = (peer, Sent::of(flight.chain, confirm)) {
            peer.algorithm.learn(now, &sent);
        }
    }
}

/// The first `tries` frames of a chain.
fn cut(chain: SeriesList, tries: u16) -> SeriesList {
    let mut left = tries.max(1);
    let mut short = [chain.as_slice()[0]; MAX_SERIES];
    let mut n = 0;
    for series in chain.as_slice() {
        let tries = u16::from(series.tries).min(left) as u8;
        if tries > 0 {
            short[n] = Series { tries, ..*series };
            n += 1;
        }
        left -= u16::from(tries);
    }
    SeriesList::new(&short[..n]).unwrap_or(chain)
}

/// The radio of the protocol above: requests get their chain.
struct Desk<'a, A, const PEERS: usize, const N: usize> {
    now: Instant,
    control: &'a mut Control<A, PEERS, N>,
    radio: &'a mut dyn Radio,
}

impl<A: Algorithm + Clone, const PEERS: usize, const N: usize> Radio for Desk<'_, A, PEERS, N> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        let Some(chain) = self.control.choose(self.now, token, frame, how) else {
            return self.radio.request(token, frame, how);
        };
        let pieces = &mut self.control.pieces;
        let first = match pieces.first(token, frame, how, chain, self.radio) {
            First::Part(first) => first,
            First::Whole(whole) => {
                self.control.flies(token, whole);
                whole
            }
        };
        self.radio.request(token, frame, &how.series(first));
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.radio.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.radio.abort(self.control.pieces.unwanted(token));
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.radio.deliver(msdu);
    }
}

impl<P: Protocol, A: Algorithm + Clone, const PEERS: usize, const N: usize> Protocol
    for RateControl<P, A, PEERS, N>
{
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let mut event = event;
        match &event {
            Event::Confirm(c) => {
                let Some(told) = self.control.pieces.ended(c, radio) else {
                    return;
                };
                self.control.learn(now, &told);
                event = Event::Confirm(told);
            }
            Event::Indication(received) => self.control.hear(now, received),
            Event::Beacon(beacon) => self.control.hear(now, &beacon.received),
            _ => {}
        }
        let control = &mut self.control;
        let mut desk = Desk { now, control, radio };
        self.above.handle(now, event, &mut desk);
    }

    fn deadline(&self) -> Option<Instant> {
        self.above.deadline()
    }
}
