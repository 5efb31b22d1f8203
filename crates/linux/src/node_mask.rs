//! Sets of nodes as the kernel's calls on memory take them.

const WORDS: usize = 16;
/// The kernel reads one bit less than it is given.
const MASK_BITS: libc::c_ulong = (WORDS * 64 + 1) as libc::c_ulong;

/// Nodes as the kernel takes them: node numbers below 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeMask([u64; WORDS]);

impl FromIterator<u32> for NodeMask {
    /// Nodes beyond the limit of the mask are left out.
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Self {
        let mut words = [0; WORDS];
        for node in nodes {
            if let Some(word) = words.get_mut(node as usize / 64) {
                *word |= 1 << (node % 64);
            }
        }
        Self(words)
    }
}

impl NodeMask {
    /// As the kernel takes it: words and bits.
    pub(crate) fn raw(&self) -> (*const u64, libc::c_ulong) {
        (self.0.as_ptr(), MASK_BITS)
    }

    /// As [`NodeMask::raw`], for the kernel to write.
    pub(crate) fn raw_mut(&mut self) -> (*mut u64, libc::c_ulong) {
        (self.0.as_mut_ptr(), MASK_BITS)
    }

    /// The node numbers in the mask, ascending.
    #[must_use]
    pub fn nodes(&self) -> Vec<u32> {
        (0..WORDS as u32 * 64)
            .filter(|n| self.0[*n as usize / 64] >> (n % 64) & 1 == 1)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_its_nodes() {
        let mask: NodeMask = [0, 63, 64, 1023, 1024].into_iter().collect();
        assert_eq!(mask.nodes(), [0, 63, 64, 1023]);
    }
}
