//! The radio that the protocol above sees: what it sets at one of the two adapters is set at both.

use radio::{AdapterId, Attribute, AttributeName, Msdu, Radio, SetAnswer, Token, TxHow};

/// Settings without an answer from the other adapter, at most; answers to others go up.
const OPEN: usize = 16;

/// Settings that were repeated at the other adapter, and have no answer yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeated([Option<Token>; OPEN]);

impl Repeated {
    /// Whether an answer is to one of them.
    pub(super) fn is_answered_by(&mut self, answer: &SetAnswer) -> bool {
        let mine = self.0.iter_mut().find(|t| **t == Some(answer.token));
        mine.map(Option::take).is_some()
    }
}

/// What is the same for both adapters of a pair. Each has its own channel, its own clock, and its own packets and counts.
fn is_common(attribute: &Attribute) -> bool {
    !matches!(
        attribute,
        Attribute::Capabilities(_)
            | Attribute::Channel(_)
            | Attribute::Tsf(_)
            | Attribute::Counters(_)
            | Attribute::QueueLength(..)
            | Attribute::Packet(..)
            | Attribute::PacketSeries(..)
    )
}

/// `radio` with two adapters as one.
pub(super) struct Both<'a> {
    pub(super) radio: &'a mut dyn Radio,
    pub(super) adapters: [AdapterId; 2],
    pub(super) repeated: &'a mut Repeated,
}

impl Radio for Both<'_> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.radio.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        let one = self.adapters.iter().position(|a| *a == adapter);
        if let Some(one) = one.filter(|_| is_common(&attribute))
            && let Some(place) = self.repeated.0.iter_mut().find(|t| t.is_none())
        {
            let again = self.radio.token();
            *place = Some(again);
            self.radio.set(again, self.adapters[1 - one], attribute);
        }
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.radio.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.radio.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.radio.deliver(msdu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::redundancy::{Redundancy, RedundancyConfig};
    use radio::{Event, Instant, Protocol};
    use std::vec::Vec;

    const PAIR: [AdapterId; 2] = [AdapterId(1), AdapterId(3)];

    /// Sets these at the start, and remembers the answers.
    struct Setter {
        what: Vec<(AdapterId, Attribute)>,
        own: Vec<Token>,
        answered: Vec<Token>,
    }

    impl Protocol for Setter {
        fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
            match event {
                Event::Start => {
                    for (adapter, attribute) in self.what.clone() {
                        let token = radio.token();
                        self.own.push(token);
                        radio.set(token, adapter, attribute);
                    }
                }
                Event::Set(answer) => self.answered.push(answer.token),
                _ => {}
            }
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }
    }

    #[derive(Default)]
    struct Record {
        next: u64,
        sets: Vec<(Token, AdapterId, Attribute)>,
    }

    impl Radio for Record {
        fn token(&mut self) -> Token {
            self.next += 1;
            Token(self.next)
        }
        fn request(&mut self, _: Token, _: &[u8], _: &TxHow) {}
        fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
            self.sets.push((token, adapter, attribute));
        }
        fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
            None
        }
        fn abort(&mut self, _: Token) {}
        fn deliver(&mut self, _: Msdu<'_>) {}
    }

    /// The adapters at which each of these was set, and whether the protocol got the answers to its own settings, no others.
    fn settings(what: &[(AdapterId, Attribute)]) -> Vec<(u8, Attribute)> {
        let setter = Setter {
            what: what.to_vec(),
            own: Vec::new(),
            answered: Vec::new(),
        };
        let mut pair: Redundancy<Setter> =
            Redundancy::new(RedundancyConfig::parallel(PAIR[0], PAIR[1]), setter);
        let mut radio = Record::default();
        pair.handle(Instant::ZERO, Event::Start, &mut radio);
        for (token, ..) in radio.sets.clone() {
            let answer = SetAnswer {
                token,
                result: Ok(()),
            };
            pair.handle(Instant::ZERO, Event::Set(answer), &mut radio);
        }
        assert_eq!(pair.protocol().answered, pair.protocol().own);
        let mut sets: Vec<_> = radio.sets.iter().map(|(_, a, what)| (a.0, *what)).collect();
        sets.sort_by_key(|(a, _)| *a);
        sets
    }

    #[test]
    fn a_switch_of_one_is_turned_at_both() {
        let off = Attribute::CarrierSense(false);
        assert_eq!(settings(&[(PAIR[0], off)]), [(1, off), (3, off)]);
        assert_eq!(settings(&[(PAIR[1], off)]), [(1, off), (3, off)]);
    }

    #[test]
    fn channels_and_other_adapters_are_left_alone() {
        let channel = Attribute::Channel(5_180);
        assert_eq!(settings(&[(PAIR[0], channel)]), [(1, channel)]);
        let off = Attribute::Reception(false);
        assert_eq!(settings(&[(AdapterId(0), off)]), [(0, off)]);
    }

    #[test]
    fn more_than_can_be_remembered_are_set_once() {
        let off = Attribute::Reception(false);
        let sets = settings(&[(PAIR[0], off); OPEN + 3]);
        assert_eq!(sets.iter().filter(|(a, _)| *a == 3).count(), OPEN);
    }
}
