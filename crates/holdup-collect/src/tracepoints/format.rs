//! A tracepoint's id, and the positions of the fields in its records. Positions differ between
//! kernels, so they are read from the tracepoint's `format` file each time.

use std::path::{Path, PathBuf};

use crate::ProbeError;

/// Where the tracing file system is mounted, the usual place first.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The mounted tracing file system.
///
/// # Errors
/// If it is not mounted, or may not be read; the text says what to run.
pub(super) fn root() -> Result<PathBuf, ProbeError> {
    let why = match ROOTS.iter().map(Path::new).find(|root| root.join("events").is_dir()) {
        Some(root) if std::fs::read_dir(root.join("events/block")).is_ok() => return Ok(root.to_owned()),
        Some(root) => format!("{} is not readable; run holdup as root", root.display()),
        None => {
            "the tracing file system is not mounted; run: mount -t tracefs nodev /sys/kernel/tracing (and run holdup as root)"
                .to_owned()
        }
    };
    Err(ProbeError::unreachable(super::SOURCE, why))
}

/// A tracepoint of this kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Its id, for `perf_event_open`.
    pub id: u64,
    fields: Vec<Field>,
}

#[derive(Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
}

impl Format {
    /// Reads `events/NAME/format` below `root`.
    ///
    /// # Errors
    /// If the tracepoint does not exist or its format is unknown, as a message.
    pub fn read(root: &Path, name: &str) -> Result<Self, String> {
        let path = root.join("events").join(name).join("format");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&text)
            .ok_or_else(|| format!("{}: unknown format; this kernel's tracepoint is not supported", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(|line| {
            // `	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;`
            let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
            let declaration = parts.next()?;
            let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
            let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
            let name = declaration.rsplit(' ').next()?.split('[').next()?.to_owned();
            Some(Field { name, offset, size })
        });
        Some(Self { id, fields: fields.collect() })
    }

    /// The bytes of field `name` in a record's raw data; none if either lacks it.
    pub fn bytes<'r>(&self, raw: &'r [u8], name: &str) -> Option<&'r [u8]> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        raw.get(field.offset..field.offset.checked_add(field.size)?)
    }

    /// Field `name` as a number of at most eight bytes, in native byte order.
    pub fn number(&self, raw: &[u8], name: &str) -> Option<u64> {
        let bytes = self.bytes(raw, name)?;
        let mut whole = [0; 8];
        let place = if cfg!(target_endian = "little") { 0..bytes.len() } else { 8_usize.checked_sub(bytes.len())?..8 };
        whole.get_mut(place)?.copy_from_slice(bytes);
        Some(u64::from_ne_bytes(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char rwbs[10];\toffset:12;\tsize:10;\tsigned:0;\n\n\
        print fmt: \"%d\", REC->dev\n";

    #[test]
    fn fields_are_found_by_name_and_a_short_record_has_none() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!(format.id, 2104);
        let mut raw = vec![0; 22];
        raw[8..12].copy_from_slice(&7_u32.to_ne_bytes());
        raw[12] = b'R';
        assert_eq!(format.number(&raw, "dev"), Some(7));
        assert_eq!(format.bytes(&raw, "rwbs").unwrap()[0], b'R');
        assert_eq!(format.number(&raw[..10], "dev"), None);
        assert_eq!(format.number(&raw, "rwbs"), None, "no number of ten bytes");
        assert_eq!(format.number(&raw, "sector"), None);
    }

    #[test]
    fn invalid_formats_are_refused() {
        assert_eq!(Format::parse("name: x\n"), None);
        assert_eq!(Format::parse("ID: many\n"), None);
    }
}
