//! Hexagonal cells in the plane, in axial coordinates, and the channel of each.

/// A cell. The centre of (q, r) lies at (sqrt(3) (q + r/2), 3/2 r) times the radius.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cell {
    /// Along the first axis, to the east.
    pub q: i16,
    /// Along the second axis, 60 degrees to the north of it.
    pub r: i16,
}

/// sqrt(3)
const SQRT_3: f64 = 1.732_050_807_568_877_2;
/// Borders of a cell, and slots in which neighbours meet.
pub const BORDERS: u8 = 6;
/// What to add for the neighbour across each border, counter-clockwise from the east.
const NEIGHBOURS: [(i16, i16); BORDERS as usize] = [(1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1)];

/// Where and when the gateways of two neighbours meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The slot between cells, 0 to 5: the same for both neighbours, and another one at each border of a cell.
    pub slot: u8,
    /// They meet on the channel of this cell in even rounds, and on that of the neighbour in odd ones.
    pub first: bool,
}

impl Cell {
    /// The cell at a position (metres to the east and to the north), for cells with a circumscribed circle of
    /// `radius_m`. All members of a cell hear each other if the range is at least twice that.
    pub fn at(east_m: f64, north_m: f64, radius_m: f64) -> Cell {
        let (x, y) = (east_m / radius_m, north_m / radius_m);
        let (q, r) = (x * SQRT_3 / 3.0 - y / 3.0, y * 2.0 / 3.0);
        // the three cube coordinates sum to 0; the one that rounding moves most follows from the others
        let s = -q - r;
        let (nq, nr, ns) = (round(q), round(r), round(s));
        let off = |exact: f64, near: i64| (exact - near as f64) * (exact - near as f64);
        let (dq, dr, ds) = (off(q, nq), off(r, nr), off(s, ns));
        let (nq, nr) = if dq > dr && dq > ds {
            (-nr - ns, nr)
        } else if dr > ds {
            (nq, -nq - ns)
        } else {
            (nq, nr)
        };
        let narrow = |n: i64| n.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        Cell {
            q: narrow(nq),
            r: narrow(nr),
        }
    }

    /// The neighbour across a border, 0 to 5.
    pub const fn neighbour(self, border: u8) -> Cell {
        let (q, r) = NEIGHBOURS[(border % BORDERS) as usize];
        Cell {
            q: self.q.wrapping_add(q),
            r: self.r.wrapping_add(r),
        }
    }

    /// Across which border another cell lies, if it is a neighbour.
    pub fn border_to(self, other: Cell) -> Option<u8> {
        (0..BORDERS).find(|b| self.neighbour(*b) == other)
    }

    /// Borders between it and another cell, at least.
    pub const fn distance(self, other: Cell) -> u32 {
        let (q, r) = (other.q as i32 - self.q as i32, other.r as i32 - self.r as i32);
        let (q, r, s) = (q.unsigned_abs(), r.unsigned_abs(), (q + r).unsigned_abs());
        let two = if q > r { q } else { r };
        if two > s { two } else { s }
    }

    /// The meeting at a border. A border has an axis, and of the two cells there one has it in the positive
    /// direction: of that one the parity along the axis decides which of the two slots of the axis it is.
    pub const fn meeting(self, border: u8) -> Meeting {
        let axis = border % 3;
        let first = border % BORDERS < 3;
        let cell = if first { self } else { self.neighbour(border) };
        let along = if axis == 0 { cell.q } else { cell.r };
        Meeting {
            slot: 2 * axis + (along & 1) as u8,
            first,
        }
    }

    /// Borders that a position in the cell is nearer to than `within_m`, as bits.
    pub fn near(self, east_m: f64, north_m: f64, radius_m: f64, within_m: f64) -> u8 {
        let (q, r) = (f64::from(self.q), f64::from(self.r));
        let (x, y) = (
            east_m - SQRT_3 * (q + r / 2.0) * radius_m,
            north_m - 1.5 * r * radius_m,
        );
        let mut bits = 0;
        for (border, (q, r)) in NEIGHBOURS.into_iter().enumerate() {
            // centres of neighbours are sqrt(3) radii apart
            let (q, r) = (f64::from(q), f64::from(r));
            let (nx, ny) = (q + r / 2.0, 1.5 * r / SQRT_3);
            let distance = SQRT_3 / 2.0 * radius_m - (x * nx + y * ny);
            bits |= u8::from(distance < within_m) << border;
        }
        bits
    }

    /// Which of three channels it has: no two neighbours share one, and cells that do are three radii apart.
    pub fn colour(self) -> usize {
        (i32::from(self.q) + 2 * i32::from(self.r)).rem_euclid(3) as usize
    }
}

