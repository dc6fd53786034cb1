//! CoAP (RFC 7252): the header of a message and what is exchanged. Options and payloads are the library's.

use coap_message::{MessageOption, MinimalWritableMessage, ReadableMessage};
use coap_message_implementations::inmemory::{Message, MessageMut};
use coap_numbers::{code, option};
use frame::MacAddr;
use radio::{Duration, Instant};

/// The port of CoAP (RFC 7252, 12.6).
pub const PORT: u16 = 5_683;
/// Octets of the longest message: RFC 7252, 4.6 asks for room for 1152, and a node says less.
pub const MAX_OCTETS: usize = 512;
/// Tries of a request after the first, and the time before the second; it doubles (RFC 7252, 4.8).
const RETRANSMITS: u32 = 4;
const ACK_TIMEOUT: Duration = Duration::from_ms(2_500);
/// `text/plain` and `application/link-format` (RFC 7252, 12.3).
const TEXT: u16 = 0;
const LINKS: u16 = 40;

/// Kinds of a message (RFC 7252, 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Confirmable,
    Plain,
    Acknowledgement,
    Reset,
}

/// A message without its options and payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    kind: Kind,
    code: u8,
    id: u16,
    token: [u8; 8],
    token_len: usize,
}

impl Head {
    /// Header and rest; `None` if it is none (RFC 7252, 3: another version, a longer token).
    fn parse(octets: &[u8]) -> Option<(Head, &[u8])> {
        let ([first, code, high, low], rest) = octets.split_first_chunk()?;
        let (version, token_len) = (first >> 6, usize::from(first & 15));
        if version != 1 || token_len > 8 || rest.len() < token_len {
            return None;
        }
        let kind = match first >> 4 & 3 {
            0 => Kind::Confirmable,
            1 => Kind::Plain,
            2 => Kind::Acknowledgement,
            _ => Kind::Reset,
        };
        let mut token = [0; 8];
        token[..token_len].copy_from_slice(&rest[..token_len]);
        let head = Head {
            kind,
            code: *code,
            id: u16::from_be_bytes([*high, *low]),
            token,
            token_len,
        };
        Some((head, &rest[token_len..]))
    }

    /// Writes it, lets `fill` write options and payload behind it, and tells all octets.
    fn write(
        &self,
        out: &mut [u8; MAX_OCTETS],
        fill: impl FnOnce(
            &mut MessageMut<coap_message_implementations::inmemory::SliceBufferMut<'_>>,
        ) -> Option<()>,
    ) -> Option<usize> {
        let kind = match self.kind {
            Kind::Confirmable => 0,
            Kind::Plain => 1,
            Kind::Acknowledgement => 2,
            Kind::Reset => 3,
        };
        let [high, low] = self.id.to_be_bytes();
        let start = 4 + self.token_len;
        out[..4].copy_from_slice(&[1 << 6 | kind << 4 | self.token_len as u8, self.code, high, low]);
        out[4..start].copy_from_slice(&self.token[..self.token_len]);
        let (head, rest) = out.split_at_mut(start);
        let mut message = MessageMut::new_in_slice(&mut head[1], rest);
        message.set_code(self.code);
        fill(&mut message)?;
        Some(start + message.finish().0)
    }
}

/// What a server has at a path, written into the buffer: octets of it; `None`: nothing.
pub type Resource<'a> = dyn FnMut(&str, &mut [u8]) -> Option<usize> + 'a;

