//! Shared by tests and the fuzz target: specimens of everything that is parsed, and what must hold for any octets.
#![allow(dead_code)]

use ar9170::codec::stream::{FirstHeader, MAX_TRANSFER_OCTETS, RESPONSE_MARK, Unit, Units, write_unit};
use ar9170::codec::{Eeprom, Firmware, RxFrame, TxFrame};

/// A unit with this payload.
pub fn unit(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; payload.len() + 8];
    let n = write_unit(&[payload], &mut out).expect("there is room");
    out.truncate(n);
    out
}

/// A block of these responses, as (code, sequence, extra, payload).
pub fn block(responses: &[(u8, u8, u8, &[u8])]) -> Vec<u8> {
    let mut payload = RESPONSE_MARK.to_vec();
    for (code, sequence, extra, octets) in responses {
        payload.extend([octets.len() as u8, *code, *sequence, *extra]);
        payload.extend(*octets);
    }
    unit(&payload)
}

/// A received frame as a unit.
pub fn received(mpdu: &[u8]) -> Vec<u8> {
    let frame = RxFrame {
        mpdu,
        rate: Some(frame::Rate::OFDM_6),
        above_noise_db: Some(40),
        position: ar9170::codec::rx::Position::Single,
    };
    let mut out = vec![0; mpdu.len() + 64];
    let n = frame.emit(false, &mut out).expect("there is room");
    unit(&out[..n])
}

/// Transfers with everything that the firmware says.
pub fn transfers() -> Vec<Vec<u8>> {
    let boot = block(&[(0xcf, 0, 0, &[])]);
    let statuses = block(&[
        (0xc1, 1, 3, &[1, 0x91, 2, 0x11, 3, 0x99, 0, 0]),
        (0xc0, 2, 0, &[0; 4]),
    ]);
    let data = received(&[0x08; 60]);
    let answers = block(&[
        (0x06, 3, 0, &[9; 8]),
        (0x02, 4, 0, &[1, 2, 3, 4]),
        (0xca, 5, 5, b"ERROR\0\0\0"),
    ]);
    let grouped = [statuses.clone(), data.clone(), answers.clone(), data.clone()].concat();
    vec![boot, statuses, data, answers, grouped]
}

/// Any octets as a transfer: nothing panics, each octet is looked at once, and what is found lies within.
pub fn try_transfer(octets: &[u8]) {
    let octets = &octets[..octets.len().min(MAX_TRANSFER_OCTETS)];
    let mut seen = 0;
    for unit in Units::new(octets) {
        seen += 1;
        match unit {
            Unit::Responses(block) => {
                for response in block {
                    seen += 1;
                    let _ = (response.notice(), response.tsf(), response.answers());
                    assert!(response.words().count() * 4 <= response.payload.len());
                }
            }
            Unit::Frame(payload) => {
                if let Ok(frame) = RxFrame::parse(payload) {
                    assert!(frame.mpdu.len() >= 10 && frame.mpdu.len() < payload.len());
                }
            }
            Unit::Damaged(damaged) => assert!(!damaged.is_empty()),
        }
    }
    assert!(
        seen <= octets.len() / 4 + 1,
        "{seen} things in {} octets",
        octets.len()
    );
    let _ = FirstHeader(octets).response();
}

/// Any octets as anything else that is parsed; what was accepted is written back as it was.
pub fn try_others(octets: &[u8]) {
    if let Some(frame) = TxFrame::parse(octets) {
        let mut out = vec![0; octets.len()];
        assert_eq!(frame.emit(&mut out), Some(octets.len()));
        assert_eq!(TxFrame::parse(&out), Some(frame));
    }
    if let Ok(frame) = RxFrame::parse(octets)
        && frame.rate.is_some()
        && frame.position == ar9170::codec::rx::Position::Single
    {
        let mut out = vec![0; octets.len()];
        assert_eq!(frame.emit(false, &mut out), Some(octets.len()));
        assert_eq!(RxFrame::parse(&out), Ok(frame));
    }
    let _ = Eeprom::parse(octets);
    if let Ok(firmware) = Firmware::parse(octets) {
        assert!(firmware.image.len() < octets.len());
    }
}
