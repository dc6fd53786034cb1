//! Files and streams over ATP between real sockets: what `sdmac atp` does; and a computer as a hop between them.
//!
//! | module | what it is |
//! |---|---|
//! | [`flow`] | the transport of one connection, by the name of its variant |
//! | `companions` | what flows to the same computer share, whatever program each is of |
//! | [`socket`] | UDP, the clock, and waiting for both |
//! | [`secure`] | datagrams that strangers can neither read nor forge |
//! | [`message`] | what the two ends say to each other on the stream |
//! | `plain` | what the other end says, as it can be shown |
//! | `claims` | one place, one transfer |
//! | [`source`], [`sink`] | octets from and to files, pipes and terminals, in threads of their own |
//! | `ledger` | how much of the content has arrived |
//! | [`send`], [`receive`] | the two ends of a transfer, as state machines over a transport |
//! | `door`, `waiting` | who may come in: with a key, a call that was recorded and is sent again takes nobody's place |
//! | [`call`], [`serve`] | the loops around them: one connection that calls, many that are called |
//! | [`proxy`] | connections of TCP, carried by flows of ATP |
//! | [`hop`] | a Linux computer on the way: packets that pass learn its delay |
//!
//! What does not belong here: the transport itself (`protocols::transport`), and measurements of it (`lab`).
#![forbid(unsafe_code)]

pub mod call;
mod claims;
mod companions;
mod door;
pub mod flow;
pub mod hop;
mod ledger;
mod memory;
pub mod message;
mod plain;
pub mod proxy;
pub mod receive;
pub mod secure;
pub mod send;
pub mod serve;
pub mod sink;
pub mod socket;
pub mod source;
mod waiting;

use protocols::transport::Failure;

/// Why a transfer did not work.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A file cannot be read or written, or a socket cannot be used.
    #[error("{what}: {cause}")]
    Io {
        /// What cannot be done, or the file or the address that whoever shows it has not named.
        what: String,
        /// As the system says it.
        cause: std::io::Error,
    },
    /// The other computer says that nobody listens at this port.
    #[error("nobody listens at {0}: start `sdmac atp recv` or `proxy` there first")]
    NobodyListens(std::net::SocketAddr),
    /// The same, of one who did listen.
    #[error(
        "nobody listens at {0} any more: start it there again, and send again; a part that has arrived is kept"
    )]
    Gone(std::net::SocketAddr),
    /// The same, of one that carried connections.
    #[error("nobody listens at {0} any more: start `sdmac atp proxy` there again")]
    FarGone(std::net::SocketAddr),
    /// The other computer takes no call like ours.
    #[error(
        "{0} refused the call: give both ends the same --variant (default, aggressive, adaptive and sdmac are ATP; tahoe and \
         newreno are TCP)"
    )]
    NotTaken(std::net::SocketAddr),
    /// Nobody there has shaken hands.
    #[error("nobody at {0} answered: is `sdmac atp recv` or `proxy` running there, with the same key?")]
    Unanswered(std::net::SocketAddr),
    /// Somebody calls with another key, or only one of the ends has one.
    #[error("{0}, so the call is not answered: give both ends the same --key")]
    Stranger(door::Stranger),
    /// The key cannot be used.
    #[error("the handshake cannot begin: {0}")]
    Key(String),
    /// The connection ended early.
    #[error("{0}")]
    Connection(#[from] Failure),
    /// The same, and the network has said something since the other end was last heard.
    #[error("{0} (the network says: {1})")]
    Network(Failure, std::io::Error),
    /// The other end answers, but no packet with data reaches it.
    #[error(
        "the other end answers, but data in packets of {0} octets do not reach it: a link on the path drops them; raise its MTU"
    )]
    TooNarrow(usize),
    /// The name has so many octets.
    #[error("the name has {0} octets, and file systems take 255 at most: give it a shorter one with --name")]
    LongName(usize),
    /// The other end does not want it.
    #[error("the other end refused: {0}")]
    Refused(String),
    /// This end does not want it, and has said so to the other one.
    #[error("not taken: {0}")]
    Declined(String),
    /// The other end does not speak like one of us.
    #[error("the other end speaks another protocol: {0}")]
    Protocol(#[from] message::MessageError),
    /// What arrived is not what was sent.
    #[error("the content is damaged: its checksum differs from the sender's; send it again")]
    Damaged,
    /// The content became shorter or longer while it was sent.
    #[error("the content changed while it was sent: {sent} octets in place of {said}")]
    Changed {
        /// Octets that were announced.
        said: u64,
        /// Octets that there were.
        sent: u64,
    },
    /// The same content comes from somebody else, and this end was silent.
    #[error("it has fallen silent, and {0} sends the same again")]
    Replaced(std::net::SocketAddr),
    /// It has not ended when there were as many transfers as were waited for.
    #[error(
        "not waited for, since the transfer that was has ended; what has arrived of a file is kept, and sending it again goes on \
         from there"
    )]
    Enough,
    /// Ctrl-C.
    #[error("stopped; what has arrived of a file is kept, and sending it again goes on from there")]
    Stopped,
}

/// Octets of the shortest packets that are tried on a path that drops long ones: with the headers of IPv4 and UDP, without a key.
const SHORTEST_OCTETS: usize = 576;

impl TransferError {
    /// What a connection with `peer` failed with; `overhead`: octets that a key makes a packet longer by.
    fn of(why: Failure, peer: std::net::SocketAddr, was_open: bool, overhead: usize) -> TransferError {
        let family = if peer.is_ipv6() { 20 } else { 0 };
        match why {
            Failure::Reset if !was_open => TransferError::NotTaken(peer),
            Failure::TooNarrow => TransferError::TooNarrow(SHORTEST_OCTETS + family + overhead),
            why => TransferError::Connection(why),
        }
    }

    fn io(what: impl std::fmt::Display, cause: std::io::Error) -> TransferError {
        TransferError::Io {
            what: what.to_string(),
            cause,
        }
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Progress {
    /// Octets of the content that both ends have, as far as this end knows: at the one that sends what was acknowledged, not what waits
    /// in a buffer; at the one that receives what is written, not what waits for the disk.
    pub done: u64,
    /// Of these, octets that were there before.
    pub resumed: u64,
    /// Octets of the whole content, if that is known.
    pub total: Option<u64>,
    /// Delay of the path as the hops tell it, us, or that of the other end's reader if it is longer; 0 while no hop tells.
    pub delay_us: u32,
    /// Time between two packets of data, us; 0 if the transport has none, and at the end that receives if the sender does not tell it.
    pub spacing_us: u32,
    /// Octets of data in the packets that this end sends: fewer than at first if the path drops those. At the end that receives, of the
    /// longest that came.
    pub packet_octets: u16,
    /// Packets that were sent again; 0 at the end that receives.
    pub resent: u64,
    /// Packets that held nothing new, since their content had come before; `None` at the end that sends, and with TCP, which does not
    /// count them.
    pub repeated: Option<u64>,
}
