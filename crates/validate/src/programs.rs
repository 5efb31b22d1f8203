//! The built-in programs: those of `workloads/` that differ most in what they access.

use anyhow::Context;
use nodewise_linux::companion;
use std::path::PathBuf;

/// A program of the set. Sizes are in its own unit (`--help` says which).
#[derive(Debug)]
pub struct Program {
    /// As its file is called.
    pub name: &'static str,
    /// How it accesses its data, in a few words.
    pub pattern: &'static str,
    /// Who touches its arrays first: `--init`.
    pub init: &'static str,
    /// How often an iteration goes through all arrays, about.
    pub passes: f64,
    /// Bytes of its arrays, by size and threads.
    pub bytes: fn(u64, u64) -> u64,
    /// Smallest and largest size that it takes.
    pub sizes: std::ops::RangeInclusive<u64>,
    /// Whether its size is a power of two.
    pub power_of_two: bool,
}

/// All programs, in the order in which they run. Some are initialised by one thread and some by all, so that the kernel's
/// first touch is a bad placement for some and a good one for others.
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
        // Two grids a level, each an eighth of the one before, and the charges; with a border on both sides.
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

    /// The plain build and the one with counters, beside the running program.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn builds(&self) -> anyhow::Result<[PathBuf; 2]> {
        let find = |build: &str| {
            let name = format!("validation/{build}/{}", self.name);
            companion::find(&name).context("the programs of `validate` come with nodewise")
        };
        Ok([find("plain")?, find("recorded")?])
    }

    /// The smallest size whose arrays take the `wanted` bytes, or the largest that takes no more than `most`.
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
