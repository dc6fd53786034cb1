//! Packets that leave through an interface, forwarded ones and our own, held for a program that may change them.
//!
//! ```text
//! forwarded, or sent here -> routed -> rule of ours -> queue -> program -> interface
//!                                         '-- nobody there, or too slow: straight on --^
//! ```
//!
//! [`Queue`] makes the rules and takes the packets. It fails open in every way: the rules let packets pass when nobody
//! listens (`bypass`), the kernel lets them pass when the queue is full (`NFQA_CFG_F_FAIL_OPEN`), and the rules belong
//! to a socket (`NFT_TABLE_F_OWNER`, Linux 5.12) of a process that dies when this one does, or hangs ([`holder`]), so the
//! kernel removes them.
//! Segmentation and checksum offload are done by the kernel before a packet comes here, so each is one datagram
//! as it will be sent.
//!
//! [`udp`] finds and changes the octets of a datagram, with the checksum kept as right, or as wrong, as it was.

pub mod holder;
mod queue;
mod rules;
pub mod udp;

use std::io;

pub use queue::{Queue, Taken};

/// Which packets are taken: UDP from or to one of these ports, that leaves through this interface, and whose payload
/// begins so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Name of the interface.
    pub interface: String,
    /// UDP ports, of which either end has one.
    pub ports: Vec<u16>,
    /// The first two octets of the payload.
    pub begins: [u8; 2],
}

/// Why packets cannot be taken. Each is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such interface in this network namespace.
    #[error("there is no interface `{0}` here: `ip link` lists them")]
    NoInterface(String),
    /// CAP_NET_ADMIN is missing.
    #[error(
        "not allowed to {0}, for want of CAP_NET_ADMIN: run as root, or `setcap cap_net_admin+ep` the program"
    )]
    NoPermission(&'static str),
    /// The kernel has no part that is needed.
    #[error("this kernel cannot {what}: {needs}")]
    NoKernel {
        /// What it cannot.
        what: &'static str,
        /// What it takes.
        needs: &'static str,
    },
    /// Another process does it.
    #[error("another program takes the packets of `{0}` already: end that one first")]
    InUse(String),
    /// Anything else that the kernel answers.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        source: io::Error,
    },
}

impl Error {
    /// What an answer of the kernel means.
    fn of(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::NoPermission(what),
            _ => Error::Kernel { what, source },
        }
    }
}

/// Gives up every right of this thread, and of what it starts, but CAP_NET_ADMIN, without which no verdict counts. To be
/// called when all is open and before there are other threads.
///
/// # Errors
/// Those of capset(2) and prctl(2).
pub fn give_up_other_rights() -> io::Result<()> {
    give_up_rights_but(rustix::thread::CapabilitySet::NET_ADMIN)
}

/// Gives up every right of this thread but these, and but those that it never had.
fn give_up_rights_but(keep: rustix::thread::CapabilitySet) -> io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets};
    rustix::thread::set_no_new_privs(true)?;
    let has = rustix::thread::capabilities(None)?;
    let keep = has.permitted & keep;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: keep,
            permitted: keep,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_given_up_by_this_thread_alone() {
        use rustix::thread::CapabilitySet;
        let before = rustix::thread::capabilities(None).unwrap();
        let left = std::thread::spawn(|| {
            give_up_other_rights().unwrap();
            rustix::thread::capabilities(None).unwrap()
        });
        let left = left.join().unwrap();
        assert_eq!(left.effective, before.permitted & CapabilitySet::NET_ADMIN);
        assert_eq!(left.permitted, left.effective);
        assert_eq!(rustix::thread::capabilities(None).unwrap(), before);
    }
}
