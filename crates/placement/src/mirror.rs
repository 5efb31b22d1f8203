//! Copies of objects that are only read: `mirror`, one copy on each node that has CPUs.
//!
//! A page policy gives each page one node; here readers of one page find it on several. A program makes the copies itself
//! (`nw_replicate` of libnodewise), once the object is filled, and each thread reads the nearest.

use crate::{Context, Named, PolicyError};
use glob::Pattern;
use nodewise_analysis::figures::bytes;
use nodewise_analysis::{LastWrite, LastWrites};
use nodewise_machine::{Machine, NodeId, format_list, parse_list};
use nodewise_profile::{BASE_PAGE_SIZE, Object, ObjectId, ObjectKind, SliceId};

/// The word before the colon.
const MIRROR: &str = "mirror";
/// How it is written.
pub const MIRROR_USAGE: &str = "mirror[:OBJECTS][@NODES]";

/// Copies that nobody asked for by name may take one part in this many of the smallest node's memory.
const MEMORY_DIVISOR: u64 = 4;

/// The policy as written: which objects, on which nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    text: String,
    /// Patterns of names; empty for all objects that copies suit.
    objects: Vec<Pattern>,
    /// The nodes that get copies, ascending.
    holders: Vec<NodeId>,
}

/// Copies of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Its identifier in the profile.
    pub object: ObjectId,
    /// Its name in the profile.
    pub name: String,
    /// Bytes of one copy, in whole pages.
    pub bytes: u64,
    /// The slice of its last write; copies are made after it. `None`: before the program works.
    pub after: Option<SliceId>,
}

/// Which objects are copied, when, and which copy each node reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The policy as written.
    pub policy: String,
    /// The nodes that have copies, ascending.
    pub holders: Vec<NodeId>,
    /// By node: the one whose copy its CPUs read, itself if it has one, else that with the least latency.
    pub nearest: Vec<NodeId>,
    /// In the order of the profile's objects.
    pub objects: Vec<Mirrored>,
}

impl Copies {
    /// Bytes of all copies; the objects themselves stay.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_a_node() * self.holders.len() as u64
    }

    /// Bytes of the copies on one node.
    #[must_use]
    pub fn bytes_a_node(&self) -> u64 {
        self.objects.iter().map(|o| o.bytes).sum()
    }
}

/// Whether a policy is a [`Mirror`].
#[must_use]
pub fn is_mirror(text: &str) -> bool {
    let rest = text.strip_prefix(MIRROR);
    rest.is_some_and(|r| r.is_empty() || r.starts_with([':', '@']))
}

/// Why a policy that makes copies is refused where placements are asked for.
#[must_use]
pub fn not_a_placement(policy: &str) -> String {
    format!(
        "`{policy}` makes copies, which only the program itself can read (nw_replicate of libnodewise); `nodewise simulate` \
         and `nodewise report` predict what they gain"
    )
}

/// Whether copies of this size may be suggested: they take at most a quarter of the smallest node that has CPUs.
#[must_use]
pub fn copies_fit(bytes: u64, machine: &Machine) -> bool {
    let smallest = machine.cpu_nodes().map(|n| machine.nodes[n.index()].memory).min();
    smallest.is_some_and(|memory| bytes <= memory / MEMORY_DIVISOR)
}

impl Mirror {
    /// Reads `mirror[:OBJECTS][@NODES]`: OBJECTS are names or patterns of names, joined by `+`; NODES is a list such as
    /// `0-1+4`.
    ///
    /// # Errors
    /// One line, if it is another policy, a pattern is none, or nodes have no memory.
    pub fn parse(text: &str, machine: &Machine) -> Result<Self, PolicyError> {
        let rest = text.strip_prefix(MIRROR).filter(|_| is_mirror(text));
        let rest = rest.ok_or_else(|| PolicyError(format!("`{text}` is not {MIRROR_USAGE}")))?;
        match rest.rsplit_once('@') {
            Some((names, nodes)) if parse_list(&nodes.replace('+', ",")).is_some() => {
                Self::new(text, names, Some(nodes), machine)
            }
            _ => Self::new(text, rest, None, machine),
        }
    }

