//! An unmodified Linux runs our emulated AR9170 sticks: its driver carl9170 finds them, brings them up, and its ad hoc
//! networks work over them, among themselves and with our own driver and network. `cargo xtask lab` runs it.
//!
//! The guests have the time of this computer, so nothing here asserts a time.

mod sticks;

use std::time::{Duration, Instant};

use linux::wifi::OrdinarySocket;
use serde_json::Value;
use sticks::Sticks;

/// EtherType of the payloads of our protocols.
const PAYLOADS: u16 = 0x88b5;
/// Payloads that go to our own station and back.
const ECHOES: u64 = 20;

/// The table of commands of one stick.
fn table(stick: &Value) {
    for key in ["commands", "asynchronous"] {
        println!("{} {key}: {}", stick["address"], stick[key]);
    }
}

fn count(stick: &Value, key: &str, name: &str) -> u64 {
    stick[key][name].as_u64().unwrap_or(0)
}

/// What each change of the channel takes, and the statistics that Linux reads every 30 s. 74 reads are those of the EEPROM, eight words
/// each.
fn channels(stick: &Value, changes: std::ops::RangeInclusive<u64>) {
    let n = |name| count(stick, "commands", name);
    let (rf, writes) = (n("RfInit"), n("WriteRegisters"));
    assert!(changes.contains(&rf) && n("FrequencyStart") == rf, "{stick}");
    assert!((2 * rf..=2 * rf + 10).contains(&n("Tally")), "{stick}");
    assert!((74 + rf..=74 + rf + 10).contains(&n("ReadRegisters")), "{stick}");
    // the tables of a channel, and what is set once when it comes up
    assert!((80 * rf..=90 * rf + 100).contains(&writes), "{stick}");
}

/// Probe alone: 74 reads of the EEPROM, ECHO, two words for the light; then up.
const PROBE: &str = r#"
set -e
interface=$(ls /sys/class/ieee80211/phy*/device/net)
echo "interface $interface driver $(basename "$(readlink /sys/class/net/$interface/device/driver)")"
ip link set $interface up
iw dev $interface info
ip link set $interface down
dmesg 2>/dev/null | grep -i carl9170 || true
"#;

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn linux_finds_a_stick_and_brings_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let sticks = Sticks::serve(folder.path(), 1, &[]);
    let text = sticks.guest(PROBE);
    assert!(text.contains("interface wlan0 driver carl9170"), "{text}");
    assert!(text.contains("addr 02:00:91:70:00:00"), "{text}");
    let seen = sticks.end();
    let stick = &seen["sticks"][0];
    table(stick);
    assert_eq!(stick["starts"], 1, "it was not started anew: {stick}");
    assert_eq!(count(stick, "commands", "Echo"), 1);
    channels(stick, 1..=1);
    // two for each of 68 users
    let keys = |name| count(stick, "commands", name) + count(stick, "asynchronous", name);
    assert_eq!((keys("EnableKey"), keys("DisableKey")), (136, 64));
}

/// Two stations of one guest, each in a network namespace of its own, in one ad hoc network: the second one finds it by
/// a scan, and both ping each other.
const PAIR: &str = r#"
set -e
for n in 0 1; do
    interface=$(ls /sys/class/ieee80211/phy$n/device/net)
    ip netns add ns$n
    iw phy phy$n set netns name ns$n
    echo "$interface" > /run/interface$n
done
in0="ip netns exec ns0"; i0=$(cat /run/interface0)
in1="ip netns exec ns1"; i1=$(cat /run/interface1)
start() { $1 iw dev $2 set type ibss; $1 ip link set $2 up; $1 ip address add 10.9.0.$3/24 dev $2; }
start "$in0" $i0 1
start "$in1" $i1 2
$in0 iw dev $i0 ibss join pair 2412
for n in $(seq 60); do
    if $in1 iw dev $i1 scan | grep -q 'SSID: pair'; then echo "scan found it"; break; fi
    sleep 1
done
$in1 iw dev $i1 ibss join pair 2412
for n in $(seq 60); do
    if $in1 busybox ping -c 1 -W 2 10.9.0.1 > /dev/null; then break; fi
