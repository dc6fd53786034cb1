//! One endpoint: transfers that are under way, in their order.

use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use nusb::transfer::{Buffer, BulkOrInterrupt, Completion, EndpointDirection, TransferError};
use nusb::{Endpoint, Interface};

/// How long a transfer that was cancelled may take to be back.
const BACK: Duration = Duration::from_millis(200);

/// An endpoint with its transfers, each with a name: `T`.
pub(super) struct Pipe<K: BulkOrInterrupt, D: EndpointDirection, T> {
    endpoint: Endpoint<K, D>,
    names: VecDeque<T>,
}

impl<K: BulkOrInterrupt, D: EndpointDirection, T> Pipe<K, D, T> {
    pub(super) fn open(interface: &Interface, address: u8) -> Result<Self, nusb::Error> {
        Ok(Pipe {
            endpoint: interface.endpoint(address)?,
            names: VecDeque::new(),
        })
    }

    /// Octets of its packets.
    pub(super) fn packet_octets(&self) -> usize {
        self.endpoint.max_packet_size()
    }

    pub(super) fn submit(&mut self, name: T, buffer: Buffer) {
        self.names.push_back(name);
        self.endpoint.submit(buffer);
    }

    /// The first transfer if it has ended; else its waker is called when it does.
    pub(super) fn ended(&mut self, context: &mut Context<'_>) -> Option<(T, Completion)> {
        if self.endpoint.pending() == 0 {
            return None;
        }
        match self.endpoint.poll_next_complete(context) {
            Poll::Ready(completion) => Some((self.names.pop_front()?, completion)),
            Poll::Pending => None,
        }
    }

    /// Ends all transfers: an interface is kept by those that are under way.
    pub(super) fn drain(&mut self) {
        self.endpoint.cancel_all();
        while self.endpoint.pending() > 0 && self.endpoint.wait_next_complete(BACK).is_some() {}
        self.names.clear();
    }
}

/// What a transfer came to.
pub(super) enum End {
    Well,
    /// Not, but the stick is there.
    Badly,
    /// There is no stick any more.
    Gone,
}

impl End {
    pub(super) fn of(status: Result<(), TransferError>) -> End {
        match status {
            Ok(()) => End::Well,
            Err(TransferError::Disconnected) => End::Gone,
            Err(_) => End::Badly,
        }
    }
}
