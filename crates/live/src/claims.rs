//! Whether two of us balance the same process: each would move the pages that the other has placed.

use nodewise_analysis::figures::plural;
use nodewise_linux::{Host, lock};
use std::collections::BTreeMap;
use std::fs::File;

/// Largest number of processes that are claimed: each is an open file.
const MOST: usize = 64;
/// Largest number of processes that are named.
const NAMED: usize = 3;

/// Advisory locks on the `/proc` folders of processes, which end with whoever holds them and leave nothing behind.
///
/// They are a reason to say something, none to refuse: any user may lock such a folder, and would keep root from balancing. Each mount of
/// procfs has folders of its own, so that those inside and outside a container do not see each other.
#[derive(Default)]
pub struct Claims {
    held: BTreeMap<u32, File>,
    /// Processes of others, and whether the user knows.
    others: BTreeMap<u32, bool>,
}

impl Claims {
    /// Claims those of these processes that are new, and gives up those that have ended.
    pub fn update(&mut self, host: &Host, pids: &[u32]) {
        self.held.retain(|pid, _| pids.contains(pid));
        self.others.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            if self.held.len() + self.others.len() < MOST
                && !self.held.contains_key(pid)
                && !self.others.contains_key(pid)
            {
                self.claim(host, *pid);
            }
        }
    }

    fn claim(&mut self, host: &Host, pid: u32) {
        let Ok(folder) = File::open(host.proc().join(pid.to_string())) else {
            return; // it has ended
        };
        match lock::try_exclusive(&folder) {
            Ok(true) => {
                self.held.insert(pid, folder);
            }
            Ok(false) => {
                self.others.insert(pid, false);
            }
            // Without locks nothing is known.
            Err(_) => {}
        }
    }

    /// What to tell the user, once for each process.
    pub fn take_notice(&mut self) -> Option<String> {
        let mut new = Vec::new();
        for (pid, said) in &mut self.others {
            if !std::mem::replace(said, true) {
                new.push(pid.to_string());
            }
        }
        let more = match new.len().saturating_sub(NAMED) {
            0 => String::new(),
            left => format!(" and {}", plural(left, "more process")),
        };
        new.truncate(NAMED);
        (!new.is_empty()).then(|| {
            format!(
                "another nodewise balances process {}{more} already: each moves the pages that the other has placed; end one of them",
                new.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_another_balances_is_named_once() {
        let (host, me) = (Host::default(), std::process::id());
        let claims = |pids: &[u32]| {
            let mut claims = Claims::default();
            claims.update(&host, pids);
            claims
        };
        let mut first = claims(&[me, u32::MAX, me]);
        assert_eq!(first.take_notice(), None, "our own are no others'");
        let mut second = claims(&[me]);
        let said = second.take_notice().unwrap();
        assert!(said.contains(&format!("process {me} already")), "{said}");
        second.update(&host, &[me]);
        assert_eq!(second.take_notice(), None);
        first.update(&host, &[]);
        assert_eq!(
            claims(&[me]).take_notice(),
            None,
            "a claim ends with its process, or its holder"
        );
    }
}
