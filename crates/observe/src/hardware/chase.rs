//! Loads that wait for each other.

/// Words of a cache line of 64 bytes.
const LINE: usize = 8;
/// Lines of a chain at most, 16 GiB of them: no caches hold that, and more would only take longer to lay.
const MOST: usize = 1 << 28;

/// Words of a chain within so many of memory: half, so that the rest can drive it out of the caches.
pub(super) fn within(words: usize) -> usize {
    (words / 2).min(MOST * LINE)
}

/// Lays a single cycle through all lines: the first word of each says at which word the next one begins.
/// Every such cycle is equally likely (Sattolo 1986), from this seed.
///
/// # Panics
/// With more lines than 32 bits count; [`within`] gives fewer.
pub(super) fn lay(words: &mut [u64], seed: u64) {
    let lines = u32::try_from(words.len() / LINE).expect("no more than `within` gives");
    let mut next: Vec<u32> = (0..lines).collect();
    let mut state = seed | 1;
    for last in (1..next.len()).rev() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        next.swap(last, ((random * last as u64) >> 32) as usize);
    }
    for (line, next) in words.chunks_exact_mut(LINE).zip(next) {
        line[0] = u64::from(next) * LINE as u64;
    }
}

/// Goes on by `steps` lines from a word, and says where it is.
#[inline(never)]
pub(super) fn walk(words: &[u64], from: usize, steps: usize) -> usize {
    let mut at = from;
    for _ in 0..steps {
        at = words[at] as usize;
    }
    std::hint::black_box(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_walk_comes_through_every_line_once(lines in 1usize..500, seed in any::<u64>()) {
            let mut words = vec![0; lines * LINE];
            lay(&mut words, seed);
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                prop_assert_eq!(at % LINE, 0);
                prop_assert!(!std::mem::replace(&mut seen[at / LINE], true));
                at = walk(&words, at, 1);
            }
            prop_assert_eq!(at, 0);
            prop_assert_eq!(walk(&words, 0, lines), 0);
        }
    }

    #[test]
    fn a_chain_is_half_of_memory_as_far_as_lines_can_be_counted() {
        assert_eq!(within(1000), 500);
        for bytes in [64usize << 30, 1 << 43] {
            let lines = within(bytes / 8) / LINE;
            assert!(lines == MOST && u32::try_from(lines).is_ok());
        }
    }

    #[test]
    fn neighbours_are_seldom_next() {
        let mut words = vec![0; 4096 * LINE];
        lay(&mut words, 1);
        let near = (0..4096)
            .filter(|l| walk(&words, l * LINE, 1).abs_diff(l * LINE) <= 2 * LINE)
            .count();
        assert!(near < 20, "{near} of 4096");
    }
}
