//! IPv6 and UDP of a node on smoltcp: what comes in is for it or is forwarded, what goes out waits for the link.

use crate::address::{self, ALL_NODES};
use crate::coap::{self, Reply, Request};
use crate::resources::say;
pub use crate::resources::{Board, Counts, Memory, Status, Stick};
use crate::routes::{self, Routes};
use frame::MacAddr;
use radio::{Duration, Instant};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet, SocketStorage};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::udp;
use smoltcp::storage::{PacketBuffer, PacketMetadata};
use smoltcp::wire::{HardwareAddress, IpCidr, IpEndpoint, Ipv6Packet};

/// Octets of the longest packet: what IPv6 asks of every link (RFC 8200, 5).
pub const MTU: usize = 1_280;
/// UDP port of the routes, one of those for everybody's use (RFC 6335, 6).
const ROUTES_PORT: u16 = 49_698;
/// UDP port from which requests go.
const CLIENT_PORT: u16 = 49_683;
/// Hops of a packet at most.
const HOP_LIMIT: u8 = 16;
/// Octets and packets that wait for the link at most.
const OUT_OCTETS: usize = 2 * MTU;
const OUT_PACKETS: usize = 8;

/// Memory of a [`Net`], which it borrows.
pub struct Storage<'a> {
    sockets: [SocketStorage<'a>; 3],
    meta: [[udp::PacketMetadata; 4]; 6],
    octets: [[u8; 1_024]; 6],
    out_meta: [PacketMetadata<()>; OUT_PACKETS],
    out: [u8; OUT_OCTETS],
}

impl Storage<'_> {
    /// Nothing is in it.
    pub const fn new() -> Self {
        Storage {
            sockets: [SocketStorage::EMPTY; 3],
            meta: [[udp::PacketMetadata::EMPTY; 4]; 6],
            octets: [[0; 1_024]; 6],
            out_meta: [PacketMetadata::EMPTY; OUT_PACKETS],
            out: [0; OUT_OCTETS],
        }
    }
}

impl Default for Storage<'_> {
    fn default() -> Self {
        Storage::new()
    }
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Who was asked.
    pub from: MacAddr,
    /// Code of the response, such as 0x45 for 2.05 Content; `None`: there was none.
    pub code: Option<u8>,
    /// From the first try to the response.
    pub took: Duration,
    payload: [u8; 256],
    len: usize,
}

impl Answer {
    /// What it says, up to 256 octets of it.
    pub fn payload(&self) -> &[u8] {
        &self.payload[..self.len]
    }
}

/// IPv6 and what is above it.
pub struct Net<'a> {
    me: MacAddr,
    interface: Interface,
    sockets: SocketSet<'a>,
    server: SocketHandle,
    client: SocketHandle,
    teller: SocketHandle,
    out: PacketBuffer<'a, ()>,
    routes: Routes,
    request: Option<Request>,
    requests: u16,
    answer: Option<Answer>,
    counts: Counts,
    board: fn() -> Board,
    /// smoltcp wants to be called then.
    poll_at: Option<Instant>,
}

/// What smoltcp sees of the link at one call.
struct Ends<'p, 'a> {
    packet: Option<&'p [u8]>,
    out: &'p mut PacketBuffer<'a, ()>,
    no_room: &'p mut u64,
}

struct In<'p>(&'p [u8]);

struct Out<'p, 'a>(&'p mut PacketBuffer<'a, ()>, &'p mut u64);

impl RxToken for In<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl TxToken for Out<'_, '_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, octets: usize, f: F) -> R {
        match self.0.enqueue(octets, ()) {
            Ok(place) => f(place),
            Err(_) => {
                *self.1 += 1;
                f(&mut [0; MTU][..octets.min(MTU)])
            }
        }
    }
}

