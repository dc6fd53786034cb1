//! Octets of headers, as Linux wants and gives them.

extern crate std;
use super::*;
use crate::mac::Ack;
use crate::phy::Band;
use std::string::ToString;

/// One shot at 54 Mb/s with an own sequence number.
#[test]
fn request_to_linux() {
    let how = Radiotap {
        tx_flags: Some(Radiotap::TX_NO_SEQUENCE),
        data_retries: Some(0),
        ..Radiotap::default()
    };
    let packet = Packet {
        radiotap: how.with_rate(Rate::OFDM_54),
        frame: &[0xaa],
    };
    let mut out = [0xee; 14];
    assert_eq!(packet.emit(&mut out), Ok(14));
    // RATE at 8, padding, TX_FLAGS at 10, DATA_RETRIES at 12
    assert_eq!(out, [0, 0, 13, 0, 0x04, 0x80, 0x02, 0, 108, 0, 0x10, 0, 0, 0xaa]);
    assert_eq!(Packet::parse(&out), Ok(packet));
    assert_eq!(packet.emit(&mut out[..13]), Err(EmitError::NoRoom { needed: 14 }));
    assert_eq!(Radiotap::parse(&out), Err(ParseError::Trailing));
    assert_eq!(Radiotap::parse(&out[..13]), Ok(packet.radiotap));
}

/// Every field that Linux reports for a received frame.
#[test]
fn indication_from_linux() {
    #[rustfmt::skip]
    let mut octets = [
        0, 0, 28, 0, 0x6f, 0x48, 0x00, 0x00,
        8, 7, 6, 5, 4, 3, 2, 1,          // TSFT
        0x10, 12,                        // FLAGS: with FCS; RATE 6 Mb/s
        0x3c, 0x14, 0x40, 0x01,          // CHANNEL 5180 MHz, OFDM, 5 GHz
        0xc4, 0xa1,                      // signal -60 dBm, noise -95 dBm
        1, 0,                            // ANTENNA, padding
        0x02, 0x00,                      // RX_FLAGS
        0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    ];
    let n = crate::fcs::append(&mut octets[28..], 10).unwrap();
    assert_eq!(n, 14);
    let packet = Packet::parse(&octets).unwrap();
    let expect = Radiotap {
        tsft_us: Some(0x0102_0304_0506_0708),
        flags: Some(Radiotap::FLAG_FCS),
        channel: Channel::of(Band::Ghz5, 36, Rate::OFDM_6),
        signal_dbm: Some(-60),
        noise_dbm: Some(-95),
        antenna: Some(1),
        rx_flags: Some(Radiotap::RX_BAD_PLCP),
        ..Radiotap::default()
    };
    assert_eq!(packet.radiotap, expect.with_rate(Rate::OFDM_6));
    assert!(Ack::parse(packet.mpdu().unwrap()).is_ok());
    assert_eq!(crate::fcs::check(packet.frame), packet.mpdu());
    let mut out = [0; 42];
    assert_eq!(packet.emit(&mut out), Ok(42));
    assert_eq!(out, octets);
    assert_eq!(
        packet.to_string(),
        "radiotap 6M 5180 MHz -60 dBm TSF=72623859790382856: -> 02:00:00:00:00:01 ACK, Flags=........, NAV=0 us"
    );
}

