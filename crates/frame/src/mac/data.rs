//! Data and null frames, with and without QoS, with three and with four addresses.

use core::fmt;

use crate::addr::MacAddr;
use crate::error::{EmitError, ParseError};
use crate::mac::fields::{Flags, FrameControl, Kind, QosControl, SequenceControl};
use crate::mac::header::Header;
use crate::wire::{Wire, Writer};

/// A data frame (IEEE 802.11-2016, 9.3.2.1): Data, Null, QoS Data or QoS Null.
///
/// `flags` says which optional parts the header has: both DS flags ask for `address4`, and in QoS frames
/// [`Flags::ORDER`] asks for `ht_control`. [`emit`](Wire::emit) refuses values where they disagree.
///
/// ```
/// use frame::mac::{AckPolicy, Data, QosControl};
/// use frame::{MacAddr, Wire};
///
/// let (me, peer, bssid) = (MacAddr::local(1), MacAddr::local(2), MacAddr::local(9));
/// let data = Data {
///     qos: Some(QosControl::new(6, AckPolicy::Normal)),
///     ..Data::direct(peer, me, bssid, b"hello")
/// };
/// let mut mpdu = [0; 64];
/// let n = data.emit(&mut mpdu)?;
/// assert_eq!(n, 26 + 5);
/// let back = Data::parse(&mpdu[..n]).unwrap();
/// assert_eq!((back.destination(), back.source(), back.body), (peer, me, &b"hello"[..]));
/// # Ok::<(), frame::EmitError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Data<'a> {
    /// Flags.
    pub flags: Flags,
    /// NAV in microseconds after this frame, 0 to 32767.
    pub duration_us: u16,
    /// Address 1: who shall receive this frame, RA.
    pub receiver: MacAddr,
    /// Address 2: who sends this frame, TA.
    pub transmitter: MacAddr,
    /// Address 3: BSSID, source or destination, see [`Data::destination`].
    pub address3: MacAddr,
    /// Address 4: the source, if both DS flags are set.
    pub address4: Option<MacAddr>,
    /// Sequence control.
    pub sequence: SequenceControl,
    /// QoS control; its presence makes it a QoS frame.
    pub qos: Option<QosControl>,
    /// HT Control of QoS frames.
    pub ht_control: Option<u32>,
    /// Null frame: says something with its flags alone and has no body.
    pub null: bool,
    /// Body without FCS: an LLC header and its payload, A-MSDU subframes, or ciphertext.
    pub body: &'a [u8],
}

