//! Packet sockets of an interface: one to send, and those that show.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::sys::packet::{
    Instruction, attach_filter, bind_packet, bypass_queue, enable_drop_count, enable_true_receive_stamps,
    ignore_outgoing,
};

/// Every EtherType, ETH_P_ALL.
const EVERYTHING: u16 = 3;

/// What sends through an interface, without a queueing discipline between.
pub(super) fn sender(interface: u32) -> io::Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    bypass_queue(socket.as_fd())?;
    bind_packet(socket.as_fd(), interface, 0)?;
    Ok(socket)
}

/// What shows the packets of an interface that a filter lets through, with stamps and a count of those that were lost.
pub(super) fn receiver(interface: u32, program: &[Instruction], octets: usize) -> io::Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    // Before it is bound, so that nothing comes in unfiltered.
    attach_filter(socket.as_fd(), program)?;
    ignore_outgoing(socket.as_fd())?;
    enable_true_receive_stamps(socket.as_fd())?;
    enable_drop_count(socket.as_fd())?;
    make_room(&socket, octets)?;
    bind_packet(socket.as_fd(), interface, EVERYTHING)?;
    Ok(socket)
}

/// Gives a socket room for so much that waits for us, or for as much as the system's limit is.
pub(super) fn make_room(socket: &OwnedFd, octets: usize) -> io::Result<()> {
    if set_socket_recv_buffer_size_force(socket, octets).is_err() {
        set_socket_recv_buffer_size(socket, octets)?;
    }
    Ok(())
}
