//! What is on the air, whom it meets, and what that does to the message in it.

use super::super::tally::Cause;
use super::NEVER;

/// What is known of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Delivered to the application at the other end, true time.
    pub delivered_ns: u64,
    /// Its frame was received without error at the other end, first time.
    pub received_ns: u64,
    /// Frames with it on the air before its deadline.
    pub attempts: u16,
    /// Of these, repetitions that met another frame of the loop.
    pub repeats_collided: u16,
    /// What became of the first of them that did not arrive, or kept it from the air.
    pub failure: Option<Cause>,
}

impl Message {
    pub(super) const UNKNOWN: Message = Message {
        delivered_ns: NEVER,
        received_ns: NEVER,
        attempts: 0,
        repeats_collided: 0,
        failure: None,
    };
}

/// A message in a frame, and where that frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Load {
    /// Index of the message.
    pub message: usize,
    /// It began before the deadline.
    pub in_time: bool,
    /// It is not the first frame with this message.
    pub repeats: bool,
}

/// Something on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub end_ns: u64,
    pub adapter: u32,
    pub mhz: u16,
    pub foreign: bool,
    /// The station of the loop that is to acknowledge it.
    pub to: Option<u32>,
    /// The access point that lets that station in with it.
    pub lets_in: Option<u32>,
    pub load: Option<Load>,
    /// It counts.
    pub counts: bool,
    /// It began as soon as somebody else had left the channel free: it had waited for that.
    pub waited: bool,
    /// It arrived without error.
    pub arrived: bool,
    /// It met another frame of the loop.
    pub collided: bool,
    /// It met a foreign frame or noise.
    pub disturbed: bool,
    /// It met a frame of the loop, and one of the two had waited for somebody else.
    pub pushed: bool,
}

impl Flight {
    /// Notes that the two overlap.
    pub(super) fn meets(&mut self, other: &mut Flight) {
        let pushed = !self.foreign && !other.foreign && (self.waited || other.waited);
        let (ours, theirs) = (self.foreign, other.foreign);
        for (one, by_foreign) in [(&mut *self, theirs), (other, ours)] {
            one.disturbed |= by_foreign;
            one.collided |= !by_foreign;
            one.pushed |= pushed;
        }
    }

    /// It was the only one on the air.
    pub(super) fn was_alone(&self) -> bool {
        !self.collided && !self.disturbed
    }

    /// Why it did not arrive.
    fn cause(&self) -> Cause {
        match (self.disturbed || self.pushed, self.collided) {
            (true, _) => Cause::Interference,
            (_, true) => Cause::Collisions,
            _ => Cause::Losses,
        }
    }

    /// It is over: what that means for the message in it.
    pub(super) fn settle(&self, messages: &mut [Message]) {
        let Some(load) = self.load.filter(|l| l.in_time) else {
            return;
        };
        let message = &mut messages[load.message];
        message.repeats_collided += u16::from(load.repeats && self.collided);
        if !self.arrived && message.received_ns == NEVER {
            message.failure.get_or_insert(self.cause());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: Flight = Flight {
        end_ns: 36_000,
        adapter: 1,
        mhz: 5180,
        foreign: false,
        to: Some(0),
        lets_in: None,
        load: Some(Load {
            message: 0,
            in_time: true,
            repeats: false,
        }),
        counts: true,
        waited: false,
        arrived: false,
        collided: false,
        disturbed: false,
        pushed: false,
    };

    fn failure(flights: &[Flight]) -> Option<Cause> {
        let mut messages = [Message::UNKNOWN];
        flights.iter().for_each(|f| f.settle(&mut messages));
        messages[0].failure
    }

    #[test]
    fn the_first_failure_is_the_one_to_blame() {
        let (mut a, mut b) = (FLIGHT, FLIGHT);
        a.meets(&mut b);
        assert!(a.collided && b.collided && !a.pushed && !a.disturbed);
        assert_eq!(failure(&[FLIGHT, a]), Some(Cause::Losses));
        assert_eq!(failure(&[a, FLIGHT]), Some(Cause::Collisions));
        let arrived = Flight {
            arrived: true,
            ..FLIGHT
        };
        assert_eq!(failure(&[arrived]), None);
        assert_eq!(failure(&[arrived, a]), Some(Cause::Collisions));
        let late = Load {
            in_time: false,
            ..FLIGHT.load.unwrap()
        };
        let late = Flight {
            load: Some(late),
            ..FLIGHT
        };
        assert_eq!(failure(&[late]), None);
    }

    #[test]
    fn who_waits_for_a_stranger_and_meets_a_friend_blames_the_stranger() {
        let mut other = FLIGHT;
        let mut pushed = Flight {
            waited: true,
            ..FLIGHT
        };
        pushed.meets(&mut other);
        assert_eq!(failure(&[pushed]), Some(Cause::Interference));
        assert_eq!(failure(&[other]), Some(Cause::Interference));
        let (mut a, mut stranger) = (
            FLIGHT,
            Flight {
                foreign: true,
                ..FLIGHT
            },
        );
        a.meets(&mut stranger);
        assert!(a.disturbed && !a.collided && !a.pushed);
        assert_eq!(failure(&[a]), Some(Cause::Interference));
    }
}
