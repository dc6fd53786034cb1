//! What crosses the border: numbers and structs of C, and how they are read.
//!
//! What comes from C is taken as integers, since a value that a Rust enum does not have must never become one.

use frame::{GuardInterval, Rate, Width};
use radio::{AckPolicy, AdapterId, Instant, Plane, RtsPolicy, SeriesList, TxHow};

/// How a call ended. Everything but OK is negative.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Nothing came within the time.
    Nothing = -1,
    /// A null pointer, a number without a meaning, or an interface that is not there.
    Argument = -2,
    /// A request of this interface with this identifier is open.
    IdInUse = -3,
    /// Too much waits: fetch confirms first.
    Full = -4,
    /// The buffer is too small; what came is lost, and its length is told.
    TooSmall = -5,
    /// This host or adapter cannot do it.
    NotSupported = -6,
    /// The value is outside of what the adapter takes.
    OutOfRange = -7,
    /// The regulatory domain forbids it.
    Forbidden = -8,
    /// The process lacks a permission.
    NoPermission = -9,
    /// There is no such packet or queue.
    NotFound = -10,
    /// The host ended with an error; SDMAC_why() tells it.
    Broken = -11,
}

/// How a request ended (SDMAC_Confirm.outcome).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// An ACK came.
    Acked = 0,
    /// All tries are used up and no ACK came; frames that ask for none end like this, too.
    NotAcked = 1,
    /// The host did not take it; SDMAC_Confirm.refusal says why.
    Refused = 2,
    /// Taken back.
    Aborted = 3,
    /// Its time was over.
    Expired = 4,
    /// Nobody knows: it may have been sent or not.
    Unknown = 5,
}

/// Why a request was refused (SDMAC_Confirm.refusal).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It was not.
    None = 0,
    /// Not a frame that can be sent.
    BadFrame = 1,
    /// The queue is full.
    QueueFull = 2,
    /// The band or the adapter does not have the rate.
    RateNotSupported = 3,
    /// The regulatory domain forbids sending on this channel.
    ChannelForbidden = 4,
    /// The transmitter address is not one of this adapter's.
    AddressForbidden = 5,
    /// The host cannot do what SDMAC_How asks for.
    NotSupported = 6,
    /// The adapter is gone or down.
    NoAdapter = 7,
    /// The process lacks a permission.
    NoPermission = 8,
}

/// Queues of an adapter, `ac` of the primitives.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// AC_BK.
    Background = 0,
    /// AC_BE.
    BestEffort = 1,
    /// AC_VI.
    Video = 2,
    /// AC_VO.
    Voice = 3,
    /// Before all others, without backoff.
    Beacon = 4,
}

/// Whether RTS/CTS goes before a frame (SDMAC_How.rts).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rts {
    /// As the threshold says.
    Threshold = 0,
    /// Always.
    Always = 1,
    /// Never.
    Never = 2,
}

/// Attributes, `name` of SDMAC_DATA_set() and SDMAC_DATA_get(), with the field of SDMAC_Value that holds them.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    /// `address`: the adapter's own.
    Address = 0,
    /// `address`.
    Bssid = 1,
    /// `number`: centre frequency, MHz.
    Channel = 2,
    /// `number`: ACK timeout, microseconds.
    AckTimeout = 3,
    /// `number`: slot time, microseconds.
    SlotTime = 4,
    /// `number`: adapter time, microseconds.
    Tsf = 5,
    /// `number`: dBm.
    TxPower = 6,
    /// `number`: bit i is the i-th of 1, 2, 5.5, 11, 6, 9, 12, 18, 24, 36, 48, 54 Mb/s.
    BasicRates = 7,
    /// `number`: octets above which RTS/CTS goes first.
    RtsThreshold = 8,
    /// `number`, 0 or 1: physical carrier sense.
    CarrierSense = 9,
    /// `number`, 0 or 1: NAV.
    VirtualCarrierSense = 10,
    /// `number`, 0 or 1: receiver.
    Reception = 11,
    /// `number`, 0 or 1: whether the adapter answers with ACKs.
    AckGeneration = 12,
    /// `number`, 0 or 1: whether frames for others are indicated.
    Promiscuous = 13,
    /// `counters`; read only.
    Counters = 14,
    /// `edca`, of the queue `ac`.
    Edca = 15,
    /// `number`: requests that wait in the queue `ac`; read only.
    QueueLength = 16,
    /// `number`: tries of the packet `id` so far, `stamps_ns`: its planes so far; read only.
    Packet = 17,
    /// `series` and `series_count`: another retry chain for the packet `id`, while it waits; write only.
    PacketSeries = 18,
    /// `number`: received frames that are told: 0 all, 1 management frames, 2 all but beacons and ATIMs, 3 of
    /// these what is for this station alone.
    ReceiveFilter = 19,
    /// `timing`: the ad hoc network whose clock the adapter follows by itself.
    BeaconTiming = 20,
}

