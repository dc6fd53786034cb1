//! One end of an ATP connection: call, data both ways, feedback, close.

mod incoming;
mod sharing;
#[cfg(test)]
mod tests;

use super::macroflow::Arrived;
use super::meter::Meter;
use super::rate::Rate;
use super::size::Size;
use super::{Config, MAX_DATA_OCTETS};
use crate::dice::Dice;
use crate::transport::life::Life;
use crate::transport::stream::{Inbox, Numbers, Outbox, Piece, Reader, Sent};
use crate::transport::wire::{
    BLOCK_OCTETS, Control, HEADER_OCTETS, Header, MAX_BLOCKS, OPTION_RAW_DELAY, OPTION_READER, ProtocolId,
};
use crate::transport::{Buffers, Event, Failure, Path, State, Transport, sooner};
use radio::{Duration, Instant};

/// What a connection has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets of data, and of the end, sent for the first time.
    pub sent: u64,
    /// Sent again.
    pub resent: u64,
    /// Packets of data received that held something new.
    pub received: u64,
    /// That held nothing new.
    pub repeated: u64,
    /// That there was no room for.
    pub refused: u64,
    /// Feedback sent.
    pub spoken: u64,
    /// Feedback received.
    pub heard: u64,
    /// Feedback missed.
    pub missed: u64,
    /// Probes sent.
    pub probes: u64,
    /// Notices of path failure that were followed.
    pub path_failures: u64,
    /// Datagrams that are no packets, or not of this connection.
    pub foreign: u64,
}

/// See the [module](self). `O` are buffers of octets, `R` of records of packets; the receive buffer keeps up to `H`
/// stretches behind holes.
#[derive(Clone, Debug)]
pub struct Connection<O, R, const H: usize = 256> {
    config: Config,
    state: State,
    caller: bool,
    outbox: Outbox<O, R>,
    inbox: Inbox<O, H>,
    rate: Rate,
    size: Size,
    meter: Meter,
    reader: Reader,
    ours: Numbers,
    theirs: Numbers,
    calls: u8,
    call_at: Option<Instant>,
    /// Mean wait for the answer to the next call.
    call_wait: Duration,
    /// When it called first.
    called_at: Instant,
    life: Life,
    linger_until: Instant,
    reset_due: Option<Instant>,
    /// Octets of data in the last two packets that came: the last one of a stream is short, and a path may have become narrow.
    came_octets: [usize; 2],
    fed_back_us: u32,
    counters: Counters,
    arrived: Arrived,
    /// The latest feedback has told how slow the other end's reader is.
    reader_is_slow: bool,
}

