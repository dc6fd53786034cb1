//! What the driver asks of the USB, and what it is told.

/// Names a transfer to the stick. Unique until it wraps around.
pub type TransferId = u32;

/// Actions of the driver. All calls return at once; what becomes of them comes as a [`BusEvent`].
pub trait Bus {
    /// Resets the device: it is then with the loader in its ROM, all transfers are gone, and [`BusEvent::Attached`]
    /// follows.
    fn reset(&mut self);
    /// A control transfer to the device (type 0x40, index 0). There is one at a time;
    /// [`BusEvent::ControlDone`] follows.
    fn control(&mut self, request: u8, value: u16, data: &[u8]);
    /// A transfer to ep 4. There is one at a time; [`BusEvent::Sent`] follows.
    fn command(&mut self, id: TransferId, octets: &[u8]);
    /// A transfer to ep 1, with a zero-length packet behind it where its length asks for one. There is one at a time;
    /// [`BusEvent::Sent`] follows.
    fn frame(&mut self, id: TransferId, octets: &[u8]);
    /// Posts a read of [`MAX_TRANSFER_OCTETS`](crate::codec::stream::MAX_TRANSFER_OCTETS) at ep 2. Several may be
    /// posted; for each comes a [`BusEvent::Received`], [`BusEvent::Cut`] or [`BusEvent::ReadFailed`].
    fn read(&mut self);
}

/// What the driver is told of the USB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusEvent<'a> {
    /// A stick is there, with the loader in its ROM: plugged in, or reset.
    Attached,
    /// The stick is gone, and all transfers with it.
    Detached,
    /// The control transfer has ended, well or not.
    ControlDone(bool),
    /// A transfer to ep 1 or ep 4 has ended, well or not.
    Sent(TransferId, bool),
    /// A read has ended.
    Received(&'a [u8]),
    /// A read has ended, and its transfer was longer than there was room for: the octets at its front.
    Cut(&'a [u8]),
    /// A read has ended without anything.
    ReadFailed,
}
