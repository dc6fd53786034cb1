//! Requests through an ordinary interface, in an ad hoc network of Linux's, with outcomes by SO_WIFI_STATUS.

mod faults;

use frame::mac::{FrameType, Header};
use frame::rate::{GuardInterval, Mcs, Width};
use linux::wifi::confirm::Path;
use linux::wifi::{AdHoc, Carrier, Error, Interface, OrdinarySocket, TsfSource};
use radio::{Queue, Refusal, RtsPolicy};

use super::*;

/// A channel where all basic rates are OFDM.
const MHZ: u16 = 5180;
const RATE: Rate = Rate::OFDM_24;
const HOW: TxHow = TxHow::multi_shot(RATE, 4);
const BSSID: MacAddr = MacAddr::local(0x1b55);
const NETWORK: AdHoc<'static> = AdHoc {
    ssid: "sdmac",
    mhz: MHZ,
    bssid: Some(BSSID),
};
const PATIENCE: Duration = Duration::from_ms(300);

/// The ordinary interface of a radio.
fn ordinary(control: &mut Control, radio: &str) -> Interface {
    let wiphy = control.wiphy(radio).unwrap().index;
    let all = control.interfaces().unwrap();
    let found = all
        .into_iter()
        .find(|i| i.wiphy == wiphy && i.name.starts_with("wlan"));
    found.unwrap()
}

/// Waits for something that the kernel does in a thread of its own.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("within 30 s there is not: {what}");
}

/// Stations of one ad hoc network, which have heard each other; out of it when this is dropped.
struct Stations {
    all: Vec<Interface>,
    control: Control,
    _turn: SimulatedRadios,
}

impl Drop for Stations {
    fn drop(&mut self) {
        for one in &self.all {
            let _ = self.control.set_down(one); // One whose radio is gone is.
        }
    }
}

fn has_carrier(interface: &Interface) -> bool {
    let file = format!("/sys/class/net/{}/carrier", interface.name);
    std::fs::read_to_string(file).is_ok_and(|c| c.trim() == "1")
}

/// Makes radios stations of the network, and waits until each knows the others.
fn stations_of(turn: SimulatedRadios, radios: &[String]) -> Stations {
    let mut control = Control::open().unwrap();
    let all: Vec<_> = radios.iter().map(|r| ordinary(&mut control, r)).collect();
    for one in &all {
        // Nothing but ours is to be on the air.
        let silent = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", one.name);
        let _ = std::fs::write(silent, "1"); // Without IPv6 there is no such file.
        control.join_ad_hoc(one, &NETWORK).unwrap();
    }
    wait_for("a network", || all.iter().all(has_carrier));
    // A station is known when its beacon was heard; they are 100 TU apart.
    std::thread::sleep(std::time::Duration::from_secs(1));
    Stations {
        all,
        control,
        _turn: turn,
    }
}

/// The first two radios; the third one may listen.
fn stations() -> Option<Stations> {
    let radios = simulated_radios(3)?;
    let names = radios.names[..2].to_vec();
    Some(stations_of(radios, &names))
}

fn config(interface: &Interface) -> AdapterConfig {
    AdapterConfig {
        carrier: Carrier::Ordinary(RATE),
        ..AdapterConfig::new(&interface.name, MHZ)
    }
}

fn host_on(interface: &Interface) -> Host {
    let config = config(interface);
    let by_status = HostConfig {
        confirm: Path::Status,
        confirm_timeout: PATIENCE,
        ..HostConfig::default()
    };
    host(Adapter::open(config).unwrap(), by_status)
}

/// A frame of data as protocols make it: without LLC/SNAP, and with the number of the frame in its body.
fn frame(kind: Kind, from: &Interface, to: MacAddr, number: u16, tid: u8) -> Vec<u8> {
    let mut m = data(kind, to, from.address, number, tid);
    m.extend(number.to_be_bytes());
    m
}

/// A monitor of another radio that hears all frames of the network.
struct Ear(Host);

impl Ear {
    fn on(radio: &str) -> Ear {
        let adapter = Adapter::open(AdapterConfig::new(radio, MHZ)).unwrap();
        let mut ear = Ear(host(adapter, HostConfig::default()));
        let script = Script {
            set: vec![Attribute::Promiscuous(true)],
            ..Script::default()
        };
        assert_eq!(run(&mut ear.0, script).answers, [Ok(())]);
        ear
    }