impl<O, R, const H: usize> Connection<O, R, H>
where
    O: AsRef<[u8]> + AsMut<[u8]>,
    R: AsRef<[Sent]> + AsMut<[Sent]>,
{
    /// The end that calls, at [`Event::Start`].
    pub fn caller(config: &Config, buffers: Buffers<O, R>) -> Self {
        Connection::new(config, buffers, true)
    }

    /// The end that waits to be called.
    pub fn listener(config: &Config, buffers: Buffers<O, R>) -> Self {
        Connection::new(config, buffers, false)
    }

    fn new(config: &Config, buffers: Buffers<O, R>, caller: bool) -> Self {
        let config = config.bounded();
        let size = Size::new(config.packet_octets);
        let mut outbox = Outbox::new(buffers.send, buffers.sent);
        outbox.cut(Instant::ZERO, size.octets(), size.short());
        Connection {
            state: if caller { State::Opening } else { State::Listening },
            caller,
            outbox,
            size,
            inbox: Inbox::new(buffers.receive),
            rate: Rate::new(&config),
            meter: Meter::new(&config),
            reader: Reader::default(),
            ours: Numbers {
                initial: config.initial_number,
            },
            theirs: Numbers { initial: 0 },
            calls: 0,
            call_at: None,
            call_wait: config.first_call_wait,
            called_at: Instant::ZERO,
            life: Life::new(config.patience),
            linger_until: Instant::ZERO,
            reset_due: None,
            came_octets: [1; 2],
            fed_back_us: 0,
            counters: Counters::default(),
            arrived: Arrived::default(),
            reader_is_slow: false,
            config,
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Octets that were written and that the other end has, without gaps.
    pub fn acknowledged_octets(&self) -> u64 {
        self.outbox.acknowledged()
    }

    /// The sender's spacing D_s in microseconds.
    pub fn spacing_us(&self) -> u32 {
        self.rate.spacing_us()
    }

    /// Octets of data in the packets that it sends: fewer than at first if the path drops those.
    pub fn packet_octets(&self) -> u16 {
        self.size.octets()
    }

    /// The delay in the last feedback received, in microseconds; 0 if there was none.
    pub fn fed_back_us(&self) -> u32 {
        self.fed_back_us
    }

    /// The receiver's average of the path's delay in microseconds, 0 if there is none.
    pub fn delay_us(&self) -> f64 {
        self.meter.delay_us()
    }

    /// A packet of data: its header.
    fn header(&self, control: Control, sequence: u32) -> Header {
        Header {
            options: if self.config.adaptive { OPTION_RAW_DELAY } else { 0 },
            sequence,
            acknowledgement: self.theirs.number(self.inbox.acknowledgement()),
            ..Header::new(ProtocolId::Atp, control.with(Control::ACK))
        }
    }

    fn next_number(&self) -> u32 {
        self.ours.number(self.outbox.next())
    }

    fn call(&mut self, now: Instant, path: &mut dyn Path) {
        if self.calls == self.config.calls {
            self.state = State::Failed(Failure::NoAnswer);
            return;
        }
        let mean_ns = self.call_wait.as_ns();
        let longer = Duration::from_ns(mean_ns / 16 * 17);
        self.call_wait = longer.min(self.config.call_wait);
        let mut dice = Dice(u64::from(self.ours.initial) << 8 | u64::from(self.calls));
        let wait = Duration::from_ns(mean_ns / 4 * 3 + dice.below(mean_ns / 2));
        if self.calls == 0 {
            self.called_at = now;
        }
        self.calls += 1;
        self.call_at = Some(now + wait);
        let call = Header {
            acknowledgement: 0,
            spacing_us: self.config.told_epoch_us(),
            ..self.header(Control::default(), self.ours.initial)
        };
        let control = Control::SYN.with(Control::SACK_REQ);
        path.request(&Header { control, ..call }.octets());
    }

    fn probe(&mut self, path: &mut dyn Path) {
        let probe = self.header(Control::SACK_REQ, self.next_number());
        path.request(&probe.octets());
        self.counters.probes += 1;
    }

    fn send(&mut self, piece: &Piece, path: &mut dyn Path) {
        let control = Control::default().with_if(piece.last, Control::FIN);
        let header = Header {
            spacing_us: if self.config.adaptive {
                self.rate.spacing_us()
            } else {
                0
            },
            ..self.header(control, self.ours.number(piece.start))
        };
        let mut out = [0; HEADER_OCTETS + MAX_DATA_OCTETS];
        out[..HEADER_OCTETS].copy_from_slice(&header.octets());
        self.outbox.copy(piece, &mut out[HEADER_OCTETS..]);
        path.request(&out[..HEADER_OCTETS + piece.octets]);
        if piece.again {
            self.counters.resent += 1;
        } else {
            self.counters.sent += 1;
        }
    }

    /// `answer`: to a probe.
    fn feed_back(&mut self, now: Instant, answer: bool, path: &mut dyn Path) {
        let mut out = [0; HEADER_OCTETS + MAX_BLOCKS * BLOCK_OCTETS];
        let (places, _) = out[HEADER_OCTETS..].as_chunks_mut::<BLOCK_OCTETS>();
        let mut size = 0;
        for (place, (left, right)) in places.iter_mut().zip(self.inbox.holes()) {
            place[..4].copy_from_slice(&self.theirs.number(left).to_be_bytes());
            place[4..].copy_from_slice(&self.theirs.number(right).to_be_bytes());
            size += BLOCK_OCTETS;
        }
        let delay_us = self.meter.delay_us();
        let (unread, capacity) = (self.inbox.unread(), self.inbox.capacity());
        // a reader that keeps up says nothing of a path whose delay nobody knows
        let holds_up = delay_us > 0.0 || unread * 2 > capacity;
        let reader = if holds_up {
            self.reader.delay_us(now, unread, capacity)
        } else {
            0.0
        };
        let control = Control::SACK_OPT
            .with_if(self.meter.is_quiet(now), Control::SACK_MORE)
            .with_if(answer, Control::SACK_REQ);
        let header = self.header(control, self.next_number());
        let of_reader = if reader > delay_us { OPTION_READER } else { 0 };
        let header = Header {
            options: header.options | of_reader,
            size: size as u16,
            hops: self.meter.hops(),
            spacing_us: self.meter.held_us(now),
            // a float that is too large becomes the largest number
            delay_us: delay_us.max(reader) as u32,
            ..header
        };
        out[..HEADER_OCTETS].copy_from_slice(&header.octets());
        path.request(&out[..HEADER_OCTETS + size]);
        self.counters.spoken += 1;
        self.meter.speak(now);
    }

    /// Octets of data in a packet of the other end, as far as is known.
    fn its_packet_octets(&self) -> usize {
        self.came_octets[0].max(self.came_octets[1])
    }

    fn reset(&mut self, path: &mut dyn Path) {
        path.request(&self.header(Control::RST, self.next_number()).octets());
    }

    /// When the sender of an open connection wants to do something: send, probe, or miss a feedback.
    fn sender_at(&self) -> Option<Instant> {
        let send = self.rate.send_at().filter(|_| self.outbox.has_more());
        let probe = self.rate.probe_at().filter(|_| self.has_work());
        sooner(sooner(send, probe), self.rate.expect_at())
    }

    /// Does what is due.
    fn work(&mut self, now: Instant, path: &mut dyn Path) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.reset_due) {
            self.reset_due = None;
            self.reset(path);
        }
        if self.state == State::Opening && self.caller {
            if due(self.call_at) {
                self.call(now, path);
            }
            return;
        }
        let silent = now >= self.life.over_at();
        match self.state {
            // the caller has given up before the connection was there
            State::Opening if silent => self.state = State::Listening,
            State::Open if silent => self.state = State::Failed(Failure::PeerSilent),
            _ => {}
        }
        if self.state == State::Lingering && now >= self.linger_until {
            self.state = State::Closed;
        }
        if self.state != State::Open {
            return;
        }
        if due(self.rate.expect_at()) {
            self.counters.missed += 1;
            self.rate.miss(now);
        }
        let probe = self.rate.probe_at().filter(|_| self.has_work());
        if due(probe) || self.life.wants_to_ask(now) {
            self.life.asked(now);
            self.rate.probed(now);
            self.probe(path);
        }
        if due(self.rate.send_at())
            && let Some(piece) = self.outbox.take(now, self.size.wanted(now).into())
        {
            self.rate.sent(now, piece.again);
            self.life.spoken();
            self.size.sent(&piece);
            self.send(&piece, path);
        }
        if !self.outbox.has_more() {
            self.rate.idle();
            self.arrived = Arrived::default();
        }
        if due(self.meter.deadline()) {
            self.feed_back(now, false, path);
        }
    }
}

