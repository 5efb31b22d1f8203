//! Profiles on disk: the manifest, and each of the tables.

use crate::figures::judge;
use crate::folder::own;
use crate::understood;
use nodewise_profile::{
    Access, AccessSource, FirstTouch, Frame, Migration, Object, Profile, Region, Site, Slice, Thread,
};
use nodewise_store::{Reader, Writer};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A whole profile whose files are replaced one at a time, and its manifest.
static BASE: LazyLock<(PathBuf, Value)> = LazyLock::new(|| {
    let folder = own("profile").join("p");
    small(&folder);
    let text = fs::read_to_string(folder.join("manifest.json")).unwrap();
    (folder, serde_json::from_str(&text).unwrap())
});

/// A profile with a row in every table.
fn small(folder: &Path) {
    let frame = || Frame {
        function: "main".into(),
        file: "a.c".into(),
        line: 3,
    };
    let profile = Profile {
        objects: vec![
            Object::default(),
            Object {
                pages: 9,
                parts: vec![(Default::default(), 7)],
                ..Object::default()
            },
        ],
        threads: vec![
            Thread::default(),
            Thread {
                openmp: Some(1),
                ..Thread::default()
            },
        ],
        regions: vec![Region::default()],
        sites: vec![Site {
            frames: vec![frame(), frame()],
        }],
        slices: vec![Slice {
            start_ns: 0,
            end_ns: 1_000,
        }],
        first_touches: vec![FirstTouch {
            len: 9,
            ..FirstTouch::default()
        }],
        migrations: vec![Migration {
            len: 1,
            to: 1,
            by: "kernel".into(),
            ..Migration::default()
        }],
        ..Profile::default()
    };
    let row = |page, thread| Access {
        page: nodewise_profile::PageNumber(page),
        thread: nodewise_profile::ThreadId(thread),
        len: 3,
        reads: 5,
        lines: 2,
        ..Access::default()
    };
    let mut writer = Writer::create(folder, &profile.meta, true).unwrap();
    writer
        .slice(profile.slices[0], &[row(0, 0), row(2, 1), row(6, 0)])
        .unwrap();
    writer.finish(&profile).unwrap();
}

fn read(folder: &Path) {
    let mut rows = 0u64;
    let reader = Reader::open(folder).ok().filter(|reader| {
        let read = reader.visit(&mut |batch| rows += batch.len() as u64);
        read.is_ok() && rows > 0
    });
    understood(reader.is_some());
    if let Some(reader) = reader {
        judge(&reader, reader.profile());
    }
}

/// A manifest over the tables of a good profile.
pub fn manifest(data: &[u8]) {
    let (folder, _) = &*BASE;
    fs::write(folder.join("manifest.json"), data).unwrap();
    let _ = Reader::meta(folder);
    read(folder);
}

/// Any of the tables, by the first byte, in a profile whose manifest agrees with it; the second is its number of rows.
pub fn tables(data: &[u8]) {
    let (Some((&[which, rows], bytes)), (folder, manifest)) = (data.split_first_chunk::<2>(), &*BASE) else {
        return;
    };
    let mut manifest = manifest.clone();
    manifest.as_object_mut().unwrap().remove("crc32");
    let names: Vec<String> = manifest["tables"].as_object().unwrap().keys().cloned().collect();
    let entry = match names.get(usize::from(which) % (names.len() + 1)) {
        Some(name) => &mut manifest["tables"][name],
        None => &mut manifest["accesses"][0],
    };
    let file = folder.join(entry["file"].as_str().unwrap());
    entry["bytes"] = json!(bytes.len());
    entry["crc32"] = json!(crc32fast::hash(bytes));
    entry["rows"] = json!(rows);
    let kept = fs::read(&file).unwrap();
    fs::write(&file, bytes).unwrap();
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    read(folder);
    fs::write(&file, kept).unwrap();
}

/// Writes the files of the good profile as inputs of [`manifest`] and [`tables`] below a folder.
pub fn seeds(below: &Path) {
    let (folder, manifest) = &*BASE;
    let put = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(below.join(target)).unwrap();
        fs::write(below.join(target).join(name), bytes).unwrap();
    };
    let mut unsigned = manifest.clone();
    unsigned.as_object_mut().unwrap().remove("crc32");
    put("manifest", "whole", manifest.to_string().as_bytes());
    put("manifest", "unsigned", unsigned.to_string().as_bytes());
    let tables = manifest["tables"].as_object().unwrap().iter();
    let last = "accesses".to_owned();
    let entries = tables.chain([(&last, &manifest["accesses"][0])]);
    for (which, (name, entry)) in entries.enumerate() {
        let bytes = fs::read(folder.join(entry["file"].as_str().unwrap())).unwrap();
        let rows = entry["rows"].as_u64().unwrap() as u8;
        put("tables", name, &[&[which as u8, rows], &bytes[..]].concat());
    }
}
