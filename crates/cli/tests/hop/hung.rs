//! The hop is stopped, killed, or too slow while packets flow: they flow on.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::network::script;
use crate::{found, said};

/// Of packets that were sent at an even rate while the hop was stopped and went on: how many did not arrive.
fn lost(found: &BTreeMap<String, u32>, count: u32, rate: u32) -> u32 {
    assert!(
        found["plain"] > 0 && found["marked"] > 0,
        "nothing went by: {found:?}"
    );
    let lost = count - found["all"];
    // a second of them is promised; a computer with much else to do gets three times that
    assert!(lost <= 3 * rate, "packets waited for too long: {found:?}");
    lost
}

/// The hop does nothing while so many packets come at once, for less than the time after which its rules go. What follows is done then; gives
/// what it said. Again, where the computer had so much else to do that it took longer.
fn stalled(count: u32, then: &str) -> Option<(TempDir, Value)> {
    let text = format!(
        "
        hop --json
        export GO=$PWD/go
        begin b 10.0.2.2 a
        kill -STOP $hop
        touch go
        wait $sender
        {then}"
    );
    for _ in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        script(dir.path(), &text, count, 1_000_000)?;
        let hop = said(dir.path(), "hop.out");
        if hop["lapses"] == 0 {
            return Some((dir, hop));
        }
    }
    eprintln!("skipped: this computer has too much else to do");
    None
}

/// A hop that is stopped, alone and with the process that it has started, is out of the way soon, and marks packets again
/// when it goes on.
#[test]
fn packets_flow_while_it_is_stopped() {
    // fewer than the queue has room for
    const COUNT: u32 = 1_000;
    const RATE: u32 = 200;
    let dir = tempfile::tempdir().unwrap();
    let text = "
        hop --json
        begin b 10.0.2.2 a
        sleep 0.5
        kill -STOP $hop
        wait $sender
        kill -CONT $hop
        end
        sleep 0.5
        begin b fd00:2::2 a
        sleep 0.5
        kill -STOP $hop $(cat /proc/$hop/task/$hop/children)
        wait $sender
        kill -CONT $hop
        end
        sleep 0.5
        export COUNT=50
        traffic b 10.0.2.2 a
        kill -INT $hop; wait $hop
    ";
    let Some(_) = script(dir.path(), text, COUNT, RATE) else {
        return;
    };
    let all = found(dir.path());
    println!("{all:?}");
    let lost: u32 = all[..2].iter().map(|m| lost(m, COUNT, RATE)).sum();
    assert_eq!((all[2]["all"], all[2]["marked"]), (50, 50), "{all:?}");
    let said = said(dir.path(), "hop.out");
    let marked: u32 = all.iter().map(|m| m["marked"]).sum();
    assert!(said["lapses"].as_u64().unwrap() >= 2, "{said}");
    // it was too late with its verdicts on those that had waited
    assert_eq!(said["marked"], marked + lost, "{said}");
    assert!(said["refused"].as_u64().unwrap() > 0, "{said}");
}

/// The file is longer than what is sent before the hop stops for good.
#[test]
fn a_transfer_outlives_a_hop_that_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"
        head -c 3000000 /dev/urandom > content
        mkdir in
        hop --json
        ip netns exec b "$SDMAC" atp recv --listen 10.0.2.2:7800 --dir in --once --patience 5s > recv.out 2> recv.err & receiver=$!
        while ! grep -q waiting recv.err; do sleep 0.05; done
        ip netns exec a "$SDMAC" atp send content 10.0.2.2:7800 --patience 5s --json > sent & sender=$!
        sleep 1
        kill -STOP $hop
        wait $sender; wait $receiver
        cmp content in/content
        kill -CONT $hop; kill -INT $hop; wait $hop
    "#;
    let Some(_) = script(dir.path(), text, 0, 0) else {
        return;
    };
    let (hop, sent) = (said(dir.path(), "hop.out"), said(dir.path(), "sent"));
    println!("hop {hop}, sender {sent}");
    let marked = hop["marked"].as_u64().unwrap();
    assert!(marked > 0 && marked * 1_200 < 3_000_000, "{hop}");
}

/// What the queue holds at that moment is lost, and no more; a hop that is started at once finds its place free.
#[test]
fn packets_flow_while_it_is_killed() {
    const COUNT: u32 = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let text = "
        hop
        begin b 10.0.2.2 a
        sleep 0.5
        kill -KILL $hop; wait $hop || true
        hop --json
        end
        export COUNT=50
        traffic b 10.0.2.2 a
        kill -INT $hop; wait $hop
    ";
    let Some(_) = script(dir.path(), text, COUNT, 1_000) else {
        return;
    };
    let all = found(dir.path());
    let of = |key: &str| all[0][key];
    println!("{all:?}");
    // a quarter of a second of them
    assert!(COUNT - of("all") <= 250, "{all:?}");
    assert!(of("plain") > 0, "{all:?}");
    assert_eq!((all[1]["all"], all[1]["marked"]), (50, 50), "{all:?}");
}

/// Ctrl-C lets go on what waits, also what has come while the hop could not.
#[test]
fn packets_that_wait_at_the_end_go_on() {
    const COUNT: u32 = 800;
    let then = "
        kill -INT $hop; kill -CONT $hop; wait $hop
        end
    ";
    let Some((dir, hop)) = stalled(COUNT, then) else {
        return;
    };
    let all = found(dir.path());
    assert_eq!(
        (all[0]["all"], &hop["refused"]),
        (COUNT, &0.into()),
        "{all:?}, hop {hop}"
    );
}

/// More packets than the queue has room for, while the hop does nothing: the others go by, and are counted.
#[test]
fn what_goes_by_is_counted() {
    const COUNT: u32 = 3_000;
    let then = "
        kill -CONT $hop
        end
        sleep 0.2
        export COUNT=1
        traffic b 10.0.2.2 a
        kill -INT $hop; wait $hop
        ip netns exec b cat /proc/net/snmp > counters
    ";
    let Some((dir, hop)) = stalled(COUNT, then) else {
        return;
    };
    let all = found(dir.path());
    println!("{all:?}, hop {hop}");
    let counters = fs::read_to_string(dir.path().join("counters")).unwrap();
    let udp: Vec<Vec<&str>> = counters
        .lines()
        .filter(|l| l.starts_with("Udp:"))
        .map(|l| l.split_whitespace().collect())
        .collect();
    let at = udp[0].iter().position(|name| *name == "RcvbufErrors").unwrap();
    // those for which the receiver had no room have arrived, too
    let without_room: u32 = udp[1][at].parse().unwrap();
    let of = |key: &str| all[0][key];
    assert_eq!(of("all") + without_room, COUNT, "{all:?}, hop {hop}");
    let missed = hop["missed"].as_u64().unwrap();
    assert!(missed > 0 && of("plain") > 0, "{all:?}, hop {hop}");
    let unmarked = u64::from(of("plain"))..=u64::from(of("plain") + without_room);
    assert!(unmarked.contains(&missed), "{all:?}, hop {hop}");
}
