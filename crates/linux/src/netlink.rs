//! Netlink: requests built by hand, answers taken apart, one socket that asks and waits.
//!
//! A library for this would bring thirty crates for what is a length, a type and some padding. Everything here is
//! for control, and allocates; nothing of it is on the way of a frame.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::clock::timespec;

/// Octets of `struct nlmsghdr`.
const HEADER: usize = 16;
/// How long an answer may take. The kernel does the work within the call that sends the request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Room for one read; the kernel's dumps come in parts of 32 KiB at most.
const READ_OCTETS: usize = 65_536;

/// A netlink request or event, `struct nlmsghdr` and what follows.
pub(crate) fn message(kind: u16, flags: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let flags = flags | libc::NLM_F_REQUEST;
    let mut message = vec![0; 4]; // Length, below.
    message.extend(kind.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]); // Sequence number, filled in when it is sent, and sender.
    body(&mut message);
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

/// `struct nlattr` with its value, padded to four octets.
pub(crate) fn attribute(message: &mut Vec<u8>, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
    let start = message.len();
    message.extend([0; 2]);
    message.extend(kind.to_ne_bytes());
    value(message);
    let length = (message.len() - start) as u16;
    message[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    message.resize(message.len().next_multiple_of(4), 0);
}

/// An attribute without a value.
pub(crate) fn flag(message: &mut Vec<u8>, kind: u16) {
    attribute(message, kind, |_| ());
}

/// An attribute of 32 bits.
pub(crate) fn number(message: &mut Vec<u8>, kind: u16, value: u32) {
    attribute(message, kind, |m| m.extend(value.to_ne_bytes()));
}

/// An attribute with a name that ends in a zero.
pub(crate) fn text(message: &mut Vec<u8>, kind: u16, value: &str) {
    attribute(message, kind, |m| {
        m.extend(value.as_bytes());
        m.push(0);
    });
}

/// `struct ifinfomsg` of an interface of which no flag is to be changed.
pub(crate) fn interface(message: &mut Vec<u8>, index: u32) {
    message.extend([0; 4]); // Family, padding, device type.
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]); // Flags, and which of them to change.
}

/// `ip link set up` (or `down`), by number.
pub(crate) fn set_up(index: u32, up: bool) -> Vec<u8> {
    message(libc::RTM_NEWLINK, libc::NLM_F_ACK, |m| {
        m.extend([0; 4]); // Family, padding, device type.
        m.extend(index.to_ne_bytes());
        m.extend((if up { libc::IFF_UP as u32 } else { 0 }).to_ne_bytes()); // The flags,
        m.extend((libc::IFF_UP as u32).to_ne_bytes()); // and which of them to change.
    })
}

/// `ip link set mtu`, by number.
pub(crate) fn set_mtu(index: u32, octets: u32) -> Vec<u8> {
    message(libc::RTM_NEWLINK, libc::NLM_F_ACK, |m| {
        interface(m, index);
        number(m, libc::IFLA_MTU, octets);
    })
}

/// The attributes in some octets, with their types; ends where they make no sense.
pub(crate) fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        // The two upper bits say that it is nested, or in network order.
        Some((u16::from_ne_bytes([head[2], head[3]]) & 0x3fff, value))
    })
}

/// The first attribute of a type.
pub(crate) fn find(octets: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(octets)
        .find(|(k, _)| *k == kind)
        .map(|(_, value)| value)
}

/// A value of 32 bits.
pub(crate) fn u32_of(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|octets| u32::from_ne_bytes(*octets))
}

/// A name without its zero; `None` if it is not UTF-8.
pub(crate) fn text_of(value: &[u8]) -> Option<&str> {
    let end = value.iter().position(|o| *o == 0).unwrap_or(value.len());
    std::str::from_utf8(&value[..end]).ok()
}

/// One message of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// `nlmsg_type`.
    pub kind: u16,
    /// What follows `struct nlmsghdr`.
    pub body: Vec<u8>,
}

