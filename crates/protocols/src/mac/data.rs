//! MSDUs in data frames: addresses by role, sequence numbers on the way out, duplicates on the way in.
//!
//! A payload travels behind LLC and SNAP ([`Snap`]) in the body of a [`Data`] frame with three addresses.

use frame::llc::Snap;
use frame::mac::{AckPolicy, Data, Flags, Header, QosControl, SequenceControl};
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
    /// Frames to groups are QoS data, too.
    qos_to_groups: bool,
    ethertype: u16,
    next: [u16; 17],
}

impl Framer {
    /// `qos`: build QoS data (26 octets of header) instead of plain data (24).
    pub const fn new(identity: Identity, qos: bool, ethertype: u16) -> Framer {
        Framer {
            identity,
            qos,
            qos_to_groups: false,
            ethertype,
            next: [0; 17],
        }
    }

    /// QoS data to everybody, groups included: for cells whose members are all known to read it. Only QoS data say which
    /// queue they are for, which Linux goes by.
    pub const fn all_qos(identity: Identity, ethertype: u16) -> Framer {
        Framer {
            qos_to_groups: true,
            ..Framer::new(identity, true, ethertype)
        }
    }

    /// Who frames are from.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Writes the frame for an MSDU whose payload is `head` followed by `payload`, with the next sequence number,
    /// and returns its octets (without FCS). `no_ack` becomes the ack policy of QoS frames, and is that of all to groups
    /// (IEEE 802.11-2016, Table 9-9); plain data cannot say it. Frames to groups are plain data unless it is
    /// [`Framer::all_qos`].
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
        let group = to.is_group();
        let tid = (self.qos && (!group || self.qos_to_groups)).then(|| category.tid());
        let policy = if no_ack || group {
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
pub const DUPLICATE_WINDOW: u16 = 128;

/// The sender's side of [`Duplicates`]: how far the numbers of each traffic identifier have come. What is repeated with a number that
/// receivers have forgotten would count as new there.
#[derive(Clone, Debug)]
pub struct Newest {
    /// The newest number that has gone on its way, and all numbers up to it, modulo 2^32. The last one is that of frames without QoS.
    counters: [Option<(u16, u32)>; 17],
}

/// A frame that has gone on its way, for [`Newest::is_forgotten`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    counter: u8,
    place: u32,
}

impl Newest {
    /// Nothing was sent.
    pub const NONE: Newest = Newest { counters: [None; 17] };

    /// A frame goes on its way for the first time; `None` of one without a number.
    pub fn sent(&mut self, mpdu: &[u8]) -> Option<Gone> {
        let header = Header::parse(mpdu).ok()?;
        let counter = header.qos().map_or(16, QosControl::tid);
        let number = header.sequence()?.number();
        let (newest, far) = self.counters[usize::from(counter)].get_or_insert((number, 0));
        let (ahead, behind) = (
            number.wrapping_sub(*newest) & 0xfff,
            newest.wrapping_sub(number) & 0xfff,
        );
        // no more than others have overtaken it
        let place = if behind < DUPLICATE_WINDOW {
            far.wrapping_sub(behind.into())
        } else {
            *newest = number;
            *far = far.wrapping_add(ahead.into());
            *far
        };
        Some(Gone { counter, place })
    }

    /// Whether so many newer ones have gone that a receiver may not know any more that it has heard this one.
    pub fn is_forgotten(&self, gone: Gone) -> bool {
        let far = self.counters[usize::from(gone.counter)].map_or(0, |(_, far)| far);
        far.wrapping_sub(gone.place) >= DUPLICATE_WINDOW.into()
    }
}

/// The receiver's memory of what it has heard: a frame with the retry bit whose sequence number was heard before
/// is a duplicate (IEEE 802.11-2016, 10.3.2.11.3). The standard asks for the last frame of each transmitter and
/// traffic identifier; here it is a window of the last [`DUPLICATE_WINDOW`] numbers, because overlays may send other frames
/// between a frame and its retry. Holds `N` windows; the one not heard for longest makes room.
#[derive(Clone, Debug)]
pub struct Duplicates<const N: usize> {
    windows: [Option<Window>; N],
    /// Frames so far, for the order in which windows were used.
    clock: u32,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    from: (MacAddr, Option<u8>),
    /// The newest number.
    newest: u16,
    /// Bit i: the number `newest - i` was heard. Two halves, the lower one first: a number of 128 bits would be aligned to 16 octets.
    heard: [u64; 2],
    /// The last frame was a retry with a number behind the window.
    behind: Option<u16>,
    used: u32,
}

impl Window {
    fn new(from: (MacAddr, Option<u8>), number: u16) -> Window {
        Window {
            from,
            newest: number,
            heard: [1, 0],
            behind: None,
            used: 0,
        }
    }

    /// Marks `number`; true if it was heard before, as far as the window goes back.
    fn mark(&mut self, number: u16, retry: bool) -> bool {
        /// Numbers of which one is behind another, and not ahead of it.
        const HALF: u16 = 2_048;
        let distance = |to: u16, from: u16| to.wrapping_sub(from) & 0xfff;
        let (ahead, behind) = (distance(number, self.newest), distance(self.newest, number));
        let last = self.behind.take();
        if behind < DUPLICATE_WINDOW {
            let (half, bit) = (usize::from(behind / 64), 1 << (behind % 64));
            let before = self.heard[half] & bit != 0;
            self.heard[half] |= bit;
            return before;
        }
        if retry && behind < HALF {
            match last.map(|last| distance(number, last)) {
                // two in a row are no stragglers: the sender has started again
                Some(more @ 1..DUPLICATE_WINDOW) => self.move_on(more, [1, 0]),
                // what was heard since then must not be forgotten for it
                again => {
                    self.behind = Some(number);
                    return again == Some(0);
                }
            }
        } else if ahead < DUPLICATE_WINDOW {
            self.move_on(ahead, self.heard);
        } else {
            // a gap, or the sender has started again
            self.heard = [1, 0];
        }
        self.newest = number;
        false
    }

    /// `heard`, and by so many numbers later the newest one.
    fn move_on(&mut self, by: u16, [low, high]: [u64; 2]) {
        let heard = (u128::from(high) << 64 | u128::from(low)) << by | 1;
        self.heard = [heard as u64, (heard >> 64) as u64];
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
        if self.clock == u32::MAX {
            // once in four billion frames the order is forgotten
            self.windows.iter_mut().flatten().for_each(|w| w.used = 0);
            self.clock = 0;
        }
        self.clock += 1;
        let from = (frame.transmitter, frame.tid);
        let number = frame.sequence.number();
        if let Some(known) = self.windows.iter_mut().flatten().find(|w| w.from == from) {
            known.used = self.clock;
            return known.mark(number, frame.retry) && frame.retry;
        }
        // an empty place, or that of the one not heard for longest
        if let Some(place) = self.windows.iter_mut().min_by_key(|w| w.map_or(0, |w| w.used)) {
            *place = Some(Window {
                used: self.clock,
                ..Window::new(from, number)
            });
        }
        false
    }
}

#[cfg(test)]
mod tests;
