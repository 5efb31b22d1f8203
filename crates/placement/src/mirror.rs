//! Copies of objects that are only read: `mirror`, one copy on each node that has CPUs.
//!
//! A page policy gives each page one node; here readers of one page find it on several. A program makes the copies itself
//! (`nw_replicate` of libnodewise), once the object is filled, and each thread reads the nearest.

use crate::copies::{Copies, Mirrored, nearest};
use crate::listed_nodes::listed_nodes;
use crate::{Context, Named, PolicyError};
use glob::Pattern;
use nodewise_analysis::figures::{and_more, bytes};
use nodewise_analysis::{LastWrite, LastWrites, NodeCounts, object_names};
use nodewise_machine::{Machine, NodeId};
use nodewise_profile::{BASE_PAGE_SIZE, Object, ObjectId, ObjectKind, SliceId};
use std::collections::BTreeMap;

/// The word before the colon.
pub const MIRROR: &str = "mirror";
/// How it is written.
pub const MIRROR_USAGE: &str = "mirror[:OBJECTS][@NODES]";

/// Copies that were not asked for by name may take one part in this many of the smallest node's memory.
const MEMORY_DIVISOR: u64 = 4;
/// An object is divided over nodes, so that placing its pages does what copies would, if one node makes this share of the
/// accesses to each of its pages.
const MAX_EXCLUSIVITY: f64 = 0.8;
/// The name of a module's data that belong to no variable.
const NO_VARIABLE: &str = "(static data)";

/// The policy as written: which objects, on which nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    text: String,
    /// Patterns of names; empty for all objects that copies suit.
    objects: Vec<Pattern>,
    /// All of OBJECTS as one name, as that of a stripped program's function has a `+`.
    whole: Option<Pattern>,
    /// The nodes that get copies, ascending.
    holders: Vec<NodeId>,
}

/// Whether a policy is a [`Mirror`].
pub(crate) fn is_mirror(text: &str) -> bool {
    let rest = text.strip_prefix(MIRROR);
    rest.is_some_and(|r| r.is_empty() || r.starts_with([':', '@']))
}

/// Whether copies of this size may be suggested: they take at most a quarter of the smallest node that has CPUs.
#[must_use]
pub fn copies_fit(bytes: u64, machine: &Machine) -> bool {
    fit_on(bytes, machine.cpu_nodes(), machine)
}

fn fit_on(bytes: u64, nodes: impl Iterator<Item = NodeId>, machine: &Machine) -> bool {
    let smallest = nodes.map(|n| machine.nodes[n.index()].memory).min();
    smallest.is_some_and(|memory| bytes <= memory / MEMORY_DIVISOR)
}

impl Mirror {
    /// Reads `mirror[:OBJECTS][@NODES]`: OBJECTS are names or patterns of names, joined by `+`; NODES is a list such as
    /// `0-1+4`.
    ///
    /// # Errors
    /// One line, if it is another policy, names nothing, a pattern is none, or nodes have no memory.
    pub fn parse(text: &str, machine: &Machine) -> Result<Self, PolicyError> {
        let error = |what: String| PolicyError(format!("{text}: {what}"));
        let rest = text.strip_prefix(MIRROR).filter(|_| is_mirror(text));
        let rest = rest.ok_or_else(|| error(format!("not {MIRROR_USAGE}")))?;
        // A name may have an @, so what follows it is a list of nodes if it begins like one, or if there is no name.
        let listed = |nodes: &str| nodes.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with('@');
        let (names, nodes) = match rest.rsplit_once('@') {
            Some((names, nodes)) if listed(nodes) => (names, Some(nodes)),
            _ => (rest, None),
        };
        if names == ":" {
            return Err(error(format!("no object is named; {MIRROR_USAGE}")));
        }
        let pattern = |name: &str| match name.is_empty() {
            true => Err(error("a name is empty".to_owned())),
            false => Pattern::new(name).map_err(|e| error(format!("`{name}` is no pattern of names: {e}"))),
        };
        let names = names.strip_prefix(':');
        let objects = names.into_iter().flat_map(|names| names.split('+')).map(pattern);
        Ok(Self {
            text: text.to_owned(),
            objects: objects.collect::<Result<_, _>>()?,
            whole: names
                .filter(|n| n.contains('+'))
                .and_then(|n| Pattern::new(n).ok()),
            holders: match nodes {
                None => machine.cpu_nodes().collect(),
                Some(list) => listed_nodes(list, machine).map_err(error)?,
            },
        })
    }

