//! Shared by tests, benchmarks and fuzz targets: specimens of everything that is parsed, and what must hold for
//! any octets whatsoever.
#![allow(dead_code)]

use std::fmt::{self, Debug, Write};

use frame::amsdu::{AmsduBuilder, Subframe, Subframes};
use frame::element::*;
use frame::llc::Snap;
use frame::mac::{self, AckPolicy, Aid, Data, Flags, Header, QosControl, SequenceControl, header};
use frame::mgmt::{self, Capability, MgmtHeader, ReasonCode, StatusCode};
use frame::radiotap::{self, Fields, Packet, Radiotap};
use frame::{Band, EmitError, Frame, MacAddr, ParseError, Phy, Rate, RateSet, Wire, edca_default, fcs};

/// The octets of a value.
pub fn emit<'a>(value: impl Wire<'a>) -> Vec<u8> {
    let mut out = vec![0xee; value.length()];
    let n = value.emit(&mut out).expect("a specimen is valid");
    assert_eq!(n, out.len());
    out
}

const ME: MacAddr = MacAddr::local(1);
const PEER: MacAddr = MacAddr::local(2);
const AP: MacAddr = MacAddr::local(9);

/// Each known element once, and an unknown one.
pub fn elements() -> Vec<Vec<u8>> {
    let rates = RateSet::HR_DSSS
        .with(Rate::OFDM_6)
        .with(Rate::OFDM_12)
        .with(Rate::OFDM_24);
    let rates = RateOctets::new(
        rates.with(Rate::OFDM_54).with(Rate::parse("36M").unwrap()),
        RateSet::HR_DSSS,
    );
    let mut mcs = [0; 16];
    mcs[0] = 0xff;
    vec![
        emit(Ssid(b"robots")),
        emit(rates.supported()),
        emit(DsParameters { channel: 6 }),
        emit(IbssParameters { atim_window_tu: 10 }),
        emit(Tim {
            dtim_count: 0,
            dtim_period: 2,
            group_traffic: true,
            offset: 0,
            bitmap: &[0x84, 0, 0x40, 0x01],
        }),
        emit(Country {
            code: *b"DE",
            environment: b' ',
            triplets: &[1, 13, 20, 0],
        }),
        emit(ChannelSwitch {
            mode: 1,
            channel: 11,
            count: 3,
        }),
        emit(Erp(3)),
        emit(HtCapabilities {
            info: HtCapabilities::WIDTH_40 | HtCapabilities::SHORT_GI_20,
            ampdu: 0x17,
            mcs,
            ..HtCapabilities::default()
        }),
        emit(HtOperation {
            primary_channel: 6,
            info: [5, 0, 0, 0, 0],
            basic_mcs: [0; 16],
        }),
        emit(rates.extended().expect("nine rates")),
        emit(WmmInformation { qos_info: 1 }),
        emit(WmmParameters::new(|ac| edca_default(ac, &Phy::G))),
        emit(Vendor {
            oui: [0x00, 0x10, 0x18],
            body: &[2, 0, 0, 0],
        }),
        emit(Unknown {
            id: 127,
            body: &[4, 0, 0, 2],
        }),
    ]
}

/// A beacon as access points send it.
pub fn beacon() -> Vec<u8> {
    let elements = elements().concat();
    emit(mgmt::Beacon {
        header: MgmtHeader::new(MacAddr::BROADCAST, AP, AP),
        timestamp_us: 123_456_789,
        interval_tu: 100,
        capability: Capability::ESS.with(Capability::SHORT_SLOT),
        elements: Elements::new(&elements),
    })
}

/// QoS data with 50 octets behind the LLC header.
pub fn qos_data() -> Vec<u8> {
    let body = emit(Snap::ethernet(0x88b5, &[0x5a; 50]));
    emit(Data {
        duration_us: 44,
        sequence: SequenceControl::new(1234, 0),
        qos: Some(QosControl::new(6, AckPolicy::Normal)),
        ..Data::to_ap(AP, ME, PEER, &body)
    })
}

