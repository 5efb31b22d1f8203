//! Search paths: their folders, and `$ORIGIN`, `$LIB` and `$PLATFORM` in them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A token's name and what it stands for.
pub(super) type Token<'t> = (&'t str, &'t OsStr);

/// `text` with each `$NAME` and `${NAME}` replaced.
pub(super) fn replaced(text: &OsStr, tokens: &[Token]) -> OsString {
    let (mut result, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let token = |(name, value): &Token| {
            let braced = after
                .strip_prefix(b"{")
                .and_then(|a| a.strip_prefix(name.as_bytes()));
            let left = match braced {
                Some(left) => left.strip_prefix(b"}"),
                None => after.strip_prefix(name.as_bytes()).filter(|left| {
                    !left
                        .first()
                        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
                }),
            };
            left.map(|left| (value.as_bytes().to_vec(), left))
        };
        match tokens.iter().find_map(token).filter(|_| byte == b'$') {
            Some((value, left)) => {
                result.extend(value);
                rest = left;
            }
            None => {
                result.push(byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(result)
}

/// The parts of a list that is separated by any of `separators`; parts may be empty.
pub(super) fn folders<'l>(list: &'l OsStr, separators: &'l [u8]) -> impl Iterator<Item = &'l OsStr> {
    let parts = list.as_bytes().split(|b| separators.contains(b));
    parts.map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_replaced_whole() {
        let tokens = [("ORIGIN", OsStr::new("/a")), ("LIB", OsStr::new("lib64"))];
        let read = |text: &str| replaced(text.as_ref(), &tokens).into_string().unwrap();
        assert_eq!(read("$ORIGIN/../${LIB}/x"), "/a/../lib64/x");
        assert_eq!(read("$ORIGINAL/$LIBS/${LIB/$"), "$ORIGINAL/$LIBS/${LIB/$");
        assert_eq!(read("ORIGIN"), "ORIGIN");
    }
}
