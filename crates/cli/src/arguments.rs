//! Parsers for values on the command line: one notation for each kind of value, in all commands.

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum};
use jiff::SignedDuration;
use nodewise_machine::parse_bytes;
use nodewise_observe::Slicing;
use nodewise_profile::BASE_PAGE_SHIFT;
use std::ffi::OsStr;
use std::time::Duration;

/// A parser of words that may be shortened as long as no other begins so, and written in either case.
pub fn one_of<T: ValueEnum + Clone + Send + Sync + 'static>() -> OneOf<T> {
    OneOf(EnumValueParser::new())
}

/// The parser that [`one_of`] returns: clap's for the type, given the word in full.
#[derive(Clone)]
pub struct OneOf<T: ValueEnum + Clone + Send + Sync + 'static>(EnumValueParser<T>);

impl<T: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for OneOf<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let values: Vec<PossibleValue> = T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .collect();
        let names: Vec<&str> = values
            .iter()
            .flat_map(PossibleValue::get_name_and_aliases)
            .collect();
        let text = value.to_str().unwrap_or_default();
        match nodewise_input::resolve(text, names.iter().copied()) {
            Ok(full) => self.0.parse_ref(command, arg, OsStr::new(full)),
            Err(hint) => {
                let of = arg.map_or_else(String::new, |arg| format!(" for '{arg}'"));
                let known: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
                let text = format!(
                    "invalid value '{}'{of}{hint}; known are {}\n",
                    value.display(),
                    known.join(", ")
                );
                Err(clap::Error::raw(ErrorKind::InvalidValue, text).with_cmd(command))
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Where a slice of a recording ends: a time from 10 ms on, `accesses:N` or `region`.
pub fn slicing(text: &str) -> Result<Slicing, String> {
    if text.eq_ignore_ascii_case("region") {
        return Ok(Slicing::Region);
    }
    let slicing = match text.strip_prefix("accesses:") {
        Some(count) => count.parse().ok().filter(|n| *n > 0).map(Slicing::Accesses),
        None => {
            let time = duration(text)
                .ok()
                .filter(|time| *time >= Duration::from_millis(10));
            time.map(Slicing::Time)
        }
    };
    slicing.ok_or_else(|| {
        format!("`{text}` is neither a time such as 1s or 100ms (at least 10ms), nor accesses:N, nor region")
    })
}

/// A duration: `200ms`, `1.5s`, `90s`, `10m`, `1h30m`; a number without a unit is seconds. At most a year.
pub fn duration(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(366 * 86_400);
    match time(text)? {
        Duration::ZERO => Err(no_time(text)),
        time if time > YEAR => Err(format!(
            "`{text}` is more than a year; write 200ms, 90s, 10m or 1h"
        )),
        time => Ok(time),
    }
}

/// A duration, `0` too.
fn time(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| no_time(text));
    }
    let time: SignedDuration = text.parse().map_err(|_| no_time(text))?;
    Duration::try_from(time).map_err(|_| no_time(text))
}

fn no_time(text: &str) -> String {
    format!("`{text}` is no time; write 200ms, 90s, 10m or 1h")
}

/// An amount of memory, bytes: `512M`, `4G`. Not nothing.
pub fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|b| *b > 0)
        .ok_or_else(|| format!("`{text}` is no size; write 512M or 4G"))
}

/// The size of a working set, bytes: 1 MiB and more.
pub fn working_set(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|b| (1 << 20..1 << 44).contains(b))
        .ok_or_else(|| format!("`{text}` is no size of 1 MiB or more; write 512M or 4G"))
}

/// One of the page sizes that Linux places and moves: 4K or 2M, as the base-2 logarithm of the number of base pages in it.
pub fn page_shift(text: &str) -> Result<u32, String> {
    match parse_bytes(text) {
        Some(4096) => Ok(0),
        Some(0x20_0000) => Ok(9),
        _ => Err(format!("`{text}` is neither 4K nor 2M")),
    }
}

/// A page size for which decisions are studied, a power of two from 4K to 1G, as [`page_shift`].
pub fn decision_size(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text).filter(|b| b.is_power_of_two() && (1 << 12..=1 << 30).contains(b));
    let shift = bytes.map(|b| b.ilog2() - BASE_PAGE_SHIFT);
    shift.ok_or_else(|| format!("`{text}` is no page size; write 4K, 2M, or another power of two up to 1G"))
}

/// How long to watch: nothing to an hour.
pub fn watch(text: &str) -> Result<Duration, String> {
    match time(text)? {
        time if time > Duration::from_secs(3600) => {
            Err(format!("`{text}` is no time from 0 to 60m, such as 2s"))
        }
        time => Ok(time),
    }
}

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|n| n.is_finite() && *n > 0.0)
        .ok_or_else(|| "a number above 0".into())
}

/// CPU time: that of many threads may be more than a year.
pub fn cpu_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    match time.is_zero() {
        true => Err(no_time(text)),
        false => Ok(time),
    }
}

