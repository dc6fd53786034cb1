//! A record of `/dev/sdmac` may be any octets; what is read is written again.
#![no_main]

use linux::wifi::confirm::{Record, Tried};

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    if let Ok(record) = Record::parse(octets) {
        assert_eq!(Record::parse(&record.emit()), Ok(record));
        assert!(record.stamps().count() <= 7 && record.attempts() <= 4 * 255);
        let _ = (record.is_of("phy0"), record.last().and_then(Tried::rate));
    }
});
