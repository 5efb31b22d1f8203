//! The command: whether it can run in a guest, and what it needs there.

use crate::closure::{Kind, kind};
use crate::image::Image;
use crate::plan::{TOOLS, search_path};
use crate::{Experiment, LabError};
use nodewise_symbols::needs_avx512;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that do nothing without a network.
const CLIENTS: [&str; 9] = [
    "curl", "wget", "ssh", "scp", "sftp", "ftp", "rsync", "ping", "telnet",
];
/// Programs whose arguments are commands.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "env", "zsh", "ksh"];
/// Interpreters of interpreters, as the kernel has it (`BINPRM_MAX_RECURSION`).
const MOST_INTERPRETERS: usize = 4;

/// A command that was found and can run.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// Runs further programs by name.
    is_script: bool,
}

/// # Errors
/// 127: no such command; 126: not executable, not for this processor, its interpreter is missing; it
/// needs a network.
pub(crate) fn check(command: &[OsString], experiment: &Experiment) -> Result<Program, LabError> {
    let name = command
        .first()
        .ok_or_else(|| LabError::usage("no command given"))?;
    let path = find(name, experiment)?;
    check_network(command)?;
    let is_script = check_interpreters(&path)?;
    if !is_script {
        check_instructions(&path)?;
    }
    let shell = path.file_name().is_some_and(|n| SHELLS.iter().any(|s| n == *s));
    Ok(Program {
        path,
        is_script: is_script || shell,
    })
}

fn find(name: &OsStr, experiment: &Experiment) -> Result<PathBuf, LabError> {
    let as_path = Path::new(name);
    let places = if as_path.components().count() > 1 || name.to_string_lossy().contains('/') {
        vec![experiment.cwd.join(as_path)]
    } else {
        search_path(experiment)
            .iter()
            .map(|f| experiment.cwd.join(f).join(as_path))
            .collect()
    };
    let file = |p: &&PathBuf| p.is_file();
    let executable = |p: &&PathBuf| p.metadata().is_ok_and(|m| m.permissions().mode() & 0o111 != 0);
    let found: Vec<&PathBuf> = places.iter().filter(file).collect();
    match (found.iter().copied().find(executable), found.first()) {
        (Some(path), _) => Ok(path.clone()),
        (None, Some(path)) => Err(LabError::not_executable(format!(
            "{} is not executable",
            path.display()
        ))),
        (None, None) => Err(LabError::not_found(format!(
            "{}: no such command",
            name.to_string_lossy()
        ))),
    }
}

/// Whether it is a script; all interpreters on the way exist.
fn check_interpreters(path: &Path) -> Result<bool, LabError> {
    let mut at = path.to_owned();
    for depth in 0..=MOST_INTERPRETERS {
        match kind(&at)? {
            Kind::Elf {
                interpreter: Some(loader),
                ..
            } if !loader.exists() => {
                return Err(LabError::not_executable(format!(
                    "{} needs the loader {}, which is missing",
                    at.display(),
                    loader.display()
                )));
            }
            Kind::Elf { .. } => return Ok(depth > 0),
            Kind::Script { interpreter, .. } if !interpreter.is_file() => {
                return Err(LabError::not_executable(format!(
                    "{}: its interpreter {} is missing; install it, or name another after `#!`",
                    at.display(),
                    interpreter.display()
                )));
            }
            Kind::Script { interpreter, .. } => at = interpreter,
            Kind::Data => {
                return Err(LabError::not_executable(format!(
                    "{} is neither a program nor a script with an interpreter after `#!`",
                    at.display()
                )));
            }
        }
    }
    Err(LabError::not_executable(format!(
        "{}: its interpreters need each other",
        path.display()
    )))
}

