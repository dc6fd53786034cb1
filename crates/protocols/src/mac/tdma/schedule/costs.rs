//! What a slot costs: the release path, the error of the clocks, and what is on the air.

use super::{BeaconSlot, Flow};
use crate::mac::data::QOS_OVERHEAD_OCTETS;
use frame::phy::RTS_OCTETS;
use frame::{Phy, Rate, RateSet, ppdu_us, response_rate};
use radio::Duration;

/// An RTS threshold that no frame is beyond.
pub const NO_RTS: u16 = u16::MAX;

/// The release path: from waking up for a slot (or from the request, where the host holds frames back) to the first
/// bit on the air with an idle medium, T_rel of the paper's section V.D.1 with the lateness of the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    /// The smallest value; it is compensated by waking up this much earlier.
    pub min: Duration,
    /// The quantile that decides how often a slot is missed, for example 99.9 %.
    pub high: Duration,
}

impl Release {
    /// J: what is left after compensation.
    pub const fn jitter(&self) -> Duration {
        self.high.less(self.min)
    }
}

/// What a slot costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotCosts {
    /// PHY timing.
    pub phy: Phy,
    /// Rate of the data.
    pub rate: Rate,
    /// Rate of data for groups.
    pub group_rate: Rate,
    /// Basic rates, which decide the rate of the ACKs.
    pub basic: RateSet,
    /// Whether frames are acknowledged.
    pub acked: bool,
    /// RTS and CTS go ahead of acknowledged frames with more octets than this, header and FCS included: 0 for all, [`NO_RTS`]
    /// for none.
    pub rts_threshold: u16,
    /// Octets around a payload: headers and FCS.
    pub overhead_octets: u16,
    /// The release path.
    pub release: Release,
    /// How far the clocks of two nodes may be apart, as a quantile.
    pub sync_error: Duration,
    /// AIFSN of the queue that is used; 2 is DIFS.
    pub aifsn: u8,
    /// Contention window of that queue, slots of the PHY, where it is left on: the longest backoff that the first attempt of a frame
    /// draws. 0 without backoff.
    pub cw_min: u16,
    /// Whether adapters sense the carrier: who could not decode a frame waits for EIFS then (IEEE 802.11-2016, 10.3.2.3.7), and slots
    /// have room for that.
    pub carrier_sense: bool,
}

impl SlotCosts {
    /// Acknowledged QoS data, at one rate to all, with the PHY's usual basic rates, and DIFS between slots for adapters that sense the carrier, without RTS and backoff.
    pub const fn new(phy: Phy, rate: Rate, release: Release, sync_error: Duration) -> SlotCosts {
        SlotCosts {
            phy,
            rate,
            group_rate: rate,
            basic: phy.basic,
            acked: true,
            rts_threshold: NO_RTS,
            overhead_octets: QOS_OVERHEAD_OCTETS as u16,
            release,
            sync_error,
            aifsn: 2,
            cw_min: 0,
            carrier_sense: true,
        }
    }

    /// J + e, and the longest backoff where there is one: how much later than the slot a frame may start.
    pub fn guard(&self) -> Duration {
        let backoff_us = u64::from(self.cw_min) * u64::from(self.phy.slot_us);
        self.release.jitter() + self.sync_error + Duration::from_us(backoff_us)
    }

    /// T_DATA of an MPDU with `octets` of header, body and FCS; SIFS + T_ACK if there is one; and what goes ahead of it. Where the
    /// carrier is sensed there is at least as much behind the data as EIFS is longer than DIFS, SIFS and an ACK at the lowest rate: AIFS
    /// begins then for those, too, who could not decode the data and heard no ACK. (An ACK that cannot be decoded itself begins another
    /// EIFS, for which there is no room.)
    pub fn exchange(&self, octets: u32, rate: Rate, acked: bool) -> Duration {
        let ack = match acked {
            true => self.phy.sifs_us + self.phy.ack_us(rate, self.basic),
            false => 0,
        };
        let behind = match self.carrier_sense {
            true => ack.max(self.phy.eifs_extra_us()),
            false => ack,
        };
        let data = Duration::from_us(u64::from(ppdu_us(rate, octets, self.phy.band) + behind));
        self.ahead(octets, rate, acked) + data
    }

    /// From the start of an exchange to the start of its data frame: RTS and CTS at the rate of the ACK, each with the SIFS behind it, or
    /// nothing.
    pub fn ahead(&self, octets: u32, rate: Rate, acked: bool) -> Duration {
        if !acked || octets <= u32::from(self.rts_threshold) {
            return Duration::ZERO;
        }
        let rts_us = ppdu_us(response_rate(rate, self.basic), RTS_OCTETS, self.phy.band);
        let cts_us = self.phy.ack_us(rate, self.basic);
        Duration::from_us((rts_us + cts_us + 2 * self.phy.sifs_us).into())
    }

