//! Parameters of an adapter, and the rules of channel access on which implementations differ.

use crate::clock::Clock;
use frame::{EdcaParams, MacAddr, Phy, RateSet};

/// Frames longer than this many octets are never preceded by RTS by themselves (dot11RTSThreshold's default).
pub const NO_RTS: u16 = 2_347;

/// When a frame that comes to an idle adapter on an idle medium is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Immediate {
    /// At once if the medium has been idle for the interframe space, else when that is over
    /// (IEEE 802.11-2016, 10.3.4.2; what Atheros adapters do).
    #[default]
    AtOnce,
    /// After an interframe space counted from its arrival; if the medium turns busy meanwhile, after an interframe space from the
    /// end of that, and still without a backoff (ns-3).
    AfterSpaceFromArrival,
}

/// What happens to the contention window when a frame is dropped after its last attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowOnDrop {
    /// It goes back to CWmin (IEEE 802.11-2016, 10.3.3; ns-3 up to 3.43).
    #[default]
    Reset,
    /// It stays, and goes back at the failure after it has reached CWmax by count (ns-3 from 3.44 on).
    Keep,
}

/// Rules of channel access on which implementations differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessRules {
    /// Access on an idle medium.
    pub immediate: Immediate,
    /// Contention window on drop.
    pub window_on_drop: WindowOnDrop,
    /// After an ACK timeout the interframe space is counted from the timeout (ns-3), not from the end of the frame.
    pub space_after_timeout: bool,
    /// A frozen backoff counter is decremented at the end of AIFS, so the station is one slot earlier (EDCA,
    /// IEEE 802.11-2016, 10.22.2.4); otherwise after the first full slot (DCF).
    pub countdown_at_space_end: bool,
    /// EIFS after a frame that was received with errors.
    pub eifs: bool,
    /// From the arrival of a frame until a station that counts down notices and can still hold back, ns: CCA time
    /// plus the time that a transmission is committed ahead. Must be below the slot time.
    pub sense_ns: u32,
}

impl AccessRules {
    /// What the standard says, with the sensing time of the PHY.
    pub const fn standard(phy: &Phy) -> AccessRules {
        AccessRules {
            immediate: Immediate::AtOnce,
            window_on_drop: WindowOnDrop::Reset,
            space_after_timeout: false,
            countdown_at_space_end: false,
            eifs: true,
            sense_ns: (phy.cca_us + phy.commit_us) * 1_000,
        }
    }

    /// What ns-3.37 does.
    pub const fn ns3() -> AccessRules {
        AccessRules {
            immediate: Immediate::AfterSpaceFromArrival,
            window_on_drop: WindowOnDrop::Reset,
            space_after_timeout: true,
            countdown_at_space_end: false,
            eifs: true,
            sense_ns: 4_000,
        }
    }
}

/// Parameters of one adapter.
#[derive(Clone, PartialEq, Debug)]
pub struct AdapterConfig {
    /// Its address.
    pub address: MacAddr,
    /// PHY and timing.
    pub phy: Phy,
    /// Centre frequency in MHz.
    pub mhz: u16,
    /// Transmit power in dBm.
    pub tx_dbm: f64,
    /// Basic rates: the rates of its ACKs.
    pub basic: RateSet,
    /// ACK timeout from the end of the frame, us.
    pub ack_timeout_us: u32,
    /// Access parameters by [`Queue::index`](radio::Queue::index).
    pub edca: [EdcaParams; 5],
    /// RTS threshold in octets.
    pub rts_threshold: u16,
    /// Frames a queue holds at most.
    pub queue_limit: u16,
    /// What it has, an abort or the end of a lifetime takes back. Linux has no way to: what its stack has taken, it sends.
    pub takes_back: bool,
    /// Its confirms tell how strong the ACK was. Not all adapters do, and Linux hands it to nobody who sends through a monitor.
    pub ack_signal: bool,
    /// Rules on which implementations differ.
    pub rules: AccessRules,
    /// Its TSF timer.
    pub tsf: Clock,
}

impl AdapterConfig {
    /// A station with the defaults of the standard for `phy`: DCF on the best-effort queue when `edca` is false,
    /// the EDCA defaults otherwise; 16 dBm, ACK timeout SIFS + slot + PHY-RX-START delay.
    pub fn station(address: MacAddr, phy: Phy, mhz: u16, edca: bool) -> AdapterConfig {
        use frame::AccessCategory::{Background, BestEffort, Video, Voice};
        let queue = |ac| {
            if edca {
                frame::edca_default(ac, &phy)
            } else {
                EdcaParams::dcf(&phy)
            }
        };
        let beacon = EdcaParams {
            aifsn: 1,
            cw_min: 0,
            cw_max: 0,
            txop_us: 0,
        };
        AdapterConfig {
            address,
            phy,
            mhz,
            tx_dbm: 16.0206,
            basic: phy.basic,
            ack_timeout_us: phy.ack_timeout_us(),
            edca: [
                queue(Background),
                queue(BestEffort),
                queue(Video),
                queue(Voice),
                beacon,
            ],
            rts_threshold: NO_RTS,
            queue_limit: 500,
            takes_back: true,
            ack_signal: true,
            rules: AccessRules::standard(&phy),
            tsf: Clock::default(),
        }
    }
}
