//! The air between the simulated radios of this kernel: a program registers with mac80211_hwsim, is handed each frame
//! that a radio sends, and says who receives it and what becomes of it.
//!
//! ```text
//! kernel -> Medium   Event::Sent: a frame, with the rates and tries that are planned for it
//!                    Event::Address: an interface came up or went
//! Medium -> kernel   deliver: a radio receives a frame
//!                    report: a frame has ended, with the tries that it took
//! ```
//!
//! When the socket closes, however the process ends, the kernel goes back to its own perfect air. Only radios of
//! mac80211_hwsim are ever concerned. What belongs here: the protocol with the kernel. What does not: any idea of what
//! an air is like.

mod early;
mod error;
mod message;
mod series;
mod switches;

pub use error::Error;
pub use series::{MAX_SERIES, Series, flag};
pub use switches::{Change, Switchboard, Switches, switchboard};

use std::collections::VecDeque;
use std::os::fd::AsFd;

use frame::MacAddr;
use rustix::io::Errno;
use rustix::net::netlink;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::clock::monotonic_ns;
use crate::generic::{family, family_request, generic};
use crate::netlink::{Socket, messages};
use crate::wifi::Wait;
use crate::wifi::wait::Waiter;
use early::Newest;
use message::command;

/// Room for what radios send while we are busy: about a thousand long frames.
const RECEIVE_OCTETS: usize = 4 << 20;
/// What makes the radio's own address of that of its first interface.
const RADIO_BIT: u8 = 0x40;

/// A radio of this network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Radio {
    /// Its number in the module.
    pub id: u32,
    /// Its name, `phy0`.
    pub name: String,
    /// Its permanent address, which is that of its first interface.
    pub address: MacAddr,
}

impl Radio {
    /// The address by which the medium names it. No interface has it.
    pub fn key(&self) -> MacAddr {
        let mut key = self.address;
        key.0[0] |= RADIO_BIT;
        key
    }
}

/// A frame that a radio sends. It stays open until [`Medium::report`] ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Which radio: its [`key`](Radio::key).
    pub radio: MacAddr,
    /// The MPDU without FCS.
    pub frame: Vec<u8>,
    /// Centre frequency, where the kernel tells it.
    pub mhz: Option<u16>,
    /// Names it, together with the radio.
    pub cookie: u64,
    /// Bits for the kernel's own use, to be handed back.
    pub flags: u32,
    /// Rates and tries as planned.
    pub plan: [Series; MAX_SERIES],
}

/// What the kernel tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A frame sets out.
    Sent(Sent),
    /// A radio begins or ceases to answer to an address.
    Address {
        /// Which radio: its [`key`](Radio::key).
        radio: MacAddr,
        /// The address.
        address: MacAddr,
        /// It begins.
        added: bool,
    },
}

/// What a radio receives.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The MPDU without FCS, 24 octets at least.
    pub frame: &'a [u8],
    /// Index of a legacy rate in the band.
    pub rate_index: u32,
    /// Strength.
    pub signal_dbm: i8,
    /// Centre frequency.
    pub mhz: u16,
}

/// The end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Which radio sent it.
    pub radio: MacAddr,
    /// Its cookie.
    pub cookie: u64,
    /// Its flags.
    pub flags: u32,
    /// It was acknowledged.
    pub acked: bool,
    /// Strength of the ACK.
    pub signal_dbm: i8,
    /// Tries that went on the air, in each series of its plan; [`Series::NONE`] from the first unused one on.
    pub done: [Series; MAX_SERIES],
}

/// The connection to the kernel.
#[derive(Debug)]
pub struct Medium {
    socket: Socket,
    family: u16,
    waiter: Waiter,
    events: VecDeque<Event>,
    /// Sequence number of the message whose error is of interest, and that error.
    asked: (u32, Option<i32>),
    newest: Newest,
    overflows: u64,
    /// Something besides the socket ends its rests.
    has_board: bool,
}

