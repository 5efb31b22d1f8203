//! What `--threads` says: how many there are, where they go, or both.

/// `24`, `scatter`, `24,asym`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// So many.
    pub count: Option<u32>,
    /// A thread policy, as `--affinity` names it.
    pub policy: Option<String>,
}

pub fn threads(text: &str) -> Result<Threads, String> {
    let count = |text: &str| match text.parse() {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => Err(format!("`{text}` is no number of threads")),
    };
    let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (first, rest) = text.split_once(',').unwrap_or((text, ""));
    let threads = match first.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') {
        true => Threads {
            count: count(first)?,
            policy: named(rest),
        },
        false => Threads {
            count: None,
            policy: named(text),
        },
    };
    match (threads.count, &threads.policy) {
        (None, None) => Err("a number of threads, a policy, or both: 24, scatter, 24,asym".into()),
        _ => Ok(threads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_a_policy_or_both() {
        let read = |text| threads(text).map(|t| (t.count, t.policy));
        let named = |text: &str| Some(text.to_owned());
        assert_eq!(read("24"), Ok((Some(24), None)));
        assert_eq!(read("asym"), Ok((None, named("asym"))));
        assert_eq!(read("24,asym"), Ok((Some(24), named("asym"))));
        assert_eq!(read("8,hwloc:pu:0,2"), Ok((Some(8), named("hwloc:pu:0,2"))));
        assert_eq!(read("likwid:M0:0,2"), Ok((None, named("likwid:M0:0,2"))));
        for bad in ["", "0", "-3", "4x", "0,asym"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
