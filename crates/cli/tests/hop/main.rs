//! `sdmac hop` in network namespaces: a - r - b, with the hop on r. Needs `ip`, `unshare`, and a kernel that lets this user
//! make namespaces and has queues for packets; where something is missing, the tests say what and are skipped.

mod bottleneck;
mod fragments;
mod full;
mod hung;
#[path = "../namespaces/mod.rs"]
mod namespaces;
mod network;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use network::script;
use protocols::transport::wire::{Control, Header, ProtocolId};

/// What the packets carry when they are sent, what the hop says, and what it says at most of packets that wait for each other.
const SENT_US: u32 = 500;
const HOP_US: u32 = 3_000;
const WAITING: u32 = 65;
const SILENCE: Duration = Duration::from_secs(4);

/// What a program said in JSON.
fn said(dir: &std::path::Path, name: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
}

/// What the receiver found, one map for each run.
fn found(dir: &std::path::Path) -> Vec<BTreeMap<String, u32>> {
    let text = std::fs::read_to_string(dir.join("receiver.out")).unwrap();
    let of = |line: &str| {
        line.split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.parse().unwrap()))
            .collect()
    };
    text.lines().filter(|l| l.starts_with("FOUND")).map(of).collect()
}

/// Both families: every packet arrives, with a right checksum (the kernel drops others) and the hop's delay; after
/// SIGKILL they arrive as they were sent; then a new hop begins where nothing was left behind, and ends by Ctrl-C.
#[test]
fn marked_in_both_families_and_open_when_killed() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        hop
        traffic b 10.0.2.2 a
        traffic b fd00:2::2 a
        traffic a 10.0.1.2 b
        cat delay > read
        kill -KILL $hop; wait $hop || true
        traffic b 10.0.2.2 a
        traffic b fd00:2::2 a
        hop --json
        traffic b fd00:2::2 r
        kill -INT $hop; wait $hop
        [ ! -e delay ]
        traffic b 10.0.2.2 a
    ";
    let Some(_) = script(dir.path(), text, 200, 1_000) else {
        return;
    };
    let all = found(dir.path());
    let of = |key: &str| all.iter().map(|m| m[key]).collect::<Vec<_>>();
    assert_eq!(of("all"), [200; 7], "{all:?}");
    // forwarded; in the other direction, which has no hop; without the daemon; sent by the hop itself; it has ended
    assert_eq!(of("marked"), [200, 200, 0, 0, 0, 200, 0], "{all:?}");
    assert_eq!(of("plain"), [0, 0, 200, 200, 200, 0, 200], "{all:?}");
    let read = std::fs::read_to_string(dir.path().join("read")).unwrap();
    let us: u32 = read.strip_suffix('\n').unwrap().parse().unwrap();
    assert!((HOP_US..=HOP_US * WAITING).contains(&us), "{us}");
    let said = said(dir.path(), "hop.out");
    assert_eq!(
        (
            &said["packets"],
            &said["marked"],
            &said["missed"],
            &said["refused"]
        ),
        (&200.into(), &200.into(), &0.into(), &0.into())
    );
}

/// The interface goes away: the hop says so and ends, and one that comes back carries packets as they are.
#[test]
fn an_interface_that_is_deleted_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        hop
        ip -n r link del tob
        code=0; wait $hop || code=$?
        echo $code > code
        [ ! -e delay ]
        ip link add name eb netns b type veth peer name tob netns r
        ip -n b link set eb up; ip -n r link set tob up
        ip -n r addr add 10.0.2.1/24 dev tob; ip -n b addr add 10.0.2.2/24 dev eb
        ip -n b route add default via 10.0.2.1
        traffic b 10.0.2.2 a
    ";
    let Some(_) = script(dir.path(), text, 20, 1_000) else {
        return;
    };
    let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("code").trim(), "1");
    assert!(
        read("hop.err").contains("tob: the interface is gone"),
        "{}",
        read("hop.err")
    );
    let all = found(dir.path());
    assert_eq!((all[0]["all"], all[0]["plain"]), (20, 20), "{all:?}");
}

