//! What `--threads` says: how many there are, where they go, or both.

use nodewise_pipeline::compare;

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

/// `24,asym`, or `24,24,16,asym`: numbers first, one for all programs or one for each.
pub fn of_programs(text: &str) -> Result<compare::Threads, String> {
    let mut counts = Vec::new();
    let mut rest = Some(text);
    while let Some(left) =
        rest.filter(|r| r.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+'))
    {
        let (first, after) = left.split_once(',').map_or((left, None), |(a, b)| (a, Some(b)));
        counts.extend(threads(first)?.count);
        rest = after.filter(|a| !a.is_empty());
    }
    let policy = rest.map(str::to_owned);
    match (counts.is_empty(), &policy) {
        (true, None) => Err(threads("").unwrap_err()),
        (true, Some(text)) => Ok(compare::Threads {
            counts,
            policy: threads(text)?.policy,
        }),
        _ => Ok(compare::Threads { counts, policy }),
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

    #[test]
    fn each_program_may_have_a_number_of_its_own() {
        let read = |text| of_programs(text).map(|t| (t.counts, t.policy));
        let asym = || Some("asym".to_owned());
        assert_eq!(read("24,24,16,asym"), Ok((vec![24, 24, 16], asym())));
        assert_eq!(read("24,16"), Ok((vec![24, 16], None)));
        assert_eq!(read("asym"), Ok((vec![], asym())));
        assert_eq!(read("8,hwloc:pu:0,2"), Ok((vec![8], Some("hwloc:pu:0,2".into()))));
        for bad in ["", "0", "8,0,asym", "8,4x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
