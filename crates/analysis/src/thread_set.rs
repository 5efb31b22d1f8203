//! A set of threads.

use nodewise_profile::ThreadId;

/// A bit set of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadSet {
    /// 64 threads a word.
    words: Vec<u64>,
}

impl ThreadSet {
    pub fn insert(&mut self, thread: ThreadId) {
        let (word, bit) = (thread.index() / 64, thread.index() % 64);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << bit;
    }

    pub fn clear(&mut self) {
        self.words.clear();
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The threads in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ThreadId> {
        let bits = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64)
                .filter(move |b| bits >> b & 1 == 1)
                .map(move |b| ThreadId::from_index(64 * word + b))
        };
        self.words.iter().enumerate().flat_map(bits)
    }

    pub fn absorb(&mut self, other: &Self) {
        self.words.resize(self.words.len().max(other.words.len()), 0);
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(all, more)| *all |= more);
    }
}