impl<'a> Device for Ends<'_, 'a> {
    type RxToken<'t>
        = In<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Out<'t, 'a>
    where
        Self: 't;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(In<'_>, Out<'_, 'a>)> {
        let packet = self.packet.take()?;
        Some((In(packet), Out(self.out, self.no_room)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Out<'_, 'a>> {
        (!self.out.is_full()).then_some(Out(self.out, self.no_room))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

fn time(now: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros((now.as_ns() / 1_000) as i64)
}

impl<'a> Net<'a> {
    /// The node `me` begins at `now`. `board` says what its board has.
    pub fn new(now: Instant, me: MacAddr, storage: &'a mut Storage<'a>, board: fn() -> Board) -> Net<'a> {
        let Storage {
            sockets,
            meta,
            octets,
            out_meta,
            out,
        } = storage;
        let mut out = PacketBuffer::new(&mut out_meta[..], &mut out[..]);
        let mut device = Ends {
            packet: None,
            out: &mut out,
            no_room: &mut 0,
        };
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, time(now));
        interface.update_ip_addrs(|all| {
            // there is room for two by the library's default
            let _ = all.push(IpCidr::new(address::of(me).into(), 64));
            let _ = all.push(IpCidr::new(address::on_link(me).into(), 64));
        });
        let mut sockets = SocketSet::new(&mut sockets[..]);
        let mut buffers = meta
            .iter_mut()
            .zip(octets)
            .map(|(m, o)| PacketBuffer::new(&mut m[..], &mut o[..]));
        let [server, client, teller] = [coap::PORT, CLIENT_PORT, ROUTES_PORT].map(|port| {
            let mut next = || buffers.next().expect("two for each of three");
            let (receive, send) = (next(), next());
            let mut socket = udp::Socket::new(receive, send);
            socket.set_hop_limit(Some(if port == ROUTES_PORT { 1 } else { HOP_LIMIT }));
            socket
                .bind(port)
                .expect("it is open for the first time, at a port");
            sockets.add(socket)
        });
        Net {
            me,
            interface,
            sockets,
            server,
            client,
            teller,
            out,
            routes: Routes::new(me, now),
            request: None,
            requests: 0,
            answer: None,
            counts: Counts::default(),
            board,
            poll_at: None,
        }
    }

    /// Ways to other nodes.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// What has become of packets.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Asks a node for what it has at `path`. False if a question is open already, or the path is too long.
    pub fn get(&mut self, now: Instant, from: MacAddr, path: &str) -> bool {
        if self.request.is_some() {
            return false;
        }
        self.requests = self.requests.wrapping_add(1);
        self.request = Request::get(now, from, path, self.requests);
        self.answer = self.answer.filter(|_| self.request.is_none());
        self.request.is_some()
    }

    /// The answer to the last question, once there is one.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// A packet from a neighbour. What is no packet is dropped.
    pub fn receive(&mut self, now: Instant, octets: &[u8]) {
        let Ok(packet) = Ipv6Packet::new_checked(octets) else {
            return;
        };
        let (to, hops) = (packet.dst_addr(), packet.hop_limit());
        if to.is_multicast() || to == address::of(self.me) || to == address::on_link(self.me) {
            self.poll_with(now, Some(octets));
        } else if hops <= 1 || address::on_link(self.me).octets()[..8] == to.octets()[..8] {
            self.counts.no_way += 1;
        } else if let Ok(place) = self.out.enqueue(octets.len(), ()) {
            place.copy_from_slice(octets);
            Ipv6Packet::new_unchecked(place).set_hop_limit(hops - 1);
            self.counts.forwarded += 1;
        } else {
            self.counts.no_room += 1;
        }
    }

    fn poll_with(&mut self, now: Instant, packet: Option<&[u8]>) {
        let mut device = Ends {
            packet,
            out: &mut self.out,
            no_room: &mut self.counts.no_room,
        };
        self.interface.poll(time(now), &mut device, &mut self.sockets);
    }

    /// The node has come to a network.
    pub fn join(&mut self, now: Instant) {
        self.routes.join(now);
    }

    /// Does what is due: answers, asks, tells of routes.
    pub fn poll(&mut self, now: Instant, status: &Status) {
        self.serve(status);
        self.ask(now);
        self.tell(now);
        self.poll_with(now, None);
        let at = self.interface.poll_at(time(now), &self.sockets);
        // what it wants at once waits for room on the link
        let later = at.filter(|t| *t > time(now));
        self.poll_at = later.map(|t| Instant::from_us(t.total_micros().max(0) as u64));
    }

    /// When it wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let request = self.request.as_ref().map(Request::deadline);
        [Some(self.routes.deadline()), request, self.poll_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn serve(&mut self, status: &Status) {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.server);
        while socket.can_recv() && socket.can_send() {
            let mut request = [0; coap::MAX_OCTETS];
            let Ok((len, from)) = socket.recv_slice(&mut request) else {
                continue;
            };
            let (routes, counts, board) = (&self.routes, &self.counts, self.board);
            let mut resource = |path: &str, out: &mut [u8]| say(path, status, routes, counts, board, out);
            let mut response = [0; coap::MAX_OCTETS];
            if let Some(len) = coap::serve(&request[..len], &mut resource, &mut response) {
                // the client asks again where this is lost
                let _ = socket.send_slice(&response[..len], from.endpoint);
            }
        }
    }

    fn ask(&mut self, now: Instant) {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.client);
        while let Ok((octets, from)) = socket.recv() {
            let asked = self
                .request
                .as_ref()
                .filter(|r| server_of(r.to()) == from.endpoint);
            let reply = asked.and_then(|r| r.answered(now, octets));
            if let Some((reply, request)) = reply.zip(self.request.take_if(|_| reply.is_some())) {
                self.answer = Some(answer(&request, Some(&reply)));
            }
        }
        if let Some(request) = self.request.take_if(|r| r.is_over(now)) {
            self.answer = Some(answer(&request, None));
        }
        if let Some(request) = &mut self.request {
            let to = server_of(request.to());
            if let Some(octets) = request.send(now) {
                // it is sent again where this is lost
                let _ = socket.send_slice(octets, to);
            }
        }
    }

    fn tell(&mut self, now: Instant) {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.teller);
        while let Ok((message, from)) = socket.recv() {
            let smoltcp::wire::IpAddress::Ipv6(from) = from.endpoint.addr;
            if let Some(from) = address::mac(from) {
                self.routes.heard(now, from, message);
            }
        }
        let mut out = [0; routes::MAX_OCTETS];
        if let Some(octets) = self.routes.tell(now, &mut out) {
            // it is told again anyway
            let _ = socket.send_slice(&out[..octets], IpEndpoint::new(ALL_NODES.into(), ROUTES_PORT));
        }
    }

    /// The next packet for the link, and to whom. Those that nobody can be found for are dropped.
    pub fn next_packet(&mut self) -> Option<(MacAddr, &[u8])> {
        loop {
            let ((), octets) = self.out.peek().ok()?;
            let to = Ipv6Packet::new_checked(octets).ok().map(|p| p.dst_addr());
            let next = to.and_then(|to| match to.is_multicast() {
                true => Some(MacAddr::BROADCAST),
                false => self.routes.next_hop(address::mac(to)?),
            });
            if let Some(next) = next {
                return self.out.dequeue().ok().map(|((), octets)| (next, &*octets));
            }
            self.counts.no_way += 1;
            self.out.dequeue().ok()?;
        }
    }
}

