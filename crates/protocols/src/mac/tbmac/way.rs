//! The way of a frame to another cell. Cells have coordinates, so that no table is needed: a frame goes over a border behind
//! which it is nearer to the cell of its receiver. If nobody knows that cell the frame is a search, and goes over all borders
//! behind which it is farther from where it began. Neither comes to a cell twice, whatever the map is: the distance gets
//! smaller with each border, or larger. There is a bound on the borders, too ([`CROSSINGS`]), and one on the time ([`LIFETIME`]).

use super::cell::{BORDERS, Cell};

/// Borders that a frame goes over at most.
pub const CROSSINGS: u8 = 15;

/// Parts of a round in which the lifetime of a frame is told.
pub const PARTS: u64 = 256;

/// No frame is on its way for longer, in [`PARTS`] of a round: names of frames repeat after 256 rounds.
pub const LIFETIME: u16 = 128 * PARTS as u16;

/// Where a frame comes from and goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The cell of its sender.
    pub origin: Cell,
    /// The cell of its receiver; the origin itself if it is not known.
    pub to: Cell,
    /// The round in which its sender sent it, modulo 256: in a round it sends one.
    pub born: u8,
    /// Borders that it may still go over.
    pub left: u8,
    /// How long after the start of that round it may still be sent, in [`PARTS`] of a round.
    pub lifetime: u16,
}

/// A way from here on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Onward {
    /// The way.
    pub way: Way,
    /// The borders of this cell that it goes over, as bits 0 to 5.
    pub over: u8,
}

impl Way {
    /// From `origin` to `to`, or in search of it; it may be sent as long as any.
    pub fn new(origin: Cell, to: Option<Cell>, round: u64) -> Way {
        Way {
            origin,
            to: to.unwrap_or(origin),
            born: round as u8,
            left: CROSSINGS,
            lifetime: LIFETIME,
        }
    }

    /// Whether it may not be sent any more, `parts` after the start of `round`: up to 128 rounds later it is known.
    pub fn is_over(&self, round: u64, parts: u64) -> bool {
        let rounds = (round as u8).wrapping_sub(self.born);
        u64::from(rounds) * PARTS + parts > self.lifetime.min(LIFETIME).into()
    }

    /// Whether it is a search.
    pub fn is_search(&self) -> bool {
        self.to == self.origin
    }

    /// Whether the step from one cell to its neighbour is one on this way.
    pub fn leads(&self, from: Cell, to: Cell) -> bool {
        match self.is_search() {
            true => self.origin.distance(to) > self.origin.distance(from),
            false => self.to.distance(to) < self.to.distance(from),
        }
    }

    /// The borders of `cell` that it goes over, of those in `open`, as bits: one, or all of a search.
    pub fn over(&self, cell: Cell, open: u8) -> u8 {
        let leads = |b: &u8| open & 1 << b != 0 && self.leads(cell, cell.neighbour(*b));
        let all = (0..BORDERS).filter(leads).fold(0, |bits, b| bits | 1 << b);
        match (self.left, self.is_search()) {
            (0, _) => 0,
            (_, true) => all,
            // the lowest bit
            (_, false) => all & all.wrapping_neg(),
        }
    }

