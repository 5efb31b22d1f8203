//! Parses `key=value` parameters of policies.

use crate::PolicyError;
use std::fmt::Display;
use std::str::FromStr;

/// The parameters of one policy as written. Reading one removes it; those left at the end are unknown.
pub struct Parameters<'a> {
    policy: &'static str,
    /// All parameters of the policy, with their defaults.
    known: &'static str,
    text: Option<&'a str>,
    left: Vec<&'a str>,
}

impl<'a> Parameters<'a> {
    pub(super) fn new(policy: &'static str, known: &'static str, text: Option<&'a str>) -> Self {
        Self {
            policy,
            known,
            text,
            left: text.map(|t| t.split(':').collect()).unwrap_or_default(),
        }
    }

    /// The policy's name, as written.
    pub(super) fn name(&self) -> String {
        self.text
            .map_or(self.policy.to_owned(), |t| format!("{}:{t}", self.policy))
    }

    /// The value of `key`, if it is given and fulfils `good` (`must` describes the condition in the error).
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
        PolicyError(format!("{}:{what}", self.policy))
    }

    pub(super) fn finish(self) -> Result<(), PolicyError> {
        let Some(unknown) = self.left.first() else {
            return Ok(());
        };
        let known = if self.known.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("write {}:{}", self.policy, self.known)
        };
        Err(self.error(format_args!("{unknown}: unknown parameter; {known}")))
    }
}
