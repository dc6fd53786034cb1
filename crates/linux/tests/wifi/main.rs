//! The 802.11 side against the kernel at hand, on radios of mac80211_hwsim: run it in the lab, where SDMAC_LAB is set.
//! Elsewhere each test says that it is skipped; a radio of the user's is never touched.

mod faults;
mod ordinary;
mod probes;
mod requests;
mod setup;

use std::sync::atomic::{AtomicBool, Ordering};

use frame::mac::{AckPolicy, Flags, FrameControl, Kind, QosControl, SequenceControl};
use frame::{MacAddr, Rate};
use linux::wifi::{
    Adapter, AdapterConfig, Control, Host, HostConfig, Seat, SimulatedRadios, Wait, simulated_radios,
};
use radio::{
    AdapterId, Attribute, AttributeName, Checked, Confirm, Duration, Event, Instant, Outcome, Plane,
    Protocol, Radio, SetError, Token, Tsf, TxHow,
};

const CHANNEL: u16 = 2412;
const HOW: TxHow = TxHow::one_shot(Rate::OFDM_6);
const ABSENT: MacAddr = MacAddr::local(0xabad);

/// Two radios of the lab, for one test at a time; `None` where there is no lab.
fn lab() -> Option<(SimulatedRadios, [String; 2])> {
    let radios = simulated_radios(2)?;
    let names = [0, 1].map(|i: usize| radios.names[i].clone());
    Some((radios, names))
}

fn open(radio: &str) -> Adapter {
    Adapter::open(AdapterConfig::new(radio, CHANNEL)).unwrap()
}

fn cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

fn our_interfaces() -> Vec<String> {
    let all = Control::open().unwrap().interfaces().unwrap();
    all.into_iter()
        .map(|i| i.name)
        .filter(|n| n.starts_with("sdmac"))
        .collect()
}

fn data(kind: Kind, to: MacAddr, from: MacAddr, sequence: u16, tid: u8) -> Vec<u8> {
    let mut m = vec![0; 24];
    m[..2].copy_from_slice(&FrameControl::new(kind, Flags::NONE).0);
    m[4..10].copy_from_slice(&to.0);
    m[10..16].copy_from_slice(&from.0);
    m[16..22].copy_from_slice(&MacAddr::local(9).0);
    m[22..24].copy_from_slice(&SequenceControl::new(sequence, 0).0.to_le_bytes());
    if kind.is_qos() {
        m.extend(QosControl::new(tid, AckPolicy::Normal).0.to_le_bytes());
    }
    m.extend(b"payload");
    m
}

/// A frame that a script was told of.
struct Heard {
    frame: Vec<u8>,
    rate: Rate,
    tsf: Option<Tsf>,
    t8: Option<Instant>,
}

/// Does at its start what it was told, keeps what it is told, and notes when all is answered.
#[derive(Default)]
struct Script {
    requests: Vec<(Vec<u8>, TxHow)>,
    /// Aborts this request (by index) right after all were made.
    abort: Option<usize>,
    set: Vec<Attribute>,
    get: Vec<AttributeName>,
    tokens: Vec<Token>,
    confirms: Vec<Confirm>,
    answers: Vec<Result<(), SetError>>,
    got: Vec<Option<Attribute>>,
    heard: Vec<Heard>,
    beacons: Vec<(MacAddr, Tsf)>,
}

impl Protocol for Script {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                for (frame, how) in &self.requests {
                    let token = radio.token();
                    self.tokens.push(token);
                    let mut how = *how;
                    // Times of the script count from its start.
                    how.not_before = how.not_before.map(|t| now + t.since(Instant::ZERO));
                    how.expires = how.expires.map(|t| now + t.since(Instant::ZERO));
                    radio.request(token, frame, &how);
                }
                if let Some(index) = self.abort {
                    radio.abort(self.tokens[index]);
                }
                for attribute in &self.set {
                    let token = radio.token();
                    radio.set(token, AdapterId::FIRST, *attribute);
                }
                self.got = self
                    .get
                    .iter()
                    .map(|name| radio.get(AdapterId::FIRST, *name))
                    .collect();
            }
            Event::Confirm(c) => self.confirms.push(c),
            Event::Set(answer) => self.answers.push(answer.result),
            Event::Indication(i) => {
                self.heard.push(Heard {
                    frame: i.frame.to_vec(),
                    rate: i.rate,
                    tsf: i.tsf,
                    t8: i.stamps.get_host(Plane::T8),
                });
            }
            Event::Beacon(b) => self.beacons.push((b.bssid, b.timestamp)),
            Event::Timer | Event::Submit(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Runs a script on a host for 50 ms and to its end.
fn run(host: &mut Host, script: Script) -> Script {
    run_while(host, script, |_| false)
}

/// The same for another 50 ms, and another, up to ten seconds, as long as something has no confirm: an emulated processor may take them.
fn run_until_confirmed(host: &mut Host, script: Script) -> Script {
    run_while(host, script, |checked| !checked.open_tokens().is_empty())
}

fn run_while(host: &mut Host, script: Script, more: impl Fn(&Checked<Script>) -> bool) -> Script {
    let mut checked: Checked<Script> = Checked::strict(script);
    let end = Host::now() + Duration::from_ms(10_000);
    loop {
        let until = Host::now() + Duration::from_ms(50);
        host.run(&mut checked, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        if until >= end || !more(&checked) {
            break;
        }
    }
    host.finish(&mut checked, &mut ()).unwrap();
    checked.finish();
    checked.into_inner()
}

fn host(adapter: Adapter, config: HostConfig) -> Host {
    Host::new(vec![adapter], config).unwrap()
}

/// The outcomes of some requests, made at once by an adapter that is opened for them.
fn outcomes(radio: &str, requests: impl Fn(MacAddr) -> Vec<(Vec<u8>, TxHow)>) -> Vec<Confirm> {
    let adapter = open(radio);
    let requests = requests(adapter.address());
    let script = Script {
        requests,
        ..Script::default()
    };
    let script = run(&mut host(adapter, HostConfig::default()), script);
    let of = |token| *script.confirms.iter().find(|c| c.token == token).unwrap();
    script.tokens.iter().map(|t| of(*t)).collect()
}

/// Sends its frame at once, though its host has started already.
struct Resend(Vec<u8>, Option<Outcome>);

impl Protocol for Resend {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Timer => {
                let token = radio.token();
                radio.request(token, &self.0, &HOW);
                self.0.clear();
            }
            Event::Confirm(c) => self.1 = Some(c.outcome),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.0.is_empty()).then_some(Instant::ZERO)
    }
}
