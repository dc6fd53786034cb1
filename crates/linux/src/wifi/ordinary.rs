//! The other way to an outcome: SO_WIFI_STATUS, on ordinary interfaces, where the kernel makes the 802.11 frame.
//!
//! For adapters whose driver has no monitor interfaces worth the name. What goes in is an Ethernet frame; rate, tries
//! and sequence number are Linux's choice, and of the outcome it tells only whether an ACK came. A frame to a group, or
//! one that was dropped on its way, has no outcome at all. So this carries no [`Protocol`](radio::Protocol): too much
//! of what one asks for would have to be refused.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use super::error::Error;
use super::nl80211::Control;
use crate::sys::packet::{bind_packet, bypass_queue, enable_wifi_status, receive_status};

/// A packet socket on an ordinary 802.11 interface that tells which frames were acknowledged.
#[derive(Debug)]
pub struct OrdinarySocket(OwnedFd);

/// What came back of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrdinaryStatus {
    /// Octets of the Ethernet frame, which were written to the buffer.
    pub octets: usize,
    /// Whether an ACK came.
    pub acked: bool,
}

impl OrdinarySocket {
    /// On the interface of this name (`wlan0`).
    ///
    /// # Errors
    /// [`Error::NoSuchRadio`] if it is no 802.11 interface, [`Error::NoPermission`] without CAP_NET_RAW.
    pub fn open(interface: &str) -> Result<OrdinarySocket, Error> {
        let all = Control::open()?.interfaces()?;
        let found = all.iter().find(|i| i.name == interface);
        let index = found.ok_or_else(|| Error::NoSuchRadio {
            name: interface.into(),
            have: all.iter().map(|i| i.name.clone()).collect(),
        })?;
        Self::on(index.index).map_err(Error::packet("open a packet socket"))
    }

    fn on(index: u32) -> io::Result<OrdinarySocket> {
        let socket =
            rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        enable_wifi_status(socket.as_fd())?;
        bypass_queue(socket.as_fd())?;
        bind_packet(socket.as_fd(), index, 0)?;
        Ok(OrdinarySocket(socket))
    }

    /// Sends an Ethernet frame.
    ///
    /// # Errors
    /// As send(2) on a packet socket.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::net::send(&self.0, frame, SendFlags::DONTWAIT))?;
        Ok(())
    }

    /// The next outcome, with the frame that it is about; `None` if there is none yet. The socket polls as having an
    /// error while there is.
    ///
    /// # Errors
    /// As recvmsg(2).
    pub fn status(&self, frame: &mut [u8]) -> io::Result<Option<OrdinaryStatus>> {
        loop {
            match receive_status(self.0.as_fd(), frame) {
                Ok(received) => {
                    if let Some(acked) = received.wifi_acked {
                        let octets = received.length;
                        return Ok(Some(OrdinaryStatus { octets, acked }));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl AsFd for OrdinarySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
