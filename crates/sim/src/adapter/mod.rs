//! The adapter: queues (QCU), channel access (DCU), frame exchanges and reception (PCU).
//!
//! What belongs here: the state of one adapter. Its parameters are in `config` and `attribute`, its behaviour in
//! `queues` (requests), [`access`] (when to send), [`exchange`] (what a transmission waits for) and [`receive`]
//! (what comes in).

pub mod access;
mod attribute;
mod config;
pub mod exchange;
pub(crate) mod herd;
mod line;
mod queues;
pub mod receive;

pub use config::{AccessRules, AdapterConfig, Immediate, NO_RTS, WindowOnDrop};

use crate::clock::Clock;
use crate::queue::Handle;
use crate::rng::Stream;
use frame::{EdcaParams, MacAddr, Phy, Rate, RateSet};
use line::Line;
use radio::Counters;

/// No time, or a time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;
/// One queue with its channel access function.
#[derive(Debug)]
pub(crate) struct Dcu {
    pub params: EdcaParams,
    /// Current contention window.
    pub cw: u16,
    /// Consecutive failures, for [`WindowOnDrop::Keep`].
    pub failures: u16,
    /// Slots left to count down.
    pub backoff: u32,
    /// The head came to an idle medium: if that turns busy before the space is over, a backoff is drawn.
    pub immediate: bool,
    /// No countdown before this time (end of an ACK timeout, arrival).
    pub from: u64,
    /// The countdown begins here; [`NEVER`] while that is not known.
    pub base: u64,
    /// The countdown ends here; [`NEVER`] while that is not known.
    pub expiry: u64,
    /// TXOP that was won: until when it lasts.
    pub txop_end: u64,
    /// Frames, head first.
    pub frames: Line,
}

/// What an adapter that has sent something waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Its RTS is on the air.
    SendingRts,
    /// A CTS should begin.
    AwaitCts,
    /// SIFS between the CTS and the frame.
    Cleared,
    /// SIFS before the next frame of a TXOP.
    Pause,
    /// Its frame is on the air.
    Sending,
    /// An ACK should begin.
    AwaitAck,
}

/// The frame exchange in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub queue: u8,
    pub frame: u32,
    pub phase: Phase,
    /// The timeout, unless it was found that something is being received.
    pub timeout: Option<Handle>,
    /// Start of the frame on the air, ns.
    pub start: u64,
}

impl Exchange {
    /// Whether a response is awaited.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::AwaitCts | Phase::AwaitAck)
    }
}

/// A frame that is being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rx {
    pub signal: u32,
    /// Decided at its start: the checksum will be wrong.
    pub corrupt: bool,
    /// Received power in whole dBm.
    pub dbm: i8,
    pub power: u64,
    /// Sum of powers up to which it is certainly received; `power` itself if the noise alone may spoil it.
    pub harmless: u64,
    /// Sum of powers since `since`, if it is being recorded.
    pub total: u64,
    /// Up to here its loss has been reckoned, ns.
    pub since: u64,
    /// -ln of the probability that the part so far is right.
    pub loss: f64,
    pub start: u64,
    pub end: u64,
}

/// A response that is due after SIFS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub at: u64,
    pub rate: Rate,
    pub to: u64,
    pub cts_duration_us: Option<u32>,
}

/// The state of one adapter.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub address: u64,
    /// Further addresses that it answers to; most adapters have none.
    pub aliases: Vec<u64>,
    pub node: u32,
    /// Number of the adapter on its node.
    pub ordinal: u8,
    // the medium, as this adapter sees it: busy in [busy_from, idle_from), and while `energy`
    pub busy_from: u64,
    pub idle_from: u64,
    /// `idle_from` of the idle period before the latest busy one.
    pub idle_before: u64,
    pub nav_until: u64,
    pub tx_until: u64,
    pub energy: bool,
    /// The last reception failed: interframe spaces begin no earlier than this, the end of that frame plus what
    /// EIFS adds. 0 after a frame that was right.
    pub eifs_until: u64,
    /// Start of the latest frame that was detected, ns.
    pub rx_start: u64,
    /// The NAV was set by an RTS: its end and the time at which it is given up if nothing follows.
    pub rts_nav: (u64, u64),
    /// Start of that RTS: the latest frame that was detected, if nothing has followed.
    pub rts_heard: u64,
    // switches
    pub carrier_sense: bool,
    pub virtual_carrier_sense: bool,
    pub reception: bool,
    pub ack_generation: bool,
    pub promiscuous: bool,
    /// Pulled out.
    pub gone: bool,
    /// Repetitions are handed up, too.
    pub repetitions: bool,
    pub bssid: u64,
    // constants in ns
    pub slot_ns: u64,
    pub sifs_ns: u64,
    pub eifs_extra_ns: u64,
    pub ack_timeout_ns: u64,
    pub rules: AccessRules,
    /// Bit i: queue i counts down (with or without a frame).
    pub active: u8,
    /// Its timer, if that is an event of its own.
    pub timer: Option<Handle>,
    pub rx: Option<Rx>,
    pub exchange: Option<Exchange>,
    pub response: Option<Response>,
    pub dcu: [Dcu; 5],
    pub backoff_stream: Stream,
    pub reception_stream: Stream,
    /// Last (transmitter, TID, sequence control) received, newest last.
    pub seen: Vec<(u64, u8, u16)>,
    pub counters: Counters,
    pub tsf: Clock,
    /// True time at which the TSF was set to the offset of its clock, ns.
    pub tsf_since: u64,
    pub phy: Phy,
    pub basic: RateSet,
    pub mhz: u16,
    pub tx_dbm: f64,
    pub rts_threshold: u16,
    pub queue_limit: u16,
    pub takes_back: bool,
    /// Its confirms tell how strong the ACK was.
    pub ack_signal: bool,
    /// Rate and duration of the ACK to the last data rate that was asked for.
    pub ack_memo: (Rate, Rate, u32),
    /// Arrival of the latest request at the queues, so that requests do not overtake each other.
    pub last_arrival: u64,
}

