//! A machine in a folder whose acting calls are counted, and of which any can be made to fail.
#![allow(dead_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;

use apply::{Disk, Live};
use tuning::journal::{Ring, Tree};
use tuning::plan::{Change, ChangeKind, Host, PLAN_SCHEMA, Place, Plan, Role, Target};
use tuning::transaction::{Check, Found, HANDLE, Prepared, Refusal, Request, World, prepare};
use units::{Duration, Rate};

/// What happens at the call that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process ends before the call: none after it is made.
    KilledBefore,
    /// The process ends right behind it.
    KilledAfter,
    /// The call fails.
    Error(i32),
    /// A write takes half of the bytes, and the next one fails.
    ShortWrite,
}

/// A folder with files, keys, and queue disciplines of its own.
pub struct Machine {
    live: Live,
    shared: Rc<RefCell<Shared>>,
}

struct Shared {
    devices: BTreeMap<String, Tree>,
    rings: BTreeMap<String, (u32, u32)>,
    calls: usize,
    fault: Option<(usize, Fault)>,
    /// No call is made any more.
    dead: bool,
    /// The next write fails.
    full: bool,
    /// Names of the calls, for messages.
    names: Vec<String>,
    boot: String,
    now: u64,
    guard_fails: bool,
}

pub const KEYS: [(&str, &str); 5] = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.core.default_qdisc", "fq_codel"),
    ("net.core.somaxconn", "4096"),
    ("net.netfilter.nf_conntrack_max", "65536"),
];

