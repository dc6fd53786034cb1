//! A link that carries a packet in 3 ms and holds 50, behind a hop that says so, and behind one that tells much less.

use crate::network::script;
use crate::said;

/// Few packets of a file go again, or, where nearly all of it may have gone before the first of it is heard of, each of them once. It was each twice and more.
#[test]
fn little_is_lost_before_a_narrow_link() {
    let dir = tempfile::tempdir().unwrap();
    // a packet of 1,500 octets and its link header
    let text = r#"
        ip netns exec r tc qdisc add dev tob root tbf rate 4036kbit burst 3028 limit 75700 || {
            echo "HOP this kernel cannot make a link narrow"
            exit 0
        }
        full right 10.0.2.2:7800
        export DELAY=100us
        full wrong 10.0.2.2:7800
    "#;
    let Some(_) = script(dir.path(), text, 0, 0) else {
        return;
    };
    for (name, most_again) in [("right", 0.2), ("wrong", 1.1)] {
        let sent = said(dir.path(), &format!("{name}.sent"));
        println!("{name}: {sent}");
        let of = |what: &str| sent[what].as_f64().unwrap();
        let packets = of("octets") / of("packet_octets");
        assert!(of("resent") < packets * most_again, "{name}: {sent}");
    }
}