done
$in1 busybox ping -c 20 -i 0.3 -W 5 10.9.0.1 | tail -n 2
$in0 busybox ping -c 20 -i 0.3 -W 5 10.9.0.2 | tail -n 2
for n in 0 1; do ip netns exec ns$n iw dev; done
"#;

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn two_linux_stations_find_and_ping_each_other() {
    let folder = tempfile::tempdir().unwrap();
    // one in twenty of what a stick says is late, and what comes meanwhile is in the same transfer
    let sticks = Sticks::serve(folder.path(), 2, &["--late", "0.05", "--late-us", "2000"]);
    let text = sticks.guest(PAIR);
    assert!(text.contains("scan found it"), "{text}");
    // both directions; a few answers that were late on a busy computer are none of the sticks' affair
    let received: Vec<u32> = text
        .lines()
        .filter_map(|line| {
            line.split(", ")
                .nth(1)?
                .strip_suffix(" packets received")?
                .parse()
                .ok()
        })
        .collect();
    assert!(received.len() == 2 && received.iter().all(|n| *n >= 18), "{text}");
    let seen = sticks.end();
    for stick in seen["sticks"].as_array().unwrap() {
        table(stick);
        // a scan is a change to each of the channels and one back, and who joins scans first
        channels(stick, 13..=300);
        assert_eq!(stick["starts"], 1, "it was not started anew: {stick}");
        // a beacon for each interval
        assert!(count(stick, "commands", "Beacon") + count(stick, "asynchronous", "Beacon") > 10);
        assert!(stick["frames"].as_u64().unwrap() > 40);
    }
}

/// A Linux station in the network that our own driver and our own protocol have made. A response is skipped while Linux
/// brings its stick up, so it has to start it anew first.
const STRANGERS: &str = r#"
set -e
interface=$(ls /sys/class/ieee80211/phy*/device/net)
iw dev $interface set type ibss
# the response is lost while it comes up, so that fails once
for n in $(seq 30); do
    if ip link set $interface up; then echo "up after $n"; break; fi
    sleep 1
done
for n in $(seq 60); do
    if iw dev $interface scan 2> /dev/null | grep -q 'SSID: robots'; then echo "scan found it"; break; fi
    sleep 1
done
iw dev $interface ibss join robots 2412
STICK_INTERFACE=$interface "$INSIDE" --exact inside --ignored --nocapture > /tmp/inside
grep 'came back' /tmp/inside
iw dev $interface link
dmesg | grep -i -e lost -e restart
"#;

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn linux_and_our_own_station_are_one_network_after_a_lost_response() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--station", "robots", "--skip-response", "200"];
    let sticks = Sticks::serve(folder.path(), 1, &more);
    let text = sticks.guest(STRANGERS);
    assert!(text.contains("scan found it"), "{text}");
    assert!(text.contains("all came back"), "{text}");
    let seen = sticks.end();
    let (stick, station) = (&seen["sticks"][0], &seen["station"]);
    table(stick);
    println!("{station}");
    assert_eq!(stick["starts"], 2, "once more after the lost response: {stick}");
    for word in [
        "lost 1 command responses",
        "restart device (8)",
        "device restarted successfully",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    channels(stick, 2..=200);
    assert!(station["delivered"].as_u64().unwrap() >= ECHOES);
    assert!(station["beacons"].as_u64().unwrap() > 0);
    // Linux's stick has taken over our clock, which was the later one by 1000 s; whose beacon comes later may differ by what
    // is lost by rounding
    let tsf = |of: &Value| of["tsf_us"].as_u64().unwrap();
    assert!(tsf(station) > 1_000_000_000, "{station}");
    assert!(tsf(stick).abs_diff(tsf(station)) < 10, "{stick} {station}");
    assert_eq!(station["merges"], 0);
    let bssid = station["bssid"].as_str().unwrap();
    assert!(text.contains(bssid), "Linux is in the network {bssid}: {text}");
}

/// The part within the guest: payloads for our station, which sends them back.
#[test]
#[ignore = "runs in the guest of another test"]
fn inside() {
    let Ok(interface) = std::env::var("STICK_INTERFACE") else {
        return println!("skipped: this is the part within a guest");
    };
    let socket = OrdinarySocket::hearing(&interface, PAYLOADS).unwrap();
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/address")).unwrap();
    let octets = text.trim().split(':').map(|o| u8::from_str_radix(o, 16).unwrap());
    let me: Vec<u8> = octets.collect();
    let begun = Instant::now();
    let (mut to, mut back) = (vec![0xff; 6], 0);
    while back < ECHOES && begun.elapsed() < Duration::from_secs(200) {
        // the first ones are for everybody, until our station is known by its answer
        let payload = format!("number {back}");
        let frame = [&to[..], &me, &PAYLOADS.to_be_bytes(), payload.as_bytes()].concat();
        if socket.send(&frame).is_err() {
            // not a member yet
            std::thread::sleep(Duration::from_millis(200));
            continue;
        }
        let sent = Instant::now();
        let mut buffer = [0; 1_600];
        while sent.elapsed() < Duration::from_secs(1) {
            if let Some(octets) = socket.receive(&mut buffer).unwrap() {
                let answer = &buffer[..octets];
                if answer[..6] == me && answer[14..].starts_with(payload.as_bytes()) {
                    to = answer[6..12].to_vec();
                    back += 1;
                    break;
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    println!("{back} payloads came back from {to:02x?}");
    assert_eq!(back, ECHOES);
    println!("all came back");
}
