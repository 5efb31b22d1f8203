//! Properties of this machine that affect sizes and times, recorded for readers of the file.

use nodewise_linux::Host;
use nodewise_machine::Machine;
use nodewise_observe::hardware;
use serde::Serialize;

/// This machine as its kernel describes it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Site {
    /// Model name of the processor.
    pub cpu: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of memory nodes.
    pub nodes: usize,
    /// Number of CPUs of all nodes, which is also the number of threads that programs run with.
    pub cpus: usize,
    /// Bytes of memory of all nodes.
    pub memory_bytes: u64,
    /// Memory of the smallest node with CPUs, bytes.
    #[serde(skip)]
    pub smallest_memory: u64,
    /// Size of all last-level caches, bytes; `None` if the kernel does not report any.
    pub last_level_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Value of `kernel.numa_balancing`; 0 is off.
    pub numa_balancing: Option<u32>,
    /// The evidence that this is a virtual machine or an emulator.
    pub virtual_machine: Option<String>,
}

impl Site {
    /// Reads the properties of `host`; `machine` describes its nodes and CPUs.
    #[must_use]
    pub fn of(host: &Host, machine: &Machine) -> Self {
        let cpus: Vec<u32> = machine.cpus().into_iter().map(|(cpu, _)| cpu.0).collect();
        let with_cpus = machine.nodes.iter().filter(|n| !n.cpus.is_empty());
        Self {
            cpu: printable(&host.cpu_model()),
            kernel: host.kernel_release().unwrap_or_default(),
            nodes: machine.node_count(),
            cpus: cpus.len(),
            memory_bytes: machine.nodes.iter().map(|n| n.memory).sum(),
            smallest_memory: with_cpus.map(|n| n.memory).min().unwrap_or(0),
            last_level_bytes: hardware::last_level(host, &cpus),
            huge_pages: host.transparent_huge_pages(),
            numa_balancing: host.numa_balancing(),
            virtual_machine: hardware::virtual_machine(host),
        }
    }

    /// A name for files, made of the processor model and the number of nodes; it does not identify the machine's owner.
    #[must_use]
    pub fn name(&self) -> String {
        // Words that do not identify a model: trademark signs, and words that occur in all names.
        const EMPTY: [&str; 6] = ["r", "tm", "cpu", "processor", "version", "core"];
        let model = self.cpu.split('@').next().unwrap_or_default().to_lowercase();
        let words = model.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|w| !w.is_empty() && !EMPTY.contains(w)).collect();
        let name = if words.is_empty() {
            "unknown".to_owned()
        } else {
            words.join("-")
        };
        format!("{}-{}n", &name[..name.len().min(48)], self.nodes)
    }
}

fn printable(model: &str) -> String {
    let plain = |c: &char| c.is_ascii_graphic() || *c == ' ';
    match model {
        "" => "unknown".to_owned(),
        model => model.chars().filter(plain).take(80).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_model_and_the_nodes() {
        let name = |cpu: &str| {
            let site = Site {
                cpu: printable(cpu),
                nodes: 2,
                ..Site::default()
            };
            site.name()
        };
        assert_eq!(
            name("Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz"),
            "intel-xeon-gold-6130-2n"
        );
        assert_eq!(name("AMD EPYC 7543 32-Core Processor"), "amd-epyc-7543-32-2n");
        assert_eq!(name("../../etc"), "etc-2n");
        assert_eq!(Site::default().name(), "unknown-0n");
    }
}
