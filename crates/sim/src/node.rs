//! A node: its clock, its host's latencies, and the [`Radio`] that its protocol sees.

use crate::clock::Clock;
use crate::core::{Core, Ev, NONE, PendingConfirm, PendingIndication, Signal, TxFrame};
use crate::fault::HostFaults;
use crate::host::interrupts::Interrupts;
use crate::host::{HostModel, Outcome as Ending, Wait};
use crate::queue::Handle;
use crate::rng::Stream;
use frame::Rate;
use frame::mac::header::Header;
use radio::{
    AckPolicy, AdapterId, Attribute, AttributeName, Confirm, Instant, Msdu, Outcome, Plane, Radio, Refusal,
    SetAnswer, SetError, Stamps, Token, Tsf, TxHow,
};
use std::rc::Rc;

/// One node, without its protocol.
pub(crate) struct Node {
    pub clock: Clock,
    /// Latencies; `None`: an ideal host, to which everything is visible at once.
    pub host: Option<Rc<HostModel>>,
    /// How its protocol waits for its timer.
    pub wait: Wait,
    /// What its timers share the processor with.
    pub interrupts: Option<Box<Interrupts>>,
    pub stream: Stream,
    pub faults: HostFaults,
    pub fault_stream: Stream,
    /// Adapters: index of the first, and how many.
    pub adapters: (u32, u8),
    pub next_token: u64,
    /// The deadline that is armed (host clock), and its entry in the queue.
    pub deadline: Option<(u64, Handle)>,
    /// Earliest true time at which the next request can be called: calls of one thread follow each other.
    pub thread_free: u64,
    /// True time of the latest event handed over, so that confirms do not overtake each other.
    pub last_visible: u64,
    /// Requests that are not confirmed: (token, frame).
    pub open: Vec<(Token, u32)>,
    /// One of its saturated sources.
    pub saturated: Option<u32>,
    /// When its protocol gets its first event, ns: what comes before is lost on it.
    pub start_ns: u64,
    /// The confirm of a request whose status is lost comes after this long, ns.
    pub confirm_timeout_ns: u64,
    /// The protocol sees `not_before` honoured by the adapter.
    pub honours_not_before: bool,
}

impl Core {
    /// The program of a node that waits for `wanted` on its clock wakes up after `from`, as late as it does.
    pub(crate) fn wake(&mut self, node: u32, wanted: u64, from: u64) {
        let n = &mut self.nodes[node as usize];
        let mut late = n
            .host
            .as_ref()
            .map_or(0, |h| h.sample_lateness_ns(&mut n.stream, n.wait));
        if n.fault_stream.chance(n.faults.late_timer) {
            late += n.faults.late_timer_ns;
        }
        let at = from.saturating_add(late).min(Instant::MAX.as_ns());
        let handle = self.at(at, Ev::Timer(node));
        self.nodes[node as usize].deadline = Some((wanted, handle));
    }

    /// The interrupt of a node's timer comes.
    pub(crate) fn interrupt(&mut self, node: u32) {
        let now = self.now;
        let n = &mut self.nodes[node as usize];
        if let (Some((wanted, _)), Some(interrupts)) = (n.deadline, &mut n.interrupts) {
            let served = now.saturating_add(interrupts.waits(now));
            self.wake(node, wanted, served);
        }
    }

    /// The confirm of request `id` sets out; `at` is when its fate was sealed. `ending` is how the last exchange ended,
    /// `None` if there was none.
    pub(crate) fn confirm(&mut self, id: u32, outcome: Outcome, at: u64, ending: Option<Ending>) {
        let f = &self.frames[id];
        let (node, token) = (f.node, f.token);
        let (exchange, mut ack_signal_dbm) = (f.exchange, f.ack_dbm);
        let (series, rate) = match f.how.series.at(f.attempts.saturating_sub(1)) {
            Some((i, s)) => (i, s.rate),
            None => (0, f.timing.0),
        };
        let mut stamps = f.stamps;
        let on_air = matches!(outcome, Outcome::Acked | Outcome::NotAcked);
        let (adapter, attempts) = (f.adapter, f.attempts);
        let refill = self.refill(node, &f.octets);
        let load = f.load;
        let n = &mut self.nodes[node as usize];
        let mut t9 = at.max(self.now);
        if let (true, Some(host), Some(load), Some(ending)) = (on_air, &n.host, load, ending) {
            let c = host.sample_confirm(&mut n.stream, load, ending);
            let t5 = at + c.hardware_ns;
            let t6 = t5 + c.t5_t6_ns;
            let t7 = t6 + c.t6_t7_ns;
            let t8 = t7 + c.t7_t8_ns;
            t9 = (t8 + c.t8_t9_ns).max(t9);
            let clock = n.clock;
            for (plane, t) in [(Plane::T5, t5), (Plane::T6, t6), (Plane::T7, t7), (Plane::T8, t8)] {
                stamps.host(plane, Instant::from_ns(clock.show(t)));
            }
        }
        let mut outcome = outcome;
        if on_air && n.fault_stream.chance(n.faults.lost_confirm) {
            outcome = Outcome::Unknown;
            (stamps, ack_signal_dbm) = (Stamps::NONE, None);
            t9 += n.confirm_timeout_ns;
        } else {
            // confirms of one thread come one after the other
            t9 = t9.max(n.last_visible);
            n.last_visible = t9;
        }
        let shown = n.clock.show(t9);
        if on_air && outcome != Outcome::Unknown {
            stamps.host(Plane::T9, Instant::from_ns(shown));
        }
        let tsf = on_air.then(|| Tsf(self.adapters[adapter as usize].tsf_us(at)));
        let confirm = Confirm {
            token,
            outcome,
            attempts,
            series,
            rate,
            ack_signal_dbm,
            tsf,
            stamps,
        };
        let n = &mut self.nodes[node as usize];
        if let Some(i) = n.open.iter().position(|(t, _)| *t == token) {
            n.open.swap_remove(i);
        }
        self.drop_frame(id);
        let exchange = if on_air { exchange } else { None };
        let index = self.confirms.put(PendingConfirm {
            node,
            confirm,
            exchange,
            refill,
        });
        self.at(t9, Ev::Confirm(index));
    }

