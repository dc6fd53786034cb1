//! Attributes: what can be read is of its kind, what can be set is read again, and the rest is refused.

use frame::{EdcaParams, MacAddr, RateSet};
use radio::{
    Attribute, AttributeName as Name, BeaconTiming, Capabilities, Duration, Queue, ReceiveFilter, SetError,
    Token, Tsf,
};

use super::{Act, Case, Subject, alone, ensure};

const NOW: Duration = Duration::from_ns(0);

/// All that belong to an adapter or to a queue.
pub(super) const NAMES: [Name; 20] = [
    Name::Capabilities,
    Name::Address,
    Name::Bssid,
    Name::Channel,
    Name::AckTimeout,
    Name::SlotTime,
    Name::Tsf,
    Name::TxPower,
    Name::BasicRates,
    Name::RtsThreshold,
    Name::CarrierSense,
    Name::VirtualCarrierSense,
    Name::Reception,
    Name::AckGeneration,
    Name::Promiscuous,
    Name::ReceiveFilter,
    Name::Counters,
    Name::Edca(Queue::Voice),
    Name::QueueLength(Queue::Voice),
    Name::BeaconTiming,
];

/// Its name, without a value.
fn name(attribute: &Attribute) -> Name {
    match attribute {
        Attribute::Capabilities(_) => Name::Capabilities,
        Attribute::Address(_) => Name::Address,
        Attribute::Bssid(_) => Name::Bssid,
        Attribute::Channel(_) => Name::Channel,
        Attribute::AckTimeout(_) => Name::AckTimeout,
        Attribute::SlotTime(_) => Name::SlotTime,
        Attribute::Tsf(_) => Name::Tsf,
        Attribute::TxPower(_) => Name::TxPower,
        Attribute::BasicRates(_) => Name::BasicRates,
        Attribute::RtsThreshold(_) => Name::RtsThreshold,
        Attribute::CarrierSense(_) => Name::CarrierSense,
        Attribute::VirtualCarrierSense(_) => Name::VirtualCarrierSense,
        Attribute::Reception(_) => Name::Reception,
        Attribute::AckGeneration(_) => Name::AckGeneration,
        Attribute::Promiscuous(_) => Name::Promiscuous,
        Attribute::ReceiveFilter(_) => Name::ReceiveFilter,
        Attribute::Counters(_) => Name::Counters,
        Attribute::Edca(q, _) => Name::Edca(*q),
        Attribute::QueueLength(q, _) => Name::QueueLength(*q),
        Attribute::Packet(token, _) | Attribute::PacketSeries(token, _) => Name::Packet(*token),
        Attribute::BeaconTiming(_) => Name::BeaconTiming,
    }
}

/// A value that every adapter has which can set it at all. The channel is the one where it is.
fn values(channel_mhz: u16) -> [Attribute; 17] {
    let edca = EdcaParams {
        aifsn: 2,
        cw_min: 7,
        cw_max: 31,
        txop_us: 0,
    };
    [
        Attribute::Address(MacAddr::local(0x77)),
        Attribute::Bssid(MacAddr::local(9)),
        Attribute::Channel(channel_mhz),
        Attribute::AckTimeout(60),
        Attribute::SlotTime(20),
        Attribute::Tsf(Tsf(5_000_000)),
        Attribute::TxPower(10),
        Attribute::BasicRates(RateSet::OFDM_MANDATORY),
        Attribute::RtsThreshold(500),
        Attribute::CarrierSense(false),
        Attribute::VirtualCarrierSense(false),
        Attribute::Reception(false),
        Attribute::AckGeneration(false),
        Attribute::Promiscuous(true),
        Attribute::ReceiveFilter(ReceiveFilter::Management),
        Attribute::Edca(Queue::Voice, edca),
        Attribute::BeaconTiming(beacons(100, 20)),
    ]
}

fn beacons(interval_tu: u16, atim_window_tu: u16) -> BeaconTiming {
    BeaconTiming {
        interval_tu,
        atim_window_tu,
    }
}

/// Whether there is a host that may set it.
pub(super) fn can_be_set(wanted: &str) -> bool {
    values(0)
        .iter()
        .any(|value| format!("{:?}", name(value)) == wanted)
}

/// Values that no adapter takes. Of those that are not here every value is one.
fn impossible() -> Vec<Attribute> {
    let edca = |cw_min, cw_max| EdcaParams {
        aifsn: 2,
        cw_min,
        cw_max,
        txop_us: 0,
    };
    vec![
        Attribute::Address(MacAddr::BROADCAST),
        Attribute::Address(MacAddr::ZERO),
        Attribute::Channel(1_000),
        Attribute::AckTimeout(0),
        Attribute::SlotTime(0),
        Attribute::TxPower(127),
        Attribute::TxPower(-128),
        Attribute::BasicRates(RateSet::EMPTY),
        Attribute::Edca(Queue::Voice, edca(6, 31)),
        Attribute::Edca(Queue::Voice, edca(31, 7)),
        Attribute::BeaconTiming(beacons(100, 100)),
        Attribute::BeaconTiming(beacons(0, 1)),
    ]
}