/// What keeps this computer from more: `sent` has seconds and packets that went out late, for each run; `arrived` how many came,
/// the first time without the hop.
fn limit(count: u32, rate: u32, sent: &[(f64, u32)], arrived: &[u32], missed: u64, share: f64) -> String {
    let due = f64::from(count) / f64::from(rate);
    let slowest = sent.iter().map(|s| s.0).fold(0.0, f64::max);
    if slowest > 1.05 * due {
        return format!("the sender: {slowest:.2} s for what is due in {due:.2} s");
    }
    if missed > 0 {
        return format!("the hop: {missed} packets went by unmarked");
    }
    let lost = arrived.iter().map(|n| count - n).max().unwrap_or(0);
    if lost > 0 {
        let without = arrived.first().map_or(0, |n| count - n);
        return format!("the receiver: {lost} packets lost in its buffer, {without} without the hop");
    }
    format!("nothing: the hop takes {:.0} % of a processor", 100.0 * share)
}

#[test]
fn what_limits_is_named() {
    let named = |sent, arrived, missed| {
        let said = limit(200, 100, &[(2.0, 0), (sent, 9)], &[200, arrived], missed, 0.3);
        said.split(':').next().unwrap().to_owned()
    };
    assert_eq!(named(2.2, 100, 1), "the sender");
    assert_eq!(named(2.0, 100, 1), "the hop");
    assert_eq!(named(2.0, 199, 0), "the receiver");
    assert_eq!(named(2.0, 200, 0), "nothing");
}

/// What this computer manages: printed, not judged, but for what holds at any speed: what comes is marked, or counted. The step
/// `hop` of `cargo xtask test` runs it.
#[test]
#[ignore = "a measurement: cargo test --release -p sdmac --test hop twenty -- --ignored --nocapture"]
fn twenty_thousand_packets_a_second() {
    const COUNT: u32 = 200_000;
    const RATE: u32 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let text = "
        traffic b 10.0.2.2 a
        hop --json
        traffic b 10.0.2.2 a
        traffic b fd00:2::2 a
        grep -h '' /proc/$hop/stat > stat
        kill -INT $hop; wait $hop
    ";
    let Some(_) = script(dir.path(), text, COUNT, RATE) else {
        return;
    };
    let runs = found(dir.path());
    for (name, m) in ["without hop", "IPv4", "IPv6"].iter().zip(&runs) {
        println!("{name}: {m:?}");
        assert!(m["marked"] + m["plain"] == m["all"]);
    }
    let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let said: serde_json::Value = serde_json::from_str(&read("hop.out")).unwrap();
    println!("the hop: {said}");
    let sent: Vec<(f64, u32)> = read("sender.out").lines().filter_map(sent).collect();
    println!("sent, seconds and packets more than 1 ms late: {sent:?}");
    // user and system, in ticks of 10 ms (proc(5)); half of the packets by each of two runs
    let stat = read("stat");
    let ticks = stat
        .split(' ')
        .skip(13)
        .take(2)
        .map(|n| n.parse::<f64>().unwrap());
    let seconds = ticks.sum::<f64>() / 100.0;
    let share = seconds / sent.iter().skip(1).map(|s| s.0).sum::<f64>();
    println!(
        "CPU of the hop: {:.1} us a packet",
        seconds * 1e6 / f64::from(2 * COUNT)
    );
    let arrived: Vec<u32> = runs.iter().map(|m| m["all"]).collect();
    let missed = said["missed"].as_u64().unwrap();
    println!(
        "LIMIT {RATE} packets/s, limited by {}",
        limit(COUNT, RATE, &sent, &arrived, missed, share)
    );
}

