//! Conversion of the small tables of a profile to columns, and back.

use crate::bounds;
use crate::error::{Error, Result};
use crate::table::{Column, Entry, Kind, Schema, Table, TableWriter};
use Kind::{Ascending, F64, MaybeF64, MaybeU32, Text, U32, U64};
use nodewise_profile::{
    CounterUse, FirstTouch, Frame, Migration, Object, ObjectId, ObjectKind, PageNumber, Profile, Region,
    RegionId, RegionKind, Schedule, Site, SiteId, Slice, SliceId, TakenPart, Thread, ThreadId,
};
use std::collections::BTreeMap;
use std::path::Path;

const OBJECTS: &Schema = &[
    ("object", U32),
    ("kind", Text),
    ("name", Text),
    ("site", U32),
    ("thread", U32),
    ("sequence", U32),
    ("first_page", U64),
    ("pages", U64),
    ("bytes", U64),
    ("repeats", MaybeU32),
];
const OBJECT_PARTS: &Schema = &[("object", U32), ("site", U32), ("bytes", U64)];
const THREADS: &Schema = &[
    ("thread", U32),
    ("process", U32),
    ("tid", U32),
    ("openmp", MaybeU32),
    ("function", Text),
    ("file", Text),
    ("line", U32),
    ("cpu_ns", U64),
    ("node", MaybeU32),
];
const REGIONS: &Schema = &[
    ("region", U32),
    ("kind", Text),
    ("function", Text),
    ("file", Text),
    ("line", U32),
    ("schedule", MaybeU32),
];
const SLICES: &Schema = &[("slice", U32), ("start_ns", U64), ("end_ns", U64)];
/// One row for each frame, innermost first; a site without frames is one row with empty fields.
const SITES: &Schema = &[
    ("site", U32),
    ("depth", U32),
    ("function", Text),
    ("file", Text),
    ("line", U32),
];
const FIRST_TOUCH: &Schema = &[
    ("page", Ascending),
    ("len", U32),
    ("object", U32),
    ("thread", U32),
    ("site", U32),
    ("slice", U32),
    ("region", U32),
];

const MIGRATIONS: &Schema = &[
    ("time_ns", Ascending),
    ("slice", U32),
    ("page", U64),
    ("len", U32),
    ("object", U32),
    ("from", U32),
    ("to", U32),
    ("by", Text),
    ("to_count", F64),
    ("home_count", MaybeF64),
    ("against", F64),
];

const TAKEN_PARTS: &Schema = &[
    ("run", U32),
    ("part", MaybeU32),
    ("thread", U32),
    ("accesses", U64),
];

const TICKETS: &Schema = &[("site", U32), ("thread", U32), ("again", U32)];

/// Names and schemas of the small tables, in the order of [`encode`] and [`decode`].
const TABLES: [(&str, &Schema); 10] = [
    ("objects", OBJECTS),
    ("object_parts", OBJECT_PARTS),
    ("threads", THREADS),
    ("regions", REGIONS),
    ("slices", SLICES),
    ("sites", SITES),
    ("first_touch", FIRST_TOUCH),
    ("migrations", MIGRATIONS),
    (TAKEN_TABLE, TAKEN_PARTS),
    ("tickets", TICKETS),
];
/// Name of the table of the parts that threads took in other runs.
pub const TAKEN_TABLE: &str = "taken";
/// Tables that may be missing: profiles made before these were recorded lack them.
const OPTIONAL: [&str; 3] = ["migrations", TAKEN_TABLE, "tickets"];

/// Files of the small tables by table name, as the manifest lists them.
pub type Entries = BTreeMap<String, Entry>;

/// Writes the small tables, with `slices` in place of the profile's own. `suffix` distinguishes the files of
/// checkpoints.
pub fn write(
    folder: &Path,
    suffix: &str,
    profile: &Profile,
    slices: &[Slice],
    sync: bool,
) -> Result<Entries> {
    let mut entries = Entries::new();
    for ((name, schema), columns) in TABLES.into_iter().zip(encode(profile, slices)) {
        entries.insert(
            name.to_owned(),
            write_table(folder, &file(name, suffix), schema, &columns, sync)?,
        );
    }
    Ok(entries)
}

/// Writes only the table [`TAKEN_TABLE`], next to the existing tables.
pub fn write_taken(folder: &Path, suffix: &str, rows: &[TakenPart]) -> Result<Entry> {
    write_table(
        folder,
        &file(TAKEN_TABLE, suffix),
        TAKEN_PARTS,
        &taken(rows),
        true,
    )
}

/// The file name of a table.
pub fn file(name: &str, suffix: &str) -> String {
    format!("{name}{suffix}.parquet")
}

