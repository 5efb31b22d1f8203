//! The machines that ship with nodewise, and finding one by name.

use crate::file::MachineFile;
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
];

impl Machine {
    /// The names [`Machine::named`] knows: the papers' machines, then today's.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        SHIPPED.iter().map(|(name, _)| *name).collect()
    }

    /// A shipped machine, by its name or an alias.
    ///
    /// # Errors
    /// There is none of that name; the message suggests the nearest.
    pub fn named(name: &str) -> Result<Self, MachineError> {
        let direct = SHIPPED.iter().find(|(known, _)| *known == name);
        let (_, text) = direct.or_else(|| by_alias(name)).ok_or_else(|| unknown(name))?;
        Self::parse(text, name)
    }

    /// The machine that `--machine` names: a shipped name, the path of a machine file, or `this`.
    ///
    /// # Errors
    /// No such machine, or its file or sysfs does not describe one.
    pub fn load(spec: &str) -> Result<Self, MachineError> {
        if spec == "this" {
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
        MachineFile::parse(text).is_ok_and(|file| file.aliases.iter().any(|alias| alias == name))
    })
}

fn unknown(name: &str) -> MachineError {
    let nearest = SHIPPED
        .iter()
        .map(|(known, _)| (edits(name, known), *known))
        .min();
    let hint = nearest
        .filter(|(distance, known)| *distance <= known.len() / 2)
        .map_or(String::new(), |(_, known)| format!(" (did you mean {known}?)"));
    MachineError::new(
        ErrorKind::Unknown,
        format!(
            "no machine named {name:?}{hint}; there are: this, {}, or give a file",
            Machine::names().join(", ")
        ),
    )
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_told_the_nearest() {
        assert_eq!((edits("kitten", "sitting"), edits("", "abc")), (3, 3));
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
    fn a_missing_file_is_named() {
        let error = Machine::load("./none.toml").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreadable);
        assert!(error.to_string().contains("./none.toml"));
    }
}
