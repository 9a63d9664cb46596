//! The command above an output: its stages, the columns that it prints, and what it counts. People
//! cut a table by `grep`, `awk` and `wc -l`, and only the command says what is left.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::Regex;

/// A field of `ps -o` and the name above its column. `lstart` has five words.
const FIELDS: [(&str, &str); 44] = [
    ("pid", "PID"),
    ("tgid", "PID"),
    ("ppid", "PPID"),
    ("tid", "TID"),
    ("lwp", "LWP"),
    ("spid", "SPID"),
    ("pgid", "PGID"),
    ("sid", "SID"),
    ("sess", "SID"),
    ("user", "USER"),
    ("euser", "USER"),
    ("ruser", "RUSER"),
    ("uname", "USER"),
    ("uid", "UID"),
    ("group", "GROUP"),
    ("stat", "STAT"),
    ("state", "S"),
    ("s", "S"),
    ("%cpu", "%CPU"),
    ("pcpu", "%CPU"),
    ("c", "C"),
    ("cp", "CP"),
    ("%mem", "%MEM"),
    ("pmem", "%MEM"),
    ("rss", "RSS"),
    ("rssize", "RSS"),
    ("vsz", "VSZ"),
    ("vsize", "VSZ"),
    ("sz", "SZ"),
    ("nlwp", "NLWP"),
    ("thcount", "THCNT"),
    ("wchan", "WCHAN"),
    ("nwchan", "WCHAN"),
    ("ni", "NI"),
    ("nice", "NI"),
    ("pri", "PRI"),
    ("psr", "PSR"),
    ("tty", "TTY"),
    ("tt", "TTY"),
    ("time", "TIME"),
    ("etime", "ELAPSED"),
    ("etimes", "ELAPSED"),
    ("stime", "STIME"),
    ("lstart", "STARTED DAY MONTH CLOCK YEAR"),
];

/// Fields of `ps -o` with the name of a program or its command line.
const COMMANDS: [&str; 7] = ["comm", "ucmd", "ucomm", "cmd", "args", "command", "fname"];

/// The columns of `ps` by its flags: those that it must have, and the names.
const LAYOUTS: [(&str, &str); 8] = [
    ("Lf", "UID PID PPID LWP C NLWP STIME TTY TIME CMD"),
    ("Tf", "UID PID SPID PPID C STIME TTY TIME CMD"),
    ("lf", "F S UID PID PPID C PRI NI ADDR SZ WCHAN STIME TTY TIME CMD"),
    ("f", "UID PID PPID C STIME TTY TIME CMD"),
    ("l", "F S UID PID PPID C PRI NI ADDR SZ WCHAN TTY TIME CMD"),
    ("L", "PID LWP TTY TIME CMD"),
    ("T", "PID SPID TTY TIME CMD"),
    ("", "PID TTY TIME CMD"),
];

/// The same by its flags without a dash.
const LAYOUTS_BSD: [(&str, &str); 3] = [
    ("u", "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND"),
    ("j", "PPID PID PGID SID TTY TPGID STAT UID TIME COMMAND"),
    ("", "PID TTY STAT TIME COMMAND"),
];

/// Programs that leave the columns of their input as they are.
const FILTERS: [&str; 13] =
    ["grep", "egrep", "fgrep", "rg", "sort", "head", "tail", "less", "more", "cat", "tee", "uniq", "column"];

/// What a command counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Threads, or processes, of `ps`, in this state if it selects one.
    Threads { is_threads: bool, state: Option<char> },
    /// Sockets in this state.
    Sockets { state: String },
    /// Entries of a folder, and whether only files of temporary tables are selected.
    Files { folder: String, is_temporary: bool },
    /// Open files of a process.
    Descriptors { pid: i64 },
}

/// The programs of a pipeline with their words, e.g. `[[ps, -ef], [wc, -l]]`.
pub(super) fn stages(command: &str) -> Vec<Vec<String>> {
    const KNOWN: [&str; 8] = ["ps", "ls", "find", "netstat", "ss", "top", "cat", "lsof"];
    let parts: Vec<Vec<Vec<String>>> = split(command);
    let is_known = |part: &&Vec<Vec<String>>| {
        part.first().and_then(|stage| stage.first()).is_some_and(|program| KNOWN.contains(&program.as_str()))
    };
    let known = parts.iter().find(is_known).or(parts.first());
    known.cloned().unwrap_or_default()
}

