//! The measurement task of SDMAC (Cena et al. 2018, section IV.B): after each beacon of its BSS it waits until
//! the medium is surely idle, sends one frame exactly once, and waits for the outcome. With the medium idle the
//! time to access it is zero, and what the stamps of the confirm show is the latency of host and adapter alone.
//!
//! The first four octets of each payload are a sequence number, high octet first: a [`Sink`](super::sink) at the
//! other end knows by it which of the frames that got no ACK had arrived all the same (ACK lost, L_A) and which
//! had not (data lost, L_D). Its traffic identifier is that of best effort.

use super::data::{ETHERTYPE_PAYLOAD, Framer, Identity, MAX_DATA_OCTETS, MAX_PAYLOAD_OCTETS};
use super::tally::Tally;
use frame::{AccessCategory, MacAddr, Rate};
use radio::{AckPolicy, Confirm, Duration, Event, Instant, Protocol, Radio, Token, TxHow};

/// Octets of the sequence number at the beginning of each payload.
pub const SEQUENCE_OCTETS: usize = 4;

/// When a [`Oneshot`] measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// `wait` after each beacon of its BSS (T_wait of Table III: 20 ms). A beacon that arrives while a
    /// measurement waits or runs is left out.
    AfterBeacon {
        /// T_wait.
        wait: Duration,
    },
    /// One measurement every `period`, counted from the start, without beacons. A turn that comes while a
    /// measurement runs is left out.
    Every {
        /// From one request to the next; at least 1 us.
        period: Duration,
    },
}

/// What a [`Oneshot`] measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneshotConfig {
    /// Who it is.
    pub identity: Identity,
    /// Who receives the frames.
    pub peer: MacAddr,
    /// Octets of payload, 4 to 2296; values outside count as the next one inside.
    pub payload_octets: u16,
    /// How each frame is sent. One series of one try is a confirmed one-shot; others measure multi-shots.
    pub how: TxHow,
    /// QoS data instead of plain data.
    pub qos: bool,
    /// When.
    pub pace: Pace,
    /// How many; then it falls silent.
    pub measurements: u32,
}

impl OneshotConfig {
    /// The experiments of section V: 50 octets of payload at 54 Mb/s in plain data frames, 20 ms after each
    /// beacon, without end.
    pub const fn paper(identity: Identity) -> OneshotConfig {
        OneshotConfig {
            identity,
            peer: identity.bssid(),
            payload_octets: 50,
            how: TxHow::one_shot(Rate::OFDM_54),
            qos: false,
            pace: Pace::AfterBeacon {
                wait: Duration::from_ms(20),
            },
            measurements: u32::MAX,
        }
    }
}

/// One finished measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measurement {
    /// The number in its payload.
    pub sequence: u32,
    /// When the request was made (host clock).
    pub requested: Instant,
    /// How it ended, with its stamps.
    pub confirm: Confirm,
}

/// See the [module](self). Keeps the last `R` measurements; the host sees all confirms anyway.
#[derive(Clone, Debug)]
pub struct Oneshot<const R: usize = 16> {
    config: OneshotConfig,
    framer: Framer,
    at: Option<Instant>,
    running: Option<(Token, u32, Instant)>,
    requested: u32,
    skipped: u64,
    confirms: Tally,
    recent: [Option<Measurement>; R],
}

impl<const R: usize> Oneshot<R> {
    /// A task that has measured nothing yet.
    pub fn new(config: OneshotConfig) -> Self {
        Oneshot {
            framer: Framer::new(config.identity, config.qos, ETHERTYPE_PAYLOAD),
            config,
            at: None,
            running: None,
            requested: 0,
            skipped: 0,
            confirms: Tally::default(),
            recent: [None; R],
        }
    }

    /// Frames requested so far: the sequence numbers 0 to this, exclusive.
    pub fn requested(&self) -> u32 {
        self.requested
    }

