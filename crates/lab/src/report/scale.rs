//! Axes of plots: range, ticks and their labels, linear and logarithmic.

use super::svg::text_width;

/// Size of the font of tick labels.
pub(super) const TICK_SIZE: f64 = 11.5;

/// What an axis shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) label: String,
    pub(super) log: bool,
    pub(super) range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis; the label ends with the unit in parentheses.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis {
            label: label.into(),
            log: false,
            range: None,
        }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Axis {
            log: true,
            ..Axis::linear(label)
        }
    }

    /// Fixes the range instead of taking it from the data. Ignored when it is empty, not finite, or not positive
    /// on a logarithmic axis.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        let fine = self.shows(low) && self.shows(high) && low < high;
        self.range = fine.then_some((low, high));
        self
    }

    /// Whether a value has a place on this axis.
    pub(super) fn shows(&self, x: f64) -> bool {
        drawable(x) && (!self.log || x >= 1.0 / LARGEST)
    }
}

/// Larger numbers are not drawn, and on a logarithmic axis those below the inverse: what is left can be divided.
const LARGEST: f64 = 1e200;

/// Whether a value is a number of drawable size.
pub(super) fn drawable(x: f64) -> bool {
    x.abs() <= LARGEST
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// An axis with its range and ticks.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<Tick>,
    /// Places of small marks without label.
    pub(super) minor: Vec<f64>,
    /// Common factor of all labels, such as "×10⁶"; empty for 1.
    pub(super) factor: String,
}

/// How ticks must fit: along a line of `length`, labels side by side or one above the other.
#[derive(Clone, Copy)]
pub(super) enum Along {
    Horizontal(f64),
    Vertical(f64),
}

impl Scale {
    /// A scale for these values: a range that holds them all, with air at the ends, and ticks at round numbers.
    /// `from_zero`: the axis starts at zero, as for bars. Without a value
    /// that the axis can show and without a fixed range, there are no ticks.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, from_zero: bool, along: Along) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in values.filter(|&x| axis.shows(x)) {
            low = low.min(x);
            high = high.max(x);
        }
        let empty = low > high;
        let (low, high) = match axis.range {
            Some(range) => range,
            None if empty && axis.log => (0.1, 1.0),
            None if empty => (0.0, 1.0),
            None if axis.log => log_range(low, high),
            None => linear_range(low, high, from_zero),
        };
        let scale = Scale {
            log: axis.log,
            low,
            high,
            ticks: Vec::new(),
            minor: Vec::new(),
            factor: String::new(),
        };
        // numbers on the axes of an empty plot would say something
        if empty && axis.range.is_none() {
            return scale;
        }
        scale.with_ticks(along)
    }

    /// Where a value is, from 0 at the low end to 1 at the high end; outside of that beyond the range.
    pub(super) fn at(&self, x: f64) -> f64 {
        if self.log {
            let low = self.low.log10();
            (x.max(1e-300).log10() - low) / (self.high.log10() - low)
        } else {
            (x - self.low) / (self.high - self.low)
        }
    }

    /// Whether a value is inside the range, up to rounding.
    pub(super) fn holds(&self, x: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.at(x))
    }

    /// Width of the widest label.
    pub(super) fn label_width(&self) -> f64 {
        self.ticks
            .iter()
            .map(|t| text_width(&t.label, TICK_SIZE))
            .fold(0.0, f64::max)
    }

    /// Takes as many ticks as fit without touching.
    fn with_ticks(mut self, along: Along) -> Self {
        let most = match along {
            Along::Horizontal(length) => length / 55.0,
            Along::Vertical(length) => length / 32.0,
        };
        for wanted in (2..=(most as usize).clamp(2, 12)).rev() {
            let (ticks, minor, factor) = if self.log {
                self.log_ticks(wanted)
            } else {
                let (ticks, factor) = self.linear_ticks(wanted);
                (ticks, Vec::new(), factor)
            };
            self.ticks = ticks;
            self.minor = minor;
            self.factor = factor;
            let Along::Horizontal(length) = along else { break };
            let clear = self.ticks.windows(2).all(|w| {
                let apart = (self.at(w[1].at) - self.at(w[0].at)) * length;
                let half = |t: &Tick| text_width(&t.label, TICK_SIZE) / 2.0;
                half(&w[0]) + half(&w[1]) + 8.0 <= apart
            });
            if clear {
                break;
            }
        }
        self
    }

    fn linear_ticks(&self, wanted: usize) -> (Vec<Tick>, String) {
        let step = nice_step((self.high - self.low) / wanted as f64);
        let largest = self.low.abs().max(self.high.abs());
        // labels of many digits share a factor of 1000^n
        let power = if !(1e-3..1e6).contains(&largest) {
            3 * (largest.log10() / 3.0).floor() as i32
        } else {
            0
        };
        let unit = 10f64.powi(power);
        let decimals = (-(step / unit).log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
        let first = (self.low / step - 1e-9).ceil();
        let count = ((self.high / step + 1e-9).floor() - first + 1.0) as usize;
        let ticks = (0..count).map(|i| {
            let at = (first + i as f64) * step;
            Tick {
                at,
                label: grouped(at / unit, decimals),
            }
        });
        let factor = if power == 0 {
            String::new()
        } else {
            format!("×10{}", superscript(power))
        };
        (ticks.collect(), factor)
    }

    fn log_ticks(&self, wanted: usize) -> (Vec<Tick>, Vec<f64>, String) {
        let inside = |x: &f64| self.holds(*x);
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let at = |mantissa: i32, exponent: i32| f64::from(mantissa) * 10f64.powi(exponent);
        let plain = first >= -3 && last <= 4;
        let labelled = |mantissa: i32, exponent: i32| Tick {
            at: at(mantissa, exponent),
            label: match (plain, mantissa) {
                (true, _) => grouped(at(mantissa, exponent), (-exponent).max(0) as usize),
                (false, 1) => format!("10{}", superscript(exponent)),
                (false, m) => format!("{m}×10{}", superscript(exponent)),
            },
        };
        let every = |mantissas: &[i32], stride: usize| -> Vec<Tick> {
            let all = (first..=last).filter(|e| e.rem_euclid(stride as i32) == 0);
            let all = all.flat_map(|e| mantissas.iter().map(move |&m| (m, e)));
            all.map(|(m, e)| labelled(m, e))
                .filter(|t| inside(&t.at))
                .collect()
        };
        let minor = |stride: usize| -> Vec<f64> {
            let mantissas = if stride == 1 { 2..=9 } else { 1..=1 };
            (first..=last)
                .flat_map(|e| mantissas.clone().map(move |m| at(m, e)))
                .filter(inside)
                .collect()
        };
        let decades = every(&[1], 1).len();
        if decades <= 2 && every(&[1, 2, 5], 1).len() >= 3 {
            let ticks = every(&[1, 2, 5], 1);
            if ticks.len() <= wanted.max(3) {
                return (ticks, minor(1), String::new());
            }
        }
        if decades < 2 {
            // less than two decades in sight: round numbers, unevenly spaced
            let (ticks, factor) = self.linear_ticks(wanted.min(10));
            return (ticks, Vec::new(), factor);
        }
        let stride = decades.div_ceil(wanted);
        (every(&[1], stride), minor(stride), String::new())
    }
}

