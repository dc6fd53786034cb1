//! Vendor elements, and the one that everybody uses: WMM.

use core::fmt;

use crate::edca::{AccessCategory, EdcaParams};
use crate::element::{ElementType, body, start};
use crate::error::{EmitError, ParseError};
use crate::wire::{Reader, Wire, Writer};

/// Vendor specific element (IEEE 802.11-2016, 9.4.2.26).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Vendor<'a> {
    /// Organisation.
    pub oui: [u8; 3],
    /// What the vendor made of it, 0 to 252 octets; usually a type comes first.
    pub body: &'a [u8],
}

impl<'a> Wire<'a> for Vendor<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = body(octets, Self::ID)?;
        Ok(Vendor {
            oui: r.array()?,
            body: r.rest(),
        })
    }

    fn length(&self) -> usize {
        5 + self.body.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.bytes(&self.oui);
        w.bytes(self.body);
        Ok(w.finish())
    }
}

impl fmt::Display for Vendor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.oui;
        write!(f, "Vendor {a:02x}-{b:02x}-{c:02x} ({} octets)", self.body.len())
    }
}

/// OUI 00-50-f2, type 2 (Wi-Fi Alliance, WMM specification 1.2, 2.2.1).
const WMM: [u8; 4] = [0x00, 0x50, 0xf2, 2];
/// Octet that follows it.
const INFORMATION: u8 = 0;
const PARAMETERS: u8 = 1;
const VERSION: u8 = 1;

/// The part of a WMM element behind its subtype and version.
fn wmm_body(octets: &[u8], subtype: u8) -> Result<Reader<'_>, ParseError> {
    let mut r = body(octets, WmmParameters::ID)?;
    let (kind, version): ([u8; 5], u8) = (r.array()?, r.u8()?);
    if kind[..4] == WMM && kind[4] == subtype && version == VERSION {
        Ok(r)
    } else {
        Err(ParseError::WrongKind)
    }
}

fn wmm_start(out: &mut [u8], subtype: u8, length: usize) -> Result<Writer<'_>, EmitError> {
    let mut w = start(out, WmmParameters::ID, length)?;
    w.bytes(&WMM);
    w.bytes(&[subtype, VERSION]);
    Ok(w)
}

/// WMM information element: says that the sender knows WMM, in association requests and in beacons without
/// parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WmmInformation {
    /// QoS info; from an access point bits 0 to 3 count the changes of the parameters.
    pub qos_info: u8,
}

impl<'a> Wire<'a> for WmmInformation {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let qos_info = wmm_body(octets, INFORMATION)?.u8()?;
        Ok(WmmInformation { qos_info })
    }

    fn length(&self) -> usize {
        9
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = wmm_start(out, INFORMATION, self.length())?;
        w.u8(self.qos_info);
        Ok(w.finish())
    }
}

impl fmt::Display for WmmInformation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WMM")
    }
}

/// What a WMM parameter element says about one access category.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AcParameters {
    /// Channel access parameters: AIFSN 0 to 15, windows 2^n - 1 with n from 0 to 15, TXOP limit a multiple of
    /// 32 us up to 2,097,120 us.
    pub edca: EdcaParams,
    /// Stations must ask before they use this category.
    pub admission: bool,
}

impl AcParameters {
    fn parse(r: &mut Reader<'_>, ac: AccessCategory) -> Result<AcParameters, ParseError> {
        let (first, windows, txop) = (r.u8()?, r.u8()?, r.u16()?);
        if AccessCategory::from_aci(first >> 5) != ac {
            return Err(ParseError::BadValue);
        }
        let window = |exponent: u8| ((1u32 << exponent) - 1) as u16;
        Ok(AcParameters {
            edca: EdcaParams {
                aifsn: first & 0xf,
                cw_min: window(windows & 0xf),
                cw_max: window(windows >> 4),
                txop_us: u32::from(txop) * 32,
            },
            admission: first & 0x10 != 0,
        })
    }

    /// The four octets on the air.
    fn octets(&self, ac: AccessCategory) -> Result<[u8; 4], EmitError> {
        let EdcaParams {
            aifsn,
            cw_min,
            cw_max,
            txop_us,
        } = self.edca;
        let exponent = |window: u16| {
            let slots = u32::from(window) + 1;
            if slots.is_power_of_two() && slots <= 1 << 15 {
                Ok(slots.trailing_zeros() as u8)
            } else {
                Err(EmitError::BadValue)
            }
        };
        if aifsn > 15 || txop_us % 32 != 0 {
            return Err(EmitError::BadValue);
        }
        let [low, high] = u16::try_from(txop_us / 32)
            .map_err(|_| EmitError::BadValue)?
            .to_le_bytes();
        let first = ac.aci() << 5 | u8::from(self.admission) << 4 | aifsn;
        Ok([first, exponent(cw_max)? << 4 | exponent(cw_min)?, low, high])
    }
}

/// WMM parameter element: the channel access parameters that the stations of a network shall use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WmmParameters {
    /// QoS info; bits 0 to 3 count the changes of the parameters.
    pub qos_info: u8,
    /// By [`AccessCategory::index`]: background, best effort, video, voice.
    pub categories: [AcParameters; 4],
}

