//! What a connection does with a datagram. Whatever is not of this connection, or could not be, changes nothing.

use super::Connection;
use crate::transport::atp::meter::Sample;
use crate::transport::atp::size::TooNarrow;
use crate::transport::stream::Sent;
use crate::transport::wire::{Control, Header, OPTION_READER, ProtocolId, blocks};
use crate::transport::{Failure, Path, State};
use radio::{Duration, Instant};

/// Numbers around the expected one within which a packet is believed: more than any send buffer, far less than a turn
/// of the numbers.
const NEAR: u64 = 1 << 26;

impl<O, R, const H: usize> Connection<O, R, H>
where
    O: AsRef<[u8]> + AsMut<[u8]>,
    R: AsRef<[Sent]> + AsMut<[Sent]>,
{
    pub(super) fn receive(&mut self, now: Instant, datagram: &[u8], path: &mut dyn Path) {
        let Some((header, body)) = Header::parse(datagram)
            .ok()
            .filter(|(h, _)| h.protocol == ProtocolId::Atp)
        else {
            self.counters.foreign += 1;
            return;
        };
        match self.state {
            State::Listening => self.listening(now, &header, body, path),
            State::Opening if self.caller => self.calling(now, &header, body, path),
            State::Opening | State::Open | State::Lingering | State::Closed => {
                self.connected(now, &header, body, path);
            }
            State::Failed(_) => refuse(&header, body, path),
        }
    }

    fn listening(&mut self, now: Instant, h: &Header, body: &[u8], path: &mut dyn Path) {
        if is_call(h) {
            self.answer(now, h, path);
        } else {
            self.counters.foreign += 1;
            refuse(h, body, path);
        }
    }

    /// Answers a call, at once and with the delay of its way.
    fn answer(&mut self, now: Instant, h: &Header, path: &mut dyn Path) {
        self.state = State::Opening;
        self.life.heard(now);
        self.theirs.initial = h.sequence;
        self.meter.set_epoch(h.spacing_us);
        self.meter.probe(h.delay_us, h.hops);
        let control = Control::SYN.with(Control::SACK_OPT).with(Control::SACK_REQ);
        let answer = Header {
            hops: h.hops,
            delay_us: h.delay_us,
            spacing_us: self.config.told_epoch_us(),
            ..self.header(control, self.ours.initial)
        };
        path.request(&answer.octets());
    }

    fn calling(&mut self, now: Instant, h: &Header, body: &[u8], path: &mut dyn Path) {
        let c = h.control;
        let for_us = c.has(Control::ACK) && h.acknowledgement == self.ours.number(0);
        if for_us && c.has(Control::RST) {
            self.state = State::Failed(Failure::Reset);
        } else if for_us && c.has(Control::SYN) && h.is_feedback() {
            self.state = State::Open;
            if self.has_work() {
                self.life.heard(now);
            } else {
                self.life.answered(now, self.call_wait);
            }
            self.call_at = None;
            self.theirs.initial = h.sequence;
            self.meter.set_epoch(h.spacing_us);
            self.fed_back_us = h.delay_us;
            let age = now.since(self.called_at);
            match (self.calls, h.delay_us) {
                // of no data, which take longer
                (1, _) => self.rate.round_trip(age, false),
                // which call was answered is not known
                (_, 0) => self.rate.round_trip_at_most(age),
                _ => {}
            }
            self.rate.quick_start(now, h.delay_us, h.hops, false);
            // the answer must be acknowledged; data would do it too, but may be far away
            self.feed_back(now, false, path);
        } else {
            self.counters.foreign += 1;
            if !for_us {
                refuse(h, body, path);
            }
        }
    }

    fn connected(&mut self, now: Instant, h: &Header, body: &[u8], path: &mut dyn Path) {
        let c = h.control;
        if c.has(Control::PATH_FAILURE) {
            return self.path_failed(now, h);
        }
        if c.has(Control::SYN) {
            return self.called_again(now, h, path);
        }
        let acknowledged = self.outbox.acknowledged();
        let expected = self.inbox.acknowledgement();
        let ack = self
            .ours
            .offset(h.acknowledgement, acknowledged)
            // what is older than all that can be on the way is a stranger's guess (RFC 5961, 5)
            .filter(|a| *a <= self.outbox.next() && *a + self.outbox.capacity() >= acknowledged)
            .filter(|_| c.has(Control::ACK));
        let start = self
            .theirs
            .offset(h.sequence, expected)
            .filter(|s| s.abs_diff(expected) < NEAR);
        let (Some(ack), Some(start)) = (ack, start) else {
            self.counters.foreign += 1;
            // who knows our number has called, and somebody else's call has come after his: better that he hears of it than that he waits
            if self.state == State::Opening && ack == Some(0) {
                refuse(h, body, path);
            }
            return;
        };
        if c.has(Control::RST) {
            let window = expected..=expected + self.inbox.capacity() as u64;
            if ack >= acknowledged && window.contains(&start) && !self.state.is_over() {
                self.state = match self.state {
                    State::Opening => State::Listening,
                    _ => State::Failed(Failure::Reset),
                };
            } else {
                self.counters.foreign += 1;
            }
            return;
        }
        self.life.heard(now);
        if self.state == State::Opening {
            self.state = State::Open;
        }
        let done = self.outbox.acknowledge(now, ack, self.rate.guard());
        // without holes the newest packet acknowledged is the newest that came, and the feedback tells since when
        if let Some(age) = done.age.filter(|_| h.is_feedback() && h.size == 0) {
            let age = age.less(Duration::from_us(h.spacing_us.into()));
            self.rate.round_trip(age, !done.again);
        }
        if h.is_feedback() {
            self.counters.heard += 1;
            self.feedback(now, h, body);
        } else {
            self.data(now, h, start, body, path);
        }
        if !self.outbox.is_waiting() {
            self.rate.rest(self.outbox.has_more());
        }
        self.fit(now);
        self.part(now);
    }

    /// Makes packets as long as the path lets them be.
    fn fit(&mut self, now: Instant) {
        let probe = self.size.probe().map(|start| self.outbox.fate(start));
        let news = self.outbox.news();
        if !self.config.fitting {
            return;
        }
        let patience = self.config.patience;
        match self.size.learn(now, patience, news, probe.unwrap_or_default()) {
            Ok(false) => self.outbox.doubt(self.size.doubts()),
            Ok(true) => self.outbox.cut(now, self.size.octets(), self.size.short()),
            Err(TooNarrow) if self.state == State::Open => {
                self.state = State::Failed(Failure::TooNarrow);
                self.reset_due = Some(now);
            }
            Err(TooNarrow) => {}
        }
    }

    /// A node on the way has lost the path: no data go until a probe comes back.
    fn path_failed(&mut self, now: Instant, h: &Header) {
        let sent = self.outbox.acknowledged()..self.outbox.next();
        let of_ours = self.ours.offset(h.sequence, sent.start);
        // what the packet that could not go on acknowledged: a stranger would have to guess both
        let read = self.inbox.acknowledgement();
        let told = read.saturating_sub(self.inbox.capacity() as u64)..=read;
        let acknowledged = self.theirs.offset(h.acknowledgement, read);
        let is_ours =
            of_ours.is_some_and(|n| sent.contains(&n)) && acknowledged.is_some_and(|n| told.contains(&n));
        if self.state == State::Open && is_ours {
            self.counters.path_failures += 1;
            self.rate.path_failed(now);
        } else {
            self.counters.foreign += 1;
        }
    }

    /// A call, or the answer to one, in the middle of a connection.
    fn called_again(&mut self, now: Instant, h: &Header, path: &mut dyn Path) {
        let late = is_call(h) && h.sequence == self.theirs.initial;
        match self.state {
            // our answer was lost, or the caller has begun anew
            State::Opening if is_call(h) => self.answer(now, h, path),
            // our acknowledgement was lost; or the other end has begun anew, and will say so to this one
            State::Open if !late => self.feed_back(now, false, path),
            _ => self.counters.foreign += 1,
        }
    }

    fn feedback(&mut self, now: Instant, h: &Header, body: &[u8]) {
        let guard = self.rate.guard();
        let mut behind = self.outbox.acknowledged();
        for (left, right) in blocks(body) {
            let near = |number| self.ours.offset(number, behind);
            let (Some(left), Some(right)) = (near(left), near(right)) else {
                break;
            };
            if right <= left || right > self.outbox.next() {
                // of no receiver
                break;
            }
            if right <= behind {
                // older than what is known by now
                continue;
            }
            // of a late one a part may be acknowledged by now; the rest is missing all the same
            let left = left.max(behind);
            self.outbox.arrive(now, (behind, left), guard);
            self.outbox.miss(now, (left, right), guard);
            behind = right;
        }
        if h.control.has(Control::SACK_MORE) {
            let came = now - Duration::from_us(h.spacing_us.into());
            self.outbox.miss_all(now, guard, came);
        }
        if h.delay_us > 0 {
            self.fed_back_us = h.delay_us;
        }
        self.reader_is_slow = h.options & OPTION_READER != 0;
        let waited = Duration::from_us(h.spacing_us.into());
        self.rate.told(now, self.outbox.tally(), waited, h.size > 0);
        let waiting = self.outbox.is_waiting();
        if h.control.has(Control::SACK_REQ) && self.rate.wants(h.delay_us) {
            self.rate.quick_start(now, h.delay_us, h.hops, waiting);
        } else {
            self.rate.feedback(now, h.delay_us, h.hops, waiting);
            if !h.control.has(Control::SACK_MORE) {
                self.rate.came_through();
            }
        }
    }

    fn data(&mut self, now: Instant, h: &Header, start: u64, body: &[u8], path: &mut dyn Path) {
        if h.control.has(Control::SACK_REQ) {
            self.meter.probe(h.delay_us, h.hops);
            return self.feed_back(now, true, path);
        }
        let last = h.control.has(Control::FIN);
        if body.is_empty() && !last {
            return;
        }
        let before = self.inbox.unread();
        let place = self.inbox.take(start, body, last);
        if self.inbox.unread() > before {
            self.reader.ready(now);
        }
        self.counters.received += u64::from(place.new);
        self.counters.refused += u64::from(place.refused);
        self.counters.repeated += u64::from(!place.new && !place.refused);
        if !body.is_empty() {
            self.came_octets = [body.len(), self.came_octets[0]];
        }
        let sample = Sample {
            delay_us: h.delay_us,
            spacing_us: h.spacing_us,
            hops: h.hops,
            drops: place.skipped.div_ceil(self.its_packet_octets() as u64),
        };
        let at_once = self.meter.data(now, &sample);
        if at_once || last {
            self.feed_back(now, false, path);
        }
    }

    /// Both directions have ended: nothing is left but to repeat the last acknowledgement if asked.
    fn part(&mut self, now: Instant) {
        if self.state == State::Open && self.outbox.is_done() && self.inbox.is_complete() {
            self.state = State::Lingering;
            self.linger_until = now + self.config.linger;
            self.meter.stop();
        }
    }
}

fn is_call(h: &Header) -> bool {
    let c = h.control;
    c.has(Control::SYN) && !c.has(Control::ACK) && !c.has(Control::RST)
}

/// Says that there is no such connection. Resets are never answered.
fn refuse(h: &Header, body: &[u8], path: &mut dyn Path) {
    if let Some(reset) = h.refusal(body) {
        path.request(&reset.octets());
    }
}
