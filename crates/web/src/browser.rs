//! Chromium: finding it, running it enclosed in a namespace, ending it without a trace.
//!
//! The browser runs in the given network namespace, and in a process and a mount namespace of its own. It is the first process
//! there, so that the kernel kills everything that descends from it when it ends (pid_namespaces(7)), and its profile lies on
//! a memory file system that only this mount namespace has: nothing is left on disk and no process remains, also when this process
//! is killed with SIGKILL. Every start has an empty profile, hence an empty cache.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;

use host::netns::NetNs;
use nix::unistd::geteuid;
use units::Duration;

use crate::WebError;

/// Names that Chromium goes by, in the order in which they are tried.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell"];

/// How long the processes of a killed browser are waited for. The kernel takes milliseconds.
const END: Duration = Duration::from_secs(10);

/// How much of the browser's standard error is kept.
const LAST_WORDS: usize = 2_000;

/// Options of every start: no window, no traffic but the page's, nothing that depends on the machine's settings.
const OPTIONS: [&str; 23] = [
    "--headless=new",
    // The machines this runs on have no graphics hardware, and the driver's start would be measured.
    "--disable-gpu",
    // Only what is emulated and asked for: TCP to the page's server, directly.
    "--disable-quic",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-client-side-phishing-detection",
    "--metrics-recording-only",
    "--no-pings",
    // An http address must not be tried as https first; no offers, hints or prompts on the way.
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LocalNetworkAccessChecks,OptimizationHints,MediaRouter,Translate",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-breakpad",
    "--password-store=basic",
    "--use-mock-keychain",
    // Shared memory goes to the profile's file system instead of the host's /dev/shm.
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--hide-scrollbars",
    "--window-size=1366,900",
];

/// Mounts the scratch file system and becomes the browser: `sh -c ENCLOSED sh SCRATCH PROGRAM OPTIONS…`.
const ENCLOSED: &str = "mount -t tmpfs -o mode=700 linerate-browser \"$1\" && shift && exec \"$@\"";

/// An installed Chromium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chromium {
    program: PathBuf,
}

impl Chromium {
    /// Finds it: the environment variable `CHROMIUM`, else the usual names in `PATH`.
    ///
    /// # Errors
    /// [`WebError::NotABrowser`] where `CHROMIUM` names no executable file, [`WebError::NoBrowser`] where nothing is found.
    pub fn find() -> Result<Self, WebError> {
        Self::find_in(env::var_os("CHROMIUM"), env::var_os("PATH"))
    }

    fn find_in(chosen: Option<OsString>, search_path: Option<OsString>) -> Result<Self, WebError> {
        let search_path = search_path.unwrap_or_default();
        let in_path = |name: &Path| {
            env::split_paths(&search_path).map(|folder| folder.join(name)).find(|program| is_executable(program))
        };
        if let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) {
            let path = PathBuf::from(chosen);
            let program =
                if path.components().count() > 1 { is_executable(&path).then(|| path.clone()) } else { in_path(&path) };
            return program.map(|program| Self { program }).ok_or(WebError::NotABrowser { path });
        }
        NAMES
            .iter()
            .find_map(|name| in_path(Path::new(name)))
            .map(|program| Self { program })
            .ok_or_else(|| WebError::NoBrowser { looked_for: NAMES.join(", ") })
    }

    /// The program that was found.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Starts it in `namespace` with an empty profile, and goes to `url` once the browser itself has settled.
    ///
    /// `key_pin` is the one server key that is accepted without a known authority. The browser is killed when the calling thread
    /// ends.
    pub(crate) fn open(&self, namespace: &NetNs, url: &str, key_pin: Option<&str>) -> Result<Running, WebError> {
        let scratch = scratch(&self.program);
        let mut command = namespace.command("unshare");
        command
            .args(["--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--", "/bin/sh", "-c", ENCLOSED, "sh"])
            .arg(scratch)
            .arg(&self.program)
            .args(OPTIONS)
            .arg(format!("--user-data-dir={scratch}/profile"));
        if geteuid().is_root() {
            // Chromium refuses to run as root with its sandbox, whose point is to drop the rights of an ordinary user. Root it is
            // here, of this machine or of a user namespace: nobody else may enter a network namespace. The only page it ever sees
            // is ours.
            command.arg("--no-sandbox");
        }
        if let Some(pin) = key_pin {
            command.arg(format!("--ignore-certificate-errors-spki-list={pin}"));
        }
        let mut child = command
            .arg(starting_page(url))
            .env("HOME", scratch)
            .env("TMPDIR", scratch)
            .env("XDG_CONFIG_HOME", scratch)
            .env("XDG_CACHE_HOME", scratch)
            .env("XDG_RUNTIME_DIR", scratch)
            .env("DBUS_SESSION_BUS_ADDRESS", "disabled:")
            .env("DBUS_SYSTEM_BUS_ADDRESS", "disabled:")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => WebError::NoUnshare,
                _ => WebError::Start(error),
            })?;
        let stderr = child.stderr.take();
        let mut running = Running { child, last_words: None };
        running.last_words = stderr.map(listen).transpose().map_err(WebError::Start)?;
        Ok(running)
    }
}

