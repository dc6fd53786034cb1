//! What the stick is told to be: attributes as they are set, and the commands that set them.

use crate::codec::register::{self as reg, filter};
use crate::codec::{Code, Order, command};
use frame::rate::{DsssRate, OfdmRate};
use frame::{AccessCategory, Band, EdcaParams, MacAddr, Phy, Rate, RateSet, edca_default};
use radio::{Attribute, AttributeName, BeaconTiming, Duration, Instant, Queue, ReceiveFilter, SetError, Tsf};

/// Intervals that the stick is told to sleep: all that the command can say. It wakes when it is told to.
const LONG_SLEEP: u32 = 0xfff;
/// The shortest beacon interval that its timer takes, TU.
pub const SHORTEST_BEACON_INTERVAL_TU: u16 = 15;
/// Without beacons the TSF is read anew when somebody asks for it and the last reading is so old: until then it goes by the
/// host's clock, from which it is away by 5 us at most.
const TSF_AGE: Duration = Duration::from_ms(100);
/// By how much the stick's clock and the host's may run apart: two crystals of 25 ppm.
const TSF_DRIFT_PPM: u64 = 50;
/// How long before a TBTT it says so, and its TSF is read, TU. What Contiki80211 takes.
const BEFORE_TBTT_TU: u32 = 8;
/// What AIFS registers count from: SIFS, and slots of 9 us.
const AIFS_BASE_US: u32 = 10;
const AIFS_SLOT_US: u32 = 9;

/// Attributes of the adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub address: MacAddr,
    pub bssid: MacAddr,
    pub mhz: u16,
    pub slot_us: u16,
    pub power_dbm: i8,
    pub basic: RateSet,
    pub rts_threshold: u16,
    pub promiscuous: bool,
    pub receives: ReceiveFilter,
    pub awake: bool,
    /// Its network; interval 0: none.
    pub beacons: BeaconTiming,
    /// By hardware queue.
    pub edca: [EdcaParams; 4],
    /// What the TSF was, and when; `None` until it was read.
    pub tsf: Option<(Instant, Tsf)>,
    /// By how much that may have been wrong then, us.
    pub tsf_within_us: u64,
    pub noise_dbm: i16,
    pub ghz2_4: bool,
    pub ghz5: bool,
}

/// The band of a channel, if there is one there.
pub(super) const fn band(mhz: u16) -> Option<Band> {
    match mhz {
        2_400..2_500 => Some(Band::Ghz2_4),
        4_900..6_000 => Some(Band::Ghz5),
        _ => None,
    }
}

fn rates_word(rates: RateSet) -> u32 {
    let cck = DsssRate::ALL.iter().enumerate();
    let ofdm = OfdmRate::ALL.iter().enumerate();
    let cck = cck.map(|(i, r)| u32::from(rates.contains(Rate::Dsss(*r, frame::rate::Preamble::Long))) << i);
    let ofdm = ofdm.map(|(i, r)| u32::from(rates.contains(Rate::Ofdm(*r))) << (8 + i));
    cck.chain(ofdm).sum()
}

impl Settings {
    pub(super) const fn new(mhz: u16) -> Settings {
        let phy = match band(mhz) {
            Some(Band::Ghz5) => Phy::A,
            _ => Phy::G,
        };
        Settings {
            address: MacAddr::ZERO,
            bssid: MacAddr::ZERO,
            mhz,
            slot_us: phy.slot_us as u16,
            power_dbm: 15,
            basic: phy.basic,
            rts_threshold: 2_347,
            promiscuous: false,
            receives: ReceiveFilter::All,
            awake: true,
            beacons: BeaconTiming {
                interval_tu: 0,
                atim_window_tu: 0,
            },
            edca: [
                edca_default(AccessCategory::ALL[0], &phy),
                edca_default(AccessCategory::ALL[1], &phy),
                edca_default(AccessCategory::ALL[2], &phy),
                edca_default(AccessCategory::ALL[3], &phy),
            ],
            tsf: None,
            tsf_within_us: 0,
            noise_dbm: -95,
            ghz2_4: true,
            ghz5: true,
        }
    }

