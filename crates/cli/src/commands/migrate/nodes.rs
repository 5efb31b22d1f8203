//! Parses and checks the two lists of nodes, before anything is changed.

use anyhow::{Context, bail};
use nodewise_linux::Host;
use nodewise_machine::{Machine, format_list, parse_list};
use nodewise_placement::Deal;

/// Pairs the i-th node of `from` with the i-th of `to`, which is repeated if it is shorter. The order of the lists
/// matters; `migrate_pages(2)` only supports ascending ones.
pub fn pairs(from: &str, to: &str, ascending: bool) -> anyhow::Result<Vec<(u32, u32)>> {
    let (sources, targets) = (list("--from", from)?, list("--to", to)?);
    if let Some(twice) = named_twice(&sources) {
        bail!("--from {from} names node {twice} twice; its pages can go to one node only");
    }
    if targets.len() > sources.len() {
        bail!(
            "--to {to} has more nodes than --from {from}; the i-th goes to the i-th, so name as many or fewer"
        );
    }
    let sorted = |nodes: &[u32]| nodes.windows(2).all(|w| w[0] < w[1]);
    if ascending && !(sorted(&sources) && sorted(&targets)) {
        bail!("--stock takes ascending lists, as the kernel does; leave it out, or sort --from and --to");
    }
    let pairs: Vec<_> = sources.into_iter().zip(targets.into_iter().cycle()).collect();
    if pairs.iter().all(|(from, to)| from == to) {
        bail!("--from {from} --to {to} leaves every page where it is; name another node after --to");
    }
    Ok(pairs)
}

/// Nodes of this machine that have memory, by the kernel's numbers.
pub fn with_memory(host: &Host) -> anyhow::Result<Vec<u32>> {
    let machine = Machine::from_sysfs(&host.sys(), "this")?;
    Ok(machine.nodes.iter().map(|n| n.os_index).collect())
}

/// One of the proportions of `--shares`.
pub fn share(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|n| *n <= 1_000_000);
    number.ok_or_else(|| format!("`{text}` is no share; write whole numbers such as 70,30"))
}

/// How pages are dealt over `to` in proportion to `shares`.
pub fn deal(shares: &[u32], to: &[u32]) -> anyhow::Result<Deal> {
    let text: Vec<String> = shares.iter().map(u32::to_string).collect();
    let (text, sum) = (text.join(","), shares.iter().map(|s| f64::from(*s)).sum::<f64>());
    if shares.len() != to.len() {
        bail!(
            "--shares {text}: give one for each of the nodes {}, or name as many with --to",
            format_list(to)
        );
    }
    if sum == 0.0 {
        bail!("--shares {text}: at least one is above 0");
    }
    Ok(Deal::steady(
        &shares.iter().map(|s| f64::from(*s) / sum).collect::<Vec<f64>>(),
    ))
}

fn list(option: &str, text: &str) -> anyhow::Result<Vec<u32>> {
    let parts = text
        .split(',')
        .map(|part| parse_list(part).filter(|p| !p.is_empty()));
    let parts: Option<Vec<Vec<u32>>> = parts.collect();
    parts
        .map(|p| p.concat())
        .with_context(|| format!("{option} {text}: not a list of nodes such as 0-1,4"))
}

fn named_twice(nodes: &[u32]) -> Option<&u32> {
    nodes.iter().find(|n| nodes.iter().filter(|m| m == n).count() > 1)
}

/// A list in which each node is once.
pub fn distinct(option: &str, text: &str) -> anyhow::Result<Vec<u32>> {
    let all = list(option, text)?;
    match named_twice(&all) {
        Some(twice) => bail!("{option} {text} names node {twice} twice"),
        None => Ok(all),
    }
}

/// Checks that the nodes and the process exist, and that the process may use those of them that pages go to.
pub fn check(host: &Host, pid: u32, named: &[u32], targets: &[u32]) -> anyhow::Result<()> {
    let here = with_memory(host)?;
    if here.len() < 2 {
        bail!(
            "this machine has one node, so there is nowhere to move pages to; \
             `nodewise lab --machine machine-a -- CMD` gives CMD one with eight"
        );
    }
    if let Some(missing) = named.iter().find(|n| !here.contains(n)) {
        bail!(
            "this machine has no memory on a node {missing}; its nodes are {}",
            format_list(&here)
        );
    }
    let Ok(status) = host.status(pid) else {
        bail!("no process {pid}; `nodewise check` lists yours");
    };
    if status.resident == 0 {
        bail!(
            "process {pid} ({}) has no memory of its own: a kernel thread, or one that has ended",
            status.name
        );
    }
    let allowed = status.mems_allowed;
    if let Some(to) = targets
        .iter()
        .find(|to| !allowed.is_empty() && !allowed.contains(to))
    {
        bail!(
            "process {pid} may not use node {to}: its cpuset allows nodes {}",
            format_list(&allowed)
        );
    }
    Ok(())
}

/// Nodes with memory that the process may use; all of this machine's if there is no such process.
pub fn of_process(host: &Host, pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut nodes = with_memory(host)?;
    let allowed = host.status(pid).map(|s| s.mems_allowed).unwrap_or_default();
    nodes.retain(|n| allowed.is_empty() || allowed.contains(n));
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ith_goes_to_the_ith() {
        assert_eq!(pairs("0-2", "4-6", false).unwrap(), [(0, 4), (1, 5), (2, 6)]);
        assert_eq!(
            pairs("0-3", "4,5", true).unwrap(),
            [(0, 4), (1, 5), (2, 4), (3, 5)]
        );
        assert_eq!(
            pairs("0,1", "1,0", false).unwrap(),
            [(0, 1), (1, 0)],
            "they change places"
        );
    }

    #[test]
    fn bad_lists_are_one_line_with_the_remedy() {
        for (from, to, stock, expected) in [
            ("", "1", false, "--from : not a list of nodes such as 0-1,4"),
            ("0", "x", false, "--to x: not a list of nodes such as 0-1,4"),
            ("0,", "1", false, "--from 0,: not a list"),
            ("0,0", "1", false, "--from 0,0 names node 0 twice"),
            ("0", "1,2", false, "--to 1,2 has more nodes than --from 0"),
            ("0", "0", false, "--from 0 --to 0 leaves every page where it is"),
            ("1,0", "2,3", true, "--stock takes ascending lists"),
        ] {
            let error = format!("{:#}", pairs(from, to, stock).unwrap_err());
            assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
        }
    }
}
