//! Binary columns behind one JSON header line: the format of tiles and other bulk data.
//!
//! The line is padded with spaces so that columns begin at a multiple of 4 bytes; each column is little-endian
//! and padded likewise. `web/src/packed.ts` reads it.

use serde_json::{Map, Value, json};

/// Builder of packed columns.
#[derive(Debug, Default)]
pub struct Packed {
    columns: Vec<Value>,
    body: Vec<u8>,
}

impl Packed {
    /// Adds a column of bytes.
    pub fn bytes(&mut self, name: &str, values: &[u8]) {
        self.column(name, "u8", values.len(), values);
    }

    /// Adds a column of 16-bit integers.
    pub fn shorts(&mut self, name: &str, values: &[u16]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.column(name, "u16", values.len(), &bytes);
    }

    /// Adds a column of 32-bit integers.
    pub fn words(&mut self, name: &str, values: &[u32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.column(name, "u32", values.len(), &bytes);
    }

    /// Adds a column of counts as `f32`, rounded to 24 significant bits.
    pub fn counts(&mut self, name: &str, values: &[u64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
        self.column(name, "f32", values.len(), &bytes);
    }

    fn column(&mut self, name: &str, kind: &str, length: usize, bytes: &[u8]) {
        self.columns.push(json!([name, kind, length]));
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// The packed bytes; `facts` are additional keys of the header.
    #[must_use]
    pub fn finish(self, mut facts: Map<String, Value>) -> Vec<u8> {
        facts.insert("columns".into(), Value::Array(self.columns));
        let mut bytes = Value::Object(facts).to_string().into_bytes();
        let whole = (bytes.len() + 1).next_multiple_of(4);
        bytes.resize(whole - 1, b' ');
        bytes.push(b'\n');
        bytes.extend(self.body);
        bytes
    }
}

/// A share as a byte, in which 255 is the whole; 255 also if `whole` is 0, because nothing was accessed there.
#[must_use]
pub fn share(part: u64, whole: u64) -> u8 {
    match whole {
        0 => 255,
        _ => (255.0 * part as f64 / whole as f64).round() as u8,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Unpacks as `web/src/packed.ts` does: header keys, and each column as numbers.
    pub(crate) fn unpack(bytes: &[u8]) -> (Value, BTreeMap<String, Vec<f64>>) {
        let end = bytes.iter().position(|b| *b == b'\n').unwrap();
        let facts: Value = serde_json::from_slice(&bytes[..end]).unwrap();
        let (mut columns, mut at) = (BTreeMap::new(), end + 1);
        for column in facts["columns"].as_array().unwrap() {
            let (kind, length) = (column[1].as_str().unwrap(), column[2].as_u64().unwrap() as usize);
            let wide = match kind {
                "u8" => 1,
                "u16" => 2,
                _ => 4,
            };
            assert_eq!(at % 4, 0);
            let number = |b: &[u8]| match kind {
                "u8" => f64::from(b[0]),
                "u16" => f64::from(u16::from_le_bytes([b[0], b[1]])),
                "u32" => f64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
                _ => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            };
            let values = bytes[at..at + wide * length].chunks(wide).map(number).collect();
            columns.insert(column[0].as_str().unwrap().to_owned(), values);
            at += (wide * length).next_multiple_of(4);
        }
        assert_eq!(at, bytes.len(), "nothing follows");
        (facts, columns)
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read_back(
            name in ".{0,9}",
            bytes in proptest::collection::vec(any::<u8>(), 0..9),
            shorts in proptest::collection::vec(any::<u16>(), 0..9),
            words in proptest::collection::vec(any::<u32>(), 0..9),
            counts in proptest::collection::vec(0u64..1 << 24, 0..9),
        ) {
            let mut packed = Packed::default();
            packed.bytes("bytes", &bytes);
            packed.shorts("shorts", &shorts);
            packed.words("words", &words);
            packed.counts("counts", &counts);
            let facts = Map::from_iter([("fact".to_owned(), Value::from(name.clone()))]);
            let (facts, columns) = unpack(&packed.finish(facts));
            prop_assert_eq!(facts["fact"].as_str(), Some(name.as_str()));
            prop_assert_eq!(&columns["bytes"], &bytes.into_iter().map(f64::from).collect::<Vec<_>>());
            prop_assert_eq!(&columns["shorts"], &shorts.into_iter().map(f64::from).collect::<Vec<_>>());
            prop_assert_eq!(&columns["words"], &words.into_iter().map(f64::from).collect::<Vec<_>>());
            prop_assert_eq!(&columns["counts"], &counts.into_iter().map(|c| c as f64).collect::<Vec<_>>());
        }
    }
}
