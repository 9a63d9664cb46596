//! Checks the claims of a Parquet file against its size before memory is allocated: a recording may
//! come from a stranger. Features that holdup does not write (nested columns, pages of version 2,
//! delta encodings) are refused.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use parquet::basic::{Compression, Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use super::thrift::Thrift;

/// Largest footer, bytes. A row group needs some 4 KiB, so this allows tables of 100 million rows
/// and more.
const FOOTER_BYTES_MAX: u64 = 16 << 20;
/// Most columns of a table, including groups of columns, each of which may nest the next.
const COLUMNS_MAX: u64 = 256;
/// Most rows of a row group; holdup writes 65,536.
const GROUP_ROWS_MAX: i64 = 1 << 18;
/// First read of a page's header, in bytes; nearly all fit.
const HEADER_BYTES: usize = 512;
/// Largest header of a page. It may hold two values of the column.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// Most bytes that Snappy expands from one: three bytes can copy 64.
const SNAPPY_RATIO_MAX: u64 = 22;
/// Fewest bytes of a value in a dictionary.
const VALUE_BYTES_MIN: u64 = 4;

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
/// Plain, dictionary (both names) and run lengths: the encodings of version 1 of the format, and
/// those that holdup writes.
const ENCODINGS: [i64; 4] = [0, 2, 3, 8];

fn wrong<T>(why: impl Into<String>) -> Result<T> {
    Err(ParquetError::General(why.into()))
}

/// Checks the footer of `file` before anything else is read.
pub fn check_footer(file: &File) -> Result<()> {
    let size = file.metadata()?.len();
    let mut end = [0; 8];
    let Some(at) = size.checked_sub(12) else { return wrong("the file is too short to be Parquet") };
    file.read_exact_at(&mut end, at + 4)?;
    let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if &end[4..] != b"PAR1" {
        return wrong("the file has no Parquet footer: it is cut off, or not Parquet");
    }
    if length > at || length > FOOTER_BYTES_MAX {
        return wrong(format!(
            "the footer claims {length} bytes of a file of {size}; at most {FOOTER_BYTES_MAX} are read"
        ));
    }
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, at + 4 - length)?;
    match footer_fits(&footer) {
        Some(true) => Ok(()),
        Some(false) => wrong(format!("the footer names more than {COLUMNS_MAX} columns")),
        None => wrong("the footer is damaged"),
    }
}

/// Whether the schema and each row group have a plausible number of columns.
fn footer_fits(footer: &[u8]) -> Option<bool> {
    let mut fits = true;
    Thrift::new(footer).fields(|thrift, field, kind| {
        let mut ahead = *thrift;
        match field {
            2 => fits &= ahead.list()?.1 <= COLUMNS_MAX,
            4 => {
                let (_, groups) = ahead.list()?;
                for _ in 0..groups {
                    ahead.fields(|group, field, kind| {
                        let mut columns = *group;
                        if field == 1 {
                            fits &= columns.list()?.1 <= COLUMNS_MAX;
                        }
                        group.skip(kind)
                    })?;
                }
            }
            _ => {}
        }
        thrift.skip(kind)
    })?;
    Some(fits)
}

/// Checks a row group of `file` and those of its columns that are read.
pub fn check_group(file: &File, group: &RowGroupMetaData, positions: &[Option<usize>]) -> Result<()> {
    let rows = group.num_rows();
    if !(0..=GROUP_ROWS_MAX).contains(&rows) {
        return wrong(format!("a row group claims {rows} rows; at most {GROUP_ROWS_MAX} are read"));
    }
    if group.num_columns() != group.schema_descr().num_columns() {
        return wrong("a row group lacks columns");
    }
    let size = file.metadata()?.len();
    for position in positions.iter().flatten() {
        check_column(file, size, rows, group.column(*position))?;
    }
    Ok(())
}

fn check_column(file: &File, size: u64, rows: i64, column: &ColumnChunkMetaData) -> Result<()> {
    let descriptor = column.column_descr();
    let name = descriptor.name();
    if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
        return wrong(format!("column {name} is nested"));
    }
    let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = u64::try_from(begin).ok().zip(u64::try_from(column.compressed_size()).ok());
    let Some((begin, end)) = range.and_then(|(begin, length)| Some((begin, begin.checked_add(length)?))) else {
        return wrong(format!("column {name} begins or ends before the file"));
    };
    if end > size {
        return wrong(format!("column {name} claims bytes up to {end} of a file of {size}"));
    }
    let (mut at, mut left) = (begin, rows);
    while at < end {
        let page = page_at(file, at, end)
            .ok_or_else(|| ParquetError::General(format!("column {name} has a damaged page header at byte {at}")))?;
        if let Some(why) = page.claim(column, end - at, left) {
            return wrong(format!("column {name}: the page at byte {at} {why}"));
        }
        left -= if page.kind == DATA { page.values } else { 0 };
        at += page.header + page.compressed as u64;
    }
    Ok(())
}

#[derive(Default)]
struct Page {
    /// Bytes of its header.
    header: u64,
    kind: i64,
    uncompressed: i64,
    compressed: i64,
    values: i64,
    encoding: i64,
}

impl Page {
    /// An impossible claim, for a column with `bytes` and `rows` left.
    fn claim(&self, column: &ColumnChunkMetaData, bytes: u64, rows: i64) -> Option<String> {
        let (Ok(compressed), Ok(uncompressed)) = (u64::try_from(self.compressed), u64::try_from(self.uncompressed))
        else {
            return Some("claims a negative size".to_owned());
        };
        let most = match column.compression() {
            Compression::SNAPPY => compressed.saturating_mul(SNAPPY_RATIO_MAX),
            _ => compressed,
        };
        let values = match self.kind {
            DATA => rows,
            _ => (uncompressed / VALUE_BYTES_MIN) as i64,
        };
        if self.header.saturating_add(compressed) > bytes {
            return Some(format!("claims {compressed} bytes, but the column ends before"));
        }
        if uncompressed > most {
            return Some(format!("claims that {compressed} bytes unpack to {uncompressed}"));
        }
        if !(0..=values).contains(&self.values) {
            return Some(format!("claims {} values where at most {values} can be", self.values));
        }
        let is_bits = column.column_type() == Type::BOOLEAN && self.kind == DICTIONARY;
        (![DATA, DICTIONARY].contains(&self.kind) || !ENCODINGS.contains(&self.encoding) || is_bits)
            .then(|| "is of a kind that holdup does not write".to_owned())
    }
}

fn page_at(file: &File, at: u64, end: u64) -> Option<Page> {
    let left = usize::try_from(end - at).ok()?;
    [HEADER_BYTES, HEADER_BYTES_MAX].into_iter().find_map(|most| {
        let mut bytes = vec![0; most.min(left)];
        file.read_exact_at(&mut bytes, at).ok()?;
        page(&bytes)
    })
}

fn page(bytes: &[u8]) -> Option<Page> {
    let mut page = Page { kind: -1, values: -1, encoding: -1, ..Page::default() };
    let mut thrift = Thrift::new(bytes);
    thrift.fields(|thrift, field, kind| {
        match field {
            1 => page.kind = thrift.integer()?,
            2 => page.uncompressed = thrift.integer()?,
            3 => page.compressed = thrift.integer()?,
            5 | 7 => thrift.fields(|inner, field, kind| {
                match field {
                    1 => page.values = inner.integer()?,
                    2 => page.encoding = inner.integer()?,
                    _ => inner.skip(kind)?,
                }
                Some(())
            })?,
            _ => thrift.skip(kind)?,
        }
        Some(())
    })?;
    page.header = thrift.read() as u64;
    Some(page)
}
