//! The live view on a terminal of the test's own: a pseudo-terminal, and of what terminals do with what is written to them
//! as much as the view needs.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::time::Duration;

use super::run;
use crate::service::Service;

const WIDTH: u16 = 72;
const HEIGHT: u16 = 16;

/// Both ends of a pseudo-terminal.
fn open() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize { ws_row: HEIGHT, ws_col: WIDTH, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: openpty fills two numbers and reads a size, which all live through the call; name and settings may be null.
    let result = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, std::ptr::null_mut(), std::ptr::null(), &raw const size)
    };
    assert_eq!(result, 0);
    // SAFETY: both were opened just now and are nobody else's.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// A screen as tall as is needed, without what was cut off on the right. True for each of its frames that broke a line.
#[derive(Default)]
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    colours: usize,
    too_wide: usize,
}

impl Screen {
    fn write(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\x1b' => self.escape(&mut chars),
                c => self.put(c),
            }
        }
    }

    fn put(&mut self, c: char) {
        if self.column >= usize::from(WIDTH) {
            self.too_wide += 1;
        }
        self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), ' ');
        row[self.column] = c;
        self.column += 1;
    }

    fn escape(&mut self, chars: &mut std::str::Chars<'_>) {
        assert_eq!(chars.next(), Some('['));
        let mut number = String::new();
        let end = loop {
            let c = chars.next().unwrap();
            if c.is_ascii_alphabetic() {
                break c;
            }
            number.push(c);
        };
        match end {
            'A' => self.row = self.row.checked_sub(number.parse().unwrap()).expect("above the first line"),
            'K' | 'J' => {
                self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
                self.rows[self.row].truncate(self.column);
                if end == 'J' {
                    self.rows.truncate(self.row + 1);
                }
            }
            'm' => self.colours += 1,
            other => panic!("unknown escape {number}{other}"),
        }
    }

    fn text(&self) -> String {
        self.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned() + "\n").collect()
    }
}

/// What the screen shows each time something was written, and at the end.
fn watch(no_color: bool) -> (Vec<String>, Screen) {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let (mut ours, theirs) = open();
    let mut command = run(&service, dir.path(), &["--out=csv:seconds.csv"]);
    command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").stdout(std::process::Stdio::null()).stderr(theirs);
    if !no_color {
        command.env_remove("NO_COLOR");
    }
    let mut child = command.spawn().unwrap();
    // It holds the other end; when it and the child's are closed, reading ends.
    drop(command);
    let (mut screen, mut shown) = (Screen::default(), Vec::new());
    let mut pending = Vec::new();
    let mut buffer = [0; 65_536];
    while let Ok(n @ 1..) = ours.read(&mut buffer) {
        pending.extend(&buffer[..n]);
        // A write may be cut in the middle of a character or an escape by the terminal's own buffer.
        if let Ok(text) = std::str::from_utf8(&pending)
            && text.rfind('\x1b').is_none_or(|at| text[at + 1..].contains(|c: char| c.is_ascii_alphabetic()))
        {
            screen.write(text);
            shown.push(screen.text());
            pending.clear();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    (shown, screen)
}

#[test]
fn the_view_renews_itself_and_goes_away() {
    for no_color in [false, true] {
        let (shown, screen) = watch(no_color);
        assert!(shown.len() >= 6, "{shown:#?}");
        let full = shown.iter().rev().find(|text| text.contains("rate ")).unwrap();
        for words in ["% ", " left  now 100/s", "100/s offered", "p50 ", "errors    none", "of 50 in flight"] {
            assert!(full.contains(words), "no {words}: {full}");
        }
        assert!(shown.iter().all(|text| text.matches("in flight").count() <= 1), "it stands there once: {shown:#?}");
        assert_eq!(screen.too_wide, 0, "{full}");
        assert_eq!(screen.colours > 0, !no_color);
        assert_eq!(screen.text().trim(), "", "and is gone at the end");
    }
}