/// At least one of each kind of frame, without FCS.
pub fn frames() -> Vec<Vec<u8>> {
    let all = elements().concat();
    let elements = Elements::new(&all);
    let flags = Flags::NONE;
    let duration_us = 300;
    let header = MgmtHeader {
        sequence: SequenceControl::new(7, 0),
        ..MgmtHeader::new(PEER, ME, AP)
    };
    let htc = MgmtHeader {
        flags: Flags::ORDER,
        ht_control: Some(0x0403_0201),
        ..header
    };
    let (timestamp_us, interval_tu, capability) = (1, 100, Capability::IBSS);
    let (status, reason, aid) = (StatusCode::SUCCESS, ReasonCode::LEAVING_BSS, Aid::new(5).unwrap());
    let data = Data::direct(PEER, ME, AP, b"payload");
    let qos = Some(QosControl::new(5, AckPolicy::NoAck));
    let mut amsdu = [0; 200];
    let mut subframes = AmsduBuilder::new(&mut amsdu);
    for msdu in [
        emit(Snap::ethernet(0x88b5, b"one")),
        emit(Snap::ethernet(0x88b6, b"another")),
    ] {
        let subframe = Subframe {
            destination: PEER,
            source: ME,
            msdu: &msdu,
        };
        subframes.push(&subframe).unwrap();
    }
    let amsdu = subframes.finish();
    // CCMP: packet number and key 1, ciphertext, MIC
    let mut encrypted = emit(mgmt::Atim {
        header,
        body: &[1, 0, 0, 0x20, 0, 0, 0, 0, 0xc1, 0xc2, 9, 9, 9, 9, 9, 9, 9, 9],
    });
    encrypted[..2].copy_from_slice(&[0xc0, 0x40]);
    vec![
        emit(data),
        emit(Data { qos, ..data }),
        emit(Data {
            flags: Flags::TO_DS | Flags::FROM_DS | Flags::RETRY,
            address4: Some(PEER),
            ..data
        }),
        emit(Data {
            flags: Flags::TO_DS | Flags::FROM_DS | Flags::ORDER,
            address4: Some(PEER),
            qos,
            ht_control: Some(7),
            ..data
        }),
        emit(Data {
            null: true,
            body: &[],
            ..data
        }),
        emit(Data {
            null: true,
            qos,
            body: &[],
            ..data
        }),
        emit(Data {
            qos: Some(QosControl(0x80)),
            body: amsdu,
            ..data
        }),
        qos_data(),
        emit(mac::Ack {
            flags,
            duration_us: 0,
            receiver: PEER,
        }),
        emit(mac::Cts {
            flags,
            duration_us,
            receiver: PEER,
        }),
        emit(mac::Rts {
            flags,
            duration_us,
            receiver: PEER,
            transmitter: ME,
        }),
        emit(mac::PsPoll {
            flags,
            aid,
            bssid: AP,
            transmitter: ME,
        }),
        beacon(),
        emit(mgmt::ProbeRequest { header, elements }),
        emit(mgmt::ProbeResponse {
            header: htc,
            timestamp_us,
            interval_tu,
            capability,
            elements,
        }),
        emit(mgmt::Authentication {
            header,
            algorithm: 0,
            transaction: 1,
            status,
            elements: Elements::EMPTY,
        }),
        emit(mgmt::AssociationRequest {
            header,
            capability,
            listen_interval: 10,
            elements,
        }),
        emit(mgmt::AssociationResponse {
            header,
            capability,
            status,
            aid,
            elements,
        }),
        emit(mgmt::ReassociationRequest {
            header,
            capability,
            listen_interval: 10,
            current_ap: AP,
            elements,
        }),
        emit(mgmt::ReassociationResponse {
            header,
            capability,
            status,
            aid,
            elements,
        }),
        emit(mgmt::Disassociation {
            header,
            reason,
            elements: Elements::EMPTY,
        }),
        emit(mgmt::Deauthentication {
            header,
            reason,
            elements: Elements::new(&[221, 4, 0x00, 0x10, 0x18, 1]),
        }),
        emit(mgmt::Atim { header, body: &[] }),
        emit(mgmt::Action {
            header: htc,
            category: 127,
            body: &[0x50, 0x6f, 0x9a, 1],
        }),
        encrypted,
        // a compressed block ack
        emit(mac::Opaque {
            octets: b"\x94\0\0\0\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x04\x50\x70\0\xff\0\0\0\0\0\0\0",
        }),
    ]
}