    pub(super) fn half_dbm(&self) -> u8 {
        (i16::from(self.power_dbm) * 2).clamp(0, 63) as u8
    }

    /// What the stick is to drop of what it hears.
    pub(super) fn filter(&self) -> u32 {
        let data = match self.receives {
            ReceiveFilter::Management => filter::DATA,
            _ => 0,
        };
        match self.promiscuous {
            true => filter::BAD | data,
            false => filter::DEFAULT | data,
        }
    }

    /// Types of frames that its hardware is to let pass, since its firmware knows management frames only as a whole, and the
    /// hash of groups: who listens to none has an empty one.
    fn hardware_filter(&self) -> [(u32, u32); 3] {
        let types = match self.receives {
            ReceiveFilter::Data | ReceiveFilter::Unicast => {
                reg::FRAME_TYPES_DEFAULT & !reg::FRAME_TYPES_BEACON_ATIM
            }
            ReceiveFilter::All | ReceiveFilter::Management => reg::FRAME_TYPES_DEFAULT,
        };
        let groups = match self.receives {
            ReceiveFilter::Unicast => 0,
            _ => u32::MAX,
        };
        [
            (reg::FRAME_TYPES, types),
            (reg::GROUP_HASH, groups),
            (reg::GROUP_HASH + 4, groups),
        ]
    }

    /// The `part`-th command of those that make the filters of these settings those of `with`.
    fn refilter(&self, with: &Settings, part: u8) -> Option<Order> {
        let mask = (self.filter() != with.filter()).then(|| Order::rx_filter(with.filter()));
        let hardware = self.hardware_filter() != with.hardware_filter();
        let hardware = hardware.then(|| Order::write(&with.hardware_filter()));
        [mask, hardware].into_iter().flatten().nth(part.into())
    }

    /// Its TSF now, as far as it is known.
    pub(super) fn tsf_at(&self, now: Instant) -> Option<Tsf> {
        let (at, tsf) = self.tsf?;
        Some(tsf.plus(now.since(at).as_us() as i64))
    }

    /// Whether it should be read anew; with beacons it is before each TBTT.
    pub(super) fn tsf_is_old(&self, now: Instant) -> bool {
        let old = |(at, _)| now.since(at) >= TSF_AGE;
        self.beacons.interval_tu == 0 && self.tsf.is_some_and(old)
    }

    pub(super) fn get(&self, now: Instant, name: AttributeName) -> Option<Attribute> {
        Some(match name {
            AttributeName::Address => Attribute::Address(self.address),
            AttributeName::Bssid => Attribute::Bssid(self.bssid),
            AttributeName::Channel => Attribute::Channel(self.mhz),
            AttributeName::SlotTime => Attribute::SlotTime(self.slot_us),
            AttributeName::Tsf => Attribute::Tsf(self.tsf_at(now)?),
            AttributeName::TxPower => Attribute::TxPower(self.power_dbm),
            AttributeName::BasicRates => Attribute::BasicRates(self.basic),
            AttributeName::RtsThreshold => Attribute::RtsThreshold(self.rts_threshold),
            AttributeName::Reception => Attribute::Reception(self.awake),
            AttributeName::Promiscuous => Attribute::Promiscuous(self.promiscuous),
            AttributeName::BeaconTiming => Attribute::BeaconTiming(self.beacons),
            AttributeName::ReceiveFilter => Attribute::ReceiveFilter(self.receives),
            AttributeName::Edca(queue) if queue != Queue::Beacon => {
                Attribute::Edca(queue, self.edca[queue.index()])
            }
            _ => return None,
        })
    }

