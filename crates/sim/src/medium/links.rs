//! Who hears whom, and how strongly: lists of neighbours per transmitter, found by a spatial index.

use super::loss::{LossModel, Position, audible, delay_ns};
use super::power::{self, Attowatt};
use crate::rng::{Cause, Stream};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A receiver that can detect the transmitter's preambles.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// Received power.
    pub power: Attowatt,
    /// Receiving radio.
    pub to: u32,
    /// Propagation delay, ns.
    pub delay_ns: u32,
    /// 1 + index of the link's loss state, 0 for none.
    pub loss: u32,
    /// Received power in whole dBm.
    pub dbm: i8,
}

/// A receiver to which the transmitter is only interference. Its propagation delay (below a microsecond) is left out.
#[derive(Clone, Copy, Debug)]
pub struct Far {
    /// Receiving radio.
    pub to: u32,
    /// Received power, attowatts; below the detection threshold, so it fits.
    pub power: u32,
}

/// All receivers of one transmitter.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Those that can detect it.
    pub near: Vec<Near>,
    /// Those that cannot.
    pub far: Vec<Far>,
    /// Shortest delay to a near one, ns.
    pub min_delay_ns: u32,
    /// Longest delay to a near one, ns.
    pub max_delay_ns: u32,
}

/// What the tables are computed from, for one radio.
#[derive(Clone, Copy, Debug)]
pub struct Antenna {
    /// Where.
    pub position: Position,
    /// Transmit power in dBm.
    pub tx_dbm: f64,
    /// Centre frequency in MHz.
    pub mhz: u16,
}

/// The tables of all radios.
#[derive(Debug)]
pub struct Links {
    /// Path loss.
    pub model: LossModel,
    /// Signals below this many dBm are left out.
    pub floor_dbm: f64,
    /// Signals from this power on can be detected.
    pub detect: Attowatt,
    seed: u64,
    /// Losses in dB of single ordered pairs that go before the model; infinite for none at all.
    overrides: BTreeMap<(u32, u32), f64>,
    losses: BTreeMap<(u32, u32), u32>,
    tables: Vec<Rc<Neighbours>>,
    stale: bool,
    /// Radios whose own tables alone are out of date: who hears them has changed, not whom they hear.
    changed: Vec<u32>,
}

impl Links {
    /// Empty tables.
    pub fn new(model: LossModel, floor_dbm: f64, detect: Attowatt, seed: u64) -> Links {
        let mut overrides = BTreeMap::new();
        if let LossModel::Matrix(list) = &model {
            overrides.extend(list.iter().map(|(a, b, db)| ((*a, *b), *db)));
        }
        let losses = BTreeMap::new();
        Links {
            model,
            floor_dbm,
            detect,
            seed,
            overrides,
            losses,
            tables: Vec::new(),
            stale: true,
            changed: Vec::new(),
        }
    }

    /// Receivers of `radio`. The list stays as it is for those who hold it, whatever changes later.
    #[inline]
    pub fn of(&self, radio: u32) -> &Rc<Neighbours> {
        &self.tables[radio as usize]
    }

    /// Something has changed: the tables are made anew before the next transmission.
    pub fn touch(&mut self) {
        self.stale = true;
    }

    /// Power or frequency of one radio has changed: its own table is made anew before the next transmission.
    pub fn touch_radio(&mut self, radio: u32) {
        self.changed.push(radio);
    }

    /// The frequency of one radio has changed.
    pub fn touch_frequency(&mut self, radio: u32) {
        if self.model == LossModel::FreeSpace {
            self.touch_radio(radio);
        }
    }

