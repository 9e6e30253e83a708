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
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = to_date(days);
    let month_name = MONTHS[month - 1];
    let day_name = DAYS[(days % 7) as usize];
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('y') => out.push_str(&format!("{:02}", year % 100)),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(&month_name[..3]),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(&day_name[..3]),
            Some('H') => out.push_str(&format!("{:02}", second_of_day / 3600)),
            Some('M') => out.push_str(&format!("{:02}", second_of_day / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", second_of_day % 60)),
            Some('%') => out.push('%'),
            other => {
                let what = format!(
                    "strftime_now: %{} is not supported",
                    other.map_or(String::new(), String::from)
                );
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            }
        }
    }
    Ok(out)
}

/// Converts days since 1970-01-01 to year, month and day in the Gregorian calendar.
fn to_date(mut days: u64) -> (u64, usize, u64) {
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
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
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
        assert!(format_time("%Q", 0).is_err());
    }
}
