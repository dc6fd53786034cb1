//! What both transports keep of a stream: its octets, what is on the way, what has come.
//!
//! Streams count octets from 0 in 64 bits; the numbers on the wire are the low 32 bits behind an initial number, and
//! [`Numbers`] translates.

mod inbox;
mod outbox;
mod reader;
mod ring;
mod spans;
mod told;

pub(super) use inbox::Inbox;
pub(super) use outbox::{Outbox, Piece};
pub(super) use reader::Reader;
pub(super) use ring::Ring;
pub use told::Sent;
pub(super) use told::{Fate, Losses, News, Tally};

/// Translates between offsets in a stream and numbers on the wire: the call itself has the initial number, and the
/// first octet the next one (as in RFC 9293, 3.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub initial: u32,
}

impl Numbers {
    /// The number of the octet at `offset`.
    pub fn number(self, offset: u64) -> u32 {
        self.initial.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// The offset that `number` means, near `about`; `None` if that is before the stream.
    pub fn offset(self, number: u32, about: u64) -> Option<u64> {
        let ahead = number.wrapping_sub(self.number(about)) as i32;
        about.checked_add_signed(i64::from(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(initial: u32, offset in 0u64..1 << 40, off in -1_000_000i64..1_000_000) {
            let n = Numbers { initial };
            let about = offset.saturating_add_signed(off);
            prop_assert_eq!(n.offset(n.number(offset), about), Some(offset));
        }
    }

    #[test]
    fn before_the_stream() {
        let n = Numbers { initial: u32::MAX };
        assert_eq!(
            (n.number(0), n.offset(0, 5), n.offset(u32::MAX, 5)),
            (0, Some(0), None)
        );
    }
}
