//! `linerate lint` with what people hand it by mistake, and on machines where things go wrong.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use testkit::require_root_or_skip;

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
const BAD: &str = "net.ipv4.tcp_rmem = 4096 87380 67108864\n";
const MENDED: &str = "net.ipv4.tcp_rmem = 4096 131072 67108864\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }
}

fn lint(words: &[&str]) -> Output {
    Command::new(PROGRAM).arg("lint").args(words).env("NO_COLOR", "1").stdin(Stdio::null()).output().unwrap()
}

/// A shell's command line with `$LINT` for the program; `sh` is there on every machine.
fn shell(line: &str) -> Output {
    Command::new("bash")
        .args(["-c", line])
        .env("LINT", format!("{PROGRAM} lint"))
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn says(output: &Output, code: i32, parts: &[&str]) {
    let all = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{all}");
    for part in parts {
        assert!(all.contains(part), "{part:?} is missing: {all}");
    }
    for never in ["os error", "entity not found", "panicked"] {
        assert!(!all.contains(never), "{never}: {all}");
    }
}

#[test]
fn a_missing_file_is_named_with_what_to_do_and_a_key_in_its_place_is_understood() {
    let missing = lint(&["/nonexistent/x.conf"]);
    says(
        &missing,
        4,
        &["can't read /nonexistent/x.conf: no such file or directory; check the name", "Nothing was judged."],
    );
    says(&lint(&["net.core.somaxconn"]), 4, &["that is a key, not a file", "lint --effective net.core.somaxconn"]);
    says(&lint(&["net.core.somaxconn=1024"]), 4, &["echo 'net.core.somaxconn=1024' | linerate lint -"]);
    says(&lint(&["/etc/hostname/x.conf"]), 4, &["a part of its path is a file, not a folder"]);
}

#[test]
fn what_the_shell_hands_over_is_read_and_a_pipe_that_lies_about_is_not() {
    let folder = Folder::new();
    let bad = folder.write("a.conf", BAD);
    for line in [format!("$LINT <(cat {bad})"), format!("cat {bad} | $LINT /dev/stdin"), format!("$LINT - < {bad}")] {
        says(&shell(&line), 1, &["LR071", "1 setting in 1 file"]);
    }
    let pipe = folder.path("pipe.conf");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    says(&lint(&[pipe.to_str().unwrap()]), 4, &["it is no regular file"]);
    // Without a name the host's own files are judged: whoever sends something in is told.
    says(
        &shell(&format!("cat {bad} | $LINT --fail-on error || true")),
        0,
        &["this host's own files", "`linerate lint -`"],
    );
    assert!(!text(&shell("$LINT --fail-on error < /dev/null || true").stderr).contains("pipe"));
}

#[test]
fn an_empty_file_holds_nothing_to_judge() {
    let folder = Folder::new();
    says(&lint(&[&folder.write("e.conf", "")]), 0, &["0 settings in 1 file: nothing to judge."]);
}

#[test]
fn lines_and_values_that_no_human_reads_are_cut_and_their_places_stay_right() {
    let folder = Folder::new();
    let key = "net.ipv4.tcp_sack = ";
    let files = [
        folder.write("value.conf", format!("{key}{}\n", "y".repeat(5_000))),
        folder.write("line.conf", format!("{key}{}\n", "1".repeat(3_000_000))),
        folder.write("comment.conf", format!("net.core.default_qdisc = fq # {}\n", "x".repeat(4_000))),
        folder.write("key.conf", format!("net.ipv4.{} = 1\n", "k".repeat(4_000))),
        folder.write(
            "script.sh",
            format!("{};sysctl -w net.ipv4.tcp_sack=0;{}\n", "true;".repeat(500), "true;".repeat(500)),
        ),
        folder.write("wide.conf", format!("net.ipv4.tcp_sack = 0 {}\n", "ä".repeat(3_000))),
    ];
    for file in files {
        let output = lint(&[&file]);
        let out = text(&output.stdout);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{file}: {out}");
        let longest = out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest < 400 && out.len() < 6_000, "{file}: {longest} columns, {} bytes", out.len());
    }
    let script = folder.path("script.sh").display().to_string();
    says(&lint(&[&script]), 1, &["script.sh:1:2530", "net.ipv4.tcp_sack=0"]);
}