    /// Decides which objects are copied. Without names: files, and arrays with a recorded store, that CPUs of several nodes
    /// read after the last store, page by page; as many as fit ([`copies_fit`]), the most read first.
    ///
    /// # Errors
    /// One line, if decisions are made for pages larger than the machine's, an object was named that copies do not suit, or
    /// no object is called so.
    pub fn plan(&self, context: &Context<'_>, writes: &LastWrites) -> Result<Copies, PolicyError> {
        if context.histogram.shift > 0 {
            return Err(PolicyError(format!(
                "{}: copies are predicted for pages of 4K: larger ones may have parts of several objects",
                self.text
            )));
        }
        let objects = match self.objects.is_empty() {
            true => self.suitable(context, writes),
            false => self.named(context, writes)?,
        };
        Ok(Copies {
            policy: self.text.clone(),
            nearest: nearest(&self.holders, context.machine),
            holders: self.holders.clone(),
            objects,
            instance_bytes: None,
        })
    }

    fn named(&self, context: &Context<'_>, writes: &LastWrites) -> Result<Vec<Mirrored>, PolicyError> {
        let all = accessed(context, writes);
        let patterns = match &self.whole {
            Some(whole) if all.iter().any(|o| o.is_called(whole)) => std::slice::from_ref(whole),
            _ => &self.objects,
        };
        let mut found = Vec::new();
        for pattern in patterns {
            let called = all.iter().filter(|o| o.is_called(pattern));
            let made: Vec<_> = called.map(|o| self.one(o, writes.last())).collect();
            match made.iter().any(Result::is_ok) {
                // A pattern may match objects that copies do not suit, besides others.
                true => found.extend(made.into_iter().flatten()),
                false => {
                    let refused = made.into_iter().find_map(Result::err);
                    return Err(refused.unwrap_or_else(|| self.unknown(pattern, context, writes)));
                }
            }
        }
        found.sort_by_key(|m: &Mirrored| m.object);
        found.dedup_by_key(|m| m.object);
        let each: u64 = found.iter().map(|o| o.bytes).sum();
        let full = |n: &&NodeId| context.machine.nodes[n.index()].memory < each;
        match self.holders.iter().find(full) {
            None => Ok(found),
            Some(node) => Err(PolicyError(format!(
                "{}: copies take {} on each node, node {node} has {}",
                self.text,
                bytes(each),
                bytes(context.machine.nodes[node.index()].memory)
            ))),
        }
    }

    fn one(&self, object: &Copyable<'_>, last: SliceId) -> Result<Mirrored, PolicyError> {
        let (made, write) = (object.copied(), object.write);
        let read_later = match made.stored {
            true => write.after > 0,
            false => made.after.is_none_or(|after| after < last),
        };
        if read_later {
            return Ok(made);
        }
        let why = match (last.0, write.slice) {
            (0, _) => "is filled and read in the recording's only slice; nodewise record --slice region, or a time such as \
                       50ms"
                .to_owned(),
            (last, slice) => format!(
                "is written in slice {} (the last is {last}) and not read after that: copies of it would serve nothing",
                slice.map_or(0, |s| s.0)
            ),
        };
        Err(PolicyError(format!("{}: {} {why}", self.text, object.name)))
    }

