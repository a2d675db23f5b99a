//! The effective values against the real programs: systemd-sysctl and procps' `sysctl --system`, run on generated directories.
//!
//! Both run in a mount and a network namespace of their own, where `/etc`, `/run` and the library directories are generated ones
//! and `/proc/sys` is an empty file system with the keys of the test, so that what was really written can be read back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tuning::effective::{Applier, Dialect, MemoryRoot, State, Step, order, timeline};

/// Keys that exist in the tests' `/proc/sys`.
const KEYS: [&str; 12] = [
    "net/core/somaxconn",
    "net/core/rmem_max",
    "net/ipv4/tcp_rmem",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/default/rp_filter",
    "net/ipv4/conf/eth0/rp_filter",
    "net/ipv4/conf/eth0.100/rp_filter",
    "net/ipv4/conf/all/arp_filter",
    "net/ipv4/conf/eth0/arp_filter",
    "vm/swappiness",
    "kernel/pid_max",
];

/// Directories of settings files.
const DIRECTORIES: [&str; 4] = ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d"];

const SYSTEMD: &str = "/lib/systemd/systemd-sysctl";
const PROCPS: &str = "/sbin/sysctl";

/// What a key holds that nobody wrote to. systemd-sysctl doesn't write a value that is there already.
const UNTOUCHED: &str = "untouched\n";

/// xorshift64*: the same cases in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A key in one of its notations, sometimes a pattern, sometimes none that exists.
fn key(random: &mut Random) -> String {
    const OTHERS: [&str; 12] = [
        "net.ipv4.conf.*.rp_filter",
        "net.ipv4.conf.eth*.rp_filter",
        "net/ipv4/conf/eth?/rp_filter",
        "net.ipv4.conf.[ae]*.arp_filter",
        "net.ipv4.conf.*.*_filter",
        "net.*.somaxconn",
        "net.ipv4.conf.eth0/100.rp_filter",
        "net.ipv4.conf.eth0.100.rp_filter",
        "net.core.no_such_key",
        "/net/core/rmem_max",
        "net//core/./rmem_max",
        "net.core",
    ];
    match random.below(5) {
        0 | 1 => random.pick(&OTHERS).to_owned(),
        2 => random.pick(&KEYS).to_owned(),
        _ => {
            let swap = |c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            };
            random.pick(&KEYS).chars().map(swap).collect()
        }
    }
}

fn line(random: &mut Random) -> String {
    let key = key(random);
    let value = random.pick(&["1", "2", "4096 131072 33554432", "0", "a=b", "\"1\"", "1 # c", "fq"]);
    let end = random.pick(&["\n", "\n", "\n", "\r\n", " \t\n", "\n\n"]);
    match random.below(16) {
        0 => format!("# {key} = {value}{end}"),
        1 => format!("  ; {key}{end}"),
        2 => format!("-{key}{end}"),
        3 => format!("-{key} = {value}{end}"),
        4 => format!("{key} {value}{end}"),
        5 => format!("\t{key}\t=\t{value}{end}"),
        6 => format!("{key}={end}"),
        7 => format!("={value}{end}"),
        8 => format!("- {key}={value}{end}"),
        _ => format!("{key} = {value}{end}"),
    }
}

fn text(random: &mut Random) -> String {
    let mut text: String = (0..random.below(7)).map(|_| line(random)).collect();
    if random.below(4) == 0 {
        text.truncate(text.trim_end().len());
    }
    text
}

