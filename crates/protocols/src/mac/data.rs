//! MSDUs in data frames: addresses by role, sequence numbers on the way out, duplicates on the way in.
//!
//! A payload travels behind LLC and SNAP ([`Snap`]) in the body of a [`Data`] frame with three addresses.

use frame::llc::Snap;
use frame::mac::{AckPolicy, Data, Flags, QosControl, SequenceControl};
use frame::{AccessCategory, MacAddr, Wire};

/// EtherType of MSDUs whose payload is nobody's business but the application's: Local Experimental 1
/// (IEEE 802-2014, 9.2.4).
pub const ETHERTYPE_PAYLOAD: u16 = 0x88b5;
/// EtherType of frames that protocols of this crate exchange with each other: Local Experimental 2
/// (IEEE 802-2014, 9.2.4).
pub const ETHERTYPE_PROTOCOL: u16 = 0x88b6;
/// Octets around a payload in a QoS data frame with three addresses: header, LLC/SNAP and FCS.
pub const QOS_OVERHEAD_OCTETS: usize = 26 + Snap::HEADER_OCTETS + 4;
/// Octets of the longest frame (without FCS) that protocols of this crate build: a QoS data frame with an MSDU
/// of 2304 octets (IEEE 802.11-2016, 9.2.3).
pub const MAX_DATA_OCTETS: usize = 26 + 2_304;
/// Octets of the longest payload in such a frame.
pub const MAX_PAYLOAD_OCTETS: usize = 2_304 - Snap::HEADER_OCTETS;

/// What a node is in its BSS; decides the order of the addresses (IEEE 802.11-2016, Table 9-26).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A station: everything goes through its access point.
    Station {
        /// Address of the access point.
        bssid: MacAddr,
    },
    /// The access point; its own address is the BSSID.
    AccessPoint,
    /// Stations talk to each other directly (IBSS, or outside of any BSS).
    Direct {
        /// The common BSSID.
        bssid: MacAddr,
    },
}

/// Who a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its own address.
    pub me: MacAddr,
    /// Its role.
    pub role: Role,
}

impl Identity {
    /// A station of the access point `bssid`.
    pub const fn station(me: MacAddr, bssid: MacAddr) -> Identity {
        Identity {
            me,
            role: Role::Station { bssid },
        }
    }

    /// An access point.
    pub const fn access_point(me: MacAddr) -> Identity {
        Identity {
            me,
            role: Role::AccessPoint,
        }
    }

    /// The BSSID.
    pub const fn bssid(&self) -> MacAddr {
        match self.role {
            Role::AccessPoint => self.me,
            Role::Station { bssid } | Role::Direct { bssid } => bssid,
        }
    }

    /// Receiver address of a frame for `destination`.
    pub const fn receiver(&self, destination: MacAddr) -> MacAddr {
        match self.role {
            Role::Station { bssid } => bssid,
            Role::AccessPoint | Role::Direct { .. } => destination,
        }
    }
}

/// Why an MSDU does not become a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// Builds data frames and numbers them: one counter per traffic identifier, and one for frames without QoS and
/// to groups (IEEE 802.11-2016, 10.3.2.11.2).
#[derive(Clone, Debug)]
pub struct Framer {
    identity: Identity,
    qos: bool,
    ethertype: u16,
    next: [u16; 17],
}

impl Framer {
    /// `qos`: build QoS data (26 octets of header) instead of plain data (24).
    pub const fn new(identity: Identity, qos: bool, ethertype: u16) -> Framer {
        Framer {
            identity,
            qos,
            ethertype,
            next: [0; 17],
        }
    }

