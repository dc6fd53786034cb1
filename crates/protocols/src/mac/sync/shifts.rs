//! What the beacons of a node with two adapters say about its clocks: how far network time is ahead of the TSF of each.
//! Each adapter writes its own TSF into its copy of a beacon, and all else in the copies is the same.

use frame::Wire;
use frame::element::{Element, Vendor};
use frame::mgmt;

/// Organisation with the local bit set, as that of the schedules.
const OUI: [u8; 3] = [0x02, 0x73, 0x64];
/// Type behind it; 1 to 4 are those of the schedules and of follow-ups.
const CLOCKS: u8 = 5;
const BODY: usize = 1 + 2 * 8;
/// In place of a number: not known.
const UNKNOWN: i64 = i64::MIN;

/// Octets of the element, id and length included.
pub const SHIFTS_OCTETS: usize = 5 + BODY;

/// Network time less the TSF of each adapter in nanoseconds, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shifts(pub [Option<i64>; 2]);

impl Shifts {
    /// Writes the body of the element.
    pub fn body(&self) -> [u8; BODY] {
        let mut body = [CLOCKS; BODY];
        for (octets, shift) in body[1..].chunks_exact_mut(8).zip(self.0) {
            octets.copy_from_slice(&shift.unwrap_or(UNKNOWN).to_le_bytes());
        }
        body
    }

    /// The element with this body.
    pub const fn element(body: &[u8; BODY]) -> Vendor<'_> {
        Vendor { oui: OUI, body }
    }

    /// What a beacon frame says; `None` if it says nothing of this.
    pub fn find(beacon: &[u8]) -> Option<Shifts> {
        let elements = mgmt::Beacon::parse(beacon).ok()?.elements;
        elements.iter().find_map(|e| match e {
            Element::Vendor(v) if v.oui == OUI => Shifts::parse(v.body),
            _ => None,
        })
    }

    /// Reads the body of the element.
    pub fn parse(body: &[u8]) -> Option<Shifts> {
        let body: &[u8; BODY] = body.try_into().ok()?;
        let [CLOCKS, numbers @ ..] = body else {
            return None;
        };
        let mut shifts = Shifts::default();
        for (shift, octets) in shifts.0.iter_mut().zip(numbers.chunks_exact(8)) {
            let number = i64::from_le_bytes(octets.try_into().ok()?);
            *shift = (number != UNKNOWN).then_some(number);
        }
        Some(shifts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
    use frame::{MacAddr, Rate};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_and_back(first: Option<i64>, second: Option<i64>) {
            let shifts = Shifts([first, second].map(|s| s.filter(|n| *n != UNKNOWN)));
            let beacon = BeaconFrame {
                bssid: MacAddr::local(1),
                interval_tu: 100,
                ssid: b"net",
                basic: BeaconFrame::basic_for(Rate::OFDM_6),
                sequence: 1,
            };
            let other = Vendor { oui: OUI, body: &[2, 0] };
            let mut out = [0; MAX_BEACON_OCTETS + 7 + SHIFTS_OCTETS];
            let body = shifts.body();
            let bare = beacon.emit_with(&[other], &mut out).len();
            prop_assert_eq!(Shifts::find(&out[..bare]), None);
            let whole = beacon.emit_with(&[other, Shifts::element(&body)], &mut out).len();
            prop_assert_eq!(whole, bare + SHIFTS_OCTETS);
            prop_assert_eq!(Shifts::find(&out[..whole]), Some(shifts));
        }

        #[test]
        fn any_octets(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Shifts::find(&octets), Shifts::parse(&octets));
        }
    }
}