impl<'a> Data<'a> {
    /// Plain data between stations of an IBSS (or outside of any BSS): no DS flag.
    pub const fn direct(destination: MacAddr, source: MacAddr, bssid: MacAddr, body: &'a [u8]) -> Data<'a> {
        Data {
            flags: Flags::NONE,
            duration_us: 0,
            receiver: destination,
            transmitter: source,
            address3: bssid,
            address4: None,
            sequence: SequenceControl(0),
            qos: None,
            ht_control: None,
            null: false,
            body,
        }
    }

    /// Plain data from a station to its access point, for `destination`.
    pub const fn to_ap(bssid: MacAddr, source: MacAddr, destination: MacAddr, body: &'a [u8]) -> Data<'a> {
        Data {
            flags: Flags::TO_DS,
            ..Data::direct(bssid, source, destination, body)
        }
    }

    /// Plain data from an access point to a station, sent first by `source`.
    pub const fn from_ap(destination: MacAddr, bssid: MacAddr, source: MacAddr, body: &'a [u8]) -> Data<'a> {
        Data {
            flags: Flags::FROM_DS,
            ..Data::direct(destination, bssid, source, body)
        }
    }

    /// Type and subtype.
    pub const fn kind(&self) -> Kind {
        match (self.qos, self.null) {
            (None, false) => Kind::DATA,
            (None, true) => Kind::NULL,
            (Some(_), false) => Kind::QOS_DATA,
            (Some(_), true) => Kind::QOS_NULL,
        }
    }

    /// Final destination, DA (IEEE 802.11-2016, Table 9-26; for A-MSDUs the subframes say it).
    pub const fn destination(&self) -> MacAddr {
        if self.flags.contains(Flags::TO_DS) {
            self.address3
        } else {
            self.receiver
        }
    }

    /// First source, SA.
    pub const fn source(&self) -> MacAddr {
        match self.address4 {
            Some(source) => source,
            None if self.flags.contains(Flags::FROM_DS) => self.address3,
            None => self.transmitter,
        }
    }

    /// BSSID; `None` with four addresses.
    pub const fn bssid(&self) -> Option<MacAddr> {
        match (
            self.flags.contains(Flags::TO_DS),
            self.flags.contains(Flags::FROM_DS),
        ) {
            (false, false) => Some(self.address3),
            (true, false) => Some(self.receiver),
            (false, true) => Some(self.transmitter),
            (true, true) => None,
        }
    }
}

impl<'a> Wire<'a> for Data<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let h = Header::parse(octets)?;
        let null = match h.kind() {
            Kind::DATA | Kind::QOS_DATA => false,
            Kind::NULL | Kind::QOS_NULL => true,
            _ => return Err(ParseError::WrongKind),
        };
        let (body, qos) = (h.body(), h.qos());
        if null && !body.is_empty() {
            return Err(ParseError::Trailing);
        }
        // These three are always there in data frames.
        let (Some(transmitter), Some(address3), Some(sequence)) =
            (h.transmitter(), h.address3(), h.sequence())
        else {
            return Err(ParseError::Truncated);
        };
        Ok(Data {
            flags: h.flags(),
            duration_us: h.duration(),
            receiver: h.receiver(),
            transmitter,
            address3,
            address4: h.address4(),
            sequence,
            qos,
            ht_control: h.ht_control(),
            null,
            body,
        })
    }

    fn length(&self) -> usize {
        FrameControl::new(self.kind(), self.flags).header_octets() + self.body.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let four = self.flags.contains(Flags::TO_DS.with(Flags::FROM_DS));
        let htc = self.qos.is_some() && self.flags.contains(Flags::ORDER);
        if four != self.address4.is_some()
            || htc != self.ht_control.is_some()
            || (self.null && !self.body.is_empty())
        {
            return Err(EmitError::Contradiction);
        }
        let mut w = Writer::new(out, self.length())?;
        w.bytes(&FrameControl::new(self.kind(), self.flags).0);
        w.u16(self.duration_us);
        w.address(self.receiver);
        w.address(self.transmitter);
        w.address(self.address3);
        w.u16(self.sequence.0);
        if let Some(address4) = self.address4 {
            w.address(address4);
        }
        if let Some(qos) = self.qos {
            w.u16(qos.0);
        }
        if let Some(ht_control) = self.ht_control {
            w.u32(ht_control);
        }
        w.bytes(self.body);
        Ok(w.finish())
    }
}

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} {}", self.transmitter, self.receiver, self.kind())?;
        write!(
            f,
            ", SN={}, FN={}",
            self.sequence.number(),
            self.sequence.fragment()
        )?;
        write!(f, ", Flags={}", self.flags)?;
        if let Some(qos) = self.qos {
            write!(f, ", TID={}", qos.tid())?;
        }
        if !self.null {
            write!(f, ", {} octets", self.body.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::mac::fields::AckPolicy;
    use std::string::ToString;
    use std::vec::Vec;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
    const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);
    const D: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xd]);

    fn emit(d: &Data<'_>) -> Vec<u8> {
        let mut out = [0xee; 100];
        let n = d.emit(&mut out).unwrap();
        assert_eq!(d.emit(&mut out[..n - 1]), Err(EmitError::NoRoom { needed: n }));
        out[..n].to_vec()
    }

    #[test]
    fn octets_of_the_standard() {
        let mut data = Data::to_ap(A, B, C, b"xyz");
        data.duration_us = 44;
        data.sequence = SequenceControl::new(0x123, 0);
        #[rustfmt::skip]
        assert_eq!(emit(&data), [
            0x08, 0x01, 44, 0, 2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xc, 0x30, 0x12, b'x', b'y', b'z',
        ]);
        assert_eq!((data.destination(), data.source(), data.bssid()), (C, B, Some(A)));
        assert_eq!(
            data.to_string(),
            "02:00:00:00:00:0b -> 02:00:00:00:00:0a Data, SN=291, FN=0, Flags=.......T, 3 octets"
        );

        let relay = Data {
            flags: Flags::TO_DS | Flags::FROM_DS | Flags::ORDER,
            address4: Some(D),
            qos: Some(QosControl::new(5, AckPolicy::NoAck)),
            ht_control: Some(0x0403_0201),
            ..data
        };
        #[rustfmt::skip]
        assert_eq!(emit(&relay), [
            0x88, 0x83, 44, 0, 2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xc, 0x30, 0x12,
            2, 0, 0, 0, 0, 0xd, 0x25, 0, 1, 2, 3, 4, b'x', b'y', b'z',
        ]);
        assert_eq!((relay.destination(), relay.source(), relay.bssid()), (C, D, None));

        let null = Data {
            flags: Flags::TO_DS | Flags::POWER_MANAGEMENT,
            null: true,
            body: b"",
            ..data
        };
        assert_eq!(emit(&null)[..2], [0x48, 0x11]);
        let qos_null = Data {
            qos: Some(QosControl::default()),
            ..null
        };
        assert_eq!(emit(&qos_null)[..2], [0xc8, 0x11]);
        for d in [data, relay, null, qos_null] {
            assert_eq!(Data::parse(&emit(&d)), Ok(d));
        }
    }

    #[test]
    fn roles_of_the_addresses() {
        let d = Data::from_ap(A, B, C, b"");
        assert_eq!(
            (d.receiver, d.transmitter, d.destination(), d.source(), d.bssid()),
            (A, B, A, C, Some(B))
        );
        let d = Data::direct(A, B, C, b"");
        assert_eq!(
            (d.receiver, d.transmitter, d.destination(), d.source(), d.bssid()),
            (A, B, A, B, Some(C))
        );
    }

    #[test]
    fn refusals() {
        let plain = Data::direct(A, B, C, b"x");
        let contradictions = [
            Data {
                address4: Some(D),
                ..plain
            },
            Data {
                flags: Flags(3),
                ..plain
            },
            Data {
                ht_control: Some(0),
                ..plain
            },
            Data {
                qos: Some(QosControl(0)),
                flags: Flags::ORDER,
                ..plain
            },
            Data { null: true, ..plain },
        ];
        for d in contradictions {
            assert_eq!(d.emit(&mut [0; 100]), Err(EmitError::Contradiction), "{d}");
        }
        // the order bit of plain data means nothing for the layout
        let ordered = Data {
            flags: Flags::ORDER,
            ..plain
        };
        assert_eq!(Data::parse(&emit(&ordered)), Ok(ordered));
        let mut octets = emit(&plain);
        octets[0] = 0x48;
        assert_eq!(Data::parse(&octets), Err(ParseError::Trailing));
        octets[0] = 0x18;
        assert_eq!(Data::parse(&octets), Err(ParseError::WrongKind), "Data + CF-Ack");
        octets[0] = 0x0a;
        assert_eq!(Data::parse(&octets), Err(ParseError::Version));
        octets[0] = 0x08;
        assert_eq!(Data::parse(&octets[..23]), Err(ParseError::Truncated));
    }
}
