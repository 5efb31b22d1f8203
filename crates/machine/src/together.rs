//! Parses concurrent flows as users write them, and computes the load of each channel.

use crate::{Channels, Flow, MachineError, NodeId};

impl Flow {
    /// Parses a comma-separated list of flows: `2>3` is data from node 2's memory to a reader on node 3 (data that node
    /// 3 writes to node 2 are `3>2`), `0-1` is `0>1` and `1>0`, and `0-1-4` is every ordered pair of these nodes.
    ///
    /// # Errors
    /// If a part is none of these, stays on one node, or names a node that a machine of `nodes` nodes lacks.
    pub fn parse_list(text: &str, nodes: usize) -> Result<Vec<Self>, MachineError> {
        let parts = text.split(',').map(|part| parse(part.trim(), nodes));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

fn parse(part: &str, nodes: usize) -> Result<Vec<Flow>, MachineError> {
    let wrong = |what: String| MachineError::invalid(format!("flow {part:?}: {what}"));
    let node = |name: &str| match name.trim().parse::<u32>() {
        Ok(n) if (n as usize) < nodes => Ok(NodeId(n)),
        Ok(n) if nodes > 1 => Err(wrong(format!(
            "there is no node {n}; nodes are 0 to {}",
            nodes - 1
        ))),
        Ok(n) => Err(wrong(format!(
            "there is no node {n}, only node 0: nothing moves between nodes"
        ))),
        Err(_) => Err(wrong(
            "write 2>3 (memory, reader), 0-1 (both ways) or 0-1-4 (every pair)".to_owned(),
        )),
    };
    let names = |by: char| part.split(by).map(node).collect::<Result<Vec<_>, _>>();
    let one_way = part.contains('>') && !part.contains('-');
    let flows = match names(if one_way { '>' } else { '-' })?[..] {
        [memory, reader] if one_way => vec![Flow { reader, memory }],
        _ if one_way => {
            return Err(wrong(
                "one flow has two ends; the way between them is the machine's".to_owned(),
            ));
        }
        ref all => every_pair(all),
    };
    if flows.is_empty() || flows.iter().any(|f| f.reader == f.memory) {
        return Err(wrong("leads from a node to itself, over no link".to_owned()));
    }
    Ok(flows)
}

/// Both directions between any two nodes.
fn every_pair(nodes: &[NodeId]) -> Vec<Flow> {
    let pairs = nodes
        .iter()
        .enumerate()
        .flat_map(|(i, a)| nodes[i + 1..].iter().map(move |b| (*a, *b)));
    pairs
        .flat_map(|(a, b)| [Flow { memory: a, reader: b }, Flow { memory: b, reader: a }])
        .collect()
}

impl Channels {
    /// The load of each channel, MB/s, if `flows` have these `rates`. Links come first, by [`crate::LinkId`].
    #[must_use]
    pub fn loads(&self, flows: &[Flow], rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacity.len()];
        for (flow, rate) in flows.iter().zip(rates) {
            for channel in self.way(flow.reader, flow.memory) {
                loads[*channel as usize] += rate;
            }
        }
        loads
    }

    /// The channel that limits a flow under these loads: the first full one on its way; `None` if there is none.
    #[must_use]
    pub fn holds_back(&self, flow: Flow, loads: &[f64]) -> Option<u32> {
        let full = |c: &&u32| loads[**c as usize] >= self.capacity[**c as usize] * (1.0 - 1e-6);
        self.way(flow.reader, flow.memory).iter().find(full).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    #[test]
    fn a_list_says_which_way_data_move() {
        let pair = |memory, reader| Flow {
            memory: NodeId(memory),
            reader: NodeId(reader),
        };
        assert_eq!(
            Flow::parse_list("2>3, 0-1", 8).unwrap(),
            [pair(2, 3), pair(0, 1), pair(1, 0)]
        );
        assert_eq!(Flow::parse_list("0-1-4", 8).unwrap().len(), 6);
        for (bad, because) in [
            ("", "write 2>3"),
            ("0-1,", "write 2>3"),
            ("0>1>2", "two ends"),
            ("0>1-2", "write 2>3"),
            ("3>3", "itself"),
            ("4", "itself"),
            ("0-8", "no node 8; nodes are 0 to 7"),
            ("-1>2", "write 2>3"),
        ] {
            let error = Flow::parse_list(bad, 8).unwrap_err().to_string();
            assert!(error.contains(because), "{bad}: {error}");
        }
        let alone = Flow::parse_list("0-1", 1).unwrap_err().to_string();
        assert!(alone.contains("only node 0"), "{alone}");
    }

    #[test]
    fn a_flow_is_held_back_by_what_is_full() {
        let machine = Machine::named("machine-a").unwrap();
        let channels = Channels::of(&machine);
        let flows = Flow::parse_list("0>2,0>3,0>7", 8).unwrap();
        let loads = channels.loads(&flows, &channels.max_min(&flows));
        let shared = channels.holds_back(flows[0], &loads).unwrap();
        assert_eq!(channels.holds_back(flows[1], &loads), Some(shared));
        let link = &machine.links[shared as usize];
        assert_eq!(
            (link.from, link.to, loads[shared as usize]),
            (NodeId(0), NodeId(2), 4329.0)
        );
        let rule = channels.holds_back(flows[2], &loads).unwrap() as usize;
        assert!(
            rule >= machine.links.len(),
            "16 then 8 bits: neither link is full"
        );
    }
}
