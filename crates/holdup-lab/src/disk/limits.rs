//! The limits of a disk, and how people write sizes and limits.

/// What a disk may do in a second, and how long it takes for each request; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes read and written, together.
    pub bytes_per_second: Option<u64>,
    /// Requests read and written, together.
    pub iops: Option<u64>,
    /// Microseconds that each request takes at least, however many are in flight.
    pub latency_us: Option<u64>,
}

/// Reads a size: a whole number, with K, M or G for 1,024 bytes, 1,024 K, 1,024 M.
///
/// # Errors
///
/// If the text is not a size, or is zero.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write e.g. 4096, 128K, 5M or 1G");
    let text = text.trim();
    let (number, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

impl Limits {
    /// Reads lines `bytes_per_second: 5M`, `iops: 200` and `latency_us: 4000`; `none` lifts a limit, `#` begins a
    /// remark. Limits that the lines do not mention come from `otherwise`.
    ///
    /// # Errors
    ///
    /// If a line says something else: the error has its number and what is wrong with it.
    pub fn parse(text: &str, otherwise: Self) -> Result<Self, (usize, String)> {
        let mut limits = otherwise;
        for (line, number) in text.lines().zip(1..) {
            let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |why: String| (number, why);
            let (key, value) = line
                .split_once([':', '='])
                .ok_or_else(|| wrong(format!("`{line}` is not a limit; write e.g. iops: 200")))?;
            let value = match value.trim() {
                "none" => None,
                value => Some(size(value).map_err(wrong)?),
            };
            match key.trim() {
                "bytes_per_second" => limits.bytes_per_second = value,
                "iops" => limits.iops = value,
                "latency_us" => limits.latency_us = value,
                other => {
                    return Err(wrong(format!("`{other}` is unknown; write bytes_per_second, iops or latency_us")));
                }
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("128K"), Ok(131_072));
        assert_eq!(size(" 5M"), Ok(5_242_880));
        assert_eq!(size("2g"), Ok(1 << 31));
        for wrong in ["", "M", "5 MB", "-1", "0", "1.5M", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_changes_what_it_names() {
        let before = Limits { bytes_per_second: Some(1), iops: Some(2), latency_us: None };
        let said = |text| Limits::parse(text, before);
        assert_eq!(said(""), Ok(before));
        assert_eq!(said("iops: 300 # more\n"), Ok(Limits { iops: Some(300), ..before }));
        assert_eq!(said("bytes_per_second = none\niops=1K"), Ok(Limits { iops: Some(1024), ..Limits::default() }));
        assert_eq!(said("latency_us: 4000"), Ok(Limits { latency_us: Some(4_000), ..before }));
        assert_eq!(said("iops: 3\nspeed: 4").map_err(|(line, _)| line), Err(2));
        assert_eq!(said("fast").map_err(|(line, _)| line), Err(1));
    }
}
