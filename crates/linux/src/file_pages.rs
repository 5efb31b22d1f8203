//! Pages of a file in the page cache: which are there, on which node they lie, and moving them. Works for every file
//! that can be mapped, shared memory segments and memfds included, whether or not a process maps them.

use crate::frames::{Frame, Frames};
use crate::mempolicy::Policy;
use crate::pages::{self, CallError, PageStatus, Scope};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Pages that the kernel maps at once around one that is touched, if they are in memory (`fault_around_bytes`,
/// mm/memory.c).
const FAULT_AROUND_PAGES: usize = 16;

/// A part of a file, mapped for reading.
///
/// The mapping is never read by this process's own instructions, only by a system call that copies from it: if the file
/// is truncated meanwhile, the call fails, and no signal ends this process.
#[derive(Debug)]
pub struct FilePages {
    base: *mut libc::c_void,
    bytes: usize,
    /// Where the bytes go that are read to have a page mapped.
    sink: File,
}

impl FilePages {
    /// Maps `bytes` of a file from `offset` on, a multiple of the page size.
    ///
    /// # Errors
    /// The file cannot be mapped: a folder, a pipe, most devices.
    pub fn map(file: &File, offset: u64, bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let at = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                at,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // No read-ahead where a page is touched that is marked for it, or that has vanished meanwhile.
        // SAFETY: advice about our own mapping.
        unsafe { libc::madvise(base, length, libc::MADV_RANDOM) };
        Ok(Self {
            base,
            bytes: length,
            sink: crate::memfd::create(c"nodewise-sink")?,
        })
    }

    /// Number of pages of this part.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.div_ceil(PAGE as usize)
    }

    fn address(&self, page: usize) -> u64 {
        self.base.addr() as u64 + page as u64 * PAGE
    }

    /// Which pages are in memory. Nothing is read from the disk for it. Of a file for which
    /// [`crate::page_cache::tells_residence`] is false, the kernel says that all are.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn resident(&self) -> io::Result<Vec<bool>> {
        let mut states = vec![0_u8; self.count()];
        // SAFETY: our own mapping; the kernel writes a byte for each of its pages.
        match unsafe { libc::mincore(self.base, self.bytes, states.as_mut_ptr()) } {
            0 => Ok(states.into_iter().map(|state| state & 1 == 1).collect()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The node of each page; [`PageStatus::Absent`] for those that are not in memory. Those are not read,
    /// where [`FilePages::resident`] tells the truth.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn nodes(&self) -> io::Result<Vec<PageStatus>> {
        let resident = self.resident()?;
        let addresses = |wanted: &dyn Fn(usize) -> bool| -> Vec<u64> {
            let there = (0..resident.len()).filter(|p| resident[*p] && wanted(*p));
            there.map(|p| self.address(p)).collect()
        };
        let this = std::process::id();
        // The first page in memory of each group brings its neighbours along.
        let leads = |p: usize| {
            let group = p - p % FAULT_AROUND_PAGES;
            !resident[group..p].contains(&true)
        };
        self.touch(&addresses(&leads));
        let mut statuses = vec![PageStatus::Absent; resident.len()];
        let ask = |statuses: &mut [PageStatus], asked: &[u64]| -> io::Result<Vec<u64>> {
            let mut without = Vec::new();
            for (address, status) in asked.iter().zip(pages::query(this, asked)?) {
                statuses[((address - self.address(0)) / PAGE) as usize] = status;
                if status.node().is_none() {
                    without.push(*address);
                }
            }
            Ok(without)
        };
        let left = ask(&mut statuses, &addresses(&|_| true))?;
        // What the kernel passes over in a group: pages under read-ahead, or locked for a moment.
        if !left.is_empty() {
            self.touch(&left);
            ask(&mut statuses, &left)?;
        }
        Ok(statuses)
    }

    /// Reads a byte of each page, which has it mapped here. Unlike `process_vm_readv`, a copy by `write` does not count
    /// as a use of the page. Pages that cannot be read are left as they are.
    fn touch(&self, addresses: &[u64]) {
        const MAX_VECTORS: usize = 1024;
        let mut left = addresses;
        while !left.is_empty() {
            let part = &left[..left.len().min(MAX_VECTORS)];
            let bytes: Vec<libc::iovec> = part.iter().map(|a| pages::one_byte(*a)).collect();
            // SAFETY: the addresses lie in our own mapping, from which the kernel reads; it writes to the sink.
            let read = unsafe { libc::pwritev(self.sink.as_raw_fd(), bytes.as_ptr(), bytes.len() as _, 0) };
            // The kernel stops at the first page that cannot be read.
            let done = usize::try_from(read).unwrap_or(0);
            left = &left[part.len().min(done + 1)..];
        }
    }

    /// What the kernel knows of the frames of these pages, numbered within this part; `None` for pages that are not
    /// mapped here, as they are after [`FilePages::nodes`].
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn frames(&self, frames: &Frames, wanted: &[usize]) -> io::Result<Vec<Option<Frame>>> {
        let addresses: Vec<u64> = wanted.iter().map(|page| self.address(*page)).collect();
        frames.of(&addresses)
    }

    /// Sets the policy of a part of a shared memory object, `pages` numbered within this part: of its pages that are
    /// allocated from now on, by whichever process. The object keeps it until it is gone.
    ///
    /// # Errors
    /// The kernel does not know the policy, or none of its nodes is allowed here. Files on a disk have no policy: the
    /// kernel takes it and does nothing.
    pub fn set_policy(&self, pages: std::ops::Range<usize>, policy: &Policy) -> io::Result<()> {
        let bytes = pages.len() * PAGE as usize;
        policy.apply_to(self.address(pages.start), bytes)
    }

    /// Moves pages, numbered within this part, to a node. Pages have to be mapped here, as after
    /// [`FilePages::nodes`]. Pages that other processes map too are moved only for [`Scope::Shared`]. Statuses that
    /// were reported before an error of the whole call are returned with it.
    #[must_use]
    pub fn move_to(&self, wanted: &[usize], node: u32, scope: Scope) -> (Vec<PageStatus>, Option<CallError>) {
        let addresses: Vec<u64> = wanted.iter().map(|page| self.address(*page)).collect();
        pages::move_to(std::process::id(), &addresses, node, scope)
    }
}

impl Drop for FilePages {
    fn drop(&mut self) {
        // Of a mapping with this advice the kernel does not count pages as used when it ends (zap_pte_range, mm/memory.c);
        // of random ones from Linux 6.3 on.
        // SAFETY: our own mapping, which no reference leads into.
        unsafe {
            libc::madvise(self.base, self.bytes, libc::MADV_SEQUENTIAL);
            libc::munmap(self.base, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mempolicy::allowed_nodes;
    use std::os::unix::fs::FileExt;

    /// A file of `pages` pages in the page cache, with a hole of `hole` pages after them.
    fn file(name: &str, pages: u64, hole: u64) -> File {
        let path = std::env::temp_dir().join(format!("nodewise-{name}-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        file.write_all_at(&vec![7; (pages * PAGE) as usize], 0).unwrap();
        file.set_len((pages + hole) * PAGE).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    #[test]
    fn cached_pages_lie_on_a_node_and_others_are_not_read() {
        let Ok(allowed) = allowed_nodes() else { return };
        for file in [file("cached", 40, 24), shared(40, 24)] {
            let view = FilePages::map(&file, 0, 64 * PAGE).unwrap();
            for _ in 0..2 {
                let nodes = view.nodes().unwrap();
                assert_eq!(nodes.len(), 64);
                assert!(nodes[..40].iter().all(|n| allowed.contains(&n.node().unwrap())));
                assert!(nodes[40..].iter().all(|n| *n == PageStatus::Absent), "{nodes:?}");
            }
            // A part that does not begin with the file.
            let part = FilePages::map(&file, 36 * PAGE, 8 * PAGE).unwrap();
            let there: Vec<bool> = part.nodes().unwrap().iter().map(|n| n.node().is_some()).collect();
            assert_eq!(there, [true, true, true, true, false, false, false, false]);
        }
    }

    fn in_memory(view: &FilePages) -> usize {
        let nodes = view.nodes().unwrap();
        nodes.iter().filter(|n| n.node().is_some()).count()
    }

    /// As [`file`], a memfd.
    fn shared(pages: u64, hole: u64) -> File {
        let file = crate::memfd::create(c"nodewise-test").unwrap();
        file.write_all_at(&vec![7; (pages * PAGE) as usize], 0).unwrap();
        file.set_len((pages + hole) * PAGE).unwrap();
        file
    }

    #[test]
    fn a_file_that_is_truncated_meanwhile_ends_no_process() {
        let file = file("cut", 32, 0);
        let view = FilePages::map(&file, 0, 32 * PAGE).unwrap();
        assert_eq!(in_memory(&view), 32);
        file.set_len(4 * PAGE).unwrap();
        view.touch(&[view.address(20)]);
        assert_eq!(in_memory(&view), 4);
    }

    #[test]
    fn moving_a_page_to_where_it_is_leaves_it_there() {
        if allowed_nodes().is_err() {
            return;
        }
        let file = file("moved", 4, 0);
        let view = FilePages::map(&file, 0, 4 * PAGE).unwrap();
        let node = view.nodes().unwrap()[0].node().unwrap();
        let (after, error) = view.move_to(&[0, 3], node, Scope::Exclusive);
        assert_eq!((after, error), (vec![PageStatus::On(node); 2], None));
        let (_, error) = view.move_to(&[0], 1000, Scope::Exclusive);
        assert_eq!(error, Some(CallError::NotAllowed));
    }
}
