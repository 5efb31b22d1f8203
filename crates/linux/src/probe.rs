//! Tests whether a system call works on this host, without side effects.

use std::io;

fn answer(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Whether memory policies can be set: sets this thread's to the default.
///
/// # Errors
/// As the kernel answers: `ENOSYS` without NUMA, `EPERM` under a container's filter.
pub fn memory_policy() -> io::Result<()> {
    // SAFETY: MPOL_DEFAULT takes no mask; a null mask with a length of 0 is what it expects.
    answer(unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            libc::MPOL_DEFAULT,
            std::ptr::null::<u64>(),
            0,
        )
    })?;
    Ok(())
}

/// Whether pages of this process can be asked about and moved: asks where one lies.
///
/// # Errors
/// As the kernel answers.
pub fn page_moves() -> io::Result<()> {
    let here = 0_u64;
    let pages = [std::ptr::from_ref(&here)];
    let mut status = [0_i32];
    // SAFETY: one page address and one status slot, both alive; null nodes ask only; flags 0.
    answer(unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            1,
            pages.as_ptr(),
            std::ptr::null::<i32>(),
            status.as_mut_ptr(),
            0,
        )
    })?;
    Ok(())
}

/// Whether threads can be bound: sets this thread's CPU mask to the one it has.
///
/// # Errors
/// As the kernel answers.
pub fn thread_affinity() -> io::Result<()> {
    let mut mask = [0_u64; 1024];
    let bytes = std::mem::size_of_val(&mask);
    // SAFETY: the kernel writes at most `bytes` bytes into `mask`, which lives on this stack.
    let written = answer(unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, mask.as_mut_ptr()) })?;
    // SAFETY: the kernel reads the `written` bytes it has just filled.
    answer(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, written, mask.as_ptr()) })?;
    Ok(())
}

/// Whether a software performance event can count this process: opens and closes one.
///
/// # Errors
/// As the kernel answers: `EACCES` by `perf_event_paranoid`, `ENOENT` where not built in.
pub fn software_events() -> io::Result<()> {
    use perf_event_open_sys::bindings;
    open_event(
        bindings::PERF_TYPE_SOFTWARE,
        u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK),
    )
}

fn open_event(kind: u32, config: u64) -> io::Result<()> {
    let mut attributes = perf_event_open_sys::bindings::perf_event_attr {
        type_: kind,
        size: std::mem::size_of::<perf_event_open_sys::bindings::perf_event_attr>() as u32,
        config,
        ..Default::default()
    };
    attributes.set_disabled(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    // SAFETY: the attributes outlive the call and state their own size; no flags, no group.
    let descriptor = unsafe { perf_event_open_sys::perf_event_open(&raw mut attributes, 0, -1, -1, 0) };
    close(answer(descriptor.into())?)
}

fn close(descriptor: libc::c_long) -> io::Result<()> {
    // SAFETY: the descriptor was just opened and has no other owner.
    answer(unsafe { libc::close(descriptor as libc::c_int) }.into())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn binding_a_thread_to_where_it_may_run_anyway_changes_nothing() {
        let host = crate::Host::default();
        let before = host.own_status().unwrap().cpus_allowed;
        super::thread_affinity().unwrap();
        assert_eq!(host.own_status().unwrap().cpus_allowed, before);
    }
}