    /// True if [`Links::refresh`] has work to do.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.stale || !self.changed.is_empty()
    }

    /// Sets the loss of one ordered pair in dB; infinite: they do not hear each other any more.
    pub fn set_loss_db(&mut self, from: u32, to: u32, db: f64) {
        self.overrides.insert((from, to), db);
        self.changed.push(from);
    }

    /// Notes which loss state belongs to an ordered pair.
    pub fn set_loss_state(&mut self, from: u32, to: u32, index: u32) {
        self.losses.insert((from, to), index + 1);
        self.stale = true;
    }

    /// Makes the tables anew.
    pub fn refresh(&mut self, antennas: &[Antenna]) {
        if !self.stale {
            return self.refresh_changed(antennas);
        }
        self.stale = false;
        self.changed.clear();
        let reach = antennas
            .iter()
            .map(|a| self.model.reach_m(a.tx_dbm, a.mhz, self.floor_dbm));
        let reach = reach.fold(0.0, f64::max);
        let grid = Grid::new(antennas, reach);
        let mut candidates = Vec::new();
        self.tables = (0..antennas.len() as u32)
            .map(|from| {
                grid.around(antennas[from as usize].position, &mut candidates);
                if matches!(self.model, LossModel::Matrix(_)) || !self.overrides.is_empty() {
                    let listed = self
                        .overrides
                        .range((from, 0)..=(from, u32::MAX))
                        .map(|((_, to), _)| *to);
                    candidates.extend(listed.filter(|to| (*to as usize) < antennas.len()));
                }
                candidates.sort_unstable();
                candidates.dedup();
                Rc::new(self.neighbours(from, &candidates, antennas))
            })
            .collect();
    }

    /// Makes the tables of the changed radios anew, looking at all others.
    fn refresh_changed(&mut self, antennas: &[Antenna]) {
        let all: Vec<u32> = (0..antennas.len() as u32).collect();
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        for &from in &changed {
            self.tables[from as usize] = Rc::new(self.neighbours(from, &all, antennas));
        }
        changed.clear();
        self.changed = changed;
    }

    fn neighbours(&self, from: u32, candidates: &[u32], antennas: &[Antenna]) -> Neighbours {
        let mut n = Neighbours::default();
        for &to in candidates.iter().filter(|to| **to != from) {
            let distance = antennas[from as usize]
                .position
                .distance(antennas[to as usize].position);
            let Some(dbm) = self.received_dbm(from, to, distance, &antennas[from as usize]) else {
                continue;
            };
            match audible(dbm, self.floor_dbm) {
                0 => {}
                power if power >= self.detect => {
                    let loss = self.losses.get(&(from, to)).copied().unwrap_or(0);
                    n.near.push(Near {
                        power,
                        to,
                        delay_ns: delay_ns(distance),
                        loss,
                        dbm: power::to_dbm(power).round().clamp(-128.0, 127.0) as i8,
                    });
                }
                power => n.far.push(Far {
                    to,
                    power: u32::try_from(power).unwrap_or(u32::MAX),
                }),
            }
        }
        n.min_delay_ns = n.near.iter().map(|l| l.delay_ns).min().unwrap_or(0);
        n.max_delay_ns = n.near.iter().map(|l| l.delay_ns).max().unwrap_or(0);
        n.near.shrink_to_fit();
        n.far.shrink_to_fit();
        n
    }

    fn received_dbm(&self, from: u32, to: u32, distance: f64, antenna: &Antenna) -> Option<f64> {
        if let Some(db) = self.overrides.get(&(from, to)) {
            return db.is_finite().then_some(antenna.tx_dbm - db);
        }
        let dbm = self.model.received_dbm(antenna.tx_dbm, distance, antenna.mhz)?;
        let LossModel::LogDistance { shadowing_db, .. } = self.model else {
            return Some(dbm);
        };
        if shadowing_db == 0.0 {
            return Some(dbm);
        }
        let pair = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
        Some(dbm + shadowing_db * Stream::new(self.seed, pair, Cause::Place).normal())
    }
}

/// Radios by cells as wide as the reach, so that all neighbours are in nine cells.
struct Grid {
    cell_m: f64,
    cells: BTreeMap<(i64, i64), Vec<u32>>,
    count: u32,
}

impl Grid {
    fn new(antennas: &[Antenna], reach_m: f64) -> Grid {
        let mut grid = Grid {
            cell_m: reach_m.max(1.0),
            cells: BTreeMap::new(),
            count: antennas.len() as u32,
        };
        if reach_m.is_finite() {
            for (i, a) in antennas.iter().enumerate() {
                grid.cells
                    .entry(grid.cell(a.position))
                    .or_default()
                    .push(i as u32);
            }
        }
        grid
    }

