//! Octets of the standard for each management frame.

extern crate std;
use super::*;
use core::fmt::Debug;
use std::string::ToString;
use std::vec::Vec;

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);
const SSID: Elements<'_> = Elements::new(b"\0\x03net");

fn header() -> MgmtHeader {
    MgmtHeader {
        duration_us: 314,
        sequence: SequenceControl::new(7, 0),
        ..MgmtHeader::new(A, B, C)
    }
}

/// The 24 octets of [`header`] and then `body`.
fn with_header(first: u8, body: &[u8]) -> Vec<u8> {
    #[rustfmt::skip]
    let mut octets = std::vec![
        first, 0, 0x3a, 0x01, 2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xc, 0x70, 0,
    ];
    octets.extend(body);
    octets
}

/// Emits, compares, reads back, cuts. `fixed` octets of the body must be there.
fn check<'a, T: Wire<'a> + PartialEq + Debug>(value: T, octets: &'a [u8], fixed: usize, text: &str) {
    let mut out = [0xee; 100];
    assert_eq!(value.emit(&mut out), Ok(octets.len()));
    assert_eq!(&out[..octets.len()], octets);
    assert_eq!(
        value.emit(&mut out[..octets.len() - 1]),
        Err(EmitError::NoRoom { needed: octets.len() })
    );
    assert_eq!(T::parse(octets).unwrap(), value);
    let shown = value.to_string();
    assert_eq!(
        shown.strip_prefix("02:00:00:00:00:0b -> 02:00:00:00:00:0a "),
        Some(text),
        "{shown}"
    );
    for n in 0..24 + fixed {
        assert_eq!(T::parse(&octets[..n]).unwrap_err(), ParseError::Truncated, "{n}");
    }
    for n in 24 + fixed..octets.len() {
        assert!(
            T::parse(&octets[..n]).is_ok(),
            "a cut tail of elements is no reason to lose a frame"
        );
    }
}

#[test]
fn beacon_and_probes() {
    let body = b"\x08\x07\x06\x05\x04\x03\x02\x01\x64\x00\x22\x04\0\x03net";
    let beacon = Beacon {
        header: header(),
        timestamp_us: 0x0102_0304_0506_0708,
        interval_tu: 100,
        capability: Capability::IBSS
            .with(Capability::SHORT_PREAMBLE)
            .with(Capability::SHORT_SLOT),
        elements: SSID,
    };
    let text = "Beacon, SN=7, FN=0, Flags=........, BI=100, SSID=\"net\"";
    check(beacon, &with_header(0x80, body), 12, text);
    let response = ProbeResponse {
        header: header(),
        timestamp_us: beacon.timestamp_us,
        interval_tu: 100,
        capability: beacon.capability,
        elements: SSID,
    };
    let text = "Probe Response, SN=7, FN=0, Flags=........, BI=100, SSID=\"net\"";
    check(response, &with_header(0x50, body), 12, text);
    let request = ProbeRequest {
        header: header(),
        elements: Elements::new(&[0, 0]),
    };
    check(
        request,
        &with_header(0x40, &[0, 0]),
        0,
        "Probe Request, SN=7, FN=0, Flags=........, SSID=any",
    );
}

#[test]
fn authentication() {
    let auth = Authentication {
        header: header(),
        algorithm: 0,
        transaction: 2,
        status: StatusCode::TOO_MANY_STATIONS,
        elements: Elements::EMPTY,
    };
    let text = "Authentication, SN=7, FN=0, Flags=........, Algorithm=0, Seq=2, Status=17";
    check(auth, &with_header(0xb0, &[0, 0, 2, 0, 17, 0]), 6, text);
    let reason = ReasonCode::LEAVING_NETWORK;
    let deauth = Deauthentication {
        header: header(),
        reason,
        elements: Elements::EMPTY,
    };
    check(
        deauth,
        &with_header(0xc0, &[3, 0]),
        2,
        "Deauthentication, SN=7, FN=0, Flags=........, Reason=3",
    );
}

#[test]
fn association() {
    let capability = Capability::ESS.with(Capability::PRIVACY);
    let aid = Aid::new(5).unwrap();
    let request = AssociationRequest {
        header: header(),
        capability,
        listen_interval: 10,
        elements: SSID,
    };
    let body = b"\x11\x00\x0a\x00\0\x03net";
    let text = "Association Request, SN=7, FN=0, Flags=........, SSID=\"net\"";
    check(request, &with_header(0x00, body), 4, text);

    let response = AssociationResponse {
        header: header(),
        capability,
        status: StatusCode::SUCCESS,
        aid,
        elements: Elements::new(&[1, 1, 0x8c]),
    };
    let body = [0x11, 0, 0, 0, 5, 0xc0, 1, 1, 0x8c];
    let text = "Association Response, SN=7, FN=0, Flags=........, Status=0, AID=5";
    check(response, &with_header(0x10, &body), 6, text);

    let request = ReassociationRequest {
        header: header(),
        capability,
        listen_interval: 10,
        current_ap: B,
        elements: SSID,
    };
    let body = b"\x11\x00\x0a\x00\x02\0\0\0\0\x0b\0\x03net";
    let text = "Reassociation Request, SN=7, FN=0, Flags=........, from 02:00:00:00:00:0b, SSID=\"net\"";
    check(request, &with_header(0x20, body), 10, text);

    let response = ReassociationResponse {
        header: header(),
        capability,
        status: StatusCode::UNSPECIFIED,
        aid: Aid(0),
        elements: Elements::EMPTY,
    };
    let text = "Reassociation Response, SN=7, FN=0, Flags=........, Status=1, no AID";
    check(response, &with_header(0x30, &[0x11, 0, 1, 0, 0, 0]), 6, text);

    let leave = Disassociation {
        header: header(),
        reason: ReasonCode::LEAVING_BSS,
        elements: Elements::EMPTY,
    };
    check(
        leave,
        &with_header(0xa0, &[8, 0]),
        2,
        "Disassociation, SN=7, FN=0, Flags=........, Reason=8",
    );
}

#[test]
fn atim_and_action() {
    let atim = Atim {
        header: header(),
        body: &[],
    };
    assert_eq!(atim.length() + 4, 28, "with FCS");
    check(
        atim,
        &with_header(0x90, &[]),
        0,
        "ATIM, SN=7, FN=0, Flags=........",
    );
    let action = Action {
        header: header(),
        category: 127,
        body: &[1, 2, 3],
    };
    let text = "Action, SN=7, FN=0, Flags=........, Category=127, 3 octets";
    check(action, &with_header(0xd0, &[127, 1, 2, 3]), 1, text);
}

#[test]
fn ht_control_and_protection() {
    let mut ordered = Atim {
        header: header(),
        body: &[],
    };
    ordered.header.flags = Flags::ORDER;
    assert_eq!(ordered.emit(&mut [0; 40]), Err(EmitError::Contradiction));
    ordered.header.ht_control = Some(0x0403_0201);
    let mut out = [0; 28];
    assert_eq!(ordered.emit(&mut out), Ok(28));
    assert_eq!(out[24..], [1, 2, 3, 4]);
    assert_eq!(Atim::parse(&out), Ok(ordered));
    ordered.header.flags = Flags::ORDER | Flags::PROTECTED;
    assert_eq!(ordered.emit(&mut out), Err(EmitError::Contradiction));
    out[1] = 0x40;
    assert_eq!(Atim::parse(&out), Err(ParseError::Protected));
    out[1] = 0;
    assert_eq!(Beacon::parse(&out), Err(ParseError::WrongKind));
}
