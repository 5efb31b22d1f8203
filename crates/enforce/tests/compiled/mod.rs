//! A C program over the headers that C and Rust share, asked many questions at once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A compiled program in a folder of its own.
pub struct Program {
    folder: PathBuf,
    file: PathBuf,
}

impl Program {
    /// Compiles `source`; headers are looked for in `include`, a folder of the repository.
    pub fn new(name: &str, source: &str, include: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nodewise-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (text, file) = (folder.join("program.c"), folder.join("program"));
        std::fs::write(&text, source).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(include);
        let compiled = Command::new("cc")
            .args(["-std=c11", "-O2", "-Wall", "-Wno-unused-result", "-o"])
            .args([&file, &text])
            .arg("-I")
            .arg(include)
            .status()
            .unwrap();
        assert!(compiled.success());
        Self { folder, file }
    }

    /// The lines that the program answers to `input`.
    pub fn answers(&self, input: String) -> Vec<String> {
        let mut child = Command::new(&self.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
