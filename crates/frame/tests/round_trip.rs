//! For any value of any kind that can be written: what is parsed back is the same value.

mod shared;

use std::fmt::Debug;

use frame::amsdu::Subframe;
use frame::element::*;
use frame::llc::Snap;
use frame::mac::{Ack, Aid, Cts, Data, Flags, Opaque, PsPoll, QosControl, Rts, SequenceControl};
use frame::mgmt::*;
use frame::radiotap::{self, Packet, Radiotap};
use frame::{AccessCategory, EdcaParams, Frame, MacAddr, Wire};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Writes and parses back, alone and as any frame.
fn frame_comes_back<'a, T>(value: T, out: &'a mut Vec<u8>)
where
    T: Wire<'a> + Into<Frame<'a>> + Copy + PartialEq + Debug,
{
    *out = shared::emit(value);
    assert_eq!(T::parse(out).unwrap(), value);
    assert_eq!(Frame::parse(out).unwrap(), value.into());
}

/// Writes and parses back, alone and as any element.
fn element_comes_back<'a, T>(value: T, out: &'a mut Vec<u8>)
where
    T: Wire<'a> + Into<Element<'a>> + Copy + PartialEq + Debug,
{
    *out = shared::emit(value);
    assert_eq!(T::parse(out).unwrap(), value);
    let any = Element::parse(out).unwrap();
    // a vendor element may happen to be a WMM element
    if !matches!(any, Element::WmmInformation(_) | Element::WmmParameters(_)) {
        assert_eq!(any, value.into());
    }
    assert_eq!(shared::emit(any), *out);
}

fn address() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

fn octets(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=most)
}

fn mgmt_header() -> impl Strategy<Value = MgmtHeader> {
    (
        any::<u8>(),
        any::<u16>(),
        [address(), address(), address()],
        any::<u16>(),
        option::of(any::<u32>()),
    )
        .prop_map(
            |(flags, duration_us, [destination, source, bssid], sequence, ht_control)| {
                let order = if ht_control.is_some() {
                    Flags::ORDER
                } else {
                    Flags::NONE
                };
                MgmtHeader {
                    flags: Flags(flags).without(Flags::PROTECTED | Flags::ORDER) | order,
                    duration_us,
                    destination,
                    source,
                    bssid,
                    sequence: SequenceControl(sequence),
                    ht_control,
                }
            },
        )
}

