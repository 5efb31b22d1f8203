//! Parses `key=value` parameters of policies.

use super::MigrationPolicyKind;
use crate::PolicyError;
use std::fmt::Display;
use std::str::FromStr;

/// The parameters of one policy as written; what is asked for is taken out, what is left is unknown.
pub struct Parameters<'a> {
    kind: &'a MigrationPolicyKind,
    text: Option<&'a str>,
    left: Vec<&'a str>,
}

impl<'a> Parameters<'a> {
    pub(super) fn new(kind: &'a MigrationPolicyKind, text: Option<&'a str>) -> Self {
        Self {
            kind,
            text,
            left: text.map(|t| t.split(':').collect()).unwrap_or_default(),
        }
    }

    /// The policy's name, as written.
    pub(super) fn name(&self) -> String {
        self.text
            .map_or(self.kind.name.to_owned(), |t| format!("{}:{t}", self.kind.name))
    }

    /// The value of `key`, if it is written and holds what `good` says (`must`: the same for people).
    pub(super) fn take<T: FromStr>(
        &mut self,
        key: &str,
        default: T,
        good: impl Fn(&T) -> bool,
        must: impl Display,
    ) -> Result<T, PolicyError> {
        let at = self
            .left
            .iter()
            .position(|p| p.split_once('=').is_some_and(|(k, _)| k == key));
        let Some(at) = at else { return Ok(default) };
        let value = &self.left.remove(at)[key.len() + 1..];
        let parsed = value.parse().ok().filter(good);
        parsed.ok_or_else(|| self.error(format_args!("{key}={value}: {key} is {must}")))
    }

    /// The first parameter without a key, for policies that allow one: `mixed:0.9`.
    pub(super) fn bare(&mut self) -> Option<&'a str> {
        let at = self.left.iter().position(|p| !p.contains('='))?;
        Some(self.left.remove(at))
    }

    pub(super) fn error(&self, what: impl Display) -> PolicyError {
        PolicyError(format!("{}:{what}", self.kind.name))
    }

    pub(super) fn finish(self) -> Result<(), PolicyError> {
        let Some(unknown) = self.left.first() else {
            return Ok(());
        };
        let known = if self.kind.parameters.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("write {}:{}", self.kind.name, self.kind.parameters)
        };
        Err(self.error(format_args!("{unknown}: unknown parameter; {known}")))
    }
}
