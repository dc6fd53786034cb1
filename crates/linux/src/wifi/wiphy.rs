//! What a radio can do, as nl80211 describes it: channels and whether one may send there, rates, monitors.

use frame::rate::{GuardInterval, Preamble, Width};
use frame::{Band, Rate};

pub use super::channel::Channel;
#[cfg(test)]
use super::channel::attr as channel;
use super::channel::channel_of;
use super::nl80211::{MONITOR, attr};
use crate::netlink::{attributes, find, text_of, u32_of};

/// Attributes of a band (NL80211_BAND_ATTR).
mod band {
    pub const CHANNELS: u16 = 1;
    pub const RATES: u16 = 2;
    pub const HT_MCS: u16 = 3;
    pub const HT_CAPABILITY: u16 = 4;
}

/// NL80211_BITRATE_ATTR_RATE, in units of 100 kb/s.
const BITRATE: u16 = 1;
/// NL80211_FEATURE_ACTIVE_MONITOR.
const ACTIVE_MONITOR: u32 = 1 << 17;
/// Bits of the HT capability field (IEEE 802.11-2016, 9.4.2.56.2): 40 MHz, and the short guard interval at 20 and 40 MHz.
const HT_40: u16 = 1 << 1;
const HT_SHORT_GI_20: u16 = 1 << 5;
const HT_SHORT_GI_40: u16 = 1 << 6;

/// One band of a radio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioBand {
    /// Which.
    pub band: Band,
    /// Its channels.
    pub channels: Vec<Channel>,
    /// Its legacy rates, slowest first.
    pub rates: Vec<Rate>,
    /// HT capability and the set of MCS that can be received, if it has HT.
    pub ht: Option<(u16, [u8; 16])>,
}

/// The rates of a band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rates {
    /// A bit for each legacy rate, by its number of 500 kb/s.
    legacy: u128,
    ht: Option<(u16, [u8; 16])>,
}

impl Rates {
    /// See [`RadioBand::sends`].
    pub fn sends(&self, rate: Rate, channel: Width) -> bool {
        match rate {
            // The preamble is not among what the kernel reads.
            Rate::Dsss(_, Preamble::Short) => false,
            Rate::Dsss(..) | Rate::Ofdm(_) => rate
                .to_500kbps()
                .is_some_and(|units| self.legacy >> (units & 127) & 1 == 1),
            Rate::Ht(mcs, width, gi) => self.ht.is_some_and(|(capability, set)| {
                let index = usize::from(mcs.index());
                let (fits, short) = match width {
                    Width::Mhz20 => (true, HT_SHORT_GI_20),
                    Width::Mhz40 => (channel == Width::Mhz40 && capability & HT_40 != 0, HT_SHORT_GI_40),
                };
                let can_gi = gi == GuardInterval::Long || capability & short != 0;
                fits && set[index / 8] & (1 << (index % 8)) != 0 && can_gi
            }),
        }
    }
}

/// A radio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiphy {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its bands at 2.4 and 5 GHz; others are left out.
    pub bands: Vec<RadioBand>,
    /// Whether it can have monitor interfaces.
    pub has_monitor: bool,
    /// Whether these can be active ones.
    pub has_active_monitor: bool,
}

impl Wiphy {
    /// The band and the channel with this centre frequency.
    pub fn channel(&self, mhz: u16) -> Option<(&RadioBand, &Channel)> {
        self.bands
            .iter()
            .find_map(|b| Some((b, b.channels.iter().find(|c| c.mhz == mhz)?)))
    }

    /// From the parts of a split dump, which may tell of one radio in many messages.
    pub(super) fn collect<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<Wiphy> {
        let mut all: Vec<Wiphy> = Vec::new();
        for part in parts {
            let Some(index) = find(part, attr::WIPHY).and_then(u32_of) else {
                continue;
            };
            let place = all.iter().position(|w| w.index == index).unwrap_or_else(|| {
                all.push(Wiphy {
                    index,
                    name: format!("phy{index}"),
                    bands: Vec::new(),
                    has_monitor: false,
                    has_active_monitor: false,
                });
                all.len() - 1
            });
            all[place].take(part);
        }
        all.sort_unstable_by_key(|w| w.index);
        all
    }

