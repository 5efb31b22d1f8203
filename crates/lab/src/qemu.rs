//! Finds QEMU and builds its command line for a machine.

use crate::{LabError, VirtualMachine};
use nodewise_linux::qemu::Qemu;
use nodewise_machine::{Machine, NodeId};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

const PROGRAM_NAME: &str = "qemu-system-x86_64";
/// First words of the version line of QEMU.
const VERSION_PREFIX: &str = "QEMU emulator";
/// First release with HMAT and with plug-ins that can observe memory as needed here.
const MIN_RELEASE: u32 = 6;
/// From this release on plug-ins see guest-physical addresses; before, a sum of offsets (QEMU 8.2).
const GUEST_ADDRESSES_FROM: (u32, u32) = (8, 2);
/// Largest memory below the hole that the memory controller leaves for devices below 4 GiB.
const MAX_BELOW_HOLE: u64 = 2 << 30;
/// With less memory than this there is no memory above the hole.
const MIN_WITH_HOLE: u64 = 0xb000_0000;

/// Finds the QEMU named by `NODEWISE_QEMU_SYSTEM`, or the one on the search path.
pub(crate) fn find() -> Result<Qemu, LabError> {
    let named = std::env::var_os("NODEWISE_QEMU_SYSTEM").map(PathBuf::from);
    let program = named.unwrap_or_else(|| PROGRAM_NAME.into());
    let known = Qemu::ask(&program).map_err(|e| {
        LabError::own(format!(
            "cannot start {}: {e}; Debian's package qemu-system-x86 has it",
            program.display()
        ))
    })?;
    let fits = |q: &Qemu| q.name == VERSION_PREFIX && q.release.0 >= MIN_RELEASE;
    known.filter(fits).ok_or_else(|| {
        LabError::own(format!(
            "{} is no QEMU for whole machines, from {MIN_RELEASE}.0 on",
            program.display()
        ))
    })
}

/// Whether plug-ins see guest-physical addresses, also for nodes whose memory is in several pieces.
pub(crate) fn sees_guest_addresses(qemu: &Qemu) -> bool {
    qemu.release >= GUEST_ADDRESSES_FROM
}

/// Where the hole begins: between two nodes if possible, so that each node's memory is contiguous. `None` if there is
/// no hole; an error names the node that it divides.
pub(crate) fn hole(machine: &Machine) -> Option<Result<u64, NodeId>> {
    let mut ends: Vec<u64> = machine.nodes.iter().map(|n| n.memory).collect();
    for i in 1..ends.len() {
        ends[i] += ends[i - 1];
    }
    let before = ends.iter().filter(|e| **e <= MAX_BELOW_HOLE).count();
    match before.checked_sub(1) {
        _ if ends.last().is_none_or(|all| *all < MIN_WITH_HOLE) => None,
        Some(last) => Some(Ok(ends[last])),
        None => Some(Err(NodeId(0))),
    }
}

/// Description of a guest.
#[derive(Debug)]
pub(crate) struct Guest<'a> {
    pub machine: &'a VirtualMachine,
    pub kernel: &'a File,
    pub image: &'a File,
    pub disk: Option<&'a File>,
    pub kernel_arguments: String,
    pub plugin: Option<&'a Path>,
}

/// The descriptors that QEMU writes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channels {
    pub console: RawFd,
    pub control: RawFd,
    pub output: RawFd,
    pub errors: RawFd,
    pub rows: RawFd,
}

impl Guest<'_> {
    /// QEMU's arguments. All files are passed as inherited descriptors.
    pub fn arguments(&self, channels: &Channels) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(OsString::from));
        add(&["-machine", &self.board()]);
        add(&["-accel", "tcg,thread=multi", "-cpu", "max"]);
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        add(&["-monitor", "none"]);
        for part in self.topology() {
            add(&[&part.0, &part.1]);
        }
        for (name, descriptor) in channels.ports() {
            let file = format!("file,id={name},path=/proc/self/fd/{descriptor}");
            add(&["-chardev", &file]);
        }
        add(&["-device", "isa-serial,chardev=console"]);
        add(&[
            "-device",
            "pci-serial-4x,chardev1=control,chardev2=output,chardev3=errors",
        ]);
        add(&[
            "-kernel",
            &inherited(self.kernel),
            "-initrd",
            &inherited(self.image),
        ]);
        add(&["-append", &self.kernel_arguments]);
        if let Some(disk) = self.disk {
            // What a crash of the host would lose is nothing: the disk is gone with the guest.
            let drive = format!("if=none,id=disk,format=raw,cache=unsafe,file={}", inherited(disk));
            // An NVMe controller, as Debian's cloud kernel has its driver built in.
            add(&["-drive", &drive, "-device", "nvme,drive=disk,serial=nodewise"]);
        }
        if let Some(plugin) = self.plugin {
            // In QEMU's option syntax a comma ends a value, and two commas stand for one.
            let path = plugin.display().to_string().replace(',', ",,");
            add(&["-plugin", &format!("{path},fd={}", channels.rows)]);
        }
        all
    }

    fn memory(&self) -> u64 {
        self.machine.machine.nodes.iter().map(|n| n.memory).sum()
    }

    fn board(&self) -> String {
        match hole(&self.machine.machine) {
            Some(Ok(boundary)) => format!("q35,hmat=on,max-ram-below-4g={boundary}"),
            _ => "q35,hmat=on".to_owned(),
        }
    }

    fn topology(&self) -> Vec<(String, String)> {
        let machine = &self.machine.machine;
        let cpus = machine.cpus();
        let mut all = vec![
            option("-m", format!("{}M", self.memory() >> 20)),
            option("-smp", format!("{0},sockets={0},cores=1,threads=1", cpus.len())),
        ];
        for (id, node) in machine.node_ids().zip(&machine.nodes) {
            let initiator = self.machine.initiator(id);
            let size = node.memory;
            all.push(option(
                "-object",
                format!("memory-backend-ram,id=m{id},size={size}"),
            ));
            all.push(option(
                "-numa",
                format!("node,nodeid={id},memdev=m{id},initiator={initiator}"),
            ));
        }
        for (cpu, node) in cpus {
            all.push(option("-numa", format!("cpu,node-id={node},socket-id={cpu}")));
        }
        all.extend(self.distances());
        all.extend(self.locality());
        all
    }

    fn distances(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let rows = self.machine.distances.iter().enumerate();
        let pairs = rows.flat_map(|(from, row)| row.iter().enumerate().map(move |(to, d)| (from, to, d)));
        pairs
            .filter(|(from, to, _)| from != to)
            .map(|(from, to, d)| option("-numa", format!("dist,src={from},dst={to},val={d}")))
    }

    /// The HMAT: read latencies in whole nanoseconds and bandwidths, from all CPUs to all memories.
    fn locality(&self) -> Vec<(String, String)> {
        let machine = &self.machine.machine;
        let pairs: Vec<(NodeId, NodeId)> = machine
            .cpu_nodes()
            .flat_map(|r| machine.node_ids().map(move |m| (r, m)))
            .collect();
        let widths: Vec<f64> = pairs
            .iter()
            .map(|(r, m)| machine.route(*r, *m).bandwidth)
            .collect();
        let mut all = Vec::new();
        for ((reader, memory), width) in pairs.iter().zip(bandwidths(&widths)) {
            let to = format!("hmat-lb,initiator={reader},target={memory},hierarchy=memory");
            let latency = machine.latency(*reader, *memory).round().max(1.0) as u64;
            all.push(option(
                "-numa",
                format!("{to},data-type=access-latency,latency={latency}"),
            ));
            all.push(option(
                "-numa",
                format!("{to},data-type=access-bandwidth,bandwidth={width}M"),
            ));
        }
        all
    }
}

