//! When each object was last written, and what was read of it afterwards: whether copies of it would stay valid.

use crate::thread_set::ThreadSet;
use crate::visitor::Visitor;
use nodewise_profile::{Access, ObjectId, SliceId, ThreadId};

/// The use of one object before and after its last write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastWrite {
    /// The last slice in which it was written; `None` if it never was.
    pub slice: Option<SliceId>,
    /// The first slice in which it was accessed.
    pub first: SliceId,
    /// Accesses over the whole recording.
    pub accesses: u64,
    /// Accesses in later slices than that one: reads, all of them.
    pub after: u64,
    /// The threads that made these.
    readers: ThreadSet,
}

impl LastWrite {
    /// The threads that read it after it was last written, ascending.
    pub fn readers(&self) -> impl Iterator<Item = ThreadId> {
        self.readers.iter()
    }

    fn add(&mut self, row: &Access) {
        if self.accesses == 0 {
            self.first = row.slice;
        }
        self.accesses += row.total();
        if row.writes > 0 {
            self.slice = self.slice.max(Some(row.slice));
            self.after = 0;
            self.readers.clear();
        } else if self.slice.is_none_or(|written| written < row.slice) {
            self.after += row.total();
            self.readers.insert(row.thread);
        }
    }
}

/// Finds the last recorded store to each object; what system calls and code that is not counted write is not seen. Rows
/// must ascend by slice. The order of accesses in a slice is unknown: a read in the slice of the last write counts as
/// before it.
#[derive(Clone, Debug, Default)]
pub struct LastWrites {
    objects: Vec<LastWrite>,
    last: SliceId,
}

impl LastWrites {
    /// The use of an object; `None` if it was not accessed.
    #[must_use]
    pub fn of(&self, object: ObjectId) -> Option<&LastWrite> {
        self.objects.get(object.index()).filter(|o| o.accesses > 0)
    }

    /// The last slice of the recording.
    #[must_use]
    pub fn last(&self) -> SliceId {
        self.last
    }
}

impl Visitor for LastWrites {
    fn rows(&mut self, rows: &[Access]) {
        for row in rows {
            self.last = self.last.max(row.slice);
            let index = row.object.index();
            if self.objects.len() <= index {
                self.objects.resize(index + 1, LastWrite::default());
            }
            self.objects[index].add(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slice: u32, thread: u32, reads: u64, writes: u64) -> Access {
        Access {
            slice: SliceId(slice),
            object: ObjectId(2),
            thread: ThreadId(thread),
            len: 3,
            reads,
            writes,
            ..Access::default()
        }
    }

    /// Its last write, accesses after it, and their threads.
    fn found(rows: &[Access]) -> (Option<u32>, u64, Vec<u32>) {
        let mut writes = LastWrites::default();
        writes.rows(rows);
        let of = writes.of(ObjectId(2)).unwrap();
        (
            of.slice.map(|s| s.0),
            of.after,
            of.readers().map(|t| t.0).collect(),
        )
    }

    #[test]
    fn reads_count_from_the_slice_after_the_last_write() {
        let rows = [
            row(0, 0, 0, 5),
            row(0, 2, 7, 0),
            row(1, 1, 2, 0),
            row(3, 70, 4, 0),
        ];
        assert_eq!(found(&rows), (Some(0), 18, vec![1, 70]));
    }

    #[test]
    fn a_later_write_forgets_what_was_read_before() {
        let rows = [row(0, 0, 9, 0), row(1, 2, 9, 0), row(2, 1, 0, 1), row(3, 1, 1, 0)];
        assert_eq!(found(&rows), (Some(2), 3, vec![1]));
    }

    #[test]
    fn what_is_never_written_is_read_from_the_beginning() {
        assert_eq!(found(&[row(0, 0, 1, 0), row(0, 2, 1, 0)]), (None, 6, vec![0, 2]));
        assert_eq!(LastWrites::default().of(ObjectId(0)), None);
    }
}