    /// Takes a value over that the stick has taken at `now`.
    pub(super) fn take(&mut self, now: Instant, attribute: &Attribute) {
        match *attribute {
            Attribute::Address(v) => self.address = v,
            Attribute::Bssid(v) => self.bssid = v,
            Attribute::Channel(v) => self.mhz = v,
            Attribute::SlotTime(v) => self.slot_us = v,
            Attribute::Tsf(v) => self.tsf = Some((now, v)),
            Attribute::TxPower(v) => self.power_dbm = v,
            Attribute::BasicRates(v) => self.basic = v,
            Attribute::RtsThreshold(v) => self.rts_threshold = v,
            Attribute::Reception(v) => self.awake = v,
            Attribute::Promiscuous(v) => self.promiscuous = v,
            Attribute::BeaconTiming(v) => self.beacons = v,
            Attribute::ReceiveFilter(v) => self.receives = v,
            Attribute::Edca(queue, v) if queue != Queue::Beacon => self.edca[queue.index()] = v,
            _ => {}
        }
    }

    /// Why a value cannot be set, if so.
    pub(super) fn refusal(&self, attribute: &Attribute) -> Result<(), SetError> {
        let in_range = match *attribute {
            Attribute::Address(a) => !a.is_group() && a != MacAddr::ZERO,
            Attribute::Bssid(_) | Attribute::Tsf(_) | Attribute::RtsThreshold(_) => true,
            Attribute::Reception(_) | Attribute::Promiscuous(_) | Attribute::ReceiveFilter(_) => true,
            Attribute::Channel(mhz) => match band(mhz) {
                Some(Band::Ghz2_4) => self.ghz2_4,
                Some(Band::Ghz5) => self.ghz5,
                None => false,
            },
            Attribute::SlotTime(us) => (1..=0x3ff).contains(&us),
            Attribute::TxPower(dbm) => (0..=31).contains(&dbm),
            Attribute::BasicRates(rates) => !rates.is_empty(),
            Attribute::BeaconTiming(t) if t.interval_tu == 0 => t.atim_window_tu == 0,
            Attribute::BeaconTiming(t) => {
                t.interval_tu >= SHORTEST_BEACON_INTERVAL_TU && t.atim_window_tu < t.interval_tu
            }
            Attribute::Edca(Queue::Beacon, _) => return Err(SetError::NotSupported),
            Attribute::Edca(_, p) => {
                let window = |cw: u16| cw <= 32_767 && (cw + 1).is_power_of_two();
                window(p.cw_min) && window(p.cw_max) && p.cw_min <= p.cw_max && (1..=15).contains(&p.aifsn)
            }
            _ => return Err(SetError::NotSupported),
        };
        if in_range {
            Ok(())
        } else {
            Err(SetError::OutOfRange)
        }
    }

    /// The `part`-th command that sets `attribute`; `None` after the last.
    pub(super) fn orders(&self, attribute: &Attribute, part: u8) -> Option<Order> {
        let mut with = *self;
        with.take(Instant::ZERO, attribute);
        let two = |at, address: MacAddr| {
            let [low, high] = reg::address_words(address.0);
            Order::write(&[(at, low), (at + 4, high)])
        };
        Some(match (attribute, part) {
            (Attribute::Address(a), 0) => two(reg::MAC_ADDRESS, *a),
            (Attribute::Bssid(a), 0) => two(reg::BSSID, *a),
            (Attribute::Channel(_), part) => with.channel(part)?,
            (Attribute::SlotTime(us), 0) => Order::write(&[(reg::SLOT_TIME, u32::from(*us) << 10)]),
            (Attribute::Tsf(t), 0) => {
                Order::write(&[(reg::TSF, t.0 as u32), (reg::TSF + 4, (t.0 >> 32) as u32)])
            }
            (Attribute::BasicRates(_), 0) => Order::write(&[(reg::BASIC_RATES, rates_word(with.basic))]),
            (Attribute::Promiscuous(on), 0) => {
                let sniffer = if *on { reg::SNIFFER_ON } else { reg::SNIFFER_OFF };
                Order::write(&[(reg::SNIFFER, sniffer)])
            }
            (Attribute::Promiscuous(_), 1) => Order::rx_filter(with.filter()),
            (Attribute::ReceiveFilter(_), part) => self.refilter(&with, part)?,
            (Attribute::Reception(true), 0) => Order::power_save(1),
            (Attribute::Reception(false), 0) => Order::power_save(command::SLEEP | LONG_SLEEP),
            (Attribute::Edca(..), 0..=1) => with.contention(part),
            (Attribute::BeaconTiming(t), 0) => Order::write(&timing(t)),
            _ => return None,
        })
    }