    /// Who frames are from.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Writes the frame for an MSDU whose payload is `head` followed by `payload`, with the next sequence number,
    /// and returns its octets (without FCS). `no_ack` becomes the ack policy of QoS frames; plain data cannot
    /// say it. Frames to groups are plain data.
    ///
    /// # Errors
    /// [`TooLong`] if it does not fit `out`; no number is used up.
    pub fn frame<'o>(
        &mut self,
        to: MacAddr,
        category: AccessCategory,
        no_ack: bool,
        head: &[u8],
        payload: &[u8],
        out: &'o mut [u8],
    ) -> Result<&'o mut [u8], TooLong> {
        let Identity { me, role } = self.identity;
        let tid = (self.qos && !to.is_group()).then(|| category.tid());
        let policy = if no_ack {
            AckPolicy::NoAck
        } else {
            AckPolicy::Normal
        };
        let number = &mut self.next[usize::from(tid.unwrap_or(16))];
        // the body is in pieces, so header, LLC/SNAP and pieces are written one after the other
        let data = match role {
            Role::Station { bssid } => Data::to_ap(bssid, me, to, &[]),
            Role::AccessPoint => Data::from_ap(to, me, me, &[]),
            Role::Direct { bssid } => Data::direct(to, me, bssid, &[]),
        };
        let data = Data {
            sequence: SequenceControl::new(*number, 0),
            qos: tid.map(|tid| QosControl::new(tid, policy)),
            ..data
        };
        let snap = Snap::ethernet(self.ethertype, &[]);
        let octets = data.length() + snap.length() + head.len() + payload.len();
        let out = out.get_mut(..octets).ok_or(TooLong)?;
        let (header, body) = out.split_at_mut(data.length());
        let (llc, msdu) = body.split_at_mut(snap.length());
        let (first, rest) = msdu.split_at_mut(head.len());
        data.emit(header).expect("the fields agree and there is room");
        snap.emit(llc).expect("there is room");
        first.copy_from_slice(head);
        rest.copy_from_slice(payload);
        *number = (*number + 1) & 0xfff;
        Ok(out)
    }
}

/// An MSDU that came in a data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received<'a> {
    /// Who sent the frame over the air.
    pub transmitter: MacAddr,
    /// Where the MSDU comes from.
    pub source: MacAddr,
    /// Where it shall go.
    pub destination: MacAddr,
    /// Traffic identifier of QoS data.
    pub tid: Option<u8>,
    /// Its EtherType.
    pub ethertype: u16,
    /// What follows LLC/SNAP.
    pub payload: &'a [u8],
    sequence: SequenceControl,
    retry: bool,
}

impl<'a> Received<'a> {
    /// Reads a data frame (without FCS) with two or three addresses in use, LLC/SNAP and a payload. `None` for
    /// everything else: other kinds, fragments, A-MSDUs, four addresses, encrypted bodies, other LLC headers.
    pub fn parse(mpdu: &'a [u8]) -> Option<Received<'a>> {
        let d = Data::parse(mpdu).ok()?;
        let unreadable = Flags::PROTECTED | Flags::MORE_FRAGMENTS;
        let whole = d.flags.0 & unreadable.0 == 0 && d.sequence.fragment() == 0;
        if !whole || d.address4.is_some() || d.qos.is_some_and(QosControl::is_amsdu) {
            return None;
        }
        let snap = Snap::parse(d.body).ok().filter(|s| s.oui == [0; 3])?;
        Some(Received {
            transmitter: d.transmitter,
            source: d.source(),
            destination: d.destination(),
            tid: d.qos.map(QosControl::tid),
            ethertype: snap.protocol,
            payload: snap.payload,
            sequence: d.sequence,
            retry: d.flags.contains(Flags::RETRY),
        })
    }

    /// Access category of its traffic identifier.
    pub fn category(&self) -> AccessCategory {
        self.tid
            .map_or(AccessCategory::BestEffort, AccessCategory::from_tid)
    }

    /// True if it is for the node `me` or a group that `me` is in, and not from itself.
    pub fn is_for(&self, me: MacAddr) -> bool {
        self.source != me && (self.destination == me || self.destination.is_group())
    }
}

/// Sequence numbers that [`Duplicates`] remembers of each transmitter and traffic identifier.
pub const DUPLICATE_WINDOW: u16 = 64;

/// The receiver's memory of what it has heard: a frame with the retry bit whose sequence number was heard before
/// is a duplicate (IEEE 802.11-2016, 10.3.2.11.3). The standard asks for the last frame of each transmitter and
/// traffic identifier; here it is a window of the last 64 numbers, because overlays may send other frames
/// between a frame and its retry. Holds `N` windows; the one not heard for longest makes room.
#[derive(Clone, Debug)]
pub struct Duplicates<const N: usize> {
    windows: [Option<Window>; N],
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    from: (MacAddr, Option<u8>),
    /// The newest number.
    newest: u16,
    /// Bit i: the number `newest - i` was heard.
    heard: u64,
    used: u64,
}

impl Window {
    /// Marks `number`; true if it was heard before, as far as the window goes back.
    fn mark(&mut self, number: u16) -> bool {
        let ahead = number.wrapping_sub(self.newest) & 0xfff;
        let behind = self.newest.wrapping_sub(number) & 0xfff;
        if behind < DUPLICATE_WINDOW {
            let bit = 1 << behind;
            let before = self.heard & bit != 0;
            self.heard |= bit;
            return before;
        }
        // newer, or so much older that the sender must have started again
        self.heard = if ahead < DUPLICATE_WINDOW {
            self.heard << ahead | 1
        } else {
            1
        };
        self.newest = number;
        false
    }
}

impl<const N: usize> Default for Duplicates<N> {
    fn default() -> Self {
        Duplicates {
            windows: [None; N],
            clock: 0,
        }
    }
}

impl<const N: usize> Duplicates<N> {
    /// Remembers the frame; true if it is a duplicate.
    pub fn is_duplicate(&mut self, frame: &Received<'_>) -> bool {
        self.clock += 1;
        let from = (frame.transmitter, frame.tid);
        let number = frame.sequence.number();
        if let Some(known) = self.windows.iter_mut().flatten().find(|w| w.from == from) {
            known.used = self.clock;
            return known.mark(number) && frame.retry;
        }
        // an empty place, or that of the one not heard for longest
        if let Some(place) = self.windows.iter_mut().min_by_key(|w| w.map_or(0, |w| w.used)) {
            *place = Some(Window {
                from,
                newest: number,
                heard: 1,
                used: self.clock,
            });
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::mac::Header;
    use frame::mac::header::set_retry;
    use proptest::prelude::*;

    const AP: MacAddr = MacAddr::local(1);
    const STA: MacAddr = MacAddr::local(2);
    const OTHER: MacAddr = MacAddr::local(3);
    const VO: AccessCategory = AccessCategory::Voice;

    fn build<'o>(f: &mut Framer, to: MacAddr, out: &'o mut [u8]) -> &'o mut [u8] {
        f.frame(to, VO, false, b"he", b"llo", out).unwrap()
    }

