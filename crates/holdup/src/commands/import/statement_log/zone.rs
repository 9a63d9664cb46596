//! The time zone of a log, by its first time stamp. A zone's name is not looked up, except UTC's.

use holdup_logs::digest::time::date_time;

/// Bytes that are searched for a time stamp.
const LOOKED_AT: usize = 4 << 10;

/// Names of UTC.
const UTC: [&str; 5] = ["UTC", "GMT", "Z", "Etc", "Universal"];

/// See the module.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Zone {
    /// How far its clock is ahead of UTC, nanoseconds.
    pub ahead_ns: i64,
    /// Its name, if that does not say how far.
    name: Option<String>,
}

impl Zone {
    /// Of a log that begins like this.
    pub fn find(head: &[u8]) -> Self {
        let head = head.get(..head.len().min(LOOKED_AT)).unwrap_or_default();
        let stamp = (0..head.len()).find_map(|at| {
            let (_, length) = date_time(head.get(at..)?)?;
            head.get(at + length..)
        });
        let behind = String::from_utf8_lossy(stamp.unwrap_or_default());
        let behind = behind.strip_prefix(' ').unwrap_or(&behind);
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | ':'));
        let name = behind.split(is_end).next().unwrap_or_default();
        if let Some(seconds) = offset(name) {
            return Self { ahead_ns: seconds * 1_000_000_000, name: None };
        }
        let is_name = (2..=5).contains(&name.len()) && name.chars().all(|c| c.is_ascii_uppercase());
        Self { ahead_ns: 0, name: (is_name && !UTC.contains(&name)).then(|| name.to_owned()) }
    }

    /// What is not known.
    pub fn note(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        Some(format!("the log has times of the zone {name}, which were read as UTC"))
    }
}

/// Seconds of `+02:00`, `-0330` or `+02`.
fn offset(name: &str) -> Option<i64> {
    let (sign, rest) = name.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits: String = rest.chars().filter(char::is_ascii_digit).take(4).collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..).filter(|rest| rest.len() == 2).map_or(Some(0), |rest| rest.parse().ok())?;
    Some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_offset_and_named_otherwise() {
        let of = |head: &str| {
            let zone = Zone::find(head.as_bytes());
            (zone.ahead_ns / 1_000_000_000, zone.note().is_some())
        };
        assert_eq!(of("2026-11-28 10:21:58.200 UTC [47] LOG:  x"), (0, false));
        assert_eq!(of("{\"t\":{\"$date\":\"2026-11-28T09:00:00.000+02:00\"}"), (7_200, false));
        assert_eq!(of("2026-11-28T09:00:00.000-0330 I COMMAND"), (-12_600, false));
        assert_eq!(of("2026-11-28 10:21:58 +05 [47] LOG:  x"), (18_000, false));
        assert_eq!(of("2026-11-28 10:21:58.200 CET [47] LOG:  x"), (0, true));
        assert_eq!(of("[47] LOG:  x"), (0, false));
    }
}
