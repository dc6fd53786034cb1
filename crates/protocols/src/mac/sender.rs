//! The innermost protocol of most stacks: every MSDU becomes one data frame and one request, at once; every data
//! frame that arrives for this node is delivered.
//!
//! Alone on an adapter it leaves the rest to the hardware: with retries that is the usual CSMA/CA of DCF and
//! EDCA. Under an overlay (`Edf<Sender>`, `Tdma<Sender>`) the overlay takes its requests and decides when, and
//! how often, they go; [`TxHow::series`] then limits the attempts of both together.
//!
//! An access point does not forward from one station to another here.

use super::data::{Duplicates, ETHERTYPE_PAYLOAD, Framer, Identity, MAX_DATA_OCTETS, Received};
use super::tally::Tally;
use frame::Rate;
use frame::mac::Header;
use radio::{AckPolicy, Event, Instant, Msdu, Protocol, Queue, Radio, TxHow};

/// Tries that a frame gets if nothing else is said: dot11ShortRetryLimit (IEEE 802.11-2016, annex C).
pub const DEFAULT_TRIES: u8 = 7;

/// Which queue of the adapter a frame goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueRule {
    /// That of the MSDU's access category.
    ByCategory,
    /// Always this one.
    Fixed(Queue),
}

/// How a [`Sender`] sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Who it is.
    pub identity: Identity,
    /// Series, ack policy, RTS and adapter of every request. Queue and `expires` are filled in per MSDU:
    /// `expires` becomes the MSDU's deadline.
    pub how: TxHow,
    /// Rate of frames to groups, which are sent once. Should be a basic rate.
    pub group_rate: Rate,
    /// Queue of the requests.
    pub queue: QueueRule,
    /// QoS data (26 octets of header, with the MSDU's category on the air) instead of plain data (24).
    pub qos: bool,
    /// EtherType of what it sends, and of what it delivers.
    pub ethertype: u16,
}

impl SenderConfig {
    /// QoS data at `rate`, [`DEFAULT_TRIES`] tries, queue by access category.
    pub const fn new(identity: Identity, rate: Rate) -> SenderConfig {
        SenderConfig {
            identity,
            how: TxHow::multi_shot(rate, DEFAULT_TRIES),
            group_rate: rate,
            queue: QueueRule::ByCategory,
            qos: true,
            ethertype: ETHERTYPE_PAYLOAD,
        }
    }
}

/// What a [`Sender`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// MSDUs from above.
    pub submitted: u64,
    /// Of these, too long for a frame; not requested.
    pub too_long: u64,
    /// Confirms of the others, by outcome.
    pub confirms: Tally,
    /// MSDUs delivered.
    pub delivered: u64,
    /// Frames that had been delivered before.
    pub duplicates: u64,
    /// Frames for others, of other kinds, or that could not be read.
    pub foreign: u64,
}

/// See the [module](self). Remembers the last frame of up to `D` transmitters (per traffic identifier) to tell
/// duplicates.
#[derive(Clone, Debug)]
pub struct Sender<const D: usize = 32> {
    config: SenderConfig,
    framer: Framer,
    duplicates: Duplicates<D>,
    counters: SenderCounters,
}

