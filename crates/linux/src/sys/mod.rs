//! System calls that rustix 1.1 does not offer: scheduling policy and sockets made inside a fresh network
//! namespace (here), what is peculiar to packet sockets ([`packet`]), many datagrams in one call ([`batch`]), kernel
//! probes ([`perf`]), programs for the kernel ([`bpf`]), POSIX timers ([`timer`]), and what is known of a TCP connection ([`tcp`]).
//!
//! Every `unsafe` block of this library is in this folder, and each states why it is sound.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

pub mod batch;
pub mod bpf;
pub mod packet;
pub mod perf;
pub mod tcp;
pub mod timer;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::thread::UnshareFlags;

/// `struct sched_param` as the kernel knows it (musl's has more fields).
#[repr(C)]
struct SchedParam {
    priority: libc::c_int,
}

/// `struct ethtool_drvinfo`, as far as its name.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// Name of the driver of a network interface, as `ethtool -i` has it: also where /sys shows another network namespace.
///
/// # Errors
/// `ENODEV` if there is no such interface, `EOPNOTSUPP` if it does not tell.
pub fn driver_of(interface: &str) -> io::Result<String> {
    const SIOCETHTOOL: u32 = 0x8946;
    const ETHTOOL_GDRVINFO: u32 = 3;
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    let mut info = DriverInfo {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        rest: [0; 160],
    };
    // SAFETY: a `struct ifreq` of zeros is a valid one.
    let mut ask: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    let name = interface.as_bytes();
    if name.len() >= ask.ifr_name.len() {
        return Err(Errno::NODEV.into());
    }
    for (to, from) in ask.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    ask.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: `ask` and the `info` that it points to live, and `info` is as long as the kernel's structure.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut ask) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let end = info
        .driver
        .iter()
        .position(|octet| *octet == 0)
        .unwrap_or(info.driver.len());
    Ok(String::from_utf8_lossy(&info.driver[..end]).into_owned())
}