impl Medium {
    /// Opens it. Needs no right; [`Medium::register`] does.
    ///
    /// # Errors
    /// [`Error::NoHwsim`], [`Error::Kernel`].
    pub fn open() -> Result<Medium, Error> {
        let open = Error::of("open a netlink socket");
        let mut socket = Socket::open(Some(netlink::GENERIC)).map_err(&open)?;
        // what cannot be forced, for want of the right, is asked for
        let _ = set_socket_recv_buffer_size_force(&socket, RECEIVE_OCTETS)
            .or_else(|_| set_socket_recv_buffer_size(&socket, RECEIVE_OCTETS));
        let answer = socket
            .ask(family_request(message::FAMILY))
            .map_err(|e| match e.raw_os_error() {
                Some(libc::ENOENT) => Error::NoHwsim,
                _ => Error::of("look for mac80211_hwsim")(e),
            })?;
        let family = answer.iter().find_map(family).ok_or(Error::NoHwsim)?.id;
        let waiter = Waiter::new(Wait::Timerfd).map_err(&open)?;
        waiter.add(socket.as_fd()).map_err(&open)?;
        Ok(Medium {
            socket,
            family,
            waiter,
            events: VecDeque::new(),
            asked: (0, None),
            newest: Newest::default(),
            overflows: 0,
            has_board: false,
        })
    }

    /// Whether the module is still the one that was there when this was opened: not unloaded, nor loaded anew. As for
    /// [`Medium::add_radio`], not while registered: ask a second one.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the socket fails.
    pub fn is_there(&mut self) -> Result<bool, Error> {
        match self.socket.ask(family_request(message::FAMILY)) {
            Ok(answer) => Ok(answer
                .iter()
                .find_map(family)
                .is_some_and(|f| f.id == self.family)),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(e) => Err(Error::of("look for mac80211_hwsim")(e)),
        }
    }

