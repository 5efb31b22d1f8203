//! Resolves names that users type.

/// The known name that `given` stands for: the one that is equal except for case, or the only one that begins with it.
///
/// ```
/// # use nodewise_input::resolve;
/// let known = ["interleave", "locality", "balance"];
/// assert_eq!(resolve("Locality", known.into_iter()), Ok("locality"));
/// assert_eq!(resolve("inter", known.into_iter()), Ok("interleave"));
/// assert_eq!(resolve("balanec", known.into_iter()), Err(" (did you mean balance?)".into()));
/// ```
/// # Errors
/// There is no such name, or several begin with `given`. The error is a suffix for a message: ` (several begin so: A,
/// B)`, ` (did you mean NAME?)` if a similar name is known, or nothing.
pub fn resolve<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Result<&'a str, String> {
    if let Some(same) = known.clone().find(|name| name.eq_ignore_ascii_case(given)) {
        return Ok(same);
    }
    let begins = |name: &&str| {
        let head = name.get(..given.len());
        !given.is_empty() && head.is_some_and(|head| head.eq_ignore_ascii_case(given))
    };
    let begun: Vec<&str> = known.clone().filter(begins).collect();
    match begun[..] {
        [only] => return Ok(only),
        [_, _, ..] => return Err(format!(" (several begin so: {})", begun.join(", "))),
        [] => (),
    }
    let given = given.to_ascii_lowercase();
    let distance = |name: &&str| strsim::damerau_levenshtein(&given, &name.to_ascii_lowercase());
    let nearest = known.min_by_key(distance);
    let near = nearest.filter(|name| distance(name) <= name.len() / 2);
    Err(near.map_or(String::new(), |name| format!(" (did you mean {name}?)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_the_rest_of_a_name_may_be_left_out_but_not_guessed() {
        let of = |given| resolve(given, ["locality", "local-first", "Interleave"].into_iter());
        assert_eq!(of("LOCALITY"), Ok("locality"));
        assert_eq!(of("inter"), Ok("Interleave"));
        assert_eq!(of("locali"), Ok("locality"));
        assert_eq!(
            of("local"),
            Err(" (several begin so: locality, local-first)".into())
        );
        assert!(of("").is_err());
        assert_eq!(of("loaclity"), Err(" (did you mean locality?)".into()));
        assert_eq!(of("zzz"), Err(String::new()));
        assert!(of("interé").is_err());
    }
}