    fn take(&mut self, part: &[u8]) {
        for (kind, value) in attributes(part) {
            match kind {
                attr::WIPHY_NAME => {
                    if let Some(name) = text_of(value) {
                        name.clone_into(&mut self.name);
                    }
                }
                attr::SUPPORTED_IFTYPES | attr::SOFTWARE_IFTYPES => {
                    self.has_monitor |= attributes(value).any(|(kind, _)| u32::from(kind) == MONITOR);
                }
                attr::FEATURE_FLAGS => {
                    self.has_active_monitor |= u32_of(value).is_some_and(|f| f & ACTIVE_MONITOR != 0);
                }
                attr::WIPHY_BANDS => {
                    attributes(value).for_each(|(number, band)| self.take_band(number, band))
                }
                _ => {}
            }
        }
    }

    fn take_band(&mut self, number: u16, octets: &[u8]) {
        let band = match number {
            0 => Band::Ghz2_4,
            1 => Band::Ghz5,
            _ => return,
        };
        let place = self.bands.iter().position(|b| b.band == band).unwrap_or_else(|| {
            self.bands.push(RadioBand {
                band,
                channels: Vec::new(),
                rates: Vec::new(),
                ht: None,
            });
            self.bands.len() - 1
        });
        self.bands[place].take(octets);
    }
}

impl RadioBand {
    /// Whether the radio has channels of 40 MHz.
    pub fn has_40(&self) -> bool {
        self.ht.is_some_and(|(capability, _)| capability & HT_40 != 0)
    }

    /// Whether a frame at `rate` goes out at that rate from a channel of this width. Without it, Linux takes a rate of
    /// its own choice.
    pub fn sends(&self, rate: Rate, channel: Width) -> bool {
        self.rates().sends(rate, channel)
    }

    /// Its rates, without the heap.
    pub(super) fn rates(&self) -> Rates {
        let bits = self.rates.iter().filter_map(|r| r.to_500kbps());
        Rates {
            legacy: bits.fold(0, |all, units| {
                all | 1_u128.checked_shl(units.into()).unwrap_or(0)
            }),
            ht: self.ht,
        }
    }

