//! Concatenates documents, with a header line of their positions.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Documents by name, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Archive {
    names: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Archive {
    /// Appends a document under its name.
    pub fn add(&mut self, name: String, document: &[u8]) {
        self.names.insert(name, json!([self.bytes.len(), document.len()]));
        self.bytes.extend_from_slice(document);
        // The next document begins at a multiple of four, because it is read in place.
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The compressed archive: `{"names":{NAME:[offset,length],…}}`, a line feed, and the bytes in which offsets count.
    #[must_use]
    pub fn compressed(self) -> Vec<u8> {
        let mut whole = json!({ "names": self.names }).to_string().into_bytes();
        whole.push(b'\n');
        whole.extend(self.bytes);
        gzip(&whole, Compression::best())
    }
}

/// Approximate size of a document in an archive.
#[must_use]
pub fn size(document: &[u8]) -> usize {
    gzip(document, Compression::fast()).len()
}

fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory takes what is written to it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_document_lies_where_the_first_line_says() {
        let documents = [("a", vec![1, 2, 3]), ("b/c", vec![]), ("b\n", vec![b'\n'; 9])];
        let mut archive = Archive::default();
        documents
            .iter()
            .for_each(|(name, bytes)| archive.add((*name).to_owned(), bytes));
        let mut plain = Vec::new();
        let compressed = archive.compressed();
        flate2::read::GzDecoder::new(compressed.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        let start = plain.iter().position(|b| *b == b'\n').unwrap() + 1;
        let head: Value = serde_json::from_slice(&plain[..start]).unwrap();
        for (name, bytes) in documents {
            let [offset, length] = [0, 1].map(|i| head["names"][name][i].as_u64().unwrap() as usize);
            assert_eq!(plain[start + offset..][..length], bytes[..]);
        }
    }
}
