//! Our own driver on sticks at a USB of Linux: in a guest of QEMU, with emulated sticks, which the kernel's driver has until
//! we take them. `cargo xtask lab` runs it.
//!
//! The guests have the time of this computer, so nothing here asserts a time.

mod sticks;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ar9170::codec::Firmware;
use ar9170::driver::Config;
use ar9170::usb::{UsbBus, UsbHost, read_firmware};
use frame::mac::Data;
use frame::{MacAddr, Rate, Wire};
use lab::conformance::{UsbSticks, body};
use radio::{Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, TxHow};
use sticks::Sticks;

/// Starts a test of this file within the guest, where Debian's firmware is in a folder of the kernel's choice.
const RUN: &str = r#"
set -e
mkdir -p /run/firmware
firmware=$(cat /sys/module/firmware_class/parameters/path)/carl9170-1.fw
echo "firmware $firmware"
STICK_FIRMWARE=$firmware "$INSIDE" --exact NAME --ignored --nocapture
"#;

fn run(name: &str, count: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let sticks = Sticks::serve(folder.path(), count, &[]);
    let text = sticks.guest(&RUN.replace("NAME", name));
    let seen = sticks.end();
    for stick in seen["sticks"].as_array().unwrap() {
        println!("{stick}");
        assert_eq!(stick["refused"], serde_json::Value::Null);
    }
    text
}

/// The file, inside a guest only.
fn firmware() -> Option<Vec<u8>> {
    let path = std::env::var("STICK_FIRMWARE").ok()?;
    Some(read_firmware(Some(Path::new(&path))).unwrap())
}

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn the_contract_is_kept() {
    let text = run("inside_contract", 2);
    assert!(text.contains("outcome acked"), "{text}");
}

#[test]
#[ignore = "runs in the guest of another test"]
fn inside_contract() {
    let Some(firmware) = firmware() else {
        return println!("skipped: this is the part within a guest");
    };
    let mut subject = UsbSticks::new(firmware).unwrap();
    let report = body(&mut subject);
    println!("{report}");
    assert_eq!(report.failures().collect::<Vec<_>>(), []);
    assert_eq!(report.declared().collect::<Vec<_>>(), [] as [&str; 0]);
}

/// Keeps some one-shots open to a station that is not there.
struct Busy {
    me: MacAddr,
    asked: u64,
    ended: [u64; 3],
    due: Option<Instant>,
}

impl Busy {
    fn ask(&mut self, radio: &mut dyn Radio) {
        let nobody = MacAddr::local(9);
        let mut frame = [0; 100];
        let octets = Data::direct(nobody, self.me, nobody, &[0; 60])
            .emit(&mut frame)
            .unwrap();
        let token = radio.token();
        radio.request(token, &frame[..octets], &TxHow::one_shot(Rate::OFDM_6));
        self.asked += 1;
    }
}

impl Protocol for Busy {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => (0..4).for_each(|_| self.ask(radio)),
            Event::Confirm(Confirm { outcome, .. }) => {
                match outcome {
                    Outcome::Refused(_) => {
                        // a while later again
                        self.ended[2] += 1;
                        self.due = Some(now + Duration::from_ms(1));
                        return;
                    }
                    Outcome::Unknown => self.ended[1] += 1,
                    _ => self.ended[0] += 1,
                }
                self.ask(radio);
            }
            Event::Timer => {
                self.due = None;
                self.ask(radio);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// The whole USB goes away under a stick with open requests, and is there again later.
#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn a_stick_is_unplugged_and_plugged_in_again() {
    let text = run("inside_unplugged", 1);
    assert!(text.contains("every request has ended once"), "{text}");
}

#[test]
#[ignore = "runs in the guest of another test"]
fn inside_unplugged() {
    let Some(file) = firmware() else {
        return println!("skipped: this is the part within a guest");
    };
    let controller = || -> String {
        let mut all = std::fs::read_dir("/sys/bus/pci/drivers/xhci_hcd").unwrap();
        let name = all.find_map(|e| {
            e.unwrap()
                .file_name()
                .into_string()
                .ok()
                .filter(|n| n.contains(':'))
        });
        name.expect("a controller")
    };
    let name = controller();
    let plug = |how: &str| std::fs::write(format!("/sys/bus/pci/drivers/xhci_hcd/{how}"), &name).unwrap();
    let me = MacAddr::local(1);
    let busy = Busy {
        me,
        asked: 0,
        ended: [0; 3],
        due: None,
    };
    let config = Config {
        address: Some(me),
        ..Config::default()
    };
    let bus = UsbBus::open("any").unwrap();
    // it is ours: nobody else gets it
    let again = UsbBus::open("any").map(|_| ()).unwrap_err().to_string();
    assert!(again.contains("another program uses the stick"), "{again}");
    let stop = AtomicBool::new(false);
    let mut host = UsbHost::new(bus, Firmware::parse(&file).unwrap(), config, busy, ());
    host.bring_up(Duration::from_ms(30_000), &stop).unwrap();
    let until = |host: &mut UsbHost<'_, Busy, ()>, what: &str, done: &dyn Fn(&Busy) -> bool| {
        for _ in 0..1_200 {
            host.run(Some(UsbHost::<Busy, ()>::now() + Duration::from_ms(50)), &stop);
            if done(host.protocol()) {
                return println!(
                    "{what}: {} asked, {:?} ended",
                    host.protocol().asked,
                    host.protocol().ended
                );
            }
        }
        panic!(
            "{what} did not come: {:?} {:?}",
            host.protocol().ended,
            host.counts()
        );
    };
    until(&mut host, "at work", &|busy| busy.ended[0] >= 100);
    plug("unbind");
    until(&mut host, "unplugged", &|busy| busy.ended[2] >= 10);
    plug("bind");
    let before = host.protocol().ended[0];
    until(&mut host, "at work again", &|busy| busy.ended[0] >= before + 100);
    stop.store(true, Ordering::Relaxed);
    host.finish(Duration::from_ms(30_000));
    println!("{:?}", host.counts());
    let (busy, ()) = host.into_parts();
    assert_eq!(busy.asked, busy.ended.iter().sum::<u64>());
    println!("every request has ended once");
}

