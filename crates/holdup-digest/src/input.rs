//! Files as streams of bytes, unpacked by what they hold and not by their names.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes that are looked at to tell what a log is.
pub const HEAD: usize = 256 << 10;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// gzip, also of several members.
    Gzip,
    /// Zstandard.
    Zstd,
    /// bzip2.
    Bzip2,
}

/// How the file that begins so is packed.
pub fn packing(begin: &[u8]) -> Packing {
    match begin {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Bzip2,
        _ => Packing::Plain,
    }
}

/// A log that can't be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// No such file, or no right to read it.
    #[error("can't read {}: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is a folder.
    #[error("{} is a folder: name the files in it, e.g. {}/*.log", path.display(), path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing in it looks like a log.
    #[error("{}: can't tell what kind of log this is; say so with --type, one of {}", path.display(), crate::format::Format::names())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
}

/// An open log.
pub struct Input {
    /// Its unpacked bytes behind `head`.
    pub reader: Box<dyn Read + Send>,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// How it is packed.
    pub packing: Packing,
}

/// Opens a file; `-` is standard input.
///
/// # Errors
/// If it can't be read.
pub fn open(path: &Path) -> Result<Input, InputError> {
    let failed = |error| InputError::Open { path: path.to_owned(), error };
    let raw: Box<dyn Read + Send> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        if path.is_dir() {
            return Err(InputError::Folder { path: path.to_owned() });
        }
        Box::new(File::open(path).map_err(failed)?)
    };
    unpacked(raw).map_err(failed)
}

fn read_up_to(reader: &mut dyn Read, most: usize) -> (Vec<u8>, io::Result<usize>) {
    let mut bytes = Vec::new();
    let result = reader.take(most as u64).read_to_end(&mut bytes);
    (bytes, result)
}

/// A stream, unpacked if it is packed.
///
/// # Errors
/// If nothing can be read of it.
pub fn unpacked(mut raw: Box<dyn Read + Send>) -> io::Result<Input> {
    let (begin, result) = read_up_to(&mut *raw, 8);
    result?;
    let packing = packing(&begin);
    let whole = io::Cursor::new(begin).chain(raw);
    let mut reader: Box<dyn Read + Send> = match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, whole))),
        Packing::Zstd | Packing::Bzip2 => {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "unpack it first"));
        }
    };
    let (head, result) = read_up_to(&mut *reader, HEAD);
    if head.is_empty() {
        result?;
    }
    Ok(Input { reader, head, packing })
}
