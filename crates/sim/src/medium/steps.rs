//! Values that change at given times, from a file: losses of frames, losses of a path.

use std::ops::RangeInclusive;

/// Reads lines `time_us,value` with `#` comments and an optional header line: (ns, value) in rising order of time. `name` is
/// what the value is called in errors.
///
/// # Errors
/// A sentence with the number of the line that is wrong.
pub(super) fn steps_from_csv(
    text: &str,
    name: &str,
    allowed: RangeInclusive<f64>,
) -> Result<Vec<(u64, f64)>, String> {
    let mut steps: Vec<(u64, f64)> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() || (n == 0 && line.starts_with("time")) {
            continue;
        }
        let n = n + 1;
        let wrong = || format!("line {n}: expected time_us,{name} but found '{line}'");
        let (time, value) = line.split_once(',').ok_or_else(wrong)?;
        let time: f64 = time.trim().parse().map_err(|_| wrong())?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        if !allowed.contains(&value) || !(0.0..=9e12).contains(&time) {
            let (low, high) = (allowed.start(), allowed.end());
            return Err(format!(
                "line {n}: {name} lies between {low} and {high}, and the time between 0 and 9e12 us"
            ));
        }
        let ns = (time * 1_000.0) as u64;
        if steps.last().is_some_and(|l| l.0 >= ns) {
            return Err(format!("line {n}: times must rise"));
        }
        steps.push((ns, value));
    }
    match steps.is_empty() {
        true => Err(format!("there is no line of the form time_us,{name}")),
        false => Ok(steps),
    }
}

/// The loss of a path over time, in dB, as it was measured or computed elsewhere: (ns, dB) in rising order of time. Each value holds
/// until the next, the last one to the end; before the first the loss is that of the medium's model.
#[derive(Clone, PartialEq, Debug)]
pub struct PathLossTrace(Vec<(u64, f64)>);

/// From this loss on two nodes are out of each other's reach, dB.
pub const OUT_OF_REACH_DB: f64 = 300.0;

impl PathLossTrace {
    /// Reads lines `time_us,db` with `#` comments and an optional header line. 300 dB: out of reach.
    ///
    /// # Errors
    /// A sentence with the number of the line that is wrong.
    pub fn from_csv(text: &str) -> Result<PathLossTrace, String> {
        steps_from_csv(text, "db", 0.0..=OUT_OF_REACH_DB).map(PathLossTrace)
    }

    /// Each change: when, in ns, and the loss from then on in dB, infinite out of reach.
    pub fn steps(&self) -> impl Iterator<Item = (u64, f64)> {
        let reach = |db| if db >= OUT_OF_REACH_DB { f64::INFINITY } else { db };
        self.0.iter().map(move |(ns, db)| (*ns, reach(*db)))
    }

    /// How many changes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none, which [`from_csv`](Self::from_csv) refuses.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_is_wrong_with_them() {
        let text = "time_us,db\n0, 60\n\n1500.5,82.25 # behind the press\n3000,300\n";
        let trace = PathLossTrace::from_csv(text).unwrap();
        let steps: Vec<_> = trace.steps().collect();
        assert_eq!(steps, [(0, 60.0), (1_500_500, 82.25), (3_000_000, f64::INFINITY)]);
        assert_eq!((trace.len(), trace.is_empty()), (3, false));
        for (bad, says) in [
            ("", "no line of the form time_us,db"),
            ("5", "line 1: expected time_us,db but found '5'"),
            ("1,60\nx,60", "line 2"),
            ("1,-3", "db lies between 0 and 300"),
            ("1,301", "db lies between 0 and 300"),
            ("1,nan", "db lies between"),
            ("-1,60", "time between 0"),
            ("2,60\n2,61", "line 2: times must rise"),
        ] {
            let said = PathLossTrace::from_csv(bad).unwrap_err();
            assert!(said.contains(says), "{bad:?}: {said}");
        }
    }
}
