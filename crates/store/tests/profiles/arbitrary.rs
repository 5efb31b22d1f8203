//! Recordings that are valid but otherwise arbitrary, for property tests.

use nodewise_profile::{
    Access, CounterUse, Coverage, FirstTouch, Frame, Meta, Migration, Object, ObjectId, ObjectKind, Observer,
    PageNumber, Profile, Region, RegionId, RegionKind, Sampling, Schedule, Site, SiteId, Slice, SliceId,
    TakenPart, Thread, ThreadId,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A profile and the rows of each of its slices.
pub type Recording = (Profile, Vec<Vec<Access>>);

const TABLES: u32 = 5;

fn frame() -> impl Strategy<Value = Frame> {
    ("[a-zé<: ]{1,9}", "[a-z/.]{0,9}", any::<u32>()).prop_map(|(function, file, line)| Frame {
        function,
        file,
        line,
    })
}

fn object() -> impl Strategy<Value = Object> {
    let parts = vec((0..TABLES, any::<u64>()), 0..3);
    let ids = (0..TABLES, 0..TABLES, any::<u32>());
    (
        "\\PC{0,8}",
        0..ObjectKind::ALL.len(),
        ids,
        0..1u64 << 60,
        0..1u64 << 45,
        parts,
    )
        .prop_map(
            |(name, kind, (site, thread, sequence), first_page, pages, parts)| Object {
                kind: ObjectKind::ALL[kind],
                name,
                site: SiteId(site),
                thread: ThreadId(thread),
                sequence,
                first_page: PageNumber(first_page),
                pages,
                bytes: pages << 3,
                repeats: sequence / 3,
                parts: parts.into_iter().map(|(s, b)| (SiteId(s), b)).collect(),
            },
        )
}

fn thread() -> impl Strategy<Value = Thread> {
    (
        any::<u16>(),
        any::<u32>(),
        proptest::option::of(0..1u32 << 16),
        frame(),
        any::<u64>(),
        any::<Option<u16>>(),
    )
        .prop_map(|(process, tid, openmp, start, cpu_ns, node)| Thread {
            process,
            tid,
            openmp,
            start,
            cpu_ns,
            node,
        })
}

fn region() -> impl Strategy<Value = Region> {
    (any::<bool>(), frame(), 0u32..8).prop_map(|(openmp, frame, schedule)| Region {
        schedule: Schedule::from_number(schedule),
        kind: if openmp {
            RegionKind::OpenMp
        } else {
            RegionKind::Serial
        },
        frame,
    })
}

fn meta() -> impl Strategy<Value = Meta> {
    let share = (0..=64u32).prop_map(|n| f64::from(n) / 64.0);
    let coverage = (any::<u64>(), share.clone(), share, "\\PC{0,5}");
    (
        vec("\\PC{0,8}", 0..3),
        any::<[u64; 2]>(),
        any::<Option<u64>>(),
        any::<Option<i32>>(),
        coverage,
    )
        .prop_map(
            |(command, [started_at, wall_ns], plain_wall_ns, exit_status, (samples, own, missed, module))| {
                Meta {
                    observer: Observer::Faults,
                    command,
                    started_at,
                    wall_ns,
                    cpu_ns: plain_wall_ns,
                    plain_wall_ns,
                    plain_cpu_ns: plain_wall_ns.map(|ns| ns / 2),
                    plain_program: exit_status.map(|_| "./a plain".into()),
                    loop_schedule: exit_status.map(|_| "static,8".into()),
                    slicing: "accesses:7".into(),
                    host_cpus: 3,
                    host_nodes: 2,
                    host_model: "a \"model\"".into(),
                    others: plain_wall_ns.map(|_| own / 2.0),
                    coverage: Coverage {
                        samples,
                        instrumented: own,
                        missed,
                        counting: plain_wall_ns.map(|_| own / 2.0),
                        missed_modules: vec![(module, missed)],
                        ..Coverage::default()
                    },
                    truncated: None,
                    exit_status,
                    sampling: exit_status.map(|_| Sampling {
                        samples,
                        period: 7,
                        cost: own,
                        writes: true,
                        ..Sampling::default()
                    }),
                    held_back: vec![("budget".into(), started_at)],
                    kernel_migrations: plain_wall_ns,
                    version: "1".into(),
                }
            },
        )
}

fn row() -> impl Strategy<Value = Access> {
    let ids = (0..TABLES, 0..TABLES, 0..TABLES);
    (
        ids,
        0..1u64 << 20,
        1..9u32,
        0..1u64 << 40,
        0..1u64 << 40,
        0..1u64 << 40,
    )
        .prop_map(
            |((region, object, thread), page, len, reads, writes, lines)| Access {
                slice: SliceId(0),
                region: RegionId(region),
                object: ObjectId(object),
                thread: ThreadId(thread),
                page: PageNumber(page),
                len,
                reads,
                writes,
                lines,
            },
        )
}

fn touch() -> impl Strategy<Value = FirstTouch> {
    (1..9u32, 0..TABLES, 0..TABLES, 0..TABLES, 0..TABLES).prop_map(|(len, object, thread, site, region)| {
        FirstTouch {
            page: PageNumber(0),
            len,
            object: ObjectId(object),
            thread: ThreadId(thread),
            site: SiteId(site),
            slice: SliceId(0),
            region: RegionId(region),
        }
    })
}

fn migration() -> impl Strategy<Value = Migration> {
    let counts = (0..1u32 << 20, any::<Option<u16>>(), 0..1u32 << 20);
    (
        0..1u64 << 40,
        0..1u64 << 40,
        1..9u32,
        0..TABLES,
        0..1023u16,
        "\\PC{1,8}",
        counts,
    )
        .prop_map(
            |(time_ns, page, len, object, from, by, (to_count, home_count, count_threshold))| Migration {
                time_ns,
                slice: SliceId(0),
                page: PageNumber(page),
                len,
                object: ObjectId(object),
                from,
                to: from + 1,
                by,
                to_count: f64::from(to_count) / 8.0,
                home_count: home_count.map(f64::from),
                count_threshold: f64::from(count_threshold) / 3.0,
            },
        )
}

fn taken() -> impl Strategy<Value = TakenPart> {
    let numbers = (0u32..3, option::of(0..TABLES), 0..TABLES, any::<u32>());
    numbers.prop_map(|(run, part, by, accesses)| TakenPart {
        run,
        part,
        by,
        accesses: accesses.into(),
    })
}

fn ticket() -> impl Strategy<Value = CounterUse> {
    (0..TABLES, 0..TABLES, any::<bool>()).prop_map(|(site, thread, again)| CounterUse {
        site: SiteId(site),
        thread: ThreadId(thread),
        again,
    })
}

pub fn recording() -> impl Strategy<Value = Recording> {
    let n = TABLES as usize;
    let sites = vec(vec(frame(), 0..4).prop_map(|frames| Site { frames }), n);
    let tables = (
        vec(object(), n),
        vec(thread(), n),
        vec(region(), n),
        sites,
        vec(touch(), 0..9),
        vec(migration(), 0..9),
        vec(taken(), 0..9),
        vec(ticket(), 0..9),
    );
    (meta(), tables, vec(vec(row(), 0..20), 1..6)).prop_map(
        |(
            meta,
            (objects, threads, regions, sites, mut first_touches, mut migrations, mut taken, mut tickets),
            mut slices,
        )| {
            let mut page = PageNumber(3);
            for t in &mut first_touches {
                t.page = page;
                page = page.offset(u64::from(t.len) + 1);
            }
            migrations.sort_by_key(|m| m.time_ns);
            let key = |t: &TakenPart| (t.run, t.part, t.by);
            taken.sort_by_key(key);
            taken.dedup_by_key(|t| key(t));
            tickets.sort_unstable();
            tickets.dedup_by_key(|t| (t.site, t.thread));
            for rows in &mut slices {
                rows.sort_by_key(|a| (a.page, a.thread, a.region));
            }
            let times = (0..slices.len() as u64).map(|i| Slice {
                start_ns: i * 10,
                end_ns: i * 10 + 9,
            });
            let slices_table = times.collect();
            (
                Profile {
                    order_may_be_the_same: false, // no part of a profile on disk
                    meta,
                    objects,
                    threads,
                    regions,
                    slices: slices_table,
                    sites,
                    first_touches,
                    migrations,
                    taken,
                    tickets,
                },
                slices,
            )
        },
    )
}
