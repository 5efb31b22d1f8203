//! Checks which of the kernel's interfaces for observation and placement this process may use.

use super::{Finding, State};
use nodewise_linux::damon::Refusal;
use nodewise_linux::process::Capability;
use nodewise_linux::{Host, probe, soft_dirty};
use nodewise_machine::Machine;
use std::io;

pub fn findings(host: &Host) -> Vec<Finding> {
    let mut all = vec![check(host), nodes(host)];
    // Another host's files say nothing about the system calls of this one.
    if host.is_live() {
        all.insert(0, coverage(host));
        all.extend([memory_policy(), affinity(), threads_follow(), page_moves(host)]);
        all.extend([faults(host), user_faults()]);
    }
    all.extend([pmu(host), damon(host)]);
    all.push(huge_pages(host));
    all.push(balancing(host));
    all.push(memory_limits(host));
    all
}

fn works(group: &'static str, name: &'static str, because: &str) -> Finding {
    Finding::new(group, name, State::Works, because)
}

/// Describes an error of a system call in words that tell a user what to do.
fn refused(call: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Unsupported => format!("{call}: this kernel does not have it"),
        io::ErrorKind::PermissionDenied => {
            format!("{call}: not permitted (missing privilege, or a container's filter)")
        }
        _ => format!("{call}: {error}"),
    }
}

/// Checks sampling of CPU time, which the coverage figure of a recording needs.
fn coverage(host: &Host) -> Finding {
    match probe::software_events() {
        Ok(()) => works(
            "observers",
            "coverage",
            "the share of CPU time in instrumented code is sampled",
        ),
        Err(error) => {
            let paranoid = host
                .perf_event_paranoid()
                .map_or("unknown".to_owned(), |p| p.to_string());
            let because = format!(
                "{} (perf_event_paranoid is {paranoid}); recordings lack the coverage figure",
                refused("perf_event_open", &error)
            );
            Finding::new("observers", "coverage", State::Limited, because)
                .with_remedy("sysctl kernel.perf_event_paranoid=2")
        }
    }
}

/// Checks the files that `nodewise check` reads.
fn check(host: &Host) -> Finding {
    let Ok(own) = host.own_status() else {
        return Finding::new("observers", "check", State::Missing, "/proc is not mounted")
            .with_remedy("mount -t proc proc /proc");
    };
    let everyone = own.has(Capability::SysPtrace);
    let whose = if everyone {
        "any process"
    } else {
        "your own processes; root sees all"
    };
    let scope = host.ptrace_scope();
    let traffic = if host.traffic("sys/fs/resctrl").is_some() {
        "; resctrl measures remote traffic"
    } else {
        ""
    };
    let restricted = if scope >= 2 && !everyone {
        format!(" (ptrace_scope is {scope})")
    } else {
        String::new()
    };
    let state = if restricted.is_empty() {
        State::Works
    } else {
        State::Limited
    };
    Finding::new(
        "observers",
        "check",
        state,
        format!("looks at {whose}{restricted}{traffic}"),
    )
}

fn nodes(host: &Host) -> Finding {
    match Machine::from_sysfs(&host.sys(), "this") {
        Ok(machine) if machine.node_count() > 1 => {
            let text = format!(
                "{} memory nodes, NUMA factor {:.1} by the kernel's distances; `nodewise topo --measure` measures them",
                machine.node_count(),
                machine.numa_factor()
            );
            works("actuators", "nodes", &text)
        }
        Ok(_) => {
            let because =
                "one memory node: everything runs, nothing can gain; predictions are for other machines";
            Finding::new("actuators", "nodes", State::Limited, because)
                .with_remedy("nodewise simulate --machine M (`nodewise topo --list`)")
        }
        Err(error) => Finding::new("actuators", "nodes", State::Missing, error.to_string()),
    }
}