/// Half away from zero.
fn round(x: f64) -> i64 {
    (if x < 0.0 { x - 0.5 } else { x + 0.5 }) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn centre(cell: Cell) -> (f64, f64) {
        let (q, r) = (f64::from(cell.q), f64::from(cell.r));
        (SQRT_3 * (q + r / 2.0), 1.5 * r)
    }

    #[test]
    fn every_point_is_in_the_cell_with_the_nearest_centre() {
        for i in -40..40 {
            for j in -40..40 {
                // no point lies on a border
                let (x, y) = (f64::from(i) * 0.1303 + 0.01, f64::from(j) * 0.1417 + 0.003);
                let cell = Cell::at(50.0 * x, 50.0 * y, 50.0);
                let far = |c: Cell| (centre(c).0 - x).hypot(centre(c).1 - y);
                for (q, r) in NEIGHBOURS {
                    let other = Cell {
                        q: cell.q + q,
                        r: cell.r + r,
                    };
                    assert!(far(cell) <= far(other), "{x} {y} {cell:?} {other:?}");
                }
            }
        }
        assert_eq!(Cell::at(f64::NAN, 1e300, 1.0).r, i16::MAX);
    }

    #[test]
    fn neighbours_meet_in_one_slot_and_each_border_has_its_own() {
        for q in -3..4 {
            for r in -3..4 {
                let cell = Cell { q, r };
                let mut slots = 0;
                for border in 0..BORDERS {
                    let other = cell.neighbour(border);
                    let back = other.border_to(cell).unwrap();
                    let (here, there) = (cell.meeting(border), other.meeting(back));
                    assert_eq!(here.slot, there.slot, "{cell:?} {other:?}");
                    assert_ne!(here.first, there.first, "{cell:?} {other:?}");
                    slots |= 1 << here.slot;
                }
                assert_eq!(slots, 0b11_1111, "{cell:?}");
                assert_eq!(cell.border_to(cell), None);
            }
        }
    }

    /// As many steps as it takes to get there.
    #[test]
    fn distances() {
        let here = Cell { q: 2, r: -1 };
        let mut reached = std::vec![here];
        for steps in 0..5 {
            assert_eq!(
                reached.len(),
                if steps == 0 {
                    1
                } else {
                    1 + 3 * steps * (steps + 1)
                }
            );
            for q in -10..10 {
                for r in -10..10 {
                    let cell = Cell { q, r };
                    assert_eq!(reached.contains(&cell), here.distance(cell) as usize <= steps);
                }
            }
            let next: std::vec::Vec<Cell> = reached
                .iter()
                .flat_map(|c| (0..BORDERS).map(|b| c.neighbour(b)))
                .collect();
            reached.extend(next);
            reached.sort_unstable();
            reached.dedup();
        }
        let (a, b) = (i16::MIN, i16::MAX);
        assert_eq!(Cell { q: a, r: a }.distance(Cell { q: b, r: b }), 131_070);
    }

    #[test]
    fn who_is_near_a_border() {
        let cell = Cell { q: 2, r: -1 };
        let (x, y) = centre(cell);
        assert_eq!(cell.near(50.0 * x, 50.0 * y, 50.0, 25.0), 0, "the middle");
        // a metre on this side of the middle of each border
        for border in 0..BORDERS {
            let (nx, ny) = centre(cell.neighbour(border));
            let far = (0.5 * (nx - x).hypot(ny - y) * 50.0 - 1.0) / (50.0 * (nx - x).hypot(ny - y));
            let (px, py) = (50.0 * (x + far * (nx - x)), 50.0 * (y + far * (ny - y)));
            assert_eq!(cell.near(px, py, 50.0, 1.001), 1 << border);
            assert_eq!(cell.near(px, py, 50.0, 0.999), 0);
        }
    }

    #[test]
    fn neighbours_have_other_channels() {
        for (q, r) in NEIGHBOURS {
            assert_ne!(Cell { q, r }.colour(), Cell { q: 0, r: 0 }.colour());
        }
        let mut colours = [Cell { q: 0, r: 0 }, Cell { q: 1, r: 0 }, Cell { q: 0, r: 1 }].map(Cell::colour);
        colours.sort_unstable();
        assert_eq!(colours, [0, 1, 2]);
        // the nearest of the same colour
        let (x, y) = centre(Cell { q: 1, r: 1 });
        assert!(Cell { q: 1, r: 1 }.colour() == 0 && (x.hypot(y) - 3.0).abs() < 1e-9);
    }
}