/// A netlink socket for one request at a time.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// A socket of a protocol; `None` is rtnetlink.
    pub fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        Self::of(fd)
    }

    /// Around a socket that there is already.
    pub fn of(fd: OwnedFd) -> io::Result<Self> {
        // A socket without an address would miss what the kernel tells to groups.
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self {
            fd,
            sequence: 0,
            buffer: vec![0; READ_OCTETS],
        })
    }

    /// Sends a request, and collects what comes until its end: the acknowledgement (`NLM_F_ACK`) or the last part
    /// of a dump (`NLM_F_DUMP`). One of the two must be asked for.
    ///
    /// # Errors
    /// What the kernel answered; `TimedOut` if it did not.
    pub fn ask(&mut self, mut message: Vec<u8>) -> io::Result<Vec<Part>> {
        self.sequence = self.sequence.wrapping_add(1);
        message[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &message, SendFlags::empty(), &kernel)?;
        let mut parts = Vec::new();
        loop {
            let read = || rustix::net::recv(&self.fd, &mut self.buffer[..], RecvFlags::empty());
            let (_, length) = rustix::io::retry_on_intr(read).map_err(|e| match e {
                Errno::AGAIN => io::ErrorKind::TimedOut.into(),
                e => io::Error::from(e),
            })?;
            let octets = &self.buffer[..length.min(READ_OCTETS)];
            if take_in(octets, self.sequence, &mut parts)? {
                return Ok(parts);
            }
        }
    }
}

