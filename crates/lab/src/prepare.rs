//! Prepares an experiment: resolves options, kernel, emulator and files into a bootable guest.

use crate::command::{self, Program};
use crate::disk;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::plan;
use crate::qemu::{self, hole, sees_guest_addresses};
use crate::{Experiment, LabError, RunPlacement, Setup, VirtualMachine};
use nodewise_analysis::figures::bytes;
use nodewise_linux::companion;
use nodewise_linux::qemu::Qemu;
use nodewise_placement::migration_policy;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Memory for the kernel, its tables and PID 1, in addition to image and archive.
const KERNEL_BYTES: u64 = 96 << 20;

/// Everything a boot needs.
#[derive(Debug)]
pub struct Lab {
    pub(crate) machine: VirtualMachine,
    pub(crate) runs: Vec<RunPlacement>,
    pub(crate) qemu: Qemu,
    pub(crate) kernel: Kernel,
    pub(crate) image: File,
    pub(crate) disk: Option<File>,
    pub(crate) kernel_arguments: String,
    pub(crate) plugin: Option<PathBuf>,
    pub(crate) time_limit: Option<Duration>,
}

/// Finds the kernel and QEMU, packs the image, and checks everything that can be checked without booting.
///
/// # Errors
/// One line with the remedy: what is missing here, or why the command cannot run in the guest.
pub fn prepare(machine: &VirtualMachine, experiment: &Experiment, setup: &Setup) -> Result<Lab, LabError> {
    check_nodes(machine, experiment)?;
    check_policies(machine, experiment)?;
    plan::check(experiment)?;
    let programs = programs(experiment)?;
    let qemu = qemu::find()?;
    let plugin = setup
        .counters
        .then(|| companion::find(&format!("libnodewise-lab-{}.so", qemu.interface())))
        .transpose()
        .map_err(|e| LabError::own(e.to_string()))?;
    if plugin.is_some() && !sees_guest_addresses(&qemu) {
        check_pieces(machine, &qemu)?;
    }
    let kernel = Kernel::find(setup.kernel.as_deref())?;
    let image = image(experiment, &programs)?;
    check_room(machine, image.bytes())?;
    Ok(Lab {
        machine: machine.clone(),
        runs: experiment.runs.clone(),
        qemu,
        kernel,
        image: image.pack()?,
        disk: setup.disk.map(disk::make).transpose()?,
        kernel_arguments: kernel_arguments(experiment, setup.disk.is_some()),
        plugin,
        time_limit: setup.time_limit,
    })
}

/// The programs of all runs, each once.
fn programs(experiment: &Experiment) -> Result<Vec<Program>, LabError> {
    let mut commands: BTreeMap<_, Option<&RunPlacement>> = BTreeMap::new();
    for (run, under) in experiment.runs.iter().enumerate() {
        let placed = commands.entry(experiment.command(run)).or_default();
        *placed = placed.or(under.takes_preload().then_some(under));
    }
    commands
        .into_iter()
        .map(|(command, placed)| command::check(command, placed, experiment))
        .collect()
}

fn check_nodes(machine: &VirtualMachine, experiment: &Experiment) -> Result<(), LabError> {
    let count = machine.machine.node_count();
    let outside = |under: &&RunPlacement| matches!(under, RunPlacement::Node(n) if *n as usize >= count);
    match experiment.runs.iter().find(outside) {
        Some(under) => Err(LabError::usage(format!(
            "--under {under}: {} has nodes 0 to {}",
            machine.machine.name,
            count - 1
        ))),
        None => Ok(()),
    }
}

/// Checks the balancer's policies as the balancer does, before a boot is spent on them.
fn check_policies(machine: &VirtualMachine, experiment: &Experiment) -> Result<(), LabError> {
    for under in &experiment.runs {
        if let RunPlacement::Balance(policy) = under {
            migration_policy(policy, &machine.machine)
                .map_err(|e| LabError::usage(format!("--under {under}: {e}")))?;
        }
    }
    Ok(())
}

/// Refuses a node whose memory is in two pieces with old releases of QEMU, which would number its frames
/// inconsistently.
fn check_pieces(machine: &VirtualMachine, qemu: &Qemu) -> Result<(), LabError> {
    match hole(&machine.machine) {
        Some(Err(node)) => Err(LabError::usage(format!(
            "node {node} would have more than 2G, which counting with QEMU {} cannot tell apart: less --memory, or QEMU 8.2 or newer",
            qemu.version
        ))),
        _ => Ok(()),
    }
}

/// Checks that memory has room for the archive and its unpacked files at the same time, and memory below the hole for
/// the archive.
fn check_room(machine: &VirtualMachine, image: u64) -> Result<(), LabError> {
    let memory: u64 = machine.machine.nodes.iter().map(|n| n.memory).sum();
    let low = hole(&machine.machine).and_then(Result::ok).unwrap_or(memory);
    let needed = 2 * image + KERNEL_BYTES;
    if memory < needed || low < image + KERNEL_BYTES {
        return Err(LabError::own(format!(
            "the guest's {} ({} in its first nodes) are too few for its files of {}: --memory {}M or more, or less --with",
            bytes(memory),
            bytes(low),
            bytes(image),
            (needed * memory / low.min(memory)).div_ceil(1 << 20)
        )));
    }
    Ok(())
}