    /// The frames of data that have come by now.
    fn heard(&mut self) -> Vec<Heard> {
        let mut script = Script::default();
        let until = Host::now() + Duration::from_ms(20);
        let stop = AtomicBool::new(false);
        self.0.run(&mut script, &mut (), Some(until), &stop).unwrap();
        let is_data = |h: &Heard| Header::parse(&h.frame).unwrap().frame_type() == FrameType::Data;
        script.heard.into_iter().filter(is_data).collect()
    }
}

/// Requests at the start of a host; their confirms in the order of the requests.
fn asked(host: &mut Host, requests: Vec<(Vec<u8>, TxHow)>) -> Vec<Confirm> {
    let script = Script {
        requests,
        ..Script::default()
    };
    let script = run(host, script);
    let of = |token| *script.confirms.iter().find(|c| c.token == token).unwrap();
    script.tokens.iter().map(|t| of(*t)).collect()
}

fn outcomes_of(confirms: &[Confirm]) -> Vec<Outcome> {
    confirms.iter().map(|c| c.outcome).collect()
}

/// What is on the air is the body as it was, behind a header of Linux's, at the one rate and in the queue that was asked for; and
/// the outcome is whether the other one acknowledged it.
#[test]
fn frames_go_as_they_are_asked_for_and_outcomes_are_told() {
    let Some(mut stations) = stations() else { return };
    let [a, b] = [stations.all[0].clone(), stations.all[1].clone()];
    let mut ear = Ear::on(&simulated_radio_name(&mut stations.control, 2));
    let of_tid = |tid: u8| match tid {
        1 | 2 => Queue::Background,
        4 | 5 => Queue::Video,
        6 | 7 => Queue::Voice,
        _ => Queue::BestEffort,
    };
    let tids: [u8; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 7];
    let requests = (0..).zip(tids).map(|(n, tid)| {
        let how = HOW.queue(of_tid(tid));
        (frame(Kind::QOS_DATA, &a, b.address, n, tid), how)
    });
    let mut requests: Vec<_> = requests.collect();
    requests.push((frame(Kind::DATA, &a, b.address, 10, 0), HOW));
    requests.push((
        frame(Kind::DATA, &a, MacAddr::BROADCAST, 11, 0),
        TxHow::one_shot(RATE),
    ));
    let first = Script {
        requests,
        get: vec![
            AttributeName::Capabilities,
            AttributeName::Channel,
            AttributeName::Address,
        ],
        set: vec![
            Attribute::Channel(5200),
            Attribute::TxPower(3),
            Attribute::Promiscuous(true),
        ],
        ..Script::default()
    };
    let mut host = host_on(&a);
    let script = run(&mut host, first);
    let [Some(Attribute::Capabilities(can)), channel, address] = script.got[..] else {
        panic!("{:?}", script.got);
    };
    assert!(
        !can.one_shot && !can.attempts && can.not_before && can.abort,
        "{can:?}"
    );
    assert_eq!(
        (channel, address),
        (Some(Attribute::Channel(MHZ)), Some(Attribute::Address(a.address)))
    );
    let no = Err(SetError::NotSupported);
    assert_eq!(
        script.answers,
        [no, no, Ok(())],
        "channel and power are the network's"
    );
    let by_token = |token: &Token| *script.confirms.iter().find(|c| c.token == *token).unwrap();
    let confirms: Vec<Confirm> = script.tokens.iter().map(by_token).collect();
    let (group, single) = confirms.split_last().unwrap();
    assert!(single.iter().all(|c| c.outcome == Outcome::Acked), "{confirms:?}");
    assert_eq!(group.outcome, Outcome::Unknown, "of groups nothing is told");
    for confirm in single {
        let stamped = |p: &Plane| confirm.stamps.get_host(*p).is_some();
        let planes: Vec<Plane> = Plane::ALL.into_iter().filter(stamped).collect();
        assert_eq!(planes, [Plane::T1, Plane::T9]);
        assert_eq!((confirm.rate, confirm.attempts), (RATE, 1));
    }

    let mut heard = ear.heard();
    assert_eq!(heard.len(), 12);
    // Voice may overtake.
    let number = |h: &Heard| u16::from_be_bytes(*h.frame.last_chunk().unwrap());
    heard.sort_by_key(number);
    for (n, heard) in (0..).zip(&heard) {
        let header = Header::parse(&heard.frame).unwrap();
        assert_eq!(heard.rate, RATE, "{n}");
        assert_eq!(
            header.body(),
            [&b"payload"[..], &(n as u16).to_be_bytes()].concat(),
            "{n}"
        );
        assert_eq!(
            (header.transmitter(), header.address3()),
            (Some(a.address), Some(BSSID))
        );
        let to = if n == 11 { MacAddr::BROADCAST } else { b.address };
        assert_eq!(header.receiver(), to);
        let tid = tids.get(n).copied();
        let expect = match n {
            11 => None, // To a group there is no QoS.
            _ => Some(tid.unwrap_or(0)),
        };
        assert_eq!(header.tid(), expect, "{n}");
    }

    stations.control.set_down(&b).unwrap();
    let mut one = Once::new(frame(Kind::DATA, &a, b.address, 20, 0), HOW);
    let ended = one.outcome(&mut host);
    assert_eq!(ended, Some(Outcome::NotAcked), "it went: {:?}", host.counters());
    let mut one = Once::new(frame(Kind::DATA, &a, ABSENT, 21, 0), HOW);
    assert_eq!(
        one.outcome(&mut host),
        Some(Outcome::Unknown),
        "it was never there"
    );
}

