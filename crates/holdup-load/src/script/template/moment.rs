//! The present moment as text. No clock is read here.

const NS: i64 = 1_000_000_000;

/// Form of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Whole units since the Unix epoch, of so many nanoseconds.
    Since(i64),
    /// RFC 3339 in UTC with milliseconds: `2026-01-31T08:49:37.250Z`.
    Rfc3339,
    /// RFC 9110, section 5.6.7: `Sat, 31 Jan 2026 08:49:37 GMT`.
    Http,
}

impl Moment {
    /// By the name that `now` takes.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Since(NS),
            "ms" => Self::Since(1_000_000),
            "us" => Self::Since(1_000),
            "ns" => Self::Since(1),
            "rfc3339" => Self::Rfc3339,
            "http" => Self::Http,
            _ => return None,
        })
    }

    /// Writes the moment `unix_ns`.
    pub(super) fn write(self, unix_ns: i64, out: &mut Vec<u8>) {
        match self {
            Self::Since(unit) => out.extend_from_slice(itoa::Buffer::new().format(unix_ns.div_euclid(unit)).as_bytes()),
            Self::Rfc3339 => {
                let date = Date::of(unix_ns);
                date.year_month_day(out);
                out.push(b'T');
                date.time_of_day(out);
                out.push(b'.');
                digits(out, unix_ns.rem_euclid(NS) / 1_000_000, 3);
                out.push(b'Z');
            }
            Self::Http => Date::of(unix_ns).http(out),
        }
    }
}

/// A second in the proleptic Gregorian calendar, UTC.
struct Date {
    year: i64,
    /// From 1.
    month: i64,
    /// From 1.
    day: i64,
    /// From 0, which is Sunday.
    weekday: usize,
    second_of_day: i64,
}

impl Date {
    /// Howard Hinnant, "chrono-compatible low-level date algorithms": years that begin in March have their leap day last.
    fn of(unix_ns: i64) -> Self {
        let seconds = unix_ns.div_euclid(NS);
        let days = seconds.div_euclid(86_400);
        // From 1 March of the year 0, in cycles of 400 years, which are alike.
        let since_march = days + 719_468;
        let (cycle, day) = (since_march.div_euclid(146_097), since_march.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self {
            year: 400 * cycle + year + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            // 1 January 1970 was a Thursday.
            weekday: (days + 4).rem_euclid(7) as usize,
            second_of_day: seconds.rem_euclid(86_400),
        }
    }

    fn year_month_day(&self, out: &mut Vec<u8>) {
        digits(out, self.year, 4);
        out.push(b'-');
        digits(out, self.month, 2);
        out.push(b'-');
        digits(out, self.day, 2);
    }

    fn time_of_day(&self, out: &mut Vec<u8>) {
        digits(out, self.second_of_day / 3_600, 2);
        out.push(b':');
        digits(out, self.second_of_day / 60 % 60, 2);
        out.push(b':');
        digits(out, self.second_of_day % 60, 2);
    }

    fn http(&self, out: &mut Vec<u8>) {
        const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        out.extend_from_slice(DAYS[self.weekday].as_bytes());
        out.extend_from_slice(b", ");
        digits(out, self.day, 2);
        out.push(b' ');
        out.extend_from_slice(MONTHS[self.month as usize - 1].as_bytes());
        out.push(b' ');
        digits(out, self.year, 4);
        out.push(b' ');
        self.time_of_day(out);
        out.extend_from_slice(b" GMT");
    }
}

/// The last `count` digits of `number`, which is not negative: years of 64 bits of nanoseconds are 1677 to 2262.
fn digits(out: &mut Vec<u8>, number: i64, count: u32) {
    for place in (0..count).rev() {
        out.push(b'0' + (number / 10_i64.pow(place) % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: &str, unix_ns: i64) -> String {
        let mut out = Vec::new();
        Moment::of(form).expect("a form").write(unix_ns, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_form() {
        let at = 784_111_777_250_001_009;
        assert_eq!(written("s", at), "784111777");
        assert_eq!(written("ms", at), "784111777250");
        assert_eq!(written("us", at), "784111777250001");
        assert_eq!(written("ns", at), "784111777250001009");
        assert_eq!(written("rfc3339", at), "1994-11-06T08:49:37.250Z");
        assert_eq!(written("http", at), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Moment::of("m"), None);
    }

    #[test]
    fn the_calendar_turns_where_it_should() {
        assert_eq!(written("rfc3339", 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written("rfc3339", -1_000_000), "1969-12-31T23:59:59.999Z");
        assert_eq!(written("rfc3339", 951_782_400 * NS), "2000-02-29T00:00:00.000Z");
        assert_eq!(written("http", 1_767_225_599 * NS), "Wed, 31 Dec 2025 23:59:59 GMT");
        assert_eq!(written("rfc3339", i64::MIN), "1677-09-21T00:12:43.145Z");
        assert_eq!(written("rfc3339", i64::MAX), "2262-04-11T23:47:16.854Z");
    }
}
