//! Pages of a process: where they are, and moving them (`move_pages(2)`, `migrate_pages(2)`).

use crate::node_mask::NodeMask;
use std::io;

/// The kernel's result for one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStatus {
    /// The page is on this node, whether it was moved or was there before.
    On(u32),
    /// No memory there: never touched, swapped out, or unmapped meanwhile (`ENOENT`).
    Absent,
    /// The page is in use by the kernel, or pinned (`EBUSY`).
    Busy,
    /// Other processes map it too (`EACCES`).
    Shared,
    /// The target node is full (`ENOMEM`).
    NoRoom,
    /// Not mapped, or the page of zeros (`EFAULT`).
    Fault,
    /// Any other error number of the kernel.
    Other(i32),
    /// The kernel stopped before it reached the page, or reported nothing; query its node again.
    Unreported,
}

/// Which pages may be moved (include/uapi/linux/mempolicy.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Scope {
    /// Those that only this process maps (`MPOL_MF_MOVE`).
    Exclusive = 2,
    /// Those that other processes map too (`MPOL_MF_MOVE_ALL`); needs `CAP_SYS_NICE`.
    Shared = 4,
}

/// A value that is neither a node nor a negated error number.
const NO_STATUS: i32 = i32::MIN;

impl PageStatus {
    fn of(status: i32) -> Self {
        match u32::try_from(status) {
            Ok(node) => Self::On(node),
            Err(_) if status == NO_STATUS => Self::Unreported,
            Err(_) => match -status {
                libc::ENOENT => Self::Absent,
                libc::EBUSY => Self::Busy,
                libc::EACCES => Self::Shared,
                libc::ENOMEM => Self::NoRoom,
                libc::EFAULT => Self::Fault,
                other => Self::Other(other),
            },
        }
    }

    /// The node it lies on.
    #[must_use]
    pub fn node(self) -> Option<u32> {
        match self {
            Self::On(node) => Some(node),
            _ => None,
        }
    }
}

/// Why a whole call failed. Pages before the failure may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The process has ended, or is a kernel thread.
    Gone,
    /// The process is not ours to look into.
    Denied,
    /// The target node is full.
    NoRoom,
    /// The process may not use the node.
    NotAllowed,
    /// Any other error number of the kernel.
    Other(i32),
}

impl From<CallError> for io::Error {
    fn from(error: CallError) -> Self {
        Self::from_raw_os_error(match error {
            CallError::Gone => libc::ESRCH,
            CallError::Denied => libc::EPERM,
            CallError::NoRoom => libc::ENOMEM,
            CallError::NotAllowed => libc::EACCES,
            CallError::Other(number) => number,
        })
    }
}

impl CallError {
    fn last() -> Self {
        match io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            // EINVAL: a process without memory, which is how one that is ending looks.
            libc::ESRCH | libc::EINVAL => Self::Gone,
            libc::EPERM => Self::Denied,
            libc::ENOMEM => Self::NoRoom,
            libc::EACCES | libc::ENODEV => Self::NotAllowed,
            other => Self::Other(other),
        }
    }
}

/// Where the pages at these addresses are; nothing is moved.
///
/// # Errors
/// The process is gone or not ours to look into.
pub fn query(pid: u32, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError> {
    let (statuses, error) = call(pid, addresses, None, Scope::Exclusive);
    error.map_or(Ok(statuses), Err)
}

/// Moves the pages at these addresses to one node. An error of the whole call is returned with the statuses that were
/// reported before it.
#[must_use]
pub fn move_to(pid: u32, addresses: &[u64], node: u32, scope: Scope) -> (Vec<PageStatus>, Option<CallError>) {
    let nodes = vec![node as i32; addresses.len()];
    call(pid, addresses, Some(&nodes), scope)
}

fn call(
    pid: u32,
    addresses: &[u64],
    nodes: Option<&[i32]>,
    scope: Scope,
) -> (Vec<PageStatus>, Option<CallError>) {
    let mut status = vec![NO_STATUS; addresses.len()];
    // SAFETY: all arrays have `len` entries and outlive the call; null nodes only ask. The addresses
    // are numbers of another process's memory, never followed here.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid as libc::pid_t,
            addresses.len(),
            addresses.as_ptr(),
            nodes.map_or(std::ptr::null(), <[i32]>::as_ptr),
            status.as_mut_ptr(),
            scope as libc::c_int,
        )
    };
    let error = (result < 0).then(CallError::last);
    (status.into_iter().map(PageStatus::of).collect(), error)
}