    /// The radios of this network namespace in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn radios(&mut self) -> Result<Vec<Radio>, Error> {
        let ask = generic(self.family, command::GET_RADIO, libc::NLM_F_DUMP, |_| ());
        let parts = self
            .socket
            .ask(ask)
            .map_err(Error::of("list the simulated radios"))?;
        let mut radios: Vec<Radio> = parts.iter().filter_map(|p| message::radio(&p.body)).collect();
        radios.sort_by_key(|r| r.id);
        for radio in &mut radios {
            let path = format!("/sys/class/ieee80211/{}/macaddress", radio.name);
            let address = std::fs::read_to_string(path).ok();
            radio.address = address
                .and_then(|a| MacAddr::parse(a.trim()))
                .unwrap_or(radio.address);
        }
        Ok(radios)
    }

    /// Makes one more radio, which is there until it is removed. Not for a medium that is registered: what radios send
    /// meanwhile is lost.
    ///
    /// # Errors
    /// [`Error::NoPermission`], [`Error::Kernel`].
    pub fn add_radio(&mut self) -> Result<Radio, Error> {
        let made = Error::of("make a simulated radio");
        let before = self.radios()?;
        let ask = generic(self.family, command::NEW_RADIO, libc::NLM_F_ACK, |_| ());
        self.socket.ask(ask).map_err(&made)?;
        let mut after = self.radios()?;
        after.retain(|radio| before.iter().all(|b| b.id != radio.id));
        after
            .pop()
            .ok_or_else(|| made(std::io::ErrorKind::NotFound.into()))
    }

    /// Removes a radio, as if somebody pulled it out. As for [`Medium::add_radio`], not while registered.
    ///
    /// # Errors
    /// [`Error::NoPermission`]; [`Error::Kernel`] if there is no such radio.
    pub fn remove_radio(&mut self, id: u32) -> Result<(), Error> {
        let ask = message::removal(self.family, id);
        self.socket
            .ask(ask)
            .map_err(Error::of("remove a simulated radio"))?;
        Ok(())
    }

    /// Becomes the air of all radios that were made in this network namespace, wherever they are now.
    ///
    /// # Errors
    /// [`Error::NoPermission`], [`Error::Busy`], [`Error::SeveralChannels`], [`Error::Kernel`].
    pub fn register(&mut self) -> Result<(), Error> {
        let ask = generic(self.family, command::REGISTER, libc::NLM_F_ACK, |_| ());
        self.socket.ask(ask).map_err(Error::of_registration)?;
        Ok(())
    }

    /// The next thing that the kernel has told, if there is one.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the socket fails. What did not find room in it only counts in [`Medium::overflows`].
    pub fn receive(&mut self) -> Result<Option<Event>, Error> {
        if self.events.is_empty() {
            self.read()?;
        }
        Ok(self.events.pop_front())
    }

    /// Lets a radio receive a frame. False if it cannot: it is down, on another channel, or gone.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the socket fails.
    pub fn deliver(&mut self, to: MacAddr, what: &Delivery<'_>) -> Result<bool, Error> {
        self.tell(message::delivery(self.family, to, what))
    }

    /// Ends a frame. False if the kernel has given it up meanwhile.
    ///
    /// The kernel tells of a frame and only then begins to wait for its end (`mac80211_hwsim_tx_frame_nl`), so a medium on
    /// another CPU can be too fast: then this waits and tells it again.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the socket fails.
    pub fn report(&mut self, status: &Status) -> Result<bool, Error> {
        if self.tell(message::status(self.family, status))? {
            return Ok(true);
        }
        if !self.newest.may_be_early(status) {
            return Ok(false);
        }
        let until = monotonic_ns() + early::WAIT_NS;
        while monotonic_ns() < until {
            std::thread::sleep(early::PAUSE);
            if self.tell(message::status(self.family, status))? {
                return Ok(true);
            }
        }
        self.newest.give_up(status.radio);
        Ok(false)
    }

    /// Times that the kernel had to leave frames out because we were too slow.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// `CLOCK_MONOTONIC`, ns: the clock of [`Medium::wait`].
    pub fn now_ns() -> u64 {
        monotonic_ns()
    }

    /// Changes on this board end [`Medium::wait`] as well, for as long as it is there.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it cannot be watched.
    pub fn watch(&mut self, board: &Switchboard) -> Result<(), Error> {
        self.has_board = true;
        self.waiter
            .add_edges(board.as_fd())
            .map_err(Error::of("watch for switches"))
    }

    /// Waits until the kernel tells something, or until this time, or for a signal.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses to wait.
    pub fn wait(&mut self, until_ns: u64) -> Result<(), Error> {
        if !self.events.is_empty() {
            return Ok(());
        }
        let wait = Error::of("wait for the radios");
        self.waiter.wait(until_ns).map_err(&wait)?;
        if self.has_board {
            // An edge is over when it was looked at.
            self.waiter.look(|_| ()).map_err(&wait)?;
        }
        Ok(())
    }

    /// The kernel does what it is told within the call, so its refusal can be read at once.
    fn tell(&mut self, message: Vec<u8>) -> Result<bool, Error> {
        let sequence = self
            .socket
            .tell(message)
            .map_err(Error::of("tell a radio what it receives"))?;
        self.asked = (sequence, None);
        self.read()?;
        match self.asked.1 {
            None => Ok(true),
            Some(libc::EPERM | libc::EACCES) => Err(Error::NoPermission {
                what: "tell a radio what it receives",
            }),
            Some(_) => Ok(false),
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        loop {
            let octets = match self.socket.look() {
                Ok(Some(octets)) => octets,
                Ok(None) => return Ok(()),
                Err(e) if e.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => {
                    self.overflows += 1;
                    continue;
                }
                Err(e) => return Err(Error::of("read what the radios send")(e)),
            };
            for (kind, sequence, body) in messages(octets) {
                if kind == self.family {
                    let event = message::event(body);
                    if let Some(Event::Sent(sent)) = &event {
                        self.newest.note(sent);
                    }
                    self.events.extend(event);
                } else if i32::from(kind) == libc::NLMSG_ERROR && sequence == self.asked.0 {
                    let code = body.first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
                    self.asked.1 = (code < 0).then_some(code.saturating_neg());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where this kernel has no simulated radios it is said so; where it has, they can be listed without any right.
    #[test]
    fn the_kernel_at_hand() {
        match Medium::open() {
            Err(Error::NoHwsim) => {}
            Err(error) => panic!("{error}"),
            Ok(mut medium) => {
                let radios = medium.radios().unwrap();
                assert!(radios.is_sorted_by_key(|r| r.id));
                assert!(radios.iter().all(|r| r.key() != r.address));
                assert!(medium.is_there().unwrap());
                // as after it was loaded anew
                medium.family += 1;
                assert!(!medium.is_there().unwrap());
            }
        }
    }
}
