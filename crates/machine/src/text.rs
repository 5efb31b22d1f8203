//! The two notations that machine files share with the kernel: CPU lists and sizes.

/// The largest number that a list may contain.
const MAX_NUMBER: u32 = 1 << 20;

/// Parses `0-3,8,10-11` into ascending numbers; an empty text is an empty list.
///
/// `None` if the text is not such a list, names a number twice, or contains a number above 2²⁰.
#[must_use]
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // A list that names a number twice is refused, so there is no need to collect more numbers than there are.
        if first > last || last > MAX_NUMBER || all.len() > MAX_NUMBER as usize {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.windows(2).all(|w| w[0] < w[1]).then_some(all)
}

/// Writes ascending numbers as the kernel does: `0-3,8`.
#[must_use]
pub fn format_list(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        parts.push(match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        });
    }
    parts.join(",")
}

/// Parses `4096`, `16K`, `2M`, `64G`, `1.5T` (powers of 1024) into bytes.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.char_indices().last()? {
        (at, unit) if unit.is_ascii_alphabetic() => {
            let power = "KMGT".find(unit.to_ascii_uppercase())? as u32 + 1;
            (&text[..at], 1024_f64.powi(power as i32))
        }
        _ => (text, 1.0),
    };
    let value = digits.trim().parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0 && value < 2_f64.powi(63)).then_some(value.round() as u64)
}

/// Writes a size for a machine file, in the largest unit in which it is a whole number, so that [`parse_bytes`] reads the
/// same value. Sizes for people are written by `nodewise_analysis::figures::bytes`.
#[must_use]
pub(crate) fn format_bytes(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let whole = units
        .iter()
        .find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    whole.map_or(bytes.to_string(), |(shift, unit)| {
        format!("{}{unit}", bytes >> shift)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_ascending_and_without_repetition() {
        assert_eq!(parse_list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_list("8,0-2\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_list(""), Some(vec![]));
        for bad in ["1,1", "0-2,2", "3-1", "x", "1,,2", "0-4294967295"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
        // This would take 4 GiB if the whole list were collected before it is refused.
        assert_eq!(parse_list("0-1048576,".repeat(1024).trim_end_matches(',')), None);
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_bytes("16K"), Some(16 << 10));
        assert_eq!(parse_bytes("1.5g"), Some(3 << 29));
        assert_eq!(parse_bytes("4096"), Some(4096));
        for bad in ["", "K", "-1", "4X", "nan", "1e30T"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn lists_survive_writing(numbers in proptest::collection::btree_set(0u32..5000, 0..40)) {
            let numbers: Vec<u32> = numbers.into_iter().collect();
            prop_assert_eq!(parse_list(&format_list(&numbers)), Some(numbers));
        }

        #[test]
        fn sizes_survive_writing(bytes in 0u64..1 << 50) {
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            let _ = (parse_list(&text), parse_bytes(&text));
        }
    }
}
