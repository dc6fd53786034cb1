//! Interfaces and attributes: made, set, refused and removed, whatever becomes of the process.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use frame::mac::Kind;
use linux::wifi::{Carrier, Error, Monitor, TsfSource};
use radio::Refusal;

use super::*;

#[test]
fn interfaces_come_and_go() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    {
        let a = open(&first);
        let b = open(&second);
        assert_eq!((a.monitor(), b.monitor()), (Monitor::Active, Monitor::Active));
        let names: Vec<&str> = a.interfaces().chain(b.interfaces()).collect();
        assert_eq!(names.len(), 4, "each with its cook monitor: {names:?}");
        let mut there = our_interfaces();
        there.sort();
        assert_eq!(there, names);
        assert!(a.address() != b.address() && !a.address().is_group());
        assert!(matches!(
            Adapter::open(AdapterConfig::new(&first, CHANNEL)),
            Err(Error::InUse { .. })
        ));
    }
    assert!(our_interfaces().is_empty());
    assert!(matches!(
        Adapter::open(AdapterConfig::new("phy99", CHANNEL)),
        Err(Error::NoSuchRadio { have, .. }) if have.contains(&first)
    ));
    for mhz in [1_000, 5_955] {
        let error = Adapter::open(AdapterConfig::new(&first, mhz)).unwrap_err();
        assert!(matches!(error, Error::Channel { .. }), "{error}");
    }
    assert!(our_interfaces().is_empty(), "nor after errors");
    let address = Some(MacAddr::local(0x77));
    let other = Adapter::open(AdapterConfig {
        address,
        ..AdapterConfig::new(&first, CHANNEL)
    })
    .unwrap();
    assert_eq!(Some(other.address()), address);
}

#[test]
fn attributes_are_set_and_read() {
    let Some((_lab, [first, _])) = lab() else { return };
    let adapter = open(&first);
    let me = adapter.address();
    let set = vec![
        Attribute::Channel(2437),
        Attribute::TxPower(10),
        Attribute::Bssid(MacAddr::local(9)),
        Attribute::Promiscuous(true),
        Attribute::Channel(1_000),
        Attribute::Channel(2484),
        Attribute::SlotTime(9),
        Attribute::Tsf(Tsf(5)),
    ];
    let mut host = host(adapter, HostConfig::default());
    let script = run(
        &mut host,
        Script {
            set,
            ..Script::default()
        },
    );
    let (ok, no) = (Ok(()), |e| Err(e));
    let expect = [
        ok,
        ok,
        ok,
        ok,
        no(SetError::OutOfRange),
        no(SetError::Forbidden),
        no(SetError::NotSupported),
        no(SetError::NotSupported),
    ];
    assert_eq!(script.answers, expect);
    use AttributeName as Name;
    let get = vec![
        Name::Channel,
        Name::TxPower,
        Name::Bssid,
        Name::Promiscuous,
        Name::Address,
        Name::Tsf,
    ];
    let script = Script {
        get,
        ..Script::default()
    };
    // A second host on the same radio: the first is dropped with its interfaces.
    drop(host);
    let config = AdapterConfig {
        tsf: TsfSource::Computer,
        tx_power_dbm: Some(10),
        ..AdapterConfig::new(&first, 2437)
    };
    let mut host = self::host(Adapter::open(config).unwrap(), HostConfig::default());
    let script = run(&mut host, script);
    assert_eq!(
        script.got[..5],
        [
            Some(Attribute::Channel(2437)),
            Some(Attribute::TxPower(10)),
            Some(Attribute::Bssid(MacAddr::ZERO)),
            Some(Attribute::Promiscuous(false)),
            Some(Attribute::Address(me)),
        ]
    );
    assert!(matches!(script.got[5], Some(Attribute::Tsf(_))));
}