    fn new(text: &str, names: &str, nodes: Option<&str>, machine: &Machine) -> Result<Self, PolicyError> {
        let pattern = |name: &str| {
            Pattern::new(name)
                .map_err(|e| PolicyError(format!("{text}: `{name}` is no pattern of names: {e}")))
        };
        let names = names.trim_start_matches(':').split('+').filter(|n| !n.is_empty());
        let holders = match nodes {
            None => machine.cpu_nodes().collect(),
            Some(list) => on(text, &list.replace('+', ","), machine)?,
        };
        Ok(Self {
            text: text.to_owned(),
            objects: names.map(pattern).collect::<Result<_, _>>()?,
            holders,
        })
    }

    /// Decides which objects are copied. Without names: arrays and files that CPUs of several nodes read after the last
    /// write to them, most of whose accesses come after it, as many as fit ([`copies_fit`]), the most read first.
    ///
    /// # Errors
    /// One line, if an object was named that copies do not suit, or that no object is called.
    pub fn plan(&self, context: &Context<'_>, writes: &LastWrites) -> Result<Copies, PolicyError> {
        let objects = match self.objects.is_empty() {
            true => suitable(context, writes),
            false => self.named(context, writes)?,
        };
        Ok(Copies {
            policy: self.text.clone(),
            nearest: nearest(&self.holders, context.machine),
            holders: self.holders.clone(),
            objects,
        })
    }

    fn named(&self, context: &Context<'_>, writes: &LastWrites) -> Result<Vec<Mirrored>, PolicyError> {
        for pattern in &self.objects {
            if !copied_kinds(context).any(|(_, o)| is_called(o, pattern)) {
                return Err(self.unknown(pattern, context, writes));
            }
        }
        let wanted = |o: &Object| self.objects.iter().any(|p| is_called(o, p));
        let named = copied_kinds(context).filter(|(_, o)| wanted(o));
        let named = named.filter_map(|(id, o)| Some(self.one(id, o, writes.of(id)?, writes.last())));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let each: u64 = named.iter().map(|o| o.bytes).sum();
        let full = |n: &&NodeId| context.machine.nodes[n.index()].memory < each;
        match self.holders.iter().find(full) {
            None => Ok(named),
            Some(node) => Err(PolicyError(format!(
                "{}: copies take {} on each node, node {node} has {}",
                self.text,
                bytes(each),
                bytes(context.machine.nodes[node.index()].memory)
            ))),
        }
    }

    fn one(
        &self,
        id: ObjectId,
        object: &Object,
        write: &LastWrite,
        last: SliceId,
    ) -> Result<Mirrored, PolicyError> {
        if write.after > 0 {
            return Ok(mirrored(id, object, write.slice));
        }
        let until = write.slice.map_or(0, |s| s.0);
        Err(PolicyError(match last.0 {
            0 => format!(
                "{}: {} is written, and the recording has one slice, so when is unknown: nodewise record --slice region",
                self.text, object.name
            ),
            last => format!(
                "{}: {} is written in slice {until} (the last is {last}) and not read after that: copies of it would serve nothing",
                self.text, object.name
            ),
        }))
    }

    fn unknown(&self, pattern: &Pattern, context: &Context<'_>, writes: &LastWrites) -> PolicyError {
        let suits = suitable(context, writes);
        let names: Vec<&str> = suits.iter().map(|m| m.name.as_str()).take(5).collect();
        let hint = match names.is_empty() {
            true => "none would suit".to_owned(),
            false => format!("copies suit {}", names.join(", ")),
        };
        PolicyError(format!(
            "{}: no array or file is called `{pattern}`; {hint}",
            self.text
        ))
    }
}

/// Nodes of the machine with memory.
fn on(text: &str, list: &str, machine: &Machine) -> Result<Vec<NodeId>, PolicyError> {
    let nodes = parse_list(list).unwrap_or_default();
    let known = |n: &u32| machine.nodes.get(*n as usize).is_some_and(|n| n.memory > 0);
    match nodes.iter().find(|n| !known(n)) {
        None if !nodes.is_empty() => Ok(nodes.into_iter().map(NodeId).collect()),
        _ => Err(PolicyError(format!(
            "{text}: nodes with memory are {} on {}",
            format_list(&(0..machine.node_count() as u32).filter(known).collect::<Vec<_>>()),
            machine.name
        ))),
    }
}

