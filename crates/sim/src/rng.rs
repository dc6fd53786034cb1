//! Random numbers: one seed, one named stream per node and cause, so that adding a node or a cause does not
//! reshuffle the others.
//!
//! xoshiro256++ (Blackman and Vigna 2019) with its state filled by SplitMix64; the samplers are our own, so that
//! a seed gives the same run for ever. Elementary functions come from `libm`, which gives the same bits everywhere.

/// What a stream of random numbers is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Backoff of an adapter.
    Backoff = 1,
    /// Whether frames are received.
    Reception = 2,
    /// Latencies of a host.
    Host = 3,
    /// When traffic comes.
    Traffic = 4,
    /// Faults.
    Fault = 5,
    /// Positions and shadowing.
    Place = 6,
    /// Random losses of a link.
    Link = 7,
    /// Clock offsets and drifts.
    Clock = 8,
    /// For the protocols.
    Protocol = 9,
}

/// SplitMix64 (Steele, Lea, Flood 2014): one step.
pub const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A hash of three numbers by three steps of SplitMix64: phases and choices that another program can repeat.
pub const fn mix3(seed: u64, node: u64, salt: u64) -> u64 {
    mix(mix(mix(seed) ^ node) ^ salt)
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream([u64; 4]);

impl Stream {
    /// The stream of `cause` at `who` (a node, a link, a flow) in the run with `seed`.
    pub fn new(seed: u64, who: u64, cause: Cause) -> Stream {
        let mut x = mix3(seed, who, cause as u64);
        Stream(std::array::from_fn(|_| {
            x = mix(x);
            x
        }))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in 0..n by multiplication (Lemire 2019, without the rejection: the bias is below n / 2^64). 0 for n = 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Exponential with mean `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Standard normal (Box and Muller 1958, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let r = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        r * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

impl crate::host::Random for Stream {
    fn next_u64(&mut self) -> u64 {
        Stream::next_u64(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_and_repeat() {
        let first = |seed, who, cause| Stream::new(seed, who, cause).next_u64();
        assert_eq!(first(1, 2, Cause::Host), first(1, 2, Cause::Host));
        let different = [
            first(1, 2, Cause::Host),
            first(2, 2, Cause::Host),
            first(1, 3, Cause::Host),
            first(1, 2, Cause::Backoff),
        ];
        for (i, a) in different.iter().enumerate() {
            assert!(different[i + 1..].iter().all(|b| a != b));
        }
    }

    /// xoshiro256++ from the state 1, 2, 3, 4: the first values of the reference implementation.
    #[test]
    fn reference_values() {
        let mut s = Stream([1, 2, 3, 4]);
        assert_eq!(
            [s.next_u64(), s.next_u64(), s.next_u64()],
            [41_943_041, 58_720_359, 3_588_806_011_781_223]
        );
    }

    #[test]
    fn moments() {
        let mut s = Stream::new(7, 0, Cause::Traffic);
        let n = 200_000;
        let mut sum = [0.0; 4];
        for _ in 0..n {
            let z = s.normal();
            sum[0] += s.unit();
            sum[1] += s.exponential(3.0);
            sum[2] += z;
            sum[3] += z * z;
        }
        let mean = sum.map(|x| x / f64::from(n));
        assert!(
            (mean[0] - 0.5).abs() < 0.005 && (mean[1] - 3.0).abs() < 0.05,
            "{mean:?}"
        );
        assert!(mean[2].abs() < 0.01 && (mean[3] - 1.0).abs() < 0.02, "{mean:?}");
        let mut histogram = [0; 16];
        for _ in 0..160_000 {
            histogram[s.below(16) as usize] += 1;
        }
        assert!(
            histogram.iter().all(|n| (9_500..10_500).contains(n)),
            "{histogram:?}"
        );
        assert_eq!(s.below(0), 0);
    }
}
