//! The file that a system call works on: `/proc/PID/task/TID/syscall` has the call's number and
//! arguments, and the number tells which argument names the file. The numbers are those of the
//! architecture this program is built for. Parsing only.

/// A system call that a thread sleeps in, as `syscall` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Its arguments; none for a thread of a 32-bit program, whose numbers mean other calls.
    arguments: Option<[u64; 6]>,
}

/// How a call names its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileReference {
    /// By the address of its path, relative to the folder of the descriptor; without a descriptor,
    /// to the working directory.
    Path {
        /// Address of the path in the process' memory.
        address: u64,
        /// The folder's descriptor.
        folder: Option<i32>,
    },
    /// By a descriptor.
    Descriptor(i32),
}

/// The position of the file among a call's arguments.
#[derive(Clone, Copy)]
enum FileArgument {
    /// A path in this argument.
    Path(usize),
    /// A folder's descriptor, and a path relative to it.
    At(usize, usize),
    /// A descriptor.
    Descriptor(usize),
}

use FileArgument::{At, Descriptor, Path};

/// The calls of every architecture that may sleep on a file. If a call has two paths, the old one:
/// that file exists.
const CALLS: &[(i64, FileArgument)] = &[
    (libc::SYS_openat, At(0, 1)),
    (libc::SYS_openat2, At(0, 1)),
    (libc::SYS_unlinkat, At(0, 1)),
    (libc::SYS_renameat2, At(0, 1)),
    (libc::SYS_mkdirat, At(0, 1)),
    (libc::SYS_mknodat, At(0, 1)),
    (libc::SYS_linkat, At(0, 1)),
    (libc::SYS_symlinkat, At(1, 2)),
    (libc::SYS_readlinkat, At(0, 1)),
    (libc::SYS_newfstatat, At(0, 1)),
    (libc::SYS_statx, At(0, 1)),
    (libc::SYS_faccessat, At(0, 1)),
    (libc::SYS_faccessat2, At(0, 1)),
    (libc::SYS_fchmodat, At(0, 1)),
    (libc::SYS_fchownat, At(0, 1)),
    (libc::SYS_utimensat, At(0, 1)),
    (libc::SYS_truncate, Path(0)),
    (libc::SYS_statfs, Path(0)),
    (libc::SYS_chdir, Path(0)),
    (libc::SYS_execve, Path(0)),
    (libc::SYS_read, Descriptor(0)),
    (libc::SYS_write, Descriptor(0)),
    (libc::SYS_pread64, Descriptor(0)),
    (libc::SYS_pwrite64, Descriptor(0)),
    (libc::SYS_readv, Descriptor(0)),
    (libc::SYS_writev, Descriptor(0)),
    (libc::SYS_preadv, Descriptor(0)),
    (libc::SYS_pwritev, Descriptor(0)),
    (libc::SYS_preadv2, Descriptor(0)),
    (libc::SYS_pwritev2, Descriptor(0)),
    (libc::SYS_fsync, Descriptor(0)),
    (libc::SYS_fdatasync, Descriptor(0)),
    (libc::SYS_sync_file_range, Descriptor(0)),
    (libc::SYS_syncfs, Descriptor(0)),
    (libc::SYS_ftruncate, Descriptor(0)),
    (libc::SYS_fallocate, Descriptor(0)),
    (libc::SYS_getdents64, Descriptor(0)),
    (libc::SYS_fstat, Descriptor(0)),
    (libc::SYS_flock, Descriptor(0)),
    (libc::SYS_sendfile, Descriptor(1)),
    (libc::SYS_copy_file_range, Descriptor(0)),
];

/// Calls of the first architectures only; later ones have just their `…at` variants.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(i64, FileArgument)] = &[
    (libc::SYS_open, Path(0)),
    (libc::SYS_creat, Path(0)),
    (libc::SYS_unlink, Path(0)),
    (libc::SYS_rename, Path(0)),
    (libc::SYS_renameat, At(0, 1)),
    (libc::SYS_mkdir, Path(0)),
    (libc::SYS_rmdir, Path(0)),
    (libc::SYS_mknod, Path(0)),
    (libc::SYS_link, Path(0)),
    (libc::SYS_symlink, Path(1)),
    (libc::SYS_readlink, Path(0)),
    (libc::SYS_stat, Path(0)),
    (libc::SYS_lstat, Path(0)),
    (libc::SYS_access, Path(0)),
    (libc::SYS_chmod, Path(0)),
    (libc::SYS_chown, Path(0)),
    (libc::SYS_getdents, Descriptor(0)),
];

#[cfg(target_arch = "aarch64")]
const OLD_CALLS: &[(i64, FileArgument)] = &[(libc::SYS_renameat, At(0, 1))];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLD_CALLS: &[(i64, FileArgument)] = &[];

