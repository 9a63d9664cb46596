//! One disk from beginning to end: file system with one file, loop device, ext4, mount. Takes all
//! of it down again, in the order that lets its users finish. Does not decide when to end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::disk::device::{self, Device};
use crate::disk::filesystem::{self, FILE};
use crate::disk::mounts::{self, run};
use crate::disk::queue::{self, Control};
use crate::disk::store::Store;
use crate::disk::{DiskError, DiskOptions};

/// Bytes of the largest request: the size that cloud volumes count as one (Amazon EBS I/O
/// characteristics: 256 KiB). With the kernel's 1.25 MiB a small disk would serve five per second,
/// and no rate would be steady.
const LARGEST_REQUEST: u64 = 256 * 1024;

/// How long the end waits for users of the mount. A database that is stopped at the same moment
/// needs its files for some seconds more.
const USERS_WITHIN: Duration = Duration::from_secs(15);
/// How long the device still serves the remaining users; after that they get I/O errors.
const LAST_USERS_WITHIN: Duration = Duration::from_secs(5);
/// How long an earlier disk in the same folder has to disappear.
const FORMER_WITHIN: Duration = Duration::from_secs(30);

/// A disk that serves requests.
pub struct Disk {
    /// Where its ext4 is mounted.
    pub mountpoint: PathBuf,
    device: Device,
    store_mount: PathBuf,
    session: fuser::BackgroundSession,
    control: Arc<Control>,
    _lock: File,
}

impl Disk {
    /// Makes a disk in `dir`. It runs without limits until it is mounted.
    ///
    /// # Errors
    ///
    /// If something is missing, or a program fails; everything made so far is taken down.
    pub fn make(options: &DiskOptions, dir: &Path) -> Result<Self, DiskError> {
        let failed = |what: &str| {
            let what = format!("{what} {}", dir.display());
            move |source| DiskError::System { what, source }
        };
        fs::create_dir_all(dir).map_err(failed("make"))?;
        let dir = dir.canonicalize().map_err(failed("find"))?;
        let lock = lock(&dir).map_err(failed("lock"))?;
        clear(&dir);
        let made = Self::put_together(options, &dir, lock);
        if made.is_err() {
            clear(&dir);
        }
        made
    }

    fn put_together(options: &DiskOptions, dir: &Path, lock: File) -> Result<Self, DiskError> {
        let system = |what: &str| {
            let what = what.to_owned();
            move |source| DiskError::System { what, source }
        };
        let (store_mount, mountpoint) = (dir.join("store"), dir.join("mnt"));
        for place in [&store_mount, &mountpoint] {
            fs::create_dir_all(place).map_err(system(&format!("make {}", place.display())))?;
        }
        let control = Arc::new(Control::default());
        control.limit(options.limits());
        control.open(true);
        let store = Arc::new(Store::new(options.size).map_err(system("reserve memory for the disk"))?);
        let (sender, _) = queue::serve(Arc::clone(&control)).map_err(system("start a thread"))?;
        let session = filesystem::mount(store, sender, &store_mount).map_err(system("mount the disk's file"))?;

        let mut device = Device::attach(&store_mount.join(FILE))?;
        // All blocks are zero already, and ext4 writes its tables at once: no ext4 thread writes
        // later, under the limits.
        let words = "-q -F -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0".split(' ').map(OsStr::new);
        let words: Vec<&OsStr> = words.chain([device.path.as_os_str()]).collect();
        run("mkfs.ext4", &words)?;
        let mut words: Vec<&OsStr> = vec!["-t".as_ref(), "ext4".as_ref()];
        if let Some(list) = &options.mount_options {
            words.extend([OsStr::new("-o"), list.as_ref()]);
        }
        words.extend([device.path.as_os_str(), mountpoint.as_os_str()]);
        run("mount", &words)?;
        // Not earlier, and in this order: whenever a limit of the device changes, also by mkfs, the
        // kernel resets its readahead.
        device.set_largest_request(LARGEST_REQUEST)?;
        device.set_readahead(options.readahead)?;
        // Some servers refuse a data folder that is not empty. A server under any account may write
        // here.
        fs::remove_dir(mountpoint.join("lost+found"))
            .and_then(|()| fs::set_permissions(&mountpoint, fs::Permissions::from_mode(0o1777)))
            .map_err(system("prepare the mounted disk"))?;
        sync(&mountpoint).map_err(system("sync the mounted disk"))?;
        control.open(false);
        Ok(Self { mountpoint, device, store_mount, session, control, _lock: lock })
    }

    /// Its device's file.
    pub fn device(&self) -> &Path {
        &self.device.path
    }

    /// Settings that can change while it serves.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Takes the disk down: first without limits, so that its users can finish, then by force.
    ///
    /// # Errors
    ///
    /// If something is still mounted.
    pub fn remove(self) -> Result<(), DiskError> {
        self.control.open(true);
        let failed = |what: &'static str| move |source| DiskError::System { what: what.to_owned(), source };
        let unmounted = mounts::unmount(&self.mountpoint, USERS_WITHIN).map_err(failed("unmount the disk"));
        self.device.detach(LAST_USERS_WITHIN);
        let ended = mounts::unmount(&self.store_mount, Duration::ZERO).map_err(failed("unmount the disk's file"));
        // Its thread ends with the kernel's last request, which a late user may still hold back: not waited for.
        drop(self.session);
        unmounted.and(ended)
    }
}

/// Takes down whatever a disk that was killed has left in `dir`.
pub fn clear(dir: &Path) {
    let Ok(dir) = dir.canonicalize() else { return };
    // Inside out: ext4, its device, the file below. What can't be unmounted is left for the next who tries.
    for place in ["mnt", "store"] {
        for mountpoint in mounts::below(&dir.join(place)).unwrap_or_default() {
            let _ = mounts::unmount(&mountpoint, Duration::ZERO);
        }
        device::detach_below(&dir);
    }
}

/// Holds the folder until the file is closed: of two disks in it the later would take the earlier's mounts down.
fn lock(dir: &Path) -> io::Result<File> {
    let file = File::create(dir.join("lock"))?;
    let deadline = Instant::now() + FORMER_WITHIN;
    loop {
        // SAFETY: the call takes and returns numbers, and the descriptor is open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(file);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock || Instant::now() >= deadline {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn sync(mountpoint: &Path) -> io::Result<()> {
    let folder = File::open(mountpoint)?;
    // SAFETY: the call takes and returns numbers, and the descriptor is open.
    if unsafe { libc::syncfs(folder.as_raw_fd()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
