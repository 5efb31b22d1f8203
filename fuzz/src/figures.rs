//! Everything that is made of a profile: histogram, mappings, predictions, the report, the page's documents.

use crate::folder::own;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use nodewise_advise::{Matched, ReportOptions, advise};
use nodewise_analysis::{Histogram, Samples, Timeline, Usage, first_touch_nodes, read};
use nodewise_machine::Machine;
use nodewise_page::{Documents, FilmBuilder, Placement, SessionDocuments, View};
use nodewise_placement::policies::Nothing;
use nodewise_placement::{Context, Mapping, page_policies, thread_policy};
use nodewise_profile::{
    Access, AccessSource, FirstTouch, Migration, Object, ObjectId, ObjectKind, PageNumber, Profile, Region,
    RegionId, RegionKind, Site, SiteId, Slice, SliceId, TakenPart, Thread, ThreadId,
};
use nodewise_report::{Findings, Report};
use nodewise_simulation::{Parameters, simulate_moving};
use nodewise_store::{Reader, Writer};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::named("nehalem-2s").unwrap());
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| own("figures").join("p"));

/// Tables and rows of any numbers, written as a recorder would and read back.
pub fn figures(data: &[u8]) {
    let Ok((profile, slices)) = recording(&mut Unstructured::new(data)) else {
        return;
    };
    let _ = std::fs::remove_dir_all(&*FOLDER);
    let mut writer = Writer::create(&FOLDER, &profile.meta, true).unwrap();
    for (slice, rows) in profile.slices.iter().zip(&slices) {
        writer.slice(*slice, rows).unwrap();
    }
    if writer.finish(&profile).is_err() {
        return;
    }
    let reader = Reader::open(&FOLDER).unwrap();
    if reader.visit(&mut |_| ()).is_ok() {
        judge(&reader, reader.profile());
    }
}

/// A number that is mostly small, and now and then any.
fn number(u: &mut Unstructured<'_>, most: u64) -> Result<u64> {
    match u.int_in_range(0..=15u8)? {
        0 => u.arbitrary(),
        _ => u.int_in_range(0..=most),
    }
}

fn small(u: &mut Unstructured<'_>, most: u64) -> Result<u32> {
    Ok(number(u, most)? as u32)
}

fn many<T>(
    u: &mut Unstructured<'_>,
    most: u32,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(1..=most)?;
    (0..count).map(|_| one(u)).collect()
}

fn recording(u: &mut Unstructured<'_>) -> Result<(Profile, Vec<Vec<Access>>)> {
    let mut profile = Profile {
        sites: vec![Site::default()],
        ..Profile::default()
    };
    profile.meta.wall_ns = number(u, 1 << 30)?;
    profile.meta.host_nodes = small(u, 4)?;
    profile.threads = many(u, 6, |u| {
        Ok(Thread {
            process: small(u, 1)? as u16,
            tid: small(u, 4)?,
            openmp: u.arbitrary::<bool>()?.then(|| small(u, 6)).transpose()?,
            cpu_ns: number(u, 1 << 30)?,
            node: u
                .arbitrary::<bool>()?
                .then(|| small(u, 4))
                .transpose()?
                .map(|n| n as u16),
            ..Thread::default()
        })
    })?;
    profile.objects = many(u, 5, |u| {
        Ok(Object {
            kind: *u.choose(&ObjectKind::ALL)?,
            name: if u.arbitrary()? { "a".into() } else { String::new() },
            sequence: small(u, 3)?,
            first_page: PageNumber(number(u, 64)?),
            pages: number(u, 64)?,
            bytes: number(u, 1 << 18)?,
            ..Object::default()
        })
    })?;
    profile.regions = many(u, 3, |u| {
        let kind = if u.arbitrary()? {
            RegionKind::OpenMp
        } else {
            RegionKind::Serial
        };
        Ok(Region {
            kind,
            ..Region::default()
        })
    })?;
    profile.slices = many(u, 4, |u| {
        let start_ns = number(u, 1 << 20)?;
        Ok(Slice {
            start_ns,
            end_ns: start_ns.saturating_add(number(u, 1 << 20)?),
        })
    })?;
    profile.slices.sort_by_key(|s| s.start_ns);
    profile.first_touches = touches(u)?;
    profile.migrations = migrations(u)?;
    profile.taken = taken(u)?;
    let slices = profile.slices.len();
    let rows = (0..slices).map(|_| many(u, 12, row)).collect::<Result<_>>()?;
    Ok((profile, rows))
}

fn touches(u: &mut Unstructured<'_>) -> Result<Vec<FirstTouch>> {
    let mut touches = many(u, 6, |u| {
        Ok(FirstTouch {
            page: PageNumber(number(u, 64)?),
            len: small(u, 8)?,
            object: ObjectId(small(u, 2)?),
            thread: ThreadId(small(u, 2)?),
            site: SiteId(0),
            slice: SliceId(0),
            region: RegionId(0),
        })
    })?;
    touches.sort_by_key(|t| t.page);
    Ok(touches)
}