    fn cell(&self, p: Position) -> (i64, i64) {
        (
            (p.x / self.cell_m).floor() as i64,
            (p.y / self.cell_m).floor() as i64,
        )
    }

    fn around(&self, p: Position, out: &mut Vec<u32>) {
        out.clear();
        if self.cells.is_empty() {
            out.extend(0..self.count);
            return;
        }
        let (x, y) = self.cell(p);
        for dx in -1..=1 {
            for dy in -1..=1 {
                out.extend(self.cells.get(&(x + dx, y + dy)).into_iter().flatten());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::power::from_dbm;

    fn at(x: f64, y: f64) -> Antenna {
        Antenna {
            position: Position::new(x, y),
            tx_dbm: 16.0206,
            mhz: 5180,
        }
    }

    fn grid_links(side: usize, shadowing_db: f64) -> (Links, Vec<Antenna>) {
        let antennas: Vec<Antenna> = (0..side * side)
            .map(|i| at((i % side) as f64 * 30.0, (i / side) as f64 * 30.0))
            .collect();
        let model = LossModel::LogDistance {
            at_1m_db: 46.6777,
            exponent: 3.0,
            shadowing_db,
        };
        let mut links = Links::new(model, -101.0, from_dbm(-82.0), 1);
        links.refresh(&antennas);
        (links, antennas)
    }

    #[test]
    fn the_index_finds_what_a_full_search_finds() {
        let (links, antennas) = grid_links(20, 0.0);
        for from in [0u32, 21, 210, 399] {
            let n = links.of(from);
            let heard = |to: usize, floor: f64| {
                let d = antennas[from as usize].position.distance(antennas[to].position);
                to != from as usize && links.model.received_dbm(16.0206, d, 5180).unwrap() >= floor
            };
            let near = (0..400).filter(|to| heard(*to, -82.0)).count();
            let all = (0..400).filter(|to| heard(*to, -101.0)).count();
            assert_eq!((n.near.len(), n.near.len() + n.far.len()), (near, all));
        }
        assert_eq!(links.of(210).near.len(), 8, "four at 30 m and four at 42 m");
        assert_eq!(
            (links.of(210).min_delay_ns, links.of(210).max_delay_ns),
            (100, 142)
        );
    }

    #[test]
    fn neighbours_do_not_grow_with_the_network() {
        let (small, _) = grid_links(20, 0.0);
        let (large, _) = grid_links(40, 0.0);
        assert_eq!(small.of(210).far.len(), large.of(20 * 40 + 20).far.len());
    }

    #[test]
    fn shadowing_is_the_same_both_ways_and_for_every_size() {
        let (a, _) = grid_links(4, 6.0);
        let find = |l: &Links, from: u32, to: u32| {
            l.of(from)
                .near
                .iter()
                .find(|n| n.to == to)
                .map(|n| n.power)
                .unwrap_or_else(|| {
                    l.of(from)
                        .far
                        .iter()
                        .find(|n| n.to == to)
                        .map_or(0, |n| u64::from(n.power))
                })
        };
        assert_eq!(find(&a, 0, 1), find(&a, 1, 0));
        assert_ne!(find(&a, 0, 1), find(&a, 1, 2));
    }

    #[test]
    fn single_links() {
        let antennas = [at(0.0, 0.0), at(30.0, 0.0), at(1e6, 0.0)];
        let mut links = Links::new(
            LossModel::Matrix(vec![(0, 1, 66.0206)]),
            -101.0,
            from_dbm(-82.0),
            1,
        );
        links.refresh(&antennas);
        assert_eq!((links.of(0).near.len(), links.of(1).near.len()), (1, 0));
        let held = links.of(0).clone();
        links.set_loss_db(0, 1, f64::INFINITY);
        links.set_loss_db(0, 2, 60.0);
        assert!(links.is_stale());
        links.refresh(&antennas);
        assert_eq!(links.of(0).near.iter().map(|n| n.to).collect::<Vec<_>>(), [2]);
        assert_eq!(held.near[0].to, 1, "a list that is held does not change");
    }
}