/// A little air on both sides; from zero when the values nearly reach it.
fn linear_range(low: f64, high: f64, from_zero: bool) -> (f64, f64) {
    let (low, high) = if from_zero {
        (low.min(0.0), high.max(0.0))
    } else {
        (low, high)
    };
    let (low, high) = if low >= 0.0 && low < 0.3 * high {
        (0.0, high)
    } else {
        (low, high)
    };
    let size = low.abs().max(high.abs());
    // all values equal, or so close that labels could not tell them apart
    if high - low <= (1e-9 * size).max(1.0 / LARGEST) {
        return if size < 1.0 / LARGEST {
            (0.0, 1.0)
        } else {
            (low - 0.05 * size, high + 0.05 * size)
        };
    }
    let air = 0.04 * (high - low);
    (
        if low == 0.0 { 0.0 } else { low - air },
        if high == 0.0 { 0.0 } else { high + air },
    )
}

/// To the next of 1, 2, 5 times a power of ten; narrow ranges get a little air instead.
fn log_range(low: f64, high: f64) -> (f64, f64) {
    if high / low < 1.000_001 {
        return (low / 1.3, high * 1.3);
    }
    if high / low < 3.0 {
        let air = (high / low).powf(0.05);
        return (low / air, high * air);
    }
    let round = |x: f64, up: bool| {
        let decade = 10f64.powf(x.log10().floor());
        let places = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade);
        let found = if up {
            places.into_iter().find(|p| *p >= x * (1.0 - 1e-9))
        } else {
            places.into_iter().rev().find(|p| *p <= x * (1.0 + 1e-9))
        };
        found.unwrap_or(x)
    };
    (round(low, false), round(high, true))
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `rough`.
pub(super) fn nice_step(rough: f64) -> f64 {
    let decade = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|m| m * decade >= rough * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * decade
}

/// A number with so many decimals and thin spaces between thousands.
pub(super) fn grouped(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$}");
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) if rest.bytes().any(|b| b.is_ascii_digit() && b != b'0') => ("−", rest),
        Some(rest) => ("", rest),
        None => ("", &*text),
    };
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out + fraction
}