fn check_instructions(path: &Path) -> Result<(), LabError> {
    match needs_avx512(path) {
        Ok(Some(function)) => Err(LabError::not_executable(format!(
            "{} uses AVX-512, which no emulator here has (in {function}): build it with -mno-avx512f",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Only what is plain: a client of other hosts, or an address on one.
fn check_network(command: &[OsString]) -> Result<(), LabError> {
    let mut words = command.iter().map(|w| w.to_string_lossy());
    let program = words.next().unwrap_or_default();
    let client = CLIENTS.iter().find(|c| program.rsplit('/').next() == Some(c));
    let what = client
        .map(|c| (*c).to_owned())
        .or_else(|| words.find(|w| names_another_host(w)).map(|w| w.into_owned()));
    match what {
        Some(what) => Err(LabError::not_executable(format!(
            "{what} needs a network, and the guest has none; fetch what it needs before and pack it by --with"
        ))),
        None => Ok(()),
    }
}

fn names_another_host(word: &str) -> bool {
    let Some((scheme, rest)) = word.split_once("://") else {
        return false;
    };
    let scheme = scheme.rsplit('=').next().unwrap_or(scheme);
    let host = rest.split(['/', ':', '?']).next().unwrap_or("");
    let known = [
        "http", "https", "ftp", "ssh", "git", "tcp", "mysql", "postgres", "redis", "s3",
    ];
    known.contains(&scheme) && !host.is_empty() && !host.starts_with("127.") && host != "localhost"
}

impl Program {
    /// It, what it needs, a shell for those that call one, and plain tools for scripts.
    pub fn pack(&self, image: &mut Image) -> Result<(), LabError> {
        image.add(&self.path)?;
        let mut at = self.path.clone();
        while let Ok(Kind::Script {
            interpreter,
            argument,
        }) = kind(&at)
        {
            // `#!/usr/bin/env python3`: the next word is the interpreter.
            if let (true, Some(argument)) = (interpreter.ends_with("env"), argument) {
                let named = argument.to_string_lossy().into_owned();
                let named = named
                    .split_whitespace()
                    .find(|w| !w.starts_with('-') && !w.contains('='));
                let found = named.and_then(which);
                let missing = || {
                    LabError::not_executable(format!(
                        "{}: its interpreter {} is missing; install it, or name another after `#!`",
                        self.path.display(),
                        named.unwrap_or_default()
                    ))
                };
                image.add(&found.ok_or_else(missing)?)?;
            }
            at = interpreter;
        }
        let shell = Path::new("/bin/sh");
        if shell.exists() {
            image.add(shell)?;
        }
        if self.is_script {
            add_tools(image)?;
        }
        Ok(())
    }
}

fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|f| f.join(name))
        .find(|p| p.is_file())
}

/// busybox, under the name of each of its tools, at the end of the guest's path.
fn add_tools(image: &mut Image) -> Result<(), LabError> {
    let Some(busybox) = which("busybox") else {
        return Ok(());
    };
    let list = Command::new(&busybox).arg("--list").output();
    let names = list
        .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        .unwrap_or_default();
    let at = Path::new(TOOLS).join("busybox");
    image.add_at(&at, &busybox)?;
    for name in names.lines().filter(|n| !n.contains('/') && *n != "busybox") {
        image.link(&Path::new(TOOLS).join(name), Path::new("busybox"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn checked(words: &[&str]) -> Result<Program, LabError> {
        let command: Vec<OsString> = words.iter().map(OsString::from).collect();
        let experiment = Experiment {
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: "/".into(),
            ..Experiment::default()
        };
        check(&command, &experiment)
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        assert!(!checked(&["true"]).unwrap().is_script);
        assert!(checked(&["bin/sh", "-c", "true"]).unwrap().is_script);
    }

    #[test]
    fn what_cannot_run_says_why_with_a_shells_status() {
        for (words, status, why) in [
            (&["nodewise-no-such"][..], 127, "no such command"),
            (&["/etc/passwd"], 126, "not executable"),
            (&["curl", "localhost"], 126, "curl needs a network"),
            (&["true", "--from=https://example.org/x"], 126, "needs a network"),
        ] {
            let error = checked(words).unwrap_err();
            assert_eq!(error.exit_status(), status, "{error}");
            let text = error.to_string();
            assert!(text.contains(why) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn addresses_of_this_host_need_no_network() {
        for word in [
            "http://localhost:80/",
            "tcp://127.0.0.1",
            "file:///etc",
            "a://b",
            "https",
        ] {
            assert!(!names_another_host(word), "{word}");
        }
        assert!(names_another_host("https://example.org") && names_another_host("--url=ftp://a.b"));
    }

    #[test]
    fn interpreters_and_processors_are_checked_before_booting() {
        let folder = std::env::temp_dir().join(format!("nodewise-command-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut foreign = std::fs::read("/bin/true").unwrap();
        foreign[18] = 183; // AArch64
        for (name, bytes, why) in [
            (
                "missing",
                b"#!/usr/bin/no-such-language\n".to_vec(),
                "its interpreter /usr/bin/no-such-language is missing",
            ),
            ("foreign", foreign, "not made for x86-64"),
            ("text", b"just text".to_vec(), "neither a program nor a script"),
        ] {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            let error = checked(&[path.to_str().unwrap()]).unwrap_err();
            assert!(
                error.exit_status() == 126 && error.to_string().contains(why),
                "{error}"
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
