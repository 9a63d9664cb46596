//! Opens files as streams of bytes, and unpacks them by content, not by name.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};

use holdup_recording::files;

mod portion;
mod zstd;

/// Bytes from which the kind of a log is recognised.
pub const HEAD: usize = 256 << 10;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// None.
    Plain,
    /// gzip, also of several members.
    Gzip,
    /// Zstandard.
    Zstd,
    /// bzip2.
    Bzip2,
    /// JSON with the log as a text: parts of a log that Amazon RDS keeps.
    Portion,
}

/// Bytes that show how a file is packed: the keys of a JSON object may come in any order.
const BEGIN: usize = 256;

/// The compression of a file that begins with these bytes.
pub fn packing(begin: &[u8]) -> Packing {
    match begin {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Bzip2,
        begin if portion::is_portion(begin) => Packing::Portion,
        _ => Packing::Plain,
    }
}

/// A log that can't be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file does not exist, or may not be read.
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
    /// It is not a log that grows.
    #[error("{}: holdup reads a file of type {format} as a whole: leave out --resume and -f for it", path.display())]
    NotResumable {
        /// The file.
        path: PathBuf,
        /// Its kind.
        format: &'static str,
    },
    /// It does not look like a log.
    #[error("{}: can't recognise the kind of log; give it with --type, one of {}", path.display(), crate::digest::format::Format::names())]
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
    /// Its compression.
    pub packing: Packing,
    /// The file behind `reader`, if it is not packed and can be read from any place.
    pub file: Option<File>,
}

/// Opens a file; `-` is standard input.
///
/// # Errors
///
/// If it cannot be read.
pub fn open(path: &Path) -> Result<Input, InputError> {
    let failed = |error| InputError::Open { path: path.to_owned(), error };
    let mut plain = None;
    let raw: Box<dyn Read + Send> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        if path.is_dir() {
            return Err(InputError::Folder { path: path.to_owned() });
        }
        let file = files::open(path).map_err(failed)?;
        plain = file.try_clone().ok().filter(|file| file.metadata().is_ok_and(|known| known.is_file()));
        Box::new(file)
    };
    let mut input = unpacked(raw).map_err(failed)?;
    input.file = plain.filter(|_| input.packing == Packing::Plain);
    Ok(input)
}

impl Input {
    /// Skips bytes before `offset`; bytes of the head behind it stay. False if the stream is
    /// shorter.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn skip(&mut self, offset: u64) -> io::Result<bool> {
        let length = self.head.len() as u64;
        if offset <= length {
            self.head.drain(..usize::try_from(offset).unwrap_or(usize::MAX).min(self.head.len()));
            return Ok(true);
        }
        self.head.clear();
        if let Some(file) = &mut self.file {
            if file.metadata()?.len() < offset {
                return Ok(false);
            }
            file.seek(io::SeekFrom::Start(offset))?;
            return Ok(true);
        }
        let passed = io::copy(&mut (&mut self.reader).take(offset - length), &mut io::sink())?;
        Ok(passed == offset - length)
    }
}

fn read_up_to(reader: &mut dyn Read, most: usize) -> (Vec<u8>, io::Result<usize>) {
    let mut bytes = Vec::new();
    let result = reader.take(most as u64).read_to_end(&mut bytes);
    (bytes, result)
}

/// A stream, unpacked if necessary.
///
/// # Errors
///
/// If no byte of it can be read.
pub fn unpacked(mut raw: Box<dyn Read + Send>) -> io::Result<Input> {
    let (begin, result) = read_up_to(&mut *raw, BEGIN);
    result?;
    let packing = packing(&begin);
    let whole = io::Cursor::new(begin).chain(raw);
    let mut reader: Box<dyn Read + Send> = match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, whole))),
        Packing::Zstd => Box::new(zstd::Frames::new(io::BufReader::with_capacity(1 << 16, whole))),
        Packing::Portion => Box::new(portion::Portions::new(io::BufReader::with_capacity(1 << 16, whole))),
        Packing::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(io::BufReader::with_capacity(1 << 16, whole))),
    };
    let (head, result) = read_up_to(&mut *reader, HEAD);
    if head.is_empty() {
        result?;
    }
    Ok(Input { reader, head, packing, file: None })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// What a program makes of `bytes`; `None` where there is no such program.
    fn packed(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        use std::io::Write as _;
        let mut child = Command::new(program).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut stdin = child.stdin.take()?;
        let bytes = bytes.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let output = child.wait_with_output().ok()?;
        writer.join().ok()?.ok()?;
        Some(output.stdout)
    }

    fn whole(bytes: Vec<u8>) -> (Packing, Vec<u8>, bool) {
        let mut input = unpacked(Box::new(io::Cursor::new(bytes))).unwrap();
        let mut text = input.head;
        let result = input.reader.read_to_end(&mut text);
        (input.packing, text, result.is_ok())
    }

    #[test]
    fn packed_files_are_recognised_by_their_content() {
        let text: Vec<u8> =
            (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_string().into_bytes()).collect();
        for (program, packing) in
            [("gzip", Packing::Gzip), ("zstd", Packing::Zstd), ("bzip2", Packing::Bzip2), ("nothing", Packing::Plain)]
        {
            let one = if packing == Packing::Plain { Some(text.clone()) } else { packed(program, &text) };
            let Some(one) = one else {
                assert!(std::env::var_os("CI").is_none(), "there is no {program}");
                eprintln!("skipped: there is no {program}");
                continue;
            };
            // Two behind each other are one, as rotation leaves them.
            let (found, unpacked, is_whole) = whole([one.clone(), one.clone()].concat());
            assert_eq!((found, unpacked.len(), is_whole), (packing, text.len() * 2, true), "{program}");
            assert!(unpacked.ends_with(&text));
            // Of Zstandard the last few megabytes before a break are the decoder's own.
            if matches!(packing, Packing::Gzip | Packing::Bzip2) {
                let (_, begin, is_whole) = whole(one[..one.len() / 2].to_vec());
                assert!(
                    text.starts_with(&begin) && !begin.is_empty() && !is_whole,
                    "{program}: a part is read, and said to be one"
                );
            }
        }
    }
}