fn nearest(holders: &[NodeId], machine: &Machine) -> Vec<NodeId> {
    let of = |reader: NodeId| {
        if holders.contains(&reader) {
            return reader;
        }
        let by_latency = |a: &&NodeId, b: &&NodeId| {
            machine
                .latency(reader, **a)
                .total_cmp(&machine.latency(reader, **b))
        };
        holders.iter().min_by(by_latency).copied().unwrap_or(reader)
    };
    machine.node_ids().map(of).collect()
}

/// Arrays and files: what the library can copy.
fn copied_kinds<'a>(context: &Context<'a>) -> impl Iterator<Item = (ObjectId, &'a Object)> {
    let objects = context.profile.objects.iter().enumerate();
    objects
        .filter(|(_, o)| o.kind.is_mappable() || o.kind == ObjectKind::File)
        .map(|(i, o)| (ObjectId::from_index(i), o))
}

/// A pattern is of the whole name; of a file, of its path or its end, as rules name files.
fn is_called(object: &Object, pattern: &Pattern) -> bool {
    let file = || Named::new(pattern.as_str()).is_some_and(|n| n.matches(&object.name));
    pattern.matches(&object.name) || (object.kind == ObjectKind::File && file())
}

fn mirrored(id: ObjectId, object: &Object, after: Option<SliceId>) -> Mirrored {
    Mirrored {
        object: id,
        name: object.name.clone(),
        bytes: object.pages * BASE_PAGE_SIZE,
        after,
    }
}

fn suitable(context: &Context<'_>, writes: &LastWrites) -> Vec<Mirrored> {
    let suits = |write: &LastWrite| 2 * write.after > write.accesses && several_nodes(write, context);
    let one = |(id, object): (ObjectId, &Object)| {
        let write = writes.of(id).filter(|w| suits(w))?;
        Some((write.after, mirrored(id, object, write.slice)))
    };
    let mut found: Vec<(u64, Mirrored)> = copied_kinds(context).filter_map(one).collect();
    found.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
    let mut bytes = 0;
    found.retain(|(_, object)| {
        let fits = copies_fit(bytes + object.bytes, context.machine);
        bytes += if fits { object.bytes } else { 0 };
        fits
    });
    let mut chosen: Vec<Mirrored> = found.into_iter().map(|f| f.1).collect();
    chosen.sort_by_key(|m| m.object);
    chosen
}

