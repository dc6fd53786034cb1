//! CCMP-128: data frames that nobody without the key reads, makes or plays again (IEEE 802.11-2020, 12.5.3).
//!
//! ```text
//! header | PN0 PN1 0 KeyID PN2..PN5 | body, encrypted | MIC
//!  24..     8 octets                                    8 octets
//! ```
//!
//! The key is shared beforehand and the same for all ([`Secret`]); there is no handshake, so nothing but the key itself says
//! who may take part. Each transmitter counts its frames by a packet number (PN), which with its address makes the nonce: a
//! PN must never come back with the same key, not even after a restart. What is received must have a higher PN than
//! all before it from the same transmitter with the same traffic identifier.

use aes::Aes128;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U8, U13};
use ccm::{Ccm, Nonce, Tag};
use core::fmt;
use core::num::NonZeroU64;
use frame::MacAddr;
use frame::mac::header::Header;
use frame::mac::{Flags, Kind};

/// Octets of the header between MAC header and body.
pub const HEADER_OCTETS: usize = 8;
/// Octets of the MIC behind the body.
pub const MIC_OCTETS: usize = 8;
/// Octets that a frame becomes longer by.
pub const OVERHEAD_OCTETS: usize = HEADER_OCTETS + MIC_OCTETS;
/// Packet numbers have 48 bits.
const MAX_PN: u64 = (1 << 48) - 1;
/// Bit of the octet with the key's number: there are more octets behind it.
const EXTENDED: u8 = 1 << 5;
/// Transmitters (and their traffic identifiers) whose packet numbers are known; the one not heard for longest makes room.
const KNOWN: usize = 16;
/// Octets of the longest AAD: with four addresses and QoS.
const MAX_AAD: usize = 30;

/// A key that all stations of a network share, and where this station's packet numbers begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    /// The temporal key.
    pub key: [u8; 16],
    /// Number of the key, 0 to 3.
    pub id: u8,
    /// Packet number of the first frame, below 2^48: above all that this station has used with the key. Who has no memory
    /// takes a clock: seconds since 1970, times 2^16.
    pub first_pn: u64,
}

impl fmt::Debug for Secret {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret {{ id: {}, first_pn: {} }}", self.id, self.first_pn)
    }
}

/// Why a frame is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is not protected.
    Plain,
    /// It is no data frame, too short, or of another key.
    Unreadable,
    /// The last frame of its transmitter once more, with the retry bit: an ACK was lost.
    Again,
    /// Its packet number is not higher than one before.
    Replay,
    /// It is not what somebody with the key has sent.
    Mic,
}

/// What has been opened and what not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CcmpCounters {
    /// Frames protected.
    pub sealed: u64,
    /// Frames opened.
    pub opened: u64,
    /// See [`Fault::Plain`].
    pub plain: u64,
    /// See [`Fault::Unreadable`].
    pub unreadable: u64,
    /// See [`Fault::Again`].
    pub again: u64,
    /// See [`Fault::Replay`].
    pub replays: u64,
    /// See [`Fault::Mic`].
    pub mic_failures: u64,
}

/// The newest packet number of a transmitter.
#[derive(Clone, Copy, Debug)]
struct Newest {
    from: (MacAddr, u8),
    /// None is 0 (12.5.3.4.4).
    pn: NonZeroU64,
}

/// One station's side.
#[derive(Clone)]
pub struct Ccmp {
    cipher: Ccm<Aes128, U8, U13>,
    id: u8,
    next_pn: u64,
    /// Those heard last first.
    known: [Option<Newest>; KNOWN],
    counters: CcmpCounters,
}

impl fmt::Debug for Ccmp {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ccmp {{ next_pn: {}, {:?} }}", self.next_pn, self.counters)
    }
}

/// AAD (12.5.3.3.3) and nonce (12.5.3.3.4) of a frame.
struct Bound {
    aad: [u8; MAX_AAD],
    aad_octets: usize,
    nonce: [u8; 13],
    from: MacAddr,
    tid: u8,
}

