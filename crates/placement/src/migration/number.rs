//! Number types that counts are summed in.

/// Whole numbers, exact as long as sums stay below 2 to the power of [`Number::EXACT`].
pub trait Number: Copy + Default + PartialOrd {
    /// Bits of sums that are.
    const EXACT: u32;

    /// Converts a count to this number type.
    fn of(count: u64) -> Self;

    /// The sum, for what is reported.
    fn get(self) -> f64;

    /// The sum of both numbers.
    fn plus(self, other: Self) -> Self;

    /// The difference of both numbers.
    fn minus(self, other: Self) -> Self;

    /// The product of both numbers.
    fn times(self, other: Self) -> Self;
}

impl Number for u64 {
    const EXACT: u32 = 64;

    fn of(count: u64) -> Self {
        count
    }

    fn get(self) -> f64 {
        self as f64
    }

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
}

/// What vector instructions of any x86-64 and Arm add and multiply, four at a time.
impl Number for f32 {
    const EXACT: u32 = 24;

    fn of(count: u64) -> Self {
        // Exact counts fit; a signed half is what the instruction converts.
        count as i32 as Self
    }

    fn get(self) -> f64 {
        f64::from(self)
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn minus(self, other: Self) -> Self {
        self - other
    }

    fn times(self, other: Self) -> Self {
        self * other
    }
}

/// Bits of the largest of some counts, at most one too many.
pub(super) fn bits(counts: &[u64]) -> u32 {
    u64::BITS - counts.iter().fold(0, |all, c| all | c).leading_zeros()
}
