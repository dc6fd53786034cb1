//! End-to-end transports over datagrams: what carries a stream of octets across a mesh, and what the hops add to it.
//!
//! | module | what it is |
//! |---|---|
//! | [`wire`] | the header, and how it is read, written and changed on the way |
//! | [`atp`] | ATP, a transport whose rate follows the delays that the hops measure |
//! | [`tahoe`] | TCP Tahoe and NewReno, the baselines |
//! | [`hop`] | what every node on the way does: averages its delay, and raises that in passing packets |
//!
//! A transport has the shape of the neck: one event at a time comes in ([`Event`]), datagrams go out ([`Path`]), and
//! there is one instant at which it wants to be called again ([`Transport::deadline`]). It reads no clock, draws no
//! random number and allocates nothing; its buffers are given at construction and may be arrays, slices or boxes.
//! [`Transport::read`], [`write`](Transport::write), [`finish`](Transport::finish) and
//! [`abort`](Transport::abort) only move octets and wishes: what follows from them is done in the next
//! [`handle`](Transport::handle), and the deadline says when that is due.
//!
//! Telling flows apart is the work of the host (UDP ports, for example). So is secrecy: the
//! authenticated mode of real sockets is a layer between a transport and its path.

pub mod atp;
pub mod hop;
mod life;
mod stream;
pub mod tahoe;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wire;

use radio::{Duration, Instant};
pub use stream::Sent;

/// What a transport is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// The first event: who calls, calls now.
    Start,
    /// [`Transport::deadline`] has passed.
    Timer,
    /// A datagram came in for this flow.
    Indication(&'a [u8]),
}

/// What carries datagrams to the other end. It may lose, repeat, delay and damage them.
pub trait Path {
    /// Sends one datagram of at most [`wire::MAX_PACKET_OCTETS`] octets.
    fn request(&mut self, datagram: &[u8]);
}

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Waits to be called.
    Listening,
    /// Calls, or has been called, and waits for the answer.
    Opening,
    /// Data may go both ways, as far as [`Transport::finish`] has not ended one.
    Open,
    /// Both directions have ended; it stays to repeat its last acknowledgement, should that have been lost.
    Lingering,
    /// Over, with everything delivered both ways.
    Closed,
    /// Over before that.
    Failed(Failure),
}

impl State {
    /// True if nothing more will happen.
    pub const fn is_over(self) -> bool {
        matches!(self, State::Closed | State::Failed(_))
    }
}

/// Why a connection ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Nobody answered the call, in all its tries.
    NoAnswer,
    /// The other end has fallen silent for longer than the patience of this one.
    PeerSilent,
    /// The other end answers, but no packet with data reaches it, however short.
    TooNarrow,
    /// The other end knows nothing of this connection, or has aborted it.
    Reset,
    /// Aborted here.
    Aborted,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Failure::NoAnswer => {
                "nobody answered at the other end; is it running, is there a route to it, and has it the same key, or none as well?"
            }
            Failure::PeerSilent => "the other end has fallen silent; the path or the peer is down",
            Failure::TooNarrow => {
                "the other end answers, but data in packets of 576 octets do not reach it: a link on the path drops \
                 them; raise its MTU"
            }
            Failure::Reset => "the other end has reset the connection",
            Failure::Aborted => "the connection was aborted here",
        })
    }
}

impl core::error::Error for Failure {}

/// One end of a connection: a reliable stream of octets each way.
pub trait Transport {
    /// Takes in one event and sends what follows from it. `now` never decreases. At most three datagrams are sent
    /// in one call.
    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path);

    /// When to be called with [`Event::Timer`]; read again after every call. Lateness costs rate, nothing else.
    fn deadline(&self) -> Option<Instant>;

    /// Takes octets to send, as many as there is room for, and tells how many. None after
    /// [`finish`](Transport::finish) and in a connection that is over.
    fn write(&mut self, now: Instant, octets: &[u8]) -> usize;

    /// Hands out received octets in order, and tells how many. How fast this is called is fed back to the sender.
    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize;

    /// True when the other end has finished and all that it wrote was read.
    fn is_exhausted(&self) -> bool;

    /// Ends the stream to the other end; what was written before still arrives. The other direction goes on.
    fn finish(&mut self, now: Instant);

    /// Ends the connection at once. The other end is told, once.
    fn abort(&mut self, now: Instant);

    /// Where it is in its life.
    fn state(&self) -> State;
}

/// Buffers of one connection. How long they are bounds what is on the way and what waits to be read.
#[derive(Clone, Debug)]
pub struct Buffers<O, R> {
    /// Octets written and not yet acknowledged.
    pub send: O,
    /// Octets received and not yet read, with room for what is missing in between.
    pub receive: O,
    /// One record for each packet on the way.
    pub sent: R,
}

/// Durations as numbers, for averages.
fn micros(d: Duration) -> f64 {
    d.as_ns() as f64 / 1_000.0
}

/// The earlier of two instants that may be missing.
fn sooner(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    }
}