impl Machine {
    /// With the keys of [`KEYS`], `eth0` with one queue and `eth1` with two.
    pub fn new(root: &Path) -> Self {
        for (key, value) in KEYS {
            let path = root.join("proc/sys").join(key.replace('.', "/"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        for folder in ["etc/sysctl.d", "etc/systemd/system", "var/lib"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("etc/sysctl.d/10-own.conf"), "net.core.somaxconn = 128\n").unwrap();
        let devices =
            BTreeMap::from([("eth0".to_owned(), plain("fq_codel", 0)), ("eth1".to_owned(), plain("fq_codel", 2))]);
        let shared = Shared {
            devices,
            rings: BTreeMap::from([("eth0".to_owned(), (256, 1024))]),
            calls: 0,
            fault: None,
            dead: false,
            full: false,
            names: Vec::new(),
            boot: "first".to_owned(),
            now: 1_000,
            guard_fails: false,
        };
        Self { live: Live::new(root), shared: Rc::new(RefCell::new(shared)) }
    }

    /// Another process on the same machine.
    pub fn again(&self) -> Self {
        let mut shared = self.shared.borrow_mut();
        (shared.calls, shared.fault, shared.dead, shared.full) = (0, None, false, false);
        shared.names.clear();
        Self { live: self.live.clone(), shared: self.shared.clone() }
    }

    /// The machine after a restart: values and devices are the kernel's, then the boot reads the files as systemd-sysctl does.
    pub fn restarted(&self, root: &Path) -> Self {
        {
            let mut shared = self.shared.borrow_mut();
            shared.boot += "+";
            shared.now = 500;
            for (key, value) in KEYS {
                fs::write(root.join("proc/sys").join(key.replace('.', "/")), format!("{value}\n")).unwrap();
            }
            let keys: Vec<String> = KEYS.iter().map(|(key, _)| key.replace('.', "/")).collect();
            let boot = tuning::effective::timeline::boot(&Disk::new(root), &keys);
            for (key, verdict) in boot.verdicts() {
                if let Some((_, write)) = verdict.winner {
                    fs::write(root.join("proc/sys").join(key), format!("{}\n", write.value)).unwrap();
                }
            }
            let default = fs::read_to_string(root.join("proc/sys/net/core/default_qdisc")).unwrap().trim().to_owned();
            shared.devices =
                BTreeMap::from([("eth0".to_owned(), plain(&default, 0)), ("eth1".to_owned(), plain(&default, 2))]);
            shared.rings = BTreeMap::from([("eth0".to_owned(), (256, 1024))]);
        }
        self.again()
    }

    /// Lets the call of this number fail, counted from 0.
    pub fn with_fault(self, at: usize, fault: Fault) -> Self {
        self.shared.borrow_mut().fault = Some((at, fault));
        self
    }

    pub fn without_guard(self) -> Self {
        self.shared.borrow_mut().guard_fails = true;
        self
    }

    /// Lets time pass.
    pub fn wait(&self, ns: u64) {
        self.shared.borrow_mut().now += ns;
    }

    /// How many acting calls were made.
    pub fn calls(&self) -> usize {
        self.shared.borrow().calls
    }

    pub fn name_of(&self, call: usize) -> String {
        self.shared.borrow().names.get(call).cloned().unwrap_or_default()
    }

    pub fn set_device(&self, device: &str, tree: Tree) {
        self.shared.borrow_mut().devices.insert(device.to_owned(), tree);
    }

    pub fn remove_device(&self, device: &str) {
        self.shared.borrow_mut().devices.remove(device);
    }

    fn default(&self) -> String {
        self.live.sysctl("net.core.default_qdisc").unwrap().unwrap()
    }

    /// Everything but the state directory, as text: files with mode, keys, devices.
    pub fn picture(&self, root: &Path) -> BTreeMap<String, String> {
        let mut picture = BTreeMap::new();
        walk(root, root, &mut picture);
        let shared = self.shared.borrow();
        for (device, tree) in &shared.devices {
            picture.insert(format!("device {device}"), format!("{tree:?}"));
        }
        picture.insert("rings".into(), format!("{:?}", shared.rings));
        picture
    }

    /// Does an acting call, unless the fault says otherwise.
    fn act<T>(&mut self, name: &str, call: impl FnOnce(&mut Live, &mut Shared) -> io::Result<T>) -> io::Result<T> {
        let mut shared = self.shared.borrow_mut();
        if shared.dead {
            return Err(io::Error::from_raw_os_error(nix::libc::EINTR + 1000));
        }
        let number = shared.calls;
        shared.calls += 1;
        shared.names.push(name.to_owned());
        match shared.fault.filter(|(at, _)| *at == number) {
            Some((_, Fault::KilledBefore)) => {
                shared.dead = true;
                return Err(io::Error::other("killed"));
            }
            Some((_, Fault::Error(errno))) => return Err(io::Error::from_raw_os_error(errno)),
            Some((_, Fault::KilledAfter)) => {
                let result = call(&mut self.live, &mut shared);
                shared.dead = true;
                drop(result);
                return Err(io::Error::other("killed"));
            }
            _ => {}
        }
        call(&mut self.live, &mut shared)
    }
}

/// A tree that the kernel made by itself.
pub fn plain(kind: &str, queues: usize) -> Tree {
    let root = if queues == 0 { kind } else { "mq" };
    Tree { root: root.to_owned(), handle: 0, leaves: vec![kind.to_owned(); queues] }
}

fn walk(root: &Path, folder: &Path, picture: &mut BTreeMap<String, String>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let kind = entry.file_type().unwrap();
        if name == "var/lib/linerate" {
            continue;
        }
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        if kind.is_dir() {
            picture.insert(name, format!("{mode:o}"));
            walk(root, &path, picture);
        } else if kind.is_symlink() {
            picture.insert(name, fs::read_link(&path).unwrap().display().to_string());
        } else {
            picture.insert(name, format!("{mode:o} {}", String::from_utf8_lossy(&fs::read(&path).unwrap())));
        }
    }
}

impl World for Machine {
    type File = fs::File;

    fn look(&self, path: &str) -> io::Result<Found> {
        self.live.look(path)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.live.list(folder)
    }
    fn sysctl(&self, key: &str) -> io::Result<Option<String>> {
        self.live.sysctl(key)
    }
    fn queues(&self, device: &str) -> io::Result<Option<Tree>> {
        Ok(self.shared.borrow().devices.get(device).cloned())
    }
    fn ring(&self, device: &str, _: Ring) -> io::Result<Option<(u32, u32)>> {
        Ok(self.shared.borrow().rings.get(device).copied())
    }
    fn boot_id(&self) -> String {
        self.shared.borrow().boot.clone()
    }
    fn boottime_ns(&self) -> u64 {
        self.shared.borrow().now
    }
    fn is_watched(&self, _: u32) -> bool {
        !self.shared.borrow().guard_fails
    }
    fn is_read_only(&self, path: &str) -> bool {
        self.live.is_read_only(path)
    }
    fn make_folder(&mut self, path: &str, mode: u32) -> io::Result<()> {
        self.act(&format!("mkdir {path}"), |live, _| live.make_folder(path, mode))
    }
    fn remove_folder(&mut self, path: &str) -> io::Result<()> {
        self.act(&format!("rmdir {path}"), |live, _| live.remove_folder(path))
    }
    fn create(&mut self, path: &str, mode: u32) -> io::Result<fs::File> {
        self.act(&format!("create {path}"), |live, _| live.create(path, mode))
    }
    fn open_end(&mut self, path: &str) -> io::Result<fs::File> {
        self.act(&format!("open {path}"), |live, _| live.open_end(path))
    }
    fn write(&mut self, file: &mut fs::File, bytes: &[u8]) -> io::Result<usize> {
        let short = {
            let shared = self.shared.borrow();
            shared.fault == Some((shared.calls, Fault::ShortWrite))
        };
        let full = std::mem::take(&mut self.shared.borrow_mut().full);
        self.act("write", |live, shared| {
            if full {
                return Err(io::Error::from_raw_os_error(nix::libc::ENOSPC));
            }
            shared.full = short;
            live.write(file, if short { &bytes[..bytes.len() / 2] } else { bytes })
        })
    }
    fn cut(&mut self, file: &mut fs::File, length: u64) -> io::Result<()> {
        self.act("ftruncate", |live, _| live.cut(file, length))
    }
    fn sync(&mut self, file: &mut fs::File) -> io::Result<()> {
        self.act("fsync", |live, _| live.sync(file))
    }
    fn sync_folder(&mut self, path: &str) -> io::Result<()> {
        self.act(&format!("fsync {path}"), |live, _| live.sync_folder(path))
    }
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.act(&format!("rename {from}"), |live, _| live.rename(from, to))
    }
    fn remove(&mut self, path: &str) -> io::Result<()> {
        self.act(&format!("unlink {path}"), |live, _| live.remove(path))
    }
    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.act(&format!("symlink {path}"), |live, _| live.link(path, target))
    }
    fn set_sysctl(&mut self, key: &str, value: &str) -> io::Result<()> {
        // A kernel that refuses the third field has set the first two: proc_doulongvec_minmax.
        let half = matches!(
            (self.shared.borrow().fault, self.shared.borrow().calls),
            (Some((at, Fault::ShortWrite)), calls) if at == calls
        );
        self.act(&format!("sysctl {key}"), |live, _| {
            if !half {
                return live.set_sysctl(key, value);
            }
            let there = live.sysctl(key)?.unwrap_or_default();
            let first = value.split(' ').next().unwrap_or_default();
            let rest = there.split_once(' ').map_or(String::new(), |(_, rest)| format!(" {rest}"));
            live.set_sysctl(key, &format!("{first}{rest}"))?;
            Err(io::Error::from_raw_os_error(nix::libc::EINVAL))
        })
    }
    fn set_root(&mut self, device: &str, kind: &str) -> io::Result<()> {
        let default = self.default();
        self.act(&format!("qdisc {device} root {kind}"), |_, shared| {
            let tree = shared.devices.get_mut(device).ok_or(io::ErrorKind::NotFound)?;
            // A new mq makes its leaves by the default (mq_init).
            let leaves = if kind == "mq" { vec![default; tree.leaves.len()] } else { Vec::new() };
            *tree = Tree { root: kind.to_owned(), handle: HANDLE, leaves };
            Ok(())
        })
    }
    fn set_leaf(&mut self, device: &str, queue: usize, kind: &str) -> io::Result<()> {
        self.act(&format!("qdisc {device} leaf {queue} {kind}"), |_, shared| {
            let tree = shared.devices.get_mut(device).ok_or(io::ErrorKind::NotFound)?;
            assert_eq!(tree.handle, HANDLE, "leaves of an mq without a handle can't be named");
            kind.clone_into(&mut tree.leaves[queue]);
            Ok(())
        })
    }
    fn reset_root(&mut self, device: &str) -> io::Result<()> {
        let default = self.default();
        self.act(&format!("qdisc {device} delete"), |_, shared| {
            let queues = if device == "eth1" { 2 } else { 0 };
            let tree = shared.devices.get_mut(device).ok_or(io::ErrorKind::NotFound)?;
            assert_ne!(tree.handle, 0, "the kernel's own root can't be taken away");
            *tree = plain(&default, queues);
            Ok(())
        })
    }
    fn set_ring(&mut self, device: &str, _: Ring, size: u32) -> io::Result<()> {
        self.act(&format!("ring {device}"), |_, shared| {
            shared.rings.get_mut(device).ok_or(io::ErrorKind::NotFound)?.0 = size;
            Ok(())
        })
    }
    fn reload_units(&mut self) -> io::Result<()> {
        self.act("daemon-reload", |_, _| Ok(()))
    }
    fn start_guard(&mut self, _: u32) -> io::Result<()> {
        self.act("guard", |_, shared| if shared.guard_fails { Err(io::Error::other("no guard")) } else { Ok(()) })
    }
}

