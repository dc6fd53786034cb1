//! A protocol above overlays that asks for more than any real one: bursts, odd deadlines, aborts at any time.

use crate::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity, Received};
use frame::{AccessCategory, MacAddr, Rate};
use radio::{Confirm, Duration, Event, Instant, Protocol, Radio, Token, TxHow};
use std::collections::BTreeMap;
use std::vec::Vec;

/// What a [`Probe`] does for one octet of a submitted payload, and what it writes into its frames.
///
/// Octets 0 to 199 make a request with `1 + octet % 4` tries and, unless `octet % 5` is 0, an expiry of
/// `octet * 20` us from now. Octets from 200 on abort one of the requests that are open.
#[derive(Debug)]
pub struct Probe {
    framer: Framer,
    peer: MacAddr,
    made: u32,
    open: Vec<Token>,
    asked: BTreeMap<Token, (u32, Option<Instant>)>,
    /// Every confirm, with the request's number and expiry, and when it came.
    pub ended: Vec<(u32, Option<Instant>, Instant, Confirm)>,
}

impl Probe {
    /// Sends to `peer`.
    pub fn new(identity: Identity, peer: MacAddr) -> Probe {
        Probe {
            framer: Framer::new(identity, true, ETHERTYPE_PAYLOAD),
            peer,
            made: 0,
            open: Vec::new(),
            asked: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    /// Requests made.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// Number and expiry (host clock of the sender) that a frame of a probe carries.
    pub fn read(frame: &[u8]) -> Option<(u32, Instant)> {
        let (number, rest) = Received::parse(frame)?.payload.split_first_chunk::<4>()?;
        let expires = rest.first_chunk::<8>()?;
        let expires = Instant::from_ns(u64::from_be_bytes(*expires));
        Some((u32::from_be_bytes(*number), expires))
    }

    fn obey(&mut self, now: Instant, octet: u8, radio: &mut dyn Radio) {
        if octet >= 200 {
            if !self.open.is_empty() {
                let which = usize::from(octet) % self.open.len();
                radio.abort(self.open[which]);
            }
            return;
        }
        let mut how = TxHow::multi_shot(Rate::OFDM_54, 1 + octet % 4);
        if !octet.is_multiple_of(5) {
            how.expires = Some(now + Duration::from_us(u64::from(octet) * 20));
        }
        let mut head = [0; 12];
        head[..4].copy_from_slice(&self.made.to_be_bytes());
        head[4..].copy_from_slice(&how.expires.unwrap_or(Instant::MAX).as_ns().to_be_bytes());
        let mut out = [0; 128];
        let (to, category) = (self.peer, AccessCategory::BestEffort);
        let mpdu = self.framer.frame(to, category, false, &head, &[0; 38], &mut out);
        let token = radio.token();
        self.asked.insert(token, (self.made, how.expires));
        self.open.push(token);
        self.made += 1;
        radio.request(token, mpdu.expect("it fits"), &how);
    }
}

impl Protocol for Probe {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(m) => m
                .payload
                .iter()
                .take(40)
                .for_each(|octet| self.obey(now, *octet, radio)),
            Event::Confirm(c) => {
                let (number, expires) = self.asked[&c.token];
                self.open.retain(|t| *t != c.token);
                self.ended.push((number, expires, now, c));
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