/// Answers a message; octets of the answer, or `None` where none is due.
pub fn serve(request: &[u8], resource: &mut Resource<'_>, out: &mut [u8; MAX_OCTETS]) -> Option<usize> {
    let (head, rest) = Head::parse(request)?;
    let answer = |kind, code| Head { kind, code, ..head };
    let kind = match head.kind {
        Kind::Confirmable if head.code == code::EMPTY => {
            // a CoAP ping (RFC 7252, 4.3)
            let pong = Head {
                token_len: 0,
                ..answer(Kind::Reset, code::EMPTY)
            };
            return pong.write(out, |_| Some(()));
        }
        Kind::Confirmable => Kind::Acknowledgement,
        Kind::Plain => Kind::Plain,
        Kind::Acknowledgement | Kind::Reset => return None,
    };
    if !matches!(code::classify(head.code), code::Range::Request) {
        return None;
    }
    let message = Message::new_from_slice(head.code, rest);
    let mut path = [0; 64];
    let mut len = 0;
    for segment in message.options().filter(|o| o.number() == option::URI_PATH) {
        let value = segment.value();
        let Some(place) = path.get_mut(len..len + 1 + value.len()) else {
            return answer(kind, code::NOT_FOUND).write(out, |_| Some(()));
        };
        place[0] = b'/';
        place[1..].copy_from_slice(value);
        len += 1 + value.len();
    }
    // options that must be understood, and are not (RFC 7252, 5.4.1): all with odd numbers but the address of the server
    let known = [
        option::URI_HOST,
        option::URI_PORT,
        option::URI_PATH,
        option::URI_QUERY,
        option::ACCEPT,
    ];
    if message
        .options()
        .any(|o| o.number() & 1 == 1 && !known.contains(&o.number()))
    {
        return answer(kind, code::BAD_OPTION).write(out, |_| Some(()));
    }
    if head.code != code::GET {
        return answer(kind, code::METHOD_NOT_ALLOWED).write(out, |_| Some(()));
    }
    let mut text = [0; 256];
    let path = core::str::from_utf8(&path[..len]).unwrap_or_default();
    let Some(octets) = resource(path, &mut text) else {
        return answer(kind, code::NOT_FOUND).write(out, |_| Some(()));
    };
    let format = if path == "/.well-known/core" { LINKS } else { TEXT };
    answer(kind, code::CONTENT).write(out, |message| {
        message.add_option_uint(option::CONTENT_FORMAT, format).ok()?;
        message.set_payload(&text[..octets]).ok()
    })
}

/// A request of ours, until it is answered or given up.
#[derive(Clone, Debug)]
pub struct Request {
    to: MacAddr,
    id: u16,
    octets: [u8; 96],
    len: usize,
    tries: u32,
    next_at: Instant,
    begun: Instant,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply<'a> {
    /// Code of the response, such as 0x45 for 2.05 Content.
    pub code: u8,
    /// What it says.
    pub payload: &'a [u8],
    /// From the first try to the response.
    pub took: Duration,
}

impl Request {
    /// A confirmable GET. `None` if the path does not fit.
    pub fn get(now: Instant, to: MacAddr, path: &str, id: u16) -> Option<Request> {
        let [high, low] = id.to_be_bytes();
        let head = Head {
            kind: Kind::Confirmable,
            code: code::GET,
            id,
            token: [high, low, 0, 0, 0, 0, 0, 0],
            token_len: 2,
        };
        let mut out = [0; MAX_OCTETS];
        let len = head.write(&mut out, |message| {
            for segment in path.split('/').filter(|s| !s.is_empty()) {
                message.add_option_str(option::URI_PATH, segment).ok()?;
            }
            Some(())
        })?;
        let mut octets = [0; 96];
        octets.get_mut(..len)?.copy_from_slice(&out[..len]);
        Some(Request {
            to,
            id,
            octets,
            len,
            tries: 0,
            next_at: now,
            begun: now,
        })
    }

    /// Whom it is for.
    pub fn to(&self) -> MacAddr {
        self.to
    }

    /// When it is to be sent again, or given up.
    pub fn deadline(&self) -> Instant {
        self.next_at
    }

    /// True once nobody waits for its answer any more.
    pub fn is_over(&self, now: Instant) -> bool {
        self.tries > RETRANSMITS && self.next_at <= now
    }

    /// What is to be sent now.
    pub fn send(&mut self, now: Instant) -> Option<&[u8]> {
        if now < self.next_at || self.tries > RETRANSMITS {
            return None;
        }
        self.next_at = now + ACK_TIMEOUT.times(1 << self.tries);
        self.tries += 1;
        Some(&self.octets[..self.len])
    }