    /// How long an exchange with an ACK lasts, RTS and CTS included.
    pub fn acked(&self, octets: u32, rate: Rate) -> Duration {
        let ack = self.phy.sifs_us + self.phy.ack_us(rate, self.basic);
        let data = ppdu_us(rate, octets, self.phy.band);
        self.ahead(octets, rate, true) + Duration::from_us((data + ack).into())
    }

    fn ifs(&self) -> Duration {
        Duration::from_us(self.phy.aifs_us(self.aifsn).into())
    }

    pub(super) fn of_flow(&self, flow: &Flow) -> Duration {
        let octets = u32::from(flow.payload_octets) + u32::from(self.overhead_octets);
        match flow.to.is_group() {
            true => self.exchange(octets, self.group_rate, false),
            false => self.exchange(octets, self.rate, self.acked),
        }
    }

    pub(super) fn of_beacon(&self, beacon: &BeaconSlot) -> Duration {
        self.exchange(u32::from(beacon.octets), beacon.rate, false)
    }

    /// A slot for an exchange: guard, exchange, and the space before the next one.
    pub fn slot(&self, exchange: Duration) -> Duration {
        self.guard() + exchange + self.ifs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::MacAddr;

    fn costs() -> SlotCosts {
        let (min, high) = (Duration::from_us(20), Duration::from_us(25));
        SlotCosts {
            basic: RateSet::OFDM_6_ONLY,
            overhead_octets: 36,
            ..SlotCosts::new(Phy::A, Rate::OFDM_54, Release { min, high }, Duration::from_us(7))
        }
    }

    /// 36 us of data; ACKs at 24 Mb/s take 28 us, those of EIFS at 6 Mb/s 44 us.
    #[test]
    fn there_is_room_for_eifs_where_the_carrier_is_sensed() {
        let (min, high) = (Duration::ZERO, Duration::ZERO);
        let usual = SlotCosts::new(Phy::A, Rate::OFDM_54, Release { min, high }, Duration::ZERO);
        let us = |carrier_sense, acked| {
            let costs = SlotCosts {
                carrier_sense,
                ..usual
            };
            let exchange = costs.exchange(88, Rate::OFDM_54, acked);
            (exchange.as_ns() / 1_000, costs.slot(exchange).as_ns() / 1_000)
        };
        assert_eq!(us(false, true), (80, 114));
        assert_eq!(us(false, false), (36, 70));
        assert_eq!(us(true, true), (96, 36 + 94));
        assert_eq!(us(true, false), us(true, true), "without an ACK EIFS is the same");
        // an ACK at the lowest rate is as long as EIFS assumes
        assert_eq!(costs().exchange(88, Rate::OFDM_54, true), Duration::from_us(96));
        let slow = usual.exchange(36, Rate::OFDM_6, true);
        assert_eq!(
            slow,
            SlotCosts {
                carrier_sense: false,
                ..usual
            }
            .exchange(36, Rate::OFDM_6, true)
        );
    }

    /// Up to 15 slots of 9 us, each time the frame goes.
    #[test]
    fn the_contention_window_is_part_of_the_guard() {
        let with = SlotCosts {
            cw_min: 15,
            ..costs()
        };
        let exchange = Duration::from_us(100);
        assert_eq!(with.guard(), costs().guard() + Duration::from_us(135));
        assert_eq!(
            with.slot(exchange),
            costs().slot(exchange) + Duration::from_us(135)
        );
    }

    /// RTS of 20 octets and CTS at 6 Mb/s, 52 and 44 us, and two SIFS.
    #[test]
    fn rts_goes_ahead_of_what_is_longer_than_the_threshold() {
        let with = |rts_threshold| SlotCosts {
            rts_threshold,
            ..costs()
        };
        let ahead = |threshold, acked| with(threshold).ahead(86, Rate::OFDM_54, acked);
        assert_eq!(
            [0, 85, 86, NO_RTS].map(|t| ahead(t, true).as_ns() / 1_000),
            [128, 128, 0, 0]
        );
        assert_eq!(
            ahead(0, false),
            Duration::ZERO,
            "nobody answers, so nobody is asked"
        );
        let flow = Flow {
            from: MacAddr::local(0),
            to: MacAddr::local(1),
            payload_octets: 50,
        };
        let slot = |threshold| with(threshold).slot(with(threshold).of_flow(&flow));
        assert_eq!(slot(0), slot(NO_RTS) + Duration::from_us(128));
    }
}
