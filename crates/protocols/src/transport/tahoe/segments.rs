//! Segments out and in.

use super::{Connection, MOST_WINDOW};
use crate::transport::wire::{Control, HEADER_OCTETS, Header, MAX_DATA_OCTETS, ProtocolId};
use crate::transport::{Failure, Path, State};
use radio::{Duration, Instant};

/// How long a caller that has nothing to send waits for a sign that its acknowledgement of the answer has come: as long as the first timer lasts (RFC 6298, 2.1).
const UNANSWERED: Duration = Duration::from_ms(1_000);

/// The time stamp of an instant: never 0, which means none.
fn stamp(now: Instant) -> u32 {
    ((now.as_ns() / 1_000) as u32).max(1)
}

impl<O: AsRef<[u8]> + AsMut<[u8]>, const H: usize> Connection<O, H> {
    /// Octets that were written and that the other end has, without gaps.
    pub fn acknowledged_octets(&self) -> u64 {
        self.una.min(self.written)
    }

    /// Octets of window to tell.
    pub(super) fn free(&self) -> u64 {
        ((self.inbox.capacity() - self.inbox.unread()) as u64).min(MOST_WINDOW)
    }

    fn header(&self, now: Instant, control: Control, sequence: u32) -> Header {
        Header {
            size: self.free() as u16,
            sequence,
            acknowledgement: self.theirs.number(self.inbox.acknowledgement()),
            delay_us: stamp(now),
            spacing_us: self.echo,
            ..Header::new(ProtocolId::Tcp, control)
        }
    }

    pub(super) fn call(&mut self, now: Instant, path: &mut dyn Path) {
        if self.calls == self.config.calls {
            self.state = State::Failed(Failure::NoAnswer);
            return;
        }
        if self.calls == 0 {
            self.timer.start(now);
        } else {
            self.timer.back_off(now);
        }
        self.calls += 1;
        let call = Header {
            acknowledgement: 0,
            ..self.header(now, Control::SYN, self.ours.initial)
        };
        path.request(&call.octets());
    }

    /// The segment at `at`: as many octets as fit it, and the end of the stream if that is reached.
    pub(super) fn send(&mut self, now: Instant, at: u64, path: &mut dyn Path) {
        let octets = self.written.saturating_sub(at).min(self.segment()) as usize;
        // the end goes alone: it counts as an octet of its own
        let last = octets == 0 && self.finished;
        let control = Control::ACK.with_if(last, Control::FIN);
        let header = self.header(now, control, self.ours.number(at));
        let mut out = [0; HEADER_OCTETS + MAX_DATA_OCTETS];
        out[..HEADER_OCTETS].copy_from_slice(&header.octets());
        self.ring.get(at, &mut out[HEADER_OCTETS..HEADER_OCTETS + octets]);
        path.request(&out[..HEADER_OCTETS + octets]);
        self.life.spoken();
        if at < self.highest {
            self.counters.resent += 1;
        } else {
            self.counters.sent += 1;
        }
        self.told_window = self.free();
    }

    pub(super) fn acknowledge(&mut self, now: Instant, path: &mut dyn Path) {
        let header = self.header(now, Control::ACK, self.ours.number(self.highest));
        self.told_window = self.free();
        path.request(&header.octets());
    }

    /// Asks for a sign of life.
    pub(super) fn ask(&mut self, now: Instant, path: &mut dyn Path) {
        let control = Control::ACK.with(Control::SACK_REQ);
        let header = self.header(now, control, self.ours.number(self.highest));
        path.request(&header.octets());
    }

    pub(super) fn reset(&mut self, now: Instant, path: &mut dyn Path) {
        let control = Control::RST.with(Control::ACK);
        let header = self.header(now, control, self.ours.number(self.highest));
        path.request(&header.octets());
    }

    pub(super) fn receive(&mut self, now: Instant, datagram: &[u8], path: &mut dyn Path) {
        let Some((h, body)) = Header::parse(datagram)
            .ok()
            .filter(|(h, _)| h.protocol == ProtocolId::Tcp)
        else {
            self.counters.foreign += 1;
            return;
        };
        let c = h.control;
        let call = c.has(Control::SYN) && !c.has(Control::ACK);
        match self.state {
            State::Listening | State::Opening if call && !self.caller => {
                self.open(now, &h, State::Opening);
                let answer = self.header(now, Control::SYN.with(Control::ACK), self.ours.initial);
                path.request(&answer.octets());
            }
            State::Opening if self.caller => {
                let for_us = c.has(Control::ACK) && h.acknowledgement == self.ours.number(0);
                if for_us && c.has(Control::RST) {
                    self.state = State::Failed(Failure::Reset);
                } else if for_us && c.has(Control::SYN) {
                    self.open(now, &h, State::Open);
                    self.measure(now, &h);
                    self.timer.restart(now, false);
                    if self.end() == 0 {
                        self.life.answered(now, UNANSWERED);
                    }
                    self.acknowledge(now, path);
                } else {
                    self.counters.foreign += 1;
                }
            }
            State::Opening | State::Open | State::Lingering | State::Closed => {
                self.segment_in(now, &h, body, path)
            }
            State::Listening | State::Failed(_) => self.counters.foreign += 1,
        }
    }

    fn open(&mut self, now: Instant, h: &Header, state: State) {
        self.state = state;
        self.theirs.initial = h.sequence;
        self.peer_window = h.size.into();
        self.echo = h.delay_us;
        self.life.heard(now);
    }

    fn measure(&mut self, now: Instant, h: &Header) {
        if h.spacing_us != 0 {
            let us = stamp(now).wrapping_sub(h.spacing_us);
            self.timer.measure(Duration::from_us(us.into()));
        }
    }

    fn segment_in(&mut self, now: Instant, h: &Header, body: &[u8], path: &mut dyn Path) {
        let c = h.control;
        let expected = self.inbox.acknowledgement();
        let ack = self
            .ours
            .offset(h.acknowledgement, self.una)
            .filter(|a| c.has(Control::ACK) && *a <= self.highest);
        let start = self
            .theirs
            .offset(h.sequence, expected)
            .filter(|s| s.abs_diff(expected) < 1 << 30);
        if c.has(Control::SYN) {
            // a call or an answer that was late, or our acknowledgement was lost
            return self.acknowledge(now, path);
        }
        let (Some(ack), Some(start)) = (ack, start) else {
            self.counters.foreign += 1;
            return;
        };
        if c.has(Control::RST) {
            let window = expected..=expected + MOST_WINDOW;
            if ack >= self.una && window.contains(&start) && !self.state.is_over() {
                self.state = State::Failed(Failure::Reset);
            }
            return;
        }
        self.life.heard(now);
        if self.state == State::Opening {
            self.state = State::Open;
        }
        let same_window = self.peer_window == u64::from(h.size);
        self.peer_window = h.size.into();
        let last = c.has(Control::FIN);
        let asks = c.has(Control::SACK_REQ);
        if ack > self.una {
            self.measure(now, h);
            self.advance(now, ack);
        } else if ack == self.una
            && body.is_empty()
            && !last
            && !asks
            && same_window
            && self.una < self.highest
        {
            self.duplicate(now);
        }
        if !body.is_empty() || last {
            self.echo = h.delay_us;
            self.inbox.take(start, body, last);
            self.acknowledge(now, path);
        } else if asks {
            self.acknowledge(now, path);
        }
        self.part(now);
    }
}
