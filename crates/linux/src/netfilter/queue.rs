//! The queue of a kernel rule (nfnetlink_queue): packets come up, verdicts go down, many in one system call.
//!
//! Numbers are those of linux/netfilter/nfnetlink_queue.h.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::sleep;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
    set_socket_send_buffer_size_force,
};
use rustix::net::{SendFlags, netlink, netlink::SocketAddrNetlink};

use super::rules::{Rules, Way};
use super::{Error, Selection, udp};
use crate::netlink::{Socket, attribute, find, has_come, message, messages};
use crate::sys::batch::{BATCH, Batch};

const SUBSYSTEM: u16 = (libc::NFNL_SUBSYS_QUEUE as u16) << 8;
const MESSAGE_HEADER: usize = 16;
const NET_HEADER: usize = 4;
/// Octets of a packet that come up. Ours are shorter; of longer ones enough comes up to see that they are not ours.
const MOST_PACKET: u32 = 2_048;
/// Room for a packet, its attributes and headers.
const ROOM: usize = 2_560;
/// Packets of full length for which the socket has room: 50 ms at 20,000/s, ten times what a program of ours is away for where the
/// computer has time for it. It is what may wait, and be late, when this program is away for longer.
const WAITING: usize = 1_024;
/// What the kernel counts for one: its copy, in memory of a power of two, and what belongs to that.
const COUNTED_OCTETS: usize = 2_048 + 256;
/// What the socket is asked to have room for; the kernel doubles it.
const BUFFER_OCTETS: usize = WAITING * COUNTED_OCTETS / 2;
/// Room for verdicts, which the kernel takes at once.
const VERDICT_OCTETS: usize = 1 << 20;
/// Packets of any length that the kernel holds for us at most. The socket is full before that, which shows in their numbers: of
/// the shortest ones it takes a third of the room.
const MOST_WAITING: u32 = 4 * WAITING as u32;
const ACCEPT: u32 = libc::NF_ACCEPT as u32;
/// How often it is looked whether another program's rules have gone, and how far apart.
const TRIES: usize = 20;
const TRY: Duration = Duration::from_millis(50);

/// What one [`Queue::turn`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Packets that came, and were let go on.
    pub packets: u64,
    /// Of these, packets that were changed.
    pub changed: u64,
    /// Of these, first fragments of datagrams that were cut before: nobody can change them alone. The others do not come here.
    pub fragments: u64,
    /// Packets that went on without having come here, because this program was too slow.
    pub missed: u64,
    /// Verdicts that the kernel said it did not take; their packets are lost. When many waited as the rules went, it says so of some.
    pub refused: u64,
}

/// Rules and queue, for as long as this lives.
#[derive(Debug)]
pub struct Queue {
    /// Gone before the queue is. `None` only while they are made anew.
    rules: Option<Rules>,
    /// How they are made.
    way: Way,
    socket: Socket,
    selection: Selection,
    index: u32,
    number: u16,
    batch: Batch,
    verdicts: Vec<u8>,
    last: u32,
}

