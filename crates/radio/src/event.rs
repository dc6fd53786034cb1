//! What a protocol is told: submissions from above, confirms, indications and beacons from below.

use crate::attribute::SetError;
use crate::stamp::Stamps;
use crate::time::{Instant, Tsf};
use crate::tx::AdapterId;
use frame::{AccessCategory, MacAddr, Rate};
use serde::{Deserialize, Serialize};

/// Names one request (or one attribute change) of a node until it is confirmed. Unique within a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Token(pub u64);

/// One event, visible to the node at the `now` that comes with it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Event<'a> {
    /// The first event of every protocol, exactly once.
    Start,
    /// [`Protocol::deadline`](crate::Protocol::deadline) has passed.
    Timer,
    /// The application hands down an MSDU.
    #[serde(borrow)]
    Submit(Msdu<'a>),
    /// A request has ended.
    Confirm(Confirm),
    /// A frame for this node (or, if the host was asked for it, any frame) has arrived.
    Indication(Indication<'a>),
    /// A beacon has arrived.
    Beacon(Beacon<'a>),
    /// A [`set`](crate::Radio::set) has ended.
    Set(SetAnswer),
}

/// A payload on its way between the application and the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Msdu<'a> {
    /// Destination when submitted, source when delivered.
    pub peer: MacAddr,
    /// Access category that the application asks for.
    pub category: AccessCategory,
    /// When it is of no use any more (host clock); `None` if never.
    pub deadline: Option<Instant>,
    /// The octets, without any header.
    #[serde(borrow)]
    pub payload: &'a [u8],
}

impl<'a> Msdu<'a> {
    /// Best effort, no deadline.
    pub const fn new(peer: MacAddr, payload: &'a [u8]) -> Msdu<'a> {
        Msdu {
            peer,
            category: AccessCategory::BestEffort,
            deadline: None,
            payload,
        }
    }
}

/// How a request ended. There are these six ways and no others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// An ACK came.
    Acked,
    /// All tries are used up and no ACK came. Frames that expect no ACK (group-addressed, no-ack) end like this
    /// too, after their one try: they were sent, and nobody was asked to answer.
    NotAcked,
    /// The host did not take the request; no frame was sent.
    Refused(Refusal),
    /// Taken back by [`abort`](crate::Radio::abort), or by a reset of the adapter.
    Aborted,
    /// Its time was over before the tries were used up.
    Expired,
    /// The host lost track of it: it may or may not have been sent (Linux gives no guarantee of a status).
    Unknown,
}

impl Outcome {
    /// True for [`Outcome::Acked`].
    pub const fn is_acked(self) -> bool {
        matches!(self, Outcome::Acked)
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// Not a frame that can be sent: too short, too long, or malformed. An empty frame is always refused.
    BadFrame,
    /// The queue is full.
    QueueFull,
    /// A rate that the band or the adapter does not have.
    RateNotSupported,
    /// The regulatory domain forbids sending on this channel.
    ChannelForbidden,
    /// The transmitter address is not one of this adapter's.
    AddressForbidden,
    /// The host cannot do what `TxHow` asks for, such as holding a frame back.
    NotSupported,
    /// There is no such adapter, or it is down.
    NoAdapter,
    /// The process lacks a permission.
    NoPermission,
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Confirm {
    /// Which request.
    pub token: Token,
    /// How it ended.
    pub outcome: Outcome,
    /// Frames of it that went on the air.
    pub attempts: u16,
    /// Index of the series that the last attempt belonged to, 0 to 3.
    pub series: u8,
    /// Rate of the last attempt; that of the first series if there was none.
    pub rate: Rate,
    /// Strength of the ACK in dBm, where the adapter tells.
    pub ack_signal_dbm: Option<i8>,
    /// Adapter time at which the exchange ended, where the adapter tells.
    pub tsf: Option<Tsf>,
    /// Stamps at the planes that this host can see.
    pub stamps: Stamps,
}

impl Confirm {
    /// A confirm that never reached the air: no attempts, no stamps.
    pub const fn without_air(token: Token, outcome: Outcome, rate: Rate) -> Confirm {
        Confirm {
            token,
            outcome,
            attempts: 0,
            series: 0,
            rate,
            ack_signal_dbm: None,
            tsf: None,
            stamps: Stamps::NONE,
        }
    }
}

/// A received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Indication<'a> {
    /// The MPDU without FCS.
    #[serde(borrow)]
    pub frame: &'a [u8],
    /// Rate it came at.
    pub rate: Rate,
    /// Its strength in dBm, where the adapter tells.
    pub signal_dbm: Option<i8>,
    /// Adapter time at which the first bit of the MPDU arrived (after preamble and PHY header, as the TSFT field
    /// of radiotap has it), where the adapter tells.
    pub tsf: Option<Tsf>,
    /// Which adapter heard it.
    pub adapter: AdapterId,
    /// Stamps of the receive path (t5 to t9), where the host can see them.
    pub stamps: Stamps,
}

/// A received beacon: an [`Indication`] with what every reader of beacons wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Beacon<'a> {
    /// BSSID.
    pub bssid: MacAddr,
    /// The sender's TSF, as in the frame.
    pub timestamp: Tsf,
    /// Beacon interval in time units of 1024 us.
    pub interval_tu: u16,
    /// The whole frame and how it was received.
    #[serde(borrow)]
    pub received: Indication<'a>,
}

/// The answer to a [`set`](crate::Radio::set).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetAnswer {
    /// Which change.
    pub token: Token,
    /// Done, or why not.
    pub result: Result<(), SetError>,
}