impl Bound {
    fn new(mpdu: &[u8], pn: u64) -> Option<Bound> {
        let header = Header::parse(mpdu).ok()?;
        if !matches!(header.kind(), Kind::DATA | Kind::QOS_DATA) {
            return None;
        }
        let from = header.transmitter()?;
        let (is_qos, has_four) = (header.kind() == Kind::QOS_DATA, mpdu.get(1)? & 3 == 3);
        let plain = if has_four { 30 } else { 24 };
        let mut aad = [0; MAX_AAD];
        // subtype but its QoS bit, Retry, Power Management, More Data and, in QoS frames, Order are what may change
        aad[0] = mpdu[0] & 0b1000_1111;
        let order = if is_qos { 0 } else { 0x80 };
        aad[1] = mpdu[1] & (0b0000_0111 | order) | 0x40;
        aad[2..20].copy_from_slice(mpdu.get(4..22)?);
        aad[20] = mpdu.get(22)? & 0x0f;
        let mut at = 22;
        if has_four {
            aad[at..at + 6].copy_from_slice(mpdu.get(24..30)?);
            at += 6;
        }
        let tid = if is_qos { mpdu.get(plain)? & 0x0f } else { 0 };
        if is_qos {
            aad[at] = tid;
            at += 2;
        }
        let mut nonce = [0; 13];
        nonce[0] = tid;
        nonce[1..7].copy_from_slice(&from.0);
        nonce[7..].copy_from_slice(&pn.to_be_bytes()[2..]);
        Some(Bound {
            aad,
            aad_octets: at,
            nonce,
            from,
            tid,
        })
    }

    fn aad(&self) -> &[u8] {
        &self.aad[..self.aad_octets]
    }
}

/// Octets of the MAC header.
fn header_octets(mpdu: &[u8]) -> Option<usize> {
    Some(Header::parse(mpdu).ok()?.octets())
}

/// The packet number of a data frame that is protected like this.
pub fn packet_number(mpdu: &[u8]) -> Option<u64> {
    let header = Header::parse(mpdu).ok()?;
    let is_data = matches!(header.kind(), Kind::DATA | Kind::QOS_DATA);
    let is_protected = is_data && mpdu[1] & Flags::PROTECTED.0 != 0;
    let head = mpdu.get(header.octets()..)?.first_chunk()?;
    (is_protected && head[3] & EXTENDED != 0).then(|| read_pn(head))
}

