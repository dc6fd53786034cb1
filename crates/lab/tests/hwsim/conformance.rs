//! The body of tests that every host runs, on the 802.11 stack of Linux.

use super::*;
use lab::conformance::{LinuxWifi, body};
use linux::wifi::TsfSource;

const BOOK: &str = include_str!("../../../../docs/src/contract.md");

#[test]
fn the_contract_is_kept() {
    let Some((_lab, radios)) = lab() else { return };
    let host = match std::env::var("SDMAC_LAB").as_deref() {
        Ok("virtual") => "Linux, UML",
        _ => "Linux, QEMU",
    };
    for tsf in [TsfSource::Adapter, TsfSource::Computer] {
        let config = |radio: &String| AdapterConfig {
            tsf,
            ..AdapterConfig::new(radio, CHANNEL)
        };
        let mut subject = LinuxWifi::new([config(&radios[0]), config(&radios[1])], false).unwrap();
        let report = body(&mut subject);
        println!("{report}");
        assert_eq!(report.failures().collect::<Vec<_>>(), []);
        let declared: Vec<_> = report.declared().collect();
        assert_eq!(declared, ["outcome not acked after all tries"]);
        let mut wrong = report.differences(BOOK, host);
        if tsf == TsfSource::Computer {
            // The book's column is that of the adapter's time.
            wrong.retain(|(name, seen, _)| (name.as_str(), *seen) != ("Tsf", "read, set"));
        }
        assert_eq!(wrong, [], "seen, and written");
    }
}