#[test]
fn what_is_no_text_is_not_mended_and_nothing_is_written() {
    let folder = Folder::new();
    let binary = folder.write("b.conf", [0x7f, b'E', b'L', b'F', 0, 1, 2, 3, 0, 0]);
    let out = folder.path("out.conf");
    says(&lint(&["--fix", &binary]), 4, &["is no text: there is nothing to mend"]);
    says(&lint(&["--fix", "--output", out.to_str().unwrap(), &binary]), 4, &["is no text"]);
    assert!(!out.exists());
    // The others are mended all the same.
    let bad = folder.write("a.conf", BAD);
    says(&lint(&["--fix", "--in-place", &binary, &bad]), 4, &["is no text", "a.conf: 1 mended"]);
    assert_eq!(fs::read_to_string(bad).unwrap(), MENDED);
    assert_eq!(fs::read(binary).unwrap()[..4], [0x7f, b'E', b'L', b'F']);
}

#[test]
fn mending_in_place_keeps_mode_owner_and_link() {
    require_root_or_skip!();
    let folder = Folder::new();
    let file = folder.write("secret.sh", "sysctl -w net.ipv4.tcp_sack=0\n# password\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4750)).unwrap();
    std::os::unix::fs::chown(&file, Some(65_534), Some(65_533)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4750)).unwrap();
    std::os::unix::fs::symlink("secret.sh", folder.path("link.sh")).unwrap();
    says(&lint(&["--fix", "--in-place", folder.path("link.sh").to_str().unwrap()]), 0, &["1 mended"]);
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (65_534, 65_533, 0o4750));
    assert!(folder.path("link.sh").is_symlink());
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 2, "nothing is left beside them");
}

/// What a private file system's name of its own is good for: everything in it vanishes with the shell.
fn in_small_disk(commands: &str) -> Output {
    let script = format!(
        "mount -t tmpfs -o size=16k none /mnt && cd /mnt && printf '{}' > a.conf && {commands}",
        BAD.replace('\n', "\\n")
    );
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "bash", "-c", &script])
        .env("LINT", format!("{PROGRAM} lint"))
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[test]
fn a_full_or_read_only_disk_leaves_the_file_as_it_was() {
    require_root_or_skip!();
    let full = "(cat /dev/zero > fill 2>/dev/null; true)";
    let output = in_small_disk(&format!("{full}; $LINT --fix --in-place a.conf; echo code $?; cat a.conf; ls -A"));
    says(&output, 0, &["can't change a.conf: no space left on the disk", "code 4", BAD.trim_end(), "a.conf\nfill\n"]);
    let output = in_small_disk(&format!("{full}; $LINT --fix --output b.conf a.conf; echo code $?; ls -A"));
    says(&output, 0, &["b.conf: no space left on the disk", "code 4", "a.conf\nfill\n"]);
    let output = in_small_disk("mount -o remount,ro /mnt && $LINT --fix --in-place a.conf; echo code $?; cat a.conf");
    says(&output, 0, &["can't change a.conf: the file system is read-only", "code 4", BAD.trim_end()]);
    says(
        &shell("printf 'net.ipv4.tcp_sack = 0\n' | $LINT - > /dev/full"),
        4,
        &["can't write to standard output: no space left"],
    );
    says(
        &shell("printf 'net.ipv4.tcp_sack = 0\n' | $LINT --json - > /dev/full"),
        4,
        &["can't write to standard output"],
    );
}