fn taken(u: &mut Unstructured<'_>) -> Result<Vec<TakenPart>> {
    let mut taken = many(u, 6, |u| {
        Ok(TakenPart {
            run: small(u, 2)?,
            part: u.arbitrary::<bool>()?.then_some(small(u, 3)?),
            by: small(u, 3)?,
            accesses: number(u, 64)?,
        })
    })?;
    taken.sort();
    taken.dedup_by_key(|t| (t.run, t.part, t.by));
    Ok(taken)
}

fn migrations(u: &mut Unstructured<'_>) -> Result<Vec<Migration>> {
    let mut moves = many(u, 4, |u| {
        Ok(Migration {
            time_ns: number(u, 1 << 20)?,
            page: PageNumber(number(u, 64)?),
            len: small(u, 8)?,
            from: small(u, 4)? as u16,
            to: small(u, 4)? as u16,
            by: "out-w".into(),
            to_count: f64::from(small(u, 99)?),
            home_count: u.arbitrary::<bool>()?.then_some(1.0),
            ..Migration::default()
        })
    })?;
    moves.sort_by_key(|m| m.time_ns);
    Ok(moves)
}

fn row(u: &mut Unstructured<'_>) -> Result<Access> {
    Ok(Access {
        region: RegionId(small(u, 1)?),
        object: ObjectId(small(u, 2)?),
        thread: ThreadId(small(u, 2)?),
        page: PageNumber(number(u, 64)?),
        len: small(u, 16)?,
        reads: number(u, 1000)?,
        writes: number(u, 1000)?,
        lines: number(u, 64)?,
        ..Access::default()
    })
}

/// What `report`, `simulate` and `serve` make of a profile.
pub fn judge<S: AccessSource>(source: &S, profile: &Profile) {
    let shift = if profile.meta.host_nodes % 2 == 0 { 0 } else { 9 };
    let histogram = Histogram::build(source, profile.threads.len(), shift).unwrap();
    // Large ones are slow, not wrong: each input is to take a moment.
    if histogram.is_empty() || histogram.entries.len() > 1 << 16 || profile.threads.len() > 64 {
        return;
    }
    let (machine, nodes) = (&*MACHINE, MACHINE.node_count());
    let affinity = thread_policy("auto", profile, &histogram, machine, &Nothing)
        .or_else(|_| thread_policy("compact", profile, &histogram, machine, &Nothing))
        .unwrap();
    let context = Context {
        profile,
        histogram: &histogram,
        affinity: &affinity,
        machine,
    };
    let policies = page_policies("all", machine, &Nothing).unwrap();
    let mut mappings: Vec<Mapping> = policies
        .iter()
        .filter_map(|p| p.try_place(&context).ok())
        .collect();
    mappings.retain(|m| m.policy != "first-touch");
    let baseline = first_touch_nodes(profile, &histogram, &affinity, nodes);
    mappings.insert(
        0,
        Mapping {
            policy: "first-touch".into(),
            nodes: baseline,
        },
    );
    let simulation =
        simulate_moving(&context, &mappings, Vec::new(), source, &Parameters::default()).unwrap();
    let usage = Usage::of(source, profile, &histogram).unwrap();
    let matched = Matched::predict(&context, &usage, &simulation, &mappings, source).unwrap();
    let report_options = ReportOptions {
        profile: "p".into(),
        machine: "nehalem-2s".into(),
        plain: None,
        map: "app.map".into(),
    };
    let advice = advise(
        &context,
        &simulation,
        &mappings[0],
        &usage,
        matched.as_ref(),
        &report_options,
        Samples::of(source, profile, &histogram, &affinity, nodes).unwrap(),
    );
    let timeline = Timeline::of(source, profile, &histogram, &affinity, &mappings[0].nodes, nodes).unwrap();
    let report = Report::new(&Findings {
        context: &context,
        mappings: &mappings,
        simulation: &simulation,
        moving: None,
        copies: &[],
        advice: &advice,
        timeline: &timeline,
    });
    assert!(serde_json::to_string(&report).is_ok());
    let mut film = FilmBuilder::new(&histogram, &affinity, &mappings[0].nodes, nodes, &profile.slices);
    read(source, &mut [&mut film]).unwrap();
    let placed = || Placement {
        affinity: affinity.clone(),
        mapping: mappings[0].clone(),
    };
    let findings = nodewise_page::Findings {
        folder: "p".into(),
        profile,
        machine,
        simulation: &simulation,
        histogram: histogram.clone(),
        affinity: affinity.clone(),
        mappings: mappings.clone(),
        report,
        objects: advice.objects.iter().map(|o| o.blame.object).collect(),
        film: film.finish(),
        placements: nodewise_page::Placements {
            in_order: None,
            before: placed(),
            after: placed(),
        },
    };
    let view = View::new(findings);
    let (levels, tiles) = (view.coarsest(), view.tiles(0));
    let documents = SessionDocuments::new(vec![Arc::new(view)], false, 1, None);
    assert!(tiles > 0 && documents.document("session.json").is_some());
    let _ = (levels, nodewise_page::file::write(&documents));
}
