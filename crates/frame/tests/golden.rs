//! Durations that papers state, from rates, timing and airtime alone.

use frame::{Band, GuardInterval, Phy, Rate, RateSet, Width, edca_default, phy, ppdu_us, response_rate};

const fn mpdu(payload: u32) -> u32 {
    // header, LLC and SNAP, FCS
    24 + 8 + payload + 4
}

/// SDMAC (Cena et al. 2018), Table III: 50 octets at 54 Mb/s on 802.11a, acknowledged at 6 Mb/s.
#[test]
fn time_on_air_of_the_sdmac_paper() {
    let a = Phy::A;
    let data = ppdu_us(Rate::OFDM_54, mpdu(50), a.band);
    let ack = a.ack_us(Rate::OFDM_54, RateSet::OFDM_6_ONLY);
    assert_eq!(
        (data, ack, a.sifs_us, a.slot_us, a.difs_us()),
        (36, 44, 16, 9, 34)
    );
    assert_eq!(data + a.sifs_us + ack, 96);
    // a failure is known this much earlier with the ACKTimeout of the standard, and of ath9k
    assert_eq!(data + a.sifs_us + ack - (data + a.ack_timeout_us()), 10);
    assert_eq!(data + a.ath9k_ack_timeout_us, 61);
    // an access point with the usual basic rates would answer in 28 us
    assert_eq!(a.ack_us(Rate::OFDM_54, a.basic), 28);
    // with IP and UDP around the payload it would be one symbol more; with QoS it is not
    assert_eq!(ppdu_us(Rate::OFDM_54, mpdu(50 + 28), a.band), 40);
    assert_eq!(ppdu_us(Rate::OFDM_54, mpdu(50) + 2, a.band), 36);
}

/// DCF cycles of one saturated sender with 1500 octets: PPDU, SIFS, ACK, DIFS and the mean of the first backoff,
/// in half microseconds.
#[test]
fn saturation_cycles() {
    let a = Phy::A;
    let twice = |rate: Rate, basic| {
        let exchange = ppdu_us(rate, mpdu(1500), a.band) + a.sifs_us + a.ack_us(rate, basic);
        2 * (exchange + a.difs_us()) + u32::from(a.cw_min) * a.slot_us
    };
    assert_eq!(twice(Rate::OFDM_24, RateSet::OFDM_6_ONLY), 2 * 697 + 1);
    assert_eq!(twice(Rate::OFDM_24, a.basic), 2 * 681 + 1);
    assert_eq!(twice(Rate::OFDM_6, a.basic), 2 * 2233 + 1);
}

/// A 256 us slot with 1500 octets at MCS5, QoS, not acknowledged.
#[test]
fn slots_of_256_us() {
    let octets = mpdu(1500) + 2;
    let us = |width, gi| ppdu_us(Rate::ht(5, width, gi).unwrap(), octets, Band::Ghz5);
    assert_eq!(us(Width::Mhz20, GuardInterval::Long), 276, "does not fit");
    assert_eq!(us(Width::Mhz20, GuardInterval::Short), 252);
    assert_eq!(us(Width::Mhz40, GuardInterval::Long), 152);
    assert_eq!(us(Width::Mhz40, GuardInterval::Short), 144);
    // the "around 180 us" of the paper: with the space before it
    let voice = edca_default(frame::AccessCategory::Voice, &Phy::N5);
    assert_eq!(152 + Phy::N5.pifs_us(), 177);
    assert_eq!(152 + Phy::N5.aifs_us(voice.aifsn), 186);
    // beacons at 6 Mb/s
    assert_eq!(ppdu_us(Rate::OFDM_6, 174, Band::Ghz5), 256);
    assert_eq!(ppdu_us(Rate::OFDM_6, 175, Band::Ghz5), 260);
}

/// 74 octets at 2 Mb/s on 802.11b, read as the MPDU and read as its payload.
#[test]
fn two_readings_of_74_octets() {
    let b = Phy::B;
    for (octets, us, with_difs) in [(74, 488, 538), (74 + 28, 600, 650)] {
        assert_eq!(ppdu_us(Rate::DSSS_2, octets, b.band), us);
        assert_eq!(us + b.difs_us(), with_difs);
    }
    assert_eq!(u32::from(b.cw_min) * b.slot_us, 620);
}

/// An ATIM and its ACK at 1 Mb/s, with DIFS and the mean backoff, take about 1.1 ms.
#[test]
fn atim_exchange() {
    let b = Phy::B;
    let atim = ppdu_us(Rate::DSSS_1, 28, b.band);
    let ack = ppdu_us(response_rate(Rate::DSSS_1, b.basic), phy::ACK_OCTETS, b.band);
    assert_eq!((atim, ack), (416, 304));
    assert_eq!(
        b.difs_us() + u32::from(b.cw_min) * b.slot_us / 2 + atim + b.sifs_us + ack,
        1090
    );
}
