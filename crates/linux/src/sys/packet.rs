//! Packet sockets: addresses, socket options and control messages that rustix does not know.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// One instruction of a classic BPF program (linux/filter.h).
pub type Instruction = libc::sock_filter;

/// Binds a packet socket to one interface. `protocol` is the EtherType it receives, in host byte order; 0
/// receives nothing, which suits a socket that only sends (packet(7)).
pub fn bind_packet(socket: BorrowedFd<'_>, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain integers, for which all-zero bytes are a valid value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as libc::c_int;
    // SAFETY: the pointer and the length describe the live `address`; the kernel only reads it.
    let rc = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    result(rc)
}

/// Asks the kernel to stamp each arriving packet with its arrival time (`SO_TIMESTAMPNS`, socket(7)). A packet
/// that came before the kernel began to stamp gets the time at which it is read.
pub fn enable_receive_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// The same with `SO_TIMESTAMPING`, for the software stamp alone. A packet that came before the kernel began to
/// stamp gets none, rather than a wrong one.
pub fn enable_true_receive_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        flags as libc::c_int,
    )
}

/// Stamps what is sent when its driver takes it, on `CLOCK_REALTIME`: the frame comes back with the stamp in the error queue
/// ([`receive_status`]).
pub fn enable_transmit_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        flags as libc::c_int,
    )
}

/// Asks for the number of packets lost for want of room with each packet (`SO_RXQ_OVFL`, socket(7)).
pub fn enable_drop_count(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// Asks for the outcome of what is sent on an ordinary 802.11 interface, in the error queue (`SO_WIFI_STATUS`).
pub fn enable_wifi_status(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_WIFI_STATUS, 1)
}

/// Leaves out what other sockets of this computer send through the interface (`PACKET_IGNORE_OUTGOING`, packet(7)).
pub fn ignore_outgoing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Hands what is sent to the driver without a queueing discipline between (`PACKET_QDISC_BYPASS`, packet(7)).
pub fn bypass_queue(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
}

/// The priority of what is sent from now on (`SO_PRIORITY`, socket(7)).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` for one above 6.
pub fn set_priority(socket: BorrowedFd<'_>, priority: u16) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority.into())
}

/// Makes a netlink socket a member of a multicast group (`NETLINK_ADD_MEMBERSHIP`, netlink(7)).
pub fn join_group(socket: BorrowedFd<'_>, group: u32) -> io::Result<()> {
    set(
        socket,
        libc::SOL_NETLINK,
        libc::NETLINK_ADD_MEMBERSHIP,
        group as libc::c_int,
    )
}

/// `struct sock_txtime` (linux/net_tstamp.h).
#[repr(C)]
struct SockTxtime {
    clock: libc::clockid_t,
    flags: u32,
}

/// Lets each frame have its time of departure on `CLOCK_TAI`, for [`send_at`] (`SO_TXTIME`, tc-etf(8)).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`.
pub fn enable_departure_times(socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = SockTxtime {
        clock: libc::CLOCK_TAI,
        flags: 0,
    };
    // SAFETY: the pointer and the length describe the live `value`; the kernel only reads it.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TXTIME,
            (&raw const value).cast(),
            size_of::<SockTxtime>() as libc::socklen_t,
        )
    };
    result(rc)
}

/// Sends one frame that is to depart at `tai_ns` on `CLOCK_TAI`, after [`enable_departure_times`].
///
/// # Errors
/// `ENOBUFS` if the queue is full, or would not hold a frame of that time.
pub fn send_at(socket: BorrowedFd<'_>, frame: &[u8], tai_ns: u64) -> io::Result<()> {
    let mut part = libc::iovec {
        iov_base: frame.as_ptr().cast_mut().cast(),
        iov_len: frame.len(),
    };
    let mut control = Control([0; 256]);
    // SAFETY: `msghdr` is integers and pointers, for which all-zero octets are a valid value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    // SAFETY: pure arithmetic.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u64>() as u32) } as _;
    // SAFETY: `msg_control` points to 256 live octets aligned for `cmsghdr`, of which one header and eight octets of data
    // are in `msg_controllen`, so the header that CMSG_FIRSTHDR gives is there, and so is its data. The data is written
    // without asking for alignment.
    let rc = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_TXTIME;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u64>() as u32) as _;
        libc::CMSG_DATA(header).cast::<u64>().write_unaligned(tai_ns);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, 0)
    };
    result(if rc < 0 { -1 } else { 0 })
}