#[test]
fn a_channel_set_at_run_time_is_where_frames_go() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let adapter = open(&first);
    let me = adapter.address();
    let mut mouth = host(adapter, HostConfig::default());
    run(
        &mut mouth,
        Script {
            set: vec![Attribute::Channel(2437)],
            ..Script::default()
        },
    );
    let ear = |mhz| {
        let config = AdapterConfig::new(&second, mhz);
        host(Adapter::open(config).unwrap(), HostConfig::default())
    };
    for (mhz, heard) in [(2412, 0), (2437, 1)] {
        let mut ear = ear(mhz);
        // The script of a host that has started says nothing more, so the frame is sent by hand.
        let mut again = Resend(data(Kind::DATA, MacAddr::BROADCAST, me, mhz, 0), None);
        let until = Host::now() + Duration::from_ms(20);
        mouth
            .run(&mut again, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        assert_eq!(again.1, Some(Outcome::NotAcked));
        assert_eq!(run(&mut ear, Script::default()).heard.len(), heard, "{mhz} MHz");
    }
}

#[derive(Debug, PartialEq)]
enum Told {
    Answer(Result<(), SetError>),
    Outcome(Outcome),
}

/// Asks for another channel and sends at once.
struct Move {
    mhz: u16,
    frame: Vec<u8>,
    /// What it was told, in its order.
    told: Vec<Told>,
}

impl Protocol for Move {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                let token = radio.token();
                radio.set(token, AdapterId::FIRST, Attribute::Channel(self.mhz));
                let token = radio.token();
                radio.request(token, &self.frame, &HOW);
            }
            Event::Set(answer) => self.told.push(Told::Answer(answer.result)),
            Event::Confirm(c) => self.told.push(Told::Outcome(c.outcome)),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Its status would be lost on the way from one channel to the other; so it is held back, and sent on the new one.
#[test]
fn what_is_requested_after_a_new_channel_was_waits_for_it() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    for (mhz, answer) in [(2437, Ok(())), (1_000, Err(SetError::OutOfRange))] {
        let mut ear = host(
            Adapter::open(AdapterConfig::new(&second, 2437)).unwrap(),
            HostConfig::default(),
        );
        let adapter = open(&first);
        let mut node = Checked::<Move>::strict(Move {
            mhz,
            frame: data(Kind::DATA, MacAddr::BROADCAST, adapter.address(), 7, 0),
            told: Vec::new(),
        });
        let mut mouth = host(adapter, HostConfig::default());
        let until = Host::now() + Duration::from_ms(50);
        mouth
            .run(&mut node, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        mouth.finish(&mut node, &mut ()).unwrap();
        node.finish();
        let expect = [Told::Answer(answer), Told::Outcome(Outcome::NotAcked)];
        assert_eq!(node.into_inner().told, expect, "{mhz} MHz");
        let heard = run(&mut ear, Script::default()).heard.len();
        assert_eq!(heard, usize::from(mhz == 2437), "{mhz} MHz");
    }
}

#[test]
fn an_interface_that_goes_down_refuses() {
    let Some((_lab, [first, _])) = lab() else { return };
    let adapter = open(&first);
    let me = adapter.address();
    let name = adapter.interfaces().next().unwrap().to_owned();
    let mut host = host(adapter, HostConfig::default());
    let requests = || vec![(data(Kind::DATA, MacAddr::BROADCAST, me, 1, 0), HOW)];
    std::fs::write(format!("/sys/class/net/{name}/flags"), "0x0").unwrap();
    let script = run(
        &mut host,
        Script {
            requests: requests(),
            ..Script::default()
        },
    );
    assert_eq!(script.confirms[0].outcome, Outcome::Refused(Refusal::NoAdapter));
    assert_eq!(host.counters().sent, 0);
}

/// On channels where one may only listen, Linux would drop frames without a word.
#[test]
fn a_channel_to_listen_on_refuses() {
    let Some((_lab, [first, _])) = lab() else { return };
    let radio = Control::open().unwrap().wiphy(&first).unwrap();
    let passive = radio
        .bands
        .iter()
        .flat_map(|b| &b.channels)
        .find(|c| !c.is_disabled && !c.may_send());
    let Some(passive) = passive else {
        return eprintln!("skipped: under the rules that hold one may send everywhere");
    };
    let adapter = Adapter::open(AdapterConfig::new(&first, passive.mhz)).unwrap();
    let requests = vec![(data(Kind::DATA, ABSENT, adapter.address(), 1, 0), HOW)];
    let script = run(
        &mut host(adapter, HostConfig::default()),
        Script {
            requests,
            ..Script::default()
        },
    );
    assert_eq!(
        script.confirms[0].outcome,
        Outcome::Refused(Refusal::ChannelForbidden)
    );
}

