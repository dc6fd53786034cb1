//! A medium for the radios of mac80211_hwsim, in place of their own: it makes every try that the driver was told to
//! make, and lets each be heard. Hwsim's own makes one, whatever was asked.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use frame::MacAddr;
use frame::mac::header::{Header, set_retry};
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};

use crate::generic::{family, family_request, generic};
use crate::netlink::{Socket, attribute, find, number, u32_of};

/// Commands of the family MAC80211_HWSIM (drivers/net/wireless/mac80211_hwsim.h).
mod command {
    pub const REGISTER: u8 = 1;
    pub const FRAME: u8 = 2;
    pub const TX_INFO: u8 = 3;
}

mod attr {
    pub const RECEIVER: u16 = 1;
    pub const TRANSMITTER: u16 = 2;
    pub const FRAME: u16 = 3;
    pub const FLAGS: u16 = 4;
    pub const RX_RATE: u16 = 5;
    pub const SIGNAL: u16 = 6;
    pub const TX_INFO: u16 = 7;
    pub const COOKIE: u16 = 8;
    pub const FREQUENCY: u16 = 19;
}

const NO_ACK: u32 = 2;
const ACKED: u32 = 4;
/// Octets before the attributes: `struct nlmsghdr` and `struct genlmsghdr`.
const HEADERS: usize = 20;
const SIGNAL_DBM: i32 = -50;

/// The medium, until it is dropped.
pub(super) struct Medium {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Medium {
    /// Takes the place of hwsim's own for `radios` radios.
    pub fn start(radios: u8) -> Medium {
        // The first socket of a process gets its number as port, in each protocol; and hwsim (seen in 6.1) takes the
        // end of any socket with the medium's port for the medium's own end, routing sockets included.
        let _first = Socket::open(Some(GENERIC)).unwrap();
        let mut socket = Socket::open(Some(GENERIC)).unwrap();
        let parts = socket.ask(family_request("MAC80211_HWSIM")).unwrap();
        let id = parts.iter().find_map(family).unwrap().id;
        socket
            .ask(generic(id, command::REGISTER, libc::NLM_F_ACK, |_| ()))
            .unwrap();
        set_socket_timeout(socket.as_fd(), Timeout::Recv, Some(Duration::from_millis(20))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let air = Air {
            socket,
            id,
            radios: (0..radios).map(|n| MacAddr([0x42, 0, 0, 0, n, 0])).collect(),
        };
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                air.serve();
            }
        });
        Medium {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

struct Air {
    socket: Socket,
    id: u16,
    radios: Vec<MacAddr>,
}

impl Air {
    /// Serves one message, or nothing for a while.
    fn serve(&self) {
        let mut buffer = [0; 8_192];
        let Ok((_, length)) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) else {
            return;
        };
        let message = &buffer[..length];
        if message.get(4..6) != Some(&self.id.to_ne_bytes()) || length < HEADERS {
            return; // The kernel refuses a copy: that radio is on another channel.
        }
        let (command, body) = (message[16], &message[HEADERS..]);
        if command == command::FRAME {
            let from = find(body, attr::TRANSMITTER).and_then(|a| a.first_chunk());
            self.play(MacAddr(*from.unwrap()), body);
        }
    }

    fn play(&self, from: MacAddr, body: &[u8]) {
        let get = |kind| find(body, kind).unwrap();
        let mut frame = get(attr::FRAME).to_vec();
        let flags = u32_of(get(attr::FLAGS)).unwrap();
        let to = Header::parse(&frame).unwrap().receiver();
        let acked = flags & NO_ACK == 0 && self.radios.iter().any(|r| *r != from && answers(*r) == to);
        let once = acked || flags & NO_ACK != 0 || to.is_group();
        let mut used = [[-1_i8, 0]; 4];
        'series: for (used, plan) in used.iter_mut().zip(get(attr::TX_INFO).chunks_exact(2)) {
            let (index, count) = (plan[0].cast_signed(), plan[1]);
            if index < 0 {
                break;
            }
            used[0] = index;
            for _ in 0..count {
                used[1] += 1;
                self.copies(from, &frame, index, get(attr::FREQUENCY));
                if once {
                    break 'series;
                }
                set_retry(&mut frame, true).unwrap();
            }
        }
        self.send(command::TX_INFO, |m| {
            attribute(m, attr::TRANSMITTER, |m| m.extend(from.0));
            number(m, attr::FLAGS, flags | if acked { ACKED } else { 0 });
            attribute(m, attr::COOKIE, |m| m.extend(get(attr::COOKIE)));
            number(m, attr::SIGNAL, SIGNAL_DBM.cast_unsigned());
            attribute(m, attr::TX_INFO, |m| {
                m.extend(used.as_flattened().iter().map(|o| o.cast_unsigned()))
            });
        });
    }

    fn copies(&self, from: MacAddr, frame: &[u8], rate: i8, frequency: &[u8]) {
        for to in self.radios.iter().filter(|radio| **radio != from) {
            self.send(command::FRAME, |m| {
                attribute(m, attr::RECEIVER, |m| m.extend(to.0));
                attribute(m, attr::FRAME, |m| m.extend(frame));
                number(m, attr::RX_RATE, rate.unsigned_abs().into());
                number(m, attr::SIGNAL, SIGNAL_DBM.cast_unsigned());
                attribute(m, attr::FREQUENCY, |m| m.extend(frequency));
            });
        }
    }

    fn send(&self, command: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let message = generic(self.id, command, 0, body);
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.socket, &message, SendFlags::empty(), &kernel).unwrap();
    }
}

/// The address for which a radio acknowledges. Hwsim tells its medium nothing of monitors, so an active one and a plain
/// one are the same here.
fn answers(radio: MacAddr) -> MacAddr {
    let [first, rest @ ..] = radio.0;
    let mut address = [first & !0x40; 6];
    address[1..].copy_from_slice(&rest);
    MacAddr(address)
}