impl Call {
    /// Parses the text of `syscall`: `NUMBER ARGUMENT×6 SP PC`. None for `running`, and for `-1 SP
    /// PC`, a thread that sleeps outside any call (a page fault).
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let number = fields.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut values = [0; 8];
        let mut whole = text.ends_with('\n');
        for value in &mut values {
            let field = fields.next().and_then(|field| field.strip_prefix("0x"));
            match field.and_then(|field| u64::from_str_radix(field, 16).ok()) {
                Some(number) => *value = number,
                None => whole = false,
            }
        }
        let [a, b, c, d, e, f, stack_pointer, _] = values;
        // The stack of a 64-bit program lies far above 4 GiB, that of a 32-bit one always below.
        let arguments = (whole && stack_pointer > u64::from(u32::MAX)).then_some([a, b, c, d, e, f]);
        Some(Self { number, arguments })
    }

    /// How it names its file; none if the call has no file or is unknown.
    pub fn file(&self) -> Option<FileReference> {
        let arguments = self.arguments?;
        let place = CALLS.iter().chain(OLD_CALLS).find(|(number, _)| *number == self.number)?.1;
        // A descriptor is the lower half of its register, whatever the upper half contains.
        let descriptor = |index: usize| arguments[index] as u32 as i32;
        Some(match place {
            Path(path) => FileReference::Path { address: arguments[path], folder: None },
            At(folder, path) => {
                let folder = Some(descriptor(folder)).filter(|folder| *folder != libc::AT_FDCWD);
                FileReference::Path { address: arguments[path], folder }
            }
            Descriptor(index) => FileReference::Descriptor(descriptor(index)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: i64, arguments: &str) -> String {
        format!("{number} {arguments} 0x7ffd0000f000 0x7f2000001000\n")
    }

    #[test]
    fn the_file_of_a_call_is_found_by_its_number() {
        let of = |number, arguments: &str| Call::parse(&text(number, arguments)).unwrap().file();
        let path = |address, folder| Some(FileReference::Path { address, folder });
        assert_eq!(of(libc::SYS_openat, "0xffffff9c 0x7f00aa 0x0 0x0 0x0 0x0"), path(0x7f_00aa, None));
        assert_eq!(of(libc::SYS_unlinkat, "0xffffffffffffff9c 0x7f00aa 0x0 0x0 0x0 0x0"), path(0x7f_00aa, None));
        assert_eq!(of(libc::SYS_unlinkat, "0x5 0x7f00aa 0x0 0x0 0x0 0x0"), path(0x7f_00aa, Some(5)));
        assert_eq!(of(libc::SYS_symlinkat, "0x1 0x6 0x7f00bb 0x0 0x0 0x0"), path(0x7f_00bb, Some(6)));
        assert_eq!(of(libc::SYS_truncate, "0x7f00cc 0x0 0x0 0x0 0x0 0x0"), path(0x7f_00cc, None));
        assert_eq!(of(libc::SYS_pread64, "0x2a 0x1 0x2 0x3 0x0 0x0"), Some(FileReference::Descriptor(42)));
        assert_eq!(of(libc::SYS_sendfile, "0x9 0x8 0x0 0x3 0x0 0x0"), Some(FileReference::Descriptor(8)));
        assert_eq!(of(libc::SYS_futex, "0x7f00cc 0x0 0x0 0x0 0x0 0x0"), None);
        assert_eq!(of(libc::SYS_io_submit, "0x7f00cc 0x0 0x0 0x0 0x0 0x0"), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn numbers_of_x86_64_as_in_its_table() {
        let of = |number| Call::parse(&text(number, "0x7f00 0x7f10 0x0 0x0 0x0 0x0")).unwrap().file();
        for number in [2, 4, 6, 21, 76, 82, 83, 84, 85, 86, 87, 89] {
            assert_eq!(of(number), Some(FileReference::Path { address: 0x7f00, folder: None }), "{number}");
        }
        for number in [257, 258, 262, 263, 264, 265, 316, 332, 437] {
            assert!(
                matches!(of(number), Some(FileReference::Path { address: 0x7f10, folder: Some(0x7f00) })),
                "{number}"
            );
        }
    }

    #[test]
    fn no_call_and_a_call_of_a_32_bit_program() {
        for none in ["running\n", "-1 0x7ffd00 0x7f20\n", "", "x 0x1\n"] {
            assert_eq!(Call::parse(none), None, "{none}");
        }
        // Number 10 of a 32-bit program is `unlink`; to a 64-bit one it is another.
        let call = Call::parse("257 0xffffff9c 0x804a000 0x0 0x0 0x0 0x0 0xffd0f000 0xf7f20000\n").unwrap();
        assert_eq!((call.number, call.file()), (257, None));
        // Cut off: a shorter address would be another one.
        let whole = text(libc::SYS_unlinkat, "0x5 0x7f00aa 0x0 0x0 0x0 0x0");
        for end in 0..whole.len() {
            assert_eq!(Call::parse(&whole[..end]).and_then(|call| call.file()), None, "{end}");
        }
    }
}
