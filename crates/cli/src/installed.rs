//! The own program as something that a boot starts as root.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The first of a file and the folders above it that someone other than root may change.
pub fn writable_by_others(file: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(file).ok()?;
    real.ancestors()
        .find(|path| fs::metadata(path).is_ok_and(|found| found.uid() != 0 || found.mode() & 0o022 != 0))
        .map(Path::to_owned)
}

/// A path as it can stand in a unit: absolute, and without characters that systemd would read.
pub fn for_unit(exec: &Path) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.+-".contains(&byte);
    exec.to_str().filter(|text| text.starts_with('/') && text.bytes().all(plain))
}

/// This program, where a unit may start it.
///
/// # Errors
/// A sentence that says why not, and what to do.
pub fn own_program() -> Result<String, String> {
    let exec = std::env::current_exe().map_err(|error| format!("the own program can't be found: {error}"))?;
    let text = for_unit(&exec)
        .ok_or_else(|| format!("{} can't stand in a unit: install linerate to /usr/local/bin first", exec.display()))?;
    match writable_by_others(&exec) {
        None => Ok(text.to_owned()),
        Some(weak) => Err(format!(
            "{} can be changed by others than root, and would run as root at boot: install linerate first \
             (sudo install -m 755 {text} /usr/local/bin/linerate), or --live-only",
            weak.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_others_may_change_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("linerate");
        fs::write(&file, "").unwrap();
        assert!(writable_by_others(&file).is_some(), "everybody may write to the folder of temporary files");
        assert_eq!(writable_by_others(Path::new("/usr/bin/env")), None);
    }
}
