//! The contract between a MAC protocol and whatever carries its frames: events in, actions out.
//!
//! A protocol implements [`Protocol`] and acts through [`Radio`]. It does no I/O, reads no clock and draws no
//! random numbers of its own, so the same object runs in the simulator, on Linux, on a USB radio and on a
//! microcontroller, and a [`tape`] recorded on one of them replays on a desk. The laws that both sides keep are
//! listed in [`checked`].
//!
//! What belongs here: the two traits, the types that cross them, and wrappers that wear the same traits on both
//! sides. What does not: any protocol, any host.
#![no_std]
#![forbid(unsafe_code)]

pub mod application;
pub mod attribute;
pub mod checked;
pub mod event;
pub mod pending;
pub mod stamp;
pub mod tap;
pub mod tape;
pub mod time;
pub mod tx;

pub use application::{Application, Submission};
pub use attribute::{
    Attribute, AttributeName, BeaconTiming, Capabilities, Counters, PacketState, ReceiveFilter, SetError,
    Settable,
};
pub use checked::Checked;
pub use event::{Beacon, Confirm, Event, Indication, Msdu, Outcome, Refusal, SetAnswer, Token};
pub use pending::Pending;
pub use stamp::{Plane, Stamp, Stamps};
pub use tap::{Hooks, Tap};
pub use time::{Duration, Instant, Tsf};
pub use tx::{AckPolicy, AdapterId, Queue, RtsPolicy, Series, SeriesList, TxHow};

/// Octets of the longest frame that crosses the contract, without FCS (IEEE 802.11-2016, 9.4.2.56.3: the
/// smaller A-MSDU size).
pub const MAX_FRAME_OCTETS: usize = 3_895;

/// A MAC protocol, an overlay, or an application above one: a state machine.
pub trait Protocol {
    /// Takes in one event, visible to this node since `now`, and acts through `radio`. `now` never decreases.
    /// The number of actions is bounded (law 6). Must not block and, after construction, not allocate.
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio);

    /// When to be called with [`Event::Timer`]; read again after every `handle`. The call may come late, never
    /// early. `None`: no timer.
    fn deadline(&self) -> Option<Instant>;
}

/// What a protocol can do. All calls return at once; answers come as events, never inside a call (law 2).
pub trait Radio {
    /// A token that was not used before on this node.
    fn token(&mut self) -> Token;

    /// Asks for `frame` (an MPDU without FCS; the adapter fills in Duration and FCS, the protocol everything
    /// else) to be sent as `how` says. Exactly one [`Confirm`] with `token` follows, whatever happens.
    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow);

    /// Asks for a change of an attribute of `adapter`. Exactly one [`SetAnswer`] with `token` follows.
    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute);

    /// Reads an attribute; `None` if this host cannot tell.
    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute>;

    /// Takes a request back if it is not too late. Its confirm still comes: aborted, or what else happened to it.
    fn abort(&mut self, token: Token);

    /// Hands an MSDU up to the application.
    fn deliver(&mut self, msdu: Msdu<'_>);
}

impl<P: Protocol + ?Sized> Protocol for &mut P {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        (**self).handle(now, event, radio);
    }
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
}