impl WmmParameters {
    /// With the same parameters for all stations, none of them under admission control.
    pub fn new(edca: impl Fn(AccessCategory) -> EdcaParams) -> WmmParameters {
        WmmParameters {
            qos_info: 0,
            categories: AccessCategory::ALL.map(|ac| AcParameters {
                edca: edca(ac),
                admission: false,
            }),
        }
    }

    /// Parameters of one category.
    pub const fn of(&self, ac: AccessCategory) -> AcParameters {
        self.categories[ac.index()]
    }
}

/// Order of the categories on the air: by ACI.
const ON_AIR: [AccessCategory; 4] = [
    AccessCategory::BestEffort,
    AccessCategory::Background,
    AccessCategory::Video,
    AccessCategory::Voice,
];

impl<'a> Wire<'a> for WmmParameters {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = wmm_body(octets, PARAMETERS)?;
        let [qos_info, _reserved] = r.array()?;
        let [be, bk, vi, vo] = ON_AIR.map(|ac| AcParameters::parse(&mut r, ac));
        Ok(WmmParameters {
            qos_info,
            categories: [bk?, be?, vi?, vo?],
        })
    }

    fn length(&self) -> usize {
        26
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = wmm_start(out, PARAMETERS, self.length())?;
        w.bytes(&[self.qos_info, 0]);
        for ac in ON_AIR {
            w.bytes(&self.of(ac).octets(ac)?);
        }
        Ok(w.finish())
    }
}

impl fmt::Display for WmmParameters {
    /// `WMM BK 7/15/1023/0 BE ...`: AIFSN, CWmin, CWmax, TXOP limit in microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WMM")?;
        for (name, ac) in ["BK", "BE", "VI", "VO"].into_iter().zip(self.categories) {
            let e = ac.edca;
            write!(f, " {name} {}/{}/{}/{}", e.aifsn, e.cw_min, e.cw_max, e.txop_us)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edca::edca_default;
    use crate::element::tests::check;
    use crate::element::{Element, Elements};
    use crate::phy::Phy;

    /// What access points with default parameters send.
    const DEFAULTS: [u8; 26] = [
        221, 24, 0x00, 0x50, 0xf2, 2, 1, 1, 0, 0, 0x03, 0xa4, 0, 0, 0x27, 0xa4, 0, 0, 0x42, 0x43, 0x5e, 0,
        0x62, 0x32, 0x2f, 0,
    ];

    #[test]
    fn octets_of_the_specification() {
        let text = "WMM BK 7/15/1023/0 BE 3/15/1023/0 VI 2/7/15/3008 VO 2/3/7/1504";
        let wmm = WmmParameters::new(|ac| edca_default(ac, &Phy::G));
        check(wmm, &DEFAULTS, text);
        let mut admission = wmm;
        admission.categories[3].admission = true;
        let mut octets = DEFAULTS;
        octets[22] |= 0x10;
        check(admission, &octets, text);
        check(
            WmmInformation { qos_info: 0x83 },
            &[221, 7, 0x00, 0x50, 0xf2, 2, 0, 1, 0x83],
            "WMM",
        );
        let vendor = Vendor {
            oui: [0x00, 0x50, 0xf2],
            body: &[4, 9, 9],
        };
        check(
            vendor,
            &[221, 6, 0x00, 0x50, 0xf2, 4, 9, 9],
            "Vendor 00-50-f2 (3 octets)",
        );
    }

    #[test]
    fn vendors_are_told_apart() {
        let mut octets = [0; 35];
        octets[..9].copy_from_slice(&[221, 7, 0x00, 0x50, 0xf2, 4, 0, 1, 0]);
        octets[9..].copy_from_slice(&DEFAULTS);
        let elements = Elements::new(&octets);
        assert!(
            elements.get::<WmmParameters>().is_some(),
            "behind another vendor element"
        );
        assert_eq!(elements.get::<WmmInformation>(), None);
        // parameters out of order are no parameters, but they are kept
        octets[9 + 10] |= 0x20;
        assert!(matches!(
            Elements::new(&octets).iter().last(),
            Some(Element::Vendor(_))
        ));
    }

    #[test]
    fn refusals() {
        let good = WmmParameters::new(|ac| edca_default(ac, &Phy::G));
        let spoil = |change: fn(&mut EdcaParams)| {
            let mut bad = good;
            change(&mut bad.categories[2].edca);
            bad.emit(&mut [0; 26])
        };
        assert_eq!(spoil(|e| e.aifsn = 16), Err(EmitError::BadValue));
        assert_eq!(spoil(|e| e.cw_min = 8), Err(EmitError::BadValue));
        assert_eq!(
            spoil(|e| e.cw_max = 65_535),
            Err(EmitError::BadValue),
            "2^16 - 1 has no exponent on the air"
        );
        assert_eq!(spoil(|e| e.txop_us = 33), Err(EmitError::BadValue));
        assert_eq!(spoil(|e| e.txop_us = 32 * 65_536), Err(EmitError::BadValue));
        assert_eq!(spoil(|e| e.txop_us = 32 * 65_535), Ok(26));
    }
}
