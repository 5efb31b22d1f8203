//! Sharing one pass over the access table between all consumers.
//!
//! Decoding the table dominates the cost of reading a profile. Consumers therefore implement [`Visitor`], and all that
//! are ready share a pass: the first pass serves those that need only rows (the histogram, the sums of
//! [`crate::Usage`]), the second those that need the histogram to index pages.

use nodewise_profile::{Access, AccessSource};
use rayon::prelude::*;

/// A consumer of the rows of the access table, in the order of [`AccessSource::visit`].
pub trait Visitor: Send {
    /// Takes the next rows of the access table.
    fn rows(&mut self, rows: &[Access]);

    /// Called once after the last row.
    fn end(&mut self) {}
}

/// Reads the accesses once, and shows them to all visitors, which work at the same time.
///
/// # Errors
/// If the source cannot be read to its end; the visitors have then seen only a part of it.
pub fn read<S: AccessSource>(source: &S, visitors: &mut [&mut dyn Visitor]) -> Result<(), S::Error> {
    source.visit(&mut |rows| visitors.par_iter_mut().for_each(|v| v.rows(rows)))?;
    visitors.par_iter_mut().for_each(|v| v.end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::InMemory;

    /// Counts rows, and records whether the end was reported.
    #[derive(Debug, Default, PartialEq)]
    struct Count(usize, bool);

    impl Visitor for Count {
        fn rows(&mut self, rows: &[Access]) {
            assert!(!self.1);
            self.0 += rows.len();
        }

        fn end(&mut self) {
            self.1 = true;
        }
    }

    #[test]
    fn all_visitors_are_shown_all_rows_of_one_pass() {
        let (mut one, mut other) = (Count::default(), Count::default());
        let Ok(()) = read(
            &InMemory::new(vec![Access::default(); 3]),
            &mut [&mut one, &mut other],
        );
        assert_eq!([one, other], [Count(3, true), Count(3, true)]);
    }
}
