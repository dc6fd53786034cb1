//! Management frames: beacons, probes, authentication, association, ATIM, action.
//!
//! All are a [`MgmtHeader`], some fixed fields, and elements.
//!
//! ```
//! use frame::element::{ElementsBuilder, IbssParameters, Ssid};
//! use frame::mgmt::{Beacon, Capability, MgmtHeader};
//! use frame::{MacAddr, Wire};
//!
//! let mut buffer = [0; 100];
//! let mut elements = ElementsBuilder::new(&mut buffer);
//! elements.push(Ssid(b"robots"))?;
//! elements.push(IbssParameters { atim_window_tu: 10 })?;
//! let beacon = Beacon {
//!     header: MgmtHeader::new(MacAddr::BROADCAST, MacAddr::local(1), MacAddr::local(9)),
//!     timestamp_us: 0, // the adapter fills it in
//!     interval_tu: 100,
//!     capability: Capability::IBSS,
//!     elements: elements.finish(),
//! };
//! let mut mpdu = [0; 200];
//! let n = beacon.emit(&mut mpdu)?;
//! let heard = Beacon::parse(&mpdu[..n]).unwrap();
//! assert_eq!(heard.elements.get(), Some(Ssid(b"robots")));
//! # Ok::<(), frame::EmitError>(())
//! ```

mod fields;

pub use fields::{Capability, ReasonCode, StatusCode};

use core::fmt;

use crate::addr::MacAddr;
use crate::element::{Elements, Ssid};
use crate::error::{EmitError, ParseError};
use crate::mac::{Aid, Flags, FrameControl, FrameType, Header, Kind, SequenceControl};
use crate::wire::{Reader, Wire, Writer};
use fields::Field;

/// Header of all management frames (IEEE 802.11-2016, 9.3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MgmtHeader {
    /// Flags. [`Flags::ORDER`] asks for `ht_control`; [`Flags::PROTECTED`] is refused, see
    /// [`ParseError::Protected`].
    pub flags: Flags,
    /// NAV in microseconds after this frame, 0 to 32767.
    pub duration_us: u16,
    /// Address 1: who shall receive it, RA and DA.
    pub destination: MacAddr,
    /// Address 2: who sends it, TA and SA.
    pub source: MacAddr,
    /// Address 3: the network; all ones in probe requests for any.
    pub bssid: MacAddr,
    /// Sequence control.
    pub sequence: SequenceControl,
    /// HT Control.
    pub ht_control: Option<u32>,
}

impl MgmtHeader {
    /// Without flags, sequence number 0, NAV 0.
    pub const fn new(destination: MacAddr, source: MacAddr, bssid: MacAddr) -> MgmtHeader {
        MgmtHeader {
            flags: Flags::NONE,
            duration_us: 0,
            destination,
            source,
            bssid,
            sequence: SequenceControl(0),
            ht_control: None,
        }
    }

    #[inline]
    fn read(octets: &[u8], kind: Kind) -> Result<(MgmtHeader, Reader<'_>), ParseError> {
        debug_assert!(kind.frame_type() == FrameType::Management);
        let h = Header::parse(octets)?;
        if h.kind() != kind {
            return Err(ParseError::WrongKind);
        }
        if h.flags().contains(Flags::PROTECTED) {
            return Err(ParseError::Protected);
        }
        // These three are always there in management frames.
        let (Some(source), Some(bssid), Some(sequence)) = (h.transmitter(), h.address3(), h.sequence())
        else {
            return Err(ParseError::Truncated);
        };
        let header = MgmtHeader {
            flags: h.flags(),
            duration_us: h.duration(),
            destination: h.receiver(),
            source,
            bssid,
            sequence,
            ht_control: h.ht_control(),
        };
        Ok((header, Reader::new(h.body())))
    }

    #[inline]
    fn check(&self) -> Result<(), EmitError> {
        let order = self.flags.contains(Flags::ORDER);
        if order != self.ht_control.is_some() || self.flags.contains(Flags::PROTECTED) {
            return Err(EmitError::Contradiction);
        }
        Ok(())
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>, kind: Kind) {
        w.bytes(&FrameControl::new(kind, self.flags).0);
        w.u16(self.duration_us);
        w.address(self.destination);
        w.address(self.source);
        w.address(self.bssid);
        w.u16(self.sequence.0);
        if let Some(ht_control) = self.ht_control {
            w.u32(ht_control);
        }
    }

    #[inline]
    fn octets(&self) -> usize {
        if self.ht_control.is_some() { 28 } else { 24 }
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, kind: Kind) -> fmt::Result {
        write!(f, "{} -> {} {kind}", self.source, self.destination)?;
        write!(
            f,
            ", SN={}, FN={}",
            self.sequence.number(),
            self.sequence.fragment()
        )?;
        write!(f, ", Flags={}", self.flags)
    }
}

/// Shows the SSID if there is one.
fn show_ssid(f: &mut fmt::Formatter<'_>, elements: &Elements<'_>) -> fmt::Result {
    match elements.get::<Ssid<'_>>() {
        Some(ssid) => write!(f, ", {ssid}"),
        None => Ok(()),
    }
}

macro_rules! management {
    ($(
        $(#[$doc:meta])*
        $name:ident is $kind:ident {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
        show($self:ident, $f:ident) $show:block
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            pub struct $name<'a> {
                /// Addresses and sequence control.
                pub header: MgmtHeader,
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl<'a> Wire<'a> for $name<'a> {
                fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
                    let (header, mut r) = MgmtHeader::read(octets, Kind::$kind)?;
                    Ok($name { header, $($field: Field::read(&mut r)?,)* })
                }

                fn length(&self) -> usize {
                    self.header.octets() $(+ Field::octets(&self.$field))*
                }

                fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
                    self.header.check()?;
                    let mut w = Writer::new(out, self.length())?;
                    self.header.write(&mut w, Kind::$kind);
                    $(Field::write(&self.$field, &mut w);)*
                    Ok(w.finish())
                }
            }

            impl fmt::Display for $name<'_> {
                fn fmt(&$self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    $self.header.show($f, Kind::$kind)?;
                    $show
                }
            }
        )*
    };
}