    fn channel(&self, part: u8) -> Option<Order> {
        Some(match part {
            0 => Order::write(&[(reg::PHY_RESET, reg::PHY_RESET_ON), (reg::PHY_RESET, 0)]),
            1 => Order::bare(Code::FrequencyStart),
            2 => Order::rf_init(self.mhz),
            // another band has another noise floor, and signals are told above it
            3 => Order::read(&[reg::NOISE_FLOOR]),
            _ => return None,
        })
    }

    fn contention(&self, part: u8) -> Order {
        let edca = &self.edca;
        if part > 0 {
            let txop = |q: usize| (edca[q].txop_us / 32).min(0xffff);
            return Order::write(&[
                (reg::TXOP_LOW, txop(1) << 16 | txop(0)),
                (reg::TXOP_HIGH, txop(3) << 16 | txop(2)),
            ]);
        }
        let window = |q: usize| u32::from(edca[q].cw_max) << 16 | u32::from(edca[q].cw_min);
        let aifs = |q: usize| u32::from(edca[q].aifsn) * AIFS_SLOT_US + AIFS_BASE_US;
        Order::write(&[
            (reg::CONTENTION, window(0)),
            (reg::CONTENTION + 4, window(1)),
            (reg::CONTENTION + 8, window(2)),
            (reg::CONTENTION + 12, window(3)),
            (reg::AIFS_LOW, aifs(2) << 24 | aifs(1) << 12 | aifs(0)),
            (reg::AIFS_HIGH, aifs(3) << 4 | aifs(2) >> 8),
        ])
    }

    /// The `step`-th command of the bring-up behind the EEPROM; `None` after the last. Until the last but two the
    /// filter lets nothing pass.
    pub(super) fn bring_up(&self, step: u8) -> Option<Order> {
        let set = |attribute, part| self.orders(&attribute, part);
        let [types, low, high] = self.hardware_filter();
        match step {
            0 => Some(Order::rx_filter(0xff)),
            1 => Some(Order::write(&[
                (reg::ENCRYPTION, 0x70),
                (reg::RX_CONTROL, 3),
                (reg::CAM_MODE, reg::CAM_MODE_IBSS),
                (reg::MANDATORY_RATES, rates_word(self.basic)),
                types,
                low,
                high,
            ])),
            2 => set(Attribute::BasicRates(self.basic), 0),
            3 => set(Attribute::SlotTime(self.slot_us), 0),
            4 | 5 => Some(self.contention(step - 4)),
            6 => Some(Order::write(&[(reg::DMA_TRIGGER, reg::DMA_RECEIVE)])),
            7 => set(Attribute::Address(self.address), 0),
            8 => set(Attribute::Bssid(self.bssid), 0),
            9..=12 => self.channel(step - 9),
            13 => set(Attribute::BeaconTiming(self.beacons), 0),
            14 => set(Attribute::Promiscuous(self.promiscuous), 0),
            15 => set(Attribute::Promiscuous(self.promiscuous), 1),
            16 => Some(Order::bare(Code::ReadTsf)),
            17 if !self.awake => set(Attribute::Reception(false), 0),
            _ => None,
        }
    }

