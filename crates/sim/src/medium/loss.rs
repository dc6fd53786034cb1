//! How strong a signal arrives: path loss between two places.

use super::power::from_dbm;

/// Speed of light in metres per nanosecond.
const METRES_PER_NS: f64 = 0.299_792_458;

/// A place in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Position {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
    /// Up.
    pub z: f64,
}

impl Position {
    /// On the ground.
    pub const fn new(x: f64, y: f64) -> Position {
        Position { x, y, z: 0.0 }
    }

    /// Distance in metres.
    pub fn distance(self, other: Position) -> f64 {
        let (dx, dy, dz) = (self.x - other.x, self.y - other.y, self.z - other.z);
        (dx * dx + dy * dy + dz * dz).sqrt()
    }
}

/// Propagation delay over a distance, in nanoseconds, rounded to nearest.
pub fn delay_ns(distance_m: f64) -> u32 {
    (distance_m / METRES_PER_NS).round().clamp(0.0, 1e9) as u32
}

/// Path loss between two nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum LossModel {
    /// Free space (Friis 1946): 20 log10(4 pi d f / c); below one metre as at one metre.
    FreeSpace,
    /// `at_1m_db + 10 exponent log10(d)`, below one metre as at one metre, plus a shadowing that is drawn once per
    /// pair of nodes from a normal distribution.
    LogDistance {
        /// Loss at one metre in dB: 40 at 2.4 GHz, 46.4 at 5.18 GHz in free space.
        at_1m_db: f64,
        /// 2 in free space, 3 to 3.5 indoors.
        exponent: f64,
        /// Standard deviation of the shadowing in dB, 0 for none.
        shadowing_db: f64,
    },
    /// The same received power for every pair, whatever the distance, in dBm.
    FixedPower(f64),
    /// Loss in dB for the listed ordered pairs (from, to); all others do not hear each other.
    Matrix(Vec<(u32, u32, f64)>),
}

impl LossModel {
    /// Received power in dBm over `distance_m` at `mhz`, without matrix and shadowing; `None` if nothing arrives.
    pub fn received_dbm(&self, tx_dbm: f64, distance_m: f64, mhz: u16) -> Option<f64> {
        let d = distance_m.max(1.0);
        match self {
            LossModel::FreeSpace => {
                let wavelength = METRES_PER_NS * 1e3 / f64::from(mhz);
                Some(tx_dbm - 20.0 * libm::log10(4.0 * std::f64::consts::PI * d / wavelength))
            }
            LossModel::LogDistance {
                at_1m_db, exponent, ..
            } => Some(tx_dbm - at_1m_db - 10.0 * exponent * libm::log10(d)),
            LossModel::FixedPower(dbm) => Some(*dbm),
            LossModel::Matrix(_) => None,
        }
    }

    /// Distance in metres from which on nothing arrives at `floor_dbm` or above; infinite if distance does not
    /// matter.
    pub fn reach_m(&self, tx_dbm: f64, mhz: u16, floor_dbm: f64) -> f64 {
        let at_1m = match self {
            LossModel::FixedPower(_) | LossModel::Matrix(_) => return f64::INFINITY,
            _ => self.received_dbm(tx_dbm, 1.0, mhz).expect("depends on distance"),
        };
        let (exponent, margin) = match self {
            LossModel::LogDistance {
                exponent,
                shadowing_db,
                ..
            } => (*exponent, 4.0 * shadowing_db),
            _ => (2.0, 0.0),
        };
        libm::pow(
            10.0,
            (at_1m + margin - floor_dbm).max(0.0) / (10.0 * exponent.max(0.1)),
        )
    }
}

/// The strength that a signal of `dbm` has in attowatts, or 0 below `floor_dbm`.
pub fn audible(dbm: f64, floor_dbm: f64) -> u64 {
    if dbm < floor_dbm { 0 } else { from_dbm(dbm) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_at_5_ghz() {
        let dbm = LossModel::FreeSpace.received_dbm(0.0, 1.0, 5180).unwrap();
        assert!((dbm - -46.73).abs() < 0.02, "{dbm}");
        let far = LossModel::FreeSpace.received_dbm(0.0, 100.0, 5180).unwrap();
        assert!((dbm - far - 40.0).abs() < 1e-9);
    }

    #[test]
    fn log_distance_reach() {
        let m = LossModel::LogDistance {
            at_1m_db: 46.6777,
            exponent: 3.0,
            shadowing_db: 0.0,
        };
        assert!((m.received_dbm(16.0206, 30.0, 5180).unwrap() - -74.97).abs() < 0.01);
        let reach = m.reach_m(16.0206, 5180, -101.0);
        assert!((reach - 221.1).abs() < 1.0, "{reach}");
        assert!(m.received_dbm(16.0206, reach, 5180).unwrap() - -101.0 < 1e-6);
    }

    #[test]
    fn delays() {
        assert_eq!([delay_ns(30.0), delay_ns(1.0), delay_ns(0.0)], [100, 3, 0]);
    }
}
