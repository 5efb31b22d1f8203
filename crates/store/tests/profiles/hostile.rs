//! Small profiles that claim to contain very much: each is refused at once, with a one-line error.

use crate::{Folder, manifest, plainest, read_all};
use nodewise_profile::{Access, AccessSource, FirstTouch, PageNumber, Profile, Slice, Thread, ThreadId};
use nodewise_store::{ErrorKind, Reader, Writer};
use parquet::basic::Repetition;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A profile of one thread, one object that has no pages, and these rows.
fn profile(folder: &Path, rows: &[Access]) {
    write(folder, &plainest(), rows);
}

/// The minimal profile, with an object of 2³⁴ pages.
fn spacious() -> Profile {
    let mut profile = plainest();
    profile.objects[0].pages = 1 << 34;
    profile
}

fn write(folder: &Path, profile: &Profile, rows: &[Access]) {
    let mut writer = Writer::create(folder, &profile.meta, false).unwrap();
    writer.slice(Slice::default(), rows).unwrap();
    writer.finish(profile).unwrap();
}

/// Updates the manifest with the size and the checksum of a replaced table.
fn signed(folder: &Path, table: &str, rows: u64) {
    let mut manifest = manifest(folder);
    let entry = match manifest["tables"].get(table) {
        Some(_) => &mut manifest["tables"][table],
        None => &mut manifest["accesses"][0],
    };
    let bytes = fs::read(folder.join(entry["file"].as_str().unwrap())).unwrap();
    entry["rows"] = json!(rows);
    entry["bytes"] = json!(bytes.len());
    entry["crc32"] = json!(crc32fast::hash(&bytes));
    rewrite(folder, manifest);
}

fn rewrite(folder: &Path, mut manifest: Value) {
    manifest.as_object_mut().unwrap().remove("crc32");
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
}