    /// Beacons or turns left out because a measurement was still waiting or running.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Outcomes so far.
    pub fn confirms(&self) -> &Tally {
        &self.confirms
    }

    /// The last `R` finished measurements, latest first.
    pub fn recent(&self) -> impl Iterator<Item = &Measurement> {
        let done = self.confirms.total() as usize;
        (1..=R.min(done)).filter_map(move |back| self.recent[(done - back) % R].as_ref())
    }

    fn is_over(&self) -> bool {
        self.requested >= self.config.measurements
    }

    fn measure(&mut self, now: Instant, radio: &mut dyn Radio) {
        let octets = usize::from(self.config.payload_octets);
        let padding = [0; MAX_DATA_OCTETS];
        let room = MAX_PAYLOAD_OCTETS - SEQUENCE_OCTETS;
        let padding = &padding[..octets.saturating_sub(SEQUENCE_OCTETS).min(room)];
        let mut out = [0; MAX_DATA_OCTETS];
        let sequence = self.requested;
        let no_ack = self.config.how.ack == AckPolicy::NoAck;
        let (to, category) = (self.config.peer, AccessCategory::BestEffort);
        let mpdu = self
            .framer
            .frame(to, category, no_ack, &sequence.to_be_bytes(), padding, &mut out)
            .expect("the payload is limited to what fits");
        let token = radio.token();
        self.running = Some((token, sequence, now));
        self.requested += 1;
        radio.request(token, mpdu, &self.config.how);
    }

    fn timer(&mut self, now: Instant, radio: &mut dyn Radio) {
        let Some(at) = self.at.filter(|t| *t <= now) else {
            return;
        };
        self.at = None;
        if self.running.is_some() {
            self.skipped += 1;
        } else {
            self.measure(now, radio);
        }
        if let Pace::Every { period } = self.config.pace
            && !self.is_over()
        {
            let period = period.as_ns().max(1_000);
            let late = now.since(at).as_ns() / period;
            self.skipped += late;
            self.at = Some(at + Duration::from_ns(period.saturating_mul(late + 1)));
        }
    }
}

