//! Other tools' files -> holdup's own: scenarios so far.
