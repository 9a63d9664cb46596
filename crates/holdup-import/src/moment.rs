//! Moments as HAR files write them.

use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

/// Milliseconds since 1970 of an RFC 3339 moment, which is UTC without a zone; `None` for any other text.
pub fn unix_ms(text: &str) -> Option<i64> {
    let found = Pieces::parse(text.trim()).ok()?;
    let zone = found.to_numeric_offset().unwrap_or(Offset::UTC);
    Some(zone.to_timestamp(found.date().to_datetime(found.time()?)).ok()?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::unix_ms;

    #[test]
    fn moments() {
        assert_eq!(unix_ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ms("1970-01-01T00:00:00.001"), Some(1));
        assert_eq!(unix_ms("2000-02-29T12:30:15.250+02:00"), Some(951_820_215_250));
        assert_eq!(unix_ms("2026-01-31T08:49:37.2509999Z"), Some(1_769_849_377_250));
        for wrong in ["", "2026", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00.ö", "2026-01-01T00:00:00+x"] {
            assert_eq!(unix_ms(wrong), None, "{wrong}");
        }
    }
}
