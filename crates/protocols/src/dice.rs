//! Numbers that look random and follow from a seed: SplitMix64 (Steele, Lea, Flood 2014).

/// Equal states give equal numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub u64);

/// The last step of SplitMix64: neighbouring numbers become unlike.
pub(crate) const fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Dice {
    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`, all equally likely.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' program for the seed 1234567.
    #[test]
    fn golden() {
        let mut dice = Dice(1_234_567);
        let rolled = [0; 3].map(|_| dice.roll());
        assert_eq!(
            rolled,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        assert!((0..1_000).all(|_| dice.below(3) < 3));
    }
}