/// A number with four significant digits for people: "2.85", "12 500", "3.2×10⁻⁵".
pub fn significant(x: f64) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    if x == 0.0 {
        return "0".into();
    }
    // rounding first: 9.9999 has one digit before the point only until it is 10.00
    let text = format!("{x:.3e}");
    let (mantissa, exponent) = text.split_once('e').expect("scientific notation");
    let exponent: i32 = exponent.parse().expect("an exponent");
    if (-4..7).contains(&exponent) {
        let text = grouped(x, (3 - exponent).max(0) as usize);
        return trimmed(&text).into();
    }
    let mantissa = trimmed(mantissa).replace('-', "−");
    format!("{mantissa}×10{}", superscript(exponent))
}

fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

fn superscript(n: i32) -> String {
    let digit = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        d => char::from_u32('⁰' as u32 + d as u32 - '0' as u32).expect("a digit"),
    };
    n.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(axis: Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::new(&axis, values.iter().copied(), false, Along::Horizontal(600.0));
        scale.ticks.into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn linear_labels() {
        let axis = || Axis::linear("x");
        assert_eq!(
            labels(axis(), &[2.6, 4.1]),
            ["2.6", "2.8", "3.0", "3.2", "3.4", "3.6", "3.8", "4.0"]
        );
        assert_eq!(
            labels(axis(), &[0.0, 25_000.0])[..3],
            ["0", "5000", "10\u{2009}000"]
        );
        assert_eq!(labels(axis(), &[-1.0, 1.0])[..2], ["−1.0", "−0.5"]);
        assert!(labels(axis(), &[]).is_empty());
        assert_eq!(labels(axis().range(0.0, 1.0), &[]).len(), 11);
        assert_eq!(labels(axis(), &[7.0]).len(), 7);
        let scale = Scale::new(&axis(), [0.0, 3e7].into_iter(), false, Along::Vertical(300.0));
        assert_eq!(
            (scale.factor.as_str(), scale.ticks[1].label.as_str()),
            ("×10⁶", "5")
        );
        let scale = Scale::new(&axis(), [0.0, 3e-5].into_iter(), false, Along::Vertical(300.0));
        assert_eq!(
            (scale.factor.as_str(), scale.ticks[1].label.as_str()),
            ("×10⁻⁶", "5")
        );
    }

    #[test]
    fn log_labels() {
        let axis = || Axis::log("x");
        assert_eq!(
            labels(axis(), &[1e-6, 1.0]),
            ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]
        );
        assert_eq!(labels(axis(), &[3.0, 700.0]), ["10", "100", "1000"][..]);
        assert_eq!(labels(axis(), &[20.0, 400.0]), ["20", "50", "100", "200", "500"]);
        assert_eq!(
            labels(axis(), &[2.6, 4.1]),
            ["2.6", "2.8", "3.0", "3.2", "3.4", "3.6", "3.8", "4.0"]
        );
        assert_eq!(labels(axis(), &[1e-30, 1e30])[..2], ["10⁻²⁸", "10⁻²¹"]);
        assert!(!labels(axis(), &[5.0]).is_empty());
    }

    #[test]
    fn ranges() {
        assert_eq!(linear_range(0.0, 0.0, false), (0.0, 1.0));
        assert_eq!(linear_range(10.0, 100.0, false).0, 0.0);
        assert_eq!(log_range(3e-6, 0.9), (2e-6, 1.0));
        let fixed = Axis::log("x").range(0.0, 1.0);
        assert_eq!(fixed.range, None);
    }

    #[test]
    fn significant_digits() {
        for (x, text) in [
            (0.0, "0"),
            (2.85, "2.85"),
            (99_999.0, "99\u{2009}999"),
            (3.2e-5, "3.2×10⁻⁵"),
            (-12_345.678, "−12\u{2009}346"),
            (1e9, "1×10⁹"),
            (0.000_5, "0.0005"),
        ] {
            assert_eq!(significant(x), text);
        }
    }

    proptest! {
        /// Any data: a proper range that holds them, few ticks inside it, in order, with different labels that do
        /// not touch.
        #[test]
        fn ticks_are_sane(values in proptest::collection::vec(prop_oneof![
                              any::<f64>(), -1e3..1e3f64, 1e9..1.0001e9f64, 1e-7..1.0f64, Just(0.0)], 0..5),
                          log: bool, from_zero: bool, length in 60.0..900.0f64) {
                        let axis = if log { Axis::log("x") } else { Axis::linear("x") };
            let s = Scale::new(&axis, values.iter().copied(), from_zero, Along::Horizontal(length));
            prop_assert!(s.low.is_finite() && s.high.is_finite() && s.low < s.high);
            for &x in values.iter().filter(|&&x| axis.shows(x)) {
                prop_assert!(s.holds(x), "{} outside {}..{}", x, s.low, s.high);
            }
            prop_assert!(s.ticks.len() <= 13, "{:?}", s.ticks);
            prop_assert!(s.ticks.iter().all(|t| s.holds(t.at)), "{:?}", s);
            prop_assert!(s.ticks.windows(2).all(|w| w[0].at < w[1].at && w[0].label != w[1].label), "{:?}", s);
        }
    }
}
