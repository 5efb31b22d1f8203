//! Property tests of profiles on disk, with arbitrary profiles in real directories.

mod arbitrary;
mod hostile;

use arbitrary::{Recording, recording};
use nodewise_profile::{
    Access, AccessSource, Meta, Migration, Object, ObjectId, PageNumber, Profile, Region, RegionId, Site,
    Slice, SliceId, TakenPart, Thread, ThreadId,
};
use nodewise_store::{Error, ErrorKind, Reader, Writer, latest, set_taken, unused};
use proptest::prelude::*;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own for each case, removed at the end; in memory where there is such a file system, as thousands of
/// profiles are written, each synchronised to the disk several times.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "nodewise-store-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let memory = Path::new("/dev/shm").join(&name);
        let path = match fs::create_dir_all(&memory) {
            Ok(()) => memory,
            Err(_) => std::env::temp_dir().join(&name),
        };
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn profile(&self) -> PathBuf {
        self.0.join("p")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a recording. Bit i of `checkpoints` says whether a checkpoint follows slice i.
fn write(folder: &Path, recording: &Recording, checkpoints: u32, finish: bool) {
    let writer = Writer::create(folder, &recording.0.meta, false).unwrap();
    fill(writer, recording, checkpoints, finish);
}

/// Writes a recording as [`write`] does, in row groups of `group` rows.
fn write_in_groups(folder: &Path, recording: &Recording, checkpoints: u32, finish: bool, group: usize) {
    let writer = Writer::create(folder, &recording.0.meta, false).unwrap();
    let writer = writer.with_group_rows(NonZeroUsize::new(group).unwrap());
    fill(writer, recording, checkpoints, finish);
}

fn fill(mut writer: Writer, (profile, slices): &Recording, checkpoints: u32, finish: bool) {
    for (i, rows) in slices.iter().enumerate() {
        writer.slice(profile.slices[i], rows).unwrap();
        if checkpoints >> i & 1 == 1 {
            let first_touches = profile.first_touches.clone();
            writer
                .checkpoint(&Profile {
                    first_touches,
                    ..profile.clone()
                })
                .unwrap();
        }
    }
    if finish {
        writer.finish(profile).unwrap();
    }
}

fn rows(reader: &Reader) -> Result<Vec<Access>, Error> {
    let mut all = Vec::new();
    reader.visit(&mut |batch| all.extend_from_slice(batch))?;
    Ok(all)
}

/// The rows of the first `n` slices as they are read back.
fn expected(slices: &[Vec<Access>], n: usize) -> Vec<Access> {
    let numbered = slices.iter().take(n).enumerate();
    numbered
        .flat_map(|(i, rows)| {
            rows.iter().map(move |a| Access {
                slice: SliceId(i as u32),
                ..*a
            })
        })
        .collect()
}

/// Sizes of row groups that are small enough for several row groups and files.
fn groups() -> impl Strategy<Value = usize> {
    1..12usize
}

fn manifest(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).unwrap()).unwrap()
}

fn access_files(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = names
        .filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("accesses-"))
        .collect();
    files.sort();
    files
}

