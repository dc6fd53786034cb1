//! Two programs that send to the same computer.

use super::network::script;

/// A link of 2 Mb/s that holds 50 packets and tells nothing of its delay: two files of 800 kB take 6.6 s at least. Alone each of their flows finds a rate of its own: in six runs the
/// first was through in 0.79 to 0.97 of the time of the other one; together in 0.98 or more.
#[test]
fn two_files_share_a_link_alike() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"
        ip netns exec r tc qdisc add dev tob root tbf rate 2mbit burst 3028 limit 75700 || {
            echo "HOP this kernel cannot make a link narrow"
            exit 0
        }
        export XDG_RUNTIME_DIR="$PWD/run"
        mkdir -p -m 700 run in
        for n in 1 2; do head -c 800000 /dev/urandom > file$n; done
        ip netns exec b "$SDMAC" atp recv --listen 10.0.2.2:7800 --dir in --count 2 > recv.out 2> recv.err & receiver=$!
        while ! grep -qs waiting recv.err; do
            kill -0 $receiver
            sleep 0.05
        done
        for n in 1 2; do
            ip netns exec a "$SDMAC" atp send file$n 10.0.2.2:7800 --json > file$n.sent & eval sender$n=$!
        done
        sleep 3
        ls run/sdmac > shared
        wait $sender1; wait $sender2; wait $receiver
        ls run/sdmac > left
        for n in 1 2; do cmp file$n in/file$n; done
    "#;
    let Some(_) = script(dir.path(), text, 0, 0) else {
        return;
    };
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let [one, other] = ["file1.sent", "file2.sent"].map(|name| {
        let sent: serde_json::Value = serde_json::from_str(&read(name)).unwrap();
        println!("{name}: {sent}");
        sent["seconds"].as_f64().unwrap()
    });
    assert!(one.min(other) > 0.9 * one.max(other), "{one} and {other} s");
    let shared = read("shared");
    assert!(shared.trim().ends_with("-10.0.2.2"), "{shared}");
    assert_eq!(read("left"), "", "the last one removes what was shared");
}
