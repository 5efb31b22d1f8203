//! Memory of this process bound to a given node.

use crate::mempolicy::nodes_of_pages;
use crate::node_mask::NodeMask;
use crate::{Host, ReadError};
use std::io;

const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// Anonymous memory, initially zero, aligned to huge pages and with a request for them. It is allocated on a node when
/// it is populated.
pub struct NodeMemory {
    mapping: *mut libc::c_void,
    mapped: usize,
    base: *mut u64,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and is reached through its borrows.
unsafe impl Send for NodeMemory {}
// SAFETY: as above; what is shared is only read.
unsafe impl Sync for NodeMemory {}

impl NodeMemory {
    /// Reserves `bytes`, rounded up to whole huge pages.
    ///
    /// # Errors
    /// No such room in the address space, or a limit on it.
    pub fn reserve(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(HUGE);
        let mapped = bytes + HUGE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skipped = mapping.addr().next_multiple_of(HUGE) - mapping.addr();
        let base = mapping.wrapping_byte_add(skipped);
        // SAFETY: advice about our own mapping; where it is not taken, pages are small.
        unsafe { libc::madvise(base, bytes, libc::MADV_HUGEPAGE) };
        Ok(Self {
            mapping,
            mapped,
            base: base.cast(),
            bytes,
        })
    }

    /// Makes its pages be allocated on this node only.
    ///
    /// # Errors
    /// The kernel refuses: no such node, not allowed here, or a container's filter.
    pub fn bind(&self, node: u32) -> io::Result<()> {
        const BIND: libc::c_int = 2;
        let mask: NodeMask = [node].into_iter().collect();
        let (words, bits) = mask.raw();
        // SAFETY: our own mapping; the kernel reads `bits` bits of the mask, which outlives the call.
        let status = unsafe { libc::syscall(libc::SYS_mbind, self.base, self.bytes, BIND, words, bits, 0) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Touches every page, from the CPU that this thread runs on.
    pub fn populate(&mut self) {
        for word in self.words_mut().chunks_mut(PAGE / 8) {
            word[0] = std::hint::black_box(1);
        }
    }

    /// The nodes of up to `samples` of its pages, evenly spread; `None` where there is no memory.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn nodes(&self, samples: usize) -> io::Result<Vec<Option<u32>>> {
        let pages = self.bytes / PAGE;
        let step = pages.div_ceil(samples.max(1));
        let address = |page: usize| (self.base.addr() + page * PAGE) as u64;
        let addresses: Vec<u64> = (0..pages).step_by(step.max(1)).map(address).collect();
        nodes_of_pages(std::process::id(), &addresses)
    }

    /// How much of it lies on transparent huge pages, bytes.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn huge_bytes(&self, host: &Host) -> Result<u64, ReadError> {
        let range = self.base.addr() as u64..(self.base.addr() + self.bytes) as u64;
        let found = host.huge_mappings(std::process::id())?;
        Ok(found.range(range).map(|(_, bytes)| bytes).sum())
    }

    /// Size of the mapping, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory as 64-bit words, for reading.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        // SAFETY: mapped, aligned, zeros until written, and not written while borrowed.
        unsafe { std::slice::from_raw_parts(self.base, self.bytes / 8) }
    }

    /// The memory as 64-bit words, for writing.
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `words`; the exclusive borrow rules out others.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.bytes / 8) }
    }
}

impl Drop for NodeMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, into which no borrow is left.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mempolicy::allowed_nodes;

    #[test]
    fn bound_memory_lies_on_its_node() {
        let Ok(nodes) = allowed_nodes() else { return };
        let node = *nodes.last().unwrap();
        let mut memory = NodeMemory::reserve(3 << 20).unwrap();
        assert_eq!(memory.nodes(5).unwrap(), [None; 5]);
        memory.bind(node).unwrap();
        memory.populate();
        assert_eq!(memory.bytes(), 4 << 20);
        assert_eq!(memory.nodes(64).unwrap(), [Some(node); 64]);
        assert!(memory.bind(1000).is_err());
        memory.words_mut().fill(7);
        assert!(memory.words().iter().all(|w| *w == 7));
        assert!(memory.huge_bytes(&Host::default()).unwrap() <= 4 << 20);
    }
}