/// A change of a plan.
pub fn change(kind: ChangeKind, key: &str, from: &str, to: &str) -> Change {
    Change {
        kind,
        key: key.into(),
        from: from.into(),
        to: to.into(),
        place: Place::Host,
        why: "a test".into(),
        effect: String::new(),
        risk: String::new(),
        source: String::new(),
    }
}

/// One change of each sort.
pub fn plan() -> Plan {
    use ChangeKind::{Qdisc, Ring, Sysctl};
    let changes = vec![
        change(Sysctl, "net.ipv4.tcp_rmem", "4096 131072 6291456", "8192 262144 40894464"),
        change(Sysctl, "net.ipv4.tcp_congestion_control", "cubic", "bbr"),
        change(Sysctl, "net.core.default_qdisc", "fq_codel", "fq"),
        change(Sysctl, "net.netfilter.nf_conntrack_max", "65536", "262144"),
        change(Qdisc, "eth0 root", "fq_codel", "fq"),
        change(Qdisc, "eth1 leaves", "fq_codel fq_codel", "fq fq"),
        change(Ring, "eth0 rx", "256", "1024"),
    ];
    Plan {
        schema: PLAN_SCHEMA.into(),
        host: host(),
        target: Target {
            bandwidth: Rate::from_bps(1_000_000_000),
            rtt: Duration::from_millis(80),
            role: Role::Bulk,
            connections: None,
        },
        changes,
        kept: Vec::new(),
        notes: Vec::new(),
    }
}

pub fn host() -> Host {
    Host { name: "server".into(), id: "1234".into(), kernel: "6.12.1".into(), memory_bytes: 1 << 34 }
}

/// The steps of a plan on a machine.
pub fn prepared(machine: &Machine, root: &Path, plan: &Plan) -> Result<Prepared, Vec<Refusal>> {
    let transactions = tuning::transaction::load(machine).unwrap();
    let disk = Disk::new(root);
    let host = host();
    let check = Check {
        host: &host,
        container: None,
        root: &disk,
        transactions: &transactions,
        live_only: false,
        exec: Ok("/usr/local/bin/linerate".into()),
        systemd: true,
    };
    prepare(machine, plan, &check)
}

/// The request for these steps.
pub fn request(prepared: &Prepared, confirm_ns: Option<u64>) -> Request {
    let begin = tuning::journal::Begin {
        format: tuning::journal::JOURNAL_FORMAT.into(),
        confirm_ns,
        ..tuning::journal::Begin::default()
    };
    Request { begin, steps: prepared.steps.clone() }
}
