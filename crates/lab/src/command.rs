//! Checks whether a command can run in a guest, and collects the files it needs.

use crate::closure::kind;
use crate::image::Image;
use crate::plan::{TOOLS, search_path};
use crate::{Experiment, LabError, RunPlacement};
use nodewise_loader::{Foreign, Kind, MAX_INTERPRETERS};
use nodewise_symbols::needs_avx512;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that are of no use without a network.
const NETWORK_CLIENTS: [&str; 9] = [
    "curl", "wget", "ssh", "scp", "sftp", "ftp", "rsync", "ping", "telnet",
];
/// Programs whose arguments are commands.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "env", "zsh", "ksh"];

/// A command that was found and can run.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// Whether it runs further programs by name.
    is_script: bool,
    /// Interpreters that are started for the program, directly or through `env`.
    interpreters: Vec<PathBuf>,
}

/// Checks that a command can run in the guest. `placed` is one of its placements that needs the preload, if there is
/// one.
///
/// # Errors
/// With status 127 if there is no such command; 126 if it is not executable, is for another processor, lacks an
/// interpreter, or needs a network. A usage error if the preload cannot reach the program.
pub(crate) fn check(
    command: &[OsString],
    placed: Option<&RunPlacement>,
    experiment: &Experiment,
) -> Result<Program, LabError> {
    let name = command
        .first()
        .ok_or_else(|| LabError::usage("no command given"))?;
    let path = find(name, experiment)?;
    check_network(command)?;
    let (interpreters, is_script) = check_interpreters(&path, experiment)?;
    if !is_script {
        check_instructions(&path)?;
        // A static program that starts another one is permitted.
        let starts = command[1..].iter().any(|word| find(word, experiment).is_ok());
        placed
            .filter(|_| !starts)
            .map_or(Ok(()), |under| check_linking(&path, under))?;
    }
    let shell = path.file_name().is_some_and(|n| SHELLS.iter().any(|s| n == *s));
    Ok(Program {
        path,
        is_script: is_script || shell,
        interpreters,
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
        (None, None) if name.to_string_lossy().contains('/') && places.iter().any(|p| p.is_dir()) => Err(
            LabError::not_executable(format!("{} is a folder, not a program", name.to_string_lossy())),
        ),
        (None, None) => Err(LabError::not_found(format!(
            "{}: no such command",
            name.to_string_lossy()
        ))),
    }
}

/// The interpreters of a script (directly or through `env`), all of which exist, and whether the program is a script.
fn check_interpreters(path: &Path, experiment: &Experiment) -> Result<(Vec<PathBuf>, bool), LabError> {
    let (mut at, mut started) = (path.to_owned(), Vec::new());
    let missing = |name: &dyn Display| {
        LabError::not_executable(format!(
            "{}: its interpreter {name} is missing; install it, or name another after `#!`",
            path.display()
        ))
    };
    for depth in 0..=MAX_INTERPRETERS {
        match kind(&at)? {
            Kind::Elf(program) => match program.interpreter.filter(|loader| !loader.exists()) {
                None => return Ok((started, depth > 0)),
                Some(loader) => {
                    return Err(LabError::not_executable(format!(
                        "{} needs the loader {}, which is missing",
                        at.display(),
                        loader.display()
                    )));
                }
            },
            Kind::Script { interpreter, .. } if !interpreter.is_file() => {
                return Err(missing(&interpreter.display()));
            }
            Kind::Script {
                interpreter,
                argument,
            } => {
                at = match argument.filter(|_| interpreter.ends_with("env")) {
                    Some(words) => {
                        let name = started_by_env(&words);
                        let found = find(name.as_ref(), experiment).map_err(|_| missing(&name))?;
                        started.push(found.clone());
                        found
                    }
                    None => interpreter,
                };
            }
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

/// The program in `#!/usr/bin/env python3`: the first word that is neither an option nor a variable.
fn started_by_env(words: &OsStr) -> String {
    let words = words.to_string_lossy();
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
    words
        .split_whitespace()
        .find(is_name)
        .unwrap_or_default()
        .to_owned()
}

/// Refuses programs that the preload cannot reach: `nodewise run` would refuse them in the guest, or not place them.
fn check_linking(path: &Path, under: &RunPlacement) -> Result<(), LabError> {
    let foreign = match kind(path)? {
        Kind::Elf(program) => program.foreign(),
        _ => None,
    };
    let Some(why) = foreign else { return Ok(()) };
    let remedy = match why {
        Foreign::Static => "link it dynamically, or use",
        _ => "use",
    };
    Err(LabError::usage(format!(
        "{} {why}, so --under {under} cannot place its pages; {remedy} first-touch, round-robin, node:N, autonuma",
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

/// Recognises only clear cases: a known network client, or a URL that names another host.
fn check_network(command: &[OsString]) -> Result<(), LabError> {
    let mut words = command.iter().map(|w| w.to_string_lossy());
    let program = words.next().unwrap_or_default();
    let client = NETWORK_CLIENTS
        .iter()
        .find(|c| program.rsplit('/').next() == Some(c));
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
    /// Packs the program, its files, a shell for programs that call one, and standard tools for scripts.
    pub fn pack(&self, image: &mut Image) -> Result<(), LabError> {
        image.add(&self.path)?;
        for interpreter in &self.interpreters {
            image.add(interpreter)?;
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

/// Adds busybox, under the name of each of its tools, in the last folder of the guest's search path.
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
        check(&command, None, &experiment)
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