fn write_table(folder: &Path, file: &str, schema: &Schema, columns: &[Column], sync: bool) -> Result<Entry> {
    let mut writer = TableWriter::create(folder, file, schema)?;
    writer.append(columns)?;
    writer.finish(sync)
}

/// Reads the small tables; the profile's `meta` is left empty.
pub fn read(folder: &Path, entries: &Entries) -> Result<Profile> {
    let mut profile = Profile::default();
    for (name, schema) in TABLES {
        let entry = entries.get(name);
        if entry.is_none() && OPTIONAL.contains(&name) {
            continue;
        }
        let entry = entry.ok_or_else(|| Error::damaged(folder, format!("it lists no table `{name}`")))?;
        let table = Table::open(folder, entry)?;
        let columns = table.columns(schema, density(schema))?;
        decode(name, &columns, &mut profile).map_err(|what| Error::damaged(table.path(), what))?;
    }
    Ok(profile)
}

/// Largest number of rows per byte of a table. It is small for tables whose rows have unique identifiers, which hardly
/// compress; the tables of sites and of parts of objects repeat identifiers.
fn density(schema: &Schema) -> u64 {
    match schema[0].0 {
        "object" | "thread" | "region" | "slice" if schema[1].0 != "site" => bounds::ROWS_WITH_IDS,
        _ => bounds::ROWS,
    }
}

fn encode(p: &Profile, slices: &[Slice]) -> [Vec<Column>; 10] {
    [
        objects(&p.objects),
        object_parts(&p.objects),
        threads(&p.threads),
        regions(&p.regions),
        slice_times(slices),
        sites(&p.sites),
        first_touches(&p.first_touches),
        migrations(&p.migrations),
        taken(&p.taken),
        tickets(&p.tickets),
    ]
}

fn decode(table: &str, columns: &[Column], p: &mut Profile) -> std::result::Result<(), String> {
    match table {
        "objects" => p.objects = read_objects(columns)?,
        "object_parts" => read_parts(columns, &mut p.objects)?,
        "threads" => p.threads = read_threads(columns)?,
        "regions" => p.regions = read_regions(columns)?,
        "slices" => p.slices = read_slices(columns)?,
        "sites" => p.sites = read_sites(columns)?,
        "first_touch" => p.first_touches = read_first_touches(columns),
        "migrations" => p.migrations = read_migrations(columns)?,
        TAKEN_TABLE => p.taken = read_taken(columns),
        _ => p.tickets = read_tickets(columns),
    }
    Ok(())
}

fn u32s<T>(rows: &[T], value: impl Fn(&T) -> u32) -> Column {
    Column::U32(rows.iter().map(value).collect())
}

fn u64s<T>(rows: &[T], value: impl Fn(&T) -> u64) -> Column {
    Column::U64(rows.iter().map(value).collect())
}

fn texts<T>(rows: &[T], value: impl Fn(&T) -> &str) -> Column {
    Column::Text(rows.iter().map(|r| value(r).to_owned()).collect())
}

/// Identifiers of the rows of a table: their positions, written as a column for users who join tables.
fn ids<T>(rows: &[T]) -> Column {
    Column::U32((0..rows.len()).map(|i| ObjectId::from_index(i).0).collect())
}

/// Checks that the rows of a table are in the order of their identifiers.
fn in_order(ids: &[u32]) -> std::result::Result<(), String> {
    match ids.iter().enumerate().find(|(i, id)| **id as usize != *i) {
        Some((i, id)) => Err(format!("row {i} has the identifier {id}")),
        None => Ok(()),
    }
}

fn objects(rows: &[Object]) -> Vec<Column> {
    vec![
        ids(rows),
        texts(rows, |o| o.kind.name()),
        texts(rows, |o| &o.name),
        u32s(rows, |o| o.site.0),
        u32s(rows, |o| o.thread.0),
        u32s(rows, |o| o.sequence),
        u64s(rows, |o| o.first_page.0),
        u64s(rows, |o| o.pages),
        u64s(rows, |o| o.bytes),
        Column::MaybeU32(rows.iter().map(|o| Some(o.repeats)).collect()),
    ]
}

fn read_objects(c: &[Column]) -> std::result::Result<Vec<Object>, String> {
    in_order(c[0].u32())?;
    let row = |i: usize| {
        let kind = &c[1].text()[i];
        Ok(Object {
            kind: ObjectKind::from_name(kind).ok_or_else(|| format!("unknown kind of object `{kind}`"))?,
            name: c[2].text()[i].clone(),
            site: SiteId(c[3].u32()[i]),
            thread: ThreadId(c[4].u32()[i]),
            sequence: c[5].u32()[i],
            first_page: PageNumber(c[6].u64()[i]),
            pages: c[7].u64()[i],
            bytes: c[8].u64()[i],
            repeats: c[9].maybe_u32()[i].unwrap_or_default(),
            parts: Vec::new(),
        })
    };
    (0..c[0].len()).map(row).collect()
}