// Fields in their order on the air; the last one takes what is left.
management! {
    /// Beacon (IEEE 802.11-2016, 9.3.3.3).
    Beacon is BEACON {
        /// TSF of the sender when the first bit of this field was sent, in microseconds.
        timestamp_us: u64,
        /// Time from one TBTT to the next in TU of 1024 us.
        interval_tu: u16,
        /// What the network is.
        capability: Capability,
        /// SSID, rates, and so on.
        elements: Elements<'a>,
    }
    show(self, f) {
        write!(f, ", BI={}", self.interval_tu)?;
        show_ssid(f, &self.elements)
    }

    /// Probe response (IEEE 802.11-2016, 9.3.3.11): a beacon for one station.
    ProbeResponse is PROBE_RESPONSE {
        /// TSF of the sender when the first bit of this field was sent, in microseconds.
        timestamp_us: u64,
        /// Time from one TBTT to the next in TU of 1024 us.
        interval_tu: u16,
        /// What the network is.
        capability: Capability,
        /// SSID, rates, and so on.
        elements: Elements<'a>,
    }
    show(self, f) {
        write!(f, ", BI={}", self.interval_tu)?;
        show_ssid(f, &self.elements)
    }

    /// Probe request (IEEE 802.11-2016, 9.3.3.10).
    ProbeRequest is PROBE_REQUEST {
        /// SSID that is looked for, rates.
        elements: Elements<'a>,
    }
    show(self, f) { show_ssid(f, &self.elements) }

    /// Authentication (IEEE 802.11-2016, 9.3.3.12).
    Authentication is AUTHENTICATION {
        /// 0 open, 1 shared key, 2 fast transition, 3 SAE.
        algorithm: u16,
        /// Transaction sequence number: 1 for the first frame of the exchange.
        transaction: u16,
        /// Outcome; 0 in requests.
        status: StatusCode,
        /// Elements; with SAE some fields without identifiers stand before them.
        elements: Elements<'a>,
    }
    show(self, f) { write!(f, ", Algorithm={}, Seq={}, {}", self.algorithm, self.transaction, self.status) }

    /// Association request (IEEE 802.11-2016, 9.3.3.6).
    AssociationRequest is ASSOCIATION_REQUEST {
        /// What the station can do.
        capability: Capability,
        /// How often the station will wake up, in beacon intervals.
        listen_interval: u16,
        /// SSID, rates, and so on.
        elements: Elements<'a>,
    }
    show(self, f) { show_ssid(f, &self.elements) }

    /// Association response (IEEE 802.11-2016, 9.3.3.7).
    AssociationResponse is ASSOCIATION_RESPONSE {
        /// What the network can do.
        capability: Capability,
        /// Outcome.
        status: StatusCode,
        /// Number of the station from now on, if granted.
        aid: Aid,
        /// Rates, and so on.
        elements: Elements<'a>,
    }
    show(self, f) { write!(f, ", {}, {}", self.status, self.aid) }

    /// Reassociation request (IEEE 802.11-2016, 9.3.3.8): from an old access point to a new one.
    ReassociationRequest is REASSOCIATION_REQUEST {
        /// What the station can do.
        capability: Capability,
        /// How often the station will wake up, in beacon intervals.
        listen_interval: u16,
        /// The access point that the station comes from.
        current_ap: MacAddr,
        /// SSID, rates, and so on.
        elements: Elements<'a>,
    }
    show(self, f) {
        write!(f, ", from {}", self.current_ap)?;
        show_ssid(f, &self.elements)
    }

    /// Reassociation response (IEEE 802.11-2016, 9.3.3.9).
    ReassociationResponse is REASSOCIATION_RESPONSE {
        /// What the network can do.
        capability: Capability,
        /// Outcome.
        status: StatusCode,
        /// Number of the station from now on, if granted.
        aid: Aid,
        /// Rates, and so on.
        elements: Elements<'a>,
    }
    show(self, f) { write!(f, ", {}, {}", self.status, self.aid) }

    /// Disassociation (IEEE 802.11-2016, 9.3.3.5).
    Disassociation is DISASSOCIATION {
        /// Why.
        reason: ReasonCode,
        /// Vendor elements; usually none.
        elements: Elements<'a>,
    }
    show(self, f) { write!(f, ", {}", self.reason) }

    /// Deauthentication (IEEE 802.11-2016, 9.3.3.13).
    Deauthentication is DEAUTHENTICATION {
        /// Why.
        reason: ReasonCode,
        /// Vendor elements; usually none.
        elements: Elements<'a>,
    }
    show(self, f) { write!(f, ", {}", self.reason) }

    /// ATIM (IEEE 802.11-2016, 9.3.3.4): "I have frames for you, stay awake", in the ATIM window of an IBSS.
    Atim is ATIM {
        /// The standard has no body here; whatever stands there is kept.
        body: &'a [u8],
    }
    show(self, f) { Ok(()) }

    /// Action (IEEE 802.11-2016, 9.3.3.14).
    Action is ACTION {
        /// What it is about: 0 spectrum management, 3 block ack, 127 vendor (Table 9-47).
        category: u8,
        /// The action, its fields and elements.
        body: &'a [u8],
    }
    show(self, f) { write!(f, ", Category={}, {} octets", self.category, self.body.len()) }
}

#[cfg(test)]
mod tests;
