//! Checks the page headers of a Parquet column before a decoder allocates memory by them.
//!
//! The header of a page states the uncompressed size and the number of its values, and decoders trust both. Only these
//! fields are read here (Thrift's compact protocol; field numbers as in `parquet.thrift`).

use parquet::file::metadata::ColumnChunkMetaData;

/// Largest compression ratio that LZ4 reaches.
const MAX_COMPRESSION_RATIO: u64 = 255;
/// Deepest nesting of structures that is accepted; valid headers have three levels.
const MAX_NESTING: u32 = 8;
/// Accepted encodings: plain, dictionaries, run lengths, differences; this crate and the common writers use no others.
/// Other encodings contain lengths that are not checked here.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];

/// Fields of a page header, in bytes and counts; absent ones are 0.
#[derive(Debug, Default)]
struct Header {
    unpacked: i64,
    packed: i64,
    values: i64,
    dictionary: i64,
    encoding: i64,
}

/// Checks all pages of a column chunk of `rows` values against the bytes that they take in `file`.
pub fn check(file: &[u8], column: &ColumnChunkMetaData, rows: u64) -> Result<(), String> {
    let bounds = || -> Option<&[u8]> {
        let data = column.data_page_offset();
        let first = column.dictionary_page_offset().map_or(data, |d| d.min(data));
        let start = usize::try_from(first).ok()?;
        let length = usize::try_from(column.compressed_size()).ok()?;
        file.get(start..start.checked_add(length)?)
    };
    if rows == 0 {
        return Ok(()); // such a chunk may have no page at all
    }
    let mut input = bounds().ok_or("a column lies outside the file")?;
    while !input.is_empty() {
        let header = Header::read(&mut input).ok_or("a page has no header")?;
        header.check(rows)?;
        let packed = usize::try_from(header.packed).ok();
        input = packed
            .and_then(|packed| input.get(packed..))
            .ok_or("a page is cut short")?;
    }
    Ok(())
}

impl Header {
    fn check(&self, rows: u64) -> Result<(), String> {
        let [unpacked, packed, values, dictionary] =
            [self.unpacked, self.packed, self.values, self.dictionary]
                .map(|n| u64::try_from(n).map_err(|_| "a page has a negative size".to_owned()));
        let (unpacked, packed) = (unpacked?, packed?);
        if unpacked > packed.saturating_mul(MAX_COMPRESSION_RATIO) {
            return Err(format!("a page of {packed} bytes says it unpacks to {unpacked}"));
        }
        if values? > rows || dictionary? > unpacked / 4 {
            return Err("a page says it has more values than there is room for".to_owned());
        }
        if !ENCODINGS.contains(&self.encoding) {
            return Err(format!(
                "a page has the encoding {}, which is not read here",
                self.encoding
            ));
        }
        Ok(())
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let mut header = Self::default();
        structure(input, 0, &mut |path, value| match *path {
            [2] => header.unpacked = value,
            [3] => header.packed = value,
            // Data pages of both versions: values first, encoding second or fourth.
            [5 | 8, 1] => header.values = value,
            [5, 2] | [8, 4] => header.encoding = value,
            [7, 1] => header.dictionary = value,
            _ => {}
        })?;
        Some(header)
    }
}

type Visit<'v> = &'v mut dyn FnMut(&[i64], i64);

/// Reads a structure and calls `visit` with the integers of its two outer levels, by field numbers.
fn structure(input: &mut &[u8], depth: u32, visit: Visit<'_>) -> Option<()> {
    let mut field = 0i64;
    loop {
        let head = byte(input)?;
        let (step, kind) = (head >> 4, head & 15);
        if kind == 0 {
            return Some(());
        }
        field = match step {
            0 => integer(input)?,
            step => field.checked_add(step.into())?,
        };
        let mut inner = |path: &[i64], value: i64| {
            if let ([inner], 0) = (path, depth) {
                visit(&[field, *inner], value);
            }
        };
        if let Some(number) = value(input, kind, depth, &mut inner)? {
            visit(&[field], number);
        }
    }
}

/// Reads a value of a compact type; `Some(None)` for those that are no integers.
fn value(input: &mut &[u8], kind: u8, depth: u32, visit: Visit<'_>) -> Option<Option<i64>> {
    match kind {
        1 | 2 => {} // a boolean is part of its type
        3 => drop(byte(input)?),
        4..=6 => return Some(Some(integer(input)?)),
        7 => drop(take(input, 8)?),
        8 => {
            let length = usize::try_from(unsigned(input)?).ok()?;
            take(input, length)?;
        }
        9 | 10 => list(input, depth)?,
        12 if depth < MAX_NESTING => structure(input, depth + 1, visit)?,
        _ => return None,
    }
    Some(None)
}

fn list(input: &mut &[u8], depth: u32) -> Option<()> {
    let head = byte(input)?;
    let count = match head >> 4 {
        15 => unsigned(input)?,
        count => count.into(),
    };
    // In a list each boolean takes a byte; as a field it takes none.
    let kind = match head & 15 {
        1 | 2 => 3,
        kind => kind,
    };
    (depth < MAX_NESTING && count <= input.len() as u64).then_some(())?;
    (0..count).try_for_each(|_| value(input, kind, depth + 1, &mut |_, _| ()).map(drop))
}

fn byte(input: &mut &[u8]) -> Option<u8> {
    take(input, 1).map(|b| b[0])
}

fn take<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(taken)
}

fn unsigned(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(input)?;
        value |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(value);
        }
    }
    None
}

/// A zigzag-encoded integer: the sign is the lowest bit.
fn integer(input: &mut &[u8]) -> Option<i64> {
    let bits = unsigned(input)?;
    Some((bits >> 1).cast_signed() ^ -((bits & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page's header: 100 bytes unpacked, 7 packed, 3 values, delta encoding; as a writer lays it out.
    const PAGE: [u8; 16] = [
        0x15, 0, 0x15, 200, 1, 0x15, 14, 0x2c, 0x15, 6, 0x15, 10, 0x15, 6, 0, 0,
    ];

    #[test]
    fn a_header_is_read_to_its_end() {
        let mut input = &PAGE[..];
        let header = Header::read(&mut input).unwrap();
        assert!(input.is_empty());
        assert_eq!(
            [
                header.unpacked,
                header.packed,
                header.values,
                header.encoding,
                header.dictionary
            ],
            [100, 7, 3, 5, 0]
        );
        assert!(header.check(3).is_ok() && header.check(2).is_err());
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let header = |unpacked, packed, dictionary| Header {
            unpacked,
            packed,
            dictionary,
            ..Header::default()
        };
        assert!(header(2550, 10, 600).check(0).is_ok());
        assert!(header(2551, 10, 0).check(0).is_err());
        assert!(header(400, 10, 101).check(0).is_err());
        assert!(header(-1, 10, 0).check(0).is_err());
        assert!(
            Header {
                encoding: 6,
                ..Header::default()
            }
            .check(0)
            .is_err()
        );
    }

    #[test]
    fn what_is_cut_short_or_has_no_end_is_no_header() {
        for end in 0..PAGE.len() {
            assert!(Header::read(&mut &PAGE[..end]).is_none(), "{end}");
        }
        assert!(Header::read(&mut &[0x1c; 64][..]).is_none(), "too deep");
        assert!(
            Header::read(&mut &[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f][..]).is_none(),
            "too long a list"
        );
    }
}
