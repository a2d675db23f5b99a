//! This machine, or a folder that stands for one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::{qdisc, ring, sysctl};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::time::{ClockId, clock_gettime};
use tuning::Key;
use tuning::journal::{Ring, Tree};
use tuning::transaction::{Found, HANDLE, World};

use crate::guard;

/// No file of linerate's is larger.
const LARGEST: u64 = 32 << 20;

/// The machine as a transaction acts on it.
#[derive(Debug, Clone)]
pub struct Live {
    root: PathBuf,
    keys: PathBuf,
    guard: Vec<OsString>,
}

impl Live {
    /// With the files under `root`: `/` for this machine. Keys are the kernel's, in the calling thread's network namespace, unless the folder
    /// has a `proc/sys` of its own.
    pub fn new(root: &Path) -> Self {
        let own = root.join("proc/sys");
        let keys = if own.is_dir() { own } else { PathBuf::from("/proc/sys") };
        Self { root: root.to_owned(), keys, guard: Vec::new() }
    }

    /// With the command that watches a transaction; its number is appended.
    #[must_use]
    pub fn with_guard(mut self, command: Vec<OsString>) -> Self {
        self.guard = command;
        self
    }

    /// Whether this is the machine itself.
    pub fn is_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Whether systemd runs this machine (sd_booted(3)), and this is the machine itself.
    pub fn has_systemd(&self) -> bool {
        self.is_machine() && Path::new("/run/systemd/system").is_dir()
    }

    /// A path of the machine.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn key(&self, key: &str) -> io::Result<PathBuf> {
        let key = Key::parse(key).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        Ok(self.keys.join(key.path()))
    }
}

fn index(device: &str) -> io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(device)?)
}

impl World for Live {
    type File = File;

    fn look(&self, path: &str) -> io::Result<Found> {
        let place = self.place(path);
        let metadata = match fs::symlink_metadata(&place) {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Found::Nothing);
            }
            Err(error) => return Err(error),
        };
        let mode = metadata.mode() & 0o7777;
        // Root's is trusted by everybody, and root trusts nobody else's.
        let own = metadata.uid() == 0 || metadata.uid() == nix::unistd::geteuid().as_raw();
        let kind = metadata.file_type();
        if kind.is_symlink() {
            return Ok(Found::Link(fs::read_link(place)?.to_string_lossy().into_owned()));
        }
        if kind.is_dir() {
            return Ok(Found::Folder { mode, own });
        }
        if !kind.is_file() {
            return Ok(Found::Other);
        }
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(place)?;
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(Found::File { bytes, mode, own })
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        match fs::read_dir(self.place(folder)) {
            Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn sysctl(&self, key: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.key(key)?) {
            Ok(text) => Ok(Some(sysctl::normalise(&text))),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn queues(&self, device: &str) -> io::Result<Option<Tree>> {
        let Ok(index) = index(device) else { return Ok(None) };
        let all = qdisc::list()?;
        let mut of_device = all.iter().filter(|qdisc| qdisc.index == index);
        let Some(root) = of_device.clone().find(|qdisc| qdisc.root) else {
            // A device that is down has the kernel's placeholder, which is in no list.
            return Ok(Some(Tree { root: "noop".into(), handle: 0, leaves: Vec::new() }));
        };
        let mut leaves: Vec<_> = of_device
            .by_ref()
            .filter(|qdisc| root.kind == "mq" && !qdisc.root && qdisc.parent >> 16 == root.handle >> 16)
            .collect();
        leaves.sort_by_key(|leaf| leaf.parent);
        let leaves = leaves.into_iter().map(|leaf| leaf.kind.clone()).collect();
        Ok(Some(Tree { root: root.kind.clone(), handle: root.handle >> 16, leaves }))
    }

    fn ring(&self, device: &str, which: Ring) -> io::Result<Option<(u32, u32)>> {
        Ok(ring::rings(device)?.map(|rings| match which {
            Ring::Rx => (rings.rx, rings.rx_max),
            Ring::Tx => (rings.tx, rings.tx_max),
        }))
    }

    fn boot_id(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        read(&self.keys.join("kernel/random/boot_id"))
    }

    fn boottime_ns(&self) -> u64 {
        // It fails only for an unknown clock, and every Linux since 2.6.39 has this one.
        clock_gettime(ClockId::CLOCK_BOOTTIME)
            .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
    }

    fn is_watched(&self, id: u32) -> bool {
        guard::is_watching(self, id)
    }

    fn is_read_only(&self, path: &str) -> bool {
        let place = if path == "/proc/sys" { self.keys.clone() } else { self.place(path) };
        statvfs(&place).is_ok_and(|found| found.flags().contains(FsFlags::ST_RDONLY))
    }

    fn make_folder(&mut self, path: &str, mode: u32) -> io::Result<()> {
        fs::DirBuilder::new().mode(mode).create(self.place(path))
    }

    fn remove_folder(&mut self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.place(path))
    }

    fn create(&mut self, path: &str, mode: u32) -> io::Result<File> {
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(self.place(path))?;
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(file)
    }

    fn open_end(&mut self, path: &str) -> io::Result<File> {
        OpenOptions::new().append(true).custom_flags(nix::libc::O_NOFOLLOW).open(self.place(path))
    }

    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn cut(&mut self, file: &mut File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn sync(&mut self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_folder(&mut self, path: &str) -> io::Result<()> {
        File::open(self.place(path))?.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.place(from), self.place(to))
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        fs::remove_file(self.place(path))
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        symlink(target, self.place(path))
    }

    fn set_sysctl(&mut self, key: &str, value: &str) -> io::Result<()> {
        sysctl::put(&self.key(key)?, value)
    }

    fn set_root(&mut self, device: &str, kind: &str) -> io::Result<()> {
        qdisc::set_root(index(device)?, HANDLE as u16, kind)
    }

    fn set_leaf(&mut self, device: &str, queue: usize, kind: &str) -> io::Result<()> {
        let queue = u16::try_from(queue).map_err(|_| io::ErrorKind::InvalidInput)?;
        qdisc::set_leaf(index(device)?, HANDLE as u16, queue, kind)
    }

    fn reset_root(&mut self, device: &str) -> io::Result<()> {
        qdisc::delete_root(index(device)?)
    }

    fn set_ring(&mut self, device: &str, which: Ring, size: u32) -> io::Result<()> {
        match which {
            Ring::Rx => ring::set_rings(device, Some(size), None),
            Ring::Tx => ring::set_rings(device, None, Some(size)),
        }
    }

    fn reload_units(&mut self) -> io::Result<()> {
        if !self.has_systemd() {
            return Ok(());
        }
        let command = Command::new("systemctl").arg("daemon-reload").stdin(Stdio::null()).output()?;
        if command.status.success() { Ok(()) } else { Err(io::Error::other("systemctl daemon-reload failed")) }
    }

    fn start_guard(&mut self, id: u32) -> io::Result<()> {
        let mut command = self.guard.clone();
        command.push(id.to_string().into());
        guard::start(&command, self.has_systemd().then(|| format!("linerate-guard-{id}")))
    }
}
