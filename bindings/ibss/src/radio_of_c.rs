//! A radio whose functions are C's.
#![allow(unsafe_code)]

use crate::types::{number, octet};
use core::ffi::c_void;
use frame::MacAddr;
use protocols::mac::ibss::{Ended, Routing};
use radio::{
    AdapterId, Attribute, AttributeName, BeaconTiming, Msdu, Queue, SetAnswer, SetError, Token, Tsf, TxHow,
};

/// Changes of attributes that are to be answered: the library asks for five at once at most, when it enters a network out of a
/// doze.
const ANSWERS: usize = 8;

/// How one frame is to be sent.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct How {
    /// Below 128 in units of 500 kb/s, 128 + MCS for HT.
    pub rate: u8,
    /// Frames on the air at most.
    pub tries: u8,
    /// Whether an ACK is expected.
    pub ack: bool,
    /// 0 to 4: background, best effort, video, voice, beacons.
    pub queue: u8,
    /// The adapter is to write its TSF into the frame, at octet 24, at the moment it is sent: it is a beacon or a probe
    /// response.
    pub timestamp: bool,
    /// No attempt after this time; 0: whenever.
    pub expires_ns: u64,
}

/// What the firmware's radio does, and the layer above. `request`, `abort`, `get_tsf`, `set_tsf` and `set_receiver` have to be there;
/// the others may be NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Radio {
    /// Given to each of the functions.
    pub context: *mut c_void,
    /// Sends a frame without FCS; the octets are valid until it returns. Exactly one SDMAC_IBSS_confirm() with the token
    /// has to follow, whatever happens.
    pub request: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            token: u64,
            frame: *const u8,
            octets: usize,
            how: *const How,
        ),
    >,
    /// Takes a request back if it is not too late. Its confirm still has to come.
    pub abort: Option<unsafe extern "C" fn(context: *mut c_void, token: u64)>,
    /// The adapter's time, us, into `tsf_us`; false if it cannot be told.
    pub get_tsf: Option<unsafe extern "C" fn(context: *mut c_void, tsf_us: *mut u64) -> bool>,
    /// Sets the adapter's time; false if that cannot be done.
    pub set_tsf: Option<unsafe extern "C" fn(context: *mut c_void, tsf_us: u64) -> bool>,
    /// Switches the receiver on or off: off, the radio may sleep until it is to be on again.
    pub set_receiver: Option<unsafe extern "C" fn(context: *mut c_void, on: bool) -> bool>,
    /// Tells which network it is in: 6 octets.
    pub set_bssid: Option<unsafe extern "C" fn(context: *mut c_void, bssid: *const u8) -> bool>,
    /// Tells the beacon interval of its network and the ATIM window, both in units of 1024 us, and 0 when it has left it. For an adapter
    /// that follows the clock of its network by itself: the library then leaves it to that. NULL: the library sets the adapter's time.
    pub set_beacon_timing:
        Option<unsafe extern "C" fn(context: *mut c_void, interval_tu: u16, atim_window_tu: u16) -> bool>,
    /// A payload for the firmware; the octets are valid until it returns.
    pub deliver: Option<
        unsafe extern "C" fn(context: *mut c_void, from: *const u8, payload: *const u8, octets: usize),
    >,
    /// The payload with this number, which SDMAC_IBSS_submit() told, has come to its end, by an SDMAC_IBSS_OUTCOME: each that was taken
    /// once. `attempts`: frames of the last try that were on the air. What is for a group ends as not acked.
    pub sent: Option<unsafe extern "C" fn(context: *mut c_void, number: u64, outcome: u32, attempts: u16)>,
    /// With `multi_hop`: whom a payload is for in the end, into 6 octets at `destination`; `next` is the neighbour that it goes to first.
    pub destination: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            next: *const u8,
            payload: *const u8,
            octets: usize,
            destination: *mut u8,
        ),
    >,
    /// With `multi_hop`: the neighbour over which `destination` is reached, into 6 octets at `next`; false if there is no way.
    pub next_hop:
        Option<unsafe extern "C" fn(context: *mut c_void, destination: *const u8, next: *mut u8) -> bool>,
}

impl Radio {
    /// Whether it has what cannot be missed.
    pub(crate) fn is_whole(&self, multi_hop: bool) -> bool {
        let knows_ways = self.destination.is_some() && self.next_hop.is_some();
        let radio = self.request.is_some()
            && self.abort.is_some()
            && self.get_tsf.is_some()
            && self.set_tsf.is_some()
            && self.set_receiver.is_some();
        radio && (knows_ways || !multi_hop)
    }
}

/// The layer above as the link layer knows it.
pub(crate) struct Above {
    context: *mut c_void,
    sent: Option<unsafe extern "C" fn(*mut c_void, u64, u32, u16)>,
    destination: Option<unsafe extern "C" fn(*mut c_void, *const u8, *const u8, usize, *mut u8)>,
    next_hop: Option<unsafe extern "C" fn(*mut c_void, *const u8, *mut u8) -> bool>,
}

impl Above {
    pub(crate) fn of(radio: &Radio) -> Above {
        let Radio {
            context,
            sent,
            destination,
            next_hop,
            ..
        } = *radio;
        Above {
            context,
            sent,
            destination,
            next_hop,
        }
    }
}