impl<const D: usize> Sender<D> {
    /// A sender that has sent and heard nothing yet.
    pub fn new(config: SenderConfig) -> Self {
        Sender {
            config,
            framer: Framer::new(config.identity, config.qos, config.ethertype),
            duplicates: Duplicates::default(),
            counters: SenderCounters::default(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    fn send(&mut self, msdu: &Msdu<'_>, radio: &mut dyn Radio) {
        self.counters.submitted += 1;
        let mut how = self.config.how;
        how.expires = msdu.deadline;
        how.queue = match self.config.queue {
            QueueRule::ByCategory => msdu.category.into(),
            QueueRule::Fixed(queue) => queue,
        };
        let no_ack = how.ack == AckPolicy::NoAck;
        let mut out = [0; MAX_DATA_OCTETS];
        match self
            .framer
            .frame(msdu.peer, msdu.category, no_ack, &[], msdu.payload, &mut out)
        {
            Ok(mpdu) => {
                // a station sends what is for all to its access point, as everything else
                if Header::parse(mpdu).is_ok_and(|h| h.receiver().is_group()) {
                    how.series = radio::SeriesList::one(self.config.group_rate, 1);
                }
                let token = radio.token();
                radio.request(token, mpdu, &how);
            }
            Err(_) => self.counters.too_long += 1,
        }
    }

    fn receive(&mut self, mpdu: &[u8], radio: &mut dyn Radio) {
        let Some(r) = Received::parse(mpdu)
            .filter(|r| r.is_for(self.config.identity.me) && r.ethertype == self.config.ethertype)
        else {
            self.counters.foreign += 1;
            return;
        };
        if self.duplicates.is_duplicate(&r) {
            self.counters.duplicates += 1;
            return;
        }
        self.counters.delivered += 1;
        radio.deliver(Msdu {
            peer: r.source,
            category: r.category(),
            deadline: None,
            payload: r.payload,
        });
    }
}

impl<const D: usize> Protocol for Sender<D> {
    fn handle(&mut self, _now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(msdu) => self.send(&msdu, radio),
            Event::Indication(i) => self.receive(i.frame, radio),
            Event::Confirm(c) => self.counters.confirms.note(&c),
            Event::Start | Event::Timer | Event::Beacon(_) | Event::Set(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::data::MAX_PAYLOAD_OCTETS;
    use crate::testing::{Clock, Dice, Fate, Room};
    use frame::MacAddr;
    use frame::mac::Header;
    use proptest::prelude::*;
    use radio::Outcome;

    const AP: MacAddr = MacAddr::local(1);
    const STA: MacAddr = MacAddr::local(2);

    fn sender(identity: Identity) -> impl Fn() -> Sender {
        move || Sender::new(SenderConfig::new(identity, Rate::OFDM_54))
    }

    fn two(seed: u64) -> (Room, usize, usize) {
        let mut room = Room::new(seed);
        let ap = room.add(AP, sender(Identity::access_point(AP)));
        let sta = room.add(STA, sender(Identity::station(STA, AP)));
        (room, ap, sta)
    }

    #[test]
    fn there_and_back() {
        let (mut room, ap, sta) = two(1);
        room.submit(1_000, sta, AP, b"up", None);
        room.submit(2_000_000, ap, STA, b"down", None);
        room.submit(3_000_000, ap, MacAddr::BROADCAST, b"all", None);
        room.run_until(10_000_000);
        let got: std::vec::Vec<_> = room
            .delivered
            .iter()
            .map(|d| (d.node, d.peer, &d.payload[..]))
            .collect();
        assert_eq!(
            got,
            [(ap, STA, &b"up"[..]), (sta, AP, b"down"), (sta, AP, b"all")]
        );
        let c = room.protocol::<Sender>(ap).counters();
        assert_eq!(
            (c.submitted, c.confirms.acked, c.confirms.not_acked, c.delivered),
            (2, 1, 1, 1)
        );
        room.close();
    }

    /// A retry whose first attempt was heard, but not its ACK, is delivered once.
    #[test]
    fn a_lost_ack_makes_no_duplicate() {
        let (mut room, ap, sta) = two(1);
        room.script(|a| {
            if a.before < 2 {
                Fate::AckLost
            } else {
                Fate::Arrives
            }
        });
        room.submit(0, sta, AP, b"once", None);
        room.run_until(10_000_000);
        assert_eq!((room.flights.len(), room.delivered.len()), (3, 1));
        assert_eq!(room.protocol::<Sender>(ap).counters().duplicates, 2);
        let c = room.protocol::<Sender>(sta).counters().confirms;
        assert_eq!((c.acked, c.attempts), (1, 3));
        room.close();
    }

    #[test]
    fn deadline_queue_and_series_become_part_of_the_request() {
        let mut room = Room::new(1);
        let config = SenderConfig {
            queue: QueueRule::Fixed(Queue::Voice),
            ..SenderConfig::new(Identity::station(STA, AP), Rate::OFDM_24)
        };
        let sta = room.add(STA, move || Sender::<32>::new(config));
        room.script(|a| {
            assert_eq!(
                (a.how.queue, a.how.expires),
                (Queue::Voice, Some(Instant::from_us(300)))
            );
            assert_eq!(a.how.series.attempts(), u16::from(DEFAULT_TRIES));
            Fate::DataLost
        });
        room.submit(0, sta, AP, &[7; 100], Some(300_000));
        room.run_until(10_000_000);
        assert_eq!(room.confirms.last().unwrap().2.outcome, Outcome::Expired);
        assert!(room.flights.iter().all(|f| f.start_ns <= 300_000));
        room.close();
    }

    #[test]
    fn what_is_too_long_or_foreign_is_counted() {
        let (mut room, ap, sta) = two(1);
        room.submit(0, sta, AP, &[0; MAX_PAYLOAD_OCTETS + 1], None);
        room.submit(1_000_000, sta, AP, &[0; MAX_PAYLOAD_OCTETS], None);
        room.submit(2_000_000, sta, MacAddr::local(77), b"no forwarding", None);
        room.hear(3_000_000, ap, &[0x80; 5], Rate::OFDM_6);
        room.run_until(10_000_000);
        assert_eq!(room.protocol::<Sender>(sta).counters().too_long, 1);
        let c = room.protocol::<Sender>(ap).counters();
        assert_eq!((c.delivered, c.foreign), (1, 2));
        room.close();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whatever the air does: one confirm per MSDU, and each payload delivered at most once.
        #[test]
        fn any_air(seed: u64, gaps in proptest::collection::vec(0u64..2_000_000, 1..40)) {
            let mut room = Room::new(seed);
            let skewed = Clock { offset_ns: seed % 1_000_000, ppb: (seed % 40_000) as i64 - 20_000 };
            let ap = room.add(AP, sender(Identity::access_point(AP)));
            let sta = room.add_with_clocks(STA, skewed, skewed, sender(Identity::station(STA, AP)));
            room.delays.confirm_ns = 5_000..=400_000;
            room.delays.indicate_ns = 0..=400_000;
            let mut dice = Dice::new(seed);
            room.script(move |_| match dice.within(0..=9) {
                0..=3 => Fate::Arrives,
                4 => Fate::DataLost,
                5..=6 => Fate::AckLost,
                7 => Fate::ConfirmLost,
                8 => Fate::Reset,
                _ => Fate::Refused(radio::Refusal::QueueFull),
            });
            let mut t = 0;
            for (i, gap) in gaps.iter().enumerate() {
                t += gap;
                let deadline = (i % 3 == 0).then_some(t + gap);
                room.submit(t, if i % 4 == 0 { ap } else { sta }, if i % 4 == 0 { STA } else { AP }, &[i as u8], deadline);
            }
            room.run_until(t + 100_000_000);
            let mut payloads: std::vec::Vec<_> = room.delivered.iter().map(|d| d.payload[0]).collect();
            let before = payloads.len();
            payloads.sort_unstable();
            payloads.dedup();
            prop_assert_eq!(payloads.len(), before, "delivered twice");
            let confirmed: u64 = [ap, sta].map(|n| room.protocol::<Sender>(n).counters().confirms.total()).iter().sum();
            prop_assert_eq!(confirmed, gaps.len() as u64);
            room.close();
        }
    }

    #[test]
    fn the_retry_bit_is_not_ours() {
        let (mut room, _, sta) = two(3);
        room.submit(0, sta, AP, b"x", None);
        room.run_until(1_000_000);
        assert!(!Header::parse(&room.flights[0].frame).unwrap().is_retry());
        room.close();
    }
}