    #[test]
    fn octets_of_a_qos_frame() {
        let mut out = [0xff; 64];
        let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
        build(&mut f, OTHER, &mut out);
        let mpdu = build(&mut f, OTHER, &mut out);
        #[rustfmt::skip]
        assert_eq!(mpdu, [
            0x88, 0x01, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x10, 0, 6, 0,
            0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5, b'h', b'e', b'l', b'l', b'o',
        ]);
        assert_eq!(mpdu.len() + 4, 5 + QOS_OVERHEAD_OCTETS);
    }

    /// 50 octets of payload make an MPDU of 86 (plain) or 88 octets (QoS): 36 us at 54 Mb/s, as SDMAC
    /// (Cena et al. 2018) has it in Table III.
    #[test]
    fn airtime_of_the_measurement_frame() {
        for (qos, octets) in [(false, 86), (true, 88)] {
            let mut out = [0; 128];
            let mut f = Framer::new(Identity::station(STA, AP), qos, ETHERTYPE_PAYLOAD);
            let mpdu = f.frame(AP, VO, false, &[], &[0; 50], &mut out).unwrap();
            let length = mpdu.len() as u32 + 4;
            assert_eq!(length, octets);
            assert_eq!(
                frame::ppdu_us(frame::Rate::OFDM_54, length, frame::Band::Ghz5),
                36
            );
        }
    }

    #[test]
    fn addresses_by_role() {
        let direct = Identity {
            me: STA,
            role: Role::Direct { bssid: AP },
        };
        let mut out = [0; 64];
        for (identity, to, receiver) in [
            (Identity::station(STA, AP), OTHER, AP),
            (Identity::access_point(AP), OTHER, OTHER),
            (direct, OTHER, OTHER),
            (direct, MacAddr::BROADCAST, MacAddr::BROADCAST),
        ] {
            let mut f = Framer::new(identity, true, ETHERTYPE_PAYLOAD);
            let mpdu = build(&mut f, to, &mut out);
            assert_eq!(Header::parse(mpdu).unwrap().receiver(), receiver);
            assert_eq!(identity.receiver(to), receiver);
            let r = Received::parse(mpdu).unwrap();
            assert_eq!(
                (r.source, r.destination, r.payload),
                (identity.me, to, &b"hello"[..])
            );
            assert_eq!(r.tid.is_some(), !to.is_group());
            assert!(r.is_for(OTHER) && !r.is_for(identity.me));
            assert_eq!(r.is_for(MacAddr::local(9)), to.is_group());
        }
    }