/// Writes a table of `rows` rows. Each column repeats one value, except that the first may count the rows.
fn table(path: &Path, columns: &[(&str, u32)], rows: usize) {
    let kind = |name: &str| match name {
        "kind" | "name" | "function" | "file" => "binary {} (UTF8)",
        "cpu_ns" | "start_ns" | "end_ns" => "int64 {} (INTEGER(64,false))",
        _ => "int32 {} (INTEGER(32,false))",
    };
    let field = |name: &str| format!("required {};", kind(name).replace("{}", name));
    let fields: String = columns.iter().map(|(name, _)| field(name)).collect();
    let schema: Type = parse_message_type(&format!("message nodewise {{ {fields} }}")).unwrap();
    let schema =
        Type::group_type_builder("nodewise").with_fields(schema.get_fields().iter().map(optional).collect());
    let file = fs::File::create(path).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema.build().unwrap()), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (place, (name, value)) in columns.iter().enumerate() {
        let mut column = group.next_column().unwrap().unwrap();
        let numbers = (0..rows).map(|i| if place == 0 { i as u32 } else { *value });
        let levels = vec![1; rows];
        let levels = matches!(*name, "openmp" | "node").then_some(levels.as_slice());
        match kind(name).as_bytes()[3] {
            b'3' => {
                let values: Vec<i32> = numbers.map(u32::cast_signed).collect();
                column.typed::<Int32Type>().write_batch(&values, levels, None)
            }
            b'6' => column
                .typed::<Int64Type>()
                .write_batch(&vec![7; rows], None, None),
            _ => {
                let text = ByteArray::from("x".repeat(*value as usize).as_str());
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&vec![text; rows], None, None)
            }
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// The columns that may be null.
fn optional(field: &Arc<Type>) -> Arc<Type> {
    let name = field.name();
    if !matches!(name, "openmp" | "node") {
        return Arc::clone(field);
    }
    let nullable = Type::primitive_type_builder(name, field.get_physical_type())
        .with_converted_type(field.get_basic_info().converted_type())
        .with_repetition(Repetition::OPTIONAL);
    Arc::new(nullable.build().unwrap())
}

fn threads(openmp: u32) -> [(&'static str, u32); 9] {
    let (words, numbers) = (
        [("function", 4), ("file", 4)],
        [("line", 1), ("cpu_ns", 7), ("node", 0)],
    );
    let [function, file] = words;
    let [line, cpu, node] = numbers;
    [
        ("thread", 0),
        ("process", 0),
        ("tid", 1),
        ("openmp", openmp),
        function,
        file,
        line,
        cpu,
        node,
    ]
}

/// The one-line error, of kind [`ErrorKind::Damaged`], of reading the profile.
fn refusal(folder: &Path) -> String {
    let error = read_all(folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    let line = error.to_string();
    assert!(!line.contains('\n') && line.len() < 500, "{line}");
    line
}

fn row(len: u32) -> Access {
    Access {
        len,
        reads: 1,
        lines: 1,
        ..Access::default()
    }
}

#[test]
fn runs_beyond_the_memory_there_is() {
    let folder = Folder::new();
    let mut rows = vec![row(1 << 30); 16];
    for (i, row) in rows.iter_mut().enumerate() {
        row.page = PageNumber((i as u64) << 30);
    }
    write(&folder.profile(), &spacious(), &rows);
    assert!(refusal(&folder.profile()).contains("its pages and threads take"));
}

#[test]
fn the_same_run_in_ever_new_slices() {
    let folder = Folder::new();
    let profile = spacious();
    let mut writer = Writer::create(&folder.profile(), &profile.meta, false).unwrap();
    for _ in 0..=1 << 18 {
        writer.slice(Slice::default(), &[row(1 << 22)]).unwrap();
    }
    writer.finish(&profile).unwrap();
    assert!(refusal(&folder.profile()).contains("record fewer slices"));
}

#[test]
fn a_run_as_large_as_its_object_is_read() {
    let folder = Folder::new();
    write(&folder.profile(), &spacious(), &[row(1 << 22)]);
    assert_eq!(read_all(&folder.profile()).unwrap().1.len(), 1);
}

#[test]
fn runs_beyond_their_object_and_what_was_touched_first() {
    for length in [1 << 22, 1 << 25, 1 << 26] {
        let (folder, mut told) = (Folder::new(), plainest());
        profile(&folder.profile(), &[row(length)]);
        assert!(refusal(&folder.profile()).contains("in no object and that nothing touched first"));
        // The visitor receives no rows before the error.
        let mut shown = 0;
        let reader = Reader::open(&folder.profile()).unwrap();
        assert!(reader.visit(&mut |rows| shown += rows.len()).is_err());
        assert_eq!(shown, 0);
        // With first touches of the same pages the profile is read, if there is enough memory.
        told.first_touches = vec![FirstTouch {
            len: length,
            ..FirstTouch::default()
        }];
        fs::remove_dir_all(folder.profile()).unwrap();
        write(&folder.profile(), &told, &[row(length)]);
        if length <= 1 << 22 {
            assert_eq!(read_all(&folder.profile()).unwrap().1.len(), 1);
        }
    }
}

#[test]
fn ten_million_pages_of_64_threads_are_a_recording() {
    let folder = Folder::new();
    let mut told = spacious();
    told.threads = vec![Thread::default(); 64];
    let shared: Vec<Access> = (0..64)
        .map(|thread| Access {
            thread: ThreadId(thread),
            ..row(10_000_000)
        })
        .collect();
    write(&folder.profile(), &told, &shared);
    match read_all(&folder.profile()) {
        Ok((_, rows)) => assert_eq!(rows.len(), 64),
        // If there is too little memory, the error says so.
        Err(error) => assert!(
            error.to_string().contains("read it where there is more memory"),
            "{error}"
        ),
    }
}

#[test]
fn rows_of_slices_that_there_never_were() {
    for truncated in [None, Some("the recorder was interrupted".to_owned())] {
        let folder = Folder::new();
        let mut told = plainest();
        told.meta.truncated = truncated;
        let mut writer = Writer::create(&folder.profile(), &told.meta, false).unwrap();
        for _ in 0..8 {
            writer.slice(Slice::default(), &[row(1)]).unwrap();
        }
        writer.finish(&told).unwrap();
        assert_eq!(read_all(&folder.profile()).unwrap().1.len(), 8);
        let one = [("slice", 0), ("start_ns", 7), ("end_ns", 7)];
        table(&folder.profile().join("slices.parquet"), &one, 1);
        signed(&folder.profile(), "slices", 1);
        assert!(refusal(&folder.profile()).contains("a row names a slice"));
    }
}

#[test]
fn a_thread_with_the_largest_number() {
    let folder = Folder::new();
    profile(&folder.profile(), &[row(1)]);
    table(&folder.profile().join("threads.parquet"), &threads(u32::MAX), 1);
    signed(&folder.profile(), "threads", 1);
    assert!(refusal(&folder.profile()).contains("its threads are numbered up to 4294967296"));
    // The same profile with a permitted number is read.
    table(&folder.profile().join("threads.parquet"), &threads(4095), 1);
    signed(&folder.profile(), "threads", 1);
    assert_eq!(
        read_all(&folder.profile()).unwrap().0.threads[0].openmp,
        Some(4095)
    );
}

#[test]
fn text_that_unpacks_to_more_than_its_file_can_hold() {
    let folder = Folder::new();
    profile(&folder.profile(), &[row(1)]);
    let mut columns = threads(0);
    columns[4].1 = 50_000;
    let path = folder.profile().join("threads.parquet");
    table(&path, &columns, 20_000);
    assert!(
        fs::metadata(&path).unwrap().len() < 1 << 20,
        "it packs 1 GB of text"
    );
    signed(&folder.profile(), "threads", 20_000);
    let said = refusal(&folder.profile());
    assert!(said.contains("more text than its file can hold"), "{said}");
}

#[test]
fn links_to_what_has_no_end_and_pipes_without_writers() {
    let folder = Folder::new();
    profile(&folder.profile(), &[row(1)]);
    for name in ["objects.parquet", "accesses-0000.parquet"] {
        let (file, kept) = (folder.profile().join(name), folder.profile().join("kept"));
        fs::rename(&file, &kept).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(refusal(&folder.profile()).contains(name));
        fs::remove_file(&file).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&file)
                .status()
                .unwrap()
                .success()
        );
        assert!(refusal(&folder.profile()).contains(name));
        fs::remove_file(&file).unwrap();
        // A symbolic link to a complete file is accepted.
        std::os::unix::fs::symlink(&kept, &file).unwrap();
        read_all(&folder.profile()).unwrap();
        fs::remove_file(&file).unwrap();
        fs::rename(&kept, &file).unwrap();
    }
    let manifest = folder.profile().join("manifest.json");
    fs::remove_file(&manifest).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &manifest).unwrap();
    assert!(refusal(&folder.profile()).contains("it is a device, not a regular file"));
}