fn simulated_radio_name(control: &mut Control, number: usize) -> String {
    control.wiphys().unwrap()[number].name.clone()
}

/// Sends its frame though its host has started already.
struct Once {
    frame: Vec<u8>,
    how: TxHow,
    outcome: Option<Outcome>,
}

impl Once {
    fn new(frame: Vec<u8>, how: TxHow) -> Once {
        Once {
            frame,
            how,
            outcome: None,
        }
    }

    /// How it ended, at the latest when the host's patience did.
    fn outcome(&mut self, host: &mut Host) -> Option<Outcome> {
        let until = Host::now() + PATIENCE + Duration::from_ms(50);
        host.run(self, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        self.outcome
    }
}

impl Protocol for Once {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Timer => {
                let token = radio.token();
                radio.request(token, &self.frame, &self.how);
                self.frame.clear();
            }
            Event::Confirm(c) => self.outcome = Some(c.outcome),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.frame.is_empty()).then_some(Instant::ZERO)
    }
}

/// Each of what such an interface cannot do is refused, with its reason, and nothing of it is on the air.
#[test]
fn what_an_ordinary_interface_cannot_do_is_refused() {
    use Refusal::{AddressForbidden, BadFrame, NotSupported, RateNotSupported};
    let Some(mut stations) = stations() else { return };
    let [a, b] = [stations.all[0].clone(), stations.all[1].clone()];
    let mut ear = Ear::on(&simulated_radio_name(&mut stations.control, 2));
    let plain = || frame(Kind::DATA, &a, b.address, 1, 0);
    let voice = || frame(Kind::QOS_DATA, &a, b.address, 1, 6);
    let group = frame(Kind::DATA, &a, MacAddr::BROADCAST, 1, 0);
    let mut foreign = plain();
    foreign[10..16].copy_from_slice(&b.address.0);
    let mut long = plain();
    long.resize(24 + 1_501, 0);
    let mut protected = plain();
    protected[1] |= Flags::PROTECTED.0;
    let always = TxHow {
        rts: RtsPolicy::Always,
        ..HOW
    };
    let cases = [
        (plain(), TxHow::one_shot(RATE), NotSupported),
        (plain(), HOW.no_ack(), NotSupported),
        (plain(), always, NotSupported),
        (plain(), HOW.queue(Queue::Voice), NotSupported),
        (voice(), HOW, NotSupported),
        (plain(), TxHow::multi_shot(Rate::OFDM_6, 4), RateNotSupported),
        (foreign, HOW, AddressForbidden),
        (long, HOW, BadFrame),
        (protected, HOW, NotSupported),
        (group, HOW.queue(Queue::Voice), NotSupported),
        (
            frame(Kind::BEACON, &a, MacAddr::BROADCAST, 1, 0),
            HOW.queue(Queue::Beacon),
            NotSupported,
        ),
        (frame(Kind::NULL, &a, b.address, 1, 0), HOW, NotSupported),
    ];
    let expect: Vec<Outcome> = cases.iter().map(|c| Outcome::Refused(c.2)).collect();
    let mut host = host_on(&a);
    let mut requests: Vec<_> = cases.into_iter().map(|(frame, how, _)| (frame, how)).collect();
    let mut longest = plain();
    longest.resize(24 + 1_500, 7);
    requests.push((longest, HOW));
    let confirms = asked(&mut host, requests);
    let (last, refused) = confirms.split_last().unwrap();
    assert_eq!(outcomes_of(refused), expect);
    assert_eq!(last.outcome, Outcome::Acked, "the longest that goes");
    let heard = ear.heard();
    let octets: Vec<usize> = heard
        .iter()
        .map(|h| Header::parse(&h.frame).unwrap().body().len())
        .collect();
    assert_eq!(octets, [1_500]);
}

