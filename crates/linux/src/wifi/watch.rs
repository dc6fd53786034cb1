//! News of interfaces and rules: that there is some, and not what it says, since all is read again then.

use std::os::fd::{AsFd, BorrowedFd};

use crate::netlink::Socket;

/// A socket of which only matters that something has come.
#[derive(Debug)]
pub(super) struct Watch(pub Socket);

impl Watch {
    /// Throws away what has come. `Err` if the kernel had to leave something out.
    pub fn drain(&self) -> Result<bool, ()> {
        let mut any = false;
        loop {
            let flags = rustix::net::RecvFlags::DONTWAIT | rustix::net::RecvFlags::TRUNC;
            match rustix::net::recv(&self.0, &mut [0; 16][..], flags) {
                Ok(_) => any = true,
                Err(rustix::io::Errno::NOBUFS) => return Err(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Ok(any),
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
