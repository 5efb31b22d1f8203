use super::*;
use crate::checkpoints::SHARE;
use nodewise_profile::{AccessSource, Migration};
use nodewise_store::Reader;

const KEPT_WAITING: Duration = Duration::from_millis(200);

#[test]
fn a_program_sampled_before_it_logs_is_one_program() {
    let folder = std::env::temp_dir().join(format!("nodewise-early-{}", std::process::id()));
    let raw = folder.join("raw");
    let writer = Writer::create(&folder.join("profile"), &Meta::default(), true).unwrap();
    let mut traced = Traced::new(&Host::default(), writer);
    traced.log_below(&raw);
    traced.begin(4_000_000, None, Some(0));
    std::fs::create_dir_all(raw.join("4000000-1")).unwrap();
    traced.find_folders(|_| Some(7), &HashSet::new());
    let ordinals = |t: &Traced| t.processes.values().map(|p| p.image.ordinal).collect::<Vec<_>>();
    assert_eq!(ordinals(&traced), [Some(0)]);
    assert!(traced.processes[&4_000_000].folder.is_some());
    // The next program of the same process is another one.
    std::fs::create_dir_all(raw.join("4000000-2")).unwrap();
    traced.find_folders(|_| Some(1), &HashSet::new());
    assert_eq!(ordinals(&traced), [Some(1)]);
    // And so is who began another one since it was sampled.
    traced.begin(5_000_000, None, Some(2));
    std::fs::create_dir_all(raw.join("5000000-1")).unwrap();
    traced.find_folders(|_| Some(3), &HashSet::from([5_000_000]));
    assert_eq!(ordinals(&traced), [Some(1), Some(3)]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_thread_that_changes_nodes_has_a_row_for_each() {
    let mut tables = Tables::default();
    let mut process = TracedProcess {
        image: Image::new(PathBuf::new(), 1),
        folder: None,
        threads: HashMap::new(),
        mapped: None,
    };
    let seen = [
        (7, Some(1)),
        (8, Some(0)),
        (7, Some(0)),
        (7, None),
        (7, Some(1)),
        (9, None),
        (9, Some(1)),
    ];
    let rows = seen.map(|(tid, node)| process.thread(&mut tables, tid, node, Some("worker")).0);
    assert_eq!(rows, [0, 1, 2, 0, 0, 3, 4]);
    tables.profile.threads[0].openmp = Some(3);
    tables.profile.threads[0].cpu_ns = 50;
    process.complete_further_rows(&mut tables);
    let row = |i: usize| {
        let t = &tables.profile.threads[i];
        (t.tid, t.node, t.openmp, t.cpu_ns, t.start.function.as_str())
    };
    assert_eq!(row(0), (7, Some(1), Some(3), 50, "worker"));
    assert_eq!(row(2), (7, Some(0), Some(3), 0, "worker"));
    assert_eq!((row(3).1, row(4).1), (None, Some(1)));
}

#[test]
fn who_is_killed_leaves_what_was_cut_and_moved_by_then() {
    let folder = std::env::temp_dir().join(format!("nodewise-traced-{}", std::process::id()));
    let meta = Meta::default();
    let mut traced = Traced::new(&Host::default(), Writer::create(&folder, &meta, true).unwrap());
    let sampled = |traced: &mut Traced, page: u64| {
        let thread = match traced.tables.profile.threads.len() {
            0 => traced.tables.thread(0, Frame::default()),
            _ => ThreadId(0),
        };
        traced.first_touch(PageNumber(page), ObjectId(0), thread);
        traced.counts.entry((PageNumber(page), thread)).or_default().reads = 1;
    };
    let moved = |time_ns, slice, page| Migration {
        time_ns,
        slice: SliceId(slice),
        page: PageNumber(page),
        len: 1,
        to: 1,
        by: "dominant".to_owned(),
        ..Migration::default()
    };
    sampled(&mut traced, 9);
    sampled(&mut traced, 7);
    traced.cut(1000).unwrap();
    traced.profile_mut().migrations.push(moved(1000, 0, 9));
    let describe = |meta: &mut Meta| {
        std::thread::sleep(KEPT_WAITING);
        meta.wall_ns = 1000;
    };
    traced.checkpoint(describe).unwrap();
    let pause = traced.checkpoints.due.saturating_sub(clock::monotonic());
    assert!(pause < KEPT_WAITING * SHARE, "{pause:?}");
    sampled(&mut traced, 8);
    traced.cut(2000).unwrap();
    traced.profile_mut().migrations.push(moved(2000, 1, 7));
    traced.checkpoints.due = Duration::ZERO;
    traced.checkpoint(|meta| meta.wall_ns = 2000).unwrap();
    sampled(&mut traced, 10);
    traced.cut(3000).unwrap();
    drop(traced);
    let reader = Reader::open(&folder).unwrap();
    let (mut rows, profile) = (0, reader.profile());
    reader
        .visit(&mut |batch| rows += batch.iter().map(|a| a.len).sum::<u32>())
        .unwrap();
    assert_eq!((rows, profile.slices.len(), profile.meta.wall_ns), (3, 2, 2000));
    assert!(profile.meta.truncated.is_some());
    assert_eq!(profile.migrations, [moved(1000, 0, 9), moved(2000, 1, 7)]);
    std::fs::remove_dir_all(folder).unwrap();
}
