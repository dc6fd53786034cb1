//! Values of attributes, there and back.

use crate::types::{Name, Series, queue, series, stamps};
use frame::{EdcaParams, MacAddr, Rate, RateSet};
use radio::{Attribute, AttributeName, ReceiveFilter, Token, Tsf};

/// EDCA parameters of a queue.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Edca {
    /// Slots after SIFS before the countdown starts, 1 to 15.
    pub aifsn: u8,
    /// First contention window, 2^n - 1 slots.
    pub cw_min: u16,
    /// Largest contention window, 2^n - 1 slots.
    pub cw_max: u16,
    /// TXOP limit, microseconds; 0: one MSDU.
    pub txop_us: u32,
}

/// What an adapter has counted since its start.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames sent, without responses.
    pub tx_frames: u64,
    /// Of these, frames that were acknowledged.
    pub tx_acked: u64,
    /// ACKs and CTSs sent.
    pub tx_responses: u64,
    /// Frames received without error, for whomever.
    pub rx_frames: u64,
    /// Frames whose reception began and failed.
    pub rx_errors: u64,
    /// Repetitions that were dropped.
    pub rx_duplicates: u64,
    /// Time on the air, microseconds.
    pub tx_time_us: u64,
    /// Time in which the medium was sensed busy, microseconds.
    pub busy_time_us: u64,
}

/// What an adapter follows the clock of an ad hoc network by.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BeaconTiming {
    /// Beacon interval, in units of 1024 us; 0: it follows none.
    pub interval_tu: u16,
    /// ATIM window, in the same units.
    pub atim_window_tu: u16,
}

/// The value of an attribute: SDMAC_NAME says which of the fields counts.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Value {
    /// See SDMAC_NAME.
    pub number: i64,
    /// See SDMAC_NAME.
    pub address: [u8; 6],
    /// See SDMAC_NAME.
    pub edca: Edca,
    /// See SDMAC_NAME.
    pub counters: Counters,
    /// See SDMAC_NAME.
    pub series: [Series; 4],
    /// How many of `series` count.
    pub series_count: u8,
    /// See SDMAC_NAME.
    pub timing: BeaconTiming,
    /// Planes t1 to t9, host time; 0 where this host cannot see the plane.
    pub stamps_ns: [u64; 9],
}

/// Legacy rates, in the order of the bits.
fn legacy() -> impl Iterator<Item = Rate> {
    [2, 4, 11, 22, 12, 18, 24, 36, 48, 72, 96, 108]
        .into_iter()
        .filter_map(Rate::from_500kbps)
}

const NAMES: [Name; 21] = [
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
    Name::Counters,
    Name::Edca,
    Name::QueueLength,
    Name::Packet,
    Name::PacketSeries,
    Name::ReceiveFilter,
    Name::BeaconTiming,
];

/// By their numbers.
const FILTERS: [ReceiveFilter; 4] = {
    use ReceiveFilter::{All, Data, Management, Unicast};
    [All, Management, Data, Unicast]
};

pub(crate) fn name(number: u32) -> Option<Name> {
    NAMES.get(number as usize).copied()
}

/// Which attribute is read; `None`: it cannot be, or `ac` is no queue.
pub(crate) fn readable(name: Name, token: Token, ac: u32) -> Option<AttributeName> {
    use AttributeName as A;
    Some(match name {
        Name::Address => A::Address,
        Name::Bssid => A::Bssid,
        Name::Channel => A::Channel,
        Name::AckTimeout => A::AckTimeout,
        Name::SlotTime => A::SlotTime,
        Name::Tsf => A::Tsf,
        Name::TxPower => A::TxPower,
        Name::BasicRates => A::BasicRates,
        Name::RtsThreshold => A::RtsThreshold,
        Name::CarrierSense => A::CarrierSense,
        Name::VirtualCarrierSense => A::VirtualCarrierSense,
        Name::Reception => A::Reception,
        Name::AckGeneration => A::AckGeneration,
        Name::Promiscuous => A::Promiscuous,
        Name::ReceiveFilter => A::ReceiveFilter,
        Name::BeaconTiming => A::BeaconTiming,
        Name::Counters => A::Counters,
        Name::Edca => A::Edca(queue(ac)?),
        Name::QueueLength => A::QueueLength(queue(ac)?),
        Name::Packet => A::Packet(token),
        Name::PacketSeries => return None,
    })
}

