//! Parquet files as an attacker would write them: they are refused by what they claim, in little memory.

use parquet::basic::{Encoding, Type as Physical};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::*;
use crate::rows::Sample;

const INT: u8 = 0x15;

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn integer(number: i64, out: &mut Vec<u8>) {
    out.push(INT);
    varint(((number << 1) ^ (number >> 63)) as u64, out);
}

/// A page: kind, bytes that it claims to unpack to, values that it claims to hold, encoding, and what is there.
fn page((kind, uncompressed, values, encoding): (i64, i64, i64, i64), bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    integer(kind, &mut out);
    integer(uncompressed, &mut out);
    integer(bytes.len() as i64, &mut out);
    out.push(if kind == 2 { 0x4c } else { 0x2c });
    integer(values, &mut out);
    integer(encoding, &mut out);
    if kind == 0 {
        integer(3, &mut out);
        integer(3, &mut out);
    }
    out.extend([0, 0]);
    out.extend(bytes);
    out
}

/// A file with one row group of one column of samples, `source`, that holds `pages` and claims `rows`.
fn written(dir: &Path, pages: &[u8], rows: i64, length: i64) -> PathBuf {
    let source = Type::primitive_type_builder("source", Physical::BYTE_ARRAY)
        .with_repetition(parquet::basic::Repetition::REQUIRED)
        .build()
        .unwrap();
    let schema = Type::group_type_builder("samples").with_fields(vec![Arc::new(source)]).build().unwrap();
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
    let column = ColumnChunkMetaData::builder(schema.column(0))
        .set_compression(Compression::SNAPPY)
        .set_encodings(vec![Encoding::PLAIN])
        .set_data_page_offset(4)
        .set_num_values(rows)
        .set_total_compressed_size(length)
        .set_total_uncompressed_size(length)
        .build()
        .unwrap();
    let group = RowGroupMetaData::builder(Arc::clone(&schema))
        .set_num_rows(rows)
        .set_column_metadata(vec![column])
        .build()
        .unwrap();
    let file = FileMetaData::new(1, rows, None, None, schema, None);
    let metadata = ParquetMetaData::new(file, vec![group]);
    let mut bytes = [b"PAR1", pages].concat();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
    let path = dir.join("samples.parquet");
    fs::write(&path, bytes).unwrap();
    path
}

/// Most memory that this process has had, MiB.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// The rows of one Parquet file.
fn read_file<R: Row>(path: &Path) -> Result<Vec<R>, SegmentError> {
    Ok(row_groups(path).collect::<Result<Vec<_>, _>>()?.concat())
}

/// Segments of a busy host are large once they are merged: the last merge must not need memory for all rows of one.
#[test]
fn a_merge_holds_row_groups_and_not_files() {
    const GROUPS: usize = 12;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
    let part = dir.path().join(SEGMENTS).join("samples-00000001+00000064.parquet");
    let group = || Ok(vec![Sample::default(); ROW_GROUP_ROWS]);
    write_file(&part, &[], (0..GROUPS).map(|_| group())).unwrap();
    let before = peak_mib();
    assert_eq!(
        merge_table::<Sample>(dir.path(), &all_segments(dir.path()), true).unwrap(),
        (GROUPS * ROW_GROUP_ROWS) as u64
    );
    let grown = peak_mib() - before;
    assert!(grown < 64, "{grown} MiB more for {GROUPS} row groups of {} bytes a row", size_of::<Sample>());
    assert_eq!(row_groups::<Sample>(&table_path(dir.path(), "samples")).count(), GROUPS);
    assert!(!part.exists());
}

fn refused(path: &Path, why: &str) {
    let error = read_file::<Sample>(path).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
    assert!(peak_mib() < 300, "{why}: {} MiB", peak_mib());
}

fn snappy(size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(size, &mut out);
    out
}

/// One value, "host", in a plain page.
const PLAIN: &[u8] = b"\x08\x1c\x04\x00\x00\x00host";

#[test]
fn an_honest_file_of_this_kind_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let pages = page((0, 8, 1, 0), PLAIN);
    let path = written(dir.path(), &pages, 1, pages.len() as i64);
    assert_eq!(read_file::<Sample>(&path).unwrap()[0].source.as_str(), "host");
}

#[test]
fn a_row_group_that_claims_a_trillion_rows_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pages = page((0, 8, 1, 0), PLAIN);
    for rows in [1 << 40, i64::MAX, -1] {
        let path = written(dir.path(), &pages, rows, pages.len() as i64);
        refused(&path, &format!("claims {rows} rows"));
    }
    let path = written(dir.path(), &pages, 2, pages.len() as i64);
    assert!(read_file::<Sample>(&path).is_err());
}