impl<O, R, const H: usize> Transport for Connection<O, R, H>
where
    O: AsRef<[u8]> + AsMut<[u8]>,
    R: AsRef<[Sent]> + AsMut<[Sent]>,
{
    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path) {
        match event {
            Event::Start if self.caller && self.calls == 0 => self.call(now, path),
            Event::Start | Event::Timer => {}
            Event::Indication(datagram) => self.receive(now, datagram, path),
        }
        self.work(now, path);
    }

    fn deadline(&self) -> Option<Instant> {
        let state = match self.state {
            State::Opening if self.caller => self.call_at,
            State::Opening => Some(self.life.over_at()),
            State::Open => {
                let own = sooner(self.sender_at(), self.meter.deadline());
                sooner(own, Some(self.life.deadline()))
            }
            State::Lingering => Some(self.linger_until),
            State::Listening | State::Closed | State::Failed(_) => None,
        };
        sooner(state, self.reset_due)
    }

    fn write(&mut self, _now: Instant, octets: &[u8]) -> usize {
        if self.state.is_over() {
            return 0;
        }
        self.outbox.write(octets)
    }

    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let octets = self.inbox.read(out);
        let (left, memory) = (self.inbox.unread(), self.config.memory);
        let packet = self.its_packet_octets();
        self.reader.read(now, octets, left, packet, memory);
        octets
    }

    fn is_exhausted(&self) -> bool {
        self.inbox.is_exhausted()
    }

    fn finish(&mut self, _now: Instant) {
        self.outbox.finish();
    }

    fn abort(&mut self, now: Instant) {
        if !self.state.is_over() {
            let calling = self.caller && self.state == State::Opening;
            let known = !calling && self.state != State::Listening;
            self.reset_due = known.then_some(now);
            self.state = State::Failed(Failure::Aborted);
        }
    }

    fn state(&self) -> State {
        self.state
    }
}
