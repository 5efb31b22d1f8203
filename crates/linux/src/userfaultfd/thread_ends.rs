//! The addresses that the kernel writes when a thread ends: it clears the thread's id, for which `pthread_join` waits.
//! It does not wait for a page that is set aside then (`handle_userfault` refuses exiting threads), and the id would
//! never be cleared.

use crate::Host;
use std::ptr;

/// Addresses near the ids of a process's threads: the heads of their robust lists. The C library keeps both in the
/// thread's descriptor, on the thread's stack, which may be anywhere in the program's memory. Threads without a robust
/// list are left out.
#[must_use]
pub fn robust_lists(host: &Host, pid: u32) -> Vec<u64> {
    let tids = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
    tids.iter()
        .filter_map(|tid| robust_list(tid.parse().ok()?))
        .collect()
}

fn robust_list(tid: u32) -> Option<u64> {
    let (mut head, mut length) = (ptr::null_mut::<u8>(), 0_usize);
    // SAFETY: the kernel writes an address and a size to local variables.
    let result = unsafe { libc::syscall(libc::SYS_get_robust_list, tid, &raw mut head, &raw mut length) };
    (result == 0 && !head.is_null()).then_some(head as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Area;

    #[test]
    fn each_thread_has_one_in_memory_of_its_process() {
        let (waits, goes_on) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || goes_on.recv());
        let (host, me) = (Host::default(), std::process::id());
        let lists = robust_lists(&host, me);
        assert!(lists.len() >= 2, "{lists:?}");
        let areas = host.maps(me).unwrap();
        let within = |list: &u64| {
            areas
                .iter()
                .any(|area: &Area| (area.start..area.end).contains(list))
        };
        assert!(lists.iter().all(within), "{lists:?}");
        drop(waits);
        let _ = other.join();
        assert!(robust_lists(&host, 4_194_303).is_empty());
    }
}
