//! A network: what its creator has fixed, and the frames that say it.

use super::config::IbssConfig;
use super::protection;
use frame::element::{DsParameters, Elements, ElementsBuilder, IbssParameters, RateOctets, Ssid};
use frame::mac::SequenceControl;
use frame::mgmt::{Atim, Beacon, Capability, MgmtHeader, ProbeRequest, ProbeResponse};
use frame::{MacAddr, RateSet, Wire};
use radio::{BeaconTiming, Duration, Tsf};

/// Octets of the longest frame that this file writes, without FCS.
pub(super) const MAX_OCTETS: usize = 24 + 12 + MAX_ELEMENTS_OCTETS;
/// Name, eight rates and four more, channel, ATIM window.
const MAX_ELEMENTS_OCTETS: usize = 2 + 32 + 2 + 8 + 2 + 4 + 3 + 4;

/// What all members of a network agree on (IEEE 802.11-2016, 11.1.4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Its BSSID.
    pub bssid: MacAddr,
    /// Beacon interval in TU.
    pub interval_tu: u16,
    /// ATIM window in TU; 0: its members do not save power.
    pub atim_window_tu: u16,
}

impl Network {
    /// Half of what is left of an interval behind the ATIM window: how long before a TBTT a member wakes up at most.
    pub const fn longest_wake_ahead(&self) -> Duration {
        let left_tu = self.interval_tu.saturating_sub(self.atim_window_tu);
        Duration::from_us(left_tu as u64 * 512)
    }

    pub(super) fn timing(&self) -> BeaconTiming {
        BeaconTiming {
            interval_tu: self.interval_tu,
            atim_window_tu: self.atim_window_tu,
        }
    }
}

/// A beacon or probe response of a network with our name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Heard {
    pub network: Network,
    pub timestamp: Tsf,
    pub from: MacAddr,
}

/// A frame that is built here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Beacon,
    /// To whom.
    ProbeResponse(MacAddr),
    ProbeRequest,
    /// To whom, and address 3: the BSSID, or with multi-hop power save whom frames are for in the end.
    Atim(MacAddr, MacAddr),
}

/// Writes a frame of `network` with this sequence number and tells its octets.
pub(super) fn emit<'o>(
    kind: Kind,
    config: &IbssConfig,
    network: &Network,
    sequence: u16,
    out: &'o mut [u8; MAX_OCTETS],
) -> &'o [u8] {
    let mut octets = [0; MAX_ELEMENTS_OCTETS];
    let elements = elements(kind, config, network, &mut octets);
    let header = |to, bssid| {
        let mut header = MgmtHeader::new(to, config.me, bssid);
        header.sequence = SequenceControl::new(sequence, 0);
        header
    };
    let interval_tu = network.interval_tu;
    let capability = match protection::is_on(config) {
        true => Capability::IBSS.with(Capability::PRIVACY),
        false => Capability::IBSS,
    };
    let written = match kind {
        Kind::Beacon => Beacon {
            header: header(MacAddr::BROADCAST, network.bssid),
            timestamp_us: 0,
            interval_tu,
            capability,
            elements,
        }
        .emit(out),
        Kind::ProbeResponse(to) => ProbeResponse {
            header: header(to, network.bssid),
            timestamp_us: 0,
            interval_tu,
            capability,
            elements,
        }
        .emit(out),
        Kind::ProbeRequest => ProbeRequest {
            header: header(MacAddr::BROADCAST, MacAddr::BROADCAST),
            elements,
        }
        .emit(out),
        Kind::Atim(to, address3) => Atim {
            header: header(to, address3),
            body: &[],
        }
        .emit(out),
    };
    let octets = written.expect("the buffer is for the longest");
    &out[..octets]
}

fn elements<'o>(kind: Kind, config: &IbssConfig, network: &Network, out: &'o mut [u8]) -> Elements<'o> {
    let mut elements = ElementsBuilder::new(out);
    const FITS: &str = "there is room for all";
    elements.push(Ssid(config.ssid())).expect(FITS);
    let mut basic = RateSet::EMPTY.with(config.group_rate);
    if basic.is_empty() {
        // HT rates are none of this set, and there is no element without a rate (IEEE 802.11-2016, 9.4.2.3)
        basic = RateSet::OFDM_6_ONLY;
    }
    let rates = RateOctets::new(RateSet::EMPTY.with(config.rate), basic);
    elements.push(rates.supported()).expect(FITS);
    if let Some(more) = rates.extended() {
        elements.push(more).expect(FITS);
    }
    if matches!(kind, Kind::Beacon | Kind::ProbeResponse(_)) {
        if let Some(channel) = config.channel {
            elements.push(DsParameters { channel }).expect(FITS);
        }
        let atim_window_tu = network.atim_window_tu;
        elements.push(IbssParameters { atim_window_tu }).expect(FITS);
    }
    elements.finish()
}

