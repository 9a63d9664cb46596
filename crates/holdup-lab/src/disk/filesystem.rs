//! The FUSE file system with one file, the disk. It hands reads and writes to the queue and answers
//! other requests at once. The kernel's loop driver is its only user, so it supports only what that
//! driver requests.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::disk::queue::Job;
use crate::disk::store::Store;

/// Name of the file.
pub const FILE: &str = "disk";
const FILE_INODE: INodeNo = INodeNo(2);
/// Nothing about the file ever changes.
const FOREVER: Duration = Duration::from_secs(86_400);
/// Largest request, bytes. The kernel's own limit for one FUSE request is 256 pages. A smaller
/// limit here would split the device's requests, and each part would count as one.
const LARGEST_REQUEST: u32 = 1 << 20;
/// Requests that the kernel sends at a time. FUSE's usual 12 would hold the rest back unseen; a
/// loop device has 128.
const AT_A_TIME: u16 = 512;

struct OneFile {
    store: Arc<Store>,
    queue: Sender<Job>,
}

/// Mounts the file system of `store` at `mountpoint`; a separate thread serves it until it is
/// unmounted.
///
/// # Errors
///
/// If the system refuses: without root, or without /dev/fuse.
pub fn mount(store: Arc<Store>, queue: Sender<Job>, mountpoint: &Path) -> io::Result<BackgroundSession> {
    let mut config = Config::default();
    let name = MountOption::FSName("holdup-disk".to_owned());
    config.mount_options = vec![name, MountOption::NoSuid, MountOption::NoDev, MountOption::NoExec];
    fuser::spawn_mount(OneFile { store, queue }, mountpoint, &config)
}

impl OneFile {
    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            FILE_INODE => (FileType::RegularFile, 0o600, self.store.bytes),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Puts a request into the queue, which answers it. When the disk is shutting down, the dropped
    /// reply tells the kernel so.
    fn enqueue(&self, bytes: u64, answer: impl FnOnce() + Send + 'static) {
        drop(self.queue.send(Job { bytes, arrived: Instant::now(), answer: Box::new(answer) }));
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it the loop driver's thread waits for each request before it sends the next: a
        // queue of one.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES)
            .map_err(|_| io::Error::from_raw_os_error(libc::EPROTONOSUPPORT))?;
        // The error gives the nearest allowed value, which is at least the default.
        let _ = config.set_max_write(LARGEST_REQUEST);
        let _ = config.set_max_background(AT_A_TIME);
        let _ = config.set_congestion_threshold(AT_A_TIME);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE_INODE) {
            Some(attributes) if parent == INodeNo::ROOT && name == FILE => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let store = Arc::clone(&self.store);
        self.enqueue(u64::from(size), move || match store.read(offset, size as usize) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error.into()),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        // Written at once, answered later: until then no reader may rely on either content.
        let written = self.store.write(offset, data);
        self.enqueue(u64::from(size), move || match written {
            Ok(()) => reply.written(size),
            Err(error) => reply.error(error.into()),
        });
    }

    /// A flush covers data that is already stored. It waits for the writes before it, which the
    /// kernel has seen answered, and costs nothing. So reads and writes alone make up the limited
    /// rates.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}
