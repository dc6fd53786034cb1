//! The stick: loader and firmware, commands, frames both ways, power save and beacons.

use super::knobs::{Knobs, Random};
use super::registers::{Registers, set, tsf};
use super::reports::Reports;
use crate::codec::command::{ASYNCHRONOUS, Code, HEADER_OCTETS, MAX_OCTETS, SLEEP};
use crate::codec::register::{self as reg, filter};
use crate::codec::response::TxStatus;
use crate::codec::rx::Position;
use crate::codec::tx::{MAX_RATES, Protection};
use crate::codec::{Eeprom, RxFrame, TxFrame, u32_at};
use frame::Rate;
use frame::mac::{FrameType, Header, Kind};
use radio::{
    Attribute, Confirm, Event, Indication, Outcome, Queue, Radio, RtsPolicy, Series, SeriesList, Token, TxHow,
};
use std::vec::Vec;

/// Noise floor that the stick tells, dBm: that of a real one without calibration at 2.4 GHz, and another at 5 GHz, a number of
/// ours.
pub(super) const fn noise_dbm(mhz: u32) -> i16 {
    if mhz < 3_000 { -95 } else { -102 }
}
/// Descriptors for frames.
const DESCRIPTORS: usize = 190;

/// What runs on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Loader,
    Firmware,
    /// It takes everything and does nothing.
    Hung,
}

/// Addresses of the memory for programs, of which the firmware takes the first.
const PROGRAM: std::ops::Range<usize> = 0x20_0000..0x20_8000;

/// A frame on its way to the air.
#[derive(Clone, Copy, Debug)]
struct Flight {
    token: Token,
    cookie: u8,
    queue: u8,
    tries: [u8; MAX_RATES],
    needs_ack: bool,
}

/// The beacon that was handed over for the next TBTT.
#[derive(Clone, Debug)]
pub(super) struct PendingBeacon {
    pub octets: Vec<u8>,
    pub sent: Option<Token>,
}

/// A stick in virtual time.
#[derive(Debug)]
pub struct Stick {
    state: State,
    eeprom: Eeprom,
    knobs: Knobs,
    pub(super) random: Random,
    pub(super) registers: Registers,
    pub(super) reports: Reports,
    flights: Vec<Flight>,
    filter: u32,
    /// Intervals of sleep that are left; `None`: awake.
    pub(super) asleep: Option<u32>,
    power_half_dbm: u8,
    sequence: u16,
    /// Of its beacon: the next event before a TBTT and the next TBTT, in us of the TSF.
    pub(super) pre_tbtt: Option<u64>,
    pub(super) tbtt: Option<u64>,
    pub(super) beacon: Option<PendingBeacon>,
    beacons: u32,
    image: Vec<u8>,
}

impl Stick {
    /// A stick with its loader.
    pub fn new(eeprom: Eeprom, knobs: Knobs) -> Stick {
        Stick {
            state: State::Loader,
            eeprom,
            knobs,
            random: Random::new(knobs.seed ^ 0x9170),
            registers: Registers::new(&eeprom),
            reports: Reports::new(&knobs, Random::new(knobs.seed ^ 0x5e9)),
            flights: Vec::new(),
            filter: 0,
            asleep: None,
            power_half_dbm: 0,
            sequence: 0,
            pre_tbtt: None,
            tbtt: None,
            beacon: None,
            beacons: 0,
            image: Vec::new(),
        }
    }

    /// A reset of the bus: everything is forgotten, and the loader is there.
    pub fn reset(&mut self, radio: &mut dyn Radio) {
        for flight in std::mem::take(&mut self.flights) {
            radio.abort(flight.token);
        }
        if self.asleep.is_some() {
            set(radio, Attribute::Reception(true));
        }
        let fresh = Stick::new(self.eeprom, self.knobs);
        let before = std::mem::replace(self, fresh);
        self.random = before.random;
        self.reports = before.reports;
        self.reports.restart();
    }

    /// A control transfer; true if the loader takes it. The firmware takes none. An image has to be written from the beginning of the
    /// program memory on, piece by piece and without holes, before it is started: hardware would run whatever lies there.
    pub fn control(&mut self, request: u8, value: u16, data: &[u8]) -> bool {
        if self.state != State::Loader {
            return false;
        }
        let (at, begin) = ((u32::from(value) << 8) as usize, PROGRAM.start);
        match request {
            0x30 => {
                if at == begin {
                    self.image.clear();
                }
                let room = PROGRAM.len() - self.image.len();
                let fits = at == begin + self.image.len() && (1..=room).contains(&data.len());
                if fits {
                    self.image.extend(data);
                }
                fits
            }
            0x31 => !self.image.is_empty(),
            _ => false,
        }
    }