    /// The same behind a border.
    pub fn crossed(&self) -> Way {
        Way {
            left: self.left.saturating_sub(1).min(CROSSINGS - 1),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const ALL: u8 = 0x3f;

    fn cell() -> impl Strategy<Value = Cell> {
        (-8i16..9, -8i16..9).prop_map(|(q, r)| Cell { q, r })
    }

    #[test]
    fn the_first_of_the_open_borders_that_lead_there() {
        let here = Cell { q: 1, r: 1 };
        let way = |to| Way::new(Cell::default(), Some(to), 0);
        let north_east = way(Cell { q: 3, r: 2 });
        assert_eq!(north_east.over(here, ALL), 0b01, "east, or north-east");
        assert_eq!(north_east.over(here, 0b11_1110), 0b10);
        assert_eq!(north_east.over(here, 0b11_1100), 0, "no detour");
        assert_eq!(way(here).over(here, ALL), 0, "it is there");
        let over = Way {
            left: 0,
            ..north_east
        };
        assert_eq!(over.over(here, ALL), 0);
        assert_eq!(
            (over.crossed().left, north_east.crossed().left),
            (0, CROSSINGS - 1)
        );
        // a search from the cell in the south-west of the south-west
        let search = Way::new(Cell::default(), None, 300);
        assert_eq!((search.over(here, ALL), search.born), (0b11, 44));
        assert_eq!(search.over(Cell::default(), ALL), ALL);
    }

    /// Also where the number of the round begins anew.
    #[test]
    fn a_lifetime_ends() {
        let mut way = Way::new(Cell::default(), None, 511);
        let last = 511 + u64::from(LIFETIME) / PARTS;
        assert!(!way.is_over(511, 9) && !way.is_over(last, 0));
        assert!(way.is_over(last, 1) && way.is_over(511 + 255, 0));
        way.lifetime = 300;
        assert!(!way.is_over(512, 44) && way.is_over(512, 45));
        // nobody can make it longer
        way.lifetime = u16::MAX;
        assert!(way.is_over(last, 1));
    }

    /// The edge of the plane is one: no step over it leads anywhere twice.
    #[test]
    fn at_the_edge_of_the_plane() {
        let last = Cell { q: i16::MAX, r: 0 };
        let west = Way::new(last, Some(Cell { q: 5, r: 0 }), 0);
        assert_eq!(west.over(last, 1), 0);
        assert_eq!(west.over(last, ALL), 1 << 3);
    }

    proptest! {
        /// Borders open and close while a frame is on its way: it comes to no cell twice, and if it ends, then where it
        /// should or where no border leads on.
        #[test]
        fn no_way_is_a_circle(origin in cell(), to in cell(), open in proptest::collection::vec(0u8..64, 1..40)) {
            prop_assume!(origin != to);
            let mut way = Way::new(origin, Some(to), 0);
            let (mut here, mut been) = (origin, BTreeSet::from([origin]));
            for open in open.iter().cycle() {
                let over = way.over(here, *open);
                if over == 0 {
                    break;
                }
                prop_assert!(!way.is_search() && over.is_power_of_two());
                here = here.neighbour(over.trailing_zeros() as u8);
                prop_assert!(been.insert(here), "twice in {:?}", here);
                way = way.crossed();
            }
            prop_assert!(been.len() <= usize::from(CROSSINGS) + 1);
            // all open: as many steps as there have to be
            let (mut way, mut here, mut steps) = (Way::new(origin, Some(to), 0), origin, 0);
            while way.over(here, ALL) != 0 && !way.is_search() {
                here = here.neighbour(way.over(here, ALL).trailing_zeros() as u8);
                way = way.crossed();
                steps += 1;
            }
            prop_assert_eq!(steps, origin.distance(to).min(CROSSINGS.into()));
        }

        /// A search in any map, in which each cell sends on what it hears first: each is asked once, and every one to which a
        /// shortest way leads through the map. None is sent over a border both ways.
        #[test]
        fn a_search_is_no_circle(map in proptest::collection::btree_set(cell(), 1..60), from: prop::sample::Index) {
            let origin = *from.get(&map.iter().collect::<Vec<_>>());
            let open = |c: Cell| {
                (0..BORDERS).filter(|b| map.contains(&c.neighbour(*b))).fold(0, |bits, b| bits | 1 << b)
            };
            let (mut asked, mut crossed) = (BTreeSet::from([*origin]), BTreeSet::new());
            let mut copies = std::vec![(*origin, Way::new(*origin, None, 0))];
            while let Some((here, way)) = copies.pop() {
                let over = way.over(here, open(here));
                for next in (0..BORDERS).filter(|b| over & 1 << b != 0).map(|b| here.neighbour(b)) {
                    prop_assert!(crossed.insert((here, next)) && !crossed.contains(&(next, here)));
                    if asked.insert(next) {
                        copies.push((next, way.crossed()));
                    }
                }
            }
            // by rings: reached if a neighbour in the ring inside is
            let mut reached = BTreeSet::from([*origin]);
            for ring in 1..=u32::from(CROSSINGS) {
                for c in map.iter().filter(|c| origin.distance(**c) == ring) {
                    let inside = |n: Cell| origin.distance(n) < ring && reached.contains(&n);
                    if (0..BORDERS).any(|b| inside(c.neighbour(b))) {
                        reached.insert(*c);
                    }
                }
            }
            prop_assert_eq!(asked, reached);
        }
    }
}