/// Why a value cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unwritable {
    /// Nobody can write it.
    ReadOnly,
    /// It does not fit.
    Range,
}

/// What is to be written.
pub(crate) fn writable(name: Name, value: &Value, token: Token, ac: u32) -> Result<Attribute, Unwritable> {
    use Attribute as A;
    let range = Unwritable::Range;
    let u16_ = || u16::try_from(value.number).map_err(|_| range);
    let flag = || match value.number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(range),
    };
    let address = MacAddr(value.address);
    Ok(match name {
        Name::Address => A::Address(address),
        Name::Bssid => A::Bssid(address),
        Name::Channel => A::Channel(u16_()?),
        Name::AckTimeout => A::AckTimeout(u16_()?),
        Name::SlotTime => A::SlotTime(u16_()?),
        Name::Tsf => A::Tsf(Tsf(u64::try_from(value.number).map_err(|_| range)?)),
        Name::TxPower => A::TxPower(i8::try_from(value.number).map_err(|_| range)?),
        Name::BasicRates => {
            let mask = u64::try_from(value.number).map_err(|_| range)?;
            if mask >= 1 << 12 {
                return Err(range);
            }
            let chosen = legacy().enumerate().filter(|(i, _)| mask & 1 << i != 0);
            A::BasicRates(chosen.fold(RateSet::EMPTY, |set, (_, rate)| set.with(rate)))
        }
        Name::RtsThreshold => A::RtsThreshold(u16_()?),
        Name::CarrierSense => A::CarrierSense(flag()?),
        Name::VirtualCarrierSense => A::VirtualCarrierSense(flag()?),
        Name::Reception => A::Reception(flag()?),
        Name::AckGeneration => A::AckGeneration(flag()?),
        Name::Promiscuous => A::Promiscuous(flag()?),
        Name::ReceiveFilter => {
            let number = usize::try_from(value.number).map_err(|_| range)?;
            A::ReceiveFilter(*FILTERS.get(number).ok_or(range)?)
        }
        Name::BeaconTiming => {
            let BeaconTiming {
                interval_tu,
                atim_window_tu,
            } = value.timing;
            A::BeaconTiming(radio::BeaconTiming {
                interval_tu,
                atim_window_tu,
            })
        }
        Name::Edca => {
            let Edca {
                aifsn,
                cw_min,
                cw_max,
                txop_us,
            } = value.edca;
            let params = EdcaParams {
                aifsn,
                cw_min,
                cw_max,
                txop_us,
            };
            A::Edca(queue(ac).ok_or(range)?, params)
        }
        Name::PacketSeries => A::PacketSeries(token, series(&value.series, value.series_count).ok_or(range)?),
        Name::Counters | Name::QueueLength | Name::Packet => return Err(Unwritable::ReadOnly),
    })
}

