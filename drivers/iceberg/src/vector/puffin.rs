//! The Puffin file that holds the deletion vectors of a commit, one blob a data file.
//!
//! Built in memory: manifests must state the exact size of the file and the place of each blob in it. The crate's own
//! writer hides both.

use roaring::RoaringBitmap;
use serde::Serialize;

const MAGIC: [u8; 4] = *b"PFA1";
/// The reserved field id of a row's position, which the reference implementation names as the blob's field.
const ROW_POSITION_ID: i32 = 2_147_483_645;

/// Where a data file's vector lies in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    /// The data file.
    pub(crate) data_file: String,
    /// Where its blob begins.
    pub(crate) offset: u64,
    /// How long the blob is.
    pub(crate) length: u64,
    /// How many rows are dead.
    pub(crate) cardinality: u64,
}

/// The file, and where the vector of each data file lies in it.
pub(crate) fn file<'a>(vectors: impl IntoIterator<Item = (&'a str, &'a RoaringBitmap)>) -> (Vec<u8>, Vec<Placed>) {
    let mut out = MAGIC.to_vec();
    let mut placed = Vec::new();
    for (data_file, rows) in vectors {
        let blob = super::encode(rows);
        placed.push(Placed {
            data_file: data_file.to_owned(),
            offset: out.len() as u64,
            length: blob.len() as u64,
            cardinality: rows.len(),
        });
        out.extend(blob);
    }
    let footer = footer(&placed);
    out.extend(MAGIC);
    out.extend(&footer);
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend([0; 4]); // flags: the footer is not compressed
    out.extend(MAGIC);
    (out, placed)
}

fn footer(placed: &[Placed]) -> Vec<u8> {
    let blobs = placed
        .iter()
        .map(|p| Blob {
            kind: "deletion-vector-v1",
            fields: [ROW_POSITION_ID],
            // The format demands -1 for both: a vector may be written before its snapshot has a number.
            snapshot_id: -1,
            sequence_number: -1,
            offset: p.offset,
            length: p.length,
            properties: BlobProperties { referenced_data_file: &p.data_file, cardinality: p.cardinality.to_string() },
        })
        .collect();
    let created_by = concat!("urutau ", env!("CARGO_PKG_VERSION"));
    let footer = Footer { blobs, properties: FooterProperties { created_by } };
    // Numbers and text under fixed names: this always is JSON.
    serde_json::to_vec(&footer).unwrap_or_default()
}

#[derive(Serialize)]
struct Footer<'a> {
    blobs: Vec<Blob<'a>>,
    properties: FooterProperties,
}

#[derive(Serialize)]
struct FooterProperties {
    #[serde(rename = "created-by")]
    created_by: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Blob<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    fields: [i32; 1],
    snapshot_id: i64,
    sequence_number: i64,
    offset: u64,
    length: u64,
    properties: BlobProperties<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct BlobProperties<'a> {
    referenced_data_file: &'a str,
    cardinality: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_byte_for_byte_what_the_specification_says() {
        let rows = RoaringBitmap::from_iter([1, 3, 5, 7, 9]);
        let (bytes, placed) = file([("file:///t/a.parquet", &rows)]);
        let blob = crate::vector::encode(&rows);
        let footer = concat!(
            r#"{"blobs":[{"type":"deletion-vector-v1","fields":[2147483645],"snapshot-id":-1,"sequence-number":-1,"#,
            r#""offset":4,"length":50,"properties":{"referenced-data-file":"file:///t/a.parquet","cardinality":"5"}}],"#,
            r#""properties":{"created-by":"urutau 0.1.0"}}"#
        );
        let mut expected = b"PFA1".to_vec();
        expected.extend(&blob);
        expected.extend(b"PFA1");
        expected.extend(footer.as_bytes());
        expected.extend([245, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend(b"PFA1");
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected));
        assert_eq!(bytes, expected);
        assert_eq!(placed, [Placed { data_file: "file:///t/a.parquet".into(), offset: 4, length: 50, cardinality: 5 }]);
    }

    #[test]
    fn each_data_file_has_its_own_blob() {
        let (one, two) = (RoaringBitmap::from_iter([7]), RoaringBitmap::from_iter([1, 2, 900_000]));
        let (bytes, placed) = file([("a", &one), ("b", &two)]);
        let blob = |p: &Placed| &bytes[p.offset as usize..(p.offset + p.length) as usize];
        assert_eq!(crate::vector::decode(blob(&placed[0]), 1_000_000).unwrap(), one);
        assert_eq!(crate::vector::decode(blob(&placed[1]), 1_000_000).unwrap(), two);
        assert_eq!((placed[0].cardinality, placed[1].cardinality), (1, 3));
        assert_eq!(placed[1].offset, placed[0].offset + placed[0].length);
    }
}