impl Adapter {
    pub fn new(config: &AdapterConfig, node: u32, ordinal: u8, index: u64, seed: u64) -> Adapter {
        use crate::rng::Cause;
        let phy = config.phy;
        let dcu = |q: usize| Dcu {
            params: config.edca[q],
            cw: config.edca[q].cw_min,
            failures: 0,
            backoff: 0,
            immediate: false,
            from: 0,
            base: NEVER,
            expiry: NEVER,
            txop_end: 0,
            frames: Line::EMPTY,
        };
        let mut a = Adapter {
            address: key(config.address),
            aliases: Vec::new(),
            node,
            ordinal,
            busy_from: 0,
            idle_from: 0,
            idle_before: 0,
            nav_until: 0,
            tx_until: 0,
            energy: false,
            eifs_until: 0,
            rx_start: 0,
            rts_nav: (0, 0),
            rts_heard: 0,
            carrier_sense: true,
            virtual_carrier_sense: true,
            reception: true,
            ack_generation: true,
            promiscuous: false,
            gone: false,
            repetitions: false,
            bssid: 0,
            slot_ns: u64::from(phy.slot_us) * 1_000,
            sifs_ns: u64::from(phy.sifs_us) * 1_000,
            eifs_extra_ns: u64::from(phy.eifs_extra_us()) * 1_000,
            ack_timeout_ns: u64::from(config.ack_timeout_us) * 1_000,
            rules: config.rules,
            active: 0,
            timer: None,
            rx: None,
            exchange: None,
            response: None,
            dcu: std::array::from_fn(dcu),
            backoff_stream: Stream::new(seed, index, Cause::Backoff),
            reception_stream: Stream::new(seed, index, Cause::Reception),
            seen: Vec::new(),
            counters: Counters::default(),
            tsf: config.tsf,
            tsf_since: 0,
            phy,
            basic: config.basic,
            mhz: config.mhz,
            tx_dbm: config.tx_dbm,
            rts_threshold: config.rts_threshold,
            queue_limit: config.queue_limit,
            takes_back: config.takes_back,
            ack_signal: config.ack_signal,
            ack_memo: (Rate::OFDM_6, Rate::OFDM_6, 0),
            last_arrival: 0,
        };
        a.memorise_ack(phy.lowest);
        a
    }

    /// Rate and duration (us) of the ACK to a frame at `data`.
    #[inline]
    pub fn ack(&mut self, data: Rate) -> (Rate, u32) {
        if self.ack_memo.0 != data {
            self.memorise_ack(data);
        }
        (self.ack_memo.1, self.ack_memo.2)
    }

    pub fn memorise_ack(&mut self, data: Rate) {
        let rate = frame::response_rate(data, self.basic);
        self.ack_memo = (
            data,
            rate,
            frame::ppdu_us(rate, frame::phy::ACK_OCTETS, self.phy.band),
        );
    }

    /// Whether frames to this address are meant for this adapter.
    #[inline]
    pub fn answers_to(&self, address: u64) -> bool {
        address == self.address || self.aliases.contains(&address)
    }

    /// TSF in microseconds at true time `ns`.
    pub fn tsf_us(&self, ns: u64) -> u64 {
        self.tsf.show(ns.saturating_sub(self.tsf_since)) / 1_000
    }

    /// Sets the TSF, which may go back.
    pub fn set_tsf(&mut self, now: u64, us: u64) {
        self.tsf.offset_ns = us.saturating_mul(1_000);
        self.tsf_since = now;
    }

    /// Whether the queue at index `q` has a frame.
    #[inline]
    pub fn has_frame(&self, q: usize) -> bool {
        !self.dcu[q].frames.is_empty()
    }
}

/// An address as a number, for fast comparison.
#[inline]
pub(crate) fn key(address: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = address.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// The address of a [`key`].
pub(crate) fn address(key: u64) -> MacAddr {
    let [_, _, a, b, c, d, e, f] = key.to_be_bytes();
    MacAddr([a, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_addresses() {
        let a = MacAddr([2, 0, 1, 2, 3, 250]);
        assert_eq!(address(key(a)), a);
        assert_ne!(key(MacAddr::ZERO), key(MacAddr::BROADCAST));
    }

    #[test]
    fn ack_memo_follows_the_rate() {
        let config = AdapterConfig::station(MacAddr::local(1), Phy::A, 5180, false);
        let mut a = Adapter::new(&config, 0, 0, 0, 1);
        assert_eq!(a.ack(Rate::OFDM_54), (Rate::OFDM_24, 28));
        assert_eq!(a.ack(Rate::OFDM_6), (Rate::OFDM_6, 44));
        assert_eq!(a.ack(Rate::OFDM_54), (Rate::OFDM_24, 28));
    }
}
