//! Statements of any bytes, in both languages, whole and cut off; and the same bytes as a log of PostgreSQL, and as a plan. The first byte
//! chooses the log's form, the second where it is cut, the rest is the text. A digest text is the same when it is made again of itself
//! where that is promised, it never grows beyond what names and operators can make of it, and a canary that is planted in a
//! literal does not come out.
#![no_main]

use holdup_recording::plan::Node;
use holdup_sql::{Dialect, Lexer, digest_text, trace_id};
use libfuzzer_sys::fuzz_target;

const CANARY: &str = "Zq4711Zq";
const PREFIXES: [&str; 3] = ["%m [%p] %q%u@%d ", "%t:%r:%u@%d:[%p]:", "%a%d%u %n %-5p "];

fn statement(sql: &[u8], dialect: Dialect) {
    let tokens: Vec<_> = Lexer::new(sql, dialect).collect();
    let bytes: usize = tokens.iter().map(|token| token.text.len()).sum();
    assert!(bytes <= sql.len() && tokens.iter().all(|token| !token.text.is_empty()));
    let text = digest_text(sql, dialect);
    // A byte that is no UTF-8 becomes three; a token has at most a blank and a mark more than it has bytes.
    assert!(text.len() <= 3 * sql.len() + 3 * tokens.len() + 2);
    assert!(trace_id(sql, dialect).is_none_or(|id| id.len() == 32));
    // It may stand there as a name.
    if text.contains(CANARY) {
        return;
    }
    // Behind whatever came before, in a string of its own: either it is one, or it stands in something that goes on to here.
    for planted in [format!("'{CANARY}'"), format!("/*{CANARY}*/")] {
        let mut whole = sql.to_vec();
        // Ends any comment of one line; white space in anything else.
        whole.push(b'\n');
        let opens = Lexer::new(&whole, dialect).last().is_none_or(|last| {
            let end = last.text.as_ptr() as usize + last.text.len() - whole.as_ptr() as usize;
            end < whole.len()
        });
        whole.extend_from_slice(planted.as_bytes());
        if opens {
            assert!(!digest_text(&whole, dialect).contains(CANARY), "{}", String::from_utf8_lossy(&whole));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [form, cut, rest @ ..] = input else { return };
    for dialect in [Dialect::MySql, Dialect::PostgreSql] {
        statement(rest, dialect);
        statement(&rest[..rest.len() / 2], dialect);
    }
    let prefix = PREFIXES[usize::from(*form / 3) % PREFIXES.len()];
    let batch = holdup_collect::postgres::fuzz(prefix, *form, usize::from(*cut), rest);
    let lines = rest.iter().filter(|byte| **byte == b'\n').count();
    assert!(batch.statements.len() <= lines + 1 && batch.plans.len() <= lines + 1);
    // A deadlock is an error, too.
    assert!(batch.events.len() <= 2 * lines + 2);
    // And as what a server says of a plan.
    for row in batch.plans.into_iter().chain(holdup_collect::postgres::fuzz_plans(&String::from_utf8_lossy(rest))) {
        let tree = Node::from_json(&row.plan).expect("a tree is written so that it can be read");
        assert!(row.shape.len() == 16 && tree.structure().len() <= 64 * rest.len() + 64);
    }
});
