//! The machines that ship with nodewise, and finding one by name.

use crate::file::MachineFile;
use crate::firmware_mode::split_mode;
use crate::{ErrorKind, Machine, MachineError};
use std::path::Path;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every file in `machines/`.
        const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*];
    };
}

shipped![
    "itanium-9030",
    "xeon-x7550",
    "opteron-6386",
    "machine-a",
    "machine-b",
    "mai-itanium2-fss",
    "mai-opteron-8n",
    "nehalem-2s",
    "westmere-4s",
    "sci-cluster-4",
    "2s-skx-class",
    "xeon8269cy-2s-snc2",
    "xeon6980p-2s-snc3",
    "xeonmax-2s-snc4-flat",
    "epyc-1s-nps4",
    "epyc-2s-nps4",
    "genoa-2s-nps4",
    "spr-2s-snc4",
    "spr-2s-cxl",
    "gh200-1s",
];

impl Machine {
    /// The names that [`Machine::named`] knows: first the machines of the papers, then current ones.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        SHIPPED.iter().map(|(name, _)| *name).collect()
    }

    /// A shipped machine, by its name or an alias.
    ///
    /// ```
    /// # use nodewise_machine::{Machine, NodeId};
    /// let machine = Machine::named("nehalem-2s")?;
    /// assert_eq!((machine.node_count(), machine.cpus().len()), (2, 8));
    /// assert!(machine.latency(NodeId(0), NodeId(1)) > machine.latency(NodeId(0), NodeId(0)));
    /// assert!(Machine::named("nehalem").is_ok(), "the only name that begins so");
    /// # Ok::<(), nodewise_machine::MachineError>(())
    /// ```
    /// # Errors
    /// If there is no machine of that name; the message suggests the nearest name.
    pub fn named(name: &str) -> Result<Self, MachineError> {
        let text = match nodewise_input::resolve(name, SHIPPED.iter().map(|(known, _)| *known)) {
            Ok(known) => SHIPPED.iter().find(|(shipped, _)| *shipped == known),
            Err(_) => by_alias(name),
        };
        let (_, text) = text.ok_or_else(|| unknown(name))?;
        Self::parse(text, name)
    }

    /// The machine that `--machine` names: a shipped name, the path of a machine file, or `this`; each may be followed by
    /// `:nps=N` or `:snc=N`, the same machine with N nodes a socket ([`Machine::with_nodes_per_socket`]), and `:hbm=cache`,
    /// with its HBM as caches ([`Machine::with_hbm_as_cache`]).
    ///
    /// ```
    /// # use nodewise_machine::Machine;
    /// assert_eq!(Machine::load("machine-a")?.node_count(), 8);
    /// let error = Machine::load("no/such/file.toml").unwrap_err();
    /// assert!(error.to_string().starts_with("cannot read machine file"));
    /// # Ok::<(), nodewise_machine::MachineError>(())
    /// ```
    /// # Errors
    /// If there is no such machine, or its file or sysfs does not describe one.
    pub fn load(spec: &str) -> Result<Self, MachineError> {
        if let Some((machine, mode)) = split_mode(spec) {
            return Self::load(machine)?.in_mode(mode);
        }
        if spec.eq_ignore_ascii_case("this") {
            return Self::from_sysfs(Path::new("/sys"), "this");
        }
        let path = Path::new(spec);
        if !spec.contains('/') && !spec.ends_with(".toml") && !path.is_file() {
            return Self::named(spec);
        }
        let text = nodewise_input::text(path).map_err(|e| {
            MachineError::new(
                ErrorKind::Unreadable,
                format!("cannot read machine file {spec}: {e}"),
            )
        })?;
        Self::parse(&text, spec)
    }
}

fn by_alias(name: &str) -> Option<&'static (&'static str, &'static str)> {
    SHIPPED.iter().find(|(_, text)| {
        MachineFile::parse(text)
            .is_ok_and(|file| file.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name)))
    })
}

fn unknown(name: &str) -> MachineError {
    let names = SHIPPED.iter().map(|(known, _)| *known);
    let hint = nodewise_input::resolve(name, names).err().unwrap_or_default();
    MachineError::new(
        ErrorKind::Unknown,
        format!(
            "no machine named {name:?}{hint}; there are: this, {}, or give a file",
            Machine::names().join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_told_the_nearest() {
        let error = Machine::load("opteron-6368").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
        assert!(
            error.to_string().contains("did you mean opteron-6386?"),
            "{error}"
        );
        assert!(
            !Machine::load("zzz")
                .unwrap_err()
                .to_string()
                .contains("did you mean")
        );
    }

    #[test]
    fn a_name_needs_no_case_and_no_more_than_tells_it_apart() {
        let name = |asked: &str| Machine::load(asked).map(|m| m.name).map_err(|e| e.kind());
        assert_eq!(name("Machine-A"), name("machine-a"));
        assert_eq!(name("nehalem"), name("nehalem-2s"));
        assert_eq!(name("machine"), Err(ErrorKind::Unknown), "there are two");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Machine::load("./none.toml").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreadable);
        assert!(error.to_string().contains("./none.toml"));
    }
}