/// A period between two looks or decisions: 10 ms to an hour.
pub fn period(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let limits = Duration::from_millis(10)..=Duration::from_secs(3600);
    match limits.contains(&time) {
        true => Ok(time),
        false => Err(format!(
            "`{text}` is no time from 10ms to 60m, such as 200ms or 1s"
        )),
    }
}

/// A share, `5%` or `0.05`, as a fraction from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    let share = number.ok().filter(|s| (0.0..=1.0).contains(s));
    share.ok_or_else(|| format!("`{text}` is no share, such as 5% or 0.05"))
}

/// A share above 0.
pub fn share_above_0(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    match share > 0.0 {
        true => Ok(share),
        false => Err(format!("`{text}`: the share has to be above 0")),
    }
}

/// A share, or `none` for no limit, which is infinity.
pub fn share_or_none(text: &str) -> Result<f64, String> {
    match text.eq_ignore_ascii_case("none") {
        true => Ok(f64::INFINITY),
        false => share(text).map_err(|e| format!("{e}, or `none`")),
    }
}

/// Parses a cost or a rate: a number that is 0 or more.
pub fn cost(text: &str) -> Result<f64, String> {
    let cost: Option<f64> = text.parse().ok();
    cost.filter(|s| s.is_finite() && *s >= 0.0)
        .ok_or_else(|| "seconds, 0 or more".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_is_a_mebibyte_at_least_and_pages_have_two_sizes() {
        assert_eq!(working_set("64M"), Ok(64 << 20));
        for bad in ["0", "1K", "-3M", "x", "999T"] {
            assert!(working_set(bad).unwrap_err().contains("write 512M"), "{bad}");
        }
        assert_eq!(
            (bytes("1K"), page_shift("4K"), page_shift("2M")),
            (Ok(1024), Ok(0), Ok(9))
        );
        assert!(bytes("0").is_err() && page_shift("1G").is_err());
        assert_eq!((decision_size("64K"), decision_size("1G")), (Ok(4), Ok(18)));
        assert!(
            ["2K", "6K", "2G"]
                .into_iter()
                .all(|bad| decision_size(bad).is_err())
        );
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let times = [
            ("250ms", 0.25),
            ("1.5s", 1.5),
            ("90", 90.0),
            ("0.5", 0.5),
            ("2m", 120.0),
            ("10min", 600.0),
            ("1h30m", 5400.0),
        ];
        for (text, seconds) in times {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for bad in [
            "",
            "s",
            "-1s",
            "NaN",
            "inf",
            "0s",
            "0",
            "1 fortnight",
            "9999h",
            "1e300",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        let watched = [
            ("0", 0),
            ("0s", 0),
            ("2", 2000),
            ("2s", 2000),
            ("0.3", 300),
            ("60m", 3_600_000),
        ];
        for (text, milliseconds) in watched {
            assert_eq!(watch(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert!(
            ["61m", "-1s", "-1", "NaN", "x"]
                .iter()
                .all(|text| watch(text).is_err())
        );
        assert_eq!(
            [cpu_time("12.5"), cpu_time("2m"), cpu_time("1e8")],
            [12.5, 120.0, 1e8].map(|s| Ok(Duration::from_secs_f64(s)))
        );
        assert!(
            ["0", "0s", "-2", "inf", "x"]
                .iter()
                .all(|text| cpu_time(text).is_err())
        );
        assert!(period("5ms").is_err() && period("2h").is_err() && period("1s").is_ok());
    }

    #[test]
    fn what_is_written_of_a_slicing_is_read_back() {
        for text in ["1s", "100ms", "accesses:1000000", "region", "60s"] {
            assert_eq!(slicing(text).unwrap().to_string(), text);
        }
        assert_eq!(slicing("1m30s"), Ok(Slicing::Time(Duration::from_secs(90))));
        for bad in [
            "",
            "s",
            "0s",
            "1us",
            "-1s",
            "accesses:0",
            "accesses:",
            "regions",
            "NaN",
        ] {
            assert!(slicing(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn words_may_be_shortened() {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        enum Way {
            Auto,
            #[value(alias = "faults")]
            HintFaults,
            Asym,
        }
        let of = |word: &str| {
            let parser = one_of::<Way>();
            parser.parse_ref(&Command::new("x"), None, OsStr::new(word)).ok()
        };
        for (word, way) in [
            ("Auto", Way::Auto),
            ("hint", Way::HintFaults),
            ("fau", Way::HintFaults),
            ("as", Way::Asym),
        ] {
            assert_eq!(of(word), Some(way), "{word}");
        }
        assert!([of("a"), of(""), of("x")].iter().all(Option::is_none));
    }

    #[test]
    fn shares_are_read_as_people_write_them() {
        assert_eq!((share("5%"), share("0.5")), (Ok(0.05), Ok(0.5)));
        for bad in ["", "%", "101%", "2", "NaN", "-1%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert!(share_above_0("0%").is_err());
        assert_eq!(share_or_none("none"), Ok(f64::INFINITY));
    }
}