fn set(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the live `value`; the kernel only reads it.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    result(rc)
}

/// Lets only those packets into the socket for which a classic BPF program returns other than 0
/// (`SO_ATTACH_FILTER`, socket(7)); takes the place of an earlier one.
///
/// # Errors
/// `EINVAL` if the program is empty, longer than 4096 instructions, or not one that the kernel takes.
pub fn attach_filter(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: `program` is live, and names instructions that are live for as many as it says; the kernel copies
    // and checks them, and writes nothing.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    result(rc)
}

fn result(rc: libc::c_int) -> io::Result<()> {
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What one `recvmsg` brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Octets written to the buffer.
    pub length: usize,
    /// Arrival in the kernel on `CLOCK_REALTIME`, ns since 1970; from the error queue, departure. `None` if the kernel gave no stamp.
    pub stamp_ns: Option<u64>,
    /// Packets that this socket has lost since it was opened, where that was asked for and there are any.
    pub lost: Option<u32>,
    /// From the error queue, after [`enable_wifi_status`]: whether the frame was acknowledged.
    pub wifi_acked: Option<bool>,
}

/// Room for control messages, aligned as `cmsghdr` demands. 256 octets hold all that is asked for here.
#[repr(C, align(16))]
struct Control([u8; 256]);

/// Receives one packet with its arrival stamp. Blocks as long as the socket's own timeout allows. Does not
/// allocate.
///
/// # Errors
/// `EAGAIN` after the socket's timeout, `EINTR` after a signal, else as recvmsg(2).
pub fn receive_stamped(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    receive(socket, buffer, 0)
}

/// As [`receive_stamped`], without blocking: `EAGAIN` if there is nothing.
pub fn receive_now(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    receive(socket, buffer, libc::MSG_DONTWAIT)
}

/// As [`receive_now`], from the error queue, where outcomes and stamps of what was sent come back.
pub fn receive_status(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    receive(socket, buffer, libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE)
}

fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Received> {
    let mut control = Control([0; 256]);
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: `msghdr` is integers and nullable pointers, for which all-zero bytes are a valid value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: `message` points to one iovec over `buffer` and to `control`, all live and writable for the
    // lengths given; nothing else refers to them during the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut received = Received {
        length: length as usize,
        ..Received::default()
    };
    // SAFETY: `message` was filled by a successful recvmsg, and `control` still holds what it points to.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give null or a whole, aligned header inside `control`.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        match (level, kind) {
            // Of the three times of SCM_TIMESTAMPING the first is the software stamp, or all zero.
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS | libc::SCM_TIMESTAMPING) => {
                received.stamp_ns = value::<libc::timespec>(header).and_then(nanoseconds);
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => received.lost = value::<u32>(header),
            (libc::SOL_SOCKET, libc::SCM_WIFI_STATUS) => {
                received.wifi_acked = value::<libc::c_int>(header).map(|acked| acked != 0);
            }
            _ => {}
        }
        // SAFETY: `header` lies in the control area of `message`, both still live.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok(received)
}

/// Types of control messages: plain integers, for which every bit pattern is a value.
trait Plain: Copy {}
impl Plain for u32 {}
impl Plain for libc::c_int {}
impl Plain for libc::timespec {}