/// Commands after each other, their stages, and the words of these without quotes.
fn split(command: &str) -> Vec<Vec<Vec<String>>> {
    let (mut parts, mut stages, mut words) = (Vec::new(), Vec::new(), Vec::new());
    let (mut word, mut quote, mut has_word) = (String::new(), None, false);
    let mut chars = command.chars().peekable();
    loop {
        let next = chars.next();
        match (next, quote) {
            (Some(c), Some(open)) if c == open => quote = None,
            (Some(c), Some(_)) => word.push(c),
            (Some(c @ ('\'' | '"')), None) => (quote, has_word) = (Some(c), true),
            (Some('\\'), None) => word.extend(chars.next()),
            (Some(c), None) if !c.is_whitespace() && !"|;&".contains(c) => word.push(c),
            _ => {
                if has_word || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                    has_word = false;
                }
                let is_end = !matches!(next, Some(c) if c.is_whitespace());
                if is_end && !words.is_empty() {
                    stages.push(program_first(std::mem::take(&mut words)));
                }
                if matches!(next, Some(';' | '&') | None) && !stages.is_empty() {
                    parts.push(std::mem::take(&mut stages));
                }
                if next.is_none() {
                    return parts;
                }
            }
        }
    }
}

/// The words from the program on, which has no folder.
fn program_first(words: Vec<String>) -> Vec<String> {
    const BEFORE: [&str; 8] = ["sudo", "time", "do", "watch", "nice", "timeout", "while", "exec"];
    let is_before = |word: &&String| {
        BEFORE.contains(&word.as_str()) || word.starts_with('-') || word.parse::<f64>().is_ok() || word.contains('=')
    };
    let skipped = words.iter().take_while(is_before).count();
    let mut rest: Vec<String> = words.into_iter().skip(skipped).collect();
    if let Some(first) = rest.first_mut() {
        *first = first.rsplit('/').next().unwrap_or_default().to_owned();
    }
    rest
}

/// The columns of the table that a pipeline beginning with `ps` prints; none if they are unknown.
pub(super) fn columns(stages: &[Vec<String>]) -> Option<String> {
    let (ps, rest) = stages.split_first()?;
    let mut columns: Vec<String> = ps_columns(ps)?.split(' ').map(str::to_owned).collect();
    for stage in rest {
        let (program, words) = stage.split_first()?;
        match program.as_str() {
            "uniq" if has_flag(words, 'c') => columns.insert(0, "COUNT".to_owned()),
            "awk" | "gawk" | "mawk" => columns = picked(words, columns)?,
            "grep" | "egrep" | "fgrep" if has_flag(words, 'c') => return None,
            _ if FILTERS.contains(&program.as_str()) => {}
            _ => return None,
        }
    }
    Some(columns.join(" "))
}

/// Whether some flag has this letter.
fn has_flag(words: &[String], flag: char) -> bool {
    words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(flag))
}

/// The columns that `awk` prints: those of `{print $2, $4}`, or all without a block.
fn picked(words: &[String], columns: Vec<String>) -> Option<Vec<String>> {
    let program = words.iter().find(|word| !word.starts_with('-'))?;
    let Some((_, block)) = program.split_once('{') else { return Some(columns) };
    let printed = block.trim().strip_prefix("print")?.trim_end_matches('}').trim();
    if printed.is_empty() || printed == "$0" {
        return Some(columns);
    }
    let place = |word: &str| word.trim().strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1);
    // Only between commas is there a blank between two columns.
    printed.split(',').map(|word| columns.get(place(word)?).cloned()).collect()
}