/// Where the scratch file system is mounted: over a directory that every system has and that does not hold the browser itself.
fn scratch(program: &Path) -> &'static str {
    if program.starts_with("/tmp") { "/mnt" } else { "/tmp" }
}

/// A page that waits until the browser has nothing left to do for its own start and then navigates, so that neither paint nor load
/// time contains the start.
fn starting_page(url: &str) -> String {
    const SETTLE_MS: u32 = 250;
    format!(
        "data:text/html,<script>addEventListener('load',()=>requestIdleCallback(\
         ()=>setTimeout(()=>location.replace('{url}'),{SETTLE_MS})))</script>"
    )
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// A running browser. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// The end of its standard error, once every process that holds it has ended.
    last_words: Option<Receiver<String>>,
}

impl Running {
    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, WebError> {
        self.child.try_wait().map_err(WebError::Start)
    }

    /// Kills it, waits until the last of its processes is gone, and gives the end of its standard error.
    pub(crate) fn stop(mut self) -> Result<String, WebError> {
        self.kill();
        match self.last_words.take() {
            None => Ok(String::new()),
            Some(last_words) => last_words.recv_timeout(END.into()).map_err(|_| WebError::LeftBehind { after: END }),
        }
    }

    /// Kills `unshare`; the browser, its child, has asked for the same signal then, and the kernel kills all others with it.
    fn kill(&mut self) {
        // Both fail only where it has ended and been waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads to the end, which comes when no process of the browser has the pipe any more; keeps the last part.
fn listen(mut stderr: ChildStderr) -> io::Result<Receiver<String>> {
    let (end, wait) = channel();
    Builder::new().name("browser-stderr".into()).spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 4096];
        // An error ends it like the end of the pipe does.
        while let Ok(count @ 1..) = stderr.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..count]);
            if kept.len() > 2 * LAST_WORDS {
                kept.drain(..kept.len() - LAST_WORDS);
            }
        }
        let from = kept.len().saturating_sub(LAST_WORDS);
        // Nobody listens where the browser was dropped instead of stopped.
        let _ = end.send(String::from_utf8_lossy(&kept[from..]).trim().to_owned());
    })?;
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_variable_wins_and_must_name_a_program() {
        let found = Chromium::find_in(Some("/bin/sh".into()), None).expect("a program");
        assert_eq!(found.program(), Path::new("/bin/sh"));
        let by_name = Chromium::find_in(Some("sh".into()), Some("/nowhere:/bin".into())).expect("a program in PATH");
        assert_eq!(by_name.program(), Path::new("/bin/sh"));
        for wrong in ["/etc/passwd", "/bin", "/nowhere/chromium", "no-such-program"] {
            let error = Chromium::find_in(Some(wrong.into()), Some("/bin".into())).expect_err("no program");
            assert!(matches!(error, WebError::NotABrowser { .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn without_a_browser_the_error_names_the_package() {
        let error = Chromium::find_in(None, Some("/nowhere".into())).expect_err("nothing there").to_string();
        assert!(error.contains("install the package `chromium`") && error.contains("CHROMIUM"), "{error}");
    }

    #[test]
    fn the_scratch_file_system_never_hides_the_browser() {
        assert_eq!(scratch(Path::new("/usr/bin/chromium")), "/tmp");
        assert_eq!(scratch(Path::new("/tmp/chrome/chrome")), "/mnt");
    }
}
