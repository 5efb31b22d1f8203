//! How a recording is divided into slices.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Where one slice ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slicing {
    /// By wall time: `1s`, `100ms`.
    Time(Duration),
    /// When the threads of a process together have made this number of accesses: `accesses:1000000`.
    Accesses(u64),
    /// At the end of each parallel region: `region`.
    Region,
}

/// The text is not a valid slicing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown slicing `{0}`; known: a time such as 1s or 100ms (at least 10ms), accesses:N, region")]
pub struct SlicingError(String);

impl FromStr for Slicing {
    type Err = SlicingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| SlicingError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Slicing> {
    if text == "region" {
        return Some(Slicing::Region);
    }
    if let Some(count) = text.strip_prefix("accesses:") {
        return count.parse().ok().filter(|n| *n > 0).map(Slicing::Accesses);
    }
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..unit].parse().ok()?;
    let seconds = match &text[unit..] {
        "s" => number,
        "ms" => number / 1e3,
        "min" => number * 60.0,
        _ => return None,
    };
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (time >= Duration::from_millis(10)).then_some(Slicing::Time(time))
}

impl fmt::Display for Slicing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) if time.subsec_nanos() == 0 => write!(f, "{}s", time.as_secs()),
            Self::Time(time) => write!(f, "{}ms", time.as_secs_f64() * 1e3),
            Self::Accesses(count) => write!(f, "accesses:{count}"),
            Self::Region => f.write_str("region"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["1s", "100ms", "accesses:1000000", "region", "60s"] {
            assert_eq!(text.parse::<Slicing>().unwrap().to_string(), text);
        }
        assert_eq!("1min".parse(), Ok(Slicing::Time(Duration::from_secs(60))));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "1",
            "s",
            "0s",
            "1us",
            "-1s",
            "accesses:0",
            "accesses:",
            "regions",
            "1e999s",
            "NaNs",
        ] {
            assert!(text.parse::<Slicing>().is_err(), "{text}");
        }
    }
}
