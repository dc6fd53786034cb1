//! Powers as whole numbers of attowatts, so that adding and taking away signals is exact in any order.

/// Power in attowatts (1e-18 W, or 1e-15 mW): -101 dBm are 79,433 aW, 30 dBm are 1e18 aW.
pub type Attowatt = u64;

/// From dBm; below -150 dBm it is nothing, above 30 dBm it is 30 dBm.
pub fn from_dbm(dbm: f64) -> Attowatt {
    if dbm.is_nan() || dbm < -150.0 {
        return 0;
    }
    (libm::pow(10.0, dbm.min(30.0) / 10.0) * 1e15).round() as u64
}

/// To dBm; nothing is -150 dBm.
pub fn to_dbm(power: Attowatt) -> f64 {
    10.0 * libm::log10(power.max(1) as f64 * 1e-15)
}

/// From a ratio to decibels.
pub fn ratio_to_db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

/// From decibels to a ratio.
pub fn db_to_ratio(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// Thermal noise at 290 K in `bandwidth_mhz` with a receiver of `noise_figure_db`.
pub fn thermal_noise(bandwidth_mhz: f64, noise_figure_db: f64) -> Attowatt {
    // Boltzmann's constant times 290 K, in attowatts per hertz
    let density = 1.380_649e-23 * 290.0 * 1e18;
    (density * bandwidth_mhz * 1e6 * db_to_ratio(noise_figure_db)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(from_dbm(-101.0), 79_433);
        assert_eq!(from_dbm(30.0), 1_000_000_000_000_000_000);
        assert_eq!(from_dbm(99.0), from_dbm(30.0));
        assert_eq!((from_dbm(f64::NAN), from_dbm(-200.0)), (0, 0));
        for dbm in [-100.0, -82.0, -50.0, 0.0, 20.0] {
            assert!((to_dbm(from_dbm(dbm)) - dbm).abs() < 1e-4, "{dbm}");
        }
    }

    #[test]
    fn noise_floor() {
        assert!((to_dbm(thermal_noise(20.0, 7.0)) - -93.97).abs() < 0.01);
        assert!((to_dbm(thermal_noise(22.0, 7.0)) - -93.55).abs() < 0.01);
    }
}
