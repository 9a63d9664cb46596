//! `--watch instance:CLASS` and `--watch volume:TYPE[:SIZE[:IOPS[:BYTES]]]`: the user's statement
//! about the machine and the disk, which no server there can report. It is only recorded here; the
//! diagnosis derives the limits. A size may be left empty: `volume:gp3::6000:250M`.

use holdup_recording::{Batch, Coverage};

use crate::options::Options;
use crate::reading::tell;
use crate::{Collector, ProbeError, ReadError};

/// Name of the source.
pub const TOLD: &str = "told";

/// The stated hardware, as settings.
struct Hardware {
    address: String,
    settings: Vec<(&'static str, String)>,
}

/// The collector for `instance:db.r5.2xlarge`.
pub(crate) fn instance(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    if !is_word(rest) {
        return Err("expected a class, e.g. instance:db.r5.2xlarge".to_owned());
    }
    let settings = vec![("instance.class", rest.to_owned())];
    Ok(Box::new(Hardware { address: format!("instance:{rest}"), settings }))
}

/// The collector for `volume:gp3:500G:3000:125M`.
pub(crate) fn volume(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Hardware { address: format!("volume:{rest}"), settings: of_volume(rest)? }))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(letter))
}

fn of_volume(rest: &str) -> Result<Vec<(&'static str, String)>, String> {
    let mut parts = rest.split(':');
    let kind = parts.next().filter(|kind| is_word(kind));
    let kind = kind.ok_or("expected a type, e.g. volume:gp3:500G:3000:125M, volume:pd-ssd:1T or volume:P30")?;
    let mut settings = vec![("volume.type", kind.to_owned())];
    for (name, what) in [
        ("volume.size_bytes", "a size, e.g. 500G"),
        ("volume.iops", "operations a second, e.g. 3000"),
        ("volume.throughput_bytes_per_second", "bytes a second, e.g. 125M"),
    ] {
        let Some(text) = parts.next().filter(|text| !text.is_empty()) else { continue };
        let value = number(text).ok_or_else(|| format!("{text}: expected {what}"))?;
        settings.push((name, value.to_string()));
    }
    match parts.next() {
        Some(more) => Err(format!("{more}: remove it; bytes a second is the last field of volume:")),
        None => Ok(settings),
    }
}

/// `500G` as 500 x 1024³: clouds count the size and the throughput of volumes in binary multiples.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let power =
        ["", "K", "M", "G", "T"].iter().position(|unit| text[digits.len()..].trim_end_matches("iB") == *unit)?;
    let value: u64 = digits.parse().ok()?;
    value.checked_mul(1024_u64.checked_pow(u32::try_from(power).ok()?)?).filter(|value| *value > 0)
}

impl Collector for Hardware {
    fn source(&self) -> String {
        self.address.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        Ok(Coverage::with_parts(&self.source(), Vec::new()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        tell(batch, TOLD, self.settings.iter().cloned());
        Ok(())
    }

    fn sample(&mut self, _: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_and_volume_become_settings() {
        let told = |address| {
            let mut batch = Batch::default();
            let collector = crate::watch::collector(address, &Options::default()).map_err(|error| error.to_string());
            collector?.settings(&mut batch).map_err(|error| error.to_string())?;
            Ok::<_, String>(batch.settings.into_iter().map(|setting| setting.value).collect::<Vec<_>>())
        };
        assert_eq!(told("instance:db.r5.2xlarge").unwrap(), ["db.r5.2xlarge"]);
        assert_eq!(told("volume:gp3:500G:3000:125M").unwrap(), ["gp3", "536870912000", "3000", "131072000"]);
        assert_eq!(told("volume:gp3::6000").unwrap(), ["gp3", "6000"]);
        assert_eq!(told("volume:P30").unwrap(), ["P30"]);
        for (wrong, way_out) in [
            ("volume:", "e.g. volume:gp3"),
            ("volume:gp3:big", "big: expected a size"),
            ("volume:gp3:5G:3000:1M:9", "9: remove it"),
            ("volume:gp3:0G", "expected a size"),
            ("instance:", "e.g. instance:"),
        ] {
            assert!(told(wrong).unwrap_err().contains(way_out), "{wrong}");
        }
    }
}
