//! What is owed to the protocol: confirms and answers, in the order in which they became known.

use super::machine::Machine;
use radio::checked::MAX_ACTIONS;
use radio::{Confirm, Outcome, Refusal, SetAnswer, SetError, Token};

/// Refusals and answers that may be owed at once: what a protocol can ask for in two events.
pub(super) const ANSWERS: usize = 2 * MAX_ACTIONS;

/// Something small that is owed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    order: u64,
    what: AnswerKind,
}

#[derive(Clone, Copy, Debug)]
enum AnswerKind {
    Refused(Token, Refusal, frame::Rate),
    Set(SetAnswer),
}

/// What is owed to the protocol next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owed {
    Confirm(Confirm),
    Set(SetAnswer),
}

impl<const N: usize, const L: usize> Machine<'_, N, L> {
    fn answer(&mut self, what: AnswerKind) {
        let order = self.next_order();
        if !self.answers.push(Answer { order, what }) {
            self.counts.lost_answers += 1;
        }
    }

    pub(super) fn refuse(&mut self, token: Token, why: Refusal, rate: frame::Rate) {
        self.answer(AnswerKind::Refused(token, why, rate));
    }

    pub(super) fn answer_set(&mut self, token: Token, result: Result<(), SetError>) {
        self.answer(AnswerKind::Set(SetAnswer { token, result }));
    }

    /// What is owed next, in the order in which it became known.
    pub(super) fn owed(&mut self) -> Option<Owed> {
        let small = self.answers.first().map(|a| a.order);
        match (small, self.flights.first_over()) {
            (Some(small), Some((order, index))) if order < small => {
                self.flights.tell(index).map(Owed::Confirm)
            }
            (None, Some((_, index))) => self.flights.tell(index).map(Owed::Confirm),
            _ => self.answers.pop().map(|a| match a.what {
                AnswerKind::Refused(token, why, rate) => {
                    Owed::Confirm(Confirm::without_air(token, Outcome::Refused(why), rate))
                }
                AnswerKind::Set(answer) => Owed::Set(answer),
            }),
        }
    }
}