/// A scenario with a node on a stick, by the command line.
const SCENARIO: &str = r#"
[run]
duration = "3s"
[[group]]
name = "ap"
phy = "g"
protocol.beaconer = { interval = "102400us", rate = "6M", send = { rate = "54M" } }
[[group]]
name = "station"
phy = "g"
ap = "ap"
protocol.oneshot = { to = "ap", pace.after_beacon = "20ms", send = { rate = "54M", tries = 1 } }
"#;

/// Runs two nodes of a scenario on two sticks of one guest, with such faults: what it printed, and what the sticks have seen.
fn deploy(scenario: &str, first: &str, second: &str, faults: &[&str]) -> (String, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let sticks = Sticks::serve(folder.path(), 2, faults);
    let file = folder.path().join("s.toml");
    std::fs::write(&file, scenario).unwrap();
    let text = sticks.guest(&format!(
        r#"
set -e
file={}
firmware=$(cat /sys/module/firmware_class/parameters/path)/carl9170-1.fw
set -- $(cd /sys/bus/usb/devices && grep -l 9170 */idProduct | cut -d/ -f1)
echo "sticks at $1 and $2"
{SDMAC} deploy $file --node {first} --iface usb:$1 --firmware $firmware > /tmp/first 2>&1 &
{SDMAC} deploy $file --node {second} --iface usb:$2 --firmware $firmware > /tmp/second 2>&1 || cat /tmp/second
wait
cat /tmp/first /tmp/second
echo "drivers are back: $(ls /sys/bus/usb/drivers/carl9170 | grep -c :1.0)"
"#,
        file.display(),
        SDMAC = sticks::SDMAC,
    ));
    assert!(text.contains("drivers are back: 2"), "{text}");
    let seen = sticks.end();
    println!("{seen}");
    (text, seen)
}