fn read_pn(head: &[u8; HEADER_OCTETS]) -> u64 {
    let [a, b, _, _, c, d, e, f] = *head;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

fn ccmp_header(pn: u64, id: u8) -> [u8; HEADER_OCTETS] {
    let [a, b, c, d, e, f, ..] = pn.to_le_bytes();
    [a, b, 0, EXTENDED | id << 6, c, d, e, f]
}

impl Ccmp {
    /// With this key.
    pub fn new(secret: &Secret) -> Ccmp {
        Ccmp {
            cipher: Ccm::new(&secret.key.into()),
            id: secret.id & 3,
            next_pn: secret.first_pn.max(1),
            known: [None; KNOWN],
            counters: CcmpCounters::default(),
        }
    }

    /// Packet numbers go on from `first_pn`, unless they are there already.
    pub fn number_from(&mut self, first_pn: u64) {
        self.next_pn = self.next_pn.max(first_pn);
    }

    /// What it has counted.
    pub fn counters(&self) -> &CcmpCounters {
        &self.counters
    }

    /// Protects the data frame of `octets` octets in `mpdu`, which has [`OVERHEAD_OCTETS`] behind it, and tells the octets
    /// that it has then. `None` if it is no data frame, there is no room, or the packet numbers are used up; it is then not
    /// to be sent.
    pub fn seal(&mut self, mpdu: &mut [u8], octets: usize) -> Option<usize> {
        let pn = self.next_pn;
        let at = header_octets(mpdu.get(..octets)?)?;
        if pn > MAX_PN || octets + OVERHEAD_OCTETS > mpdu.len() {
            return None;
        }
        mpdu[1] |= Flags::PROTECTED.0;
        let bound = Bound::new(&mpdu[..octets], pn)?;
        mpdu.copy_within(at..octets, at + HEADER_OCTETS);
        mpdu[at..at + HEADER_OCTETS].copy_from_slice(&ccmp_header(pn, self.id));
        let end = octets + HEADER_OCTETS;
        let body = &mut mpdu[at + HEADER_OCTETS..end];
        let nonce = Nonce::from(bound.nonce);
        let mic = self
            .cipher
            .encrypt_inout_detached(&nonce, bound.aad(), body.into())
            .ok()?;
        mpdu[end..end + MIC_OCTETS].copy_from_slice(&mic);
        self.next_pn += 1;
        self.counters.sealed += 1;
        Some(end + MIC_OCTETS)
    }

    /// Opens a data frame into `out`: the same frame, without protection. `out` is as long as the frame at least.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn open<'o>(&mut self, mpdu: &[u8], out: &'o mut [u8]) -> Result<&'o [u8], Fault> {
        let opened = self.try_open(mpdu, out);
        *match opened {
            Ok(_) => &mut self.counters.opened,
            Err(Fault::Plain) => &mut self.counters.plain,
            Err(Fault::Unreadable) => &mut self.counters.unreadable,
            Err(Fault::Again) => &mut self.counters.again,
            Err(Fault::Replay) => &mut self.counters.replays,
            Err(Fault::Mic) => &mut self.counters.mic_failures,
        } += 1;
        opened.map(|octets| &out[..octets])
    }

    fn try_open(&mut self, mpdu: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
        let bad = Fault::Unreadable;
        let at = header_octets(mpdu).ok_or(bad)?;
        if mpdu[1] & Flags::PROTECTED.0 == 0 {
            return Err(Fault::Plain);
        }
        let (head, rest) = mpdu[at..].split_first_chunk::<HEADER_OCTETS>().ok_or(bad)?;
        let (body, mic) = rest.split_last_chunk::<MIC_OCTETS>().ok_or(bad)?;
        if head[3] & EXTENDED == 0 || head[3] >> 6 != self.id {
            return Err(bad);
        }
        let bound = Bound::new(mpdu, read_pn(head)).ok_or(bad)?;
        let pn = NonZeroU64::new(read_pn(head)).ok_or(Fault::Replay)?;
        let from = (bound.from, bound.tid);
        if let Some(known) = self.known.iter().flatten().find(|k| k.from == from && pn <= k.pn) {
            let again = pn == known.pn && mpdu[1] & Flags::RETRY.0 != 0;
            return Err(if again { Fault::Again } else { Fault::Replay });
        }
        let octets = at + body.len();
        let plain = out.get_mut(..octets).ok_or(bad)?;
        plain[..at].copy_from_slice(&mpdu[..at]);
        plain[at..].copy_from_slice(body);
        let nonce = Nonce::from(bound.nonce);
        self.cipher
            .decrypt_inout_detached(&nonce, bound.aad(), (&mut plain[at..]).into(), &Tag::from(*mic))
            .map_err(|_| Fault::Mic)?;
        plain[1] &= !Flags::PROTECTED.0;
        self.remember(from, pn);
        Ok(octets)
    }

    /// Only what was made with the key gets here.
    fn remember(&mut self, from: (MacAddr, u8), pn: NonZeroU64) {
        let is_it = |k: &Option<Newest>| k.is_none_or(|k| k.from == from);
        let place = self.known.iter().position(is_it).unwrap_or(KNOWN - 1);
        self.known[..=place].rotate_right(1);
        self.known[0] = Some(Newest { from, pn });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Wire;
    use frame::mac::{AckPolicy, Data, QosControl, SequenceControl};
    use proptest::prelude::*;

    const SECRET: Secret = Secret {
        key: [
            0xc9, 0x7c, 0x1f, 0x67, 0xce, 0x37, 0x11, 0x85, 0x51, 0x4a, 0x8a, 0x19, 0xf2, 0xbd, 0xd5, 0x2f,
        ],
        id: 0,
        first_pn: 0xb503_9776_e70c,
    };
    /// The frame of the standard's test vector (J.6.4).
    #[rustfmt::skip]
    const PLAIN: [u8; 44] = [
        0x08, 0x48, 0xc3, 0x2c, 0x0f, 0xd2, 0xe1, 0x28, 0xa5, 0x7c, 0x50, 0x30, 0xf1, 0x84, 0x44, 0x08, 0xab, 0xae, 0xa5, 0xb8,
        0xfc, 0xba, 0x80, 0x33,
        0xf8, 0xba, 0x1a, 0x55, 0xd0, 0x2f, 0x85, 0xae, 0x96, 0x7b, 0xb6, 0x2f, 0xb6, 0xcd, 0xa8, 0xeb, 0x7e, 0x78, 0xa0, 0x50,
    ];
    #[rustfmt::skip]
    const SEALED: [u8; 60] = [
        0x08, 0x48, 0xc3, 0x2c, 0x0f, 0xd2, 0xe1, 0x28, 0xa5, 0x7c, 0x50, 0x30, 0xf1, 0x84, 0x44, 0x08, 0xab, 0xae, 0xa5, 0xb8,
        0xfc, 0xba, 0x80, 0x33,
        0x0c, 0xe7, 0x00, 0x20, 0x76, 0x97, 0x03, 0xb5,
        0xf3, 0xd0, 0xa2, 0xfe, 0x9a, 0x3d, 0xbf, 0x23, 0x42, 0xa6, 0x43, 0xe4, 0x32, 0x46, 0xe8, 0x0c, 0x3c, 0x04, 0xd0, 0x19,
        0x78, 0x45, 0xce, 0x0b, 0x16, 0xf9, 0x76, 0x23,
    ];

    fn seal(ccmp: &mut Ccmp, plain: &[u8]) -> ([u8; 256], usize) {
        let mut out = [0; 256];
        out[..plain.len()].copy_from_slice(plain);
        let octets = ccmp.seal(&mut out, plain.len()).unwrap();
        (out, octets)
    }

    fn open(ccmp: &mut Ccmp, mpdu: &[u8]) -> Result<usize, Fault> {
        let mut out = [0; 256];
        ccmp.open(mpdu, &mut out).map(|plain| plain.len())
    }

    #[test]
    fn the_standards_test_vector() {
        let (sealed, octets) = seal(&mut Ccmp::new(&SECRET), &PLAIN);
        assert_eq!(sealed[..octets], SEALED);
        let mut out = [0; 60];
        let opened = Ccmp::new(&SECRET).open(&SEALED, &mut out).unwrap().to_vec();
        let mut plain = PLAIN;
        plain[1] &= !Flags::PROTECTED.0;
        assert_eq!(opened, plain);
    }

    #[test]
    fn a_frame_is_opened_once() {
        let (mut to, mut from) = (Ccmp::new(&SECRET), Ccmp::new(&SECRET));
        let (first, n) = seal(&mut from, &PLAIN);
        let (second, _) = seal(&mut from, &PLAIN);
        assert_eq!(open(&mut to, &second[..n]), Ok(PLAIN.len()));
        // the vector has the retry bit
        assert_eq!(open(&mut to, &second[..n]), Err(Fault::Again));
        let mut anew = second;
        anew[1] &= !Flags::RETRY.0;
        assert_eq!(open(&mut to, &anew[..n]), Err(Fault::Replay));
        assert_eq!(open(&mut to, &first[..n]), Err(Fault::Replay), "older");
        assert_eq!(to.counters().replays, 2);
        // each traffic identifier counts for itself
        let me = MacAddr::local(1);
        let mut qos = [0; 40];
        let data = Data {
            qos: Some(QosControl::new(6, AckPolicy::Normal)),
            sequence: SequenceControl::new(7, 0),
            ..Data::direct(MacAddr::local(2), me, MacAddr::local(3), b"hello")
        };
        let octets = data.emit(&mut qos).unwrap();
        let mut slow = Ccmp::new(&Secret {
            first_pn: 1,
            ..SECRET
        });
        let (sealed, n) = seal(&mut slow, &qos[..octets]);
        assert_eq!(open(&mut to, &sealed[..n]), Ok(octets));
    }

    #[test]
    fn what_may_change_on_the_way_does_not_matter_and_all_else_does() {
        for at in 0..SEALED.len() {
            for bit in 0..8 {
                let mut changed = SEALED;
                changed[at] ^= 1 << bit;
                let opened = open(&mut Ccmp::new(&SECRET), &changed);
                // Retry, Power Management, More Data; Duration; the sequence number; a reserved octet and bits beside the key's number
                let free = at == 1 && matches!(bit, 3..=5)
                    || matches!(at, 2 | 3 | 23 | 26)
                    || at == 22 && bit >= 4
                    || at == 27 && bit < 5;
                assert_eq!(opened.is_ok(), free, "octet {at}, bit {bit}: {opened:?}");
            }
        }
    }

    #[test]
    fn no_packet_number_comes_twice() {
        let mut last = Ccmp::new(&Secret {
            first_pn: MAX_PN,
            ..SECRET
        });
        seal(&mut last, &PLAIN);
        let mut out = [0; 256];
        out[..PLAIN.len()].copy_from_slice(&PLAIN);
        assert_eq!(last.seal(&mut out, PLAIN.len()), None, "used up");
        // a number that is known later is never below one that was used
        let mut later = Ccmp::new(&SECRET);
        let number = |frame: &[u8]| packet_number(frame).unwrap();
        for (from, is) in [
            (0, SECRET.first_pn),
            (SECRET.first_pn + 9, SECRET.first_pn + 9),
            (3, SECRET.first_pn + 10),
        ] {
            later.number_from(from);
            assert_eq!(number(&seal(&mut later, &PLAIN).0), is);
        }
        assert_eq!(packet_number(&PLAIN), None);
        assert_eq!(packet_number(&SEALED[..30]), None);
        let mut short = [0; 59];
        short[..PLAIN.len()].copy_from_slice(&PLAIN);
        assert_eq!(Ccmp::new(&SECRET).seal(&mut short, PLAIN.len()), None, "no room");
    }

    /// No packet has the number 0; and of seventeen transmitters the one not heard for longest is forgotten.
    #[test]
    fn what_is_old_is_known_of_sixteen() {
        let from = |n: u8, pn: u64| {
            let mut plain = PLAIN;
            plain[15] = n;
            let mut ccmp = Ccmp::new(&SECRET);
            ccmp.next_pn = pn;
            let (sealed, octets) = seal(&mut ccmp, &plain);
            sealed[..octets].to_vec()
        };
        let mut here = Ccmp::new(&SECRET);
        assert_eq!(open(&mut here, &from(1, 0)), Err(Fault::Replay));
        for n in 1..=16 {
            assert!(open(&mut here, &from(n, 5)).is_ok());
        }
        assert!(open(&mut here, &from(1, 6)).is_ok(), "heard again");
        assert!(open(&mut here, &from(17, 5)).is_ok());
        let old = [1, 3, 16, 17].map(|n| open(&mut here, &from(n, 4)));
        assert_eq!(old, [Err(Fault::Replay); 4]);
        assert!(
            open(&mut here, &from(2, 5)).is_ok(),
            "nobody knows that this is old"
        );
    }

    #[test]
    fn the_key_is_not_printed() {
        let text = std::format!("{SECRET:?} {:?}", Ccmp::new(&SECRET));
        assert!(!text.contains("201") && !text.contains("c9"), "{text}");
    }

    proptest! {
        #[test]
        fn any_octets_are_taken(mpdu in proptest::collection::vec(any::<u8>(), 0..120), protect: bool) {
            let mut mpdu = mpdu;
            if protect && mpdu.len() > 1 {
                (mpdu[0], mpdu[1]) = (mpdu[0] & 0x80 | 0x08, mpdu[1] | 0x40);
            }
            let mut out = [0; 128];
            let mut ccmp = Ccmp::new(&SECRET);
            prop_assert!(ccmp.open(&mpdu, &mut out).is_err(), "nobody guesses a MIC");
            let octets = mpdu.len();
            let mut room = mpdu.clone();
            room.resize(octets + OVERHEAD_OCTETS, 0);
            if let Some(sealed) = ccmp.seal(&mut room, octets) {
                let opened = ccmp.open(&room[..sealed], &mut out).map(<[u8]>::len);
                // a header that says so of itself is protected already, and its own header is none of the key's
                prop_assert_eq!(opened, Ok(octets));
            }
        }
    }
}
