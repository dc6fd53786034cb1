//! What the kernel knows of the other end of a TCP connection (`TCP_INFO`, tcp(7)), which rustix does not offer.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

use radio::Duration;

/// `TCP_CLOSE` of the kernel's `net/tcp_states.h`.
const CLOSE: u8 = 7;

/// A connection at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// It has ended, well or by an error.
    pub is_closed: bool,
    /// Data or a probe, of keepalive or of a closed window, are on the way and not acknowledged.
    pub is_asking: bool,
    /// Since anything came from the other end, in steps of the kernel's clock (10 ms at most).
    pub heard_ago: Duration,
}

/// Looks at a TCP socket.
///
/// # Errors
/// As getsockopt(2).
pub fn info(socket: BorrowedFd<'_>) -> io::Result<Info> {
    // SAFETY: `tcp_info` is all integers, for which all-zero bytes are a valid value.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` is writable for `length` octets, and both live; an older kernel fills less of it.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let heard_ms = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
    Ok(Info {
        is_closed: info.tcpi_state == CLOSE,
        is_asking: info.tcpi_unacked > 0 || info.tcpi_probes > 0,
        heard_ago: Duration::from_ms(heard_ms.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;
    use std::thread::sleep;
    use std::time;

    use super::*;

    #[test]
    fn heard_and_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let of = |tcp: &TcpStream| info(tcp.as_fd()).unwrap();
        sleep(time::Duration::from_millis(300));
        let old = of(&near);
        assert!(!old.is_closed && !old.is_asking, "{old:?}");
        assert!(old.heard_ago >= Duration::from_ms(200), "{old:?}");
        far.write_all(b"hello").unwrap();
        near.read_exact(&mut [0; 5]).unwrap();
        assert!(of(&near).heard_ago < old.heard_ago);
        rustix::net::sockopt::set_socket_linger(&far, Some(time::Duration::ZERO)).unwrap();
        drop(far);
        assert!(of(&near).is_closed);
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(info(other.as_fd()).is_err());
    }
}