/// radiotap headers with frames: all fields, usual ones, several antennas, a vendor namespace.
pub fn packets() -> Vec<Vec<u8>> {
    let ack = &frames()[8];
    let channel = radiotap::Channel::of(Band::Ghz5, 36, Rate::OFDM_6);
    let received = Radiotap {
        tsft_us: Some(1_000_000),
        flags: Some(0),
        channel,
        signal_dbm: Some(-60),
        noise_dbm: Some(-95),
        antenna: Some(0),
        rx_flags: Some(0),
        ..Radiotap::default()
    };
    let to_send = Radiotap {
        tx_flags: Some(Radiotap::TX_NO_SEQUENCE),
        data_retries: Some(0),
        ..Radiotap::default()
    };
    let everything = Radiotap {
        fhss: Some(radiotap::Fhss { set: 31, pattern: 32 }),
        lock_quality: Some(0x0101),
        tx_attenuation: Some(0x0202),
        tx_attenuation_db: Some(0x0303),
        tx_power_dbm: Some(20),
        signal_db: Some(4),
        noise_db: Some(5),
        tx_flags: Some(Radiotap::TX_FAILED),
        rts_retries: Some(6),
        data_retries: Some(7),
        xchannel: Some(radiotap::XChannel {
            flags: 0x0140,
            mhz: 5180,
            number: 36,
            max_power: 40,
        }),
        ampdu: Some(radiotap::Ampdu {
            reference: 0x0102_0304,
            ..Default::default()
        }),
        vht: Some(radiotap::Vht {
            known: 0x0044,
            bandwidth: 4,
            mcs_streams: [0x92, 0, 0, 0],
            ..Default::default()
        }),
        timestamp: Some(radiotap::Timestamp {
            value: 0x1122_3344_5566,
            unit_position: 2,
            ..Default::default()
        }),
        he: Some([1; 12]),
        he_mu: Some([2; 12]),
        he_other_user: Some([3; 6]),
        zero_length_psdu: Some(4),
        l_sig: Some([5; 4]),
        ..received.with_rate(Rate::parse("mcs7/40s").unwrap())
    };
    let packet = |radiotap: Radiotap, frame| emit(Packet { radiotap, frame });
    // rate; a vendor's word and eight octets; then signal and antenna
    #[rustfmt::skip]
    let foreign = [
        0, 0, 34, 0, 0x04, 0, 0, 0xc0, 0x21, 0, 0, 0xa0, 0x20, 0x08, 0, 0,
        108, 0, 0x00, 0x50, 0xf2, 7, 8, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0xd0, 1,
        0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 2,
    ];
    vec![
        packet(received.with_rate(Rate::OFDM_6), ack),
        packet(to_send.with_rate(Rate::OFDM_54), ack),
        packet(everything, ack),
        packet(Radiotap::default(), &[]),
        foreign.to_vec(),
    ]
}

/// Bodies of A-MSDUs.
pub fn amsdus() -> Vec<Vec<u8>> {
    let lengths: [&[usize]; 3] = [&[3, 7, 0], &[257, 1], &[1500]];
    let build = |lengths: &[usize]| {
        let mut out = [0; 2000];
        let mut b = AmsduBuilder::new(&mut out);
        for n in lengths {
            let subframe = Subframe {
                destination: PEER,
                source: ME,
                msdu: &[0x33; 1500][..*n],
            };
            b.push(&subframe).unwrap();
        }
        b.finish().to_vec()
    };
    lengths.map(build).to_vec()
}

/// Swallows what `Display` says and counts it.
struct Count(usize);

impl Write for Count {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        assert!(!s.contains('\n'), "one line");
        self.0 += s.len();
        Ok(())
    }
}

fn one_line(value: &impl fmt::Display) {
    let mut count = Count(0);
    write!(count, "{value}").unwrap();
    assert!(count.0 > 0);
}

/// What was parsed can be said, written, and parsed again.
fn round_trip<'a, T: Wire<'a> + PartialEq + Debug>(value: &T, out: &'a mut [u8]) {
    one_line(value);
    let n = value.emit(out).unwrap();
    assert_eq!(n, value.length());
    assert_eq!(T::parse(&out[..n]).as_ref(), Ok(value));
}