/// The value that begins the data of a control message, if it is long enough for one. `header` is one that
/// CMSG_FIRSTHDR or CMSG_NXTHDR gave, with its data still live.
fn value<T: Plain>(header: *const libc::cmsghdr) -> Option<T> {
    // SAFETY: the header is whole and aligned (see above); CMSG_LEN only computes.
    let enough = unsafe { (*header).cmsg_len >= libc::CMSG_LEN(size_of::<T>() as u32) as _ };
    // SAFETY: the message is long enough for a `T` (just checked), of which every bit pattern is one;
    // read_unaligned asks for no alignment.
    enough.then(|| unsafe { libc::CMSG_DATA(header).cast::<T>().read_unaligned() })
}

fn nanoseconds(time: libc::timespec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let ns = seconds * 1_000_000_000 + time.tv_nsec as u64;
    (ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn since_1970_ns() -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.unwrap().as_nanos() as u64
    }

    #[test]
    fn a_received_datagram_has_a_stamp_between_send_and_receive() {
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        enable_receive_stamps(to.as_fd()).unwrap();
        let before = since_1970_ns();
        from.send_to(b"beacon", to.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let received = receive_stamped(to.as_fd(), &mut buffer).unwrap();
        let after = since_1970_ns();
        assert_eq!(&buffer[..received.length], b"beacon");
        let stamp = received.stamp_ns.expect("a stamp was asked for");
        assert!(
            (before..=after).contains(&stamp),
            "{before} <= {stamp} <= {after}"
        );
    }

    /// The kernel may begin to stamp a little later than asked; but what it then stamps is true.
    #[test]
    fn true_stamps_come_in_time() {
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        enable_true_receive_stamps(to.as_fd()).unwrap();
        let stamped = (0..10_000).find_map(|_| {
            let before = since_1970_ns();
            from.send_to(b"beacon", to.local_addr().unwrap()).unwrap();
            let received = receive_stamped(to.as_fd(), &mut [0; 16]).unwrap();
            received
                .stamp_ns
                .map(|stamp| (before..=since_1970_ns()).contains(&stamp))
        });
        assert_eq!(stamped, Some(true));
    }

    #[test]
    fn without_asking_there_is_no_stamp_and_a_timeout_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        let received = receive_stamped(socket.as_fd(), &mut [0; 4]).unwrap();
        let plain = Received {
            length: 1,
            ..Received::default()
        };
        assert_eq!(received, plain);
        let nothing = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        nothing(receive_now(socket.as_fd(), &mut [0; 4]).unwrap_err());
        nothing(receive_status(socket.as_fd(), &mut [0; 4]).unwrap_err());
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        nothing(receive_stamped(socket.as_fd(), &mut [0; 4]).unwrap_err());
    }

    #[test]
    fn a_filter_keeps_out_what_it_does_not_know() {
        let accept_b = [
            (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 8), // Behind the header of UDP.
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::from(b'b')),
            (libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
            (libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ]
        .map(|(code, jt, jf, k)| Instruction {
            code: code as u16,
            jt,
            jf,
            k,
        });
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        attach_filter(socket.as_fd(), &accept_b).unwrap();
        for octet in [b"a", b"b"] {
            socket.send_to(octet, socket.local_addr().unwrap()).unwrap();
        }
        let mut buffer = [0; 4];
        receive_stamped(socket.as_fd(), &mut buffer).unwrap();
        assert_eq!(buffer[0], b'b');
        let error = attach_filter(socket.as_fd(), &[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert!(attach_filter(socket.as_fd(), &accept_b[..2]).is_err(), "no end");
    }

    /// What the socket had no room for is counted, and told with the next packet that comes in.
    #[test]
    fn lost_packets_are_counted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        enable_drop_count(socket.as_fd()).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4_096).unwrap();
        for _ in 0..200 {
            let _ = socket.send_to(&[0; 1_000], socket.local_addr().unwrap());
        }
        while receive_now(socket.as_fd(), &mut [0; 1_000]).is_ok() {}
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        let received = receive_stamped(socket.as_fd(), &mut [0; 8]).unwrap();
        assert!(received.lost.is_some_and(|n| n > 100), "{received:?}");
    }
}
