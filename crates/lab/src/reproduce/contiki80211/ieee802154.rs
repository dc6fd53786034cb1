//! What the messages of the [chain](super::psm) would cost by radios of IEEE 802.15.4, by arithmetic: the O-QPSK PHY at 2450 MHz, CSMA-CA
//! without beacons and without competitors, an ACK for each frame; clauses are those of IEEE 802.15.4-2006. Powers are those of a CC2420
//! (data sheet SWRS041, at 3 V and 0 dBm).

use frame::{Phy, Rate, ppdu_us};
use protocols::mac::ibss::PowerProfile;
use protocols::mesh::header::HEADER_OCTETS;

use super::psm::{HOPS, PAYLOAD, Seen};

/// An octet at 250 kb/s, and a symbol (6.5), us.
const OCTET_US: f64 = 32.0;
const SYMBOL_US: f64 = 16.0;
/// Preamble, delimiter and length (6.3); octets of a data frame around its payload: control, number, one PAN, two short addresses and FCS
/// (7.2.1); an ACK (7.2.2.3).
const PHY_OCTETS: usize = 6;
const MAC_OCTETS: usize = 11;
const ACK_OCTETS: usize = 5;
/// aTurnaroundTime (6.4.1), a unit of the backoff (7.4.1), CCA (6.9.9), symbols; units of the first backoff, mean: macMinBE is 3 (7.4.2).
const TURNAROUND: f64 = 12.0;
const UNIT: f64 = 20.0;
const CCA: f64 = 8.0;
const UNITS: f64 = 3.5;
/// Shares of time that are active: superframes whose beacon order is 3 above the superframe order (7.5.1.1).
const ACTIVE: f64 = 0.125;
/// Receiving, sending, powered down, mW: 18.8 mA, 17.4 mA and 20 uA.
const RECEIVE_MW: f64 = 56.4;
const TRANSMIT_MW: f64 = 52.2;
const DOWN_MW: f64 = 0.06;

/// A frame on the air, us.
fn airtime_us(psdu_octets: usize) -> f64 {
    (PHY_OCTETS + psdu_octets) as f64 * OCTET_US
}

/// One hop, without any waiting for the message: time in which the two of it send and receive, us.
struct Exchange {
    sends: f64,
    receives: f64,
}

/// Of so many octets by 802.15.4. Who is to send receives from the backoff on.
fn exchange(octets: usize) -> Exchange {
    let (data, ack) = (airtime_us(MAC_OCTETS + octets), airtime_us(ACK_OCTETS));
    let before = (UNITS * UNIT + CCA + TURNAROUND) * SYMBOL_US;
    let between = TURNAROUND * SYMBOL_US;
    Exchange {
        sends: data + ack,
        // the receiver's listening before the frame is not of this exchange
        receives: before + data + 2.0 * between + ack,
    }
}

/// Of so many octets by our stations: LLC/SNAP, header and FCS around them, at 24 Mb/s at 5 GHz.
fn exchange_80211(octets: usize) -> Exchange {
    let phy = Phy::A;
    let data = f64::from(ppdu_us(Rate::OFDM_24, 24 + 8 + octets as u32 + 4, phy.band));
    let ack = f64::from(phy.ack_us(Rate::OFDM_24, phy.basic));
    // DIFS and half of the contention window on average; SIFS at both
    let before = f64::from(phy.difs_us()) + f64::from(u32::from(phy.cw_min) * phy.slot_us) / 2.0;
    let between = f64::from(phy.sifs_us);
    Exchange {
        sends: data + ack,
        receives: before + data + 2.0 * between + ack,
    }
}

impl Exchange {
    fn microjoules(&self, transmit_mw: f64, receive_mw: f64) -> f64 {
        (self.sends * transmit_mw + self.receives * receive_mw) / 1e3
    }
}

/// Energies next to each other.
pub struct Energy {
    /// For each octet of a message that arrived, all stations together, mJ: our chain, stations of 802.15.4 that always receive, and those
    /// that do so in an eighth of the time.
    pub ours_mj: f64,
    /// See `ours_mj`.
    pub always_mj: f64,
    /// See `ours_mj`.
    pub superframes_mj: f64,
    /// A hop alone, 802.15.4 over 802.11.
    pub hop: f64,
}

/// The chain's messages and time, by both radios; `None` if nothing arrived.
pub fn energy(ours: &Seen) -> Option<Energy> {
    let octets = HEADER_OCTETS + PAYLOAD.len();
    let stations = f64::from(HOPS + 1);
    let arrived = ours.intervals.len() as f64 * PAYLOAD.len() as f64;
    let sends_s = exchange(octets).sends * 1e-6 * ours.messages as f64 * f64::from(HOPS);
    // all stations together, mJ
    let of = |rest_mw: f64, active: f64| {
        let mean_mw = active * RECEIVE_MW + (1.0 - active) * rest_mw;
        stations * ours.seconds * mean_mw + sends_s * (TRANSMIT_MW - RECEIVE_MW)
    };
    let profile = PowerProfile::TYPICAL;
    let [transmit_mw, receive_mw] = [profile.transmit_mw, profile.receive_mw].map(f64::from);
    (arrived > 0.0).then(|| Energy {
        ours_mj: ours.joules * 1e3 * stations / arrived,
        always_mj: of(RECEIVE_MW, 1.0) / arrived,
        superframes_mj: of(DOWN_MW, ACTIVE) / arrived,
        hop: exchange(octets).microjoules(TRANSMIT_MW, RECEIVE_MW)
            / exchange_80211(octets).microjoules(transmit_mw, receive_mw),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from the standard's numbers: the longest frame takes 4.256 ms, an ACK 352 us.
    #[test]
    fn times_and_energies_by_hand() {
        assert_eq!((airtime_us(127), airtime_us(5)), (4_256.0, 352.0));
        // 34 octets: 51 with all headers
        let one = exchange(34);
        assert_eq!(one.sends, 1_632.0 + 352.0);
        assert_eq!(one.receives, 1_440.0 + 1_632.0 + 384.0 + 352.0);
        let two_seconds = Seen {
            intervals: vec![1.0],
            messages: 1,
            joules: 1.0,
            seconds: 2.0,
            ..Seen::default()
        };
        let energy = energy(&two_seconds).unwrap();
        // five stations, 14 octets
        assert!((energy.ours_mj - 5_000.0 / 14.0).abs() < 1e-9);
        assert!((energy.always_mj - (564.0 - 4.2 * 0.001_984 * 4.0) / 14.0).abs() < 1e-9);
        assert!((energy.superframes_mj * 14.0 - 2.0 * 5.0 * 7.102_5).abs() < 0.1);
        assert!(super::energy(&Seen::default()).is_none());
    }
}