fn object_parts(objects: &[Object]) -> Vec<Column> {
    let of = |(i, o): (usize, &Object)| {
        let id = ObjectId::from_index(i).0;
        o.parts
            .iter()
            .map(move |(site, bytes)| (id, site.0, *bytes))
            .collect::<Vec<_>>()
    };
    let rows: Vec<(u32, u32, u64)> = objects.iter().enumerate().flat_map(of).collect();
    vec![u32s(&rows, |r| r.0), u32s(&rows, |r| r.1), u64s(&rows, |r| r.2)]
}

fn read_parts(c: &[Column], objects: &mut [Object]) -> std::result::Result<(), String> {
    for (i, object) in c[0].u32().iter().enumerate() {
        let owner = objects.get_mut(*object as usize);
        let owner = owner.ok_or_else(|| format!("row {i} names object {object}, which does not exist"))?;
        owner.parts.push((SiteId(c[1].u32()[i]), c[2].u64()[i]));
    }
    Ok(())
}

fn threads(rows: &[Thread]) -> Vec<Column> {
    vec![
        ids(rows),
        u32s(rows, |t| t.process.into()),
        u32s(rows, |t| t.tid),
        Column::MaybeU32(rows.iter().map(|t| t.openmp).collect()),
        texts(rows, |t| &t.start.function),
        texts(rows, |t| &t.start.file),
        u32s(rows, |t| t.start.line),
        u64s(rows, |t| t.cpu_ns),
        Column::MaybeU32(rows.iter().map(|t| t.node.map(u32::from)).collect()),
    ]
}

fn read_threads(c: &[Column]) -> std::result::Result<Vec<Thread>, String> {
    in_order(c[0].u32())?;
    let row = |i: usize| {
        let small = |what, n: u32| u16::try_from(n).map_err(|_| format!("row {i} has {what} {n}"));
        Ok(Thread {
            process: small("process", c[1].u32()[i])?,
            tid: c[2].u32()[i],
            openmp: c[3].maybe_u32()[i],
            start: frame(&c[4..], i),
            cpu_ns: c[7].u64()[i],
            node: c[8].maybe_u32()[i].map(|n| small("node", n)).transpose()?,
        })
    };
    (0..c[0].len()).map(row).collect()
}

/// The frame of row `i` from the columns function, file and line.
fn frame(c: &[Column], i: usize) -> Frame {
    Frame {
        function: c[0].text()[i].clone(),
        file: c[1].text()[i].clone(),
        line: c[2].u32()[i],
    }
}

fn regions(rows: &[Region]) -> Vec<Column> {
    let kind = |r: &Region| match r.kind {
        RegionKind::Serial => "serial",
        RegionKind::OpenMp => "openmp",
    };
    vec![
        ids(rows),
        Column::Text(rows.iter().map(|r| kind(r).to_owned()).collect()),
        texts(rows, |r| &r.frame.function),
        texts(rows, |r| &r.frame.file),
        u32s(rows, |r| r.frame.line),
        Column::MaybeU32(rows.iter().map(|r| r.schedule.map(Schedule::number)).collect()),
    ]
}

fn read_regions(c: &[Column]) -> std::result::Result<Vec<Region>, String> {
    in_order(c[0].u32())?;
    let row = |i: usize| {
        let kind = match c[1].text()[i].as_str() {
            "serial" => RegionKind::Serial,
            "openmp" => RegionKind::OpenMp,
            other => return Err(format!("unknown kind of region `{other}`")),
        };
        Ok(Region {
            kind,
            frame: frame(&c[2..], i),
            schedule: c[5].maybe_u32()[i].and_then(Schedule::from_number),
        })
    };
    (0..c[0].len()).map(row).collect()
}

fn slice_times(rows: &[Slice]) -> Vec<Column> {
    vec![ids(rows), u64s(rows, |s| s.start_ns), u64s(rows, |s| s.end_ns)]
}

fn read_slices(c: &[Column]) -> std::result::Result<Vec<Slice>, String> {
    in_order(c[0].u32())?;
    let row = |i: usize| Slice {
        start_ns: c[1].u64()[i],
        end_ns: c[2].u64()[i],
    };
    Ok((0..c[0].len()).map(row).collect())
}

fn sites(sites: &[Site]) -> Vec<Column> {
    let nothing = [Frame::default()];
    let mut rows = Vec::new();
    for (i, site) in sites.iter().enumerate() {
        let frames = if site.frames.is_empty() {
            &nothing[..]
        } else {
            &site.frames
        };
        rows.extend(
            frames
                .iter()
                .enumerate()
                .map(|(depth, f)| (SiteId::from_index(i).0, depth as u32, f.clone())),
        );
    }
    vec![
        u32s(&rows, |r| r.0),
        u32s(&rows, |r| r.1),
        texts(&rows, |r| &r.2.function),
        texts(&rows, |r| &r.2.file),
        u32s(&rows, |r| r.2.line),
    ]
}