/// The columns of `ps` itself.
fn ps_columns(words: &[String]) -> Option<Cow<'static, str>> {
    let (program, arguments) = words.split_first()?;
    if program != "ps" {
        return None;
    }
    let lists = lists(arguments);
    if !lists.is_empty() {
        let names: Vec<String> = lists.iter().flat_map(|list| list.split([',', ' '])).filter_map(field).collect();
        return (!names.is_empty()).then(|| Cow::Owned(names.join(" ")));
    }
    let of_flags = |layouts: &[(&str, &'static str)], flags: &str| {
        layouts.iter().find(|(needed, _)| needed.chars().all(|flag| flags.contains(flag))).map(|(_, names)| *names)
    };
    let dashed: String = arguments.iter().filter_map(|word| word.strip_prefix('-')).collect();
    let bare: String = arguments.iter().filter(|word| word.chars().all(char::is_alphabetic)).cloned().collect();
    // `ps -aux` is read as `ps aux`.
    if dashed.contains("aux") || !bare.is_empty() {
        let flags = if bare.is_empty() { dashed } else { bare };
        return of_flags(&LAYOUTS_BSD, &flags).map(Cow::Borrowed);
    }
    of_flags(&LAYOUTS, &dashed).map(Cow::Borrowed)
}

/// The lists of fields behind `-o`, `-eo`, `axo`, `--format`.
fn lists(arguments: &[String]) -> Vec<&str> {
    let mut lists = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let flags = word.strip_prefix('-').unwrap_or(word);
        let own = flags.find('o').filter(|_| !word.starts_with("--")).and_then(|at| {
            let is_cluster = flags.get(..at)?.chars().all(char::is_alphabetic);
            is_cluster.then(|| flags.get(at + 1..)).flatten()
        });
        match own {
            Some("") => lists.extend(words.next()),
            Some(list) if word.starts_with('-') => lists.push(list),
            _ if word == "--format" => lists.extend(words.next()),
            _ => lists.extend(word.strip_prefix("--format=")),
        }
    }
    lists
}

/// The name above the column of a field such as `wchan:32`, `pid=`.
fn field(field: &str) -> Option<String> {
    let field = field.split([':', '=']).next().unwrap_or(field).to_ascii_lowercase();
    let is_field = !field.is_empty() && field.bytes().all(|b| b.is_ascii_alphanumeric() || b"_%".contains(&b));
    let known = FIELDS.iter().find(|(name, _)| *name == field).map(|(_, column)| (*column).to_owned());
    let command = COMMANDS.contains(&field.as_str()).then(|| "COMMAND".to_owned());
    is_field.then(|| known.or(command).unwrap_or_else(|| field.to_ascii_uppercase()))
}

/// Whether a pipeline beginning with `ps` lists threads.
pub(super) fn lists_threads(stages: &[Vec<String>]) -> bool {
    let ps = stages.first().filter(|ps| ps.first().is_some_and(|program| program == "ps"));
    let is_flag = |word: &&String| word.starts_with('-') && !word.starts_with("--");
    ps.is_some_and(|ps| ps.iter().filter(is_flag).any(|word| word.contains(['T', 'L', 'm', 'H'])))
}

/// Whether a stage keeps some lines only.
pub(super) fn is_filtered(stages: &[Vec<String>]) -> bool {
    const KEEPS: [&str; 7] = ["grep", "egrep", "fgrep", "rg", "awk", "head", "tail"];
    stages.iter().skip(1).any(|stage| stage.first().is_some_and(|program| KEEPS.contains(&program.as_str())))
}

/// The state of threads that a pipeline selects: `grep D`, `awk '$2=="D"'`, `grep ' Dl '`.
pub(super) fn selected_state(stages: &[Vec<String>]) -> Option<char> {
    static STATE: OnceLock<Option<Regex>> = OnceLock::new();
    let state = STATE.get_or_init(|| Regex::new(r"(?:^|[^A-Za-z])([DRZ])[<NLsl+*.]*(?:$|[^A-Za-z])").ok()).as_ref()?;
    let selects = |stage: &&Vec<String>| {
        let is_negative = stage.iter().any(|word| word == "-v");
        ["grep", "egrep", "awk", "gawk", "mawk", "rg"].iter().any(|name| stage.first().is_some_and(|p| p == name))
            && !is_negative
    };
    let words = stages.iter().skip(1).filter(selects).flat_map(|stage| stage.iter().skip(1));
    let mut found = words.filter(|word| !word.starts_with('-')).filter_map(|word| state.captures(word));
    found.find_map(|found| found.get(1)?.as_str().chars().next())
}

