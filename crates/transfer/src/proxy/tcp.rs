//! The TCP side of a connection: the addresses that are called, one after the other, until one answers.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use radio::Instant;
use rustix::net::sockopt::{set_socket_linger, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::watch::ask;
use super::{first, try_for};
use crate::TransferError;
use crate::flow::FlowConfig;

/// See the [module](self).
#[derive(Debug)]
pub(super) enum Tcp {
    /// Not called yet: where it leads.
    Wanted(Arc<[SocketAddr]>),
    Calling(Calling),
    Open(TcpStream),
    Gone,
}

/// One of the addresses is called.
#[derive(Debug)]
pub(super) struct Calling {
    to: Arc<[SocketAddr]>,
    at: usize,
    since: Instant,
    stream: TcpStream,
}

impl Calling {
    /// Calls the first address, from the one at `from` on, that can be called.
    fn begin(to: &Arc<[SocketAddr]>, from: usize, now: Instant) -> Result<Tcp, TransferError> {
        let (at, stream) = first(to, from, call)?;
        Ok(Tcp::Calling(Calling {
            to: Arc::clone(to),
            at,
            since: now,
            stream,
        }))
    }

    /// What becomes writable when the answer is there.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

impl Tcp {
    /// Calls if nobody is called yet, and looks how that went. An address may take [`try_for`] to answer, if it is not the last.
    ///
    /// # Errors
    /// Why the last address cannot be reached.
    pub fn connect(&mut self, now: Instant, config: &FlowConfig) -> Result<(), TransferError> {
        match self {
            Tcp::Wanted(to) => *self = Calling::begin(to, 0, now)?,
            Tcp::Calling(Calling {
                to,
                at,
                since,
                stream,
            }) => {
                let is_last = *at + 1 == to.len();
                match socket_error(&*stream) {
                    Ok(Ok(())) if stream.peer_addr().is_ok() => {
                        ask(stream, config.patience).map_err(|e| TransferError::io(to[*at], e))?;
                        if let Tcp::Calling(calling) = std::mem::replace(self, Tcp::Gone) {
                            *self = Tcp::Open(calling.stream);
                        }
                    }
                    Ok(Ok(())) if is_last || now.since(*since) < try_for(config) => {}
                    Ok(Err(e)) | Err(e) if is_last => return Err(TransferError::io(to[*at], e.into())),
                    _ => *self = Calling::begin(to, *at + 1, now)?,
                }
            }
            Tcp::Open(_) | Tcp::Gone => {}
        }
        Ok(())
    }

    /// The program at the other end learns that this is no good end.
    pub fn reset(&mut self) {
        if let Tcp::Open(stream) = std::mem::replace(self, Tcp::Gone) {
            // without it the end would look like that of a stream that is whole
            let _ = set_socket_linger(&stream, Some(std::time::Duration::ZERO));
        }
    }
}

/// Begins to connect, without waiting for the answer.
fn call(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&fd, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(e) => return Err(e.into()),
    }
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true)?;
    Ok(stream)
}
