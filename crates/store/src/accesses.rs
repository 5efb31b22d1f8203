//! Conversion of the access table's rows to columns, and back.

use crate::table::{Column, Kind, Schema};
use Kind::{Ascending, U32, U64};
use nodewise_profile::{Access, ObjectId, PageNumber, RegionId, SliceId, ThreadId};

/// Columns of the access table. Within a run of rows pages ascend, so they are stored as differences.
pub const SCHEMA: &Schema = &[
    ("slice", U32),
    ("region", U32),
    ("object", U32),
    ("page", Ascending),
    ("len", U32),
    ("thread", U32),
    ("reads", U64),
    ("writes", U64),
    ("lines", U64),
];

/// Converts rows to columns, in the order of [`SCHEMA`].
pub fn columns(rows: &[Access]) -> Vec<Column> {
    let narrow = |value: fn(&Access) -> u32| Column::U32(rows.iter().map(value).collect());
    let wide = |value: fn(&Access) -> u64| Column::U64(rows.iter().map(value).collect());
    vec![
        narrow(|a| a.slice.0),
        narrow(|a| a.region.0),
        narrow(|a| a.object.0),
        wide(|a| a.page.0),
        narrow(|a| a.len),
        narrow(|a| a.thread.0),
        wide(|a| a.reads),
        wide(|a| a.writes),
        wide(|a| a.lines),
    ]
}

/// Replaces the content of `into` by the rows `range` of columns that are in the order of [`SCHEMA`].
pub fn rows(columns: &[Column], range: std::ops::Range<usize>, into: &mut Vec<Access>) {
    let (slice, region, object) = (columns[0].u32(), columns[1].u32(), columns[2].u32());
    let (page, len, thread) = (columns[3].u64(), columns[4].u32(), columns[5].u32());
    let (reads, writes, lines) = (columns[6].u64(), columns[7].u64(), columns[8].u64());
    into.clear();
    into.extend(range.map(|i| Access {
        slice: SliceId(slice[i]),
        region: RegionId(region[i]),
        object: ObjectId(object[i]),
        thread: ThreadId(thread[i]),
        page: PageNumber(page[i]),
        len: len[i],
        reads: reads[i],
        writes: writes[i],
        lines: lines[i],
    }));
}
