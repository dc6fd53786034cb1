//! What a request costs above the bare `send` of the same octets: from `Radio::request` to its return, with everything that
//! the host does in between. The send itself goes through the whole stack down to the simulated radio. Runs in the lab, on a kernel with real
//! time; in QEMU time is the number of instructions, and repeats.
//!
//! ```sh
//! CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='sdmac lab run --qemu standard --radios 2 --' cargo bench -p sdmac-linux --bench request
//! ```
#![allow(unsafe_code)] // A socket of its own, without the library; see the SAFETY reason at each block.

use std::sync::atomic::AtomicBool;

use frame::mac::Header;
use frame::radiotap::{Packet, Radiotap};
use frame::{MacAddr, Rate, Wire};
use linux::wifi::{Adapter, AdapterConfig, Control, Host, HostConfig, simulated_radios};
use radio::{Duration, Event, Instant, Protocol, Radio, TxHow};

/// Requests, and bare sends.
const COUNT: usize = 2_000;

fn main() {
    let Some(radios) = simulated_radios(2) else { return };
    let adapter =
        Adapter::open(AdapterConfig::new(&radios.names[0], 2412)).expect("a radio of the lab opens");
    let to = MacAddr::local(0xabad);
    let mut frame = [0; 100];
    frame[0] = 0x08;
    frame[4..10].copy_from_slice(&to.0);
    frame[10..16].copy_from_slice(&adapter.address().0);
    frame[16..22].copy_from_slice(&MacAddr::local(9).0);
    assert!(Header::parse(&frame).is_ok());
    let name = adapter.interfaces().next().expect("it has one").to_owned();
    let mut host = Host::new(vec![adapter], HostConfig::default()).expect("a host");
    let mut timed = Timed {
        frame,
        costs: Vec::with_capacity(COUNT),
    };
    let stop = AtomicBool::new(false);
    let until = Host::now() + Duration::from_ms(20_000);
    while timed.costs.len() < COUNT && Host::now() < until {
        let soon = Host::now() + Duration::from_ms(50);
        host.run(&mut timed, &mut (), Some(soon), &stop)
            .expect("the kernel waits");
    }
    let mut requests = timed.costs;
    let mut sends = bare(&name, &frame);
    for costs in [&mut requests, &mut sends] {
        costs.sort_unstable();
    }
    let of = |costs: &[u64], q: f64| costs[(costs.len() as f64 * q) as usize];
    for (what, q) in [("least", 0.0), ("median", 0.5), ("p99", 0.99)] {
        let (request, send) = (of(&requests, q), of(&sends, q));
        println!(
            "{what}: request / send = {request} / {send} ns = {:.3}",
            request as f64 / send as f64
        );
    }
    println!("{} requests, {} sends", requests.len(), sends.len());
}

/// Requests the next frame when the last one is confirmed, and notes how long the call takes.
struct Timed {
    frame: [u8; 100],
    costs: Vec<u64>,
}

impl Protocol for Timed {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if !matches!(event, Event::Start | Event::Confirm(_)) || self.costs.len() == COUNT {
            return;
        }
        let sequence = ((self.costs.len() & 0xfff) << 4) as u16;
        self.frame[22..24].copy_from_slice(&sequence.to_le_bytes());
        let token = radio.token();
        let how = TxHow::one_shot(Rate::OFDM_6);
        let begun = Host::now();
        radio.request(token, &self.frame, &how);
        self.costs.push(Host::now().since(begun).as_ns());
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The same octets through a packet socket, and nothing else.
fn bare(interface: &str, frame: &[u8; 100]) -> Vec<u64> {
    let all = Control::open()
        .and_then(|mut c| c.interfaces())
        .expect("nl80211 answers");
    let index = all
        .iter()
        .find(|i| i.name == interface)
        .expect("it is there")
        .index;
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
    let length = packet.emit(&mut octets).expect("there is room");
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
    address.sll_ifindex = index as i32;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` lives and has the size that is told.
    let done = unsafe { libc::bind(socket, (&raw const address).cast(), size) };
    assert_eq!(done, 0, "the socket is bound");
    let mut costs = Vec::with_capacity(COUNT);
    for n in 0..COUNT {
        let sequence = ((n & 0xfff) << 4) as u16;
        octets[length - 78..length - 76].copy_from_slice(&sequence.to_le_bytes());
        let begun = Host::now();
        // SAFETY: the octets live and there are as many as told.
        let sent = unsafe { libc::send(socket, octets.as_ptr().cast(), length, libc::MSG_DONTWAIT) };
        costs.push(Host::now().since(begun).as_ns());
        assert_eq!(sent, length as isize, "the kernel takes all of it");
    }
    // SAFETY: it is ours and is not used again.
    unsafe { libc::close(socket) };
    costs
}
