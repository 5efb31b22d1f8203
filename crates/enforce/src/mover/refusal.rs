//! Explains why the kernel refuses to move pages, and what to do about it.

use crate::EnforceError;
use nodewise_linux::pages::CallError;
use nodewise_linux::process::Capability;
use nodewise_linux::{Host, probe};

/// The error message for a failed call on a process, in one line.
pub fn explain(pid: u32, error: CallError) -> EnforceError {
    EnforceError::usage(match error {
        CallError::Gone => format!("no process {pid} with memory of its own; `nodewise check` lists yours"),
        CallError::Denied => denied(&Host::default(), pid),
        CallError::NotAllowed => not_allowed(&Host::default(), pid),
        CallError::NoRoom => format!("no memory left to move pages of process {pid}"),
        CallError::Other(number) => format!(
            "cannot move pages of process {pid}: {}",
            std::io::Error::from_raw_os_error(number)
        ),
    })
}

fn denied(host: &Host, pid: u32) -> String {
    let own = host.own_status().unwrap_or_default();
    let other = host.status(pid).unwrap_or_default();
    if probe::page_moves().is_err() {
        return "move_pages is not permitted here, not even on our own memory; a container needs CAP_SYS_NICE \
                (docker run --cap-add SYS_NICE)"
            .to_owned();
    }
    if own.uid != other.uid && !own.has(Capability::SysPtrace) {
        return format!(
            "process {pid} belongs to user {}; run as that user or as root (CAP_SYS_PTRACE)",
            other.uid
        );
    }
    format!(
        "process {pid} ({}) is protected from its own user: it has more privileges or changed its identity; \
         run as root (CAP_SYS_PTRACE; kernel.yama.ptrace_scope does not matter)",
        other.name
    )
}

fn not_allowed(host: &Host, pid: u32) -> String {
    let allowed = host.status(pid).unwrap_or_default().mems_allowed;
    format!(
        "process {pid} may use memory of nodes {} alone; choose among them or widen its cpuset.mems",
        nodewise_machine::format_list(&allowed)
    )
}
