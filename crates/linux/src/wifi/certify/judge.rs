//! From counts to a verdict. Nothing in here sends.

use super::bench::Seen;
use super::certificate::Verdict;

/// Frames of which the second radio has to hear something, in tenths, before its silence counts.
const HEARD_TENTHS: usize = 9;

/// How many frames there were for a number of tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tries {
    /// Tries asked for.
    pub asked: u16,
    /// Requests made.
    pub requests: usize,
    /// Of which there was a status.
    pub reported: usize,
    /// Least and most tries that a status told.
    pub told: Option<(u16, u16)>,
    /// There was a second radio.
    pub listened: bool,
    /// Requests of which it heard something.
    pub heard: usize,
    /// Most copies of one that it heard.
    pub copies: usize,
}

impl Tries {
    pub fn of(asked: u16, seen: &[Seen], listened: bool) -> Tries {
        let told = || seen.iter().filter_map(|s| s.status.as_ref()?.attempts);
        Tries {
            asked,
            requests: seen.len(),
            reported: seen.iter().filter(|s| s.status.is_some()).count(),
            told: told().min().zip(told().max()),
            listened,
            heard: seen.iter().filter(|s| !s.copies.is_empty()).count(),
            copies: seen.iter().map(|s| s.copies.len()).max().unwrap_or(0),
        }
    }

    /// In counts, for people.
    pub fn text(&self) -> String {
        let told = match self.told {
            Some((least, most)) if least == most => format!("{least} told"),
            Some((least, most)) => format!("{least} to {most} told"),
            None => "nothing told".into(),
        };
        let heard = match self.listened {
            true => format!(
                ", at most {} heard of one ({} of {} heard)",
                self.copies, self.heard, self.requests
            ),
            false => ", nobody to hear it".into(),
        };
        format!("{told} by {} of {} statuses{heard}", self.reported, self.requests)
    }

    /// Whether it was as asked. Too many show at once; that there were not too many needs an ear.
    pub fn verdict(&self) -> Verdict {
        let asked = usize::from(self.asked);
        let most_told = self.told.map(|(_, most)| usize::from(most));
        if self.copies > asked || most_told.is_some_and(|most| most > asked) {
            return Verdict::DoesNotHold;
        }
        if self.told.is_some_and(|(least, _)| usize::from(least) < asked) {
            return Verdict::DoesNotHold;
        }
        let ear = self.listened && self.heard * 10 >= self.requests * HEARD_TENTHS;
        match (self.requests > 0 && ear, self.copies == asked) {
            (false, _) => Verdict::CannotBeSeen,
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::DoesNotHold,
        }
    }
}

/// Whether each of `count` frames had its status: `told` had one, `twice` of them more, and `refused` were not taken, so that
/// nobody knows what there would have been.
pub(super) fn of_statuses(count: usize, told: usize, twice: usize, refused: usize) -> Verdict {
    match (told + refused < count || twice > 0, refused > 0) {
        (true, _) => Verdict::DoesNotHold,
        (false, true) => Verdict::CannotBeSeen,
        (false, false) => Verdict::Holds,
    }
}

/// The verdict as a host takes it.
pub(super) fn proof(verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::Holds => Some(true),
        Verdict::DoesNotHold => Some(false),
        Verdict::CannotBeSeen => None,
    }
}

/// The verdict of a yes or a no that was seen.
pub(super) fn verdict(holds: bool) -> Verdict {
    if holds {
        Verdict::Holds
    } else {
        Verdict::DoesNotHold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Tries = Tries {
        asked: 1,
        requests: 50,
        reported: 50,
        told: Some((1, 1)),
        listened: true,
        heard: 50,
        copies: 1,
    };

    #[test]
    fn one_shot_needs_an_ear() {
        assert_eq!(ONE.verdict(), Verdict::Holds);
        let alone = Tries {
            listened: false,
            heard: 0,
            copies: 0,
            ..ONE
        };
        assert_eq!(alone.verdict(), Verdict::CannotBeSeen);
        let deaf = Tries { heard: 44, ..ONE };
        assert_eq!(deaf.verdict(), Verdict::CannotBeSeen);
        assert_eq!(Tries { heard: 45, ..ONE }.verdict(), Verdict::Holds);
    }

    #[test]
    fn too_many_show_whoever_tells() {
        let told = Tries {
            told: Some((1, 13)),
            listened: false,
            ..ONE
        };
        assert_eq!(told.verdict(), Verdict::DoesNotHold);
        assert_eq!(
            Tries { copies: 2, ..ONE }.verdict(),
            Verdict::DoesNotHold,
            "the driver hides one"
        );
        let silent = Tries {
            told: None,
            reported: 0,
            ..ONE
        };
        assert_eq!(silent.verdict(), Verdict::Holds, "no status, but it was heard");
    }

    /// An interface that is set down takes nothing more: that says nothing about statuses.
    #[test]
    fn a_frame_that_was_not_taken_is_no_status() {
        assert_eq!(of_statuses(10_000, 10_000, 0, 0), Verdict::Holds);
        assert_eq!(of_statuses(10_000, 4_314, 0, 5_686), Verdict::CannotBeSeen);
        assert_eq!(of_statuses(10_000, 4_314, 0, 5_000), Verdict::DoesNotHold);
        assert_eq!(of_statuses(10_000, 10_000, 1, 0), Verdict::DoesNotHold);
    }

    #[test]
    fn too_few_are_not_as_asked() {
        let seven = Tries {
            asked: 7,
            told: Some((7, 7)),
            copies: 7,
            ..ONE
        };
        assert_eq!(seven.verdict(), Verdict::Holds);
        assert_eq!(
            Tries {
                told: Some((1, 1)),
                copies: 1,
                ..seven
            }
            .verdict(),
            Verdict::DoesNotHold
        );
        assert_eq!(
            Tries { copies: 6, ..seven }.verdict(),
            Verdict::DoesNotHold,
            "it boasts"
        );
        assert_eq!(
            Tries {
                requests: 0,
                heard: 0,
                copies: 0,
                told: None,
                ..seven
            }
            .verdict(),
            Verdict::CannotBeSeen
        );
    }
}