    fn take(&mut self, octets: &[u8]) {
        for (kind, value) in attributes(octets) {
            match kind {
                band::CHANNELS => {
                    let channels = attributes(value).filter_map(|(_, c)| channel_of(c));
                    self.channels.extend(channels);
                }
                band::RATES => {
                    let rates = attributes(value).filter_map(|(_, r)| find(r, BITRATE).and_then(u32_of));
                    let rates = rates.filter_map(|r| Rate::from_500kbps(u8::try_from(r / 5).ok()?));
                    self.rates.extend(rates);
                }
                band::HT_MCS => {
                    if let Some(set) = value.first_chunk() {
                        self.ht = Some((self.ht.map_or(0, |h| h.0), *set));
                    }
                }
                band::HT_CAPABILITY => {
                    if let Some(c) = value.first_chunk() {
                        self.ht = Some((u16::from_ne_bytes(*c), self.ht.map_or([0; 16], |h| h.1)));
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::netlink::{attribute, flag, number, text};

    fn channels(m: &mut Vec<u8>, list: &[(u32, &[u16])]) {
        attribute(m, band::CHANNELS, |m| {
            for (i, (mhz, flags)) in list.iter().enumerate() {
                attribute(m, i as u16, |m| {
                    number(m, channel::MHZ, *mhz);
                    flags.iter().for_each(|f| flag(m, *f));
                    number(m, channel::MAX_POWER, 2_000);
                });
            }
        });
    }

    /// A radio with both bands, told in three messages, as Linux does.
    pub(in super::super) fn example() -> Wiphy {
        let in_band = |number: u16, body: &dyn Fn(&mut Vec<u8>)| {
            let mut m = Vec::new();
            crate::netlink::number(&mut m, attr::WIPHY, 2);
            attribute(&mut m, attr::WIPHY_BANDS, |m| attribute(m, number, |m| body(m)));
            m
        };
        let rates = |m: &mut Vec<u8>, list: &[u32]| {
            attribute(m, band::RATES, |m| {
                for (i, r) in list.iter().enumerate() {
                    attribute(m, i as u16, |m| number(m, BITRATE, *r));
                }
            });
        };
        let mut first = Vec::new();
        number(&mut first, attr::WIPHY, 2);
        text(&mut first, attr::WIPHY_NAME, "radio");
        number(&mut first, attr::FEATURE_FLAGS, ACTIVE_MONITOR | 1);
        attribute(&mut first, attr::SUPPORTED_IFTYPES, |m| {
            for kind in [1, 2, 6] {
                flag(m, kind);
            }
        });
        let all = [
            first,
            in_band(0, &|m| {
                channels(m, &[(2412, &[]), (2467, &[channel::NO_IR])]);
                rates(m, &[10, 20, 55, 110, 60, 120, 240, 540]);
            }),
            in_band(0, &|m| channels(m, &[(2484, &[channel::DISABLED])])),
            in_band(1, &|m| {
                let below = &[channel::NO_HT40_MINUS][..];
                let neither = &[channel::NO_HT40_MINUS, channel::NO_HT40_PLUS][..];
                channels(
                    m,
                    &[
                        (5180, below),
                        (5200, &[]),
                        (5260, &[channel::RADAR]),
                        (5825, neither),
                    ],
                );
                rates(m, &[60, 120, 240, 540]);
                let capability = HT_40 | HT_SHORT_GI_20;
                attribute(m, band::HT_CAPABILITY, |m| m.extend(capability.to_ne_bytes()));
                attribute(m, band::HT_MCS, |m| {
                    m.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
                });
            }),
            in_band(3, &|m| channels(m, &[(5955, &[])])),
        ];
        let mut found = Wiphy::collect(all.iter().map(Vec::as_slice));
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn a_radio_told_in_parts() {
        let radio = example();
        assert_eq!((radio.index, radio.name.as_str()), (2, "radio"));
        assert!(radio.has_monitor && radio.has_active_monitor);
        let may_send = |mhz| radio.channel(mhz).map(|(_, c)| c.may_send());
        assert_eq!(may_send(2412), Some(true));
        assert_eq!(may_send(2467), Some(false), "only to be listened to");
        assert_eq!(may_send(2484), Some(false), "disabled");
        assert_eq!(may_send(5260), Some(false), "radar");
        assert_eq!(may_send(5955), None, "a band that is not known here");
        assert_eq!(radio.channel(5180).unwrap().1.max_dbm, Some(20));
    }

    #[test]
    fn rates_are_those_of_the_band() {
        let radio = example();
        let sends = |mhz, rate| radio.channel(mhz).unwrap().0.sends(rate, Width::Mhz20);
        assert!(sends(2412, Rate::DSSS_1) && sends(2412, Rate::OFDM_6));
        assert!(!sends(5180, Rate::DSSS_1) && sends(5180, Rate::OFDM_54));
        assert!(
            !sends(2412, Rate::Ofdm(frame::rate::OfdmRate::R9)),
            "not in the list"
        );
        assert!(!sends(
            2412,
            Rate::Dsss(frame::rate::DsssRate::R11, Preamble::Short)
        ));
        let ht = |index, width, gi| Rate::ht(index, width, gi).unwrap();
        assert!(sends(5180, ht(7, Width::Mhz20, GuardInterval::Short)));
        assert!(
            !sends(5180, ht(8, Width::Mhz20, GuardInterval::Long)),
            "one stream"
        );
        assert!(
            !sends(5180, ht(7, Width::Mhz40, GuardInterval::Long)),
            "20 MHz wide"
        );
        assert!(
            !sends(2412, ht(0, Width::Mhz20, GuardInterval::Long)),
            "no HT there"
        );
        let wide = |rate| radio.channel(5180).unwrap().0.sends(rate, Width::Mhz40);
        assert!(wide(ht(7, Width::Mhz40, GuardInterval::Long)) && wide(Rate::OFDM_6));
        assert!(wide(ht(7, Width::Mhz20, GuardInterval::Short)));
        assert!(
            !wide(ht(7, Width::Mhz40, GuardInterval::Short)),
            "short only at 20 MHz"
        );
    }

    #[test]
    fn wide_channels_lie_where_the_rules_let_them() {
        let radio = example();
        let centre = |mhz| radio.channel(mhz).unwrap().1.centre_of_40();
        assert_eq!([5180, 5200].map(centre), [Some(5190); 2], "36 and 40 are a pair");
        assert_eq!((centre(5260), centre(5825)), (Some(5270), None));
        assert_eq!((centre(2412), centre(2467)), (Some(2422), Some(2457)));
        let channel = |mhz, wide| Channel {
            mhz,
            wide,
            ..*radio.channel(5180).unwrap().1
        };
        assert_eq!(channel(5745, [true; 2]).centre_of_40(), Some(5755));
        assert_eq!(channel(5765, [true; 2]).centre_of_40(), Some(5755));
        assert_eq!(channel(5500, [true; 2]).centre_of_40(), Some(5510));
        assert_eq!(channel(5500, [true, false]).centre_of_40(), Some(5490));
        assert!(radio.bands[1].has_40() && !radio.bands[0].has_40());
    }
}