/// Beside an ordinary interface that is up, a plain monitor sends only what bears that interface's address.
#[test]
fn a_plain_monitor_refuses_foreign_transmitters() {
    let Some((_lab, [first, _])) = lab() else { return };
    let all = Control::open().unwrap().interfaces().unwrap();
    let radio = Control::open().unwrap().wiphy(&first).unwrap();
    let wlan = all.iter().find(|i| i.wiphy == radio.index).unwrap();
    let flags = |value: &str| std::fs::write(format!("/sys/class/net/{}/flags", wlan.name), value).unwrap();
    let plain = || {
        Adapter::open(AdapterConfig {
            carrier: Carrier::Monitor(Some(Monitor::Plain)),
            ..AdapterConfig::new(&first, CHANNEL)
        })
        .unwrap()
    };
    let foreign = vec![(
        data(Kind::DATA, MacAddr::BROADCAST, MacAddr::local(0x55), 1, 0),
        HOW,
    )];
    let outcome = |adapter| {
        let script = Script {
            requests: foreign.clone(),
            ..Script::default()
        };
        run(&mut host(adapter, HostConfig::default()), script).confirms[0].outcome
    };
    // What another channel has left behind does not matter.
    drop(Adapter::open(AdapterConfig::new(&first, 5260)));
    assert_eq!(outcome(plain()), Outcome::NotAcked, "alone it sends everything");
    let adapter = plain();
    flags("0x1");
    let refused = outcome(adapter);
    flags("0x0");
    assert_eq!(refused, Outcome::Refused(Refusal::AddressForbidden));
}

const CHILD: &str = "SDMAC_TEST_RADIO";

/// Not a test of its own: opens a radio, says how that went, and waits to be killed.
#[test]
fn child() {
    let Ok(radio) = std::env::var(CHILD) else { return };
    let config = AdapterConfig {
        tx_power_dbm: Some(3),
        ..AdapterConfig::new(&radio, CHANNEL)
    };
    match Adapter::open(config) {
        Ok(adapter) => {
            println!("open {}", adapter.swept());
            std::thread::sleep(std::time::Duration::from_secs(3_600));
        }
        Err(error) => println!("error {error}"),
    }
}

fn child_process(radio: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["setup::child", "--exact", "--nocapture"])
        .env(CHILD, radio)
        .stdout(Stdio::piped());
    command
}

/// The least transmit power of a radio's interfaces, dBm.
fn power(radio: &str) -> Option<i8> {
    let mut control = Control::open().unwrap();
    let wiphy = control.wiphy(radio).unwrap().index;
    let all = control.interfaces().unwrap();
    let powers = all.iter().filter(|i| i.wiphy == wiphy).map(|i| i.tx_power_dbm);
    powers.flatten().min()
}

#[test]
fn a_process_that_is_killed_leaves_nothing() {
    let Some((_lab, [first, _])) = lab() else { return };
    let mut child = child_process(&first).spawn().unwrap();
    while our_interfaces().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(matches!(
        Adapter::open(AdapterConfig::new(&first, CHANNEL)),
        Err(Error::InUse { .. })
    ));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_open = |line: &String| line.contains("open ");
    assert!(lines.map_while(Result::ok).any(|line| is_open(&line)));
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    // The kernel makes a power known with the next change of the radio.
    assert_eq!(power(&first), Some(3), "as that process had set it");
    let adapter = open(&first);
    assert_eq!(our_interfaces().len(), 2, "its own alone");
    assert!(power(&first) > Some(3), "given back: {:?}", power(&first));
    drop(adapter);
    assert!(our_interfaces().is_empty());
}

#[test]
fn without_the_right_it_says_which_one() {
    let Some((_lab, [first, _])) = lab() else { return };
    let output = child_process(&first).uid(65_534).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("error not allowed to") && text.contains("CAP_NET_ADMIN"),
        "{text}"
    );
    assert!(our_interfaces().is_empty());
}
