//! Arguments of `lint`.

use std::path::PathBuf;

use tuning::lint::Severity;

/// Judges sysctl files, tuned profiles, scripts, playbooks and manifests before anyone applies them
///
/// Reads sysctl.d files, /etc/ufw/sysctl.conf, tuned profiles, shell scripts and cloud-init with their heredocs, `echo … >>` and
/// `sysctl -w` lines, Ansible, Docker Compose and Kubernetes, and kernel command lines. Changes nothing, needs no root.
///
/// Exit codes: 0 clean; 1 findings (of --fail-on or worse); 2 usage; 4 a file could not be read, the others were judged.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Files, folders (their settings files, not those in folders below) or - for standard input; none: this host's own files. With --effective: keys
    pub files: Vec<PathBuf>,
    /// Judge the settings files of the system under this folder (an image, a container's root)
    #[arg(long, value_name = "FOLDER")]
    pub root: Option<PathBuf>,
    /// What they are meant for: words joined by commas such as debian-13, kernel=6.12, memory=16GiB, role=router, container, busybox, congestion-controls=reno+cubic
    #[arg(long, value_name = "WORDS")]
    pub target: Option<String>,
    /// Read files as this: sysctl.d, ufw, tuned, shell, yaml, cmdline. Usually their names and texts tell
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Show every finding in full, notes too
    #[arg(long)]
    pub all: bool,
    /// Say what a rule means: LR012 or overridden
    #[arg(long, value_name = "RULE")]
    pub explain: Option<String>,
    /// Print the table of rules for the documentation
    #[arg(long, hide = true)]
    pub rules: bool,
    /// Say who wins for each key, at boot and for `sysctl --system`, and who loses
    #[arg(long, conflicts_with_all = ["fix", "target", "format", "all", "fail_on"])]
    pub effective: bool,
    /// Write the file with what can be mended by itself mended, to standard output or --output
    #[arg(long)]
    pub fix: bool,
    /// With --fix: write to this file
    #[arg(long, value_name = "FILE", requires = "fix", conflicts_with = "in_place")]
    pub output: Option<PathBuf>,
    /// With --fix: change the files themselves
    #[arg(long, requires = "fix")]
    pub in_place: bool,
    /// The least severity that makes the exit code 1
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    pub fail_on: FailOn,
    /// Print as JSON (linerate.lint/1)
    #[arg(long, conflicts_with_all = ["sarif", "fix"])]
    pub json: bool,
    /// Print as SARIF 2.1.0, for code scanning
    #[arg(long, conflicts_with_all = ["fix", "effective"])]
    pub sarif: bool,
}

/// Severities as arguments.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum FailOn {
    /// Only errors
    Error,
    /// Errors and warnings
    Warning,
    /// Anything
    Note,
}

impl FailOn {
    /// The severity.
    pub fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Note => Severity::Note,
        }
    }
}
