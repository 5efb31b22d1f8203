//! Lists of nodes within a policy's name, where a comma would end the policy: `0-1+4`.

use nodewise_machine::{Machine, NodeId, format_list, parse_list};

/// The nodes in a list such as `0-1+4`, ascending.
///
/// # Errors
/// One line, if it is no such list, or a node does not exist or has no memory.
pub(crate) fn listed_nodes(list: &str, machine: &Machine) -> Result<Vec<NodeId>, String> {
    let nodes = parse_list(&list.replace('+', ",")).filter(|nodes| !nodes.is_empty());
    let nodes = nodes.ok_or_else(|| format!("`{list}` is no list of nodes such as 0-1+4"))?;
    let known = |n: &u32| machine.nodes.get(*n as usize).is_some_and(|n| n.memory > 0);
    match nodes.iter().all(known) {
        true => Ok(nodes.into_iter().map(NodeId).collect()),
        false => Err(format!(
            "nodes with memory are {} on {}",
            format_list(&(0..machine.node_count() as u32).filter(known).collect::<Vec<_>>()),
            machine.name
        )),
    }
}
