//! Why the system refused a file, in a sentence that says what to do.

use std::io::{Error, ErrorKind};

/// The reason without the error's number; behind it, where something can be done about it, what.
///
/// Temporary files wrap their errors and name a path nobody asked for: the kind of the error is what counts.
pub fn why(error: &Error) -> String {
    let sentence = match error.kind() {
        ErrorKind::NotFound => "no such file or directory; check the name",
        ErrorKind::PermissionDenied => "permission denied; sudo, or a user who may",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "a part of its path is a file, not a folder",
        ErrorKind::StorageFull => "no space left on the disk; make room and repeat",
        ErrorKind::QuotaExceeded => "your quota of disk space is used up; make room and repeat",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::InvalidFilename => "the name is too long",
        ErrorKind::InvalidData => "it is no UTF-8 text",
        _ => return plain(error),
    };
    sentence.to_owned()
}

/// The system's own words, without the number behind them.
fn plain(error: &Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        // Rust's word for ELOOP speaks of "symbolic links" only on some systems.
        Some(libc::ELOOP) => "its links lead in a circle".to_owned(),
        Some(number) => text.replace(&format!(" (os error {number})"), "").to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_is_the_name_of_a_kind_or_has_a_number() {
        for number in 1..134 {
            let text = why(&Error::from_raw_os_error(number));
            assert!(!text.contains("entity") && !text.contains("os error"), "{number}: {text}");
        }
        let kinds =
            [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem];
        for kind in kinds {
            assert_ne!(why(&Error::from(kind)), kind.to_string());
        }
        assert_eq!(why(&Error::other("it is no regular file")), "it is no regular file");
    }
}
