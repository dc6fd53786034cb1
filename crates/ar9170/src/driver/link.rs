//! The two ways to the stick: commands and frames; and what it says of both.

use super::bus::Bus;
use super::config::Reason;
use super::flight::{Flight, State};
use super::machine::{Aim, Change, Machine, Phase, Transfer, Waiting};
use super::wish::Wish;
use crate::codec::eeprom::{self, Eeprom};
use crate::codec::register;
use crate::codec::tx::DESCRIPTOR_OCTETS;
use crate::codec::{Code, Notice, Order, Response, TxFrame, TxStatus};
use radio::{Attribute, Instant, Outcome, Plane, Queue, SetError, Tsf};

/// What Linux's driver says to a firmware that has just started.
const GREETING: u32 = 0x4a11_0123;

/// Hardware queue of a request. Beacons go with voice, without a backoff: the hardware's own queue for beacons is
/// filled from the beacon memory alone.
fn hardware_queue(queue: Queue) -> u8 {
    queue.index().min(Queue::Voice.index()) as u8
}

impl<const N: usize, const L: usize> Machine<'_, N, L> {
    /// Sends the next command; false if there is none, or the way is not free.
    pub(super) fn dispatch_command(&mut self, bus: &mut dyn Bus) -> bool {
        if self.command_pipe.is_some() || self.waiting.is_some() {
            return false;
        }
        let (order, aim) = match self.phase {
            Phase::Greeting => (Order::echo(GREETING), Aim::Greet),
            Phase::Rising(0) => {
                let words: [u32; eeprom::HEAD_OCTETS / 4] =
                    core::array::from_fn(|i| register::EEPROM + 4 * i as u32);
                (Order::read(&words), Aim::Eeprom)
            }
            Phase::Rising(step) => match self.settings.bring_up(step - 1) {
                Some(order) => (order, Aim::Step(step)),
                None => {
                    self.is_up();
                    return true;
                }
            },
            Phase::Up if self.wants_tsf.take() => (Order::bare(Code::ReadTsf), Aim::Tsf),
            Phase::Up if self.is_asked() => (Order::echo(GREETING), Aim::Alive),
            Phase::Up if self.waits_to_sleep() => return false,
            Phase::Up => match self.next_work() {
                Some(Some(order)) => (order, Aim::Work),
                Some(None) => return true,
                None => return false,
            },
            _ => return false,
        };
        let id = self.next_id();
        let since = self.now;
        self.command_pipe = Some(Transfer { id, since, flight: 0 });
        self.waiting = Some(Waiting { order, since, aim });
        self.counts.commands += 1;
        bus.command(id, order.octets());
        true
    }

    /// It has said nothing for so long that it is asked whether it is there.
    fn is_asked(&self) -> bool {
        self.next_question().is_some_and(|at| at <= self.now)
    }

    /// The command of the first work. `Some(None)`: it needed none and is done. `None`: there is no work.
    fn next_work(&mut self) -> Option<Option<Order>> {
        let Change { token, wish, part } = *self.works.first()?;
        let Some(attribute) = wish.map(|w| w.attribute()) else {
            self.works.pop();
            self.answer_set(token, Err(radio::SetError::NotSupported));
            return Some(None);
        };
        let refused = match attribute {
            Attribute::PacketSeries(..) => Ok(()),
            _ => self.settings.refusal(&attribute),
        };
        if let Err(why) = refused {
            self.works.pop();
            self.answer_set(token, Err(why));
            return Some(None);
        }
        if let Some(order) = self.settings.orders(&attribute, part) {
            return Some(Some(order));
        }
        self.works.pop();
        let result = match attribute {
            Attribute::PacketSeries(packet, series) => self.change_series(packet, series),
            _ => {
                self.settings.take(self.now, &attribute);
                Ok(())
            }
        };
        self.answer_set(token, result);
        Some(None)
    }

    /// The next work is to put the stick to sleep. From here on it gets no frame: its firmware cannot do with one in its
    /// sleep.
    fn goes_to_sleep(&self) -> bool {
        let work = self.works.first();
        work.is_some_and(|w| matches!(w.wish, Some(Wish::Reception(false))))
    }

    /// That work waits until the stick has no frame left.
    fn waits_to_sleep(&self) -> bool {
        self.goes_to_sleep() && self.flights.iter().any(|(_, f)| f.is_away())
    }

    /// Whether a frame may be handed to the stick.
    fn takes_frames(&self) -> bool {
        self.phase == Phase::Up && self.frame_pipe.is_none() && self.settings.awake && !self.goes_to_sleep()
    }

    /// Hands the next frame to the stick; false if there is none, or the way is not free.
    pub(super) fn dispatch_frame(&mut self, bus: &mut dyn Bus) -> bool {
        if !self.takes_frames() {
            return false;
        }
        let Some(index) = self.next_frame() else {
            return false;
        };
        let (id, now) = (self.next_id(), self.now);
        let Some(flight) = self.flights.get_mut(index) else {
            return false;
        };
        let Some(descriptors) = descriptors(index, flight) else {
            self.end(index, Outcome::Refused(radio::Refusal::BadFrame));
            return true;
        };
        (flight.state, flight.since) = (State::Sending(id), now);
        self.frame_pipe = Some(Transfer {
            id,
            since: now,
            flight: index,
        });
        self.counts.frames += 1;
        bus.frame(id, flight.transfer(&descriptors));
        true
    }

    /// Of those whose time has come and whose queue on the stick has room: the highest queue, then the first to come.
    fn next_frame(&self) -> Option<usize> {
        let block = usize::from(self.firmware.block_octets).max(1);
        let blocks = |f: &Flight<L>| (f.frame().len() + DESCRIPTOR_OCTETS).div_ceil(block);
        let (mut away, mut taken) = ([0_u8; 4], 0);
        for (_, f) in self.flights.iter().filter(|(_, f)| f.is_away()) {
            let queue = usize::from(hardware_queue(f.how.queue));
            away[queue] = away[queue].saturating_add(1);
            taken += blocks(f);
        }
        let room = usize::from(self.firmware.cookies()).saturating_sub(taken);
        let may_go = |f: &Flight<L>| {
            let queue = usize::from(hardware_queue(f.how.queue));
            f.is_held()
                && f.ready_at() <= self.now
                && away[queue] < self.config.window.max(1)
                && blocks(f) <= room
        };
        let ready = self.flights.iter().filter(|(_, f)| may_go(f));
        let first = ready.max_by_key(|(_, f)| (f.how.queue.index(), core::cmp::Reverse(f.order)));
        first.map(|(index, _)| index)
    }

    /// A transfer to ep 1 or ep 4 has ended.
    pub(super) fn sent(&mut self, id: u32, well: bool) {
        if self.command_pipe.take_if(|t| t.id == id).is_some() {
            if !well {
                self.broken = Some(Reason::Usb);
            }
        } else if let Some(transfer) = self.frame_pipe.take_if(|t| t.id == id) {
            self.arrived(&transfer, well);
            if !well {
                self.broken = Some(Reason::Usb);
            }
        } else {
            self.counts.late_completions += 1;
        }
    }

    /// A frame is with the stick; `seen` if its completion says so.
    pub(super) fn arrived(&mut self, transfer: &Transfer, seen: bool) {
        let now = self.now;
        if let Some(f) = self.flights.get_mut(transfer.flight)
            && f.state == State::Sending(transfer.id)
        {
            f.state = State::OnStick;
            if seen {
                f.stamps.host(Plane::T4, now);
            }
        }
    }

    /// Takes in one response or event; false if the rest of the transfer is of no use.
    pub(super) fn response(&mut self, response: &Response<'_>) -> bool {
        self.counts.responses += 1;
        self.answered = self.now;
        let modulus = self.firmware.command_buffers.max(1);
        if let Some(expected) = self.expected {
            if response.sequence != expected {
                self.broken = Some(Reason::LostResponse);
                return false;
            }
            self.expected = Some((expected + 1) % modulus);
        }
        match response.notice() {
            Some(notice) => self.notice(&notice),
            None if response.is_event() => self.counts.strange += 1,
            None => self.answered(response, modulus),
        }
        self.broken.is_none()
    }

    fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Boot if matches!(self.phase, Phase::Starting(_)) => self.phase = Phase::Greeting,
            Notice::Boot | Notice::Watchdog => self.broken = Some(Reason::Firmware),
            Notice::Transmitted(list) => list.iter().for_each(|status| self.status(&status)),
            Notice::PreTbtt { .. } if self.phase == Phase::Up => {
                // in an IBSS the hardware moves the TSF by itself
                self.wants_tsf.set(true);
            }
            Notice::Text(text) if text.starts_with(b"BUG") => self.broken = Some(Reason::Firmware),
            Notice::Unknown => self.counts.strange += 1,
            _ => {}
        }
    }

    /// A response to a command.
    fn answered(&mut self, response: &Response<'_>, modulus: u8) {
        let ours = |w: &mut Waiting| response.answers() == Some(w.order.code());
        let Some(waiting) = self.waiting.take_if(ours) else {
            self.counts.strange += 1;
            return;
        };
        // who answers has got it
        let overtaken = self.command_pipe.take();
        self.counts.lost_completions += u64::from(overtaken.is_some());
        if response.payload.len() != waiting.order.response_octets() {
            self.broken = Some(Reason::InvalidResponse);
            return;
        }
        match waiting.aim {
            Aim::Greet if response.payload == waiting.order.payload() => {
                self.expected = Some(response.sequence.wrapping_add(1) % modulus);
                self.phase = Phase::Rising(0);
            }
            Aim::Alive if response.payload == waiting.order.payload() => {}
            Aim::Greet | Aim::Alive => self.broken = Some(Reason::InvalidResponse),
            Aim::Eeprom => self.identify(response.payload),
            Aim::Step(step) => match self.judge(&waiting, response) {
                true => self.phase = Phase::Rising(step.saturating_add(1)),
                false => self.broken = Some(Reason::Firmware),
            },
            Aim::Work => {
                let well = self.judge(&waiting, response);
                self.worked(well, waiting.since);
            }
            Aim::Tsf => {
                self.judge(&waiting, response);
            }
        }
    }

    fn identify(&mut self, octets: &[u8]) {
        let Ok(eeprom) = Eeprom::parse(octets) else {
            self.broken = Some(Reason::NoBoot);
            return;
        };
        let s = &mut self.settings;
        (s.ghz2_4, s.ghz5) = (eeprom.ghz2_4, eeprom.ghz5);
        if s.address == frame::MacAddr::ZERO {
            s.address = eeprom.address;
        }
        if s.refusal(&Attribute::Channel(s.mhz)).is_err() {
            s.mhz = if s.ghz2_4 { 2_412 } else { 5_180 };
        }
        self.phase = Phase::Rising(1);
    }

    /// Takes over what a response says; false if the command has failed.
    fn judge(&mut self, waiting: &Waiting, response: &Response<'_>) -> bool {
        match waiting.order.code() {
            Code::RfInit => return response.words().next() == Some(0),
            Code::ReadTsf => {
                let tsf = response.tsf().map(Tsf);
                if let Some(tsf) = tsf {
                    self.settings.tsf_read(waiting.since, self.now, tsf);
                }
            }
            Code::ReadRegisters => {
                if let Some(word) = response.words().next() {
                    self.settings.noise_dbm = register::noise_floor_dbm(word);
                }
            }
            _ => {}
        }
        true
    }

    /// A command of the first work, sent at `since`, has ended.
    fn worked(&mut self, well: bool, since: Instant) {
        let Some(work) = self.works.first_mut() else {
            return;
        };
        work.part = work.part.saturating_add(1);
        let Change { token, wish, part } = *work;
        let Some(attribute) = wish.map(|w| w.attribute()) else {
            return;
        };
        let more = self.settings.orders(&attribute, part).is_some();
        if well && more {
            return;
        }
        self.works.pop();
        match attribute {
            Attribute::Tsf(tsf) if well => self.settings.tsf_written(since, self.now, tsf),
            attribute if well => self.settings.take(self.now, &attribute),
            _ => {}
        }
        self.answer_set(token, if well { Ok(()) } else { Err(SetError::OutOfRange) });
    }

    /// A frame has ended.
    fn status(&mut self, status: &TxStatus) {
        let index = usize::from(status.cookie).wrapping_sub(1);
        let order = self.order + 1;
        let Some(flight) = self.flights.get_mut(index).filter(|f| f.is_away()) else {
            self.counts.strange += 1;
            return;
        };
        let (attempts, series) = flight.chain.attempts(status.rate, status.tries);
        let acked = status.success && flight.expects_ack;
        let first = flight.how.series.as_slice();
        let rate = first.get(usize::from(series)).unwrap_or(&first[0]).rate;
        let confirm = radio::Confirm {
            attempts,
            series,
            stamps: flight.stamps,
            ..radio::Confirm::without_air(
                flight.token,
                if acked { Outcome::Acked } else { Outcome::NotAcked },
                rate,
            )
        };
        (flight.state, flight.order) = (State::Over(confirm), order);
        self.order = order;
        let overtaken = self.frame_pipe.take_if(|t| t.flight == index);
        self.counts.lost_completions += u64::from(overtaken.is_some());
    }

    /// Time of the next thing that this side can do by itself.
    pub(super) fn has_command(&self) -> bool {
        let free = self.command_pipe.is_none() && self.waiting.is_none();
        let due = match self.phase {
            Phase::Greeting | Phase::Rising(_) => true,
            Phase::Up if self.wants_tsf.get() || self.is_asked() => true,
            Phase::Up => self.works.first().is_some() && !self.waits_to_sleep(),
            _ => false,
        };
        free && due
    }

    /// The same for frames.
    pub(super) fn has_frame(&self) -> bool {
        self.takes_frames() && self.next_frame().is_some()
    }

    /// Hands nothing out before this.
    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}

/// Descriptors of the request at `index`.
fn descriptors<const L: usize>(index: usize, f: &Flight<L>) -> Option<[u8; DESCRIPTOR_OCTETS]> {
    let frame = TxFrame {
        cookie: u8::try_from(index + 1).ok()?,
        queue: hardware_queue(f.how.queue),
        interface: 0,
        assign_sequence: false,
        insert_tsf: f.stamped,
        after_beacon: false,
        no_ack: !f.expects_ack,
        backoff: f.how.queue != Queue::Beacon,
        duration: true,
        rates: f.chain.rates,
        mpdu: f.frame(),
    };
    frame.descriptors()
}
