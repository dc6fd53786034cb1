//! A line through few points of which some are far off.
//!
//! First the robust line of Theil (1950) and Sen (1968): the median of the slopes of all pairs, and the median of
//! the intercepts. Points that deviate from it by more than four times the median deviation are left out, then
//! least squares through the others. Up to two of eight points may be arbitrarily wrong.

use super::WINDOW;

/// Slopes are in parts per 10^12.
pub(super) const ONE: i128 = 1_000_000_000_000;

/// Two clocks are at most 2 x 20 ppm apart (IEEE 802.11-2016, 17.3.9.5: each within 20 ppm); beyond 100 ppm it is
/// noise.
const MAX_SLOPE: i64 = 100_000_000;

/// From here on, a time times a slope does not fit in 64 bits (92 s).
const NEAR_NS: u64 = i64::MAX as u64 / MAX_SLOPE as u64;

/// What two clocks may be apart if their rates were not measured: 2 x 20 ppm.
const UNKNOWN_SLOPE: i64 = 40_000_000;

/// Deviations up to this are never outliers: adapter time has steps of 1 us.
const FLOOR_NS: u64 = 2_000;

/// `y = y0 + slope (x - x0)`, x in nanoseconds of the host clock, y how far network time is ahead of it.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    x0: u64,
    y0: i64,
    slope: i64,
    /// Largest deviation of a point that was not left out.
    spread: u64,
    /// From the first to the last of these points.
    span: u64,
}

impl Fit {
    /// The line through `points`, whose x increase; `None` if there are none. One point gives slope 0.
    pub(super) fn through(points: &[(u64, i64)]) -> Option<Fit> {
        let points = &points[..points.len().min(WINDOW)];
        let &(x0, y0) = points.last()?;
        let mut line = Fit {
            x0,
            y0,
            slope: 0,
            spread: 0,
            span: 0,
        };
        if points.len() == 1 {
            return Some(line);
        }
        line.slope = median_slope(points);
        let shift = median_of(points.iter().map(|p| line.deviation(p))).unwrap_or(0);
        line.y0 = line.y0.saturating_add(shift);

        let median = median_of(points.iter().map(|p| line.deviation(p).saturating_abs())).unwrap_or(0);
        let limit = median.unsigned_abs().saturating_mul(4).max(FLOOR_NS);
        let mut kept = [(0, 0); WINDOW];
        let mut n = 0;
        for p in points {
            if line.deviation(p).unsigned_abs() <= limit {
                kept[n] = *p;
                n += 1;
            }
        }
        let kept = &kept[..n];
        line.least_squares(kept);
        line.spread = kept
            .iter()
            .map(|p| line.deviation(p).unsigned_abs())
            .max()
            .unwrap_or(0);
        line.span = kept.last().map_or(0, |l| l.0 - kept[0].0);
        Some(line)
    }

    /// Turns and shifts the line so that the deviations of `points` from it have the least squares.
    fn least_squares(&mut self, points: &[(u64, i64)]) {
        let n = points.len() as i128;
        let (mut sx, mut sy, mut sxx, mut sxy) = (0, 0, 0, 0);
        for p in points {
            let x = i128::from(p.0) - i128::from(self.x0);
            let y = i128::from(self.deviation(p));
            if x.abs().max(y.abs()) > 1 << 40 {
                // 18 minutes apart: the robust line is as good as it gets
                return;
            }
            sx += x;
            sy += y;
            sxx += x * x;
            sxy += x * y;
        }
        let (above, below) = (n * sxy - sx * sy, n * sxx - sx * sx);
        if below == 0 {
            return;
        }
        let turn = above.saturating_mul(ONE) / below;
        self.slope = clamp_slope(i128::from(self.slope) + turn);
        // the line through the centre of gravity
        let shift = (sy - sx * turn / ONE) / n;
        self.y0 = self.y0.saturating_add(shift as i64);
    }

    /// How far a point is above the line.
    fn deviation(&self, point: &(u64, i64)) -> i64 {
        point.1.saturating_sub(self.ahead(point.0))
    }

    /// The line at `x`.
    pub(super) fn ahead(&self, x: u64) -> i64 {
        let since = x.wrapping_sub(self.x0) as i64;
        // the usual case does without 128-bit division, which takes longer than all the rest of a step of a slotted MAC
        if since.unsigned_abs() <= NEAR_NS && (x >= self.x0) == (since >= 0) {
            return self.y0.saturating_add(since * self.slope / ONE as i64);
        }
        let since = i128::from(x) - i128::from(self.x0);
        let gain = since * i128::from(self.slope) / ONE;
        (i128::from(self.y0) + gain).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// How far off it may be `age` nanoseconds after its last point.
    pub(super) fn error_ns(&self, age: u64) -> u64 {
        let resolution = 1_000;
        let noise = self.spread.saturating_add(resolution);
        // the ends of the line may be off by the noise in opposite directions
        let per_span = (u128::from(noise) * 2).saturating_mul(u128::from(age)) / u128::from(self.span.max(1));
        let unknown = u128::from(age) * UNKNOWN_SLOPE as u128 / ONE as u128;
        noise.saturating_add(per_span.min(unknown) as u64)
    }

    /// Whether a point is no further from the line than so many nanoseconds.
    pub(super) fn is_near(&self, point: &(u64, i64), ns: u64) -> bool {
        self.deviation(point).unsigned_abs() <= ns
    }

    /// What it gains, parts of [`ONE`].
    pub(super) fn slope(&self) -> i64 {
        self.slope
    }

    pub(super) fn rate_ppb(&self) -> i64 {
        self.slope / 1_000
    }
}

fn clamp_slope(slope: i128) -> i64 {
    slope.clamp((-MAX_SLOPE).into(), MAX_SLOPE.into()) as i64
}

fn median_slope(points: &[(u64, i64)]) -> i64 {
    let mut slopes = [0; WINDOW * (WINDOW - 1) / 2];
    let mut n = 0;
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            let (dx, dy) = (
                i128::from(b.0) - i128::from(a.0),
                i128::from(b.1) - i128::from(a.1),
            );
            if dx > 0 {
                slopes[n] = clamp_slope(dy.saturating_mul(ONE) / dx);
                n += 1;
            }
        }
    }
    median(&mut slopes[..n]).unwrap_or(0)
}

