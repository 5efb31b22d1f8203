//! A chain of dependent loads, for measuring latency.

/// Words of a cache line of 64 bytes.
const LINE_WORDS: usize = 8;
/// Largest number of lines in a chain, 16 GiB: no cache is that large, and building a larger chain would only take
/// longer.
const MAX_LINES: usize = 1 << 28;

/// Words of the chain within this number of words of memory: half, so that reading the rest evicts it from the caches.
pub(super) fn within(words: usize) -> usize {
    (words / 2).min(MAX_LINES * LINE_WORDS)
}

/// Links all lines to a single cycle: the first word of each line is the index of the word at which the next one
/// begins. Each cycle is equally likely (Sattolo 1986), determined by the seed.
///
/// # Panics
/// If there are more lines than 32 bits can count; [`within`] gives fewer.
pub(super) fn lay(words: &mut [u64], seed: u64) {
    let lines = u32::try_from(words.len() / LINE_WORDS).expect("no more than `within` gives");
    let mut next: Vec<u32> = (0..lines).collect();
    let mut state = seed | 1;
    for last in (1..next.len()).rev() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        next.swap(last, ((random * last as u64) >> 32) as usize);
    }
    for (line, next) in words.chunks_exact_mut(LINE_WORDS).zip(next) {
        line[0] = u64::from(next) * LINE_WORDS as u64;
    }
}

/// Follows the chain by `steps` lines from a word; returns the index of the word that it arrives at.
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
            let mut words = vec![0; lines * LINE_WORDS];
            lay(&mut words, seed);
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                prop_assert_eq!(at % LINE_WORDS, 0);
                prop_assert!(!std::mem::replace(&mut seen[at / LINE_WORDS], true));
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
            let lines = within(bytes / 8) / LINE_WORDS;
            assert!(lines == MAX_LINES && u32::try_from(lines).is_ok());
        }
    }

    #[test]
    fn neighbours_are_seldom_next() {
        let mut words = vec![0; 4096 * LINE_WORDS];
        lay(&mut words, 1);
        let near = (0..4096)
            .filter(|l| walk(&words, l * LINE_WORDS, 1).abs_diff(l * LINE_WORDS) <= 2 * LINE_WORDS)
            .count();
        assert!(near < 20, "{near} of 4096");
    }
}
