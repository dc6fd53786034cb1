//! Packets of full length, as `sdmac atp send` makes them: none is cut on its way, so that the hop marks them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::network::script;
use crate::said;

/// Counters of a file of /proc/net, all namespaces of the network together: those whose names say that a packet was cut.
fn cut(dir: &Path) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let mut add = |name: &str, n: &str| {
        if name.contains("FragCreates") {
            *all.entry(name.to_owned()).or_default() += n.parse::<u64>().unwrap();
        }
    };
    let text = fs::read_to_string(dir.join("counters")).unwrap();
    let mut names = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &names) {
            // a line of names, and one of numbers
            (["Ip:", rest @ ..], None) => {
                names = Some(rest.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            (["Ip:", rest @ ..], Some(heads)) => {
                heads.iter().zip(rest).for_each(|(name, n)| add(name, n));
                names = None;
            }
            ([name, n], _) if name.starts_with("Ip6") => add(name, n),
            _ => {}
        }
    }
    all
}

/// What the hop and the sender say of a transfer.
fn both(dir: &Path, name: &str) -> (Value, Value) {
    (
        said(dir, &format!("{name}.hop")),
        said(dir, &format!("{name}.sent")),
    )
}

/// At least 19 of 20 packets are marked, in both families, with a key, and on a way with a link of 1,400 octets behind the hop, whose
/// length is found. Over that the second connection begins with packets that fit, since the kernel knows the way by then.
#[test]
fn full_packets_are_marked_and_never_cut() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"
        full v4 10.0.2.2:7800
        full v6 [fd00:2::2]:7800
        "$SDMAC" atp key > key
        full key [fd00:2::2]:7800 --key key
        ip -n r link set tob mtu 1400; ip -n b link set eb mtu 1400
        full narrow 10.0.2.2:7800
        full known 10.0.2.2:7800
        for n in a r b; do ip netns exec $n cat /proc/net/snmp /proc/net/snmp6; done > counters
    "#;
    let Some(_) = script(dir.path(), text, 0, 0) else {
        return;
    };
    for (name, least, most) in [
        ("v4", 1_448, 1_448),
        ("v6", 1_428, 1_428),
        ("key", 1_380, 1_380),
        ("narrow", 1_348 - 32, 1_348),
        ("known", 1_348, 1_348),
    ] {
        let (hop, sent) = both(dir.path(), name);
        println!("{name}: hop {hop}, sender {sent}");
        let of = |what: &str| hop[what].as_u64().unwrap();
        assert!(
            of("packets") > 1_000 && of("marked") * 20 >= of("packets") * 19,
            "{name}: {hop}"
        );
        assert_eq!((of("fragments"), of("missed")), (0, 0), "{name}: {hop}");
        let octets = sent["packet_octets"].as_u64().unwrap();
        assert!((least..=most).contains(&octets), "{name}: {sent}");
        // the delay of the hop is what the sender keeps to
        assert!(sent["delay_us"].as_u64().unwrap() >= 3_000, "{name}: {sent}");
    }
    let cut = cut(dir.path());
    println!("cut: {cut:?}");
    assert_eq!(cut.keys().collect::<Vec<_>>(), ["FragCreates", "Ip6FragCreates"]);
    assert!(cut.values().all(|n| *n == 0), "{cut:?}");
}

/// The first packet of the content is too long for the interface, which the kernel believes to be wider than it is.
#[test]
fn an_interface_that_is_too_narrow_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        ip -n a route add 10.0.2.2 via 10.0.1.1 mtu lock 1500
        ip -n a link set ea mtu 1000
        full refused 10.0.2.2:7800
        for n in a r b; do ip netns exec $n cat /proc/net/snmp /proc/net/snmp6; done > counters
    ";
    let Some(_) = script(dir.path(), text, 0, 0) else {
        return;
    };
    let (hop, sent) = both(dir.path(), "refused");
    println!("hop {hop}, sender {sent}");
    let octets = sent["packet_octets"].as_u64().unwrap();
    assert!((948 - 32..=948).contains(&octets), "{sent}");
    assert_eq!(cut(dir.path())["FragCreates"], 0);
}