    fn suitable(&self, context: &Context<'_>, writes: &LastWrites) -> Vec<Mirrored> {
        let fits = |bytes| fit_on(bytes, self.holders.iter().copied(), context.machine);
        let one = |object: &Copyable<'_>| {
            let (made, write) = (object.copied(), object.write);
            let known = made.stored || object.object.kind == ObjectKind::File;
            let suits =
                known && write.after > 0 && object.name != NO_VARIABLE && several_nodes(write, context);
            suits.then_some((write.after, made))
        };
        let mut found: Vec<(u64, Mirrored)> = accessed(context, writes).iter().filter_map(one).collect();
        let divided = exclusivity(context, found.iter().map(|f| f.1.object));
        found.retain(|(_, m)| divided.get(&m.object).is_none_or(|e| *e <= MAX_EXCLUSIVITY));
        found.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
        let mut sum = 0;
        found.retain(|(_, object)| {
            let room = fits(sum + object.bytes);
            sum += if room { object.bytes } else { 0 };
            room
        });
        let mut chosen: Vec<Mirrored> = found.into_iter().map(|f| f.1).collect();
        chosen.sort_by_key(|m| m.object);
        chosen
    }

    fn unknown(&self, pattern: &Pattern, context: &Context<'_>, writes: &LastWrites) -> PolicyError {
        let suits = self.suitable(context, writes);
        let names: Vec<&str> = suits.iter().map(|m| m.name.as_str()).take(5).collect();
        let left = suits.len() - names.len();
        let hint = match names.is_empty() {
            true => "none would suit".to_owned(),
            false => format!(
                "copies suit {}{}",
                names.join(", "),
                and_more(left, "object", "report --json")
            ),
        };
        PolicyError(format!(
            "{}: no array or file is called `{pattern}` (names are whole, * and ? stand for any characters); {hint}",
            self.text
        ))
    }
}

/// An array or a file that was accessed: what the library can copy.
struct Copyable<'a> {
    id: ObjectId,
    object: &'a Object,
    write: &'a LastWrite,
    /// As reports call it: several objects of one name are numbered.
    name: String,
}

impl Copyable<'_> {
    /// A pattern is of the whole name, numbered or not; of a file, of its path or its end, as rules name files.
    fn is_called(&self, pattern: &Pattern) -> bool {
        let file = || Named::new(pattern.as_str()).is_some_and(|n| n.matches(&self.object.name));
        pattern.matches(&self.name)
            || pattern.matches(&self.object.name)
            || pattern.as_str() == self.name
            || pattern.as_str() == self.object.name
            || (self.object.kind == ObjectKind::File && file())
    }

    fn copied(&self) -> Mirrored {
        let write = self.write;
        let before = self.object.kind == ObjectKind::File;
        Mirrored {
            object: self.id,
            name: self.name.clone(),
            bytes: self.object.pages * BASE_PAGE_SIZE,
            after: write.slice.or_else(|| (!before).then_some(write.first)),
            stored: write.slice.is_some(),
        }
    }
}

/// The arrays and files that were accessed, by the names that reports give them among all objects that were.
fn accessed<'a>(context: &Context<'a>, writes: &'a LastWrites) -> Vec<Copyable<'a>> {
    let ids = (0..context.profile.objects.len()).map(ObjectId::from_index);
    let (ids, written): (Vec<ObjectId>, Vec<&LastWrite>) =
        ids.filter_map(|id| Some((id, writes.of(id)?))).unzip();
    let names = object_names(context.profile, &ids);
    let one = |((id, write), name)| {
        let object = context.profile.object(id).filter(|o| o.kind.is_array_or_file())?;
        Some(Copyable {
            id,
            object,
            write,
            name,
        })
    };
    ids.into_iter().zip(written).zip(names).filter_map(one).collect()
}