/// Whether CPUs of several nodes read it after the last write.
fn several_nodes(write: &LastWrite, context: &Context<'_>) -> bool {
    let nodes = write
        .readers()
        .filter_map(|t| context.affinity.nodes.get(t.index()));
    let mut nodes = nodes.copied();
    let first = nodes.next();
    nodes.any(|node| Some(node) != first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Recorded, machine};
    use nodewise_analysis::Visitor;
    use nodewise_profile::{Access, ThreadId};

    /// Rows of (slice, object, thread, reads, writes).
    fn writes(rows: &[(u32, u32, u32, u64, u64)]) -> LastWrites {
        let mut writes = LastWrites::default();
        let row = |&(slice, object, thread, reads, writes): &(u32, u32, u32, u64, u64)| Access {
            slice: SliceId(slice),
            object: ObjectId(object),
            thread: ThreadId(thread),
            len: 1,
            reads,
            writes,
            ..Access::default()
        };
        writes.rows(&rows.iter().map(row).collect::<Vec<_>>());
        writes
    }

    fn two_objects() -> Recorded {
        Recorded::new(machine(4, 1), 4, &[(8, &|_, _| 1), (4, &|_, _| 1)])
    }

    fn plan(recorded: &Recorded, text: &str, rows: &[(u32, u32, u32, u64, u64)]) -> Result<Copies, String> {
        let context = recorded.context();
        let mirror = Mirror::parse(text, &recorded.machine).map_err(|e| e.to_string())?;
        mirror.plan(&context, &writes(rows)).map_err(|e| e.to_string())
    }

    #[test]
    fn what_several_nodes_read_after_the_last_write_is_copied_everywhere() {
        let recorded = two_objects();
        let first = ObjectId::from_index(recorded.profile.objects.len() - 2).0;
        let rows = [
            (0, first, 0, 0, 5),
            (0, first + 1, 0, 0, 5),
            (1, first, 1, 9, 0),
            (1, first, 3, 9, 0),
            // Written to the end.
            (2, first + 1, 2, 0, 5),
        ];
        let copies = plan(&recorded, "mirror", &rows).unwrap();
        let expected = Mirrored {
            object: ObjectId(first),
            name: recorded.profile.objects[first as usize].name.clone(),
            bytes: 8 * 4096,
            after: Some(SliceId(0)),
        };
        assert_eq!(copies.objects, [expected]);
        assert_eq!((copies.holders.len(), copies.bytes()), (4, 4 * 8 * 4096));
        assert_eq!(copies.nearest, (0..4).map(NodeId).collect::<Vec<_>>());
    }

    #[test]
    fn a_node_without_a_copy_reads_the_nearest() {
        let mut recorded = two_objects();
        recorded.machine.latency_ns[3] = vec![400.0, 300.0, 350.0, 100.0];
        let first = ObjectId::from_index(recorded.profile.objects.len() - 2).0;
        let rows = [(0, first, 1, 9, 0), (0, first, 3, 9, 0)];
        let copies = plan(&recorded, "mirror@0-1", &rows).unwrap();
        assert_eq!(copies.nearest, [0, 1, 0, 1].map(NodeId));
        assert_eq!(copies.bytes(), 2 * 8 * 4096);
        assert_eq!(copies.objects[0].after, None, "never written");
    }

    #[test]
    fn an_object_that_is_written_to_the_end_is_refused_by_name() {
        let recorded = two_objects();
        let first = ObjectId::from_index(recorded.profile.objects.len() - 2).0;
        let name = recorded.profile.objects[first as usize].name.clone();
        let rows = [(0, first, 1, 9, 0), (3, first, 3, 9, 1)];
        let error = plan(&recorded, &format!("mirror:{name}"), &rows).unwrap_err();
        assert!(error.contains("written in slice 3 (the last is 3)"), "{error}");
        let error = plan(&recorded, "mirror:absent", &rows).unwrap_err();
        assert!(
            error.contains("no array or file is called `absent`; none would suit"),
            "{error}"
        );
    }

    #[test]
    fn copies_of_the_most_read_objects_fit_a_quarter_of_the_smallest_node() {
        let mut recorded = two_objects();
        recorded.machine.nodes[2].memory = 4 * 10 * 4096;
        let first = ObjectId::from_index(recorded.profile.objects.len() - 2).0;
        let rows = [
            (0, first, 0, 9, 0),
            (0, first, 3, 9, 0),
            (0, first + 1, 0, 20, 0),
            (0, first + 1, 3, 20, 0),
        ];
        let copies = plan(&recorded, "mirror", &rows).unwrap();
        let objects: Vec<u32> = copies.objects.iter().map(|o| o.object.0).collect();
        assert_eq!(objects, [first + 1]);
    }

    #[test]
    fn other_policies_and_wrong_nodes_are_told_apart() {
        let machine = machine(2, 1);
        assert!(!is_mirror("mirrored") && !is_mirror("interleave") && is_mirror("mirror@0"));
        assert!(Mirror::parse("mirrored", &machine).is_err());
        let error = Mirror::parse("mirror@0+7", &machine).unwrap_err();
        assert_eq!(error.to_string(), "mirror@0+7: nodes with memory are 0-1 on test");
        let one = Mirror::parse("mirror:a+b@1", &machine).unwrap();
        assert_eq!((one.objects.len(), one.holders), (2, vec![NodeId(1)]));
        assert!(Mirror::parse("mirror:[", &machine).is_err());
    }
}