proptest! {
    #[test]
    fn data(
        flags: u8, duration_us: u16, addresses in [address(), address(), address(), address()], sequence: u16,
        qos: Option<u16>, ht_control: u32, null: bool, body in octets(100),
    ) {
        let [receiver, transmitter, address3, address4] = addresses;
        let flags = Flags(flags);
        let data = Data {
            flags,
            duration_us,
            receiver,
            transmitter,
            address3,
            address4: flags.contains(Flags::TO_DS | Flags::FROM_DS).then_some(address4),
            sequence: SequenceControl(sequence),
            qos: qos.map(QosControl),
            ht_control: (qos.is_some() && flags.contains(Flags::ORDER)).then_some(ht_control),
            null,
            body: if null { &[] } else { &body },
        };
        frame_comes_back(data, &mut Vec::new());
    }

    #[test]
    fn control(flags: u8, duration_us: u16, receiver in address(), transmitter in address()) {
        let flags = Flags(flags);
        frame_comes_back(Ack { flags, duration_us, receiver }, &mut Vec::new());
        frame_comes_back(Cts { flags, duration_us, receiver }, &mut Vec::new());
        frame_comes_back(Rts { flags, duration_us, receiver, transmitter }, &mut Vec::new());
        let aid = Aid(duration_us);
        frame_comes_back(PsPoll { flags, aid, bssid: receiver, transmitter }, &mut Vec::new());
    }

    #[test]
    fn management(header in mgmt_header(), tail in octets(80), wide: u64, a: u16, b: u16, c: u16, ap in address()) {
        let elements = Elements::new(&tail);
        let capability = Capability(a);
        let (status, reason, aid) = (StatusCode(b), ReasonCode(b), Aid(c));
        let (timestamp_us, interval_tu, listen_interval, current_ap) = (wide, b, b, ap);
        let out = || Vec::new();
        frame_comes_back(Beacon { header, timestamp_us, interval_tu, capability, elements }, &mut out());
        frame_comes_back(ProbeResponse { header, timestamp_us, interval_tu, capability, elements }, &mut out());
        frame_comes_back(ProbeRequest { header, elements }, &mut out());
        let (algorithm, transaction) = (a, c);
        frame_comes_back(Authentication { header, algorithm, transaction, status, elements }, &mut out());
        frame_comes_back(Deauthentication { header, reason, elements }, &mut out());
        frame_comes_back(Disassociation { header, reason, elements }, &mut out());
        frame_comes_back(AssociationRequest { header, capability, listen_interval, elements }, &mut out());
        frame_comes_back(AssociationResponse { header, capability, status, aid, elements }, &mut out());
        let request = ReassociationRequest { header, capability, listen_interval, current_ap, elements };
        frame_comes_back(request, &mut out());
        frame_comes_back(ReassociationResponse { header, capability, status, aid, elements }, &mut out());
        frame_comes_back(Atim { header, body: &tail }, &mut out());
        frame_comes_back(Action { header, category: a as u8, body: &tail }, &mut out());
    }

    /// Any frame of an unknown kind, and encrypted management frames.
    #[test]
    fn opaque(subtype in 0u8..16, flags: u8, tail in vec(any::<u8>(), 34..80)) {
        for first in [subtype << 4 | 0x04, subtype << 4 | 0x0c, subtype << 4] {
            let flags = if first & 0x0c == 0 { flags | 0x40 } else { flags };
            let octets = [&[first, flags][..], &tail].concat();
            let kind = frame::mac::Header::parse(&octets).unwrap().kind();
            let known = [0xa4, 0xb4, 0xc4, 0xd4].contains(&kind.octet());
            if !known {
                frame_comes_back(Opaque { octets: &octets }, &mut Vec::new());
            }
        }
    }

    #[test]
    fn simple_elements(name in octets(32), n: u8, m: u8, k: u8, wide: u16, rates in vec(any::<u8>(), 1..=8)) {
        element_comes_back(Ssid(&name), &mut Vec::new());
        element_comes_back(DsParameters { channel: n }, &mut Vec::new());
        element_comes_back(IbssParameters { atim_window_tu: wide }, &mut Vec::new());
        element_comes_back(Erp(n), &mut Vec::new());
        element_comes_back(ChannelSwitch { mode: n, channel: m, count: k }, &mut Vec::new());
        element_comes_back(SupportedRates(&rates), &mut Vec::new());
        element_comes_back(ExtendedRates(&rates), &mut Vec::new());
        element_comes_back(WmmInformation { qos_info: n }, &mut Vec::new());
    }

    #[test]
    fn variable_elements(
        a: u8, b: u8, group_traffic: bool, offset in 0u8..=127, bitmap in vec(any::<u8>(), 1..=251),
        code: [u8; 2], triplets in vec(any::<u8>(), 3..=252), oui: [u8; 3], body in octets(252), id in 128u8..=220,
    ) {
        let tim = Tim { dtim_count: a, dtim_period: b, group_traffic, offset, bitmap: &bitmap };
        element_comes_back(tim, &mut Vec::new());
        element_comes_back(Country { code, environment: a, triplets: &triplets }, &mut Vec::new());
        element_comes_back(Vendor { oui, body: &body }, &mut Vec::new());
        element_comes_back(Unknown { id, body: &body }, &mut Vec::new());
    }

    #[test]
    fn ht_elements(info: u16, ampdu: u8, mcs: [u8; 16], extended: u16, beamforming: u32, a: u8, five: [u8; 5]) {
        let caps = HtCapabilities { info, ampdu, mcs, extended, beamforming, antenna_selection: a };
        element_comes_back(caps, &mut Vec::new());
        let operation = HtOperation { primary_channel: a, info: five, basic_mcs: mcs };
        element_comes_back(operation, &mut Vec::new());
    }

    #[test]
    fn wmm(qos_info: u8, acs in proptest::array::uniform4((0u8..16, 0u32..16, 0u32..16, any::<u16>(), any::<bool>()))) {
        let categories = acs.map(|(aifsn, low, high, txop, admission)| AcParameters {
            edca: EdcaParams {
                aifsn,
                cw_min: ((1u32 << low) - 1) as u16,
                cw_max: ((1u32 << high) - 1) as u16,
                txop_us: u32::from(txop) * 32,
            },
            admission,
        });
        let wmm = WmmParameters { qos_info, categories };
        element_comes_back(wmm, &mut Vec::new());
        for ac in AccessCategory::ALL {
            prop_assert_eq!(wmm.of(ac), categories[ac.index()]);
        }
    }

    /// A run of elements keeps every octet when it is taken apart and put together again.
    #[test]
    fn runs_of_elements(parts in vec((128u8..=220, octets(40)), 0..8), tail in octets(1)) {
        let mut buffer = [0; 400];
        let mut builder = ElementsBuilder::new(&mut buffer);
        for (id, body) in &parts {
            builder.push(Unknown { id: *id, body }).unwrap();
        }
        let built = builder.finish().octets().to_vec();
        let octets = [&built[..], &tail].concat();
        let elements = Elements::new(&octets);
        prop_assert_eq!(elements.iter().count(), parts.len());
        prop_assert_eq!(elements.tail(), &tail[..]);
        for (element, (id, body)) in elements.iter().zip(&parts) {
            prop_assert_eq!(element, Unknown { id: *id, body }.into());
        }
    }

    #[test]
    fn bodies(oui: [u8; 3], protocol: u16, payload in octets(200), destination in address(), source in address()) {
        let snap = Snap { oui, protocol, payload: &payload };
        let octets = shared::emit(snap);
        prop_assert_eq!(Snap::parse(&octets), Ok(snap));
        let subframe = Subframe { destination, source, msdu: &payload };
        let octets = shared::emit(subframe);
        prop_assert_eq!(Subframe::parse(&octets), Ok(subframe));
        let mut with_fcs = payload.clone();
        with_fcs.extend([0; 4]);
        prop_assert_eq!(frame::fcs::append(&mut with_fcs, payload.len()), Ok(payload.len() + 4));
        prop_assert_eq!(frame::fcs::check(&with_fcs), Ok(&payload[..]));
    }

    /// Any choice of radiotap fields with any values.
    #[test]
    fn radiotap_packets(present: u32, values in proptest::array::uniform32(any::<u8>()), frame in octets(60)) {
        let [a, b, c, d, e, f, ..] = values;
        let wide = u64::from_le_bytes([a, b, c, d, e, f, a, b]);
        let (word, half) = (wide as u32, wide as u16);
        let on = |bit: u32| present >> bit & 1 != 0;
        let radiotap = Radiotap {
            tsft_us: on(0).then_some(wide),
            flags: on(1).then_some(a),
            rate_500kbps: on(2).then_some(b),
            channel: on(3).then_some(radiotap::Channel { mhz: half, flags: !half }),
            fhss: on(4).then_some(radiotap::Fhss { set: a, pattern: b }),
            signal_dbm: on(5).then_some(a as i8),
            noise_dbm: on(6).then_some(b as i8),
            lock_quality: on(7).then_some(half),
            tx_attenuation: on(8).then_some(half),
            tx_attenuation_db: on(9).then_some(!half),
            tx_power_dbm: on(10).then_some(c as i8),
            antenna: on(11).then_some(d),
            signal_db: on(12).then_some(e),
            noise_db: on(13).then_some(f),
            rx_flags: on(14).then_some(half),
            tx_flags: on(15).then_some(!half),
            rts_retries: on(16).then_some(a),
            data_retries: on(17).then_some(b),
            xchannel: on(18).then_some(radiotap::XChannel { flags: word, mhz: half, number: c, max_power: d }),
            mcs: on(19).then_some(radiotap::Mcs { known: a, flags: b, index: c }),
            ampdu: on(20).then_some(radiotap::Ampdu { reference: word, flags: half, crc: e }),
            vht: on(21).then_some(radiotap::Vht {
                known: half, flags: a, bandwidth: b, mcs_streams: [c, d, e, f], coding: a, group_id: b, partial_aid: !half,
            }),
            timestamp: on(22).then_some(radiotap::Timestamp { value: wide, accuracy: half, unit_position: a, flags: b }),
            he: on(23).then(|| values[..12].try_into().unwrap()),
            he_mu: on(24).then(|| values[12..24].try_into().unwrap()),
            he_other_user: on(25).then(|| values[24..30].try_into().unwrap()),
            zero_length_psdu: on(26).then_some(f),
            l_sig: on(27).then(|| values[28..].try_into().unwrap()),
        };
        let packet = Packet { radiotap, frame: &frame };
        let octets = shared::emit(packet);
        prop_assert_eq!(Packet::parse(&octets), Ok(packet));
        let fields: Vec<_> = radiotap::Fields::new(&octets).unwrap().collect();
        prop_assert_eq!(fields.len() as u32, (present & 0x0fff_ffff).count_ones());
    }
}
