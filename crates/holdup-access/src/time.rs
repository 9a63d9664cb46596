//! The date formats of logs, as nanoseconds since the Unix epoch. A time without a time zone is
//! UTC.

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

/// Reads a time: RFC 3339 (`2024-05-01T12:00:00.123Z`, also with a blank for the `T`), the common
/// log's date (`10/Oct/2000:13:55:36 -0700`), or seconds, milliseconds, microseconds or nanoseconds
/// since the epoch.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.as_bytes() {
        [_, _, b'/', ..] => common(text),
        [_, _, _, _, b'-', ..] => iso(text),
        bytes => epoch_text(bytes),
    }
}

/// A number since the epoch. Its size tells the unit: until the year 5138 seconds have at most 11
/// digits.
pub fn epoch(value: f64) -> Option<i64> {
    let unit_ns = match value {
        v if !(0.0..1e19).contains(&v) => return None,
        v if v < 1e11 => 1e9,
        v if v < 1e14 => 1e6,
        v if v < 1e17 => 1e3,
        _ => 1.0,
    };
    let ns = value * unit_ns;
    (ns < 9.2e18).then_some(ns as i64)
}

/// The same from text, without losing digits.
fn epoch_text(bytes: &[u8]) -> Option<i64> {
    let dot = bytes.iter().position(|&b| b == b'.').unwrap_or(bytes.len());
    let (whole, fraction) = (number(&bytes[..dot])?, bytes.get(dot + 1..).unwrap_or_default());
    let unit_ns: i64 = match whole {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    whole.checked_mul(unit_ns)?.checked_add(nanoseconds(fraction)? / (1_000_000_000 / unit_ns))
}

/// `10/Oct/2000:13:55:36 -0700`, also with fractional seconds or without a zone.
fn common(text: &str) -> Option<i64> {
    let read = |form: &str| BrokenDownTime::parse(form, text).ok();
    let found = read("%d/%b/%Y:%H:%M:%S%.f %z").or_else(|| read("%d/%b/%Y:%H:%M:%S%.f"))?;
    nanoseconds_of(found.to_datetime().ok()?, found.offset())
}

/// `2024-05-01T12:00:00.123+02:00`; a blank may precede the zone, as Ruby writes it.
fn iso(text: &str) -> Option<i64> {
    let text = [" UTC", " GMT"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text);
    let joined = text.rsplit_once(' ').filter(|(_, zone)| zone.starts_with(['+', '-']));
    let joined = joined.map(|(moment, zone)| format!("{moment}{zone}"));
    let found = Pieces::parse(joined.as_deref().unwrap_or(text)).ok()?;
    nanoseconds_of(found.date().to_datetime(found.time()?), found.to_numeric_offset())
}

fn nanoseconds_of(local: DateTime, zone: Option<Offset>) -> Option<i64> {
    let moment = zone.unwrap_or(Offset::UTC).to_timestamp(local).ok()?;
    i64::try_from(moment.as_nanosecond()).ok().filter(|ns| *ns >= 0)
}

/// Digits only, at most 19 of them.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0i64, |sum, b| {
        let digit = b.is_ascii_digit().then(|| i64::from(b - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The digits behind the decimal point of a second, as nanoseconds; further ones are cut off.
fn nanoseconds(fraction: &[u8]) -> Option<i64> {
    let mut ns = 0;
    for i in 0..9 {
        let digit = fraction.get(i).map_or(Some(0), |b| b.is_ascii_digit().then(|| i64::from(b - b'0')))?;
        ns = ns * 10 + digit;
    }
    fraction.iter().all(u8::is_ascii_digit).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_writing_it() {
        let second = 971_211_336_000_000_000;
        for text in [
            "10/Oct/2000:13:55:36 -0700",
            "10/oct/2000:20:55:36 +0000",
            "10/Oct/2000:20:55:36",
            "2000-10-10T20:55:36Z",
            "2000-10-10 22:55:36+02:00",
            "2000-10-10t22:55:36+0200",
            "2000-10-10T13:55:36-07",
            "2000-10-10 22:55:36 +0200",
            "2000-10-10 20:55:36 UTC",
            "971211336",
            " 971211336000 ",
            "971211336000000",
            "971211336000000000",
        ] {
            assert_eq!(parse(text), Some(second), "{text}");
        }
        for (text, more) in [
            ("2000-10-10T20:55:36.123456789Z", 123_456_789),
            ("10/Oct/2000:13:55:36.5 -0700", 500_000_000),
            ("2000-10-10 20:55:36,25", 250_000_000),
            ("971211336.000000001", 1),
            ("971211336000.25", 250_000),
        ] {
            assert_eq!(parse(text), Some(second + more), "{text}");
        }
        assert_eq!(epoch(971_211_336.5), Some(second + 500_000_000));
        assert_eq!(parse("2000-02-29T00:00:00Z").unwrap() / 86_400_000_000_000, 11_016);
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "-",
            "yesterday",
            "10/Okt/2000:13:55:36 -0700",
            "2000-13-10T20:55:36Z",
            "2000-10-10T24:55:36Z",
            "2000-10-10",
            "2000-10-10T20:55:36 Mars",
            "2000-02-30T20:55:36Z",
            "2000-10-10T20:55:36.Z",
            "9999-01-01T00:00:00Z",
            "1e9",
            "99999999999999999999",
            "12.x",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for number in [-1.0, f64::NAN, f64::INFINITY, 1e18 * 9.5] {
            assert_eq!(epoch(number), None);
        }
    }
}
