//! The registers of the stick: a store, in which some words do something to the air.

use crate::codec::Eeprom;
use crate::codec::register::{self as reg, BEACON_PERIOD_IBSS};
use frame::rate::{DsssRate, OfdmRate, Preamble};
use frame::{EdcaParams, MacAddr, Rate, RateSet};
use radio::{AdapterId, Attribute, AttributeName, Queue, Radio, Tsf};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Registers {
    words: BTreeMap<u32, u32>,
}

impl Registers {
    pub(super) fn new(eeprom: &Eeprom) -> Registers {
        let mut words = BTreeMap::new();
        let octets = eeprom.emit();
        for (i, word) in octets.chunks_exact(4).enumerate() {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            words.insert(reg::EEPROM + 4 * i as u32, word);
        }
        words.insert(reg::FRAME_TYPES, reg::FRAME_TYPES_DEFAULT);
        words.insert(reg::GROUP_HASH, u32::MAX);
        words.insert(reg::GROUP_HASH + 4, u32::MAX);
        let mut registers = Registers { words };
        registers.set_noise(super::stick::noise_dbm(2_412));
        registers
    }

    /// The receiver has measured a noise floor of so many dBm.
    pub(super) fn set_noise(&mut self, dbm: i16) {
        self.words.insert(reg::NOISE_FLOOR, ((dbm as u32) & 0x1ff) << 19);
    }

    pub(super) fn noise_dbm(&self) -> i16 {
        reg::noise_floor_dbm(self.get(reg::NOISE_FLOOR))
    }

    pub(super) fn get(&self, address: u32) -> u32 {
        self.words.get(&address).copied().unwrap_or_default()
    }

    /// What the host reads.
    pub(super) fn read(&self, address: u32, radio: &dyn Radio) -> u32 {
        match address {
            reg::TSF => tsf(radio) as u32,
            a if a == reg::TSF + 4 => (tsf(radio) >> 32) as u32,
            _ => self.get(address),
        }
    }

    /// What the host writes.
    pub(super) fn write(&mut self, address: u32, word: u32, radio: &mut dyn Radio) {
        if address != reg::NOISE_FLOOR {
            self.words.insert(address & !3, word);
        }
        const TSF_HIGH: u32 = reg::TSF + 4;
        const ADDRESS_HIGH: u32 = reg::MAC_ADDRESS + 4;
        const BSSID_HIGH: u32 = reg::BSSID + 4;
        let attribute = match address {
            TSF_HIGH => {
                let low = u64::from(self.get(reg::TSF));
                Attribute::Tsf(Tsf(u64::from(word) << 32 | low))
            }
            ADDRESS_HIGH => Attribute::Address(self.address(reg::MAC_ADDRESS)),
            BSSID_HIGH => Attribute::Bssid(self.address(reg::BSSID)),
            reg::SLOT_TIME => Attribute::SlotTime((word >> 10 & 0x3ff) as u16),
            reg::BASIC_RATES => Attribute::BasicRates(rates(word)),
            reg::SNIFFER => Attribute::Promiscuous(word == reg::SNIFFER_ON),
            // the last word of each set of parameters
            reg::AIFS_HIGH | reg::TXOP_HIGH => {
                for (q, queue) in Queue::ALL[..4].iter().enumerate() {
                    set(radio, Attribute::Edca(*queue, self.contention(q)));
                }
                return;
            }
            _ => return,
        };
        set(radio, attribute);
    }

    pub(super) fn address(&self, at: u32) -> MacAddr {
        MacAddr(reg::address([self.get(at), self.get(at + 4)]))
    }

    /// Beacon interval in TU, and how long after the last TBTT the event before the next comes; `None` without beacons.
    pub(super) fn beacon_timing(&self) -> Option<(u64, u64)> {
        let period = self.get(reg::BEACON_PERIOD) & 0xffff;
        let before = self.get(reg::PRE_TBTT) & 0xffff;
        (period >= 15 && before > 0).then_some((period.into(), before.min(period).into()))
    }

    pub(super) fn is_ibss(&self) -> bool {
        self.get(reg::BEACON_PERIOD) & BEACON_PERIOD_IBSS != 0
    }

    fn contention(&self, queue: usize) -> EdcaParams {
        let window = self.get(reg::CONTENTION + 4 * queue as u32);
        let (low, high) = (self.get(reg::AIFS_LOW), self.get(reg::AIFS_HIGH));
        let aifs = u64::from(high) << 32 | u64::from(low);
        let aifs_us = (aifs >> (12 * queue) & 0xfff) as u32;
        let at = if queue < 2 { reg::TXOP_LOW } else { reg::TXOP_HIGH };
        EdcaParams {
            aifsn: (aifs_us.saturating_sub(10) / 9).min(15) as u8,
            cw_min: window as u16,
            cw_max: (window >> 16) as u16,
            txop_us: (self.get(at) >> (16 * (queue % 2)) & 0xffff) * 32,
        }
    }
}

fn rates(word: u32) -> RateSet {
    let cck = DsssRate::ALL.iter().enumerate();
    let cck = cck.filter(|(i, _)| word >> i & 1 == 1);
    let ofdm = OfdmRate::ALL.iter().enumerate();
    let ofdm = ofdm.filter(|(i, _)| word >> (8 + i) & 1 == 1);
    let cck = cck.map(|(_, r)| Rate::Dsss(*r, Preamble::Long));
    cck.chain(ofdm.map(|(_, r)| Rate::Ofdm(*r)))
        .fold(RateSet::EMPTY, RateSet::with)
}

pub(super) fn set(radio: &mut dyn Radio, attribute: Attribute) {
    let token = radio.token();
    radio.set(token, AdapterId::FIRST, attribute);
}

/// TSF of the air's adapter in us; 0 where it has none.
pub(super) fn tsf(radio: &dyn Radio) -> u64 {
    match radio.get(AdapterId::FIRST, AttributeName::Tsf) {
        Some(Attribute::Tsf(tsf)) => tsf.0,
        _ => 0,
    }
}