impl Socket {
    /// Sends a message without waiting for anything; gives its sequence number. What it meets comes as a message of
    /// type `NLMSG_ERROR` with this number, before this call returns.
    pub fn tell(&mut self, mut message: Vec<u8>) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        message[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &message, SendFlags::empty(), &kernel)?;
        Ok(self.sequence)
    }

    /// Sends messages of which the kernel does all or none (nf_tables), and waits for nothing: it has done them, and
    /// said what it had to say, before the call that sends them returns.
    ///
    /// # Errors
    /// The first error that the kernel found.
    pub fn transact(&mut self, subsystem: u16, steps: Vec<Vec<u8>>) -> io::Result<()> {
        let bracket = |kind: i32| {
            message(kind as u16, 0, |m| {
                m.extend([0, 0]); // Family, version.
                m.extend(subsystem.to_be_bytes());
            })
        };
        let all = [
            vec![bracket(libc::NFNL_MSG_BATCH_BEGIN)],
            steps,
            vec![bracket(libc::NFNL_MSG_BATCH_END)],
        ];
        let mut octets = Vec::new();
        for mut step in all.into_iter().flatten() {
            self.sequence = self.sequence.wrapping_add(1);
            step[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
            octets.extend(step);
        }
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &octets, SendFlags::empty(), &kernel)?;
        let mut result = Ok(());
        while let Some(read) = self.look()? {
            for (kind, _, body) in messages(read) {
                let code = body.first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
                if i32::from(kind) == libc::NLMSG_ERROR && code < 0 && result.is_ok() {
                    result = Err(io::Error::from_raw_os_error(-code));
                }
            }
        }
        result
    }

    /// What has come, if something has: messages for [`messages`].
    ///
    /// Asks first whether there is something: a read that finds nothing costs a microsecond in the virtual time of User-Mode
    /// Linux, and a question costs none.
    ///
    /// # Errors
    /// `ENOBUFS` if the kernel had to leave something out.
    pub fn look(&mut self) -> io::Result<Option<&[u8]>> {
        if !has_come(&self.fd)? {
            return Ok(None);
        }
        let read = || rustix::net::recv(&self.fd, &mut self.buffer[..], RecvFlags::DONTWAIT);
        match rustix::io::retry_on_intr(read) {
            Ok((_, length)) => Ok(Some(&self.buffer[..length.min(READ_OCTETS)])),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Whether a descriptor has something to read, or an error.
pub(crate) fn has_come(descriptor: impl AsFd) -> io::Result<bool> {
    let mut any = [PollFd::new(&descriptor, PollFlags::IN)];
    match poll(&mut any, Some(&timespec(0))) {
        Ok(found) => Ok(found > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// The messages in some octets, each with type, sequence number and what follows `struct nlmsghdr`; ends where they
/// make no sense.
pub(crate) fn messages(octets: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<HEADER>()?;
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = word(0) as usize;
        let body = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((u16::from_ne_bytes([head[4], head[5]]), word(8), body))
    })
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Takes the messages of one read that answer request `sequence`; true at the end of the answer.
fn take_in(mut octets: &[u8], sequence: u32, parts: &mut Vec<Part>) -> io::Result<bool> {
    while let Some(head) = octets.first_chunk::<HEADER>() {
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        let length = word(0) as usize;
        let Some(body) = octets.get(HEADER..length) else {
            let what = "the kernel's answer is cut off";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        if word(8) != sequence {
            continue; // An answer that came after the patience for it was over.
        }
        match i32::from(kind) {
            libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                let code = body.first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
                return match code {
                    0.. => Ok(true),
                    error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
                };
            }
            libc::NLMSG_NOOP => {}
            _ => parts.push(Part {
                kind,
                body: body.to_vec(),
            }),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: i32, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut m = message(kind as u16, 0, |m| m.extend(body));
        m[8..12].copy_from_slice(&sequence.to_ne_bytes());
        m.resize(m.len().next_multiple_of(4), 0);
        m
    }

    #[test]
    fn attributes_come_back_as_they_were_written() {
        let mut m = Vec::new();
        number(&mut m, 3, 77);
        text(&mut m, 4, "sdmac");
        flag(&mut m, 5);
        attribute(&mut m, 6 | 0x8000, |m| text(m, 1, "x"));
        assert_eq!(m.len() % 4, 0);
        let kinds: Vec<u16> = attributes(&m).map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [3, 4, 5, 6]);
        assert_eq!(find(&m, 3).and_then(u32_of), Some(77));
        assert_eq!(find(&m, 4).and_then(text_of), Some("sdmac"));
        assert_eq!(find(&m, 5), Some(&[][..]));
        assert_eq!(find(find(&m, 6).unwrap(), 1).and_then(text_of), Some("x"));
        assert_eq!(find(&m, 7), None);
    }

    /// Whatever the octets are, the walk ends, and no value reaches beyond them.
    #[test]
    fn damaged_attributes_end_the_walk() {
        let mut m = Vec::new();
        for kind in 0..20 {
            text(&mut m, kind, "a name");
        }
        for at in 0..m.len() {
            for octet in [0, 1, 3, 5, 0x80, 0xff] {
                let mut bad = m.clone();
                bad[at] = octet;
                assert!(attributes(&bad).count() <= bad.len() / 4);
            }
            assert!(attributes(&m[..at]).count() <= at / 4 + 1);
        }
    }

    #[test]
    fn messages_one_after_the_other() {
        let both = [answer(20, 7, b"abcd"), answer(21, 8, b"")].concat();
        let found: Vec<_> = messages(&both).collect();
        assert_eq!(found, [(20, 7, &b"abcd"[..]), (21, 8, &b""[..])]);
        assert_eq!(messages(&both[..both.len() - 1]).count(), 1);
        assert_eq!(messages(&[0; 64]).count(), 0, "a length of 0 ends the walk");
    }

    #[test]
    fn what_is_told_is_done_when_the_call_returns() {
        let mut socket = Socket::open(None).unwrap();
        assert_eq!(socket.look().unwrap(), None);
        let none = message(libc::RTM_GETLINK, 0, |m| interface(m, 0x7fff_fff0));
        let sequence = socket.tell(none).unwrap();
        let read = socket.look().unwrap().unwrap();
        let (kind, answered, body) = messages(read).next().unwrap();
        assert_eq!((i32::from(kind), answered), (libc::NLMSG_ERROR, sequence));
        assert_eq!(body[..4], (-libc::ENODEV).to_ne_bytes());
    }

    #[test]
    fn an_answer_ends_with_its_acknowledgement_or_its_error() {
        let mut parts = Vec::new();
        let part = answer(20, 7, b"abcd");
        assert!(!take_in(&part, 7, &mut parts).unwrap());
        assert!(!take_in(&answer(20, 6, b"late"), 7, &mut parts).unwrap());
        assert_eq!(
            (parts.len(), parts[0].kind, &parts[0].body[..]),
            (1, 20, &b"abcd"[..])
        );
        let done = answer(libc::NLMSG_DONE, 7, &[0; 4]);
        assert!(take_in(&[part, done].concat(), 7, &mut parts).unwrap());
        assert_eq!(parts.len(), 2);
        let refused = answer(libc::NLMSG_ERROR, 7, &(-libc::EPERM).to_ne_bytes());
        let error = take_in(&refused, 7, &mut parts).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert!(take_in(&answer(libc::NLMSG_ERROR, 7, &[0; 20]), 7, &mut parts).unwrap());
        let mut cut = refused;
        cut[0] = 99;
        assert_eq!(
            take_in(&cut, 7, &mut parts).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn the_kernel_answers() {
        let mut socket = Socket::open(None).unwrap();
        let links = message(libc::RTM_GETLINK, libc::NLM_F_DUMP, |m| interface(m, 0));
        let parts = socket.ask(links).unwrap();
        assert!(parts.iter().all(|p| p.kind == libc::RTM_NEWLINK));
        let names: Vec<_> = parts
            .iter()
            .filter_map(|p| find(p.body.get(16..)?, libc::IFLA_IFNAME))
            .collect();
        assert!(names.iter().any(|n| text_of(n) == Some("lo")));
        let none = message(libc::RTM_GETLINK, libc::NLM_F_ACK, |m| interface(m, 0x7fff_fff0));
        assert_eq!(socket.ask(none).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