impl Queue {
    /// Takes the packets of a selection. Needs CAP_NET_ADMIN over the network namespace, now and later.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(selection: &Selection) -> Result<Queue, Error> {
        let none = |_| Error::NoInterface(selection.interface.clone());
        let any = Socket::open(None).map_err(Error::of("open a socket"))?;
        let index = rustix::net::netdevice::name_to_index(&any, &selection.interface).map_err(none)?;
        // One queue for each interface. Numbers of interfaces are small.
        let number = index as u16;
        let what = "open a queue of packets";
        let mut socket = Socket::open(Some(netlink::NETFILTER)).map_err(Error::of(what))?;
        if set_socket_recv_buffer_size_force(&socket, BUFFER_OCTETS).is_err() {
            // Without rights over the whole computer it is what the administrator allows.
            let _ = set_socket_recv_buffer_size(&socket, BUFFER_OCTETS);
        }
        if set_socket_send_buffer_size_force(&socket, VERDICT_OCTETS).is_err() {
            let _ = set_socket_send_buffer_size(&socket, VERDICT_OCTETS);
        }
        for step in configuration(number) {
            socket.ask(step).map_err(|e| match e.raw_os_error() {
                Some(libc::EBUSY) => Error::InUse(selection.interface.clone()),
                Some(libc::EPERM) if may_administer() => Error::InUse(selection.interface.clone()),
                Some(libc::EINVAL | libc::EOPNOTSUPP) => Error::NoKernel {
                    what,
                    needs: "load the module nfnetlink_queue",
                },
                _ => Error::of(what)(e),
            })?;
        }
        let make = || Rules::make(selection, number, &[Way::Native, Way::Compatible]);
        let mut made = make();
        for _ in 0..TRIES {
            if !matches!(made, Err(Error::InUse(_))) {
                break;
            }
            // Those of a program that was killed are there until their holder has noticed.
            sleep(TRY);
            made = make();
        }
        let (rules, way) = made?;
        Ok(Queue {
            way,
            rules: Some(rules),
            socket,
            selection: selection.clone(),
            index,
            number,
            batch: Batch::new(ROOM),
            verdicts: Vec::with_capacity(BATCH * ROOM),
            last: 0,
        })
    }

    /// Whether the interface is still there. One that was made anew, or that has its name now, is another one.
    pub fn has_interface(&self) -> bool {
        let now = rustix::net::netdevice::name_to_index(&self.socket, &self.selection.interface);
        now.is_ok_and(|index| index == self.index)
    }

    /// Says that packets move here. To be called between turns, ten times a second at least: rules of which nothing is said for
    /// [`HOLD`](super::holder::HOLD) are taken away, and this makes them anew. True if it has: since then packets went by, and nobody has counted them.
    ///
    /// # Errors
    /// [`Error`] of making them anew.
    pub fn keep(&mut self, now: radio::Instant) -> Result<bool, Error> {
        if self.rules.as_mut().is_some_and(|rules| rules.keep(now)) {
            return Ok(false);
        }
        // The old ones are gone for good before there are new ones.
        self.rules = None;
        let (rules, _) = Rules::make(&self.selection, self.number, &[self.way])?;
        self.rules = Some(rules);
        Ok(true)
    }

    /// How packets are brought here, in a few words.
    pub fn way(&self) -> &'static str {
        match self.way {
            Way::Native => "nf_tables, queue",
            Way::Compatible => "nf_tables, xtables' NFQUEUE",
        }
    }

    /// Takes the packets that have come, `BATCH` at most, shows the payload of each datagram to `change`, which tells
    /// whether it has changed it, and lets all of them go on. Does not wait, and does not allocate.
    ///
    /// # Errors
    /// The socket is broken. A queue that is too full is no error.
    pub fn turn(&mut self, mut change: impl FnMut(&mut [u8]) -> bool) -> io::Result<Taken> {
        let mut taken = Taken::default();
        match self.batch.receive(self.socket.as_fd()) {
            Ok(()) => {}
            Err(e) => match e.raw_os_error() {
                // How many were left out tell the numbers of the next ones.
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => return Ok(taken),
                _ => return Err(e),
            },
        }
        self.verdicts.clear();
        for octets in self.batch.messages() {
            for (kind, _, body) in messages(octets) {
                if i32::from(kind) == libc::NLMSG_ERROR {
                    taken.refused += 1;
                }
                if kind != SUBSYSTEM | libc::NFQNL_MSG_PACKET as u16 {
                    continue;
                }
                let attributes = body.get(NET_HEADER..).unwrap_or(&[]);
                let head = find(attributes, libc::NFQA_PACKET_HDR as u16);
                let Some(id) = head
                    .and_then(|h| h.first_chunk())
                    .copied()
                    .map(u32::from_be_bytes)
                else {
                    continue;
                };
                taken.packets += 1;
                taken.missed += u64::from(id.wrapping_sub(self.last).wrapping_sub(1));
                self.last = id;
                let packet = find(attributes, libc::NFQA_PAYLOAD as u16).unwrap_or(&[]);
                let changed = verdict(&mut self.verdicts, self.number, id, packet, &mut change);
                taken.changed += u64::from(changed);
                taken.fragments += u64::from(udp::is_fragment(packet));
            }
        }
        if !self.verdicts.is_empty() {
            let kernel = SocketAddrNetlink::new(0, 0);
            let send = || rustix::net::sendto(&self.socket, &self.verdicts, SendFlags::empty(), &kernel);
            rustix::io::retry_on_intr(send)?;
        }
        Ok(taken)
    }

    /// Lets go on what still waits, and takes the rules away: no packet is lost. If this is not called, or the process is
    /// killed, the kernel takes them away, and drops the packets that wait.
    ///
    /// # Errors
    /// As for [`turn`](Queue::turn).
    pub fn close(mut self) -> io::Result<Taken> {
        // The kernel drops what waits when rules go. So nothing must: a queue without room lets packets go by.
        self.socket.tell(config(self.number, 0, |m| room(m, 0)))?;
        let mut all = Taken::default();
        while has_come(&self.socket)? {
            let taken = self.turn(|_| false)?;
            all.packets += taken.packets;
            all.fragments += taken.fragments;
            all.missed += taken.missed;
            all.refused += taken.refused;
        }
        Ok(all)
    }
}

