//! The name of this host's CPUs.

use crate::Host;

impl Host {
    /// The CPU's model name, as in `/proc/cpuinfo`; empty if the kernel does not say (Arm).
    #[must_use]
    pub fn cpu_model(&self) -> String {
        let text = self.read("proc/cpuinfo").unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("model name"));
        line.and_then(|l| l.split_once(':'))
            .map_or_else(String::new, |l| l.1.trim().to_owned())
    }
}
