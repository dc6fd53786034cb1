//! One node's protocol under the laws and on tape, without its type.

use radio::tape::{Replayed, Sink, Tape, replay};
use radio::{Checked, Event, Instant, Protocol, Radio};
use std::any::Any;
use std::boxed::Box;
use std::vec::Vec;

/// The octets of a tape.
pub(super) struct Reel(Vec<u8>);

impl Sink for Reel {
    fn append(&mut self, octets: &[u8]) {
        self.0.extend_from_slice(octets);
    }
}

/// What the room needs of a node.
pub(super) trait Sitter: Protocol {
    /// The protocol, for tests that know its type.
    fn protocol(&self) -> &dyn Any;
    /// Checks law 1 to the end and replays the tape with a fresh protocol.
    fn close(&mut self) -> Replayed;
}

pub(super) struct Seat<P> {
    tape: Option<Tape<Checked<P>, Reel>>,
    fresh: P,
}

impl<P: Protocol + 'static> Seat<P> {
    pub(super) fn boxed(make: impl Fn() -> P) -> Box<dyn Sitter> {
        let checked = Checked::strict(make()).with_twin(make());
        Box::new(Seat {
            tape: Some(Tape::new(checked, Reel(Vec::new()))),
            fresh: make(),
        })
    }

    fn open(&self) -> &Tape<Checked<P>, Reel> {
        self.tape.as_ref().expect("not closed")
    }
}

impl<P: Protocol + 'static> Protocol for Seat<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.tape.as_mut().expect("not closed").handle(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        self.open().deadline()
    }
}

impl<P: Protocol + 'static> Sitter for Seat<P> {
    fn protocol(&self) -> &dyn Any {
        self.open().inner().inner()
    }

    fn close(&mut self) -> Replayed {
        let (mut checked, reel) = self.tape.take().expect("not closed").into_parts();
        checked.finish();
        match replay(&reel.0, &mut self.fresh) {
            Ok(found) => found,
            Err(e) => panic!("the tape does not replay: {e}"),
        }
    }
}