impl AsFd for Queue {
    /// Polls as readable when packets have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether this thread has CAP_NET_ADMIN.
pub(super) fn may_administer() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::NET_ADMIN))
}

/// `struct nfgenmsg` of a queue.
fn header(m: &mut Vec<u8>, queue: u16) {
    m.extend([0, 0]); // Family, version.
    m.extend(queue.to_be_bytes());
}

/// A step of a queue's configuration.
fn config(queue: u16, flags: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    message(SUBSYSTEM | libc::NFQNL_MSG_CONFIG as u16, flags, |m| {
        header(m, queue);
        body(m);
    })
}

/// How many packets may wait.
fn room(m: &mut Vec<u8>, packets: u32) {
    be32(m, libc::NFQA_CFG_QUEUE_MAXLEN, packets);
}

fn be32(m: &mut Vec<u8>, kind: i32, value: u32) {
    attribute(m, kind as u16, |m| m.extend(value.to_be_bytes()));
}

/// What makes a queue: that it is ours; how much of a packet comes up; how many may wait; that they go on if that is too
/// few. Packets come in segments and with checksums, because the flag is not set that would spare the kernel that.
fn configuration(queue: u16) -> [Vec<u8>; 3] {
    [
        config(queue, libc::NLM_F_ACK, |m| {
            attribute(m, libc::NFQA_CFG_CMD as u16, |m| {
                m.extend([libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, 0]);
            });
        }),
        config(queue, libc::NLM_F_ACK, |m| {
            attribute(m, libc::NFQA_CFG_PARAMS as u16, |m| {
                m.extend(MOST_PACKET.to_be_bytes());
                m.push(libc::NFQNL_COPY_PACKET as u8);
            });
            room(m, MOST_WAITING);
        }),
        config(queue, libc::NLM_F_ACK, |m| {
            be32(m, libc::NFQA_CFG_FLAGS, libc::NFQA_CFG_F_FAIL_OPEN as u32);
            be32(m, libc::NFQA_CFG_MASK, libc::NFQA_CFG_F_FAIL_OPEN as u32);
        }),
    ]
}

/// Appends the verdict on a packet: it goes on, with the octets that it then has if they have changed.
fn verdict(
    out: &mut Vec<u8>,
    queue: u16,
    id: u32,
    packet: &[u8],
    change: impl FnOnce(&mut [u8]) -> bool,
) -> bool {
    let start = out.len();
    out.extend([0; 4]); // Length, below.
    out.extend((SUBSYSTEM | libc::NFQNL_MSG_VERDICT as u16).to_ne_bytes());
    out.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    out.extend([0; 8]);
    debug_assert_eq!(out.len() - start, MESSAGE_HEADER);
    header(out, queue);
    attribute(out, libc::NFQA_VERDICT_HDR as u16, |m| {
        m.extend(ACCEPT.to_be_bytes());
        m.extend(id.to_be_bytes());
    });
    let without = out.len();
    let mut changed = false;
    attribute(out, libc::NFQA_PAYLOAD as u16, |m| {
        let at = m.len();
        m.extend(packet);
        changed = udp::change(&mut m[at..], change);
    });
    if !changed {
        out.truncate(without);
    }
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_one_after_the_other() {
        let mut packet = vec![0x45, 0, 0, 31, 0, 0, 0, 0, 64, 17, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        packet.extend([0, 1, 0, 2, 0, 11, 0, 0, b'a', b'b', b'c']);
        let mut out = Vec::new();
        assert!(!verdict(&mut out, 3, 7, &packet, |_| false));
        assert!(verdict(&mut out, 3, 8, &packet, |p| {
            p[1] = b'B';
            true
        }));
        assert!(!verdict(&mut out, 3, 9, b"no packet", |_| true));
        let all: Vec<_> = messages(&out).collect();
        assert_eq!(all.len(), 3);
        for ((kind, _, body), (id, payload)) in
            all.into_iter()
                .zip([(7, None), (8, Some(&b"aBc"[..])), (9, None)])
        {
            assert_eq!((kind, &body[..4]), (0x301, &[0, 0, 0, 3][..]));
            let head = find(&body[4..], 2).unwrap();
            assert_eq!(head, [0, 0, 0, 1, 0, 0, 0, id]);
            let packet = find(&body[4..], 10);
            assert_eq!(packet.and_then(udp::payload), payload);
        }
    }
}