fn image(experiment: &Experiment, programs: &[Program]) -> Result<Image, LabError> {
    let mut image = Image::new(&experiment.environment);
    for folder in ["/proc", "/sys", "/dev"] {
        image.bare_folder(Path::new(folder));
    }
    own_files(&mut image)?;
    for program in programs {
        program.pack(&mut image)?;
    }
    image.folder(&experiment.cwd)?;
    for library in preloaded(experiment).filter(|l| l.is_absolute() && l.exists()) {
        image.add(&library)?;
    }
    for path in experiment.with.iter().chain(&experiment.stdin) {
        let path = experiment.cwd.join(path);
        if path.symlink_metadata().is_err() {
            return Err(LabError::usage(format!(
                "{} does not exist: nothing to pack",
                path.display()
            )));
        }
        image.add(&path)?;
    }
    for (number, under) in experiment.runs.iter().enumerate() {
        if let RunPlacement::Map(file) = under {
            let bytes = nodewise_input::bytes(file, nodewise_input::MAX_TEXT_BYTES)
                .map_err(|e| LabError::io("read the map", file, &e))?;
            image.put(&plan::map_path(number), 0o644, bytes);
        }
    }
    image.put(Path::new("/lab/plan"), 0o644, plan::text(experiment));
    Ok(image)
}

/// Libraries that the experiment's environment preloads into every program.
fn preloaded(experiment: &Experiment) -> impl Iterator<Item = PathBuf> {
    let set = experiment.environment.iter().find(|(n, _)| n == "LD_PRELOAD");
    let text = set.map_or(String::new(), |(_, v)| v.to_string_lossy().into_owned());
    let paths: Vec<PathBuf> = text.split([':', ' ']).map(PathBuf::from).collect();
    paths.into_iter()
}

/// Adds this program and its own files, at the same paths relative to each other as on the host.
fn own_files(image: &mut Image) -> Result<(), LabError> {
    let failed = |e: &dyn std::fmt::Display| LabError::own(e.to_string());
    let own = std::env::current_exe().map_err(|e| failed(&e))?;
    let preload = companion::find("libnodewise-preload.so").map_err(|e| failed(&e))?;
    let schedule = companion::find("libnodewise-schedule.so").map_err(|e| failed(&e))?;
    let init = companion::find("nodewise-lab-init").map_err(|e| failed(&e))?;
    image.add_at(Path::new("/lab/nodewise"), &own)?;
    image.add_at(Path::new("/lab/lib/libnodewise-preload.so"), &preload)?;
    image.add_at(Path::new("/lab/lib/libnodewise-schedule.so"), &schedule)?;
    image.add_at(Path::new("/lab/init"), &init)
}

/// The kernel's command line. A panic ends the emulator at once. Watchdogs are off, because they would mistake
/// emulation for a lockup. `lpj`, whose exact value is not needed, avoids calibrating each CPU while all others spin: a
/// third of the boot. A ramfs can use all memory, a tmpfs only half of what the archive leaves. The kernel passes on what it
/// does not know, without a dot in it, to init's environment.
fn kernel_arguments(experiment: &Experiment, disk: bool) -> String {
    format!(
        "console=ttyS0 loglevel=4 panic=-1 rdinit=/lab/init rootfstype=ramfs transparent_hugepage={} 8250.nr_uarts=8 \
         lpj=5000000 mitigations=off random.trust_cpu=on \
         tsc=reliable no_timer_check nokaslr nowatchdog cryptomgr.notests cpu_init_udelay=0 rcupdate.rcu_cpu_stall_suppress=1{}",
        experiment.huge_pages.name(),
        if disk { " nodewise_disk=1" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;
    use nodewise_machine::Machine;

    fn machine(memory: u64) -> VirtualMachine {
        let size = Size {
            cpus: None,
            memory: Some(memory),
        };
        VirtualMachine::of(&Machine::named("itanium-9030").unwrap(), &size).unwrap()
    }

    #[test]
    fn files_must_fit_twice_beside_the_kernel() {
        assert!(check_room(&machine(256 << 20), 80 << 20).is_ok());
        let error = check_room(&machine(256 << 20), 81 << 20).unwrap_err().to_string();
        assert!(
            error.contains("files of 81 MiB: --memory 258M or more"),
            "{error}"
        );
    }

    #[test]
    fn a_node_that_is_not_there_is_a_usage_error() {
        let experiment = Experiment {
            runs: vec![RunPlacement::Node(2)],
            ..Experiment::default()
        };
        let error = prepare(&machine(1 << 30), &experiment, &Setup::default()).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("nodes 0 to 1"), "{error}");
    }

    #[test]
    fn an_online_policy_that_is_none_is_a_usage_error() {
        let experiment = Experiment {
            runs: vec!["balance:magic".parse().unwrap()],
            ..Experiment::default()
        };
        let error = prepare(&machine(1 << 30), &experiment, &Setup::default()).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        let text = error.to_string();
        assert!(
            text.starts_with("--under balance:magic: ") && text.contains("dominant"),
            "{text}"
        );
    }
}