/// Reads a beacon or probe response; `None` if it is none, or not of a network with our name on our channel.
pub(super) fn read(mpdu: &[u8], config: &IbssConfig) -> Option<Heard> {
    let (header, timestamp, interval_tu, capability, elements) = match Beacon::parse(mpdu) {
        Ok(b) => (b.header, b.timestamp_us, b.interval_tu, b.capability, b.elements),
        Err(_) => {
            let p = ProbeResponse::parse(mpdu).ok()?;
            (p.header, p.timestamp_us, p.interval_tu, p.capability, p.elements)
        }
    };
    let Ssid(name) = elements.get()?;
    let is_ours = name == config.ssid()
        && capability.contains(Capability::IBSS)
        && !capability.contains(Capability::ESS)
        && capability.contains(Capability::PRIVACY) == protection::is_on(config)
        && !header.bssid.is_group()
        && interval_tu > 0
        && elements
            .get()
            .zip(config.channel)
            .is_none_or(|(DsParameters { channel }, ours)| channel == ours);
    let window = elements.get().map_or(0, |p: IbssParameters| p.atim_window_tu);
    is_ours.then_some(Heard {
        network: Network {
            bssid: header.bssid,
            interval_tu,
            // a window as long as the interval leaves no time for anything else
            atim_window_tu: if window < interval_tu { window } else { 0 },
        },
        timestamp: Tsf(timestamp),
        from: header.source,
    })
}

/// Who asks for a network with our name, or for any, and is owed an answer: who asks all is answered by whoever sent the last beacon, who
/// asks one by that one (IEEE 802.11-2016, 11.1.4.3.4).
pub(super) fn asks_for_us(mpdu: &[u8], config: &IbssConfig, sent_last_beacon: bool) -> Option<MacAddr> {
    let request = ProbeRequest::parse(mpdu).ok()?;
    let name = request.elements.get().map_or(&[][..], |Ssid(name)| name);
    let to = request.header.destination;
    let is_asked = to == config.me || sent_last_beacon && to.is_group();
    (is_asked && (name.is_empty() || name == config.ssid())).then_some(request.header.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::element::SupportedRates;
    use frame::{GuardInterval, Rate, Width};

    const ME: MacAddr = MacAddr::local(1);
    const NET: Network = Network {
        bssid: MacAddr::local(77),
        interval_tu: 100,
        atim_window_tu: 20,
    };

    fn config() -> IbssConfig {
        IbssConfig::new(ME, "robots", Rate::OFDM_24)
    }

    #[test]
    fn octets_of_the_standard() {
        let mut out = [0; MAX_OCTETS];
        let config = IbssConfig {
            channel: Some(6),
            ..config()
        };
        #[rustfmt::skip]
        assert_eq!(emit(Kind::Beacon, &config, &NET, 0x123, &mut out), [
            0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 77, 0x30, 0x12,
            0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 2, 0,
            0, 6, b'r', b'o', b'b', b'o', b't', b's', 1, 2, 0x8c, 48, 3, 1, 6, 6, 2, 20, 0,
        ]);
        let atim = emit(
            Kind::Atim(MacAddr::local(2), NET.bssid),
            &config,
            &NET,
            1,
            &mut out,
        );
        assert_eq!((atim.len(), atim[0]), (24, 0x90));
    }

    /// At 2.4 GHz frames are heard on neighbouring channels, too.
    #[test]
    fn a_network_on_another_channel_is_none_of_ours() {
        let on = |channel| IbssConfig { channel, ..config() };
        let mut out = [0; MAX_OCTETS];
        let mpdu = emit(Kind::Beacon, &on(Some(6)), &NET, 7, &mut out);
        for (ours, heard) in [(Some(6), true), (Some(7), false), (None, true)] {
            assert_eq!(read(mpdu, &on(ours)).is_some(), heard, "{ours:?}");
        }
        // who does not say it is taken at its word
        let mpdu = emit(Kind::Beacon, &on(None), &NET, 7, &mut out);
        assert!(read(mpdu, &on(Some(7))).is_some());
    }

    /// HT rates are not in these elements, and an element without a rate is none.
    #[test]
    fn a_network_of_ht_rates_names_a_mandatory_rate() {
        let config = IbssConfig {
            rate: Rate::ht(7, Width::Mhz20, GuardInterval::Long).unwrap(),
            group_rate: Rate::ht(0, Width::Mhz20, GuardInterval::Long).unwrap(),
            ..config()
        };
        let mut out = [0; MAX_OCTETS];
        let mpdu = emit(Kind::Beacon, &config, &NET, 7, &mut out);
        let rates: SupportedRates<'_> = Beacon::parse(mpdu).unwrap().elements.get().unwrap();
        assert_eq!(rates.0, [0x8c]);
        assert_eq!(read(mpdu, &config).unwrap().network, NET);
    }

    #[test]
    fn there_and_back() {
        let mut out = [0; MAX_OCTETS];
        for kind in [Kind::Beacon, Kind::ProbeResponse(MacAddr::local(3))] {
            let mpdu = emit(kind, &config(), &NET, 7, &mut out);
            let heard = read(mpdu, &config()).unwrap();
            assert_eq!((heard.network, heard.from), (NET, ME));
            let other = IbssConfig::new(ME, "others", Rate::OFDM_24);
            assert_eq!(read(mpdu, &other), None);
        }
        let mut ess = emit(Kind::Beacon, &config(), &NET, 7, &mut out).to_vec();
        ess[34] = 1;
        assert_eq!(read(&ess, &config()), None, "an access point");
        let asks = emit(Kind::ProbeRequest, &config(), &NET, 7, &mut out);
        assert_eq!(asks_for_us(asks, &config(), false), None, "not for it to answer");
        assert_eq!(asks_for_us(asks, &config(), true), Some(ME));
        let other = IbssConfig::new(ME, "others", Rate::OFDM_24);
        assert_eq!(asks_for_us(asks, &other, true), None);
        assert_eq!(read(asks, &config()), None);
    }
}