#[test]
fn killed_at_any_moment_the_file_is_the_old_or_the_new_one() {
    let folder = Folder::new();
    let before: String = (0..3_000).map(|n| format!("net.ipv4.conf.eth{n}.rp_filter = 1 # {n}\n")).collect();
    let file = folder.write("a.conf", &before);
    let after = text(&lint(&["--fix", &file]).stdout);
    assert_ne!(before, after);
    let mut seen = [0, 0];
    for round in 0..40 {
        fs::write(&file, &before).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["lint", "--fix", "--in-place", &file])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Not a wait for something: the moments are spread over the time that it takes.
        std::thread::sleep(std::time::Duration::from_millis(round * 8));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = fs::read_to_string(&file).unwrap();
        assert!(now == before || now == after, "round {round}: neither the old nor the new one");
        seen[usize::from(now == after)] += 1;
    }
    assert!(seen[0] > 0, "it was never killed before its end");
}

#[test]
fn without_privileges_an_unreadable_file_is_named_and_the_rest_is_judged() {
    require_root_or_skip!();
    let folder = Folder::new();
    fs::set_permissions(folder.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let locked = folder.write("locked.conf", BAD);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let open = folder.write("open.conf", BAD);
    let program = folder.path("linerate");
    fs::copy(PROGRAM, &program).unwrap();
    let as_nobody = |words: &[&str]| {
        let ids = ["--reuid", "65534", "--regid", "65534", "--clear-groups", program.to_str().unwrap(), "lint"];
        Command::new("setpriv").args(ids).args(words).env("NO_COLOR", "1").output().unwrap()
    };
    let output = as_nobody(&[&locked, &open]);
    says(&output, 4, &["can't read", "locked.conf: permission denied; ", "LR071", "1 file not read"]);
    says(&as_nobody(&["--fix", "--in-place", &open]), 4, &["can't change", "open.conf: permission denied; "]);
    assert_eq!(fs::read_to_string(open).unwrap(), BAD);
}

#[test]
fn a_closed_reader_ends_it_silently() {
    let folder = Folder::new();
    let many: String = (0..500).map(|n| format!("net.ipv4.unknown_{n} = 1\n")).collect();
    let file = folder.write("a.conf", many);
    for option in ["--all", "--json", "--sarif"] {
        let mut child = Command::new(PROGRAM)
            .args(["lint", option, &file])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{option}");
    }
}

#[test]
fn options_that_mean_nothing_together_are_refused() {
    let folder = Folder::new();
    let file = folder.write("a.conf", BAD);
    for words in [
        ["--effective", "--fix", &file],
        ["--effective", "--target=debian-13", "net.core.somaxconn"],
        ["--json", "--sarif", &file],
        ["--fix", "--json", &file],
        ["--root", "/nonexistent", "--all"],
        ["--root", "/", &file],
    ] {
        assert_eq!(lint(&words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn on_a_terminal_that_is_too_short_the_lines_that_matter_end_the_output_too() {
    let folder = Folder::new();
    let file = folder
        .write("a.conf", format!("{BAD}net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_tw_recycle = 1\nnet.core.rmem_max = 16M\n"));
    let on = |rows: usize| {
        let line = format!("stty cols 80 rows {rows}; {PROGRAM} lint {file}");
        let output = Command::new("script").args(["-qec", &line, "/dev/null"]).env("NO_COLOR", "1").output().unwrap();
        text(&output.stdout)
    };
    let heads = |text: &str| text.matches("The lines that matter most:").count();
    let short = on(24);
    assert_eq!(heads(&short), 2, "{short}");
    let end: Vec<&str> = short.lines().rev().take(12).collect();
    assert!(end.iter().any(|line| line.contains("The lines that matter most:")), "{short}");
    assert!(short.lines().all(|line| line.trim_end().chars().count() <= 80), "{short}");
    assert_eq!(heads(&on(200)), 1);
    assert_eq!(heads(&text(&lint(&[&file]).stdout)), 1);
}

#[test]
fn the_input_is_no_longer_than_it_says() {
    // A stream without an end stops at the limit instead of filling the memory.
    let mut child = Command::new(PROGRAM)
        .args(["lint", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let block = vec![b'#'; 1 << 20];
    // It goes away once it has seen too much.
    let sent = (0..64).take_while(|_| input.write_all(&block).is_ok()).count();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(sent < 64, "it read all of it");
    says(&output, 4, &["standard input: it is larger than 16 MiB"]);
}