/// One generated tree, on disk and in memory.
struct Case {
    folder: tempfile::TempDir,
    root: MemoryRoot,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut case = Self { folder: tempfile::tempdir().unwrap(), root: MemoryRoot::new() };
        for directory in DIRECTORIES {
            fs::create_dir_all(case.folder.path().join(directory)).unwrap();
        }
        case.root = case.root.link("/lib", "usr/lib");
        let names =
            ["10-a.conf", "50-b.conf", "99-sysctl.conf", "local.conf", "Z.conf", "README", ".hidden.conf", "é.conf"];
        let mut used = Vec::new();
        for _ in 0..random.below(9) {
            let path = format!("{}/{}", random.pick(&DIRECTORIES), random.pick(&names));
            if used.contains(&path) {
                continue;
            }
            match random.below(10) {
                0 => case.link(&path, "/dev/null"),
                1 => case.link(&path, "../sysctl.conf"),
                2 => case.link(&path, "nothing-there"),
                3 => case.directory(&path),
                4 => case.link(&path, "/usr/lib/sysctl.d/50-b.conf"),
                _ => case.file(&path, &text(&mut random)),
            }
            used.push(path);
        }
        if random.below(2) == 0 {
            case.file("etc/sysctl.conf", &text(&mut random));
        }
        case
    }

    fn file(&mut self, path: &str, text: &str) {
        fs::write(self.folder.path().join(path), text).unwrap();
        self.root = std::mem::take(&mut self.root).file(&format!("/{path}"), text);
    }

    fn link(&mut self, path: &str, target: &str) {
        symlink(target, self.folder.path().join(path)).unwrap();
        self.root = std::mem::take(&mut self.root).link(&format!("/{path}"), target);
    }

    fn directory(&mut self, path: &str) {
        fs::create_dir(self.folder.path().join(path)).unwrap();
        self.root = std::mem::take(&mut self.root).directory(&format!("/{path}"));
    }

    /// Runs `program` where this tree's directories are in the place of the host's, and `keys` in the place of `/proc/sys`.
    fn run(&self, program: &str, keys: &Path) -> String {
        let script = format!(
            "set -e; mount --make-rprivate /; mount --bind {keys} /proc/sys; \
             for d in etc run usr/local/lib usr/lib/sysctl.d; do mount --bind {folder}/$d /$d; done; cd /; \
             {program} 2>/dev/null || true",
            keys = keys.display(),
            folder = self.folder.path().display(),
        );
        let output = Command::new("unshare").args(["--mount", "--net", "sh", "-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What the real program leaves in each key that it writes.
    fn real(&self, program: &str) -> BTreeMap<String, String> {
        let keys = tempfile::tempdir().unwrap();
        for key in KEYS {
            let file = keys.path().join(key);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, UNTOUCHED).unwrap();
        }
        self.run(program, keys.path());
        let read = |key: &&str| {
            let text = fs::read_to_string(keys.path().join(key)).unwrap();
            // This file system does not cut a file that is written: the tail of what was longer stays behind the first line.
            let value = text.split_once('\n').map_or(text.as_str(), |(value, _)| value);
            (text != UNTOUCHED).then(|| ((*key).to_owned(), value.to_owned()))
        };
        KEYS.iter().filter_map(read).collect()
    }

    /// What we say.
    fn ours(&self, applier: Applier) -> BTreeMap<String, String> {
        let universe: Vec<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
        let timeline = match applier {
            Applier::Procps => timeline::sysctl_system(&self.root, &universe, procps_here()),
            _ => timeline::boot(&self.root, &universe),
        };
        let step: &Step = timeline.steps.iter().find(|step| step.applier == applier).unwrap();
        let written = step.applied.keys.iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
        written.filter_map(|(key, outcome)| Some((key.clone(), outcome.winner.as_ref()?.value.clone()))).collect()
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for directory in DIRECTORIES.iter().copied().chain(["etc"]) {
            for entry in fs::read_dir(self.folder.path().join(directory)).unwrap().flatten() {
                let path = entry.path();
                let what = match fs::read_link(&path) {
                    Ok(target) => format!("-> {}", target.display()),
                    Err(_) if path.is_dir() => "directory".to_owned(),
                    Err(_) => format!("{:?}", fs::read_to_string(&path).unwrap()),
                };
                text += &format!("{directory}/{}: {what}\n", entry.file_name().to_string_lossy());
            }
        }
        text
    }
}

/// The dialect of the procps that is installed here.
fn procps_here() -> Dialect {
    let output = Command::new(PROCPS).arg("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().next_back().unwrap_or("");
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let version = [(); 3].map(|()| numbers.next().unwrap_or(0));
    if version >= [4, 0, 5] { Dialect::Procps405 } else { Dialect::Procps }
}

const CASES: u64 = 150;

/// Whether the program is there; CI installs both.
fn is_installed(tool: &str) -> bool {
    let found = Path::new(tool).exists();
    assert!(found || std::env::var("CI").is_err(), "{tool} is not installed");
    if !found {
        eprintln!("SKIPPED: {tool} is not installed");
    }
    found
}

fn compare(program: &str, applier: Applier) {
    let mut written = 0;
    for seed in 1..=CASES {
        let case = Case::new(seed);
        let real = case.real(program);
        written += real.len();
        assert_eq!(case.ours(applier), real, "seed {seed}: left is ours, right is {program}\n{}", case.describe());
    }
    assert!(written > CASES as usize, "the programs wrote next to nothing: {written}");
}

#[test]
fn what_systemd_sysctl_writes_is_what_we_say() {
    testkit::require_root_or_skip!();
    if is_installed(SYSTEMD) {
        compare(SYSTEMD, Applier::Systemd);
    }
}

#[test]
fn what_sysctl_system_writes_is_what_we_say() {
    testkit::require_root_or_skip!();
    if is_installed(PROCPS) {
        compare(&format!("{PROCPS} --system"), Applier::Procps);
    }
}

/// `# /etc/sysctl.d/x.conf`, which the generated comments are none of.
fn is_header(line: &str) -> bool {
    line.starts_with("# /") && line.contains("/sysctl.d/")
}

#[test]
fn the_files_that_systemd_would_read_are_those_we_list() {
    testkit::require_root_or_skip!();
    if !is_installed(SYSTEMD) {
        return;
    }
    let mut shown = 0;
    for seed in 1..=60 {
        let case = Case::new(seed);
        let keys = tempfile::tempdir().unwrap();
        let text = case.run(&format!("{SYSTEMD} --cat-config --no-pager"), keys.path());
        let real: Vec<_> = text.lines().filter(|line| is_header(line)).map(|line| line[2..].to_owned()).collect();
        let ours = order::files(&case.root, Dialect::Systemd);
        let ours: Vec<_> =
            ours.into_iter().filter(|file| !matches!(file.state, State::Masked { .. })).map(|file| file.path).collect();
        shown += real.len();
        // It stops at a file that it can't open, so what it shows is the beginning of what it would read.
        assert_eq!(ours[..real.len().min(ours.len())], real, "seed {seed}\n{}", case.describe());
    }
    assert!(shown > 60, "it showed next to nothing: {shown}");
}