pub(super) fn capabilities(subject: &mut dyn Subject) -> Result<Capabilities, String> {
    told(subject).map(|(can, _)| can)
}

fn told(subject: &mut dyn Subject) -> Result<(Capabilities, super::Log), String> {
    let log = alone(subject, NAMES.map(|name| (NOW, Act::Get(name))).into())?;
    match log.value(Name::Capabilities) {
        Some(Attribute::Capabilities(can)) => Ok((can, log)),
        _ => Err("a host has to tell its capabilities".into()),
    }
}

/// A value that was set and then read. Adapter time goes on.
fn is_same(set: &Attribute, got: &Attribute) -> bool {
    match (set, got) {
        (Attribute::Tsf(set), Attribute::Tsf(got)) => (0..1_000_000).contains(&got.minus(*set)),
        (set, got) => set == got,
    }
}

pub(super) const ALL: &[Case] = &[
    Case {
        name: "attributes that are read are of their kind, and the address is the node's",
        needs: &[],
        run: |subject| {
            let (_, log) = told(subject)?;
            for (asked, got) in log.got.iter().filter_map(|(n, got)| Some((n, got.as_ref()?))) {
                ensure(name(got) == *asked, format!("asked for {asked:?}, got {got:?}"))?;
            }
            let address = log.value(Name::Address);
            let expect = Some(Attribute::Address(subject.addresses()[0]));
            ensure(
                address == expect,
                format!("address {address:?}, and {expect:?} in its frames"),
            )?;
            let blind = log.got.iter().filter(|(_, got)| got.is_none());
            Ok(blind.map(|(name, _)| format!("read {name:?}")).collect())
        },
    },
    Case {
        name: "attributes are set as the host says, and read as they were set",
        needs: &[],
        run: |subject| {
            let (can, log) = told(subject)?;
            let mhz = match log.value(Name::Channel) {
                Some(Attribute::Channel(mhz)) => mhz,
                _ => return Err("a host has to tell its channel".into()),
            };
            let mut refused = Vec::new();
            for value in values(mhz) {
                let wanted = name(&value);
                let plan = vec![(NOW, Act::Set(value)), (Duration::from_ms(100), Act::Get(wanted))];
                let log = alone(subject, plan)?;
                let Some((_, answer)) = log.answers.first() else {
                    return Err(format!("no answer to setting {value:?}"));
                };
                if !can.settable.contains(&value) {
                    ensure(
                        *answer == Err(SetError::NotSupported),
                        format!("{wanted:?} is not settable, and the answer is {answer:?}"),
                    )?;
                    refused.push(format!("set {wanted:?}"));
                    continue;
                }
                ensure(
                    answer.is_ok(),
                    format!("{value:?} is settable, and the answer is {answer:?}"),
                )?;
                let got = log.value(wanted);
                let same = got.is_some_and(|got| is_same(&value, &got));
                ensure(same, format!("set {value:?}, read {got:?}"))?;
            }
            Ok(refused)
        },
    },
    Case {
        name: "values out of range are refused, and change nothing",
        needs: &[],
        run: |subject| {
            let can = capabilities(subject)?;
            let of: Vec<Name> = impossible().iter().map(name).collect();
            let get = |at: Duration| of.iter().map(move |n| (at, Act::Get(*n)));
            let sets = impossible().into_iter().map(|value| (NOW, Act::Set(value)));
            let plan = get(NOW).chain(sets).chain(get(Duration::from_ms(100)));
            let log = alone(subject, plan.collect())?;
            for value in impossible() {
                let answer = log.answers.iter().find(|(set, _)| *set == value).map(|a| a.1);
                let expect = match can.settable.contains(&value) {
                    true => SetError::OutOfRange,
                    false => SetError::NotSupported,
                };
                ensure(
                    answer == Some(Err(expect)),
                    format!("{value:?}: expected {expect:?}, and the answer is {answer:?}"),
                )?;
            }
            let (before, after) = log.got.split_at(of.len());
            ensure(before == after, format!("before {before:?}, after {after:?}"))?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "what is read only is never set",
        needs: &[],
        run: |subject| {
            let values = [
                Attribute::Counters(radio::Counters::default()),
                Attribute::QueueLength(Queue::Voice, 3),
                Attribute::Capabilities(Capabilities::default()),
            ];
            let log = alone(subject, values.map(|value| (NOW, Act::Set(value))).into())?;
            let all_refused = log.answers.len() == 3 && log.answers.iter().all(|(_, answer)| answer.is_err());
            ensure(all_refused, format!("{:?}", log.answers))?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "nothing is told of a packet that is not there",
        needs: &[],
        run: |subject| {
            let nobody = Name::Packet(Token(u64::MAX));
            let log = alone(subject, vec![(NOW, Act::Get(nobody))])?;
            ensure(
                log.value(nobody).is_none(),
                "the state of a packet that was never sent",
            )?;
            Ok(Vec::new())
        },
    },
];