/// Where a node is asked, and where its answers are from.
fn server_of(node: MacAddr) -> IpEndpoint {
    IpEndpoint::new(address::of(node).into(), coap::PORT)
}

fn answer(request: &Request, reply: Option<&Reply<'_>>) -> Answer {
    let said = reply.map_or(&[][..], |r| r.payload);
    let len = said.len().min(256);
    let mut payload = [0; 256];
    payload[..len].copy_from_slice(&said[..len]);
    Answer {
        from: request.to(),
        code: reply.map(|r| r.code),
        took: reply.map_or(Duration::ZERO, |r| r.took),
        payload,
        len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{IpAddress, IpProtocol, Ipv6Address, Ipv6Repr, UdpPacket, UdpRepr};
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    const ME: MacAddr = MacAddr::local(1);
    const ASKED: MacAddr = MacAddr::local(2);
    /// The acknowledgement of our first question, which has the number 1 as its token, too: 2.05, and what it says.
    const ANSWER: &[u8] = b"\x62\x45\x00\x01\x00\x01\xffhello";

    /// A packet with a datagram to the port from which questions go.
    fn datagram(from: Ipv6Address, port: u16, payload: &[u8]) -> Vec<u8> {
        let to = address::of(ME);
        let udp = UdpRepr {
            src_port: port,
            dst_port: CLIENT_PORT,
        };
        let ip = Ipv6Repr {
            src_addr: from,
            dst_addr: to,
            next_header: IpProtocol::Udp,
            payload_len: udp.header_len() + payload.len(),
            hop_limit: 3,
        };
        let mut octets = vec![0; ip.buffer_len() + ip.payload_len];
        let mut packet = Ipv6Packet::new_unchecked(&mut octets[..]);
        ip.emit(&mut packet);
        let mut packet = UdpPacket::new_unchecked(packet.payload_mut());
        let fill = |place: &mut [u8]| place.copy_from_slice(payload);
        let (from, to) = (IpAddress::from(from), IpAddress::from(to));
        let checksums = ChecksumCapabilities::default();
        udp.emit(&mut packet, &from, &to, payload.len(), fill, &checksums);
        octets
    }

    #[test]
    fn an_answer_is_from_whom_was_asked() {
        let mut net = Net::new(Instant::ZERO, ME, Box::leak(Box::default()), Board::default);
        let now = Instant::from_us(1);
        assert!(net.get(now, ASKED, "/link"));
        net.poll(now, &Status::default());
        let mut heard = |from, port, octets: &[u8]| {
            net.receive(now, &datagram(from, port, octets));
            net.poll(now, &Status::default());
            net.answer().map(|answer| answer.payload().to_vec())
        };
        let (asked, other) = (address::of(ASKED), address::of(MacAddr::local(3)));
        assert_eq!(heard(other, coap::PORT, ANSWER), None, "another node");
        assert_eq!(
            heard(address::on_link(ASKED), coap::PORT, ANSWER),
            None,
            "another address"
        );
        assert_eq!(heard(asked, coap::PORT + 1, ANSWER), None, "another port");
        assert_eq!(
            heard(asked, coap::PORT, b"\x62\x45\x00\x02\x00\x01\xffhello"),
            None,
            "another message"
        );
        assert_eq!(
            heard(asked, coap::PORT, b"\x62\x45\x00\x01\x00\x02\xffhello"),
            None,
            "another token"
        );
        assert_eq!(heard(asked, coap::PORT, ANSWER).as_deref(), Some(&b"hello"[..]));
    }
}
