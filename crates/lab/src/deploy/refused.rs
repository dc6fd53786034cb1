//! Why requests were refused, and what to do about it.

use radio::Refusal;
use serde::{Serialize, Serializer};

/// Reasons that there are.
const REASONS: usize = 8;

/// Refused requests by their reason, in the order in which the reasons came. In JSON a map from the name of the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals([Option<(Refusal, u64)>; REASONS]);

impl Refusals {
    /// One more.
    pub fn add(&mut self, reason: Refusal) {
        let place = |of: &&mut Option<(Refusal, u64)>| of.is_none_or(|(r, _)| r == reason);
        if let Some(of) = self.0.iter_mut().find(place) {
            of.get_or_insert((reason, 0)).1 += 1;
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// Each reason that there was.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> {
        self.0.into_iter().flatten()
    }

    /// One sentence with the commonest reason and what to do, if any of so many requests were refused. `node`: whose.
    pub fn warning(&self, node: &str, requests: u64) -> Option<String> {
        let (reason, count) = self.iter().max_by_key(|(_, count)| *count)?;
        let refused = self.total();
        let most = match self.iter().count() {
            1 => String::new(),
            _ => format!("{count} of these since "),
        };
        Some(format!(
            "{node}: {refused} of {requests} requests were refused: {most}{}",
            advice(reason)
        ))
    }
}

impl Serialize for Refusals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// What is wrong, and what to do.
fn advice(reason: Refusal) -> &'static str {
    match reason {
        Refusal::BadFrame => "the frame is malformed, too short or too long; look at what is built",
        Refusal::QueueFull => {
            "the queue of the host was full; offer less traffic, or fewer requests at the same time"
        }
        Refusal::RateNotSupported => {
            "the rate is not in the band of the channel, or the adapter does not have it (40 MHz takes a channel where the rules let it be so wide), or an ordinary interface \
             was given another (with --confirm status all frames need the same one, those to all as well: broadcast_rate); take another rate, or another channel"
        }
        Refusal::ChannelForbidden => {
            "one may not send on this channel (world rules or radar); set the country with `iw reg set`, or take another \
             channel"
        }
        Refusal::AddressForbidden => {
            "the transmitter's address is not one of this adapter; take down the other interfaces of the radio"
        }
        Refusal::NotSupported => {
            "Linux cannot do what the request asks for (several rates, more tries than the adapter has, RTS, a queue that the \
             frame does not say: data without `qos = true` are best effort; with --confirm status also all but data, one-shots, frames without ACK); ask for less, or send \
             through a monitor"
        }
        Refusal::NoAdapter => {
            "the interface is down or gone, or out of its network; look whether the radio is still there (rfkill, USB)"
        }
        Refusal::NoPermission => "the process lacks a permission; run it with CAP_NET_ADMIN and CAP_NET_RAW",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_reason_is_told_with_what_to_do() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.warning("a", 9), None);
        for _ in 0..3 {
            refusals.add(Refusal::RateNotSupported);
        }
        let one = refusals.warning("a", 3).unwrap();
        assert!(
            one.starts_with("a: 3 of 3 requests were refused: the rate is not in the band"),
            "{one}"
        );
        refusals.add(Refusal::NoAdapter);
        let two = refusals.warning("a", 9).unwrap();
        assert!(
            two.starts_with("a: 4 of 9 requests were refused: 3 of these since the rate"),
            "{two}"
        );
        assert_eq!(refusals.total(), 4);
        assert_eq!(
            serde_json::to_value(refusals).unwrap(),
            serde_json::json!({ "RateNotSupported": 3, "NoAdapter": 1 })
        );
    }
}