    /// What came is the answer to it, or is not.
    pub fn answered<'a>(&self, now: Instant, octets: &'a [u8]) -> Option<Reply<'a>> {
        let (head, rest) = Head::parse(octets)?;
        let [high, low] = self.id.to_be_bytes();
        let ours = head.kind == Kind::Acknowledgement && head.id == self.id;
        if !ours || head.token[..head.token_len] != [high, low] {
            return None;
        }
        let payload = match rest.iter().position(|o| *o == 0xff) {
            _ if head.code == code::EMPTY => return None,
            Some(_) => payload(head.code, rest),
            None => &[],
        };
        Some(Reply {
            code: head.code,
            payload,
            took: now.since(self.begun),
        })
    }
}

/// The payload at the end of options and payload.
fn payload(code: u8, rest: &[u8]) -> &[u8] {
    let octets = Message::new_from_slice(code, rest).payload().len();
    &rest[rest.len() - octets..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resource(path: &str, out: &mut [u8]) -> Option<usize> {
        (path == "/a/b").then(|| {
            out[..5].copy_from_slice(b"hello");
            5
        })
    }

    /// The octets of RFC 7252, Figure 16, with our path and token.
    #[test]
    fn the_octets_of_a_request_and_its_answer() {
        let mut request = Request::get(Instant::ZERO, MacAddr::local(1), "/a/b", 0x7d34).unwrap();
        let octets = request.send(Instant::ZERO).unwrap();
        assert_eq!(octets, b"\x42\x01\x7d\x34\x7d\x34\xb1a\x01b");
        let mut out = [0; MAX_OCTETS];
        let len = serve(octets, &mut resource, &mut out).unwrap();
        assert_eq!(&out[..len], b"\x62\x45\x7d\x34\x7d\x34\xc0\xffhello");
        let reply = request.answered(Instant::from_us(7), &out[..len]).unwrap();
        assert_eq!((reply.code, reply.payload), (code::CONTENT, &b"hello"[..]));
        assert_eq!(reply.took, Duration::from_us(7));
        out[3] ^= 1;
        assert_eq!(request.answered(Instant::ZERO, &out[..len]), None);
    }

    #[test]
    fn what_is_not_there_and_what_is_not_allowed() {
        let code_of = |request: &[u8]| {
            let mut out = [0; MAX_OCTETS];
            let len = serve(request, &mut resource, &mut out)?;
            Some((out[0], out[1], len))
        };
        assert_eq!(
            code_of(b"\x40\x01\x00\x01\xb1x"),
            Some((0x60, code::NOT_FOUND, 4))
        );
        assert_eq!(
            code_of(b"\x50\x02\x00\x01\xb1a\x01b"),
            Some((0x50, code::METHOD_NOT_ALLOWED, 4))
        );
        assert_eq!(
            code_of(b"\x40\x01\x00\x01\x91x"),
            Some((0x60, code::BAD_OPTION, 4))
        );
        // a ping, an answer, another version
        assert_eq!(code_of(b"\x40\x00\x00\x01"), Some((0x70, code::EMPTY, 4)));
        assert_eq!(code_of(b"\x60\x45\x00\x01"), None);
        assert_eq!(code_of(b"\x80\x01\x00\x01"), None);
    }

    #[test]
    fn a_request_is_repeated_and_given_up() {
        let mut request = Request::get(Instant::ZERO, MacAddr::local(1), "/a", 1).unwrap();
        let mut tries = 0;
        while !request.is_over(request.deadline()) {
            assert!(request.send(request.deadline()).is_some());
            tries += 1;
        }
        assert_eq!((tries, request.deadline()), (5, Instant::from_us(77_500_000)));
        assert!(request.send(Instant::MAX).is_none());
        assert!(Request::get(Instant::ZERO, MacAddr::local(1), &"x/".repeat(60), 1).is_none());
    }

    proptest! {
        #[test]
        fn any_octets_are_taken(octets in proptest::collection::vec(any::<u8>(), 0..120), kind in 0_u8..8) {
            let mut octets = octets;
            if let Some(first) = octets.first_mut() {
                *first = 0x40 | kind << 4 & 0x30 | *first & 3;
            }
            let mut out = [0; MAX_OCTETS];
            let answered = serve(&octets, &mut resource, &mut out);
            prop_assert!(answered.is_none_or(|len| Head::parse(&out[..len]).is_some()));
            let request = Request::get(Instant::ZERO, MacAddr::local(1), "/a", 1).unwrap();
            let _ = request.answered(Instant::ZERO, &octets);
        }
    }
}
