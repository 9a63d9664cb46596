//! The set describes its statements in prose that a language model wrote about a Python script: SQL in whichever quotes, with
//! places such as `{i}` left open, and "Frequency: 9 Threads" behind it. This finds the statements and the sessions; what SQL
//! means is the judge's.

use crate::dbot::course_judge::Executed;

/// How statements begin, and a word that must follow somewhere so that English is not taken for one.
const BEGINNINGS: &[(&str, &str)] = &[
    ("select ", ""),
    ("insert into ", ""),
    ("update ", " set "),
    ("delete from ", ""),
    ("create index ", ""),
    ("create unique index ", ""),
    ("drop index ", ""),
    ("truncate ", ""),
    ("vacuum", ";"),
    ("with ", " as ("),
];

/// Bytes around a statement's beginning and end.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Every statement that a text holds, in its order.
pub fn statements(prose: &str) -> Vec<Executed> {
    // Offsets must fit both.
    let lower = prose.to_ascii_lowercase();
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (start, _) in lower.char_indices() {
        if spans.last().is_none_or(|(_, end)| start >= *end)
            && let Some(end) = end_of_statement(prose, &lower, start)
        {
            spans.push((start, end));
        }
    }
    spans
        .iter()
        .enumerate()
        .map(|(at, (start, end))| {
            let behind = spans.get(at + 1).map_or(prose.len(), |(next, _)| *next);
            Executed { sql: filled(&prose[*start..*end]), sessions: sessions(&lower[*end..behind]) }
        })
        .collect()
}

/// Where the statement that begins at this place ends; `None` if none begins there.
fn end_of_statement(prose: &str, lower: &str, start: usize) -> Option<usize> {
    let (_, must_follow) = BEGINNINGS.iter().find(|(words, _)| lower[start..].starts_with(words))?;
    let before = prose[..start].chars().next_back();
    let quote = before.filter(|before| QUOTES.contains(before));
    // Without quotes it stands at the beginning of a line, or behind a colon or the mark of a list.
    let begins_line =
        prose[..start].trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| "\n:-.*)".contains(c));
    if quote.is_none() && !begins_line {
        return None;
    }
    let length = quote.map_or_else(|| unquoted(&prose[start..]), |quote| quoted(&prose[start..], quote));
    lower[start..start + length].contains(must_follow).then_some(start + length)
}

/// Length up to the quote that closes: one behind which no SQL goes on.
fn quoted(text: &str, quote: char) -> usize {
    let closes = |at: usize| {
        let behind = text[at + quote.len_utf8()..].chars().next();
        behind.is_none_or(|behind| behind.is_whitespace() || ".,;:-)]}".contains(behind) || QUOTES.contains(&behind))
    };
    text.match_indices(quote).map(|(at, _)| at).find(|at| closes(*at)).unwrap_or_else(|| unquoted(text))
}

/// Length up to a semicolon or an empty line.
fn unquoted(text: &str) -> usize {
    let ends = [text.find(';').map(|at| at + 1), text.find("\n\n"), text.to_ascii_lowercase().find("frequency")];
    ends.into_iter().flatten().min().unwrap_or(text.len())
}

/// The statement with what was left open closed: `name{i}` is a name, `id = {row}` a value.
fn filled(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((place, after)) = behind.split_once('}') else { break };
        out.push_str(before);
        if before.trim_end().ends_with(['=', '(', ',', '<', '>']) {
            out.push('?');
        } else {
            out.extend(place.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Sessions that prose gives behind a statement: the first number in the line that speaks of frequency, or the one
/// before "threads".
fn sessions(behind: &str) -> Option<f64> {
    let number = |text: &str| {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let digits = text[start..].split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<f64>().ok()
    };
    let frequency = behind.lines().find_map(|line| line.split_once("frequency").map(|(_, said)| said));
    let threads = || {
        behind.lines().find_map(|line| {
            line.split_once("thread").map(|(before, _)| before.rsplit(['.', ',']).next().unwrap_or(before))
        })
    };
    frequency.map_or_else(|| threads().and_then(number), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(prose: &str) -> Vec<(String, Option<f64>)> {
        statements(prose).into_iter().map(|executed| (executed.sql, executed.sessions)).collect()
    }

    fn of(sql: &str, sessions: Option<f64>) -> (String, Option<f64>) {
        (sql.to_owned(), sessions)
    }

    #[test]
    fn quotes_of_three_kinds() {
        let prose = "Here is the list:\n1. SQL Query: 'CREATE INDEX a ON t(b);'\n   Frequency: 1 Thread\n\n\
            2. \"delete from t where id < 20;\" - Frequency: 17 (as each thread runs it)\n\
            3. Query: `select * from t where id=`, Frequency (threads): 130";
        assert_eq!(
            found(prose),
            [
                of("CREATE INDEX a ON t(b);", Some(1.0)),
                of("delete from t where id < 20;", Some(17.0)),
                of("select * from t where id=", Some(130.0)),
            ]
        );
    }

    #[test]
    fn quotes_inside_quotes_and_python_between() {
        let prose = "1. SQL: \"select a from t where name='x';\" Frequency: Once Per Call\n\
            2. `'DROP INDEX ' + idx[0] + ';'`, Frequency: as many as there are\n\
            3. f'update {table} set name{i}=(SELECT substr(md5(random()::text), 1, {size})) where id ={row}'\n   Threads Involved: 9";
        assert_eq!(
            found(prose),
            [
                of("select a from t where name='x';", None),
                of("DROP INDEX ", None),
                of("update table set namei=(SELECT substr(md5(random()::text), 1, ?)) where id =?", None),
            ]
        );
        assert_eq!(
            found("`update t set a=1 where b=2`: Frequency: while looping. Threads Involved: 9")[0].1,
            Some(9.0)
        );
        assert_eq!(found("`update t set a=1 where b=2` is run by 12 threads at once")[0].1, Some(12.0));
    }

    #[test]
    fn english_is_no_sql() {
        let prose = "It is not possible to list SQL queries. The update of a select operation with threads runs once. \
            Please provide the files, then delete from them what repeats. We select files.";
        assert_eq!(found(prose), []);
    }

    #[test]
    fn a_bare_statement_goes_to_its_semicolon() {
        let prose = "SELECT a, b\nFROM t\nWHERE c LIKE '%x%';\nThat is all: 7 times.";
        assert_eq!(found(prose), [of("SELECT a, b\nFROM t\nWHERE c LIKE '%x%';", None)]);
    }
}
