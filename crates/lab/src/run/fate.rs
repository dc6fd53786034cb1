//! What became of a request: its outcome, and of one that got no ACK whether its frame had arrived all the same. Only
//! a simulator sees both ends; on the air a sender cannot tell lost data (L_D) from a lost ACK (L_A)
//! (SDMAC, Cena et al. 2018, section V.C.3).

use frame::MacAddr;
use radio::Outcome;
use sim::trace::{OnAir, ReceptionEnd, Transmission};

/// Frames of a node that wait for their confirm at most; requests that end without an exchange leave some behind.
const MAX_OPEN: usize = 64;
/// No node.
const NOBODY: u32 = u32::MAX;

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// A: acknowledged.
    Acked,
    /// L_D: no ACK, and in no attempt did the frame arrive at its receiver.
    DataLost,
    /// L_A: no ACK, but the frame arrived in some attempt.
    AckLost,
    /// No ACK was asked for.
    Unasked,
    /// Not taken.
    Refused,
    /// Taken back, or lost in a reset.
    Aborted,
    /// Too late to be sent.
    Expired,
    /// The status was lost.
    Unknown,
}

impl Fate {
    /// All, in the order of their numbers.
    pub const ALL: [Fate; 8] = [
        Fate::Acked,
        Fate::DataLost,
        Fate::AckLost,
        Fate::Unasked,
        Fate::Refused,
        Fate::Aborted,
        Fate::Expired,
        Fate::Unknown,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Fate::Acked => "A, acked",
            Fate::DataLost => "L_D, data lost",
            Fate::AckLost => "L_A, ACK lost",
            Fate::Unasked => "no ACK asked",
            Fate::Refused => "refused",
            Fate::Aborted => "aborted",
            Fate::Expired => "expired",
            Fate::Unknown => "unknown",
        }
    }

    /// Name of the metric that counts it.
    pub fn metric(self) -> &'static str {
        match self {
            Fate::Acked => "confirms_acked",
            Fate::DataLost => "confirms_data_lost",
            Fate::AckLost => "confirms_ack_lost",
            Fate::Unasked => "confirms_unasked",
            Fate::Refused => "confirms_refused",
            Fate::Aborted => "confirms_aborted",
            Fate::Expired => "confirms_expired",
            Fate::Unknown => "confirms_unknown",
        }
    }
}

/// A frame that has been on the air and whose request is not confirmed.
#[derive(Clone, Copy, Debug)]
struct Flight {
    adapter: u32,
    /// Of its latest attempt, ns.
    start_ns: u64,
    key: [u8; 10],
    arrived: bool,
    /// No ACK can come: it is for all.
    to_group: bool,
}

/// Watches both ends of every frame.
#[derive(Debug)]
pub(super) struct Flights {
    /// Node of each adapter.
    node_of: Vec<u32>,
    /// For each adapter the node that its latest frame is for.
    target: Vec<u32>,
    /// By node.
    open: Vec<Vec<Flight>>,
}

impl Flights {
    /// `node_of`: the node of each adapter.
    pub(super) fn new(node_of: Vec<u32>) -> Flights {
        let nodes = node_of.last().map_or(0, |n| *n as usize + 1);
        Flights {
            target: vec![NOBODY; node_of.len()],
            node_of,
            open: vec![Vec::new(); nodes],
        }
    }

    pub(super) fn transmission(&mut self, t: &Transmission<'_>) {
        let (OnAir::Frame, Some(target)) = (t.what, self.target.get_mut(t.adapter as usize)) else {
            return;
        };
        let Some(receiver) = t.frame.get(4..10).and_then(|a| a.try_into().ok()) else {
            return;
        };
        let receiver = MacAddr(receiver);
        *target = node(receiver).unwrap_or(NOBODY);
        let key = key(t.frame);
        let open = &mut self.open[t.node as usize];
        if t.attempt > 1
            && let Some(f) = open.iter_mut().find(|f| f.adapter == t.adapter && f.key == key)
        {
            f.start_ns = t.start_ns;
            return;
        }
        if open.len() == MAX_OPEN {
            open.remove(0);
        }
        open.push(Flight {
            adapter: t.adapter,
            start_ns: t.start_ns,
            key,
            arrived: false,
            to_group: receiver.is_group(),
        });
    }

    pub(super) fn reception(&mut self, r: &ReceptionEnd) {
        let (Some(target), Some(receiver)) = (
            self.target.get(r.from as usize),
            self.node_of.get(r.adapter as usize),
        ) else {
            return;
        };
        if !r.ok || r.what != OnAir::Frame || target != receiver {
            return;
        }
        let flights = self.open[self.node_of[r.from as usize] as usize].iter_mut();
        let latest = flights.filter(|f| f.adapter == r.from).max_by_key(|f| f.start_ns);
        if let Some(f) = latest {
            f.arrived = true;
        }
    }