fn median_of(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut all = [0; WINDOW];
    let mut n = 0;
    for (place, value) in all.iter_mut().zip(values) {
        *place = value;
        n += 1;
    }
    median(&mut all[..n])
}

/// The lower of the two middle ones.
fn median(values: &mut [i64]) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const MS: u64 = 1_000_000;

    fn line(ppb: i64, noise: &[i64]) -> Vec<(u64, i64)> {
        let point = |(i, e): (usize, &i64)| {
            let x = 5_000_000_000 + 100 * MS * i as u64;
            (
                x,
                777_000 + (100 * MS as i64 * i as i64) / 1_000 * ppb / 1_000_000 + e,
            )
        };
        noise.iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_clean_line() {
        for ppb in [-40_000, 0, 20_000] {
            let f = Fit::through(&line(ppb, &[0; 8])).unwrap();
            assert!((f.rate_ppb() - ppb).abs() <= 1, "{f:?}");
            assert_eq!((f.ahead(5_000_000_000), f.spread), (777_000, 0));
            // 10 s on
            assert!((f.ahead(15_000_000_000) - 777_000 - 10 * ppb).abs() <= 10);
        }
        assert_eq!(Fit::through(&[]).map(|f| f.y0), None);
        assert_eq!(Fit::through(&[(5, -3)]).map(|f| f.ahead(1_000)), Some(-3));
    }

    /// One or two stamps that came very late change nothing, wherever they are.
    #[test]
    fn outliers_are_left_out() {
        for i in 0..8 {
            for j in 0..8 {
                let mut noise = [300, -200, 0, 400, -500, 100, -100, 200];
                let clean = Fit::through(&line(20_000, &noise)).unwrap();
                noise[i] += 3_000_000;
                noise[j] += 40_000;
                let f = Fit::through(&line(20_000, &noise)).unwrap();
                assert!(
                    (f.ahead(5_800_000_000) - clean.ahead(5_800_000_000)).abs() < 1_000,
                    "{i} {j} {f:?}"
                );
                assert!(f.spread < 2_000);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn any_points(points in proptest::collection::vec((1u64..1 << 62, any::<i64>()), 0..9)) {
            let mut x = 0u64;
            let points: Vec<_> = points.iter().map(|(dx, y)| { x = x.saturating_add(*dx); (x, *y) }).collect();
            if let Some(f) = Fit::through(&points) {
                let _ = (f.ahead(0), f.ahead(u64::MAX), f.error_ns(u64::MAX), f.rate_ppb());
            }
        }

        /// Near or far, with 64 bits or 128, it is the same line.
        #[test]
        fn near_and_far(x0 in any::<u64>(), y0 in any::<i64>(), slope in -MAX_SLOPE..=MAX_SLOPE, since in -(NEAR_NS as i64) - 2..=NEAR_NS as i64 + 2) {
            let f = Fit { x0, y0, slope, spread: 0, span: 0 };
            for x in [x0.wrapping_add_signed(since), x0.wrapping_add_signed(since.signum() * NEAR_NS as i64), x0, 0, u64::MAX, !x0] {
                let whole = i128::from(y0) + (i128::from(x) - i128::from(x0)) * i128::from(slope) / ONE;
                prop_assert_eq!(i128::from(f.ahead(x)), whole.clamp(i64::MIN.into(), i64::MAX.into()));
            }
        }

        #[test]
        fn noise_of_1_us(ppb in -40_000i64..40_000, noise in proptest::collection::vec(-500i64..500, 8)) {
            let f = Fit::through(&line(ppb, &noise)).unwrap();
            let truth = Fit::through(&line(ppb, &[0; 8])).unwrap();
            // in the window the line is as good as the noise, 100 ms later nearly so
            for x in [5_000_000_000, 5_400_000_000, 5_700_000_000, 5_800_000_000] {
                prop_assert!((f.ahead(x) - truth.ahead(x)).abs() < 1_000);
            }
            prop_assert!(f.error_ns(100 * MS) >= (f.ahead(5_800_000_000) - truth.ahead(5_800_000_000)).unsigned_abs());
        }
    }
}
