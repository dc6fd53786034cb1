//! What beacons of a schedule, asks for slots, follow-ups and beacons of two adapters say: any octets, and what was read is written the same again.
#![no_main]

use protocols::mac::sync::Shifts;
use protocols::mac::sync::reference::FollowUp;
use protocols::mac::tdma::join::wire::{Ask, MAX_BODY_OCTETS, Word};

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let _ = (Ask::parse(octets), FollowUp::parse(octets), Shifts::find(octets));
    if let Some(shifts) = Shifts::parse(octets) {
        assert_eq!(Shifts::parse(&shifts.body()), Some(shifts));
    }
    if let Some(word) = Word::parse(octets).filter(|w| w.list.is_some()) {
        let mut body = [0; MAX_BODY_OCTETS];
        let n = word.emit(&mut body);
        assert_eq!(Word::parse(&body[..n]), Some(word));
    }
});
