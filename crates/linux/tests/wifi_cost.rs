//! What a request costs above the bare `send` of the same octets: from `Radio::request` to its return, with everything that
//! the host does in between. The send itself goes through the whole stack down to the simulated radio.
//!
//! Judged where the clock of the guest counts instructions, so that a ratio of times is one of instructions and a busy
//! computer does not show in it; elsewhere it says that it is skipped.
//!
//! ```sh
//! CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='sdmac lab run --qemu standard --radios 2 --' cargo test -p sdmac-linux --test wifi_cost
//! ```
#![allow(unsafe_code)] // A socket of its own, without the library; see the SAFETY reason at each block.

use std::sync::atomic::AtomicBool;

use frame::mac::Header;
use frame::radiotap::{Packet, Radiotap};
use frame::{MacAddr, Rate, Wire};
use linux::wifi::{
    Adapter, AdapterConfig, Control, Host, HostConfig, clock_counts_instructions, simulated_radios,
};
use radio::{Duration, Event, Instant, Protocol, Radio, TxHow};

/// Requests, and bare sends.
const COUNT: usize = 2_000;
/// A request takes so many times the instructions of a bare send, at most.
const MOST: f64 = 1.2;

#[test]
fn a_request_costs_little_more_than_the_send_within() {
    let Some(radios) = simulated_radios(2) else { return };
    if !clock_counts_instructions() {
        return eprintln!("skipped: the clock of this guest does not count instructions");
    }
    let adapter = Adapter::open(AdapterConfig::new(&radios.names[0], 2412)).unwrap();
    let to = MacAddr::local(0xabad);
    let mut frame = [0; 100];
    frame[0] = 0x08;
    frame[4..10].copy_from_slice(&to.0);
    frame[10..16].copy_from_slice(&adapter.address().0);
    frame[16..22].copy_from_slice(&MacAddr::local(9).0);
    assert!(Header::parse(&frame).is_ok());
    let name = adapter.interfaces().next().unwrap().to_owned();
    let mut host = Host::new(vec![adapter], HostConfig::default()).unwrap();
    let mut timed = Timed {
        frame,
        due: Instant::ZERO,
        turn: 0,
        bare: Bare::open(&name, &frame),
        requests: Vec::with_capacity(COUNT),
        sends: Vec::with_capacity(COUNT),
    };
    let until = Host::now() + Duration::from_ms(2 * COUNT as u64 + 1_000);
    let stop = AtomicBool::new(false);
    host.run(&mut timed, &mut (), Some(until), &stop).unwrap();
    let [requests, sends] = [&mut timed.requests, &mut timed.sends];
    assert_eq!((requests.len(), sends.len()), (COUNT, COUNT));
    requests.sort_unstable();
    sends.sort_unstable();
    for (what, at) in [("least", 0), ("median", COUNT / 2)] {
        let (request, send) = (requests[at], sends[at]);
        let ratio = request as f64 / send as f64;
        eprintln!("{what}: request / send = {request} / {send} ns = {ratio:.3}");
        assert!(ratio <= MOST, "{what}: {ratio}");
    }
}

/// A request in one millisecond, a bare send in the next, and so on: each finds the kernel as the other does, with all statuses
/// fetched. Notes how long each takes.
struct Timed {
    frame: [u8; 100],
    due: Instant,
    turn: usize,
    bare: Bare,
    requests: Vec<u64>,
    sends: Vec<u64>,
}

impl Protocol for Timed {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if !matches!(event, Event::Start | Event::Timer) {
            return;
        }
        self.due = now + Duration::from_ms(1);
        let sequence = (((self.turn & 0xfff) << 4) as u16).to_le_bytes();
        let begun;
        if self.turn.is_multiple_of(2) {
            self.frame[22..24].copy_from_slice(&sequence);
            let how = TxHow::one_shot(Rate::OFDM_6);
            let token = radio.token();
            begun = Host::now();
            radio.request(token, &self.frame, &how);
            self.requests.push(Host::now().since(begun).as_ns());
        } else {
            self.bare.set_sequence(sequence);
            begun = Host::now();
            self.bare.send();
            self.sends.push(Host::now().since(begun).as_ns());
        }
        self.turn += 1;
    }

    fn deadline(&self) -> Option<Instant> {
        (self.turn < 2 * COUNT).then_some(self.due)
    }
}

/// The same octets through a packet socket, and nothing else.
struct Bare {
    socket: libc::c_int,
    octets: [u8; 200],
    length: usize,
}

impl Bare {
    fn open(interface: &str, frame: &[u8; 100]) -> Bare {
        let all = Control::open().unwrap().interfaces().unwrap();
        let index = all.iter().find(|i| i.name == interface).unwrap().index;
        let radiotap = Radiotap {
            tx_flags: Some(Radiotap::TX_NO_SEQUENCE),
            data_retries: Some(0),
            ..Radiotap::default()
        };
        let packet = Packet {
            radiotap: radiotap.with_rate(Rate::OFDM_6),
            frame,
        };
        let mut octets = [0; 200];
        let length = packet.emit(&mut octets).unwrap();
        Bare {
            socket: socket(index),
            octets,
            length,
        }
    }

    fn set_sequence(&mut self, sequence: [u8; 2]) {
        let at = self.length - 78; // The frame's 22nd octet.
        self.octets[at..at + 2].copy_from_slice(&sequence);
    }

    fn send(&self) {
        let octets = self.octets.as_ptr().cast();
        // SAFETY: the octets live and there are as many as told.
        let sent = unsafe { libc::send(self.socket, octets, self.length, libc::MSG_DONTWAIT) };
        assert_eq!(sent, self.length as isize, "the kernel takes all of it");
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: it is ours and is not used again.
        unsafe { libc::close(self.socket) };
    }
}

/// A packet socket as the host has one to send.
fn socket(interface: u32) -> libc::c_int {
    // SAFETY: plain numbers; the result is checked.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    assert!(socket >= 0, "a packet socket opens");
    let bypass: libc::c_int = 1;
    let size = size_of_val(&bypass) as libc::socklen_t;
    // SAFETY: `bypass` lives and has the size that is told.
    let done = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            (&raw const bypass).cast(),
            size,
        )
    };
    assert_eq!(done, 0, "the queue is bypassed, as the host does");
    // SAFETY: an address of zeroes is one.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = interface as i32;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` lives and has the size that is told.
    let done = unsafe { libc::bind(socket, (&raw const address).cast(), size) };
    assert_eq!(done, 0, "the socket is bound");
    socket
}