    /// A received frame sets out for its protocol.
    pub(crate) fn indicate(&mut self, to: usize, s: &Signal, end: u64, start: u64, signal_dbm: i8) {
        let a = &self.adapters[to];
        // the first bit of the MPDU, behind the preamble
        let first_bit = start + frame::airtime::first_bit_ns(s.rate);
        let (node, tsf_us) = (a.node, a.tsf_us(first_bit));
        let n = &mut self.nodes[node as usize];
        let mut stamps = Stamps::NONE;
        let mut visible = end.max(self.now);
        if let Some(host) = &n.host {
            let c = host.sample_indication(&mut n.stream);
            let t5 = end + c.hardware_ns;
            let t6 = t5 + c.t5_t6_ns;
            let t7 = t6 + c.t6_t7_ns;
            let t8 = t7 + c.t7_t8_ns;
            visible = visible.max(t8 + c.t8_t9_ns).max(n.last_visible);
            for (plane, t) in [
                (Plane::T5, t5),
                (Plane::T6, t6),
                (Plane::T7, t7),
                (Plane::T8, t8),
                (Plane::T9, visible),
            ] {
                stamps.host(plane, Instant::from_ns(n.clock.show(t)));
            }
        }
        visible = visible.max(n.last_visible);
        n.last_visible = visible;
        self.frames[s.frame].users += 1;
        let index = self.indications.put(PendingIndication {
            node,
            adapter: to as u32,
            frame: s.frame,
            rate: s.rate,
            signal_dbm,
            tsf_us,
            retry: s.retry,
            duration_us: s.duration_us,
            beacon_tsf_us: s.tsf_us,
            stamps,
        });
        self.at(visible, Ev::Indicate(index));
    }
}

/// What the protocol of one node acts through.
pub(crate) struct NodeRadio<'a> {
    pub core: &'a mut Core,
    pub node: u32,
}

impl NodeRadio<'_> {
    fn node(&mut self) -> &mut Node {
        &mut self.core.nodes[self.node as usize]
    }

    /// Its place among all adapters, unless it was pulled out.
    fn adapter(&self, id: AdapterId) -> Option<usize> {
        let (first, count) = self.core.nodes[self.node as usize].adapters;
        let place = (id.0 < count).then(|| first as usize + usize::from(id.0))?;
        (!self.core.adapters[place].gone).then_some(place)
    }

    /// Why a request cannot be taken, if so.
    fn refusal(&self, frame: &[u8], how: &TxHow) -> Option<Refusal> {
        let Some(adapter) = self.adapter(how.adapter) else {
            return Some(Refusal::NoAdapter);
        };
        if Header::parse(frame).is_err() || frame.len() > radio::MAX_FRAME_OCTETS || frame.len() < 10 {
            return Some(Refusal::BadFrame);
        }
        let phy = &self.core.adapters[adapter].phy;
        if how.series.as_slice().iter().any(|s| !phy.has(s.rate)) {
            return Some(Refusal::RateNotSupported);
        }
        let n = &self.core.nodes[self.node as usize];
        (how.not_before.is_some() && !n.honours_not_before).then_some(Refusal::NotSupported)
    }

    fn refuse(&mut self, token: Token, frame: &[u8], how: &TxHow, why: Refusal) {
        let refill = self.core.refill(self.node, frame);
        let confirm = Confirm::without_air(token, Outcome::Refused(why), how.series.as_slice()[0].rate);
        let index = self.core.confirms.put(PendingConfirm {
            node: self.node,
            confirm,
            exchange: None,
            refill,
        });
        let now = self.core.now;
        self.core.at(now, Ev::Confirm(index));
    }
}

