//! What a host believes of the slots of its cell, and how that is written in two bits for each.

use frame::MacAddr;

/// Rounds without a frame in a slot after which its owner counts as gone, if nobody who is heard says otherwise.
pub const SILENT_ROUNDS: u8 = 3;
/// Slots of a contention-free period at most: what the view in a frame has room for.
pub const MAX_SLOTS: usize = 16;
/// Slots of a contention period at most, so requests that can be granted in one round.
pub const MAX_REQUESTS: usize = 8;

/// One slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Entry {
    /// Nobody's.
    Free,
    /// Promised in the last contention period; to be listed in this round.
    Pending(MacAddr),
    /// Somebody's; who, if it is known, and for how many rounds nothing was heard in it.
    Owned {
        /// Its owner.
        host: Option<MacAddr>,
        /// Rounds.
        silent: u8,
    },
    /// Two hosts were heard in it, or two were promised it; `told` once this was in a frame of ours for a round.
    Conflict {
        /// A whole round has passed.
        told: bool,
    },
}

impl Entry {
    /// Owned, by whom nobody has said.
    pub const HEARSAY: Entry = Entry::Owned {
        host: None,
        silent: 0,
    };

    /// Owned by `host`, heard just now.
    pub const fn of(host: MacAddr) -> Entry {
        Entry::Owned {
            host: Some(host),
            silent: 0,
        }
    }

    /// Who it belongs to or is promised to.
    pub const fn host(self) -> Option<MacAddr> {
        match self {
            Entry::Pending(host) => Some(host),
            Entry::Owned { host, .. } => host,
            Entry::Free | Entry::Conflict { .. } => None,
        }
    }

    /// As others are told. A slot that was silent for too long is told as free before it is: it becomes free when
    /// all agree.
    pub const fn code(self) -> Code {
        match self {
            Entry::Free => Code::Free,
            Entry::Owned { silent, .. } if silent >= SILENT_ROUNDS => Code::Free,
            Entry::Owned { .. } => Code::Owned,
            Entry::Pending(_) => Code::Pending,
            Entry::Conflict { .. } => Code::Conflict,
        }
    }
}

/// Two bits of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// 00.
    Free,
    /// 01.
    Owned,
    /// 10.
    Pending,
    /// 11.
    Conflict,
}

/// What a host believes of all slots: two bits for each, slot 0 in the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct View(pub u32);

impl View {
    /// That of a table.
    pub fn of(table: &[Entry]) -> View {
        let codes = table.iter().take(MAX_SLOTS).enumerate();
        View(codes.fold(0, |all, (i, entry)| all | (entry.code() as u32) << (2 * i)))
    }

    /// One slot.
    pub const fn code(self, slot: usize) -> Code {
        match self.0 >> (2 * slot) & 3 {
            0 => Code::Free,
            1 => Code::Owned,
            2 => Code::Pending,
            _ => Code::Conflict,
        }
    }
}

/// The promises that a frame lists: host and slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promises {
    list: [(MacAddr, u8); MAX_REQUESTS],
    count: u8,
}

impl Promises {
    /// One more; what does not fit is left out.
    pub fn push(&mut self, host: MacAddr, slot: u8) {
        if let Some(place) = self.list.get_mut(usize::from(self.count)) {
            *place = (host, slot);
            self.count += 1;
        }
    }

    /// All, lowest slot first.
    pub fn as_slice(&self) -> &[(MacAddr, u8)] {
        &self.list[..usize::from(self.count).min(MAX_REQUESTS)]
    }

    /// The slot that `host` is promised.
    pub fn slot_of(&self, host: MacAddr) -> Option<u8> {
        self.as_slice().iter().find(|p| p.0 == host).map(|p| p.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_two_bits_for_each_slot() {
        let a = MacAddr::local(1);
        let silent = Entry::Owned {
            host: Some(a),
            silent: SILENT_ROUNDS,
        };
        let mut table = [Entry::Free; MAX_SLOTS];
        (table[1], table[2], table[3]) = (Entry::of(a), Entry::Pending(a), Entry::Conflict { told: false });
        (table[4], table[15]) = (silent, Entry::HEARSAY);
        let view = View::of(&table);
        assert_eq!(view.0, 0b01 << 30 | 0b11_10_01_00);
        let codes = [0, 1, 2, 3, 4, 15].map(|i| view.code(i));
        let (free, owned) = (Code::Free, Code::Owned);
        assert_eq!(codes, [free, owned, Code::Pending, Code::Conflict, free, owned]);
    }

    #[test]
    fn promises_have_an_end() {
        let mut promises = Promises::default();
        for i in 0..20 {
            promises.push(MacAddr::local(i.into()), i);
        }
        assert_eq!(promises.as_slice().len(), MAX_REQUESTS);
        assert_eq!(promises.slot_of(MacAddr::local(3)), Some(3));
        assert_eq!(promises.slot_of(MacAddr::local(8)), None);
    }
}