/// By object: the share of its accesses that the node makes which accesses a page most, over all its pages.
fn exclusivity(context: &Context<'_>, of: impl Iterator<Item = ObjectId>) -> BTreeMap<ObjectId, f64> {
    let histogram = context.histogram;
    let mut sums: BTreeMap<ObjectId, (u64, u64)> = of.map(|id| (id, (0, 0))).collect();
    let mut counts = NodeCounts::new(context.machine.node_count());
    for (page, object) in histogram.objects.iter().enumerate() {
        if let Some((most, all)) = sums.get_mut(object) {
            counts.load(histogram.page(page).entries, context.affinity);
            *most += counts.dominant().1;
            *all += counts.total();
        }
    }
    let share = |(id, (most, all)): (ObjectId, (u64, u64))| (id, most as f64 / all.max(1) as f64);
    sums.into_iter().map(share).collect()
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
            stored: true,
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
        let rows = [(0, first, 0, 0, 1), (1, first, 1, 9, 0), (1, first, 3, 9, 0)];
        let copies = plan(&recorded, "mirror@0-1", &rows).unwrap();
        assert_eq!(copies.nearest, [0, 1, 0, 1].map(NodeId));
        assert_eq!(copies.bytes(), 2 * 8 * 4096);
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
            error.contains("no array or file is called `absent`") && error.contains("none would suit"),
            "{error}"
        );
    }

    #[test]
    fn copies_of_the_most_read_objects_fit_a_quarter_of_the_smallest_node() {
        let mut recorded = two_objects();
        recorded.machine.nodes[2].memory = 4 * 10 * 4096;
        let first = ObjectId::from_index(recorded.profile.objects.len() - 2).0;
        let rows = [
            (0, first, 0, 0, 1),
            (0, first + 1, 0, 0, 1),
            (1, first, 0, 9, 0),
            (1, first, 3, 9, 0),
            (1, first + 1, 0, 20, 0),
            (1, first + 1, 3, 20, 0),
        ];
        let copies = plan(&recorded, "mirror", &rows).unwrap();
        let objects: Vec<u32> = copies.objects.iter().map(|o| o.object.0).collect();
        assert_eq!(objects, [first + 1]);
    }

    #[test]
    fn without_a_recorded_store_it_is_not_known_when_an_object_is_filled() {
        let recorded = two_objects();
        let first = ObjectId::from_index(recorded.profile.objects.len() - 2).0;
        let rows = [(2, first, 1, 9, 0), (3, first, 3, 9, 0)];
        assert_eq!(plan(&recorded, "mirror", &rows).unwrap().objects, []);
        let named = plan(&recorded, "mirror:array*", &rows).unwrap().objects;
        assert_eq!((named[0].after, named[0].stored), (Some(SliceId(2)), false));
        let error = plan(&recorded, "mirror:array1", &rows[..1]).unwrap_err();
        assert!(error.contains("not read after that"), "{error}");
    }

    #[test]
    fn an_object_that_is_divided_over_the_nodes_needs_no_copies() {
        let of_thread = |page: u64, thread: u32| u64::from(page / 2 == u64::from(thread));
        let recorded = Recorded::new(machine(4, 1), 4, &[(8, &of_thread)]);
        let rows = [(0, 1, 0, 0, 5), (1, 1, 0, 9, 0), (1, 1, 3, 9, 0)];
        assert_eq!(plan(&recorded, "mirror", &rows).unwrap().objects, []);
        assert_eq!(plan(&recorded, "mirror:array1", &rows).unwrap().objects.len(), 1);
    }

    #[test]
    fn equal_names_are_numbered_and_a_name_may_have_a_plus() {
        let mut recorded = two_objects();
        let rows = [(0, 1, 0, 0, 5), (0, 2, 0, 0, 5), (1, 1, 3, 9, 0), (1, 2, 3, 9, 0)];
        for object in &mut recorded.profile.objects[1..] {
            object.name = "bwa+0x2c".into();
        }
        let ids = |text: &str| -> Vec<u32> {
            plan(&recorded, text, &rows)
                .unwrap()
                .objects
                .iter()
                .map(|o| o.object.0)
                .collect()
        };
        assert_eq!(ids("mirror:bwa+0x2c"), [1, 2]);
        assert_eq!(ids("mirror:bwa+0x2c #2"), [2]);
        assert_eq!(ids("mirror:bwa+0x2c@0+2"), [1, 2], "with nodes");
        assert_eq!(ids("mirror:*c #1+*c #2"), [1, 2]);
    }

    #[test]
    fn what_names_nothing_is_refused() {
        let machine = machine(2, 1);
        for (text, says) in [
            ("mirror:", "no object is named"),
            ("mirror:+", "a name is empty"),
            ("mirror:a+", "a name is empty"),
            ("mirror@", "`` is no list of nodes"),
            ("mirror@x", "`x` is no list of nodes"),
            ("mirror@0-", "`0-` is no list of nodes"),
            ("mirror:a@1-0", "`1-0` is no list of nodes"),
        ] {
            let error = Mirror::parse(text, &machine).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(Mirror::parse("mirror:a@b", &machine).is_ok(), "a name with an @");
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
