//! The ways in which logs write a moment, as nanoseconds since the Unix epoch. A moment without a time zone is UTC.

use holdup_recording::clock::days;

/// Reads a moment: RFC 3339 (`2024-05-01T12:00:00.123Z`, also with a blank for the `T`), the common log's date
/// (`10/Oct/2000:13:55:36 -0700`), or seconds, milliseconds, microseconds or nanoseconds since the epoch.
pub fn parse(text: &str) -> Option<i64> {
    let bytes = text.trim().as_bytes();
    match bytes {
        [_, _, b'/', ..] => common(bytes),
        [_, _, _, _, b'-', ..] => rfc3339(bytes),
        _ => epoch_text(bytes),
    }
}

/// A number since the epoch. Which unit follows from its size: until the year 5138 seconds have 11 digits at most.
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

/// The same from digits, of which none is lost.
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

/// `10/Oct/2000:13:55:36 -0700`, with a fraction of the second or without a zone too.
fn common(bytes: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let [d1, d2, b'/', m1, m2, m3, b'/', y1, y2, y3, y4, b':', rest @ ..] = bytes else { return None };
    let month = [*m1, *m2, *m3].map(|b| b.to_ascii_lowercase());
    let month = MONTHS.iter().position(|m| *m == month)? as i64 + 1;
    moment(number(&[*y1, *y2, *y3, *y4])?, month, number(&[*d1, *d2])?, rest)
}

/// `2024-05-01T12:00:00.123+02:00`.
fn rfc3339(bytes: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T' | b't' | b' ' | b'_', rest @ ..] = bytes else { return None };
    moment(number(&[*y1, *y2, *y3, *y4])?, number(&[*m1, *m2])?, number(&[*d1, *d2])?, rest)
}

/// `rest` is the time of day and the zone.
fn moment(year: i64, month: i64, day: i64, rest: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = rest else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    // Nanoseconds fit in 63 bits until 2262. The 60th second is a leap second.
    let sane = (1970..=2261).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, rest) = match rest {
        [b'.' | b',', rest @ ..] => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            (nanoseconds(&rest[..digits])?, &rest[digits..])
        }
        _ => (0, rest),
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - zone(rest)?;
    (seconds >= 0).then_some(seconds * 1_000_000_000 + fraction)
}

/// Seconds east of Greenwich: `Z`, `+02:00`, `-0700`, `+02`, or nothing.
fn zone(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.trim_ascii() {
        b"" | b"Z" | b"z" | b"UTC" | b"GMT" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [h1, h2] => (number(&[*h1, *h2])?, 0),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => (number(&[*h1, *h2])?, number(&[*m1, *m2])?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
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

/// The digits behind the point of a second, as nanoseconds; further ones are cut off.
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
            "971211336",
            " 971211336000 ",
            "971211336000000",
            "971211336000000000",
        ] {
            assert_eq!(parse(text), Some(second), "{text}");
        }
        for (text, more) in [
            ("2000-10-10T20:55:36.1234567899Z", 123_456_789),
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
