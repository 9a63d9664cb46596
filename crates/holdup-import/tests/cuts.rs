//! Lists of sessions as clients draw them and as people cut them, at random: whatever is read is right, and nothing
//! panics. The numbers come from a seed, so that a failure repeats.

use holdup_import::text::{Pasted, Understood};
use holdup_recording::rows::Session;

/// 2026-11-26 00:00:00 UTC.
const DAY: i64 = 1_795_651_200_000_000_000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A server's list: its columns, its table, and what a session's cells are.
struct List {
    table: &'static str,
    prompt: &'static str,
    columns: &'static [&'static str],
    /// Columns without which a row says nothing of a session.
    needed: &'static [usize],
    rows: Vec<Vec<String>>,
}

fn mysql(random: &mut Random) -> List {
    let states = ["Sending data", "statistics", "Waiting for table metadata lock", "closing tables", "query end"];
    let statements =
        ["SELECT a FROM t WHERE b = 5", "UPDATE t SET a = 'x | y' WHERE id = 7", "INSERT INTO t VALUES (1, 'a, b')"];
    let row = |n: usize, random: &mut Random| {
        let sleeps = random.below(3) == 0;
        let cell = |text: &str| if sleeps { String::new() } else { text.to_owned() };
        vec![
            (100 + n).to_string(),
            format!("user{}", random.below(3)),
            format!("10.0.0.{}:50{n}", 1 + random.below(9)),
            "shop".to_owned(),
            if sleeps { "Sleep" } else { "Query" }.to_owned(),
            random.below(9_000).to_string(),
            cell(random.pick(&states)),
            cell(random.pick(&statements)),
        ]
    };
    let rows = (0..2 + random.below(9)).map(|n| row(n, random)).collect();
    let columns = &["Id", "User", "Host", "db", "Command", "Time", "State", "Info"];
    List { table: "information_schema.processlist", prompt: "mysql> ", columns, needed: &[0, 4, 5], rows }
}

fn postgresql(random: &mut Random) -> List {
    let waits = [("Lock", "transactionid"), ("IO", "DataFileRead"), ("LWLock", "WALWrite")];
    let statements = ["SELECT a FROM t WHERE b = 5", "UPDATE t SET a = 'x || y' WHERE id = 7", "DELETE FROM t"];
    let row = |n: usize, random: &mut Random| {
        let (kind, event) = random.pick(&waits);
        vec![
            (4_000 + n).to_string(),
            format!("user{}", random.below(3)),
            "active".to_owned(),
            kind.to_owned(),
            event.to_owned(),
            random.pick(&statements).to_owned(),
        ]
    };
    let rows = (0..2 + random.below(9)).map(|n| row(n, random)).collect();
    let columns = &["pid", "usename", "state", "wait_event_type", "wait_event", "query"];
    List { table: "pg_stat_activity", prompt: "shop=# ", columns, needed: &[0, 2, 3, 4], rows }
}

/// How a client draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawing {
    Bordered,
    Bars,
    Markdown,
    Boxes,
    Vertical,
    Expanded,
    Aligned,
    Unaligned,
    Tabs,
    Quoted,
}

const DRAWINGS: [Drawing; 10] = [
    Drawing::Bordered,
    Drawing::Bars,
    Drawing::Markdown,
    Drawing::Boxes,
    Drawing::Vertical,
    Drawing::Expanded,
    Drawing::Aligned,
    Drawing::Unaligned,
    Drawing::Tabs,
    Drawing::Quoted,
];