fn memory_policy() -> Finding {
    match probe::memory_policy() {
        Ok(()) => works(
            "actuators",
            "memory-policy",
            "mbind, set_mempolicy: pages go where rules say",
        ),
        Err(error) => Finding::new(
            "actuators",
            "memory-policy",
            State::Missing,
            refused("set_mempolicy", &error),
        )
        .with_remedy("in a container: --cap-add SYS_NICE; else a kernel with CONFIG_NUMA"),
    }
}

fn affinity() -> Finding {
    match probe::thread_affinity() {
        Ok(()) => works(
            "actuators",
            "thread-affinity",
            "sched_setaffinity: threads stay where they are bound",
        ),
        Err(error) => Finding::new(
            "actuators",
            "thread-affinity",
            State::Missing,
            refused("sched_setaffinity", &error),
        ),
    }
}

/// Checks whether `nodewise run` can detect which thread works on which data.
fn threads_follow() -> Finding {
    let (group, name) = ("actuators", "threads-follow");
    let missing = |because: String| Finding::new(group, name, State::Missing, because);
    match probe::software_events() {
        Ok(()) if soft_dirty::works() => works(
            group,
            name,
            "soft-dirty bits: under a map, threads go to the data that they write",
        ),
        Ok(()) => {
            missing("this kernel keeps no soft-dirty bits: under a map, threads are bound by number".into())
                .with_remedy("a kernel with CONFIG_MEM_SOFT_DIRTY")
        }
        Err(error) => {
            let because = refused("perf_event_open", &error);
            missing(format!("{because}: under a map, threads are bound by number"))
                .with_remedy("sysctl kernel.perf_event_paranoid=2")
        }
    }
}

fn page_moves(host: &Host) -> Finding {
    let everyone = host.own_status().is_ok_and(|s| s.has(Capability::SysNice));
    match probe::page_moves() {
        Ok(()) if everyone => works(
            "actuators",
            "move-pages",
            "move_pages: pages of any process can be asked about and moved",
        ),
        Ok(()) => works(
            "actuators",
            "move-pages",
            "move_pages: pages of your own processes",
        ),
        Err(error) => Finding::new(
            "actuators",
            "move-pages",
            State::Limited,
            refused("move_pages", &error),
        )
        .with_remedy(
            "in a container: --cap-add SYS_NICE; else a kernel with CONFIG_NUMA and CONFIG_MIGRATION",
        ),
    }
}

/// Checks sampling by the kernel's NUMA hinting faults.
fn faults(host: &Host) -> Finding {
    let finding = |state, because: String| Finding::new("observers", "faults", state, because);
    if let Err(unavailable) = nodewise_observe::faults::check(host) {
        return finding(State::Limited, unavailable.because().to_owned()).with_remedy(unavailable.remedy());
    }
    if let Err(error) = probe::software_events() {
        return finding(State::Missing, refused("perf_event_open", &error))
            .with_remedy("sysctl kernel.perf_event_paranoid=2");
    }
    let whose = if nodewise_observe::faults::sees_everybody(host) {
        "any process"
    } else {
        "your own processes"
    };
    let apart = match host.tracepoint("exceptions", "page_fault_user") {
        Some(_) => "reads and writes apart",
        None => "reads and writes not apart (mount -t tracefs tracefs /sys/kernel/tracing, as root)",
    };
    let scans = match host.scan() {
        Ok(_) => "",
        Err(_) => "; --scan-period cannot be set (debugfs)",
    };
    finding(
        State::Works,
        format!("accesses of {whose}, sampled by the kernel's balancing; {apart}{scans}"),
    )
}

/// Checks whether the processor samples loads, which tell how often a thread accesses which node.
fn pmu(host: &Host) -> Finding {
    let because = match host.load_sampler() {
        Some(sampler) => format!(
            "this CPU samples loads ({}): `balance` decides about threads by them if it may, never tried on such a CPU; \
             `record` does not take them",
            sampler.name
        ),
        None => "this CPU samples no loads, or does not show it (usual in virtual machines): threads are decided about by page \
                 faults"
            .to_owned(),
    };
    Finding::new("observers", "pmu", State::Limited, because)
}

