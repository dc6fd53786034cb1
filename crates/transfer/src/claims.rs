//! Who may write where: one place, one transfer.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use radio::{Duration, Instant};

/// A sender that was silent for so long, or for half of the patience, gives way to one that sends the same again.
const SILENT: Duration = Duration::from_ms(2_000);

/// A wish for a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The place: names differ.
    pub name: String,
    /// Octets of the content, if it is a file that can be gone on with.
    pub size: Option<u64>,
    /// Since when it is wanted.
    pub since: Instant,
}

/// What becomes of a wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ruling {
    /// It has the place.
    Yes,
    /// Who has it may be gone: to be asked again.
    Wait,
    /// This one has it.
    No(Taken),
}

/// A place that somebody has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Who.
    pub by: SocketAddr,
    /// Since when nothing was heard of him.
    pub silent: Duration,
    /// When he is given up, if that goes on.
    pub left: Duration,
}

struct Claim {
    holder: SocketAddr,
    size: Option<u64>,
    /// When the holder was last heard.
    heard: Instant,
    /// Who is to have it instead.
    lost: Option<SocketAddr>,
}

/// Places that are taken.
pub struct Claims {
    patience: Duration,
    silent: Duration,
    taken: BTreeMap<String, Claim>,
}

impl Claims {
    /// None is. `patience`: of the connections.
    pub fn new(patience: Duration) -> Claims {
        Claims {
            patience,
            silent: SILENT.min(Duration::from_ns(patience.as_ns() / 2)),
            taken: BTreeMap::new(),
        }
    }

    /// `peer` wants a place. Who has it keeps it, unless it has fallen silent and the newcomer sends the same file, as far
    /// as name and length tell: then that is taken for a sender that was killed and has begun anew.
    pub fn ask(&mut self, now: Instant, peer: SocketAddr, wish: &Wish) -> Ruling {
        let Some(claim) = self.taken.get_mut(&wish.name) else {
            let claim = Claim {
                holder: peer,
                size: wish.size,
                heard: now,
                lost: None,
            };
            self.taken.insert(wish.name.clone(), claim);
            return Ruling::Yes;
        };
        let resumes = wish.size.is_some() && wish.size == claim.size;
        // what it had sent before it was killed may come late
        if !resumes || claim.heard > wish.since.after(self.silent) {
            let silent = now.since(claim.heard);
            return Ruling::No(Taken {
                by: claim.holder,
                silent,
                left: claim.heard.after(self.patience).since(now),
            });
        }
        if now.since(claim.heard) >= self.silent {
            claim.lost.get_or_insert(peer);
        }
        Ruling::Wait
    }

    /// Whether `peer`, last heard at `heard`, has lost its place, and to whom.
    pub fn lost(&mut self, peer: SocketAddr, heard: Instant) -> Option<SocketAddr> {
        let claim = self.taken.values_mut().find(|c| c.holder == peer)?;
        claim.heard = heard;
        claim.lost
    }

    /// `peer` has left its place.
    pub fn release(&mut self, peer: SocketAddr) {
        self.taken.retain(|_, c| c.holder != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u16) -> SocketAddr {
        ([127, 0, 0, 1], n).into()
    }

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn wish(name: &str, size: Option<u64>, ms: u64) -> Wish {
        Wish {
            name: name.into(),
            size,
            since: at(ms),
        }
    }

    fn no(by: u16, silent_ms: u64) -> Ruling {
        Ruling::No(Taken {
            by: peer(by),
            silent: Duration::from_ms(silent_ms),
            left: Duration::from_ms(60_000 - silent_ms),
        })
    }

    fn claims() -> Claims {
        let mut claims = Claims::new(Duration::from_ms(60_000));
        let first = wish("x", Some(7), 0);
        assert_eq!(claims.ask(at(0), peer(1), &first), Ruling::Yes);
        claims
    }

    #[test]
    fn one_place_one_transfer() {
        let mut claims = claims();
        assert_eq!(claims.ask(at(1), peer(2), &wish("y", Some(7), 1)), Ruling::Yes);
        for size in [None, Some(8)] {
            let other = wish("x", size, 1);
            assert_eq!(claims.ask(at(50_000), peer(3), &other), no(1, 50_000));
        }
        claims.release(peer(1));
        assert_eq!(claims.ask(at(2), peer(3), &wish("x", None, 1)), Ruling::Yes);
    }

    #[test]
    fn who_is_heard_stays() {
        let mut claims = claims();
        let same = wish("x", Some(7), 100);
        assert_eq!(claims.ask(at(100), peer(2), &same), Ruling::Wait);
        assert_eq!(claims.lost(peer(1), at(2_100)), None);
        assert_eq!(claims.ask(at(2_100), peer(2), &same), Ruling::Wait);
        assert_eq!(claims.lost(peer(1), at(2_101)), None);
        assert_eq!(claims.ask(at(2_101), peer(2), &same), no(1, 0));
    }

    #[test]
    fn who_is_silent_gives_way_to_one() {
        let mut claims = claims();
        // late datagrams
        assert_eq!(claims.lost(peer(1), at(500)), None);
        let same = wish("x", Some(7), 100);
        assert_eq!(claims.ask(at(2_499), peer(2), &same), Ruling::Wait);
        assert_eq!(claims.lost(peer(1), at(500)), None);
        assert_eq!(claims.ask(at(2_500), peer(2), &same), Ruling::Wait);
        assert_eq!(claims.ask(at(2_500), peer(3), &same), Ruling::Wait);
        assert_eq!(claims.lost(peer(1), at(500)), Some(peer(2)));
        claims.release(peer(1));
        assert_eq!(claims.ask(at(2_600), peer(2), &same), Ruling::Yes);
        assert_eq!(claims.ask(at(2_600), peer(3), &same), no(2, 0));
    }
}