impl Drawing {
    /// The lines of the header, and those of each row.
    fn draw(self, names: &[&str], rows: &[Vec<&str>]) -> (Vec<String>, Vec<Vec<String>>) {
        let all: Vec<Vec<&str>> = std::iter::once(names.to_vec()).chain(rows.iter().cloned()).collect();
        let width = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let padded = |row: &[&str]| -> Vec<String> {
            row.iter().enumerate().map(|(at, cell)| format!(" {cell:<width$} ", width = width(at))).collect()
        };
        let dashes = |line: &str| -> Vec<String> { (0..names.len()).map(|at| line.repeat(width(at) + 2)).collect() };
        let one = |draw: &dyn Fn(&[&str]) -> String| -> (String, Vec<Vec<String>>) {
            (draw(names), rows.iter().map(|row| vec![draw(row)]).collect())
        };
        match self {
            Self::Bordered | Self::Bars | Self::Markdown | Self::Boxes => {
                let bar = if self == Self::Boxes { "│" } else { "|" };
                let (header, rows) = one(&|row| format!("{bar}{}{bar}", padded(row).join(bar)));
                let border = |left: &str, line: &str, cross: &str, right: &str| {
                    format!("{left}{}{right}", dashes(line).join(cross))
                };
                let header = match self {
                    Self::Bordered => vec![border("+", "-", "+", "+"), header, border("+", "-", "+", "+")],
                    Self::Markdown => vec![header, border("|", "-", "|", "|")],
                    Self::Boxes => vec![border("┌", "─", "┬", "┐"), header, border("├", "─", "┼", "┤")],
                    _ => vec![header],
                };
                (header, rows)
            }
            Self::Vertical | Self::Expanded => {
                let record = |(n, row): (usize, &Vec<&str>)| {
                    let (head, between) = match self {
                        Self::Vertical => (format!("{0} {1}. row {0}", "*".repeat(27), n + 1), ": "),
                        _ => (format!("-[ RECORD {} ]---", n + 1), " | "),
                    };
                    let cells = names.iter().zip(row).map(|(name, cell)| match self {
                        Self::Vertical => format!("{name:>12}{between}{cell}"),
                        _ => format!("{name:<15}{between}{cell}"),
                    });
                    std::iter::once(head).chain(cells).collect()
                };
                (Vec::new(), rows.iter().enumerate().map(record).collect())
            }
            Self::Aligned => {
                let (header, rows) = one(&|row| padded(row).join("|"));
                (vec![header, dashes("-").join("+")], rows)
            }
            Self::Unaligned | Self::Tabs => {
                let separator = if self == Self::Tabs { "\t" } else { "|" };
                let (header, rows) = one(&|row| row.join(separator));
                (vec![header], rows)
            }
            Self::Quoted => {
                let quoted = |row: &[&str]| row.iter().map(|cell| format!("\"{cell}\"")).collect::<Vec<_>>().join(",");
                let (header, rows) = one(&quoted);
                (vec![header], rows)
            }
        }
    }
}

/// A list with columns dropped and put in another order, drawn and cut; and the rows that are left.
fn pasted(random: &mut Random) -> (String, List, Vec<usize>, Vec<usize>) {
    let list = if random.below(2) == 0 { mysql(random) } else { postgresql(random) };
    let mut columns: Vec<usize> =
        (0..list.columns.len()).filter(|at| list.needed.contains(at) || random.below(3) > 0).collect();
    for at in (1..columns.len()).rev() {
        columns.swap(at, random.below(at + 1));
    }
    let drawing = random.pick(&DRAWINGS);
    let names: Vec<&str> = columns.iter().map(|at| list.columns[*at]).collect();
    let cells: Vec<Vec<&str>> =
        list.rows.iter().map(|row| columns.iter().map(|at| row[*at].as_str()).collect()).collect();
    let (header, rows) = drawing.draw(&names, &cells);
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut lines: Vec<String> = Vec::new();
    let has_header = !header.is_empty();
    let drops_header = has_header && random.below(3) == 0;
    if drops_header || random.below(3) == 0 {
        lines.push(format!("{}SELECT {} FROM {};", list.prompt, names.join(", "), list.table));
    }
    if !drops_header {
        lines.extend(header);
    }
    let cut = (random.below(3) == 0 && rows.len() > 3).then(|| 1 + random.below(rows.len() - 2));
    for (at, row) in rows.iter().enumerate() {
        if Some(at) == cut {
            lines.push((random.pick(&["...", "[...]", "…", "<snip>"])).to_owned());
            left.retain(|other| *other != at);
        } else {
            lines.extend(row.iter().cloned());
        }
    }
    if random.below(4) == 0 {
        lines.iter_mut().for_each(|line| *line = line.trim_matches(' ').to_owned());
    }
    (lines.join("\n") + "\n", list, columns, left)
}

fn read(text: &str) -> Understood {
    let mut all = Pasted::new(None);
    all.read("paste", text.as_bytes(), DAY);
    all.finish()
}

