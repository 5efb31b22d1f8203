//! DAX: memory that programs map without the page cache, so that its bytes are where the device is. Nothing moves such pages.

use crate::Host;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Bit of a file's attributes that says so (`STATX_ATTR_DAX` of `linux/stat.h`).
const DAX: u64 = 0x0020_0000;

/// The number of a DAX device's node in the kernel (`/dev/daxN.M`), by the name of the file; `None` if it is no such device.
/// The inner `None`: the firmware does not say on which node it is.
#[must_use]
pub fn device_node(host: &Host, name: &str) -> Option<Option<u32>> {
    let device = device(name)?;
    let of = |what| {
        let line = host.line(&format!("sys/bus/dax/devices/{device}/{what}"))?;
        line.parse().ok()
    };
    Some(of("target_node").or_else(|| of("numa_node")))
}

/// Whether a path is a DAX device's.
#[must_use]
pub fn is_device(name: &str) -> bool {
    device(name).is_some()
}

/// The name of a DAX device, without its folder.
fn device(name: &str) -> Option<&str> {
    let device = name.strip_prefix("/dev/")?;
    let (region, number) = device.strip_prefix("dax")?.split_once('.')?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (is_number(region) && is_number(number)).then_some(device)
}

/// Why memory of a DAX device stays where it is, and what makes it memory of a node instead.
#[must_use]
pub fn stays(host: &Host, path: &Path) -> Option<String> {
    let name = path.to_string_lossy();
    let node = device_node(host, &name)?;
    let device = device(&name)?;
    let on = node.map_or("with no known node".to_owned(), |node| format!("on node {node}"));
    Some(format!(
        "a DAX device {on}: what maps it has its own memory, and nothing moves that; `daxctl reconfigure-device --mode=system-ram \
         {device}` makes it memory of a node, which nodewise can use"
    ))
}

/// Whether a file lies on a file system that maps the device's own memory (mount option `dax`) instead of the page cache.
#[must_use]
pub fn is_on_device(file: &File) -> bool {
    // SAFETY: an all-zero `statx` is valid, and the kernel fills it in.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor with an empty path; `answer` lives in this frame.
    let status = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            0,
            &raw mut answer,
        )
    };
    status == 0 && answer.stx_attributes & DAX != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_on_the_node_that_its_driver_names() {
        let root = std::env::temp_dir().join(format!("nodewise-dax-{}", std::process::id()));
        for (device, file, node) in [("dax0.0", "target_node", "2\n"), ("dax1.0", "numa_node", "-1\n")] {
            let folder = root.join("sys/bus/dax/devices").join(device);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(file), node).unwrap();
        }
        let host = Host::at(&root);
        let of = |name| device_node(&host, name);
        assert_eq!(
            (of("/dev/dax0.0"), of("/dev/dax1.0")),
            (Some(Some(2)), Some(None))
        );
        assert_eq!(
            (
                of("/dev/zero"),
                of("/dev/dax"),
                of("/dev/dax0.x"),
                of("/tmp/dax0.0")
            ),
            (None, None, None, None)
        );
        let said = stays(&host, Path::new("/dev/dax0.0")).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert!(
            said.starts_with("a DAX device on node 2") && said.contains("system-ram dax0.0"),
            "{said}"
        );
        assert!(!is_on_device(&File::open("/proc/self/exe").unwrap()));
    }
}