/// What comes back for a frame that was sent: MCS, TX_FLAGS, DATA_RETRIES.
#[test]
fn confirm_from_linux() {
    let octets = [0, 0, 14, 0, 0x00, 0x80, 0x0a, 0, 0x01, 0, 6, 0x07, 0x05, 7];
    let r = Radiotap::parse(&octets).unwrap();
    assert_eq!((r.tx_flags, r.data_retries), (Some(Radiotap::TX_FAILED), Some(6)));
    assert_eq!(r.rate(), Rate::ht(7, Width::Mhz40, GuardInterval::Short));
    assert_eq!(r.to_string(), "radiotap mcs7/40s retries=6 not acked");
    let vht = Vht {
        known: 0x0044,
        flags: 0x04,
        bandwidth: 4,
        mcs_streams: [0x92, 0, 0, 0],
        coding: 1,
        group_id: 63,
        partial_aid: 0x0123,
    };
    let value = Radiotap {
        antenna: Some(2),
        vht: Some(vht),
        ..Radiotap::default()
    };
    let octets = [
        0, 0, 22, 0, 0x00, 0x08, 0x20, 0, 2, 0, 0x44, 0, 4, 4, 0x92, 0, 0, 0, 1, 63, 0x23, 0x01,
    ];
    assert_eq!(Radiotap::parse(&octets), Ok(value));
    let mut out = [0; 22];
    assert_eq!(value.emit(&mut out), Ok(22));
    assert_eq!(out, octets);
    assert_eq!(value.to_string(), "radiotap vht9");
}

#[test]
fn rates_round_trip() {
    let dsss = [2, 4, 11, 22].map(|u| Rate::from_500kbps(u).unwrap());
    let short = ["2Ms", "5.5Ms", "11Ms"].map(|t| Rate::parse(t).unwrap());
    let ofdm = [12, 18, 24, 36, 48, 72, 96, 108].map(|u| Rate::from_500kbps(u).unwrap());
    let ht = ["mcs0/20", "mcs7/20s", "mcs15/40", "mcs31/40s"].map(|t| Rate::parse(t).unwrap());
    let mut r = Radiotap::default();
    for rate in dsss.into_iter().chain(short).chain(ofdm).chain(ht).chain(dsss) {
        r = r.with_rate(rate);
        assert_eq!(r.rate(), Some(rate), "{rate}");
    }
    assert_eq!(r.flags, Some(0), "the preamble flag is taken back");
    let mut ht = Radiotap::default().with_rate(Rate::ht(3, Width::Mhz20, GuardInterval::Long).unwrap());
    for (known, flag) in [
        (Mcs::KNOWN_FORMAT, Mcs::GREENFIELD),
        (Mcs::KNOWN_CODING, Mcs::LDPC),
        (Mcs::KNOWN_STBC, 0x20),
    ] {
        let mcs = Mcs {
            known: Mcs::KNOWN_INDEX | known,
            flags: flag,
            index: 3,
        };
        ht.mcs = Some(mcs);
        assert_eq!(ht.rate(), None, "its airtime is another");
        ht.mcs = Some(Mcs {
            known: Mcs::KNOWN_INDEX,
            ..mcs
        });
        assert_eq!(ht.rate(), Rate::ht(3, Width::Mhz20, GuardInterval::Long));
    }
    assert_eq!(Radiotap::default().rate(), None);
}

#[test]
fn the_first_of_several_wins() {
    #[rustfmt::skip]
    let octets = [
        0, 0, 16, 0, 0x20, 0, 0, 0xa0, 0x20, 0x08, 0, 0, 0xd0, 0xcf, 1, 0,
    ];
    let packet = Packet::parse(&octets).unwrap();
    assert_eq!(
        (packet.radiotap.signal_dbm, packet.radiotap.antenna),
        (Some(-48), Some(1))
    );
}

#[test]
fn frames_with_and_without_fcs() {
    let mut packet = Packet {
        radiotap: Radiotap::default(),
        frame: &[1, 2, 3],
    };
    assert_eq!(packet.mpdu(), Ok(&[1, 2, 3][..]));
    packet.radiotap.flags = Some(Radiotap::FLAG_FCS);
    assert_eq!(packet.mpdu(), Err(ParseError::Truncated));
    packet.frame = &[1, 2, 3, 4, 5];
    assert_eq!(packet.mpdu(), Ok(&[1][..]));
    packet.radiotap.flags = Some(Radiotap::FLAG_FCS | Radiotap::FLAG_BAD_FCS);
    assert_eq!(packet.mpdu(), Err(ParseError::BadFcs));
    assert_eq!(
        packet.to_string(),
        "radiotap bad FCS: 5 octets, the FCS does not fit the frame"
    );
}
