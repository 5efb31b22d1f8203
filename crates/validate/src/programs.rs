//! The built-in set of programs: those of `workloads/` with the most different access patterns.

use anyhow::Context;
use nodewise_linux::companion;
use std::path::PathBuf;

/// A program of the set. Its sizes are in a unit of its own, which its `--help` describes.
#[derive(Debug)]
pub struct Program {
    /// File name of the program.
    pub name: &'static str,
    /// The access pattern, in a few words.
    pub pattern: &'static str,
    /// The threads that touch its arrays first, as the value of its option `--init`.
    pub init: &'static str,
    /// Approximate number of passes over all arrays in one iteration.
    pub passes: f64,
    /// Bytes of its arrays, given its size and the number of threads.
    pub bytes: fn(u64, u64) -> u64,
    /// Smallest and largest size that the program accepts.
    pub sizes: std::ops::RangeInclusive<u64>,
    /// Whether the size must be a power of two.
    pub power_of_two: bool,
}

/// All programs, in the order in which they run. One thread initialises some of them and all threads initialise others,
/// so that first-touch is a bad placement for some and a good one for others.
pub const PROGRAMS: [Program; 5] = [
    Program {
        name: "sor",
        pattern: "bands of rows, neighbours at the seams; initialised by one thread",
        init: "master",
        passes: 2.0,
        bytes: |n, _| 16 * (n + 2) * (n + 2) + 8 * (n + 1),
        sizes: 64..=65_536,
        power_of_two: false,
    },
    Program {
        name: "cg",
        pattern: "a matrix by rows, a vector gathered from everywhere; as NAS CG initialises",
        init: "nas",
        passes: 1.0,
        bytes: |n, _| n * (25 * (8 + 4) + 8 + 4 * 8),
        sizes: 1000..=50_000_000,
        power_of_two: false,
    },
    Program {
        name: "mg",
        pattern: "planes of grids, coarse and fine; initialised by all threads",
        init: "parallel",
        passes: 3.0,
        // Two grids per level, each an eighth of the size of the level before, and the charges; grids have a border
        // on each side.
        bytes: |n, _| {
            let grid = |n: u64| 8 * (n + 2).pow(3);
            grid(n)
                + (0..)
                    .map(|l| n >> l)
                    .take_while(|n| *n >= 4)
                    .map(|n| 2 * grid(n))
                    .sum::<u64>()
        },
        sizes: 8..=1024,
        power_of_two: true,
    },
    Program {
        name: "is",
        pattern: "keys by thread, counts of all threads summed up; initialised by all threads",
        init: "parallel",
        passes: 1.0,
        bytes: |n, threads| 8 * n + 4 * (threads + 1) * (n / 32),
        sizes: 65_536..=1 << 30,
        power_of_two: false,
    },
    Program {
        name: "kmedian",
        pattern: "points by block, a few of them read by all; initialised by all threads",
        init: "parallel",
        passes: 45.0,
        bytes: |n, _| n * (64 * 4 + 3 * 8 + 4),
        sizes: 1024..=100_000_000,
        power_of_two: false,
    },
];

impl Program {
    /// The program of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROGRAMS.iter().find(|p| p.name == name)
    }

    /// Paths of the plain and the instrumented build, which are installed with nodewise.
    ///
    /// # Errors
    /// A build is missing.
    pub fn builds(&self) -> anyhow::Result<[PathBuf; 2]> {
        let find = |build: &str| {
            let name = format!("validation/{build}/{}", self.name);
            companion::find(&name).context("the programs of `validate` come with nodewise")
        };
        Ok([find("plain")?, find("recorded")?])
    }

    /// The smallest permitted size whose arrays take at least `wanted` bytes. If it must be a power of two, it is
    /// rounded up, or down if the arrays would then take more than `most` bytes.
    #[must_use]
    pub fn size(&self, wanted: u64, most: u64, threads: u64) -> u64 {
        let takes = |size: u64| (self.bytes)(size, threads);
        let (least, largest) = (*self.sizes.start(), *self.sizes.end());
        let (mut low, mut high) = (least, largest);
        while low < high {
            let middle = low + (high - low) / 2;
            if takes(middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if !self.power_of_two {
            return low;
        }
        let up = low.next_power_of_two().min(largest);
        if takes(up) > most && up / 2 >= least {
            up / 2
        } else {
            up
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_the_smallest_that_takes_what_is_wanted() {
        for program in &PROGRAMS {
            let takes = |size| (program.bytes)(size, 8);
            for wanted in [8 << 20, 100 << 20, 1 << 30] {
                let size = program.size(wanted, 8 << 30, 8);
                assert!(
                    takes(size) >= wanted && program.sizes.contains(&size),
                    "{}",
                    program.name
                );
                let smaller = if program.power_of_two { size / 2 } else { size - 1 };
                assert!(takes(smaller) < wanted, "{}", program.name);
            }
        }
    }

    #[test]
    fn a_power_of_two_that_does_not_fit_is_halved() {
        let mg = Program::named("mg").unwrap();
        assert_eq!(mg.size(100 << 20, 1 << 40, 4), 256);
        assert_eq!(mg.size(100 << 20, 200 << 20, 4), 128);
        assert_eq!(mg.size(0, 0, 4), 8);
    }
}
