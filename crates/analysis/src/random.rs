//! Pseudo-random numbers that are equal in every run: Steele, Lea and Flood's SplitMix64 ("Fast splittable pseudorandom
//! number generators", OOPSLA 2014).

/// The step between two states: 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The mixing function: the number that belongs to state `x`.
#[must_use]
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(STEP);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A sequence of random numbers from a seed.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Uniform over all numbers of 64 bits.
    pub fn word(&mut self) -> u64 {
        let word = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        word
    }

    /// Uniform, above 0, 1 at most.
    pub fn share(&mut self) -> f64 {
        (1 + self.below(1 << 53)) as f64 / (1u64 << 53) as f64
    }

    /// Uniform, from 0 to `n - 1`; 0 of 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers from seed 0, as published with the generator.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix(0);
        let words = [random.word(), random.word(), random.word()];
        assert_eq!(
            words,
            [
                0xe220_a839_7b1d_cdaf,
                0x6e78_9e6a_a1b9_65f4,
                0x06c4_5d18_8009_454f
            ]
        );
    }
}