    /// The TSF was asked for at `asked`, and was `tsf` somewhere between then and `now`. Where the host or the USB took long for
    /// it, an earlier reading that agrees with it knows better.
    pub(super) fn tsf_read(&mut self, asked: Instant, now: Instant, tsf: Tsf) {
        let half = Duration::from_ns(now.since(asked).as_ns() / 2);
        let (at, within_us) = (asked + half, half.as_us());
        let is_better = |(before, _): (Instant, Tsf)| {
            let drift_us = at.since(before).as_us() * TSF_DRIFT_PPM / 1_000_000;
            let off_us = self.tsf_at(at).map(|known| known.minus(tsf).unsigned_abs());
            off_us <= Some(within_us) && self.tsf_within_us + drift_us < within_us
        };
        if !self.tsf.is_some_and(is_better) {
            (self.tsf, self.tsf_within_us) = (Some((at, tsf)), within_us);
        }
    }

    /// It was set to `tsf`, somewhere between `asked` and `now`.
    pub(super) fn tsf_written(&mut self, asked: Instant, now: Instant, tsf: Tsf) {
        self.tsf = None;
        self.tsf_read(asked, now, tsf);
    }
}

fn timing(beacons: &BeaconTiming) -> [(u32, u32); 3] {
    let (period, before) = match u32::from(beacons.interval_tu) {
        0 => (0, 0),
        period => (
            period | reg::BEACON_PERIOD_IBSS,
            period.saturating_sub(BEFORE_TBTT_TU),
        ),
    };
    [
        (reg::PRE_TBTT, before << 16 | before),
        (reg::ATIM_WINDOW, beacons.atim_window_tu.into()),
        (reg::BEACON_PERIOD, period),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn every_step_of_the_bring_up_is_a_command() {
        let settings = Settings::new(2_412);
        let steps: Vec<_> = (0..=255).map_while(|s| settings.bring_up(s)).collect();
        assert_eq!(steps.len(), 17);
        let asleep = Settings {
            awake: false,
            ..settings
        };
        assert_eq!((0..=255).map_while(|s| asleep.bring_up(s)).count(), 18);
    }

    #[test]
    fn words_of_settings() {
        let s = Settings::new(2_412);
        let slot = s.orders(&Attribute::SlotTime(9), 0).unwrap();
        assert_eq!(slot.payload()[4..], 0x2400_u32.to_le_bytes());
        assert_eq!(
            rates_word(RateSet::HR_DSSS.with(Rate::OFDM_6).with(Rate::OFDM_24)),
            0x110f
        );
        assert_eq!(
            timing(&beacons(100, 10)).map(|t| t.1),
            [0x005c_005c, 10, 0x0200_0064]
        );
        assert_eq!(timing(&BeaconTiming::default()).map(|t| t.1), [0, 0, 0]);
        assert_eq!(s.orders(&Attribute::TxPower(3), 0), None);
    }

    fn beacons(interval_tu: u16, atim_window_tu: u16) -> BeaconTiming {
        BeaconTiming {
            interval_tu,
            atim_window_tu,
        }
    }

    fn hardware(types: u32, groups: u32) -> Order {
        let [low, high] = [reg::GROUP_HASH, reg::GROUP_HASH + 4];
        Order::write(&[(reg::FRAME_TYPES, types), (low, groups), (high, groups)])
    }

    /// Of the two filters only what differs is written, and a stick that is brought up again has both.
    #[test]
    fn the_filters_follow_what_is_wanted() {
        use ReceiveFilter::{All, Data, Management, Unicast};
        let mask = |bits: u32| Order::rx_filter(filter::DEFAULT | bits);
        let (all, data, unicast) = (
            hardware(0x0500_ffff, u32::MAX),
            hardware(0x0500_fcff, u32::MAX),
            hardware(0x0500_fcff, 0),
        );
        for (from, to, orders) in [
            (All, All, vec![]),
            (All, Management, vec![mask(0x80)]),
            (Management, All, vec![mask(0)]),
            (All, Data, vec![data]),
            (Data, All, vec![all]),
            (Data, Unicast, vec![unicast]),
            (Management, Unicast, vec![mask(0), unicast]),
            (Unicast, Management, vec![mask(0x80), all]),
        ] {
            let s = Settings {
                receives: from,
                ..Settings::new(2_412)
            };
            let found: Vec<_> = (0..9)
                .map_while(|part| s.orders(&Attribute::ReceiveFilter(to), part))
                .collect();
            assert_eq!(found, orders, "{from:?} to {to:?}");
            let up: Vec<_> = (0..=255).map_while(|step| s.bring_up(step)).collect();
            let mut words = up.iter().flat_map(|order| order.payload().chunks_exact(8));
            let wanted = s
                .hardware_filter()
                .map(|(at, word)| u64::from(word) << 32 | u64::from(at));
            assert!(wanted.iter().all(|w| words.clone().any(|x| x == w.to_le_bytes())));
            assert!(words.next().is_some() && up.contains(&Order::rx_filter(s.filter())));
        }
    }

    #[test]
    fn values_out_of_range() {
        let s = Settings {
            ghz5: false,
            ..Settings::new(2_412)
        };
        let refused = |a: Attribute| s.refusal(&a).unwrap_err();
        assert_eq!(refused(Attribute::Channel(5_180)), SetError::OutOfRange);
        assert_eq!(refused(Attribute::Channel(0)), SetError::OutOfRange);
        assert_eq!(
            refused(Attribute::Address(MacAddr::BROADCAST)),
            SetError::OutOfRange
        );
        assert_eq!(refused(Attribute::SlotTime(0)), SetError::OutOfRange);
        for (interval, window) in [(14, 0), (15, 15), (0, 1)] {
            let timing = Attribute::BeaconTiming(beacons(interval, window));
            assert_eq!(refused(timing), SetError::OutOfRange, "{timing:?}");
        }
        assert_eq!(s.refusal(&Attribute::BeaconTiming(beacons(15, 14))), Ok(()));
        assert_eq!(refused(Attribute::CarrierSense(true)), SetError::NotSupported);
        assert_eq!(s.refusal(&Attribute::Channel(2_437)), Ok(()));
    }

    #[test]
    fn the_tsf_goes_on() {
        let mut s = Settings::new(2_412);
        assert_eq!(s.tsf_at(Instant::from_us(9)), None);
        s.tsf_read(Instant::from_us(100), Instant::from_us(300), Tsf(5_000));
        assert_eq!(s.tsf_at(Instant::from_us(200)), Some(Tsf(5_000)));
        assert_eq!(s.tsf_at(Instant::from_us(1_200)), Some(Tsf(6_000)));
        // a coarse reading that agrees with it, one that does not, a fine one
        let at = |s: &Settings| s.tsf_at(Instant::from_us(10_200)).unwrap().0;
        s.tsf_read(Instant::from_us(9_000), Instant::from_us(11_000), Tsf(14_600));
        assert_eq!(at(&s), 15_000);
        s.tsf_read(Instant::from_us(9_000), Instant::from_us(11_000), Tsf(18_000));
        assert_eq!(at(&s), 18_200);
        s.tsf_read(Instant::from_us(10_000), Instant::from_us(10_400), Tsf(18_100));
        assert_eq!(at(&s), 18_100);
        s.tsf_written(Instant::from_us(10_000), Instant::from_us(10_800), Tsf(18_100));
        assert_eq!(at(&s), 18_100);
        s.tsf = Some((Instant::from_us(200), Tsf(5_000)));
        let later = Instant::from_us(100_200);
        assert!(s.tsf_is_old(later) && !s.tsf_is_old(later - Duration::from_us(1)));
        s.beacons = beacons(100, 0);
        assert!(!s.tsf_is_old(later), "it comes before the next TBTT");
    }
}