    /// What was written into its program memory since its last reset.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// The image runs now.
    pub fn boot(&mut self) {
        if self.state == State::Loader {
            self.state = State::Firmware;
            self.reports.restart();
            self.reports.say(0xcf, 0, 0, &[]);
        }
    }

    /// The firmware hangs: from now on it takes everything, and says and sends nothing, until it is reset.
    pub fn hang(&mut self) {
        if self.state == State::Firmware {
            self.state = State::Hung;
        }
    }

    /// Whether it has anything to say.
    pub fn has_reports(&self) -> bool {
        self.state != State::Hung && !self.reports.is_empty()
    }

    /// What a read brings.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        let speaks = self.state != State::Hung;
        speaks.then(|| self.reports.read(self.knobs.units)).flatten()
    }

    /// A command from ep 4.
    pub fn command(&mut self, octets: &[u8], radio: &mut dyn Radio) {
        let Some((head, rest)) = octets.split_first_chunk::<HEADER_OCTETS>() else {
            return;
        };
        let [length, code, sequence, _] = *head;
        let payload = rest.get(..length.into());
        let (State::Firmware, Some(payload)) = (self.state, payload.filter(|_| octets.len() <= MAX_OCTETS))
        else {
            return;
        };
        let Some(known) = Code::from_octet(code & !ASYNCHRONOUS) else {
            return;
        };
        let word = |i: usize| u32_at(payload, 4 * i).unwrap_or_default();
        let words = || (0..payload.len() / 4).map(word);
        let mut answer = Vec::new();
        match known {
            Code::ReadRegisters => {
                words().for_each(|a| answer.extend(self.registers.read(a, radio).to_le_bytes()))
            }
            Code::WriteRegisters => {
                for i in 0..payload.len() / 8 {
                    self.registers.write(word(2 * i), word(2 * i + 1), radio);
                }
                self.plan_beacons(radio);
            }
            Code::Echo => answer.extend(payload),
            Code::Reboot => return self.reset(radio),
            Code::ReadTsf => answer.extend(tsf(radio).to_le_bytes()),
            Code::RxFilter => self.filter = word(0),
            Code::Tally => answer.extend([0; 24]),
            Code::Beacon => self.take_beacon(word(1) == 1, word(2), word(3)),
            Code::Frequency | Code::RfInit => {
                let mhz = word(0) / 1_000;
                let known = matches!(mhz, 2_412..=2_484 | 4_900..=5_900);
                if known {
                    self.registers.set_noise(noise_dbm(mhz));
                    set(radio, Attribute::Channel(mhz as u16));
                }
                answer.extend(u32::from(!known).to_le_bytes());
            }
            Code::PowerSave => self.power_save(word(0), radio),
            Code::ResetMac
            | Code::WakeOnWlan
            | Code::WriteMemory
            | Code::EnableKey
            | Code::DisableKey
            | Code::FrequencyStart => {}
        }
        self.reports.say(code, sequence, 0, &answer);
    }

    pub(super) fn power_save(&mut self, state: u32, radio: &mut dyn Radio) {
        let sleeps = state & SLEEP != 0;
        if sleeps != self.asleep.is_some() {
            set(radio, Attribute::Reception(!sleeps));
        }
        self.asleep = sleeps.then_some(state & !SLEEP);
    }

    /// A frame from ep 1. What is no frame, or too much, is dropped, as the hardware does.
    pub fn frame(&mut self, octets: &[u8], radio: &mut dyn Radio) {
        let Some(frame) = TxFrame::parse(octets).filter(|_| self.state == State::Firmware) else {
            return;
        };
        let tries = frame.rates.map(|r| r.tries);
        let flight = |token| Flight {
            token,
            cookie: frame.cookie,
            queue: frame.queue,
            tries,
            needs_ack: !frame.no_ack,
        };
        let list: Option<Vec<Series>> = frame
            .rates()
            .map(|r| {
                Some(Series {
                    rate: r.phy.rate()?,
                    tries: r.tries,
                })
            })
            .collect();
        let list = list.and_then(|list| SeriesList::new(&list));
        let Some(series) = list.filter(|_| self.asleep.is_none() && self.flights.len() < DESCRIPTORS) else {
            let failed = flight(Token(0));
            return self.report(&failed, 0, false);
        };
        let half_dbm = frame.rates[0].phy.half_dbm();
        if std::mem::replace(&mut self.power_half_dbm, half_dbm) != half_dbm {
            set(radio, Attribute::TxPower((half_dbm / 2) as i8));
        }
        let rts = match frame.rates[0].protection {
            Protection::Rts => RtsPolicy::Always,
            Protection::None | Protection::Cts => RtsPolicy::Never,
        };
        let queue = match frame.backoff {
            true => Queue::ALL[usize::from(frame.queue)],
            false => Queue::Beacon,
        };
        let mut how = TxHow {
            rts,
            ..TxHow::one_shot(Rate::OFDM_6)
        }
        .series(series)
        .queue(queue);
        if frame.no_ack {
            how = how.no_ack();
        }
        let mut mpdu = frame.mpdu.to_vec();
        if frame.assign_sequence {
            self.sequence = self.sequence.wrapping_add(16);
            let place = mpdu.get_mut(22..24);
            place
                .into_iter()
                .for_each(|p| p.copy_from_slice(&self.sequence.to_le_bytes()));
        }
        let token = radio.token();
        self.flights.push(flight(token));
        radio.request(token, &mpdu, &how);
    }

    /// A frame has ended after this many attempts.
    fn report(&mut self, flight: &Flight, attempts: u16, success: bool) {
        if self.random.chance(self.knobs.lost_status) {
            self.reports.faults.lost_statuses += 1;
            return;
        }
        let (mut left, mut rate) = (attempts, 0);
        while rate + 1 < MAX_RATES && left > u16::from(flight.tries[rate]) && flight.tries[rate + 1] > 0 {
            left -= u16::from(flight.tries[rate]);
            rate += 1;
        }
        self.reports.status(TxStatus {
            cookie: flight.cookie,
            queue: flight.queue,
            rate: rate as u8,
            tries: left.min(7) as u8,
            success,
        });
    }

    /// What the air says.
    pub fn air(&mut self, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Confirm(confirm) => self.done(&confirm),
            Event::Indication(received) => self.heard(&received),
            Event::Beacon(beacon) => {
                self.heard(&beacon.received);
                if self.state == State::Firmware && beacon.bssid == self.registers.address(reg::BSSID) {
                    self.beacon_heard(&beacon, radio);
                }
            }
            Event::Start | Event::Timer | Event::Submit(_) | Event::Set(_) => {}
        }
    }

    fn done(&mut self, confirm: &Confirm) {
        if let Some(at) = self.flights.iter().position(|f| f.token == confirm.token) {
            let flight = self.flights.swap_remove(at);
            let success = confirm.outcome.is_acked()
                || !flight.needs_ack && confirm.outcome == Outcome::NotAcked && confirm.attempts > 0;
            return self.report(&flight, confirm.attempts, success);
        }
        let ours = |b: &mut PendingBeacon| b.sent == Some(confirm.token);
        if self.beacon.take_if(ours).is_some() && confirm.attempts > 0 {
            self.beacons += 1;
            self.reports.say(0xc2, 0, 0, &self.beacons.to_le_bytes());
        }
    }

    fn heard(&mut self, received: &Indication<'_>) {
        let (State::Firmware, None) = (self.state, self.asleep) else {
            return;
        };
        let receiving = self.registers.get(reg::DMA_TRIGGER) & reg::DMA_RECEIVE != 0;
        let Ok(header) = Header::parse(received.frame) else {
            return;
        };
        let other = !header.is_group() && header.receiver() != self.registers.address(reg::MAC_ADDRESS);
        if !receiving || self.is_dropped(&header, other) {
            return;
        }
        let noise = self.registers.noise_dbm();
        let above = received
            .signal_dbm
            .map(|dbm| (i16::from(dbm) - noise).clamp(0, 127) as u8);
        let frame = RxFrame {
            mpdu: received.frame,
            rate: Some(received.rate),
            above_noise_db: above,
            position: Position::Single,
        };
        let mut unit = std::vec![0; received.frame.len() + 64];
        if let Some(octets) = frame.emit(other, &mut unit) {
            unit.truncate(octets);
            self.reports.heard(unit);
        }
    }

    /// The filters: those of the hardware by type and by group, that of the firmware by its mask.
    fn is_dropped(&self, header: &Header<'_>, other: bool) -> bool {
        let types = self.registers.get(reg::FRAME_TYPES);
        let kind = header.kind();
        let index = u32::from(header.receiver().0[5] >> 2);
        let groups = self.registers.get(reg::GROUP_HASH + index / 32 * 4);
        if header.is_group() && groups >> (index % 32) & 1 == 0 {
            return true;
        }
        let mut bits = if other { filter::OTHER_RECEIVER } else { 0 };
        bits |= match (header.frame_type(), kind) {
            (FrameType::Management, _) if types >> kind.subtype() & 1 == 0 => return true,
            (FrameType::Management, _) => filter::MANAGEMENT,
            (FrameType::Data, _) => filter::DATA,
            (_, Kind::PS_POLL) => filter::PS_POLL,
            (_, Kind::BLOCK_ACK_REQUEST) => filter::BLOCK_ACK_REQUEST,
            _ => filter::CONTROL,
        };
        bits & self.filter != 0
    }
}