#[test]
fn pages_that_say_they_unpack_to_two_gigabytes() {
    let folder = Folder::new();
    profile(&folder.profile(), &[row(1)]);
    let path = folder.profile().join("accesses-0000.parquet");
    let mut bytes = fs::read(&path).unwrap();
    // The first page's header: its kind, its size unpacked; a larger number takes more bytes, for which there is room
    // only if what follows is given up.
    assert_eq!(bytes[4] & 15, 5, "a field of 32 bits");
    let size = bytes[4..].iter().position(|b| *b == 0x15).unwrap() + 4 + 2;
    assert_eq!(bytes[size], 0x15, "the size unpacked");
    bytes[size + 1..size + 6].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
    fs::write(&path, bytes).unwrap();
    signed(&folder.profile(), "accesses", 1);
    assert!(refusal(&folder.profile()).contains("accesses-0000.parquet"));
}

#[test]
fn a_file_is_listed_once() {
    let folder = Folder::new();
    profile(&folder.profile(), &[row(1)]);
    let mut twice = manifest(&folder.profile());
    let again = twice["accesses"][0].clone();
    twice["accesses"].as_array_mut().unwrap().push(again);
    rewrite(&folder.profile(), twice);
    assert!(refusal(&folder.profile()).contains("lists it twice"));
}