    /// What became of the request of `node` whose last exchange was at `exchange_ns`. `silent`: the node asks for
    /// no ACKs.
    pub(super) fn confirmed(
        &mut self,
        node: u32,
        outcome: Outcome,
        exchange_ns: Option<(u64, u64)>,
        silent: bool,
    ) -> Fate {
        let flight = exchange_ns.and_then(|(start, end)| {
            let open = self.open.get_mut(node as usize)?;
            let fits = open.iter().enumerate();
            let fits = fits.filter(|(_, f)| (start..=end).contains(&f.start_ns));
            let (at, _) = fits.min_by_key(|(_, f)| f.start_ns)?;
            Some(open.remove(at))
        });
        match outcome {
            Outcome::Acked => Fate::Acked,
            Outcome::NotAcked if silent || flight.is_some_and(|f| f.to_group) => Fate::Unasked,
            Outcome::NotAcked if flight.is_some_and(|f| f.arrived) => Fate::AckLost,
            Outcome::NotAcked => Fate::DataLost,
            Outcome::Refused(_) => Fate::Refused,
            Outcome::Aborted => Fate::Aborted,
            Outcome::Expired => Fate::Expired,
            Outcome::Unknown => Fate::Unknown,
        }
    }
}

/// The node with this address.
fn node(address: MacAddr) -> Option<u32> {
    let [_, _, a, b, c, d] = address.0;
    let node = u32::from_be_bytes([a, b, c, d]);
    (MacAddr::local(node) == address).then_some(node)
}

/// What the attempts of one frame have in common, and other frames of its transmitter have not: kind, receiver,
/// sequence control, traffic identifier.
fn key(frame: &[u8]) -> [u8; 10] {
    let mut key = [0; 10];
    key[0] = frame.first().copied().unwrap_or(0);
    for (place, octet) in key[1..].iter_mut().zip(frame.iter().skip(4).take(6)) {
        *place = *octet;
    }
    for (place, octet) in key[7..].iter_mut().zip(frame.iter().skip(22).take(3)) {
        *place = *octet;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Rate;

    const DATA: [u8; 24] = [
        8, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0,
    ];

    fn sends(f: &mut Flights, start_ns: u64, attempt: u16, frame: &[u8]) {
        f.transmission(&Transmission {
            start_ns,
            end_ns: start_ns + 50,
            adapter: 0,
            node: 0,
            what: OnAir::Frame,
            rate: Rate::OFDM_6,
            mhz: 5_180,
            frame,
            attempt,
            octets: 28,
        });
    }

    fn arrives(f: &mut Flights, adapter: u32, ok: bool) {
        f.reception(&ReceptionEnd {
            at_ns: 0,
            adapter,
            from: 0,
            what: OnAir::Frame,
            ok,
            signal_dbm: -50,
        });
    }

    #[test]
    fn lost_data_and_lost_acks() {
        let mut f = Flights::new(vec![0, 1, 2]);
        let end = |f: &mut Flights, outcome, at| f.confirmed(0, outcome, Some((at, at + 100)), false);
        sends(&mut f, 1_000, 1, &DATA);
        arrives(&mut f, 2, true); // somebody else
        arrives(&mut f, 1, false);
        assert_eq!(end(&mut f, Outcome::NotAcked, 1_000), Fate::DataLost);
        // it arrives at the first of two attempts; the next frame goes before the confirm is there
        sends(&mut f, 2_000, 1, &DATA);
        arrives(&mut f, 1, true);
        sends(&mut f, 3_000, 2, &DATA);
        arrives(&mut f, 1, false);
        let mut next = DATA;
        next[22] = 32;
        sends(&mut f, 4_000, 1, &next);
        assert_eq!(end(&mut f, Outcome::NotAcked, 3_000), Fate::AckLost);
        assert_eq!(end(&mut f, Outcome::NotAcked, 4_000), Fate::DataLost);
        assert!(f.open[0].is_empty());
        // for all, and never on the air
        let mut broadcast = DATA;
        broadcast[4..10].fill(0xff);
        sends(&mut f, 5_000, 1, &broadcast);
        assert_eq!(end(&mut f, Outcome::NotAcked, 5_000), Fate::Unasked);
        assert_eq!(f.confirmed(0, Outcome::NotAcked, None, false), Fate::DataLost);
        assert_eq!(f.confirmed(0, Outcome::Aborted, None, false), Fate::Aborted);
    }

    #[test]
    fn what_is_left_behind_is_bounded() {
        let mut f = Flights::new(vec![0, 1]);
        for n in 0..1_000 {
            sends(&mut f, n * 1_000, 1, &DATA);
        }
        assert_eq!(f.open[0].len(), MAX_OPEN);
    }

    #[test]
    fn addresses_name_their_nodes() {
        assert_eq!(node(MacAddr::local(70_000)), Some(70_000));
        assert_eq!(node(MacAddr::BROADCAST), None);
    }
}