/// Some tries at one rate.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Series {
    /// Below 128: units of 500 kb/s, such as 108 for 54 Mb/s; 128 + MCS: HT on 20 MHz with the long guard interval.
    pub rate: u8,
    /// Frames on the air at most, 1 or more.
    pub tries: u8,
}

/// How a frame is to be sent. SDMAC_one_shot() makes one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct How {
    /// Tried in order until an ACK comes.
    pub series: [Series; 4],
    /// How many of `series` count, 1 to 4.
    pub series_count: u8,
    /// Other than 0: no ACK is expected, and the frame is sent once.
    pub no_ack: u8,
    /// An SDMAC_RTS.
    pub rts: u32,
    /// No attempt before this time of the host; 0: as soon as it may.
    pub not_before_ns: u64,
    /// No attempt begins after this time of the host, with its RTS if there is one; 0: whenever.
    pub expires_ns: u64,
}

/// The answer to a change of an attribute that SDMAC_DATA_set() did not wait for.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SetAnswer {
    /// The attribute, an SDMAC_NAME.
    pub name: u32,
    /// As it was asked for.
    pub id: u64,
    /// As it was asked for.
    pub ac: u32,
    /// An SDMAC_STATUS: whether the adapter has taken it.
    pub status: i32,
}

/// The end of a request.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confirm {
    /// Which one.
    pub id: u64,
    /// An SDMAC_OUTCOME.
    pub outcome: u32,
    /// An SDMAC_REFUSAL.
    pub refusal: u32,
    /// Frames of it that went on the air.
    pub attempts: u16,
    /// Series of the last one, from 0.
    pub series: u8,
    /// An SDMAC_QUEUE: `ac` of the request.
    pub ac: u32,
    /// Rate of the last one, in units of 100 kb/s.
    pub rate_100kbps: u32,
    /// When the frame was at the planes t1 to t9, host time; 0 where this host cannot see the plane.
    pub stamps_ns: [u64; 9],
}

/// What came with a received frame.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Indication {
    /// Its number on this interface, from 1: a gap says that as many were lost for want of being fetched.
    pub idr: u64,
    /// Octets of the frame without FCS.
    pub octets: usize,
    /// When it was told, host time.
    pub at_ns: u64,
    /// Adapter time of its first bit, microseconds; 0 where the adapter does not tell.
    pub tsf_us: u64,
    /// Rate in units of 100 kb/s.
    pub rate_100kbps: u32,
    /// An SDMAC_QUEUE: the access category it was sent with.
    pub ac: u32,
    /// dBm; 0 where the adapter does not tell.
    pub signal_dbm: i32,
}

/// A received beacon.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beacon {
    /// The frame.
    pub received: Indication,
    /// Whose.
    pub bssid: [u8; 6],
    /// Time between beacons, in units of 1024 microseconds.
    pub interval_tu: u16,
    /// The sender's TSF, microseconds.
    pub timestamp_us: u64,
}

pub(crate) fn queue(ac: u32) -> Option<radio::Queue> {
    radio::Queue::ALL.get(ac as usize).copied()
}

fn rate(octet: u8) -> Option<Rate> {
    match octet {
        128.. => Rate::ht(octet - 128, Width::Mhz20, GuardInterval::Long),
        _ => Rate::from_500kbps(octet),
    }
}

