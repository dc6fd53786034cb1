//! Many datagrams in one system call (`recvmmsg`), which rustix does not offer.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

use std::fmt;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams that one call receives at most.
pub const BATCH: usize = 32;

/// Buffers for [`BATCH`] datagrams, and what is in them.
pub struct Batch {
    each: usize,
    octets: Vec<u8>,
    lengths: [usize; BATCH],
    count: usize,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} of {BATCH})", self.count)
    }
}

impl Batch {
    /// With room for datagrams of `each` octets; what is longer is cut off.
    pub fn new(each: usize) -> Batch {
        Batch {
            each,
            octets: vec![0; each * BATCH],
            lengths: [0; BATCH],
            count: 0,
        }
    }

    /// Receives what there is, without blocking. Does not allocate.
    ///
    /// # Errors
    /// `EAGAIN` if there is nothing, else as recvmmsg(2).
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.count = 0;
        // SAFETY: `iovec` and `mmsghdr` are integers and nullable pointers, for which all-zero bytes are a valid value.
        let (mut parts, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        let buffers = self.octets.chunks_exact_mut(self.each);
        for ((part, header), buffer) in parts.iter_mut().zip(&mut headers).zip(buffers) {
            part.iov_base = buffer.as_mut_ptr().cast();
            part.iov_len = buffer.len();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each of the `BATCH` headers points to one live iovec of `parts` over a chunk of `octets` of its own,
        // writable for the length given; nothing else refers to them during the call.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        self.count = (received as usize).min(BATCH);
        for (length, header) in self.lengths.iter_mut().zip(&headers).take(self.count) {
            *length = (header.msg_len as usize).min(self.each);
        }
        Ok(())
    }

    /// What was received, in order.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let lengths = self.lengths.iter().take(self.count);
        let buffers = self.octets.chunks_exact(self.each);
        buffers.zip(lengths).map(|(buffer, length)| &buffer[..*length])
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn in_order_cut_off_and_no_more_than_fit() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut batch = Batch::new(4);
        let nothing = batch.receive(socket.as_fd()).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        for n in 0..BATCH as u8 + 3 {
            socket.send_to(&vec![n; usize::from(n)], to).unwrap();
        }
        batch.receive(socket.as_fd()).unwrap();
        let first: Vec<Vec<u8>> = batch.messages().map(<[u8]>::to_vec).collect();
        assert_eq!(first.len(), BATCH);
        for (n, message) in first.iter().enumerate() {
            assert_eq!(*message, vec![n as u8; n.min(4)]);
        }
        batch.receive(socket.as_fd()).unwrap();
        assert_eq!(batch.messages().count(), 3);
        batch.receive(socket.as_fd()).unwrap_err();
        assert_eq!(batch.messages().count(), 0);
    }
}