/// What a sender says: seconds, and packets that were late.
fn sent(line: &str) -> Option<(f64, u32)> {
    let words: Vec<&str> = line.strip_prefix("sent ")?.split(' ').collect();
    Some((words.get(2)?.parse().ok()?, words.get(4)?.parse().ok()?))
}

#[test]
fn bad_input_gets_a_sentence() {
    let cases: [(&[&str], &str); 5] = [
        (&["no-such-if", "--delay", "1ms"], "no-such-if"),
        (&["lo", "--delay", "1ms", "--port", "0"], "--port"),
        (
            &["lo", "--delay", "1ms", "--idle-multiplier", "0"],
            "--idle-multiplier",
        ),
        (&["lo", "--delay", "often"], "often"),
        (&["lo", "--delay", "1ms", "--port", "70000"], "70000"),
    ];
    for (args, part) in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_sdmac"))
            .arg("hop")
            .args(args)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(part), "{args:?}: {errors}");
    }
}

/// Parts of the tests that run in another namespace: started by the scripts.
mod roles {
    use super::*;

    fn number(name: &str) -> Option<u32> {
        std::env::var(name).ok()?.parse().ok()
    }

    #[test]
    #[ignore = "a part of another test"]
    fn sender() {
        let (Some(count), Some(rate), Ok(to)) = (number("COUNT"), number("RATE"), std::env::var("TO")) else {
            return;
        };
        let any = if to.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect((to.as_str(), 7800)).unwrap();
        std::fs::write("sending", "").unwrap();
        // a word to begin, where one is awaited
        while std::env::var("GO").is_ok_and(|go| !std::path::Path::new(&go).exists()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        let mut late = 0;
        for n in 0..count {
            let due = Duration::from_secs(1) * n / rate;
            let now = begun.elapsed();
            match due.checked_sub(now) {
                Some(rest) => std::thread::sleep(rest),
                None => late += u32::from(now - due > Duration::from_millis(1)),
            }
            // an odd number of octets now and then, since the checksum is over pairs
            let packet = [&header(n).octets()[..], &vec![n as u8; 1_200 + n as usize % 3]].concat();
            socket.send(&packet).unwrap();
        }
        println!(
            "sent {count} in {:.3} s, {late} of them more than 1 ms late",
            begun.elapsed().as_secs_f64()
        );
    }

    fn header(n: u32) -> Header {
        Header {
            sequence: n,
            delay_us: SENT_US,
            // hops are to tell their delay as it is, not multiplied
            options: protocols::transport::wire::OPTION_RAW_DELAY,
            ..Header::new(ProtocolId::Atp, Control::ACK)
        }
    }

    #[test]
    #[ignore = "a part of another test"]
    fn receiver() {
        let (Some(count), Ok(to)) = (number("COUNT"), std::env::var("TO")) else {
            return;
        };
        let socket = UdpSocket::bind((to.as_str(), 7800)).unwrap();
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20);
        std::fs::write("listening", "").unwrap();
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        let (mut all, mut marked, mut plain, mut late, mut next) = (0, 0, 0, 0, 0);
        let marks = HOP_US..=HOP_US * WAITING;
        let mut octets = [0; 2_000];
        while all < count {
            let Ok(n) = socket.recv(&mut octets) else { break };
            let (got, body) = Header::parse(&octets[..n]).unwrap();
            let sent = header(got.sequence);
            assert_eq!(body, vec![got.sequence as u8; 1_200 + got.sequence as usize % 3]);
            let with = Header {
                hops: 1,
                delay_us: got.delay_us,
                ..sent
            };
            let is_marked = got == with && marks.contains(&got.delay_us);
            assert!(got == sent || is_marked, "{got:?}");
            all += 1;
            marked += u32::from(is_marked);
            plain += u32::from(got == sent);
            // behind others that were sent after it
            late += u32::from(got.sequence < next);
            next = next.max(got.sequence + 1);
        }
        println!("\nFOUND all={all} marked={marked} plain={plain} late={late}");
    }
}
