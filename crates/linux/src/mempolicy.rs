//! Memory policies (`set_mempolicy(2)`) and the nodes of pages.

use crate::node_mask::NodeMask;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A process's memory policy. None is strict: allocation falls back to other nodes when a node is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The node of the first touch (`MPOL_DEFAULT`).
    Local,
    /// One node while it has room.
    Preferred(NodeMask),
    /// The nearest of several nodes while they have room; Linux 5.15.
    PreferredMany(NodeMask),
    /// Interleave, in the order of page faults.
    Interleave(NodeMask),
    /// Weighted interleave by `/sys/kernel/mm/mempolicy/weighted_interleave`; Linux 6.9.
    WeightedInterleave(NodeMask),
}

impl Policy {
    fn mode(&self) -> (libc::c_int, Option<&NodeMask>) {
        match self {
            Self::Local => (0, None),
            Self::Preferred(mask) => (1, Some(mask)),
            Self::PreferredMany(mask) => (5, Some(mask)),
            Self::Interleave(mask) => (3, Some(mask)),
            Self::WeightedInterleave(mask) => (6, Some(mask)),
        }
    }

    /// Applies the policy to the calling thread and its children.
    ///
    /// # Errors
    /// The kernel does not know the policy, or none of the nodes is allowed here.
    pub fn apply(&self) -> io::Result<()> {
        let (mode, mask) = self.mode();
        let (words, bits) = mask.map_or((std::ptr::null(), 0), NodeMask::raw);
        // SAFETY: `words` is null with 0 bits, or points to as many bits as the kernel reads.
        let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, words, bits) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Applies the policy to a range of this process's addresses, of whole pages: to pages that are allocated there from
    /// now on.
    ///
    /// # Errors
    /// As [`Policy::apply`].
    pub(crate) fn apply_to(&self, address: u64, bytes: usize) -> io::Result<()> {
        let (mode, mask) = self.mode();
        let (words, bits) = mask.map_or((std::ptr::null(), 0), NodeMask::raw);
        // SAFETY: the range is not followed here; `words` as in `apply`.
        let status = unsafe { libc::syscall(libc::SYS_mbind, address, bytes, mode, words, bits, 0) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Whether kernel and cpuset accept the policy; tested on a separate thread.
    ///
    /// # Errors
    /// As [`Policy::apply`].
    pub fn probe(self) -> io::Result<()> {
        std::thread::spawn(move || self.apply())
            .join()
            .map_err(|_| io::Error::other("thread panicked"))?
    }

    /// Lets `command` start under this policy.
    pub fn before_exec(self, command: &mut Command) {
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe { command.pre_exec(move || self.apply()) };
    }
}

impl fmt::Display for Policy {
    /// The policy and its nodes, as in `interleave on nodes 0 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Local => return f.write_str("first touch"),
            Self::Preferred(_) => "preferred",
            Self::PreferredMany(_) => "preferred-many",
            Self::Interleave(_) => "interleave",
            Self::WeightedInterleave(_) => "weighted interleave",
        };
        write!(f, "{name} on nodes")?;
        let nodes = self.mode().1.map(NodeMask::nodes).unwrap_or_default();
        nodes.iter().try_for_each(|node| write!(f, " {node}"))
    }
}

/// Excludes the calling thread's memory, and that of threads it starts, from the kernel's own balancing: it sets first
/// touch (`MPOL_LOCAL`) explicitly. An explicit policy that the thread already has excludes it as well, and stays.
pub fn decline_balancing() {
    const LOCAL: libc::c_int = 4;
    let mut mode: libc::c_int = 0;
    let no_nodes = std::ptr::null_mut::<u64>();
    // SAFETY: the kernel writes one int to `mode`, and no nodes where it is given none.
    let result = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, no_nodes, 0, 0, 0) };
    if result == 0 && mode == 0 {
        // SAFETY: no pointer is passed but null, with 0 bits.
        unsafe { libc::syscall(libc::SYS_set_mempolicy, LOCAL, no_nodes, 0) };
    }
}

/// The nodes this process may have memory on.
///
/// # Errors
/// The kernel has no NUMA support.
pub fn allowed_nodes() -> io::Result<Vec<u32>> {
    const MEMS_ALLOWED: libc::c_ulong = 1 << 2;
    let mut mask = NodeMask::default();
    let (words, bits) = mask.raw_mut();
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the kernel writes at most `bits` - 1 bits to the mask; the other pointers are null.
    let status = unsafe {
        let none_int: *mut libc::c_int = std::ptr::null_mut();
        libc::syscall(libc::SYS_get_mempolicy, none_int, words, bits, none, MEMS_ALLOWED)
    };
    if status == 0 {
        Ok(mask.nodes())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The node of the page at each address in a process; `None` where there is no memory yet.
///
/// # Errors
/// The process is gone or not ours.
pub fn nodes_of_pages(pid: u32, addresses: &[u64]) -> io::Result<Vec<Option<u32>>> {
    let statuses = crate::pages::query(pid, addresses).map_err(io::Error::from)?;
    Ok(statuses.into_iter().map(crate::pages::PageStatus::node).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_its_nodes() {
        assert_eq!(
            Policy::Interleave([0, 1].into_iter().collect()).to_string(),
            "interleave on nodes 0 1"
        );
    }

    #[test]
    fn the_first_allowed_node_can_be_preferred() {
        let Ok(nodes) = allowed_nodes() else { return };
        Policy::Preferred(nodes.iter().copied().take(1).collect())
            .probe()
            .unwrap();
        assert!(Policy::Preferred([1000].into_iter().collect()).probe().is_err());
    }

    #[test]
    fn a_touched_page_lies_on_an_allowed_node() {
        let Ok(allowed) = allowed_nodes() else { return };
        let memory = vec![1u8; 1 << 16];
        let address = (memory.as_ptr() as u64 + 4096) & !4095;
        let nodes = nodes_of_pages(std::process::id(), &[address, 0x1000]).unwrap();
        assert!(allowed.contains(&nodes[0].unwrap()));
        assert_eq!(nodes[1], None);
    }
}
