//! Datagrams between an ordinary UDP socket of Linux's and our station, both ways.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration as Time;

use super::*;
use linux::wifi::{Control, Interface};

const LINUX: [u8; 4] = [10, 9, 0, 1];
const OURS: [u8; 4] = [10, 9, 0, 2];
const PORT: u16 = 4_000;
/// Datagrams each way.
pub const EACH: u32 = 10;

/// Above our station: it sends back what comes to its port, and sends datagrams of its own.
pub struct Datagrams {
    peer: MacAddr,
    begins: Instant,
    own: u32,
    back: Vec<Vec<u8>>,
    /// Datagrams that came, of those that it had sent; and others.
    pub returned: u32,
    pub came: u32,
}

impl Datagrams {
    pub fn new(peer: MacAddr, begins: Instant) -> Datagrams {
        Datagrams {
            peer,
            begins,
            own: 0,
            back: Vec::new(),
            returned: 0,
            came: 0,
        }
    }
}

/// IPv4 and UDP (without a checksum, which IPv4 allows) around a payload.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let length = 28 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(OURS);
    packet.extend(LINUX);
    let words = packet
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    for word in [PORT, PORT, length - 20, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

impl Application for Datagrams {
    fn due(&self) -> Option<Instant> {
        let next = self.begins + Duration::from_ms(200).times(self.own.into());
        let own = (self.own < EACH).then_some(next);
        let back = (!self.back.is_empty()).then_some(Instant::ZERO);
        [own, back].into_iter().flatten().min()
    }

    fn take(&mut self, _: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        let packet = match self.back.pop() {
            Some(packet) => packet,
            None => {
                self.own += 1;
                datagram(format!("ours {}", self.own).as_bytes())
            }
        };
        payload[..packet.len()].copy_from_slice(&packet);
        Some(Submission {
            peer: self.peer,
            category: AccessCategory::BestEffort,
            deadline: None,
            octets: packet.len(),
        })
    }

    fn deliver(&mut self, _: Instant, msdu: Msdu<'_>) {
        let mut packet = msdu.payload.to_vec();
        if packet.len() < 28 || packet[9] != 17 || packet[16..20] != OURS {
            return;
        }
        if packet[28..].starts_with(b"ours") {
            self.returned += 1;
            return;
        }
        self.came += 1;
        // back to where it came from: neither checksum minds
        packet[12..20].rotate_left(4);
        packet[20..24].rotate_left(2);
        self.back.push(packet);
    }
}

/// Linux's interface on the radio, with an address, and with ours known to it.
pub fn linux_station(control: &mut Control, radio: &str, ours: MacAddr) -> Interface {
    let wiphy = control.wiphy(radio).unwrap().index;
    let all = control.interfaces().unwrap();
    let interface = all
        .into_iter()
        .find(|i| i.wiphy == wiphy && i.name.starts_with("wlan"));
    let interface = interface.expect("an interface of Linux's");
    let name = &interface.name;
    let ours = ours.to_string();
    for words in [
        format!("address replace 10.9.0.1/24 dev {name}"),
        format!("neighbour replace 10.9.0.2 lladdr {ours} dev {name} nud permanent"),
    ] {
        let done = Command::new("ip").args(words.split(' ')).status().unwrap();
        assert!(done.success(), "ip {words}");
    }
    interface
}

/// Datagrams from Linux to our station and back, and the way of ours: how many of its own came back.
pub fn exchange(until: Instant) -> u32 {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::from(LINUX), PORT)).unwrap();
    socket.set_read_timeout(Some(Time::from_millis(100))).unwrap();
    let (mut sent, mut back, mut buffer) = (0, 0, [0; 300]);
    while Host::now() < until && (back < EACH || sent < 3 * EACH) {
        if back < EACH {
            sent += 1;
            let _ = socket.send_to(
                format!("linux {sent}").as_bytes(),
                (std::net::Ipv4Addr::from(OURS), PORT),
            );
        }
        let waited = Host::now();
        while Host::now() < waited + Duration::from_ms(200) {
            let Ok((octets, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            match buffer[..octets].starts_with(b"linux") {
                true => back += 1,
                false => drop(socket.send_to(&buffer[..octets], from)),
            }
        }
    }
    back
}