impl<const R: usize> Protocol for Oneshot<R> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match (event, self.config.pace) {
            (Event::Start, Pace::Every { .. }) if !self.is_over() => self.at = Some(now),
            (Event::Beacon(b), Pace::AfterBeacon { wait }) if b.bssid == self.config.identity.bssid() => {
                if self.at.is_some() || self.running.is_some() {
                    self.skipped += 1;
                } else if !self.is_over() {
                    self.at = Some(now + wait);
                }
            }
            (Event::Timer, _) => self.timer(now, radio),
            (Event::Confirm(confirm), _) => {
                if let Some((token, sequence, requested)) = self.running
                    && token == confirm.token
                {
                    self.running = None;
                    if R > 0 {
                        self.recent[self.confirms.total() as usize % R] = Some(Measurement {
                            sequence,
                            requested,
                            confirm,
                        });
                    }
                    self.confirms.note(&confirm);
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::beacon::{Beaconer, BeaconerConfig};
    use crate::mac::sink::Sink;
    use crate::testing::{Delays, Fate, Room};
    use frame::mac::{Header, Kind};
    use radio::Outcome;
    use std::vec::Vec;

    const AP: MacAddr = MacAddr::local(1);
    const STA: MacAddr = MacAddr::local(2);
    const BEACON: Duration = Duration::from_ms(50);

    /// The testbed of the paper: an access point that sends beacons and acknowledges, and the PC.
    fn testbed(config: OneshotConfig) -> (Room, usize, usize) {
        let mut room = Room::new(1);
        let ap = room.add(AP, || {
            let sink: Sink = Sink::new(Identity::access_point(AP));
            Beaconer::new(BeaconerConfig::new(AP, BEACON, Rate::OFDM_6), sink)
        });
        let sta = room.add(STA, move || Oneshot::<16>::new(config));
        (room, ap, sta)
    }

    fn is_data(frame: &[u8]) -> bool {
        Header::parse(frame).unwrap().kind() == Kind::DATA
    }

    #[test]
    fn one_frame_after_each_beacon() {
        let config = OneshotConfig {
            measurements: 10,
            ..OneshotConfig::paper(Identity::station(STA, AP))
        };
        let (mut room, ap, sta) = testbed(config);
        // the third and the fifth are lost, one on its way, one on the way of its ACK
        room.script(|a| match a.frame.get(32..36) {
            Some([0, 0, 0, 2]) if is_data(a.frame) => Fate::DataLost,
            Some([0, 0, 0, 4]) if is_data(a.frame) => Fate::AckLost,
            _ => Fate::Arrives,
        });
        room.run_until(1_000_000_000);
        let sent: Vec<_> = room.flights.iter().filter(|f| f.node == sta).collect();
        assert_eq!(sent.len(), 10);
        let beacons: Vec<_> = room.flights.iter().filter(|f| f.node == ap).collect();
        assert_eq!(beacons.len(), 20);
        for (shot, beacon) in sent.iter().zip(&beacons) {
            // indication path 20 us, T_wait 20 ms, request path 10 us
            assert_eq!(shot.start_ns - beacon.end_ns, 20_030_000);
            assert_eq!((shot.frame.len() + 4, shot.frame[1]), (86, 1), "no retry");
        }
        let p = room.protocol::<Oneshot<16>>(sta);
        assert_eq!(
            (p.requested(), p.confirms().acked, p.confirms().not_acked),
            (10, 8, 2)
        );
        let lost: Vec<_> = p
            .recent()
            .filter(|m| m.confirm.outcome == Outcome::NotAcked)
            .collect();
        let sink = room.protocol::<Beaconer<Sink>>(ap).inner();
        let arrived: Vec<_> = lost
            .iter()
            .map(|m| (m.sequence, sink.received(m.sequence)))
            .collect();
        assert_eq!(arrived, [(4, Some(true)), (2, Some(false))], "L_A and L_D");
        assert_eq!(p.recent().next().unwrap().sequence, 9);
        room.close();
    }

    /// Beacons stay on their grid when timers are late, and those that are missed altogether are left out.
    #[test]
    fn late_timers_do_not_move_the_beacons() {
        let (mut room, ap, _) = testbed(OneshotConfig::paper(Identity::station(STA, AP)));
        room.delays = Delays {
            timer_ns: 0..=70_000_000,
            ..Delays::STEADY
        };
        room.run_until(5_000_000_000);
        let skipped = room.protocol::<Beaconer<Sink>>(ap).skipped();
        let beacons = room.flights.iter().filter(|f| f.node == ap).count() as u64;
        assert!(skipped > 0);
        assert!(
            (99..=100).contains(&(beacons + skipped)),
            "{beacons} + {skipped} of 100"
        );
        room.close();
    }

    #[test]
    fn free_running_without_beacons() {
        let config = OneshotConfig {
            pace: Pace::Every {
                period: Duration::from_ms(1),
            },
            measurements: 50,
            payload_octets: 1,
            ..OneshotConfig::paper(Identity::station(STA, AP))
        };
        let mut room = Room::new(1);
        let sta = room.add(STA, move || Oneshot::<4>::new(config));
        room.script(|a| {
            if a.at_ns > 30_000_000 {
                Fate::ConfirmLost
            } else {
                Fate::Arrives
            }
        });
        room.run_until(200_000_000);
        let p = room.protocol::<Oneshot<4>>(sta);
        assert_eq!((p.requested(), p.recent().count()), (50, 4));
        // an answer that takes longer than the period costs every second turn
        assert_eq!(
            (p.confirms().acked, p.confirms().unknown, p.skipped()),
            (30, 20, 19)
        );
        assert_eq!(room.flights[0].frame.len(), 24 + 8 + SEQUENCE_OCTETS);
        room.close();
    }
}
