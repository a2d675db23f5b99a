use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;

use host::netns::NetNsError;
use host::tcp::SetCongestionControlError;
use units::{Bytes, Duration};

use crate::Protocol;

/// Why a page could not be served, loaded or measured.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// No browser is installed.
    #[error(
        "no Chromium found (looked for {looked_for} in PATH): install the package `chromium` (Debian, Fedora, Arch) or \
         `google-chrome-stable`, or set CHROMIUM to the program's path"
    )]
    NoBrowser {
        /// The names that were tried.
        looked_for: String,
    },
    /// The environment variable `CHROMIUM` names something that can't be run.
    #[error("CHROMIUM={path}: not an executable file")]
    NotABrowser {
        /// What it names.
        path: PathBuf,
    },
    /// A program that encloses the browser is missing.
    #[error("start the browser: `unshare` is missing: install the package `util-linux`")]
    NoUnshare,
    /// The browser could not be started.
    #[error("start the browser: {0}")]
    Start(#[source] io::Error),
    /// The browser ended before the page had reported.
    #[error("the browser ended before the page was loaded ({status}); its last words:\n{last_words}")]
    BrowserEnded {
        /// How it ended.
        status: ExitStatus,
        /// The end of its standard error.
        last_words: String,
    },
    /// Processes of the browser outlived it.
    #[error("the browser was killed, but {after} later some of its processes still run")]
    LeftBehind {
        /// How long they were waited for.
        after: Duration,
    },
    /// Another program listens there.
    #[error("port {} is in use at {}: choose another with --port, or 0 for any", .address.port(), .address.ip())]
    PortInUse {
        /// Where the server was to listen.
        address: SocketAddr,
    },
    /// The server's socket could not be made.
    #[error("listen on {address}: {source}")]
    Listen {
        /// Where the server was to listen.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The congestion control is not there or not allowed.
    #[error(transparent)]
    CongestionControl(#[from] SetCongestionControlError),
    /// A namespace could not be entered.
    #[error(transparent)]
    NetNs(#[from] NetNsError),
    /// No certificate could be made, or TLS not set up with it.
    #[error("set up TLS for the page's server: {0}")]
    Tls(String),
    /// The server stopped working.
    #[error("the page's server failed: {0}")]
    Server(#[source] io::Error),
    /// The page took too long.
    #[error("load {load}: the page was not loaded after {after} (the server had sent {sent} of {of})")]
    Timeout {
        /// Which load, from 1; 0 for the warm-up.
        load: u32,
        /// How long it was waited for.
        after: Duration,
        /// What the server had handed to the kernel.
        sent: Bytes,
        /// The size of the page.
        of: Bytes,
    },
    /// The page reported something that can't be read.
    #[error("the page's report can't be read: {0}")]
    Report(#[from] serde_json::Error),
    /// The page did not get all its parts, or got them more than once.
    #[error("load {load} was not a whole page: {what}")]
    Incomplete {
        /// Which load, from 1; 0 for the warm-up.
        load: u32,
        /// What was wrong, part by part.
        what: String,
    },
    /// The browser spoke another protocol than was asked for.
    #[error("load {load} used {found} instead of {wanted}")]
    WrongProtocol {
        /// Which load, from 1; 0 for the warm-up.
        load: u32,
        /// What was asked for.
        wanted: Protocol,
        /// What the browser said it used (an ALPN identifier).
        found: String,
    },
    /// The server's connections ran another congestion control than was asked for.
    #[error("load {load} ran with congestion control {found} instead of {wanted}")]
    WrongCongestionControl {
        /// Which load, from 1; 0 for the warm-up.
        load: u32,
        /// What was asked for.
        wanted: String,
        /// What a connection had.
        found: String,
    },
}