/// The rates that Linux chooses for a hundred frames of a program.
fn rates_of_others(ear: &mut Ear, a: &Interface, b: &Interface) -> Vec<Rate> {
    let socket = OrdinarySocket::open(&a.name).unwrap();
    let frame = [&b.address.0[..], &a.address.0, &[0x88, 0xb5], &[0; 46]].concat();
    for _ in 0..100 {
        socket.send(&frame).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ear.heard().iter().map(|h| h.rate).collect()
}

/// The one rate is given back when the adapter is closed; and by the next one to open the radio, if a process was killed.
#[test]
fn the_rates_of_the_interface_are_given_back() {
    let Some(mut stations) = stations() else { return };
    let [a, b] = [stations.all[0].clone(), stations.all[1].clone()];
    let mut ear = Ear::on(&simulated_radio_name(&mut stations.control, 2));
    let all_one = |rates: &[Rate]| rates.len() == 100 && rates.iter().all(|r| *r == RATE);
    let adapter = Adapter::open(config(&a)).unwrap();
    assert!(all_one(&rates_of_others(&mut ear, &a, &b)));
    let mark = format!("/run/sdmac/rate-{}", a.wiphy);
    assert!(std::fs::exists(&mark).unwrap());
    drop(adapter);
    assert!(!std::fs::exists(&mark).unwrap());
    let rates = rates_of_others(&mut ear, &a, &b);
    assert!(rates.len() == 100 && !all_one(&rates), "{rates:?}");
    // As a process that was killed has left it.
    stations.control.pin_rate(&a, MHZ, RATE).unwrap();
    std::fs::write(&mark, a.index.to_string()).unwrap();
    assert!(all_one(&rates_of_others(&mut ear, &a, &b)));
    drop(Adapter::open(AdapterConfig::new(&a.name, MHZ)).unwrap());
    assert!(!std::fs::exists(&mark).unwrap());
    let rates = rates_of_others(&mut ear, &a, &b);
    assert!(rates.len() == 100 && !all_one(&rates), "{rates:?}");
}

/// The sentence of an adapter that cannot be opened.
struct OpenError(String);

impl OpenError {
    fn of(interface: &Interface, change: impl FnOnce(&mut AdapterConfig)) -> OpenError {
        let mut config = config(interface);
        change(&mut config);
        let error = Adapter::open(config).unwrap_err();
        assert!(matches!(error, Error::Ordinary { .. }), "{error}");
        OpenError(error.to_string())
    }
}

/// What cannot be opened says what is wrong and what to do; and outcomes come up by the way that knows of the frames.
#[test]
fn what_is_wrong_with_an_interface_is_said() {
    let Some(stations) = stations() else { return };
    let a = &stations.all[0];
    let ht = Rate::Ht(Mcs::new(7).unwrap(), Width::Mhz20, GuardInterval::Long);
    let says = |change: &dyn Fn(&mut AdapterConfig), words: &[&str]| {
        let error = OpenError::of(a, change).0;
        assert!(words.iter().all(|w| error.contains(w)), "{error}");
    };
    says(
        &|c| c.radio = "lo".into(),
        &["`lo`", "no 802.11 interface", &a.name],
    );
    says(
        &|c| c.address = Some(ABSENT),
        &["ip link set", "address", &ABSENT.to_string()],
    );
    says(
        &|c| c.channel_mhz = 5200,
        &["5180 MHz, and 5200 MHz is asked for"],
    );
    says(&|c| c.tx_power_dbm = Some(3), &["are its network's"]);
    says(
        &|c| c.carrier = Carrier::Ordinary(Rate::OFDM_54),
        &["54", "no basic rate"],
    );
    says(&|c| c.carrier = Carrier::Ordinary(ht), &["802.11a, b or g"]);
    assert!(our_interfaces().is_empty(), "nothing is left behind");
    let on = |config: AdapterConfig| Adapter::open(config).unwrap();
    let with = |adapter, confirm| {
        let config = HostConfig {
            confirm,
            ..HostConfig::default()
        };
        Host::new(vec![adapter], config).unwrap_err().to_string()
    };
    let computer = AdapterConfig {
        tsf: TsfSource::Computer,
        ..config(a)
    };
    assert!(with(on(computer), Path::Monitor).contains("choose status"));
    assert!(with(on(config(a)), Path::Nl80211).contains("management frames alone"));
    let monitor = on(AdapterConfig::new(&a.name, MHZ));
    assert!(with(monitor, Path::Status).contains("choose monitor"));
}
