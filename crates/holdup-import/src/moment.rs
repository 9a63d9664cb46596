//! Moments as HAR files write them.

/// Milliseconds since 1970 of an RFC 3339 moment; nothing if it is none.
pub fn unix_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok().filter(|n| *n >= 0);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |f| f.bytes().take_while(u8::is_ascii_digit).count());
    let millis = if digits > 0 { format!("{:0<3}", &rest[1..=digits])[..3].parse::<i64>().ok()? } else { 0 };
    let zone = if digits > 0 { &rest[1 + digits..] } else { rest };
    let offset_minutes = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => 0,
        Some(sign @ (b'+' | b'-')) => {
            let digits: String = zone[1..].chars().filter(char::is_ascii_digit).collect();
            let minutes =
                digits.get(..2)?.parse::<i64>().ok()? * 60 + digits.get(2..4).map_or(Some(0), |m| m.parse().ok())?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        Some(_) => return None,
    };
    // Days of the years before, counted from a March so that a leap day is the last of its year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(((days * 24 + hour) * 60 + minute - offset_minutes) * 60_000 + second * 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::unix_ms;

    #[test]
    fn moments() {
        assert_eq!(unix_ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ms("2000-02-29T12:30:15.250+02:00"), Some(951_820_215_250));
        assert_eq!(unix_ms("2026-01-31T08:49:37.2509999Z"), Some(1_769_849_377_250));
        for wrong in ["", "2026", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00.ö", "2026-01-01T00:00:00+x"] {
            assert_eq!(unix_ms(wrong), None, "{wrong}");
        }
    }
}
