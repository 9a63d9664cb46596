//! Tables in every form that is read.

use super::super::paste;
use super::*;

fn set(text: &str) -> Table {
    read(&paste::lines(text.as_bytes(), |_| false), None, false).unwrap()
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

fn below(text: &str) -> Table {
    let lines = paste::lines(text.as_bytes(), |_| false);
    let above = select(&lines[0].text);
    read(&lines[1..], above.as_ref(), true).unwrap()
}

#[test]
fn a_header_comes_from_the_statement_above() {
    for rows in [
        "| 7 | app | SELECT 1 |\n| 8 | ops | NULL |\n",
        "+---+-----+----------+\n| 7 | app | SELECT 1 |\n| 8 | ops | NULL     |\n+---+-----+----------+\n",
        "7\tapp\tSELECT 1\n8\tops\tNULL\n",
        "7 | app | SELECT 1\n8 | ops | \n",
        "...\n7|app|SELECT 1\n8|ops|\n",
        "7,app,SELECT 1\n8,ops,\n",
    ] {
        let found = below(&format!("mysql> SELECT id, user AS who, info FROM processlist;\n{rows}"));
        assert_eq!(found.columns.names, ["id", "who", "info"], "{rows}");
        assert_eq!((row(&found, 0), row(&found, 1)), (vec!["7", "app", "SELECT 1"], vec!["8", "ops", "-"]), "{rows}");
        assert_eq!(found.rows().next().unwrap().text(&["USER"]), Some("app"));
    }
}

#[test]
fn rows_are_left_out_in_the_middle() {
    for text in [
        "+----+------+\n| Id | Info |\n+----+------+\n|  1 | a    |\n...\n|  2 | b    |\n+----+------+\n",
        "| Id | Info |\n|----|:----:|\n| 1 | a |\n| ... | ... |\n| 2 | b |\n",
        " Id | Info\n----+------\n  1 | a\n[...]\n  2 | b\n",
        "Id | Info\n---|---\n1 | a\n\u{2026}\n2 | b\n",
        "Id\tInfo\n1\ta\n...\n2\tb\n",
        "\"Id\",\"Info\"\n\"1\",\"a\"\n\n... (30 more rows)\n\n\"2\",\"b\"\n",
        "*** 1. row ***\nId: 1\nInfo: a\n...\n*** 2. row ***\nId: 2\nInfo: b\n",
    ] {
        let found = set(text);
        assert_eq!((row(&found, 0), row(&found, 1)), (vec!["1", "a"], vec!["2", "b"]), "{text}");
        assert!(found.is_cut && found.rows.len() == 2, "{text}");
    }
}

#[test]
fn quoted_cells_hold_line_breaks_and_quotes() {
    let found = set("\"Id\",\"Info\"\n\"7\",\"SELECT 'a'\nFROM \"\"t\"\", \\\"u\\\"\"\n8,\"cut\n9,x\n");
    assert_eq!(row(&found, 0), ["7", "SELECT 'a' FROM \"t\", \"u\""]);
    assert_eq!((row(&found, 1)[0], row(&found, 2)), ("8", vec!["9", "x"]));
    let found = set("\"Id\";\"Info\"\n\"7\";\"a;b\"\n");
    assert_eq!(row(&found, 0), ["7", "a;b"]);
}

#[test]
fn drawn_records_and_lines() {
    let found = set(
        "\u{250c}\u{2500}[ RECORD 1 ]\u{2500}\u{252c}\u{2500}\u{2500}\u{2500}\u{2510}\n\u{2502} pid   \u{2502} 12 \u{2502}\n\u{2502} query \u{2502} a\u{21b5} \u{2502}\n\u{2502}       \u{2502} b  \u{2502}\n\u{2514}\u{2500}\u{2500}\u{2534}\u{2500}\u{2500}\u{2518}\n",
    );
    assert_eq!((row(&found, 0), found.used), (vec!["12", "a b"], 5));
    let found = set(
        "\u{250c}\u{2500}\u{2500}\u{252c}\u{2500}\u{2500}\u{2510}\n\u{2502} a \u{2502} b \u{2502}\n\u{255e}\u{2550}\u{2550}\u{256a}\u{2550}\u{2550}\u{2561}\n\u{2502} 1 \u{2502} 2 \u{2502}\n\u{2514}\u{2500}\u{2500}\u{2534}\u{2500}\u{2500}\u{2518}\n",
    );
    assert_eq!((row(&found, 0), found.used), (vec!["1", "2"], 5));
    let found = set("1. row\nId: 7\nInfo: x\n2. row\nId: 8\nInfo: y\n");
    assert_eq!((row(&found, 0), row(&found, 1)), (vec!["7", "x"], vec!["8", "y"]));
}

#[test]
fn a_row_of_the_process_list_is_known_by_its_shape() {
    let lines = paste::lines(
        b"| 7 | app | h:1 | d | Query | 3 | init | SELECT 1 |\n| 8 | app | h:2 | d | Sleep | 9 | | NULL |\n",
        |_| false,
    );
    assert_eq!(read(&lines, None, true).unwrap().rows.len(), 2);
    for other in ["| 7 | app | h:1 | d | 3 | 4 | init | x |", "| a | b | c |", "7 8 9"] {
        assert!(read(&paste::lines(other.as_bytes(), |_| false), None, true).is_none(), "{other}");
    }
}
