//! A count of confirms by their outcome, which every protocol keeps.

use radio::{Confirm, Outcome};

/// How many requests ended in which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// An ACK came.
    pub acked: u64,
    /// No ACK came, or none was asked for.
    pub not_acked: u64,
    /// Not taken.
    pub refused: u64,
    /// Taken back, or lost in a reset.
    pub aborted: u64,
    /// Too late.
    pub expired: u64,
    /// The host lost track.
    pub unknown: u64,
    /// Frames on the air, all requests together.
    pub attempts: u64,
}

impl Tally {
    /// Counts one confirm.
    pub fn note(&mut self, confirm: &Confirm) {
        *match confirm.outcome {
            Outcome::Acked => &mut self.acked,
            Outcome::NotAcked => &mut self.not_acked,
            Outcome::Refused(_) => &mut self.refused,
            Outcome::Aborted => &mut self.aborted,
            Outcome::Expired => &mut self.expired,
            Outcome::Unknown => &mut self.unknown,
        } += 1;
        self.attempts += u64::from(confirm.attempts);
    }

    /// All confirms together.
    pub fn total(&self) -> u64 {
        self.acked + self.not_acked + self.refused + self.aborted + self.expired + self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Rate;
    use radio::{Refusal, Token};

    #[test]
    fn each_outcome_has_its_place() {
        let mut tally = Tally::default();
        let outcomes = [
            Outcome::Acked,
            Outcome::NotAcked,
            Outcome::Refused(Refusal::QueueFull),
            Outcome::Aborted,
            Outcome::Expired,
            Outcome::Unknown,
        ];
        for (i, outcome) in outcomes.into_iter().enumerate() {
            let c = Confirm::without_air(Token(0), outcome, Rate::OFDM_6);
            for _ in 0..=i {
                tally.note(&Confirm { attempts: 2, ..c });
            }
        }
        let expected = Tally {
            acked: 1,
            not_acked: 2,
            refused: 3,
            aborted: 4,
            expired: 5,
            unknown: 6,
            attempts: 42,
        };
        assert_eq!((tally, tally.total()), (expected, 21));
    }
}