/// A retry chain; `None` if it has no series, too many, or one that cannot be.
pub(crate) fn series(all: &[Series; 4], count: u8) -> Option<SeriesList> {
    let mut list = [radio::tx::Series {
        rate: Rate::OFDM_6,
        tries: 1,
    }; 4];
    let used = all.get(..usize::from(count))?;
    for (place, s) in list.iter_mut().zip(used) {
        *place = radio::tx::Series {
            rate: rate(s.rate)?,
            tries: s.tries,
        };
    }
    SeriesList::new(&list[..used.len()])
}

/// The contract's way to say it; `None` if a number has no meaning.
pub(crate) fn how(how: &How, ac: u32, adapter: AdapterId) -> Option<TxHow> {
    let time = |ns: u64| (ns > 0).then(|| Instant::from_ns(ns));
    Some(TxHow {
        series: series(&how.series, how.series_count)?,
        ack: if how.no_ack == 0 {
            AckPolicy::Normal
        } else {
            AckPolicy::NoAck
        },
        rts: match how.rts {
            0 => RtsPolicy::Threshold,
            1 => RtsPolicy::Always,
            2 => RtsPolicy::Never,
            _ => return None,
        },
        queue: queue(ac)?,
        not_before: time(how.not_before_ns),
        expires: time(how.expires_ns),
        adapter,
    })
}

pub(crate) fn stamps(stamps: &radio::Stamps) -> [u64; 9] {
    Plane::ALL.map(|plane| stamps.get_host(plane).map_or(0, Instant::as_ns))
}

impl Confirm {
    pub(crate) fn new(id: u64, ac: radio::Queue, c: &radio::Confirm) -> Confirm {
        use radio::Outcome as O;
        use radio::Refusal as R;
        let (outcome, refusal) = match c.outcome {
            O::Acked => (Outcome::Acked, Refusal::None),
            O::NotAcked => (Outcome::NotAcked, Refusal::None),
            O::Refused(why) => (
                Outcome::Refused,
                match why {
                    R::BadFrame => Refusal::BadFrame,
                    R::QueueFull => Refusal::QueueFull,
                    R::RateNotSupported => Refusal::RateNotSupported,
                    R::ChannelForbidden => Refusal::ChannelForbidden,
                    R::AddressForbidden => Refusal::AddressForbidden,
                    R::NotSupported => Refusal::NotSupported,
                    R::NoAdapter => Refusal::NoAdapter,
                    R::NoPermission => Refusal::NoPermission,
                },
            ),
            O::Aborted => (Outcome::Aborted, Refusal::None),
            O::Expired => (Outcome::Expired, Refusal::None),
            O::Unknown => (Outcome::Unknown, Refusal::None),
        };
        Confirm {
            id,
            outcome: outcome as u32,
            refusal: refusal as u32,
            attempts: c.attempts,
            series: c.series,
            ac: ac.index() as u32,
            rate_100kbps: c.rate.kbps100(),
            stamps_ns: stamps(&c.stamps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        let one = Series { rate: 108, tries: 1 };
        let good = How {
            series: [one; 4],
            series_count: 1,
            ..How::default()
        };
        let ok = |h: How, ac| how(&h, ac, AdapterId::FIRST).is_some();
        assert!(ok(good, 1));
        for count in [0, 5, 255] {
            assert!(
                !ok(
                    How {
                        series_count: count,
                        ..good
                    },
                    1
                ),
                "{count} series"
            );
        }
        assert!(!ok(How { rts: 3, ..good }, 1));
        assert!(!ok(good, 5));
        for bad in [0, 1, 109, 128 + 32, 255] {
            let series = [Series { rate: bad, tries: 1 }; 4];
            assert!(!ok(How { series, ..good }, 1), "rate {bad}");
        }
        assert!(!ok(
            How {
                series: [Series { tries: 0, ..one }; 4],
                ..good
            },
            1
        ));
        assert!(ok(
            How {
                series: [Series {
                    rate: 128 + 7,
                    tries: 3
                }; 4],
                series_count: 4,
                ..good
            },
            4
        ));
    }

    #[test]
    fn queues_have_the_numbers_of_the_contract() {
        for q in radio::Queue::ALL {
            assert_eq!(queue(q.index() as u32), Some(q));
        }
        let names = [
            Queue::Background,
            Queue::BestEffort,
            Queue::Video,
            Queue::Voice,
            Queue::Beacon,
        ];
        assert_eq!(names.map(|q| queue(q as u32)), radio::Queue::ALL.map(Some));
    }
}
