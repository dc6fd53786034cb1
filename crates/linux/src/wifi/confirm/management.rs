//! Management frames through nl80211, with their outcome as a netlink message: NL80211_CMD_FRAME, and
//! NL80211_CMD_FRAME_TX_STATUS with the same cookie.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::netlink;

use crate::generic::{GENERIC_HEADER, family, family_request, generic};
use crate::netlink::{Socket, attribute, find, messages, number};
use crate::sys::packet::join_group;
use crate::wifi::error::Error;
use crate::wifi::nl80211::attr::IFINDEX;

const FRAME: u8 = 59;
const FRAME_TX_STATUS: u8 = 60;
const FRAME_OCTETS: u16 = 51;
const COOKIE: u16 = 88;
const ACK: u16 = 92;
/// The group that outcomes are told to.
const GROUP: &str = "mlme";

/// What sends management frames of one interface, and is told their outcomes.
#[derive(Debug)]
pub(super) struct Management {
    /// For requests, so that their answers are not mixed up with outcomes.
    ask: Socket,
    told: Socket,
    family: u16,
    interface: u32,
}

impl Management {
    pub fn open(interface: u32) -> Result<Management, Error> {
        let failed = Error::control("open a netlink socket");
        let mut ask = Socket::open(Some(netlink::GENERIC)).map_err(&failed)?;
        let parts = ask.ask(family_request("nl80211")).map_err(&failed)?;
        let family = parts.iter().find_map(family).ok_or(Error::NoStack)?;
        let told = Socket::open(Some(netlink::GENERIC)).map_err(&failed)?;
        let group = family.groups.iter().find(|(name, _)| name == GROUP);
        let group = group.ok_or(Error::NoStack)?.1;
        join_group(told.as_fd(), group).map_err(&failed)?;
        Ok(Management {
            ask,
            told,
            family: family.id,
            interface,
        })
    }

    /// Sends a frame; its duration and sequence number are the kernel's. Gives its cookie.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<u64> {
        let interface = self.interface;
        let parts = self.ask.ask(generic(self.family, FRAME, libc::NLM_F_ACK, |m| {
            number(m, IFINDEX, interface);
            attribute(m, FRAME_OCTETS, |m| m.extend(frame));
        }))?;
        let found = parts.iter().find_map(|p| cookie(p.body.get(GENERIC_HEADER..)?));
        found.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the kernel tells no cookie"))
    }

    /// Tells each outcome that has come, as (cookie, acked).
    pub fn outcomes(&mut self, mut tell: impl FnMut(u64, bool)) -> io::Result<()> {
        let family = self.family;
        while let Some(octets) = self.told.look()? {
            for (kind, _, body) in messages(octets) {
                let Some((head, rest)) = body.split_at_checked(GENERIC_HEADER) else {
                    continue;
                };
                if kind == family
                    && head[0] == FRAME_TX_STATUS
                    && let Some(cookie) = cookie(rest)
                {
                    tell(cookie, find(rest, ACK).is_some());
                }
            }
        }
        Ok(())
    }
}

fn cookie(attributes: &[u8]) -> Option<u64> {
    find(attributes, COOKIE)?
        .first_chunk()
        .map(|octets| u64::from_ne_bytes(*octets))
}

impl AsFd for Management {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}