/// Checks for DAMON, which knows how hot a region is and not who uses it.
fn damon(host: &Host) -> Finding {
    let finding = |because: String| Finding::new("observers", "damon", State::Limited, because);
    match nodewise_linux::damon::works(host) {
        Err(Refusal::Missing) => finding("this kernel does not have it; nothing here needs it".to_owned()),
        Err(Refusal::InUse) => finding(
            "others use it, so `balance --sensor damon` is refused; `balance` says if their schemes move pages".to_owned(),
        )
        .with_remedy(nodewise_observe::faults::damon_unavailable(&Refusal::InUse).remedy()),
        Ok(()) | Err(Refusal::NotPermitted) => finding(
            "this kernel has it: it tells how hot a region is and not who uses it, which suffices for `balance --policy hot:NODES \
             --sensor damon` (root)"
                .to_owned(),
        ),
        Err(other) => {
            let unavailable = nodewise_observe::faults::damon_unavailable(&other);
            finding(format!("this kernel has it, and it cannot be used: {}", unavailable.because()))
                .with_remedy(unavailable.remedy())
        }
    }
}

/// Checks sampling by userfaultfd, which works without the kernel's NUMA balancing.
fn user_faults() -> Finding {
    let finding = |state, because: String| Finding::new("observers", "userfaultfd", state, because);
    match nodewise_observe::faults::user_faults() {
        Ok(()) => finding(
            State::Works,
            "samples who uses which page where kernel.numa_balancing is 0: 0.3 to 1.5 ms a sample, with what threads wait; \
             `balance` and `record --pid` take it by themselves then"
                .to_owned(),
        ),
        Err(unavailable) => finding(
            State::Limited,
            format!(
                "{}: no samples where kernel.numa_balancing is 0",
                unavailable.because()
            ),
        )
        .with_remedy(unavailable.remedy()),
    }
}

fn huge_pages(host: &Host) -> Finding {
    match host.transparent_huge_pages().as_deref() {
        Some("always") => works(
            "settings",
            "huge-pages",
            "always: memory is placed 2 MiB at a time; decide with --page-size 2M",
        ),
        Some("never") => works(
            "settings",
            "huge-pages",
            "never: memory is placed 4 KiB at a time",
        ),
        Some(other) => works(
            "settings",
            "huge-pages",
            &format!("{other}: 4 KiB at a time unless a program asks for more"),
        ),
        None => works(
            "settings",
            "huge-pages",
            "not in this kernel: memory is placed 4 KiB at a time",
        ),
    }
}

fn balancing(host: &Host) -> Finding {
    match host.numa_balancing() {
        None => works(
            "settings",
            "numa-balancing",
            "not in this kernel: pages stay where they are put",
        ),
        Some(0) => works("settings", "numa-balancing", "off: pages stay where they are put"),
        Some(_) => {
            let because = "on: the kernel moves pages while programs run, which blurs comparisons";
            Finding::new("settings", "numa-balancing", State::Limited, because)
                .with_remedy("sysctl kernel.numa_balancing=0")
        }
    }
}

fn memory_limits(host: &Host) -> Finding {
    let groups = match host.memory_cgroup() {
        Some(version) => format!("memory control groups of version {version}"),
        None => "no memory control groups".to_owned(),
    };
    let allowed = host
        .own_status()
        .map(|s| nodewise_machine::format_list(&s.mems_allowed))
        .unwrap_or_default();
    let allowed = if allowed.is_empty() {
        String::new()
    } else {
        format!("; this process may use nodes {allowed}")
    };
    let release = host
        .kernel_release()
        .map_or(String::new(), |r| format!("Linux {r}; "));
    works("settings", "limits", &format!("{release}{groups}{allowed}"))
}
