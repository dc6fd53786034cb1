//! For how long the medium was busy, as the driver counts it (NL80211_CMD_GET_SURVEY).
//!
//! Numbers are those of linux/nl80211.h.

use super::nl80211::{Control, attr};
use crate::generic::GENERIC_HEADER;
use crate::netlink::{find, number};

const GET_SURVEY: u8 = 50;
/// What is told of a channel.
const SURVEY_INFO: u16 = 84;
/// Within that: it is the one in use, and milliseconds for which it was busy.
const IN_USE: u16 = 3;
const TIME_BUSY: u16 = 5;

impl Control {
    /// Microseconds for which the medium was busy on the channel of an interface since some time before. `None`: its
    /// driver does not count that.
    pub fn busy_time_us(&mut self, interface: u32) -> Option<u64> {
        let of = |m: &mut Vec<u8>| number(m, attr::IFINDEX, interface);
        let parts = self.ask(GET_SURVEY, libc::NLM_F_DUMP, of).ok()?;
        parts
            .iter()
            .find_map(|part| busy_us(part.body.get(GENERIC_HEADER..)?))
    }
}

/// The same, of what is told of one channel.
fn busy_us(attributes: &[u8]) -> Option<u64> {
    let told = find(attributes, SURVEY_INFO)?;
    find(told, IN_USE)?;
    let ms = find(told, TIME_BUSY)?.first_chunk()?;
    Some(u64::from_ne_bytes(*ms).saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{attribute, flag};

    fn channel(in_use: bool, busy_ms: Option<u64>) -> Vec<u8> {
        let mut m = Vec::new();
        number(&mut m, attr::IFINDEX, 7);
        attribute(&mut m, SURVEY_INFO | 0x8000, |m| {
            number(m, 1, 5_180);
            if in_use {
                flag(m, IN_USE);
            }
            if let Some(ms) = busy_ms {
                attribute(m, TIME_BUSY, |m| m.extend(ms.to_ne_bytes()));
            }
        });
        m
    }

    #[test]
    fn only_the_channel_in_use_and_only_what_is_counted() {
        assert_eq!(busy_us(&channel(true, Some(1_234))), Some(1_234_000));
        assert_eq!(busy_us(&channel(false, Some(1_234))), None);
        assert_eq!(busy_us(&channel(true, None)), None);
        assert_eq!(busy_us(&channel(true, Some(u64::MAX))), Some(u64::MAX));
        let whole = channel(true, Some(1));
        for n in 0..whole.len() {
            busy_us(&whole[..n]);
        }
    }
}