/// Any octets as an MPDU: no panic, and what is accepted is written again octet by octet.
pub fn try_frame(octets: &[u8]) {
    let parsed = Frame::parse(octets);
    let head = Header::parse(octets);
    if let Ok(frame) = parsed {
        let mut out = vec![0xee; octets.len() + 1];
        one_line(&frame);
        assert_eq!(frame.emit(&mut out), Ok(octets.len()));
        assert_eq!(&out[..octets.len()], octets);
        let head = head.expect("a frame has a header");
        if let Frame::Data(data) = frame {
            assert_eq!(
                (data.receiver, Some(data.transmitter)),
                (head.receiver(), head.transmitter())
            );
            assert_eq!((Some(data.sequence), data.qos), (head.sequence(), head.qos()));
            assert_eq!((data.address4, data.body), (head.address4(), head.body()));
        }
        if let Frame::Beacon(mgmt::Beacon { elements, .. }) = frame {
            try_elements(elements.octets());
        }
    }
    let Ok(head) = head else {
        assert!(parsed.is_err());
        let mut copy = octets.to_vec();
        assert!(header::set_retry(&mut copy, true).is_err() && copy == octets);
        return;
    };
    assert_eq!(head.octets() + head.body().len(), octets.len());
    let _ = (
        head.response(),
        head.access_category(),
        head.address3(),
        head.ht_control(),
        head.nav_us(),
    );
    let mut copy = octets.to_vec();
    header::set_retry(&mut copy, !head.is_retry()).unwrap();
    header::set_duration(&mut copy, !head.duration()).unwrap();
    let sequenced = header::set_sequence(&mut copy, SequenceControl(0x1234)).is_ok();
    let stamped = header::set_timestamp_us(&mut copy, 42).is_ok();
    let patched = Header::parse(&copy).unwrap();
    assert_eq!(
        (patched.is_retry(), patched.duration()),
        (!head.is_retry(), !head.duration())
    );
    assert_eq!(sequenced, head.sequence().is_some());
    assert_eq!(header::timestamp_us(&copy), stamped.then_some(42));
    if sequenced {
        assert_eq!(patched.sequence(), Some(SequenceControl(0x1234)));
    }
}

/// Any octets as a run of elements: no octet is lost.
pub fn try_elements(octets: &[u8]) {
    let elements = Elements::new(octets);
    one_line(&format_args!("{elements}."));
    let mut rest = octets;
    for element in elements {
        let Ok(whole) = Unknown::parse(&rest[..2 + usize::from(rest[1])]) else {
            panic!("not an element")
        };
        rest = &rest[whole.length()..];
        try_element(&element);
        if let Element::Unknown(unknown) = element {
            assert_eq!(unknown, whole);
        }
    }
    assert_eq!(rest, elements.tail());
    let _ = (
        elements.get::<Ssid<'_>>(),
        elements.get::<Tim<'_>>(),
        elements.get::<WmmParameters>(),
    );
    let _ = (
        elements.get::<HtCapabilities>(),
        elements.get::<Country<'_>>(),
        elements.get::<Vendor<'_>>(),
    );
}

fn try_element(element: &Element<'_>) {
    let mut out = [0; 257];
    match element {
        Element::SupportedRates(rates) if rates.0.len() > 8 => {
            assert_eq!(element.emit(&mut out), Err(EmitError::BadValue));
        }
        _ => round_trip(element, &mut out),
    }
    match element {
        Element::Tim(tim) => {
            let set: u32 = tim.bitmap.iter().map(|octet| octet.count_ones()).sum();
            let found = (0..2048).filter(|aid| tim.has_traffic(*aid)).count();
            assert!(found <= set as usize);
        }
        Element::Country(country) => assert_eq!(country.iter().count(), country.triplets.len() / 3),
        Element::SupportedRates(rates) => {
            let _ = (rates.rates(), rates.basic());
        }
        _ => {}
    }
}

/// Any octets as a radiotap packet.
pub fn try_packet(octets: &[u8]) {
    let Ok(fields) = Fields::new(octets) else {
        assert!(Packet::parse(octets).is_err());
        return;
    };
    let mut good = true;
    for (i, field) in fields.enumerate() {
        assert!(i < octets.len(), "each field takes an octet");
        assert!(good, "nothing comes after an error");
        good = field.is_ok();
    }
    match Packet::parse(octets) {
        Ok(packet) => {
            assert!(good);
            let _ = (packet.mpdu(), packet.radiotap.rate());
            round_trip(&packet, &mut vec![0; packet.length()]);
        }
        Err(e) => assert!(!good && e == ParseError::Truncated),
    }
}

/// Any octets as the body of a data frame: A-MSDU, LLC, FCS.
pub fn try_body(octets: &[u8]) {
    let mut at = 0;
    for subframe in Subframes::new(octets) {
        let Ok(subframe) = subframe else { continue };
        at += subframe.length().next_multiple_of(4);
        round_trip(&subframe, &mut vec![0; subframe.length()]);
    }
    assert!(at <= octets.len() + 3);
    if let Ok(snap) = Snap::parse(octets) {
        round_trip(&snap, &mut vec![0; snap.length()]);
        assert_eq!(snap.payload.len() + Snap::HEADER_OCTETS, octets.len());
    }
    if let Ok(mpdu) = fcs::check(octets) {
        assert_eq!(fcs::compute(mpdu).to_le_bytes(), octets[mpdu.len()..]);
    }
}
