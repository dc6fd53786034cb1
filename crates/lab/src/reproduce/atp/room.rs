//! How much goodput flows over one path can have that are no less fair than others.

use crate::mesh::metrics::unfairness;

/// The most that the mean of the goodputs of so many flows can be, each with as much to send, over a path that carries `kbps` in all, if their unfairness is at most `most`.
///
/// When the k-th of them is through so many files have gone at least, so that its goodput is at most a k-th of `kbps`. Among goodputs with such bounds, and a mean, those are
/// the fairest of which the highest are all cut to the same.
pub fn room(flows: u32, kbps: f64, most: f64) -> f64 {
    let cut_to =
        |highest: f64| -> Vec<f64> { (1..=flows).map(|k| (kbps / f64::from(k)).min(highest)).collect() };
    let (mut fair, mut unfair) = (kbps / f64::from(flows.max(1)), kbps);
    // halved until nothing is left of it
    for _ in 0..64 {
        let middle = f64::midpoint(fair, unfair);
        let end = if unfairness(&cut_to(middle)) <= most {
            &mut fair
        } else {
            &mut unfair
        };
        *end = middle;
    }
    cut_to(fair).iter().sum::<f64>() / f64::from(flows.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_or_one_after_the_other() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        near(room(1, 100.0, 0.0), 100.0);
        near(room(5, 100.0, 0.0), 20.0);
        // first come, first served
        near(room(2, 100.0, 1.0), 75.0);
        near(room(3, 60.0, 9.0), (60.0 + 30.0 + 20.0) / 3.0);
        // of two: x and 50 with (x - 50) / (x + 50) = 0.1
        near(room(2, 100.0, 0.1), f64::midpoint(55.0 / 0.9, 50.0));
        assert!(room(5, 100.0, 0.02) < room(5, 100.0, 0.1));
    }
}