/// Bandwidths for QEMU. It takes in MiB/s what the kernel shows as MB/s, and stores them in one table of 16-bit numbers
/// with a common power of two.
fn bandwidths(widths: &[f64]) -> Vec<u64> {
    let widest = widths.iter().copied().fold(1.0, f64::max).round() as u64;
    let shift = (u64::BITS - widest.leading_zeros()).saturating_sub(15);
    let rounded = |w: &f64| (((w.round() as u64) >> shift).max(1)) << shift;
    widths.iter().map(rounded).collect()
}

fn option(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn inherited(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

impl Channels {
    fn ports(&self) -> [(&'static str, RawFd); 4] {
        [
            ("console", self.console),
            ("control", self.control),
            ("output", self.output),
            ("errors", self.errors),
        ]
    }

    pub fn all(&self) -> Vec<RawFd> {
        self.ports()
            .map(|(_, d)| d)
            .into_iter()
            .chain([self.rows])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;
    use proptest::prelude::*;

    fn arguments(name: &str, size: &Size) -> Vec<String> {
        let machine = VirtualMachine::of(&Machine::named(name).unwrap(), size).unwrap();
        let file = File::open("/dev/null").unwrap();
        let guest = Guest {
            machine: &machine,
            kernel: &file,
            image: &file,
            disk: None,
            kernel_arguments: "quiet".to_owned(),
            plugin: Some(Path::new("/a,b.so")),
        };
        let channels = Channels {
            console: 3,
            control: 4,
            output: 5,
            errors: 6,
            rows: 7,
        };
        guest
            .arguments(&channels)
            .into_iter()
            .map(|a| a.into_string().unwrap())
            .collect()
    }

    #[test]
    fn every_pair_has_a_distance_and_every_reader_a_latency() {
        let all = arguments("machine-a", &Size::default());
        let count = |part: &str| all.iter().filter(|a| a.contains(part)).count();
        assert_eq!(
            (count("dist,src="), count("access-latency"), count("node,nodeid=")),
            (56, 64, 8)
        );
        assert!(all.contains(&"/a,,b.so,fd=7".to_owned()));
    }

    #[test]
    fn memory_without_cpus_names_its_nearest_reader() {
        let all = arguments(
            "xeonmax-2s-snc4-flat",
            &Size {
                cpus: None,
                memory: Some(4 << 30),
            },
        );
        let initiated = |n: usize| {
            all.iter()
                .find(|a| a.starts_with(&format!("node,nodeid={n},")))
                .unwrap()
                .clone()
        };
        assert!(initiated(0).ends_with("initiator=0"));
        assert!(!initiated(15).ends_with("initiator=15"), "{}", initiated(15));
    }

    #[test]
    fn the_hole_lies_between_nodes() {
        let board = |memory: u64| {
            arguments(
                "machine-a",
                &Size {
                    cpus: None,
                    memory: Some(memory),
                },
            )[1]
            .clone()
        };
        assert_eq!(board(2 << 30), "q35,hmat=on");
        assert_eq!(board(8 * (3 << 28)), "q35,hmat=on,max-ram-below-4g=1610612736");
    }

    proptest! {
        #[test]
        fn bandwidths_fit_the_table(widths in proptest::collection::vec(1.0f64..1e6, 1..64)) {
            let all = bandwidths(&widths);
            let used = all.iter().fold(0, |u, b| u | b);
            prop_assert!(64 - used.leading_zeros() - used.trailing_zeros() <= 16);
            let widest = widths.iter().copied().fold(0.0, f64::max);
            for (width, rounded) in widths.iter().zip(&all) {
                prop_assert!((*rounded as f64 - width).abs() <= 0.5 + widest / 16_000.0);
            }
        }
    }
}
