//! Tables in every form that is read.

use super::super::paste;
use super::*;

fn set(text: &str) -> Table {
    read(&paste::lines(text.as_bytes(), |_| false)).unwrap()
}

fn row(set: &Table, at: usize) -> Vec<&str> {
    set.rows[at].iter().map(|cell| cell.as_deref().unwrap_or("-")).collect()
}

#[test]
fn a_table_with_bars_and_line_breaks_in_a_cell() {
    let found =
        set("+----+---------+------+\n| Id | Info    | Prog |\n+----+---------+------+\n| 1  | a | b   | 0.1  |\n\
         | 2  | SELECT\n  1 | NULL |\n| 3  | cut off her\n+----+---------+------+\n2 rows in set (0.00 sec)\nnext\n");
    assert_eq!(found.columns.names, ["Id", "Info", "Prog"]);
    assert_eq!(row(&found, 0), ["1", "a | b", "0.1"]);
    assert_eq!(row(&found, 1), ["2", "SELECT   1", "-"]);
    assert_eq!((row(&found, 2), found.used), (vec!["3", "cut off her"], 9));
}

#[test]
fn the_vertical_form() {
    let found = set(
        "*************************** 1. row ***************************\n  Id: 7\nInfo: SELECT ':' AS x\n  FROM t\n\
         *************************** 2. row ***************************\n  Id: 8\nInfo: NULL\n2 rows in set\n",
    );
    assert_eq!((row(&found, 0), row(&found, 1)), (vec!["7", "SELECT ':' AS x FROM t"], vec!["8", "-"]));
    assert_eq!(found.used, 8);
}

#[test]
fn forms_of_psql() {
    let aligned = set(
        " pid |  query   | n\n-----+----------+---\n  12 | SELECT  +|  \n     |  1 | 2   | 3\n   9 | x        |  \n(2 rows)\n",
    );
    assert_eq!((row(&aligned, 0), aligned.used), (vec!["12", "SELECT 1 | 2", "3"], 6));
    let expanded = set("-[ RECORD 1 ]---\npid   | 12\nquery | a | b\n-[ RECORD 2 ]---\npid   | 9\nquery | \n\n");
    assert_eq!((row(&expanded, 0), row(&expanded, 1)), (vec!["12", "a | b"], vec!["9", "-"]));
    let csv = set("pid,query\n12,\"SELECT 1, \"\"x\"\"\"\n");
    assert_eq!(row(&csv, 0), ["12", "SELECT 1, \"x\""]);
}

#[test]
fn tabs() {
    let found = set("Id\tInfo\n7\tSELECT\\n1\n");
    assert_eq!((row(&found, 0), found.used), (vec!["7", "SELECT 1"], 2));
}

#[test]
fn by_name_with_words_and_cut() {
    let columns = Columns::new("PID COMMAND WCHAN").with_words(&["COMMAND"]);
    let row = columns.row("12 tmux: server ep_poll");
    assert_eq!((row.number(&["pid"]), row.text(&["command"])), (Some(12.0), Some("tmux: server")));
    assert_eq!(row.text(&["WCHAN"]), Some("ep_poll"));
    let row = columns.row("12");
    assert_eq!((row.len(), row.text(&["COMMAND"])), (1, None));
}

#[test]
fn cells_by_place_and_by_blanks() {
    let table = Columns::above_cells("LAST SEEN   TYPE      OBJECT      SUBOBJECT   MESSAGE");
    assert!(table.has(&["LAST SEEN", "MESSAGE"]) && !table.has(&["REASON"]));
    let row = table.cells("2m5s        Warning   pod/a-1                 it  failed: é").unwrap();
    assert_eq!((row.text(&["SUBOBJECT"]), row.text(&["MESSAGE"])), (None, Some("it  failed: é")));
    let row = table.cells("2m5s  Warning  pod/a-1  spec{app}  it failed").unwrap();
    assert_eq!((row.text(&["SUBOBJECT"]), row.text(&["MESSAGE"])), (Some("spec{app}"), Some("it failed")));
    assert!(table.cells("a word of prose that is long enough").is_none());
}
