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

    const NEIGHBOURS: [(i16, i16); 6] = [(1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1)];

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
