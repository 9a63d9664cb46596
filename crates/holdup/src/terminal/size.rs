//! The size of the terminal.

/// Columns and rows of the terminal on `descriptor` (`STDOUT_FILENO`, `STDERR_FILENO`); 80 and 24 if it does not say.
pub fn columns_and_rows(descriptor: libc::c_int) -> (usize, usize) {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize, which lives through the call.
    let result = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &raw mut size) };
    let or = |value: u16, default| if result == 0 && value > 0 { usize::from(value) } else { default };
    (or(size.ws_col, 80), or(size.ws_row, 24))
}