/// The line of a node's own that begins so.
fn line(text: &str, node: &str) -> String {
    let of = |line: &&str| line.starts_with(&format!("{node} ran"));
    let line = text.lines().find(of);
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn a_scenario_runs_on_sticks() {
    let (text, seen) = deploy(SCENARIO, "ap", "station", &[]);
    let (ap, station) = (line(&text, "ap"), line(&text, "station"));
    // one after each beacon of three seconds, as soon as both are up; beacons have no ACK
    let (asked, acked) = (number(&station, "frames sent"), number(&station, "acked"));
    assert!((10..=30).contains(&asked) && 10 * acked >= 9 * asked, "{text}");
    assert!(
        (20..=31).contains(&number(&ap, "frames sent")) && number(&ap, "acked") == 0,
        "{text}"
    );
    // what was acknowledged has come to the other end, but for what follows the last beacon: by then the access point may have ended;
    // and each beacon that was followed was heard
    assert!(number(&ap, "received") + 1 >= acked, "{text}");
    assert!(number(&station, "received") >= asked, "{text}");
    let refused = |stick: &serde_json::Value| stick["refused"] != serde_json::Value::Null;
    assert!(!seen["sticks"].as_array().unwrap().iter().any(refused), "{seen}");
}

/// The number before these words in a line of a node's own.
fn number(line: &str, what: &str) -> u64 {
    let mut parts = line.split([',', ':', ';']);
    let number = parts.find_map(|part| part.trim().strip_suffix(what)?.trim_end().parse().ok());
    number.unwrap_or_else(|| panic!("no `{what}` in `{line}`"))
}

/// How many messages of a flow, of which this is said.
fn told(text: &str, flow: u64, what: &str) -> u64 {
    let told = |line: &&str| line.starts_with(&format!("flow {flow}: ")) && line.ends_with(what);
    let line = text.lines().find(told);
    let number = line.and_then(|line| line.split(' ').nth(2)?.parse().ok());
    number.unwrap_or_else(|| panic!("flow {flow} {what}: {text}"))
}

/// At least so many messages of these flows were handed down, and nine in ten of them arrived.
fn arrived(text: &str, flows: &[u64], least: u64) {
    for &flow in flows {
        let count = |what| told(text, flow, what);
        let (down, here) = (count("handed to the protocol"), count("delivered here"));
        assert!(
            down >= least && here <= down && 10 * here >= 9 * down,
            "flow {flow}: {here} of {down}: {text}"
        );
    }
}

/// Two stations of an ad hoc network with power save, a key and the sticks' filter, which talk to each other.
const AD_HOC: &str = r#"
[run]
duration = "20s"
[[group]]
name = "robots"
phy = "g"
count = 2
protocol.ibss = { window_tu = 20, slot = "400us", wake_ahead = "8192us", receive_filter = true, key = "0f1e2d3c4b5a69788796a5b4c3d2e1f0", send = { rate = "24M" } }
[[traffic]]
from = "robots.0"
to = "robots.1"
octets = 50
pattern.periodic = { period = "300ms" }
[[traffic]]
from = "robots.1"
to = "robots.0"
octets = 50
pattern.periodic = { period = "300ms" }
"#;

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn an_ad_hoc_network_runs_on_sticks() {
    let (text, seen) = deploy(AD_HOC, "robots.0", "robots.1", &[]);
    // one in 300 ms
    arrived(&text, &[0, 1], 60);
    // the hardware knows the network, and its time is read in each interval
    for stick in seen["sticks"].as_array().unwrap() {
        let reads = stick["commands"]["ReadTsf"].as_u64();
        assert!(reads > Some(50), "{stick}");
        // and the filter follows the parts of the intervals
        let filters = stick["commands"]["RxFilter"].as_u64();
        assert!(filters > Some(50), "{stick}");
    }
}

/// What sticks say comes late and together, a response of each is skipped, for which our driver starts it anew, and one status in a hundred is lost.
#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn an_ad_hoc_network_outlives_faults_of_sticks() {
    let faults = [
        ["--late", "0.1"],
        ["--late-us", "2000"],
        ["--skip-response", "250"],
        ["--lost-status", "0.01"],
    ];
    let (text, seen) = deploy(AD_HOC, "robots.0", "robots.1", faults.as_flattened());
    for (flow, node) in [(0, "robots.1"), (1, "robots.0")] {
        let here = told(&text, flow, "delivered here");
        assert!(here >= 20, "flow {flow}: {here}: {text}");
        // those that the stick had when it was started anew, or whose status was lost
        assert!(!line(&text, node).contains(" 0 unknown"), "{text}");
    }
    for stick in seen["sticks"].as_array().unwrap() {
        // brought up anew
        assert!(stick["commands"]["RfInit"].as_u64() > Some(1), "{stick}");
    }
}

/// A controller and a device with a slot each in a cycle, and clocks that follow the controller's beacons. Guards are those of an
/// emulated processor.
const TDMA: &str = r#"
[run]
duration = "20s"
[[schedule]]
name = "loop"
cycle = "200ms"
beacon = { from = "controller", rate = "6M", holdover = "3s" }
release = { min = "0us", high = "20ms" }
sync_error = "5ms"
send = { rate = "24M" }
[[group]]
name = "controller"
phy = "g"
protocol.tdma.schedule = "loop"
[[group]]
name = "device"
phy = "g"
ap = "controller"
protocol.tdma.schedule = "loop"
[[traffic]]
from = "controller"
to = "device"
octets = 58
category = "voice"
lifetime = "600ms"
pattern.periodic = { period = "200ms" }
[[traffic]]
from = "device"
to = "controller"
octets = 58
category = "voice"
lifetime = "600ms"
pattern.periodic = { period = "200ms" }
"#;