/// Reads a byte of each page, as the process itself might. That resolves the protection of a page marked for
/// sampling, which kernels up to 6.1 report as absent. Pages that cannot be read are left as they are.
pub fn unprotect(pid: u32, addresses: &[u64]) {
    const BATCH_PAGES: usize = 1024;
    let (mut byte, mut left) = ([0u8; BATCH_PAGES], addresses);
    while !left.is_empty() {
        let part = &left[..left.len().min(BATCH_PAGES)];
        let remote: Vec<libc::iovec> = part.iter().map(|a| one_byte(*a)).collect();
        let local = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: part.len(),
        };
        // SAFETY: the kernel writes at most `part.len()` bytes to `byte`; the remote addresses are another
        // process's.
        let read = unsafe {
            libc::process_vm_readv(pid as libc::pid_t, &local, 1, remote.as_ptr(), part.len() as _, 0)
        };
        // The kernel stops at the first page that cannot be read.
        let done = usize::try_from(read).unwrap_or(0);
        left = &left[part.len().min(done + 1)..];
    }
}

pub(crate) fn one_byte(address: u64) -> libc::iovec {
    libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: 1,
    }
}

/// The kernel's own migration, in one call and one thread: every page on the i-th node of `from` goes to the i-th of
/// `to`, in ascending order of nodes. Returns the number of pages that could not be moved.
///
/// # Errors
/// The process is gone or not ours, or a node is not allowed to it.
pub fn migrate_all(pid: u32, from: &NodeMask, to: &NodeMask) -> Result<u64, CallError> {
    let (from, bits) = from.raw();
    let (to, _) = to.raw();
    // SAFETY: both masks have as many bits as the kernel reads.
    let result = unsafe { libc::syscall(libc::SYS_migrate_pages, pid as libc::pid_t, bits, from, to) };
    u64::try_from(result).map_err(|_| CallError::last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mempolicy::allowed_nodes;
    use proptest::prelude::*;

    fn own_pages(count: usize) -> (Vec<u8>, Vec<u64>) {
        let memory = vec![1u8; (count + 1) << 12];
        let first = (memory.as_ptr() as u64 + 4095) & !4095;
        (memory, (0..count as u64).map(|p| first + (p << 12)).collect())
    }

    #[test]
    fn touched_pages_lie_somewhere_and_unmapped_ones_nowhere() {
        let Ok(allowed) = allowed_nodes() else { return };
        let (_memory, mut addresses) = own_pages(8);
        addresses.push(0x1000);
        let statuses = query(std::process::id(), &addresses).unwrap();
        assert!(statuses[..8].iter().all(|s| allowed.contains(&s.node().unwrap())));
        assert!(matches!(statuses[8], PageStatus::Fault | PageStatus::Absent));
    }

    #[test]
    fn moving_to_where_a_page_is_leaves_it_and_keeps_its_bytes() {
        if allowed_nodes().is_err() {
            return;
        }
        let (memory, addresses) = own_pages(4);
        let pid = std::process::id();
        let before = query(pid, &addresses).unwrap();
        let (after, error) = move_to(pid, &addresses, before[0].node().unwrap(), Scope::Exclusive);
        assert_eq!(error, None);
        assert_eq!(after[0], before[0]);
        assert!(memory.iter().all(|b| *b == 1));
    }

    #[test]
    fn letting_pages_go_changes_nothing_and_passes_over_what_is_not_there() {
        let (memory, mut addresses) = own_pages(1500);
        addresses.insert(700, 0x1000);
        unprotect(std::process::id(), &addresses);
        unprotect(u32::MAX >> 2, &addresses);
        assert!(memory.iter().all(|b| *b == 1));
    }

    #[test]
    fn nobody_and_nowhere_are_told_apart() {
        if allowed_nodes().is_err() {
            return;
        }
        let (_memory, addresses) = own_pages(1);
        assert_eq!(query(u32::MAX >> 2, &addresses), Err(CallError::Gone));
        let (statuses, error) = move_to(std::process::id(), &addresses, 1000, Scope::Exclusive);
        assert_eq!(error, Some(CallError::NotAllowed));
        assert_eq!(statuses, [PageStatus::Unreported]);
    }

    proptest! {
        #[test]
        fn a_status_is_a_node_or_none(status in any::<i32>()) {
            prop_assert_eq!(PageStatus::of(status).node(), u32::try_from(status).ok());
        }
    }
}