fn read_sites(c: &[Column]) -> std::result::Result<Vec<Site>, String> {
    let mut sites: Vec<Site> = Vec::new();
    for (i, (site, depth)) in c[0].u32().iter().zip(c[1].u32()).enumerate() {
        if *depth == 0 {
            sites.push(Site::default());
        }
        let last = sites.len().wrapping_sub(1);
        let frames = sites.last_mut().map(|s| &mut s.frames);
        match frames {
            Some(frames) if *site as usize == last && *depth as usize == frames.len() => {
                frames.push(frame(&c[2..], i));
            }
            _ => return Err(format!("row {i} is out of order")),
        }
    }
    for site in sites.iter_mut().filter(|s| s.frames == [Frame::default()]) {
        site.frames.clear();
    }
    Ok(sites)
}

fn first_touches(rows: &[FirstTouch]) -> Vec<Column> {
    vec![
        u64s(rows, |t| t.page.0),
        u32s(rows, |t| t.len),
        u32s(rows, |t| t.object.0),
        u32s(rows, |t| t.thread.0),
        u32s(rows, |t| t.site.0),
        u32s(rows, |t| t.slice.0),
        u32s(rows, |t| t.region.0),
    ]
}

fn read_first_touches(c: &[Column]) -> Vec<FirstTouch> {
    let row = |i: usize| FirstTouch {
        page: PageNumber(c[0].u64()[i]),
        len: c[1].u32()[i],
        object: ObjectId(c[2].u32()[i]),
        thread: ThreadId(c[3].u32()[i]),
        site: SiteId(c[4].u32()[i]),
        slice: SliceId(c[5].u32()[i]),
        region: RegionId(c[6].u32()[i]),
    };
    (0..c[0].len()).map(row).collect()
}

fn migrations(rows: &[Migration]) -> Vec<Column> {
    vec![
        u64s(rows, |m| m.time_ns),
        u32s(rows, |m| m.slice.0),
        u64s(rows, |m| m.page.0),
        u32s(rows, |m| m.len),
        u32s(rows, |m| m.object.0),
        u32s(rows, |m| m.from.into()),
        u32s(rows, |m| m.to.into()),
        texts(rows, |m| &m.by),
        Column::F64(rows.iter().map(|m| m.to_count).collect()),
        Column::MaybeF64(rows.iter().map(|m| m.home_count).collect()),
        Column::F64(rows.iter().map(|m| m.count_threshold).collect()),
    ]
}

fn read_migrations(c: &[Column]) -> std::result::Result<Vec<Migration>, String> {
    let node = |column: &Column, i: usize| {
        let node = column.u32()[i];
        u16::try_from(node).map_err(|_| format!("row {i} has node {node}"))
    };
    let row = |i: usize| {
        Ok(Migration {
            time_ns: c[0].u64()[i],
            slice: SliceId(c[1].u32()[i]),
            page: PageNumber(c[2].u64()[i]),
            len: c[3].u32()[i],
            object: ObjectId(c[4].u32()[i]),
            from: node(&c[5], i)?,
            to: node(&c[6], i)?,
            by: c[7].text()[i].clone(),
            to_count: c[8].f64()[i],
            home_count: c[9].maybe_f64()[i],
            count_threshold: c[10].f64()[i],
        })
    };
    (0..c[0].len()).map(row).collect()
}

fn taken(rows: &[TakenPart]) -> Vec<Column> {
    vec![
        u32s(rows, |t| t.run),
        Column::MaybeU32(rows.iter().map(|t| t.part).collect()),
        u32s(rows, |t| t.by),
        u64s(rows, |t| t.accesses),
    ]
}

fn read_taken(c: &[Column]) -> Vec<TakenPart> {
    let row = |i: usize| TakenPart {
        run: c[0].u32()[i],
        part: c[1].maybe_u32()[i],
        by: c[2].u32()[i],
        accesses: c[3].u64()[i],
    };
    (0..c[0].len()).map(row).collect()
}

fn tickets(rows: &[CounterUse]) -> Vec<Column> {
    vec![
        u32s(rows, |t| t.site.0),
        u32s(rows, |t| t.thread.0),
        u32s(rows, |t| t.again.into()),
    ]
}

fn read_tickets(c: &[Column]) -> Vec<CounterUse> {
    let row = |i: usize| CounterUse {
        site: SiteId(c[0].u32()[i]),
        thread: ThreadId(c[1].u32()[i]),
        again: c[2].u32()[i] != 0,
    };
    (0..c[0].len()).map(row).collect()
}