impl Radio for NodeRadio<'_> {
    fn token(&mut self) -> Token {
        let n = self.node();
        n.next_token += 1;
        Token(n.next_token)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        if let Some(why) = self.refusal(frame, how) {
            return self.refuse(token, frame, how, why);
        }
        if let Some(o) = &mut self.core.trace.observer {
            o.requested(self.core.now, self.node, token, frame);
        }
        let header = Header::parse(frame).expect("checked above");
        let adapter = self.adapter(how.adapter).expect("checked above");
        let solicits = header.wants_ack();
        let (ra, is_beacon) = (
            crate::adapter::key(header.receiver()),
            matches!(frame[0], 0x80 | 0x50),
        );
        let payload = frame.len().saturating_sub(header.octets() + 8);
        let now = self.core.now;
        let node = self.node;
        let n = self.node();
        // the thread calls one request after the other
        let t1 = now.max(n.thread_free);
        let mut stamps = Stamps::NONE;
        stamps.host(Plane::T1, Instant::from_ns(n.clock.show(t1)));
        let (mut at_queue, mut load) = (t1, None);
        if let Some(host) = &n.host {
            let r = host.sample_request(&mut n.stream, payload);
            let t2 = t1 + r.t1_t2_ns;
            let t3 = t2 + r.t2_t3_ns;
            let t4 = t3 + r.t3_t4_ns;
            for (plane, t) in [(Plane::T2, t2), (Plane::T3, t3), (Plane::T4, t4)] {
                stamps.host(plane, Instant::from_ns(n.clock.show(t)));
            }
            n.thread_free = t4;
            at_queue = t4 + r.hardware_ns;
            load = Some(r.load);
        }
        if let Some(t) = how.not_before {
            at_queue = at_queue.max(n.clock.when(t.as_ns()));
        }
        let first = how.series.as_slice()[0].rate;
        let id = self.core.frames.take(blank_frame);
        let f = &mut self.core.frames[id];
        f.octets.clear();
        f.octets.extend_from_slice(frame);
        *f = TxFrame {
            token,
            node,
            adapter: adapter as u32,
            how: *how,
            octets: std::mem::take(&mut f.octets),
            ra,
            solicits,
            awaits: solicits && how.ack == AckPolicy::Normal,
            is_beacon,
            attempts: 0,
            rts_failures: 0,
            aborted: false,
            arrived: false,
            stamps,
            load,
            timing: (first, 0),
            exchange: None,
            ack_dbm: None,
            users: 1,
            next: NONE,
        };
        self.node().open.push((token, id));
        let a = &mut self.core.adapters[adapter];
        if how.not_before.is_none() {
            at_queue = at_queue.max(a.last_arrival);
            a.last_arrival = at_queue;
        }
        self.core.at(at_queue, Ev::Arrive(id));
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        let result = match self.adapter(adapter) {
            Some(a) => self.core.set_attribute(a, self.node, attribute),
            None => Err(SetError::NotFound),
        };
        let index = self.core.answers.put(SetAnswer { token, result });
        let now = self.core.now;
        self.core.at(now, Ev::Answer(self.node, index));
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.core.get_attribute(self.adapter(adapter)?, self.node, name)
    }

    fn abort(&mut self, token: Token) {
        let found = self
            .node()
            .open
            .iter()
            .find(|(t, _)| *t == token)
            .map(|(_, f)| *f);
        if let Some(id) = found {
            self.core.abort(id);
        }
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        let (now, node) = (self.core.now, self.node);
        self.core
            .trace
            .step(now, 4, u64::from(node), msdu.payload.len() as u64);
        self.core.count_delivery(node, msdu.payload);
        if let Some(o) = &mut self.core.trace.observer {
            o.delivered(now, node, &msdu);
        }
    }
}

/// Timestamp (us) and interval (TU) if the frame is a beacon.
pub(crate) fn beacon(octets: &[u8]) -> Option<(u64, u16)> {
    if octets.first() != Some(&0x80) {
        return None;
    }
    let timestamp = u64::from_le_bytes(octets.get(24..32)?.try_into().ok()?);
    Some((
        timestamp,
        u16::from_le_bytes(octets.get(32..34)?.try_into().ok()?),
    ))
}

pub(crate) fn blank_frame() -> TxFrame {
    TxFrame {
        token: Token(0),
        node: NONE,
        adapter: NONE,
        how: TxHow::one_shot(Rate::OFDM_6),
        octets: Vec::new(),
        ra: 0,
        solicits: false,
        awaits: false,
        is_beacon: false,
        attempts: 0,
        rts_failures: 0,
        aborted: false,
        arrived: false,
        stamps: Stamps::NONE,
        load: None,
        timing: (Rate::OFDM_6, 0),
        exchange: None,
        ack_dbm: None,
        users: 0,
        next: NONE,
    }
}