impl Value {
    pub(crate) fn of(attribute: &Attribute) -> Value {
        use Attribute as A;
        let number = |number: i64| Value {
            number,
            ..Value::default()
        };
        match *attribute {
            A::Address(a) | A::Bssid(a) => Value {
                address: a.0,
                ..Value::default()
            },
            A::Channel(n) | A::AckTimeout(n) | A::SlotTime(n) | A::RtsThreshold(n) | A::QueueLength(_, n) => {
                number(n.into())
            }
            A::Tsf(tsf) => number(i64::try_from(tsf.0).unwrap_or(i64::MAX)),
            A::TxPower(dbm) => number(dbm.into()),
            A::BasicRates(set) => {
                let bits = legacy().enumerate().filter(|(_, rate)| set.contains(*rate));
                number(bits.map(|(i, _)| 1 << i).sum())
            }
            A::CarrierSense(on)
            | A::VirtualCarrierSense(on)
            | A::Reception(on)
            | A::AckGeneration(on)
            | A::Promiscuous(on) => number(on.into()),
            A::ReceiveFilter(filter) => number(filter as i64),
            A::Counters(c) => Value {
                counters: Counters {
                    tx_frames: c.tx_frames,
                    tx_acked: c.tx_acked,
                    tx_responses: c.tx_responses,
                    rx_frames: c.rx_frames,
                    rx_errors: c.rx_errors,
                    rx_duplicates: c.rx_duplicates,
                    tx_time_us: c.tx_time_us,
                    busy_time_us: c.busy_time_us,
                },
                ..Value::default()
            },
            A::Edca(_, p) => Value {
                edca: Edca {
                    aifsn: p.aifsn,
                    cw_min: p.cw_min,
                    cw_max: p.cw_max,
                    txop_us: p.txop_us,
                },
                ..Value::default()
            },
            A::Packet(_, state) => Value {
                stamps_ns: stamps(&state.stamps),
                ..number(state.attempts.into())
            },
            A::BeaconTiming(t) => Value {
                timing: BeaconTiming {
                    interval_tu: t.interval_tu,
                    atim_window_tu: t.atim_window_tu,
                },
                ..Value::default()
            },
            A::Capabilities(_) | A::PacketSeries(..) => Value::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let values = [
            (
                Name::Address,
                Value {
                    address: [2, 0, 0, 0, 0, 7],
                    ..Value::default()
                },
            ),
            (
                Name::Channel,
                Value {
                    number: 5_180,
                    ..Value::default()
                },
            ),
            (
                Name::TxPower,
                Value {
                    number: -3,
                    ..Value::default()
                },
            ),
            (
                Name::BasicRates,
                Value {
                    number: 0b1001_0101_0011,
                    ..Value::default()
                },
            ),
            (
                Name::Reception,
                Value {
                    number: 1,
                    ..Value::default()
                },
            ),
            (
                Name::ReceiveFilter,
                Value {
                    number: 2,
                    ..Value::default()
                },
            ),
            (
                Name::Tsf,
                Value {
                    number: 1 << 40,
                    ..Value::default()
                },
            ),
            (
                Name::BeaconTiming,
                Value {
                    timing: BeaconTiming {
                        interval_tu: 100,
                        atim_window_tu: 20,
                    },
                    ..Value::default()
                },
            ),
            (
                Name::Edca,
                Value {
                    edca: Edca {
                        aifsn: 2,
                        cw_min: 3,
                        cw_max: 7,
                        txop_us: 1_504,
                    },
                    ..Value::default()
                },
            ),
        ];
        for (name, value) in values {
            let attribute = writable(name, &value, Token(1), 3).unwrap();
            assert_eq!(Value::of(&attribute), value, "{name:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let write = |name, number| {
            let value = Value {
                number,
                ..Value::default()
            };
            writable(name, &value, Token(1), 0).err()
        };
        for (name, number) in [
            (Name::Channel, -1),
            (Name::Channel, 1 << 16),
            (Name::TxPower, 200),
            (Name::Tsf, -1),
            (Name::BasicRates, 1 << 12),
            (Name::Reception, 2),
            (Name::ReceiveFilter, 4),
            (Name::PacketSeries, 0),
        ] {
            assert_eq!(write(name, number), Some(Unwritable::Range), "{name:?}");
        }
        assert_eq!(write(Name::Counters, 0), Some(Unwritable::ReadOnly));
        assert_eq!(
            writable(Name::Edca, &Value::default(), Token(1), 9),
            Err(Unwritable::Range)
        );
    }

    #[test]
    fn names_have_their_numbers() {
        for (number, is) in NAMES.into_iter().enumerate() {
            assert_eq!(is as usize, number);
            assert_eq!(name(number as u32), Some(is));
        }
        assert_eq!(name(NAMES.len() as u32), None);
    }
}