impl Routing for Above {
    fn destination(&self, next: MacAddr, payload: &[u8]) -> MacAddr {
        let mut to = next;
        if let Some(destination) = self.destination {
            let (next, octets) = (next.0.as_ptr(), payload.len());
            // SAFETY: as in `Desk::change`; addresses have 6 octets, the payload as many as is said, and all live for the time of the
            // call.
            unsafe { destination(self.context, next, payload.as_ptr(), octets, to.0.as_mut_ptr()) };
        }
        to
    }

    fn next_hop(&self, destination: MacAddr) -> Option<MacAddr> {
        let mut next = MacAddr::ZERO;
        let ask = self.next_hop?;
        // SAFETY: as above.
        let known = unsafe { ask(self.context, destination.0.as_ptr(), next.0.as_mut_ptr()) };
        known.then_some(next)
    }

    fn ended(&mut self, ended: Ended) {
        if let Some(sent) = self.sent {
            let outcome = number(ended.outcome) as u32;
            // SAFETY: as in `Desk::change`.
            unsafe { sent(self.context, ended.number, outcome, ended.attempts) };
        }
    }
}

/// The radio as the contract has it.
pub(crate) struct Desk {
    pub of_c: Radio,
    /// What its adapter follows, if it can.
    follows: BeaconTiming,
    next_token: u64,
    owed: [Option<SetAnswer>; ANSWERS],
}

impl Desk {
    pub(crate) fn new(of_c: Radio) -> Desk {
        Desk {
            of_c,
            follows: BeaconTiming::default(),
            next_token: 0,
            owed: [None; ANSWERS],
        }
    }

    /// An answer that is to be told.
    pub(crate) fn owed(&mut self) -> Option<SetAnswer> {
        let first = self.owed.iter_mut().find(|place| place.is_some())?;
        first.take()
    }

    fn change(&mut self, attribute: Attribute) -> Result<(), SetError> {
        let c = self.of_c;
        // SAFETY: whoever called `SDMAC_IBSS_init` promised that the functions may be called with this context; the address
        // has 6 octets.
        let done = unsafe {
            match attribute {
                Attribute::Tsf(tsf) => c.set_tsf.map(|f| f(c.context, tsf.0)),
                Attribute::Reception(on) => c.set_receiver.map(|f| f(c.context, on)),
                Attribute::Bssid(bssid) => c.set_bssid.map(|f| f(c.context, bssid.0.as_ptr())),
                Attribute::BeaconTiming(t) => c
                    .set_beacon_timing
                    .map(|f| f(c.context, t.interval_tu, t.atim_window_tu)),
                _ => None,
            }
        };
        if let (Attribute::BeaconTiming(timing), Some(true)) = (attribute, done) {
            self.follows = timing;
        }
        match done {
            Some(true) => Ok(()),
            Some(false) => Err(SetError::OutOfRange),
            None => Err(SetError::NotSupported),
        }
    }
}

/// A beacon or a probe response: management (type 0), subtypes 8 and 5.
fn has_timestamp(frame: &[u8]) -> bool {
    frame.len() >= 36 && matches!(frame[0], 0x80 | 0x50)
}

impl radio::Radio for Desk {
    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        let series = how.series.as_slice()[0];
        let group = frame.get(4).is_some_and(|octet| octet & 1 != 0);
        let how_of_c = How {
            rate: octet(series.rate),
            tries: series.tries,
            ack: how.ack == radio::AckPolicy::Normal && !group,
            queue: match how.queue {
                Queue::Beacon => 4,
                other => other.index() as u8,
            },
            timestamp: has_timestamp(frame),
            expires_ns: how.expires.map_or(0, |t| t.as_ns()),
        };
        if let Some(request) = self.of_c.request {
            // SAFETY: as in `change`; the frame is as long as is said, and both live for the time of the call.
            unsafe { request(self.of_c.context, token.0, frame.as_ptr(), frame.len(), &how_of_c) };
        }
    }

    fn set(&mut self, token: Token, _: AdapterId, attribute: Attribute) {
        let result = self.change(attribute);
        if let Some(free) = self.owed.iter_mut().find(|place| place.is_none()) {
            *free = Some(SetAnswer { token, result });
        }
    }

    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        if name == AttributeName::BeaconTiming {
            let can = self.of_c.set_beacon_timing.is_some();
            return can.then_some(Attribute::BeaconTiming(self.follows));
        }
        let get = self.of_c.get_tsf.filter(|_| name == AttributeName::Tsf)?;
        let mut tsf_us = 0;
        // SAFETY: as in `change`; the place lives for the time of the call.
        let known = unsafe { get(self.of_c.context, &mut tsf_us) };
        known.then_some(Attribute::Tsf(Tsf(tsf_us)))
    }

    fn abort(&mut self, token: Token) {
        if let Some(abort) = self.of_c.abort {
            // SAFETY: as in `change`.
            unsafe { abort(self.of_c.context, token.0) };
        }
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        if let Some(deliver) = self.of_c.deliver {
            let payload = msdu.payload;
            // SAFETY: as in `change`; address and payload are as long as is said and live for the time of the call.
            unsafe {
                deliver(
                    self.of_c.context,
                    msdu.peer.0.as_ptr(),
                    payload.as_ptr(),
                    payload.len(),
                )
            };
        }
    }
}