#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn a_schedule_runs_on_sticks() {
    let (text, seen) = deploy(TDMA, "controller", "device", &[]);
    let numbers = |line: &str| -> Vec<u64> {
        let words = line.split([' ', ',']);
        words.filter_map(|word| word.parse().ok()).collect()
    };
    // one in each cycle
    arrived(&text, &[0, 1], 90);
    // used, failed, late, overruns, expired, without a slot: who has no clock in common with the controller uses none
    let slots: Vec<_> = text.lines().filter(|l| l.starts_with("slots: ")).collect();
    assert_eq!(slots.len(), 2, "{text}");
    for line in slots {
        let [used, failed, _, overruns, expired, without] = numbers(line)[..] else {
            panic!("{line}")
        };
        assert!(used >= 90 && without == 0, "{line}");
        // those that were late are among those that failed: how many is this computer's affair, since sticks have its time
        assert!(2 * (failed + overruns + expired) <= used, "{line}");
    }
    // nothing that a schedule asks of an adapter is refused by a stick, and the controller has sent beacons besides its data
    assert!(!text.contains("settings that the protocol asked for"), "{text}");
    let frames: Vec<_> = (seen["sticks"].as_array().unwrap().iter())
        .map(|stick| stick["frames"].as_u64().unwrap())
        .collect();
    assert!(frames.iter().all(|n| *n > 0), "{seen}");
}

/// One stick measures, and the other one is the station that acknowledges.
#[test]
#[ignore = "needs Debian's kernel in QEMU: cargo xtask lab"]
fn a_stick_is_measured() {
    const SHOTS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let sticks = Sticks::serve(folder.path(), 2, &[]);
    let text = sticks.guest(&format!(
        r#"
firmware=$(cat /sys/module/firmware_class/parameters/path)/carl9170-1.fw
set -- $(cd /sys/bus/usb/devices && grep -l 9170 */idProduct | cut -d/ -f1)
measure() {{ place=$1; shift; {SDMAC} measure --iface usb:$place --channel 2437 --firmware $firmware "$@"; }}
# not by the function: its number would be that of a shell
{SDMAC} measure --iface usb:$2 --channel 2437 --firmware $firmware --peer > /tmp/peer 2>&1 & peer=$!
n=0
until grep -q -- "--to " /tmp/peer; do
    sleep 1; n=$((n + 1))
    [ $n -lt 60 ] || {{ cat /tmp/peer; exit 9; }}
done
to=$(sed -n 's/.*--to //p' /tmp/peer)
cd /tmp
measure $1 --to $to --count {SHOTS} --period-us 20000 --json --report /tmp/report > /tmp/measured 2> /tmp/said
echo "code $?"
cat /tmp/said
echo "document $(tail -n 1 /tmp/measured)"
echo "files $(ls /tmp/report | tr '\n' ' ')"
ls /tmp/host.toml 2> /dev/null
kill -INT $peer; wait $peer
cat /tmp/peer
measure $1 --to $to --probes 2>&1; echo "with probes: code $?"
{SDMAC} certify --iface usb:$1 2>&1; echo "certified: code $?"
"#,
        SDMAC = sticks::SDMAC,
    ));
    sticks.end();
    assert!(text.contains("code 0"), "{text}");
    let document = text.lines().find_map(|line| line.strip_prefix("document "));
    let told: serde_json::Value = serde_json::from_str(document.unwrap()).unwrap();
    let condition = &told["conditions"][0];
    let counts = &condition["counts"];
    let number = |what: &str| counts[what].as_u64().unwrap();
    assert_eq!(number("shots"), SHOTS, "{told:#}");
    assert!(
        number("acked") > 0 && number("refused") == 0 && number("repeated") == 0,
        "{told:#}"
    );
    // the other stick has heard each that it acknowledged, and told so over the air
    assert_eq!(condition["told_by_peer"], true, "{told:#}");
    assert!(text.contains(": heard ") && text.contains("answered"), "{text}");
    // what shows at a stick: from the request until the USB has taken it, and until its confirm
    let rows = condition["rows"].as_array().unwrap();
    let of = |what: &str| {
        rows.iter()
            .filter(|r| r["set"] == "A" && r["what"] == what)
            .count()
    };
    assert_eq!(
        ["T_sw_req", "T_SDMAC", "T_hw", "T_sw_con"].map(of),
        [1, 1, 0, 0],
        "{told:#}"
    );
    let notes = told["notes"].to_string();
    assert!(
        notes.contains("a stick has t1, t4")
            && notes.contains("one of hardware")
            && notes.contains("no profile was written"),
        "{notes}"
    );
    assert!(!notes.contains("no certificate"), "{notes}");
    assert!(
        text.contains("report.html") && text.contains("samples.parquet"),
        "{text}"
    );
    assert!(!text.contains("host.toml\n"), "{text}");
    assert_eq!(told["driver"], "ar9170 of sdmac");
    for refused in [
        "with probes: code 2",
        "certified: code 2",
        "leave --probes and --confirm out",
    ] {
        assert!(text.contains(refused), "{refused}: {text}");
    }
}
