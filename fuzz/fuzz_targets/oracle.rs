//! Reads beacons and data frames with the crate `ieee80211` too and compares. Only what that crate gets right is
//! asked: it panics on some mesh elements and misreads A-MSDUs.

#![no_main]

use frame::element::{DsParameters, Element, ElementType, IbssParameters, Ssid, Tim};
use frame::mac::Flags;
use frame::{Frame, Wire};
use ieee80211::data_frame::DataFrame;
use ieee80211::elements::tim::TIMElement;
use ieee80211::elements::{DSSSParameterSetElement, IBSSParameterSetElement};
use ieee80211::mgmt_frame::BeaconFrame;
use scroll::Pread;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    match Frame::parse(octets) {
        Ok(Frame::Beacon(ours)) => {
            let theirs = octets
                .pread_with::<BeaconFrame<'_>>(0, false)
                .expect("they read our beacon");
            let (a, b) = (ours.header, theirs.header);
            assert_eq!(a.duration_us, b.duration);
            assert_eq!(a.destination.0, *b.receiver_address);
            assert_eq!(a.source.0, *b.transmitter_address);
            assert_eq!(a.bssid.0, *b.bssid);
            assert_eq!(a.sequence.number(), b.sequence_control.sequence_number());
            assert_eq!(a.sequence.fragment(), b.sequence_control.fragment_number());
            assert_eq!(a.ht_control.map(u32::to_le_bytes), b.ht_control);
            assert_eq!(ours.timestamp_us, theirs.timestamp);
            assert_eq!(ours.interval_tu, theirs.beacon_interval);
            assert_eq!(ours.capability.0, theirs.capabilities_info.into_bits());
            let elements = ours.elements;
            // Both take the first element that they find well-formed, and they are stricter with names and maps.
            if let Some(Ssid(name)) = elements.get()
                && elements
                    .iter()
                    .all(|e| !matches!(e, Element::Ssid(s) if str::from_utf8(s.0).is_err()))
            {
                assert_eq!(theirs.ssid().map(str::as_bytes), Some(name));
            }
            if let Some(DsParameters { channel }) = elements.get() {
                let theirs = theirs.elements.get_first_element::<DSSSParameterSetElement>();
                assert_eq!(theirs.map(|t| t.current_channel), Some(channel));
            }
            if let Some(IbssParameters { atim_window_tu }) = elements.get() {
                let theirs = theirs.elements.get_first_element::<IBSSParameterSetElement>();
                assert_eq!(theirs.map(|t| t.atim_window), Some(atim_window_tu));
            }
            if let Some(Tim {
                dtim_count,
                dtim_period,
                ..
            }) = elements.get()
                && dtim_count < dtim_period
                && let Some(theirs) = theirs.elements.get_first_element::<TIMElement<'_>>()
                && elements
                    .iter()
                    .all(|e| !matches!(e, Element::Unknown(u) if u.id == Tim::ID))
            {
                assert_eq!((theirs.dtim_count, theirs.dtim_period), (dtim_count, dtim_period));
            }
        }
        // They take the order flag of plain data for a sign of HT Control.
        Ok(Frame::Data(ours)) if ours.qos.is_some() || !ours.flags.contains(Flags::ORDER) => {
            let Ok(theirs) = octets.pread_with::<DataFrame<'_>>(0, false) else {
                assert!(ours.body.is_empty(), "they want a body");
                return;
            };
            let h = theirs.header;
            assert_eq!(ours.duration_us, h.duration);
            assert_eq!(ours.receiver.0, *h.address_1);
            assert_eq!(ours.transmitter.0, *h.address_2);
            assert_eq!(ours.address3.0, *h.address_3);
            assert_eq!(ours.address4.map(|a| a.0), h.address_4.map(|a| *a));
            assert_eq!(ours.sequence.number(), h.sequence_control.sequence_number());
            assert_eq!(ours.qos.map(|q| q.0.to_le_bytes()), h.qos);
            assert_eq!(ours.ht_control.map(u32::to_le_bytes), h.ht_control);
            assert_eq!(ours.body, theirs.payload.unwrap_or_default());
        }
        _ => {}
    }
});