/// What a pipeline that ends in `wc -l` or `grep -c` counts, and the lines of it that do not belong to
/// these: headers.
pub(super) fn counted(stages: &[Vec<String>]) -> Option<(Counted, f64)> {
    let surplus = |is: bool| if is { 1.0 } else { 0.0 };
    let last = stages.last()?;
    let is_count = match last.first()?.as_str() {
        "wc" => has_flag(last.get(1..)?, 'l'),
        "grep" | "egrep" | "fgrep" => stages.len() > 1 && has_flag(last.get(1..)?, 'c'),
        _ => false,
    };
    let (source, between) = stages.split_first().filter(|_| is_count)?;
    let words = || between.iter().flatten();
    match source.first()?.as_str() {
        // Columns that are picked away do not change the number of lines.
        "ps" => {
            // The letter is in the header, too: `PID`.
            let is_letter = words().any(|word| word == "D") && !words().any(|word| word == "-w");
            let of = Counted::Threads { is_threads: lists_threads(stages), state: selected_state(stages) };
            Some((of, surplus(is_letter)))
        }
        "netstat" | "ss" => {
            let is_inverse = words().any(|word| word == "-v");
            let all = words().chain(source.iter().skip(1));
            let state = all.filter(|_| !is_inverse).find_map(|word| socket_state(word.trim_start_matches('-')));
            // Without a filter all of them are counted.
            let state = state.or((stages.len() == 2).then_some("all"))?;
            let has_header = !is_filtered(stages) && !has_flag(source, 'H');
            Some((Counted::Sockets { state: state.to_owned() }, surplus(has_header)))
        }
        "ls" | "find" => {
            let path = source.iter().skip(1).find(|word| word.starts_with(['/', '.']))?;
            let has_total = surplus(stages.len() == 2 && has_flag(source, 'l'));
            let descriptors =
                path.strip_prefix("/proc/").and_then(|rest| rest.trim_end_matches('/').strip_suffix("/fd"));
            if let Some(pid) = descriptors {
                return Some((
                    Counted::Descriptors { pid: pid.parse().ok().filter(|_| stages.len() == 2)? },
                    has_total,
                ));
            }
            let is_temporary = source.iter().chain(words()).any(|word| word.contains("#sql"));
            // The others list more than the folder's entries.
            let is_all = stages.len() == 2 && source.first().is_some_and(|program| program == "ls");
            let is_all = is_all && !has_flag(source, 'a') && !has_flag(source, 'R');
            let folder = path.split_once("#sql").map_or(path.as_str(), |(folder, _)| folder);
            let folder = if folder.len() > 1 { folder.trim_end_matches('/') } else { folder };
            let is_known =
                (is_temporary || is_all) && !folder.contains(['*', '?']) && !words().any(|word| word == "-v");
            is_known.then(|| (Counted::Files { folder: folder.to_owned(), is_temporary }, has_total))
        }
        _ => None,
    }
}