/// Reads the whole profile, or returns the error.
fn read_all(folder: &Path) -> Result<(Profile, Vec<Access>), Error> {
    let reader = Reader::open(folder)?;
    let all = rows(&reader)?;
    Ok((reader.into_profile(), all))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read_back(recording in recording(), checkpoints in any::<u32>(), group in groups()) {
        let folder = Folder::new();
        write_in_groups(&folder.profile(), &recording, checkpoints, true, group);
        let (profile, all) = read_all(&folder.profile()).unwrap();
        prop_assert_eq!(&profile, &recording.0);
        prop_assert_eq!(all, expected(&recording.1, usize::MAX));
    }

    #[test]
    fn a_recording_cut_short_is_read_up_to_its_last_checkpoint(
        recording in recording(), last in 0..6u32, before in any::<u32>(), group in groups(),
    ) {
        let folder = Folder::new();
        let n = recording.1.len();
        let last = (last as usize) % n;
        let checkpoints = 1 << last | before & ((1 << last) - 1);
        write_in_groups(&folder.profile(), &recording, checkpoints, false, group);
        let (profile, all) = read_all(&folder.profile()).unwrap();
        prop_assert!(profile.meta.truncated.is_some());
        prop_assert_eq!(&profile.slices[..], &recording.0.slices[..=last]);
        prop_assert_eq!(all, expected(&recording.1, last + 1));
    }

    #[test]
    fn however_often_a_file_of_rows_is_of_a_whole_row_group_unless_the_last(
        recording in recording(), checkpoints in any::<u32>(), group in groups(), finish in any::<bool>(),
    ) {
        let folder = Folder::new();
        let always = if finish { 0 } else { 1 };
        write_in_groups(&folder.profile(), &recording, checkpoints | always, finish, group);
        let manifest = manifest(&folder.profile());
        let files = manifest["accesses"].as_array().unwrap();
        let rows: Vec<u64> = files.iter().map(|f| f["rows"].as_u64().unwrap()).collect();
        let but_the_last = rows.split_last().map_or(&[][..], |(_, before)| before);
        prop_assert!(but_the_last.iter().all(|r| *r >= group as u64), "{:?} in groups of {}", rows, group);
        prop_assert!(!rows.contains(&0), "{:?}", rows);
    }

    #[test]
    fn nothing_of_a_checkpoint_is_left_at_the_end(
        recording in recording(), checkpoints in any::<u32>(), group in groups(),
    ) {
        let folder = Folder::new();
        write_in_groups(&folder.profile(), &recording, checkpoints, true, group);
        let manifest = manifest(&folder.profile());
        let tables = manifest["tables"].as_object().unwrap().values();
        let listed = tables.chain(manifest["accesses"].as_array().unwrap());
        let mut named: Vec<_> = listed.map(|e| e["file"].as_str().unwrap().to_owned()).collect();
        named.push("manifest.json".to_owned());
        named.sort();
        let all = fs::read_dir(folder.profile()).unwrap();
        let mut there: Vec<_> = all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        prop_assert_eq!(there, named);
    }

    #[test]
    fn checkpoints_add_no_files_before_there_is_a_row_group(recording in recording(), checkpoints in any::<u32>()) {
        let (once, often) = (Folder::new(), Folder::new());
        let names = |folder: &Folder| {
            let all = fs::read_dir(folder.profile()).unwrap();
            let mut names: Vec<_> = all.map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        write(&once.profile(), &recording, 0, true);
        write(&often.profile(), &recording, checkpoints, true);
        prop_assert_eq!(names(&often), names(&once));
    }

    #[test]
    fn a_flipped_bit_is_an_error_or_changes_nothing(
        recording in recording(), file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bit in 0..8u8,
    ) {
        let folder = Folder::new();
        write(&folder.profile(), &recording, 1, true);
        let files: Vec<_> = fs::read_dir(folder.profile()).unwrap().map(|e| e.unwrap().path()).collect();
        let victim = &files[file.index(files.len())];
        let mut bytes = fs::read(victim).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(victim, bytes).unwrap();
        match read_all(&folder.profile()) {
            Ok((profile, all)) => {
                prop_assert!(victim.ends_with("manifest.json"), "{}", victim.display());
                prop_assert_eq!(&profile.meta, &recording.0.meta);
                prop_assert_eq!(&profile.slices, &recording.0.slices);
                prop_assert_eq!(profile.objects, recording.0.objects);
                prop_assert_eq!(all, expected(&recording.1, usize::MAX));
            }
            Err(e) => prop_assert!(!e.to_string().contains('\n'), "{}", e),
        }
    }

    #[test]
    fn a_shortened_file_is_refused_unless_it_is_the_last_of_the_accesses(
        recording in recording(), file in any::<prop::sample::Index>(), keep in any::<prop::sample::Index>(),
    ) {
        let folder = Folder::new();
        write(&folder.profile(), &recording, u32::MAX, true);
        let files: Vec<_> = fs::read_dir(folder.profile()).unwrap().map(|e| e.unwrap().path()).collect();
        let victim = &files[file.index(files.len())];
        let last = access_files(&folder.profile()).last() == Some(victim);
        let bytes = fs::read(victim).unwrap();
        fs::write(victim, &bytes[..keep.index(bytes.len() - 1)]).unwrap();
        match read_all(&folder.profile()) {
            Ok((profile, all)) => {
                prop_assert!(last && profile.meta.truncated.is_some(), "{}", victim.display());
                prop_assert_eq!(all, expected(&recording.1, profile.slices.len()));
            }
            Err(e) => {
                let name = victim.file_name().unwrap().to_string_lossy().into_owned();
                prop_assert_eq!(e.kind(), ErrorKind::Damaged);
                prop_assert!(e.to_string().contains(&name), "{} does not name {}", e, name);
            }
        }
    }
}

fn small() -> Recording {
    let rows = (0..40u64)
        .map(|i| Access {
            page: PageNumber(i),
            len: 1,
            reads: i,
            ..Access::default()
        })
        .collect();
    (plainest(), vec![rows])
}

/// A minimal profile, with one of each thing that rows refer to.
fn plainest() -> Profile {
    Profile {
        objects: vec![Object::default()],
        threads: vec![Thread::default()],
        regions: vec![Region::default()],
        sites: vec![Site::default()],
        slices: vec![Slice::default()],
        ..Profile::default()
    }
}

#[test]
fn an_existing_profile_is_replaced_only_by_force_and_anything_else_never() {
    let folder = Folder::new();
    write(&folder.profile(), &small(), 0, true);
    let again = |force| Writer::create(&folder.profile(), &Meta::default(), force).map(|_| ());
    assert_eq!(again(false).unwrap_err().kind(), ErrorKind::Exists);
    assert!(read_all(&folder.profile()).is_ok());
    fs::write(folder.profile().join("thesis.tex"), "years of work").unwrap();
    for force in [false, true] {
        let error = again(force).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert!(
            error.to_string().contains("thesis.tex") && !error.to_string().contains("--force"),
            "{error}"
        );
    }
    fs::remove_file(folder.profile().join("thesis.tex")).unwrap();
    again(true).unwrap();
    assert_eq!(
        Reader::open(&folder.profile()).unwrap_err().kind(),
        ErrorKind::Missing
    );
}

#[test]
fn a_profile_behind_a_link_is_replaced_where_it_lies() {
    let folder = Folder::new();
    write(&folder.profile(), &small(), 0, true);
    let link = folder.profile().with_extension("link");
    std::os::unix::fs::symlink(folder.profile(), &link).unwrap();
    write_over(&link);
    assert!(link.is_symlink());
    assert!(read_all(&folder.profile()).is_ok());
    fs::remove_file(link).unwrap();
}

fn write_over(folder: &Path) {
    let (profile, slices) = small();
    let mut writer = Writer::create(folder, &profile.meta, true).unwrap();
    for (slice, rows) in profile.slices.iter().zip(&slices) {
        writer.slice(*slice, rows).unwrap();
    }
    writer.finish(&profile).unwrap();
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let folder = Folder::new();
    write(&folder.profile(), &small(), 0, true);
    let manifest = folder.profile().join("manifest.json");
    let text = fs::read_to_string(&manifest)
        .unwrap()
        .replace("\"format\": 1", "\"format\": 99");
    fs::write(&manifest, text).unwrap();
    let error = Reader::open(&folder.profile()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Newer);
    assert!(
        error.to_string().contains("99") && error.to_string().contains("manifest.json"),
        "{error}"
    );
}

#[test]
fn rows_that_name_nothing_are_refused() {
    let (profile, slices) = small();
    let spoil: [fn(&mut Access); 6] = [
        |a| a.thread = ThreadId(1),
        |a| a.object = ObjectId(1),
        |a| a.region = RegionId(1),
        |a| a.len = 0,
        |a| a.page = PageNumber(u64::MAX),
        |a| a.writes = u64::MAX,
    ];
    for (i, spoil) in spoil.into_iter().enumerate() {
        let folder = Folder::new();
        let mut slices = slices.clone();
        spoil(slices[0].last_mut().unwrap());
        write(&folder.profile(), &(profile.clone(), slices), 0, true);
        let reader = Reader::open(&folder.profile()).unwrap();
        assert_eq!(rows(&reader).unwrap_err().kind(), ErrorKind::Damaged, "case {i}");
    }
}

#[test]
fn moves_that_cannot_have_happened_are_refused() {
    let whole = Migration {
        len: 1,
        to: 1,
        by: Migration::KERNEL.into(),
        ..Migration::default()
    };
    let spoil: [fn(&mut Migration); 9] = [
        |m| m.slice = SliceId(1),
        |m| m.object = ObjectId(1),
        |m| m.time_ns = 0,
        |m| m.len = 0,
        |m| m.page = PageNumber(u64::MAX),
        |m| m.to = m.from,
        |m| m.to = u16::MAX,
        |m| m.count_threshold = f64::NAN,
        |m| m.by.clear(),
    ];
    let write = |spoil: fn(&mut Migration)| {
        let folder = Folder::new();
        let (mut profile, _) = small();
        let mut second = Migration {
            time_ns: 1,
            ..whole.clone()
        };
        spoil(&mut second);
        profile.migrations = vec![
            Migration {
                time_ns: 1,
                ..whole.clone()
            },
            second,
        ];
        let mut writer = Writer::create(&folder.profile(), &profile.meta, false).unwrap();
        writer.slice(profile.slices[0], &[]).unwrap();
        writer.finish(&profile)
    };
    write(|_| ()).unwrap();
    for (i, spoil) in spoil.into_iter().enumerate() {
        let error = write(spoil).unwrap_err().to_string();
        assert!(error.contains("migration 1"), "case {i}: {error}");
    }
}

#[test]
fn a_profile_from_before_there_were_moves_or_other_runs_has_none() {
    let folder = Folder::new();
    write(&folder.profile(), &small(), 0, true);
    let manifest = folder.profile().join("manifest.json");
    let mut value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    let object = value.as_object_mut().unwrap();
    for key in [
        "crc32",
        "cpu_ns",
        "others",
        "sampling",
        "held_back",
        "kernel_migrations",
    ] {
        object.remove(key).unwrap();
    }
    for table in ["migrations", "taken", "tickets"] {
        let tables = object["tables"].as_object_mut().unwrap();
        tables.remove(table).unwrap();
        fs::remove_file(folder.profile().join(format!("{table}.parquet"))).unwrap();
    }
    fs::write(&manifest, value.to_string()).unwrap();
    let (profile, _) = read_all(&folder.profile()).unwrap();
    assert!(profile.migrations.is_empty() && profile.meta.kernel_migrations.is_none());
    assert!(profile.meta.cpu_ns.is_none() && profile.meta.others.is_none() && profile.taken.is_empty());
}

#[test]
fn what_other_runs_have_shown_is_added_to_a_profile_and_replaced() {
    let folder = Folder::new();
    write(&folder.profile(), &small(), 0, true);
    let taken = |by| TakenPart {
        run: 1,
        part: Some(0),
        by,
        accesses: 9,
    };
    for rows in [vec![taken(1)], vec![taken(0), taken(1)], vec![]] {
        set_taken(&folder.profile(), &rows).unwrap();
        assert_eq!(read_all(&folder.profile()).unwrap().0.taken, rows);
        let files = fs::read_dir(folder.profile()).unwrap().flatten();
        let kept = files.filter(|f| f.file_name().to_string_lossy().starts_with("taken"));
        assert_eq!(kept.count(), 1, "the one before is removed");
    }
    let refused = set_taken(&folder.profile(), &[taken(1), taken(1)]).unwrap_err();
    assert!(refused.to_string().contains("there twice"), "{refused}");
}

#[test]
fn a_long_recording_is_spread_over_files_and_a_lost_tail_costs_whole_slices_only() {
    let folder = Folder::new();
    let (mut profile, _) = small();
    let row = |page| Access {
        page: PageNumber(page),
        len: 1,
        reads: 1,
        ..Access::default()
    };
    let slices: Vec<Vec<Access>> = (0..5).map(|_| (0..600_000).map(row).collect()).collect();
    profile.slices = vec![Slice::default(); 5];
    write(&folder.profile(), &(profile, slices), 0, true);
    let files = access_files(&folder.profile());
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(read_all(&folder.profile()).unwrap().1.len(), 3_000_000);

    fs::remove_file(&files[1]).unwrap();
    let (profile, all) = read_all(&folder.profile()).unwrap();
    let whole = profile.slices.len();
    assert!((1..5).contains(&whole) && profile.meta.truncated.is_some());
    assert_eq!(all.len(), whole * 600_000);
    fs::remove_file(&files[0]).unwrap();
    assert_eq!(
        Reader::open(&folder.profile()).unwrap_err().kind(),
        ErrorKind::Damaged
    );
}

#[test]
fn the_latest_profile_is_the_one_written_last() {
    let folder = Folder::new();
    assert_eq!(latest(&folder.0).unwrap_err().kind(), ErrorKind::Missing);
    let first = unused(&folder.0);
    write(&first, &small(), 0, true);
    let second = unused(&folder.0);
    assert_ne!(first, second);
    std::thread::sleep(std::time::Duration::from_millis(20));
    write(&second, &small(), 0, true);
    assert_eq!(latest(&folder.0).unwrap(), second);
    assert_eq!(latest(&second).unwrap(), second);
}

#[test]
fn what_is_no_profile_is_said_to_be_none() {
    let folder = Folder::new();
    for path in [folder.0.clone(), folder.0.join("absent")] {
        assert_eq!(Reader::open(&path).unwrap_err().kind(), ErrorKind::Missing);
    }
}
