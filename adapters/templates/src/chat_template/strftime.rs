//! The template function `strftime_now`, which some chat templates use in the system prompt. Times
//! are UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// Formats the current time.
pub(crate) fn format_now(format: &str) -> Result<String, Error> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    format_time(format, seconds)
}

fn format_time(format: &str, seconds: u64) -> Result<String, Error> {
    let time = Time::new(seconds);
    let (mut out, mut rest) = (String::new(), format);
    while let Some((text, after)) = rest.split_once('%') {
        out.push_str(text);
        let unpadded = after.strip_prefix('-');
        let mut chars = unpadded.unwrap_or(after).chars();
        let specifier = chars.next().unwrap_or_default();
        rest = chars.as_str();
        match (time.number(specifier), time.name(specifier)) {
            (Some((number, _)), _) if unpadded.is_some() => out.push_str(&number.to_string()),
            (Some((number, width)), _) if specifier == 'e' => {
                out.push_str(&format!("{number:width$}"));
            }
            (Some((number, width)), _) => out.push_str(&format!("{number:0width$}")),
            (None, Some(name)) if unpadded.is_none() => out.push_str(name),
            _ => {
                let shown = &after[..after.len() - rest.len()];
                let what = format!("strftime_now: %{shown} is not supported");
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            }
        }
    }
    Ok(out + rest)
}

/// A time in the Gregorian calendar.
struct Time {
    second_of_day: u64,
    /// Days since 1970-01-01.
    days: u64,
    year: u64,
    /// From 1.
    month: usize,
    /// From 1.
    day: u64,
    /// From 1.
    day_of_year: u64,
}

impl Time {
    fn new(seconds: u64) -> Time {
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day, day_of_year) = to_date(days);
        Time { second_of_day, days, year, month, day, day_of_year }
    }

    fn hour(&self) -> u64 {
        self.second_of_day / 3600
    }

    /// The number that a specifier stands for, and its least number of digits.
    fn number(&self, specifier: char) -> Option<(u64, usize)> {
        match specifier {
            'Y' => Some((self.year, 4)),
            'y' => Some((self.year % 100, 2)),
            'm' => Some((self.month as u64, 2)),
            'd' | 'e' => Some((self.day, 2)),
            'j' => Some((self.day_of_year, 3)),
            'H' => Some((self.hour(), 2)),
            'I' => Some(((self.hour() + 11) % 12 + 1, 2)),
            'M' => Some((self.second_of_day / 60 % 60, 2)),
            'S' => Some((self.second_of_day % 60, 2)),
            _ => None,
        }
    }

    /// The text that a specifier stands for.
    fn name(&self, specifier: char) -> Option<&'static str> {
        let (month, day) = (MONTHS[self.month - 1], DAYS[(self.days % 7) as usize]);
        match specifier {
            'B' => Some(month),
            'b' => Some(&month[..3]),
            'A' => Some(day),
            'a' => Some(&day[..3]),
            'p' => Some(if self.hour() < 12 { "AM" } else { "PM" }),
            '%' => Some("%"),
            _ => None,
        }
    }
}

/// Converts days since 1970-01-01 to year, month, day and day of the year.
fn to_date(mut days: u64) -> (u64, usize, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (mut month, day_of_year) = (0, days + 1);
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1, day_of_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_formatted() {
        let all = "%d %b %Y|%A %a %B %y-%m|%H:%M:%S %%";
        assert_eq!(
            format_time(all, 0).unwrap(),
            "01 Jan 1970|Thursday Thu January 70-01|00:00:00 %"
        );
        assert_eq!(
            format_time(all, 951_827_696).unwrap(),
            "29 Feb 2000|Tuesday Tue February 00-02|12:34:56 %"
        );
        assert_eq!(format_time("%Y-%m-%d", 4_102_444_799).unwrap(), "2099-12-31");
        for (seconds, expected) in [
            (0, "1/1 1|12:00 AM|001|0"),
            (951_827_696, "29/2 29|12:34 PM|060|12"),
            (4_102_444_799, "31/12 31|11:59 PM|365|23"),
        ] {
            let shown = format_time("%-d/%-m %e|%I:%M %p|%j|%-H", seconds).unwrap();
            assert_eq!(shown.replace("  ", " "), expected);
        }
        assert_eq!(format_time("(%e)", 0).unwrap(), "( 1)");
        for format in ["%Q", "%", "100%", "%-", "%-B", "%é"] {
            let error = format_time(format, 0).unwrap_err().to_string();
            assert!(error.contains("is not supported"), "{error}");
        }
    }
}