/// The states of TCP as `ss` names them, by any tool's name.
pub(super) fn socket_state(word: &str) -> Option<&'static str> {
    const STATES: [(&str, &str); 11] = [
        ("ESTABLISHED", "ESTAB"),
        ("LISTEN", "LISTEN"),
        ("CLOSEWAIT", "CLOSE-WAIT"),
        ("TIMEWAIT", "TIME-WAIT"),
        ("SYNSENT", "SYN-SENT"),
        ("SYNRECV", "SYN-RECV"),
        ("FINWAIT1", "FIN-WAIT-1"),
        ("FINWAIT2", "FIN-WAIT-2"),
        ("LASTACK", "LAST-ACK"),
        ("CLOSING", "CLOSING"),
        ("ESTAB", "ESTAB"),
    ];
    let plain: String = word.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    STATES.iter().find(|(name, _)| plain.eq_ignore_ascii_case(name)).map(|(_, state)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_from_the_command() {
        for (command, names) in [
            ("ps -eo ppid,pid,user,stat,pcpu,comm,wchan:32 -T", Some("PPID PID USER STAT %CPU COMMAND WCHAN")),
            ("ps -eo pid=,stat=,args= | grep mysqld", Some("PID STAT COMMAND")),
            ("ps axo user,pid,s,wchan", Some("USER PID S WCHAN")),
            ("sudo /bin/ps -ef | grep [m]ysqld", Some("UID PID PPID C STIME TTY TIME CMD")),
            ("ps aux|grep mysqld", Some("USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND")),
            ("ps -aux --sort=-pcpu | head -5", Some("USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND")),
            ("ps axjf", Some("PPID PID PGID SID TTY TPGID STAT UID TIME COMMAND")),
            ("ps -eLf", Some("UID PID PPID LWP C NLWP STIME TTY TIME CMD")),
            ("ps -eLo state,wchan | sort | uniq -c | sort -rn", Some("COUNT S WCHAN")),
            ("ps -eLo state,pid,tid,comm,wchan:32 | awk '$1 == \"D\"' | sort -k5", Some("S PID TID COMMAND WCHAN")),
            ("ps -eLo stat,wchan,comm | awk '{print $1,$3}' | sort | uniq -c", Some("COUNT STAT COMMAND")),
            ("while true; do ps -eo pid,comm; sleep 1; done", Some("PID COMMAND")),
            ("ps -ef | cut -c1-10", None),
            ("ps -ef | wc -l", None),
            ("uptime", None),
        ] {
            assert_eq!(columns(&stages(command)).as_deref(), names, "{command}");
        }
    }

    #[test]
    fn a_count_has_its_lines() {
        let files = |folder: &str, is_temporary| Some(Counted::Files { folder: folder.to_owned(), is_temporary });
        let sockets = |state: &str| Some(Counted::Sockets { state: state.to_owned() });
        for (command, what) in [
            ("ls /tmp | wc -l", files("/tmp", false)),
            ("ls -1 /mnt/mysqltmp/ | grep '#sql' | wc -l", files("/mnt/mysqltmp", true)),
            ("ls /tmp/#sql* | wc -l", files("/tmp", true)),
            ("find /tmp -name '#sql*' | wc -l", files("/tmp", true)),
            ("ls /tmp | grep -v x | wc -l", None),
            ("ls /proc/2204/fd | wc -l", Some(Counted::Descriptors { pid: 2204 })),
            ("ps -eLo stat,comm | grep '^D' | wc -l", Some(Counted::Threads { is_threads: true, state: Some('D') })),
            ("ps -eo stat,comm -T | grep Dl | wc -l", Some(Counted::Threads { is_threads: true, state: Some('D') })),
            ("ps aux | awk '$8 ~ /^D/' | wc -l", Some(Counted::Threads { is_threads: false, state: Some('D') })),
            ("ps aux | grep mysqlD | wc -l", Some(Counted::Threads { is_threads: false, state: None })),
            ("netstat -ant | grep TIME_WAIT | wc -l", sockets("TIME-WAIT")),
            ("netstat -an | grep -c ESTABLISHED", sockets("ESTAB")),
            ("ss -tan state time-wait | wc -l", sockets("TIME-WAIT")),
            ("netstat -an | grep -v LISTEN | wc -l", None),
            ("ls -R /tmp | wc -l", None),
            ("cat x | wc -l", None),
        ] {
            assert_eq!(counted(&stages(command)).map(|(what, _)| what), what, "{command}");
        }
    }

    #[test]
    fn headers_are_not_counted() {
        for (command, surplus) in [
            ("ls -l /tmp | wc -l", 1.0),
            ("ls /tmp | wc -l", 0.0),
            ("ss -tan state time-wait | wc -l", 1.0),
            ("ss -Htan state time-wait | wc -l", 0.0),
            ("netstat -ant | grep TIME_WAIT | wc -l", 0.0),
            ("ps -eLo pid,stat | grep D | wc -l", 1.0),
            ("ps -eLo pid,stat | grep Dl | wc -l", 0.0),
        ] {
            assert_eq!(counted(&stages(command)).map(|(_, surplus)| surplus), Some(surplus), "{command}");
        }
    }
}