    #[test]
    fn numbers_run_per_traffic_identifier_and_wrap() {
        let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
        let mut out = [0; 64];
        let mut number = |f: &mut Framer, to, category| {
            let mpdu = f.frame(to, category, false, &[], b"x", &mut out).unwrap();
            Header::parse(mpdu).unwrap().sequence().unwrap().number()
        };
        for i in 0..4_096 {
            assert_eq!(number(&mut f, AP, VO), i);
        }
        assert_eq!(number(&mut f, AP, VO), 0);
        assert_eq!(number(&mut f, AP, AccessCategory::Video), 0);
        assert_eq!(number(&mut f, MacAddr::BROADCAST, VO), 0);
    }

    #[test]
    fn what_is_too_long_uses_no_number() {
        let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
        let mut out = [0; 40];
        assert_eq!(
            f.frame(AP, VO, false, &[], &[0; 7], &mut out).unwrap_err(),
            TooLong
        );
        let mpdu = f.frame(AP, VO, false, &[], &[0; 6], &mut out).unwrap();
        assert_eq!(Header::parse(mpdu).unwrap().sequence(), Some(SequenceControl(0)));
    }

    #[test]
    fn duplicates_have_the_retry_bit_and_the_same_number() {
        let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
        let (mut first, mut second) = ([0; 64], [0; 64]);
        let first = build(&mut f, AP, &mut first);
        let second = build(&mut f, AP, &mut second);
        let mut seen: Duplicates<2> = Duplicates::default();
        let mut check = |mpdu: &[u8]| seen.is_duplicate(&Received::parse(mpdu).unwrap());
        assert!(
            !check(first) && !check(first),
            "the same number without the retry bit is new"
        );
        set_retry(first, true).unwrap();
        assert!(check(first) && check(first));
        set_retry(second, true).unwrap();
        assert!(!check(second), "the first one that is heard of it");
        assert!(check(second));
        assert!(check(first), "a retry that another frame went before");
    }

    #[test]
    fn the_window_moves_on_and_wraps() {
        let mut w = Window {
            from: (AP, None),
            newest: 4_090,
            heard: 1,
            used: 0,
        };
        for n in (4_091..4_096).chain(0..10) {
            assert!(!w.mark(n));
        }
        assert!(w.mark(4_090) && w.mark(9) && !w.mark(4_089) && w.mark(4_089));
        assert!(!w.mark(80), "a gap");
        assert!(!w.mark(60) && !w.mark(17) && w.mark(80));
        assert!(!w.mark(9), "out of the window: the sender has started again");
        assert!(!w.mark(10) && w.mark(9) && !w.mark(80));
    }

    #[test]
    fn the_memory_for_duplicates_forgets_who_was_silent_longest() {
        let mut out = [0; 64];
        let mut seen: Duplicates<2> = Duplicates::default();
        let mut hear = |node: u32| {
            let mut f = Framer::new(
                Identity::station(MacAddr::local(node), AP),
                true,
                ETHERTYPE_PAYLOAD,
            );
            let mpdu = build(&mut f, AP, &mut out);
            set_retry(mpdu, true).unwrap();
            seen.is_duplicate(&Received::parse(mpdu).unwrap())
        };
        assert_eq!(
            [10, 11, 10, 12, 10, 11].map(&mut hear),
            [false, false, true, false, true, false]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn any_octets(mpdu in proptest::collection::vec(any::<u8>(), 0..60), first in 0usize..4) {
            let mut mpdu = mpdu;
            if let Some(o) = mpdu.first_mut() {
                *o = [0x08, 0x88, *o, 0x80][first];
            }
            if let Some(r) = Received::parse(&mpdu) {
                prop_assert!(mpdu.ends_with(r.payload));
            }
        }

        #[test]
        fn what_is_framed_is_read(payload in proptest::collection::vec(any::<u8>(), 0..200), qos: bool, ap: bool) {
            let identity = if ap { Identity::access_point(AP) } else { Identity::station(STA, AP) };
            let mut f = Framer::new(identity, qos, 0x1234);
            let mut out = [0; 450];
            let mpdu = f.frame(OTHER, VO, true, &payload, &payload, &mut out).unwrap();
            let r = Received::parse(mpdu).unwrap();
            prop_assert_eq!((r.source, r.destination, r.ethertype), (identity.me, OTHER, 0x1234));
            prop_assert_eq!(r.tid, qos.then_some(6));
            prop_assert_eq!(r.payload, [&payload[..], &payload[..]].concat());
            prop_assert_eq!(Header::parse(mpdu).unwrap().wants_ack(), !qos);
        }
    }
}
