//! What the mover asks of the kernel, so that laws about it can be held against a model.

use nodewise_linux::Host;
use nodewise_linux::pages::{self, CallError, PageStatus};

pub trait Kernel: Sync {
    /// Where pages are.
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError>;
    /// Moves pages to a node; says what it did until an error.
    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>);
    /// Bytes that a node can still take, its file cache given up; `None` if nobody knows.
    fn room(&self, node: u32) -> Option<u64>;
}

/// The kernel we run on, and one process.
pub struct Linux {
    pid: u32,
    host: Host,
}

impl Linux {
    pub fn of(pid: u32) -> Self {
        let host = Host::default();
        Self { pid, host }
    }
}

impl Kernel for Linux {
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError> {
        pages::query(self.pid, addresses)
    }

    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>) {
        pages::move_to(self.pid, addresses, node)
    }

    fn room(&self, node: u32) -> Option<u64> {
        let text = self
            .host
            .read(&format!("sys/devices/system/node/node{node}/meminfo"))
            .ok()?;
        let bytes = |name: &str| -> Option<u64> {
            let rest = text.lines().find_map(|l| l.split_once(name))?.1;
            Some(rest.split_whitespace().next()?.parse::<u64>().ok()? << 10)
        };
        Some(bytes("MemFree:")? + bytes(" FilePages:").unwrap_or(0) - bytes(" Shmem:").unwrap_or(0))
    }
}