/// What is wrong with a session that was read, for the cells that were pasted.
fn differs(session: &Session, list: &List, columns: &[usize]) -> Option<String> {
    let id = session.session_id.to_string();
    let Some(row) = list.rows.iter().find(|row| row[0] == id) else {
        return Some(format!("no session {id} was pasted"));
    };
    let cell = |name: &str| {
        let at = list.columns.iter().position(|column| *column == name)?;
        columns.contains(&at).then(|| row[at].as_str()).filter(|cell| !cell.is_empty())
    };
    let text = |value: &Option<holdup_recording::Text>| value.as_ref().map(|text| text.as_str().to_owned());
    let wait = cell("wait_event_type").zip(cell("wait_event")).map(|(kind, event)| format!("{kind}:{event}"));
    let expected = [
        ("user", cell("User").or(cell("usename")).map(str::to_owned), text(&session.user)),
        ("state", cell("State").map(str::to_owned).or(wait), text(&session.state)),
        ("database", cell("db").map(str::to_owned), text(&session.database)),
        ("command", cell("Command").or(cell("state")).map(str::to_owned), Some(session.command.as_str().to_owned())),
        ("age", cell("Time").map(str::to_owned), session.age_ns.map(|ns| (ns / 1_000_000_000).to_string())),
    ];
    let dialect =
        if list.table == "pg_stat_activity" { holdup_sql::Dialect::PostgreSql } else { holdup_sql::Dialect::MySql };
    let digest = cell("Info").or(cell("query")).map(|text| holdup_sql::digest_text(text, dialect));
    let wrong = expected.into_iter().find(|(_, is, was)| is != was);
    let wrong = wrong.map(|(what, is, was)| format!("session {id}: {what} is {was:?}, not {is:?}"));
    let is_read = text(&session.digest_text) == digest;
    wrong.or_else(|| (!is_read).then(|| format!("session {id}: {:?}, not {digest:?}", text(&session.digest_text))))
}

#[test]
fn a_list_cut_at_random_is_read_right() {
    let mut wrong = Vec::new();
    for seed in 0..4_000 {
        let (text, list, columns, left) = pasted(&mut Random(seed));
        let found = read(&text);
        let mut problem = found.batch.sessions.iter().find_map(|session| differs(session, &list, &columns));
        if found.batch.sessions.len() != left.len() {
            problem = problem.or(Some(format!("{} sessions of {}", found.batch.sessions.len(), left.len())));
        }
        wrong.extend(problem.map(|problem| format!("seed {seed}: {problem}\n{text}")));
    }
    let first: Vec<&String> = wrong.iter().take(6).collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        first.iter().map(|w| w.as_str()).collect::<Vec<_>>().join("\n")
    );
}

/// Bytes changed, lines lost, doubled and moved.
fn mutated(text: &str, random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
    for _ in 0..1 + random.below(6) {
        let at = random.below(lines.len());
        match random.below(7) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let keep = random.below(lines[at].len() + 1);
                lines[at].truncate(keep);
            }
            3 => {
                let other = random.below(lines.len());
                lines.swap(at, other);
            }
            4 => {
                let marks: [&[u8]; 8] = [b"|", b"+--", b"\"", b"\t", b"->  ", b"\xff", b"(cost=", b"1e308"];
                let mark = random.pick(&marks);
                let place = random.below(lines[at].len() + 1);
                lines[at].splice(place..place, mark.iter().copied());
            }
            5 => lines.insert(at, Vec::new()),
            _ => {
                if !lines[at].is_empty() {
                    let place = random.below(lines[at].len());
                    lines[at][place] = u8::try_from(random.below(256)).unwrap();
                }
            }
        }
    }
    lines.join(&b'\n')
}

#[test]
fn no_mutation_of_a_paste_panics_or_makes_a_number_that_is_not_finite() {
    let corpus = [
        include_str!("corpus/cuts.txt"),
        include_str!("corpus/locks_and_plans.txt"),
        include_str!("corpus/mysql.txt"),
        include_str!("corpus/postgresql.txt"),
    ];
    let cases: Vec<&str> = corpus.iter().flat_map(|file| file.split("=== ").skip(1)).collect();
    let mut random = Random(48);
    for _ in 0..5_000 {
        let text = match random.below(2) {
            0 => (random.pick(&cases)).to_owned(),
            _ => pasted(&mut random).0,
        };
        let bytes = mutated(&text, &mut random);
        let mut all = Pasted::new(Some(4));
        all.read("paste", &bytes, DAY);
        let found = all.finish();
        assert!(
            found.batch.samples.iter().all(|sample| sample.value.is_finite()),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        assert!(found.batch.sessions.iter().all(|session| session.age_ns.is_none_or(|age| age >= 0)));
    }
}
