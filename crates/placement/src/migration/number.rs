//! Number types for sums of counts.

/// Whole numbers, exact as long as sums stay below 2 to the power of [`Number::EXACT`].
pub trait Number: Copy + Default + PartialOrd {
    /// Sums of this many bits are exact.
    const EXACT: u32;

    /// Converts a count to this number type.
    fn of(count: u64) -> Self;

    /// The value, for reports.
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

/// A type that the vector instructions of every x86-64 and Arm processor add and multiply, four at a time.
impl Number for f32 {
    const EXACT: u32 = 24;

    fn of(count: u64) -> Self {
        // Exact counts fit; the vector instruction converts signed integers.
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

/// The number of bits of the largest of some counts, or one more.
pub(super) fn bits(counts: &[u64]) -> u32 {
    u64::BITS - counts.iter().fold(0, |all, c| all | c).leading_zeros()
}