/// Gives the calling thread `SCHED_FIFO` with a priority of 1 to 99, or `SCHED_OTHER` for `None` (sched(7)). Threads
/// and processes started by a `SCHED_FIFO` thread start as `SCHED_OTHER`.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`, unless `RLIMIT_RTPRIO` reaches the priority; also where the control group
/// has no real-time budget. `EINVAL` for another priority.
pub fn set_scheduler(fifo: Option<u8>) -> io::Result<()> {
    let policy = if fifo.is_some() {
        libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK
    } else {
        libc::SCHED_OTHER
    };
    let param = SchedParam {
        priority: fifo.unwrap_or(0).into(),
    };
    // SAFETY: 0 is the calling thread; `param` is a live `struct sched_param` that the kernel only reads.
    if unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Policy and priority of a thread, as sched(7) numbers them.
///
/// # Errors
/// `ESRCH` if there is no such thread.
pub fn scheduler_of(pid: u32) -> io::Result<(i32, i32)> {
    let mut param = SchedParam { priority: 0 };
    // SAFETY: the kernel only reads the number.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, pid) };
    // SAFETY: `param` is a live `struct sched_param` that the kernel fills.
    let done = unsafe { libc::syscall(libc::SYS_sched_getparam, pid, &raw mut param) };
    if policy < 0 || done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((policy as i32, param.priority))
}

/// Gives a thread this policy and priority, as [`scheduler_of`] tells them.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`; `ESRCH` if there is no such thread; `EINVAL` if the two do not fit.
pub fn set_scheduler_of(pid: u32, policy: i32, priority: i32) -> io::Result<()> {
    let param = SchedParam { priority };
    // SAFETY: `param` is a live `struct sched_param` that the kernel only reads.
    if unsafe { libc::syscall(libc::SYS_sched_setscheduler, pid, policy, &raw const param) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sockets that live in a network namespace of their own. The namespace ends with the last of them.
#[derive(Debug)]
pub struct NamespaceSockets {
    /// A rtnetlink socket, to make interfaces with.
    pub route: OwnedFd,
    /// Two raw packet sockets, not yet bound, hence receiving nothing.
    pub packet: [OwnedFd; 2],
}

/// Moves the calling thread into a new network namespace, which threads and processes that it starts share.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN, `ENOSPC` where the limit on namespaces is reached.
pub fn enter_new_network() -> io::Result<()> {
    // SAFETY: the call is only unsound with `FILES`, which is not asked for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Which step of [`sockets_in_new_namespace`] failed.
#[derive(Debug)]
pub enum NamespaceError {
    /// `fork`, or the talk with the child.
    Child(io::Error),
    /// `unshare`: no right to make the namespace, or none left.
    Unshare(io::Error),
    /// `socket` inside the namespace.
    Socket(io::Error),
}

/// Opens sockets in a new network namespace, and if `new_user` in a new user namespace, which needs no right
/// where the kernel allows it (user_namespaces(7)).
///
/// The namespaces are made in a short-lived child, because a user namespace cannot be entered by one thread of
/// many; the child hands the sockets over and ends. No thread of this process changes its namespace.
pub fn sockets_in_new_namespace(new_user: bool) -> Result<NamespaceSockets, NamespaceError> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|errno| NamespaceError::Child(errno.into()))?;
    // SAFETY: the child of a threaded process may only do what is async-signal-safe. `child_main` makes raw
    // system calls on stack memory: it allocates nothing, takes no lock and cannot panic. `_exit` then ends it
    // without running exit handlers or destructors.
    let child = match unsafe { libc::fork() } {
        0 => {
            child_main(new_user, theirs.as_fd());
            // SAFETY: always sound; never returns.
            unsafe { libc::_exit(0) }
        }
        error if error < 0 => return Err(NamespaceError::Child(io::Error::last_os_error())),
        pid => pid,
    };
    drop(theirs);
    let result = receive_sockets(ours.as_fd());
    // Reap the child. ECHILD means that this program ignores SIGCHLD and the kernel has reaped it.
    if let Some(pid) = rustix::process::Pid::from_raw(child) {
        let _ = rustix::io::retry_on_intr(|| {
            rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
        });
    }
    result
}

/// Steps of the child, as it reports them.
const DONE: u8 = 0;
const UNSHARE: u8 = 1;
const SOCKET: u8 = 2;

/// The child's whole life: new namespaces, three sockets, hand them over or say which step failed and why.
fn child_main(new_user: bool, parent: BorrowedFd<'_>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets = open_in_namespace(new_user);
    let (fds, report);
    match &sockets {
        Ok(NamespaceSockets {
            route,
            packet: [a, b],
        }) => {
            fds = [route.as_fd(), a.as_fd(), b.as_fd()];
            control.push(SendAncillaryMessage::ScmRights(&fds));
            report = [DONE, 0, 0, 0, 0];
        }
        Err((step, errno)) => {
            let [a, b, c, d] = errno.raw_os_error().to_le_bytes();
            report = [*step, a, b, c, d];
        }
    }
    // If this fails the parent reads the end of the stream instead.
    let _ = rustix::net::sendmsg(
        parent,
        &[io::IoSlice::new(&report)],
        &mut control,
        SendFlags::empty(),
    );
}

fn open_in_namespace(new_user: bool) -> Result<NamespaceSockets, (u8, Errno)> {
    let flags = if new_user {
        UnshareFlags::NEWNET | UnshareFlags::NEWUSER
    } else {
        UnshareFlags::NEWNET
    };
    // SAFETY: the call is only unsound with `FILES`, which is not asked for.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(|errno| (UNSHARE, errno))?;
    let open = |family| {
        rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|errno| (SOCKET, errno))
    };
    Ok(NamespaceSockets {
        route: open(AddressFamily::NETLINK)?, // Protocol 0 is NETLINK_ROUTE.
        packet: [open(AddressFamily::PACKET)?, open(AddressFamily::PACKET)?],
    })
}

fn receive_sockets(child: BorrowedFd<'_>) -> Result<NamespaceSockets, NamespaceError> {
    let mut report = [0; 5];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let parts = &mut [io::IoSliceMut::new(&mut report)];
        rustix::net::recvmsg(child, parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })
    .map_err(|errno| NamespaceError::Child(errno.into()))?;
    let mut fds = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten();
    let [step, a, b, c, d] = report;
    let error = || io::Error::from_raw_os_error(i32::from_le_bytes([a, b, c, d]));
    match (received.bytes, step) {
        (5, DONE) => match (fds.next(), fds.next(), fds.next()) {
            (Some(route), Some(a), Some(b)) => Ok(NamespaceSockets {
                route,
                packet: [a, b],
            }),
            _ => Err(NamespaceError::Child(io::Error::other(
                "no room for three more file descriptors",
            ))),
        },
        (5, UNSHARE) => Err(NamespaceError::Unshare(error())),
        (5, SOCKET) => Err(NamespaceError::Socket(error())),
        _ => Err(NamespaceError::Child(io::ErrorKind::UnexpectedEof.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::packet::bind_packet;
    use super::*;

    /// Policy and priority of the calling thread: fields 41 and 40 of proc_pid_stat(5).
    fn scheduler() -> (i32, u32) {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_ascii_whitespace()
            .collect();
        (fields[38].parse().unwrap(), fields[37].parse().unwrap())
    }

    #[test]
    fn fifo_is_set_and_left_again_and_not_inherited() {
        let test = std::thread::spawn(|| {
            match set_scheduler(Some(7)) {
                Ok(()) => {
                    assert_eq!(scheduler(), (libc::SCHED_FIFO, 7));
                    assert_eq!(
                        std::thread::spawn(scheduler).join().unwrap(),
                        (libc::SCHED_OTHER, 0)
                    );
                    set_scheduler(None).unwrap();
                }
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
            }
            assert_eq!(scheduler(), (libc::SCHED_OTHER, 0));
            assert!(set_scheduler(Some(0)).is_err() && set_scheduler(Some(100)).is_err());
        });
        test.join().unwrap();
    }

    #[test]
    fn a_new_namespace_leaves_this_process_where_it_was() {
        let here = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let before = here();
        for new_user in [false, true] {
            match sockets_in_new_namespace(new_user) {
                Ok(sockets) => {
                    // Only `lo` can be there, and it is down: sending on it is refused.
                    bind_packet(sockets.packet[0].as_fd(), 1, 0).unwrap();
                    let sent = rustix::net::send(&sockets.packet[0], &[0; 64], SendFlags::empty());
                    assert_eq!(sent, Err(Errno::NETDOWN));
                }
                Err(NamespaceError::Unshare(_) | NamespaceError::Socket(_)) => {} // No right to it here.
                Err(error) => panic!("{error:?}"),
            }
            assert_eq!(here(), before);
        }
    }
}