#[test]
fn a_page_that_claims_gigabytes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let size = i64::from(i32::MAX);
    let claims = [
        (page((0, size, 1, 0), &snappy(size as u64)), "unpack to"),
        (page((2, 8, size, 0), PLAIN), "claims 2147483647 values"),
        (page((0, 8, size, 0), PLAIN), "claims 2147483647 values"),
        (page((0, -1, 1, 0), PLAIN), "negative size"),
        (page((0, 8, 1, 5), PLAIN), "does not write"),
        (page((3, 8, 1, 0), PLAIN), "does not write"),
        // Statistics, a text of 2^62 bytes.
        (
            vec![0x15, 0, 0x15, 16, 0x15, 16, 0x2c, 0x5c, 0x18, 255, 255, 255, 255, 255, 255, 255, 255, 63],
            "damaged page",
        ),
    ];
    for (pages, why) in claims {
        let path = written(dir.path(), &pages, 1, pages.len() as i64);
        refused(&path, why);
    }
}

#[test]
fn a_column_outside_of_the_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pages = page((0, 8, 1, 0), PLAIN);
    for length in [1 << 40, i64::MAX] {
        refused(&written(dir.path(), &pages, 1, length), "claims bytes up to");
    }
    refused(&written(dir.path(), &pages, 1, -1), "before the file");
}

/// A dictionary of one text of 1 MiB that each of 262,144 rows repeats: 50 KB become 256 GiB.
#[test]
fn a_text_that_each_row_repeats_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = [&(1_u32 << 20).to_le_bytes()[..], &vec![b'x'; 1 << 20]].concat();
    let packed = snap::raw::Encoder::new().compress_vec(&text).unwrap();
    let mut pages = page((2, text.len() as i64, 1, 0), &packed);
    let rows = 1 << 18;
    // Indexes of one bit, all zero, as one run.
    let mut indexes = vec![1];
    varint(rows << 1, &mut indexes);
    indexes.push(0);
    let packed = snap::raw::Encoder::new().compress_vec(&indexes).unwrap();
    pages.extend(page((0, indexes.len() as i64, rows as i64, 8), &packed));
    let path = written(dir.path(), &pages, rows as i64, pages.len() as i64);
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
    let error = read_file::<Sample>(&path).unwrap_err().to_string();
    assert!(error.contains("unpack to more than"), "{error}");
    assert!(peak_mib() < 700, "{} MiB", peak_mib());
}

/// A plain value that is longer than its page: the library panics.
#[test]
fn a_page_that_is_damaged_inside_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in [&b"\x02\x04\x04\x00"[..], b"\x08\x1c\xff\xff\xff\x7fhost"] {
        let pages = page((0, i64::from(bytes[0]), 1, 0), bytes);
        assert!(read_file::<Sample>(&written(dir.path(), &pages, 1, pages.len() as i64)).is_err());
    }
}

#[test]
fn a_footer_is_held_against_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("samples.parquet");
    // A schema of 100,000 groups, each in the one before.
    let mut deep = vec![INT, 2, 0x19, 0xfc];
    varint(100_000, &mut deep);
    deep.extend([0x48, 0, INT, 2, 0].repeat(100_000));
    deep.extend([0x16, 0, 0x19, 0x0c, 0]);
    let footers = [
        (deep.clone(), deep.len() as u32, "more than 256 columns"),
        (vec![INT, 2], u32::MAX, "claims 4294967295 bytes"),
        (vec![INT, 2, 0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 7], 9, "damaged"),
        (vec![0x1c; 100_000], 100_000, "damaged"),
    ];
    for (footer, length, why) in footers {
        fs::write(&path, [b"PAR1", &footer[..], &length.to_le_bytes(), b"PAR1"].concat()).unwrap();
        refused(&path, why);
    }
    for short in [&b""[..], b"PAR1", b"PAR1PAR1", b"PAR1\0\0\0\0PAR1"] {
        fs::write(&path, short).unwrap();
        assert!(read_file::<Sample>(&path).is_err());
    }
}

/// A writer merges two parts while a reader opens them: once the reader has opened the first, they are gone and their sum is
/// there. What it opened before is not the table.
#[test]
fn parts_that_are_merged_meanwhile_are_listed_again() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["samples-00000001.parquet", "samples-00000002.parquet"].map(|name| dir.path().join(name));
    let merged = dir.path().join("samples-00000001+00000002.parquet");
    for removed in [&[][..], &[&second], &[&first, &second]] {
        for part in [&first, &second] {
            fs::write(part, "a part").unwrap();
        }
        let _ = fs::remove_file(&merged);
        let list = || if merged.exists() { vec![merged.clone()] } else { vec![first.clone(), second.clone()] };
        let opened = open_unchanged(list, |path| {
            let file = io(path, files::open(path));
            fs::write(&merged, "both").unwrap();
            removed.iter().for_each(|part| drop(fs::remove_file(part)));
            file
        });
        let paths: Vec<PathBuf> = opened.unwrap().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, std::slice::from_ref(&merged), "with {} parts removed already", removed.len());
    }
}
