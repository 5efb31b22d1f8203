//! Tells virtual machines by the CPU's flag or by names in the firmware's tables.

use nodewise_linux::Host;

/// Vendor and product names in the firmware's tables (DMI) that only virtual machines have.
const VENDORS: [&str; 9] = [
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "xen",
    "bochs",
    "amazon ec2",
    "google compute",
    "virtual machine",
];

/// The evidence that this is a virtual machine, if any. Latency and bandwidth are then those that the hypervisor
/// permits, nodes need not be those of the hardware, and an emulator has no caches at all.
#[must_use]
pub fn virtual_machine(host: &Host) -> Option<String> {
    let cpuinfo = host.read("proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|l| l.starts_with("flags"));
    if flags.is_some_and(|f| f.split_whitespace().any(|w| w == "hypervisor")) {
        return Some("the CPU's hypervisor flag".to_owned());
    }
    let table = |file: &str| host.line(&format!("sys/class/dmi/id/{file}"));
    let known = |text: &String| VENDORS.iter().any(|v| text.to_lowercase().contains(v));
    ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(table)
        .find(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_or_a_vendor_tells() {
        let root = std::env::temp_dir().join(format!("nodewise-hypervisor-{}", std::process::id()));
        let (proc, dmi) = (root.join("proc"), root.join("sys/class/dmi/id"));
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::create_dir_all(&dmi).unwrap();
        let host = Host::at(&root);
        assert_eq!(virtual_machine(&host), None);
        std::fs::write(dmi.join("sys_vendor"), "Dell Inc.\n").unwrap();
        std::fs::write(proc.join("cpuinfo"), "flags\t\t: fpu sse2\n").unwrap();
        assert_eq!(virtual_machine(&host), None);
        std::fs::write(dmi.join("product_name"), "Virtual Machine\n").unwrap();
        assert_eq!(virtual_machine(&host), Some("Virtual Machine".to_owned()));
        std::fs::write(proc.join("cpuinfo"), "flags\t\t: fpu hypervisor sse2\n").unwrap();
        assert!(virtual_machine(&host).unwrap().contains("flag"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
