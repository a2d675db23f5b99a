use host::netns::NetNs;

/// What keeps this process from making network namespaces; `None`: nothing does.
pub fn missing_privilege() -> Option<String> {
    NetNs::create().err().map(|error| error.to_string())
}

/// Whether a missing privilege is a failure rather than a reason to skip: on the build server, where a skipped test is a lost one.
fn must_run(ci: Option<&str>) -> bool {
    ci == Some("true")
}

/// The verdict of [`require_root_or_skip!`]: whether to go on. Prints the reason where the answer is no.
///
/// # Panics
/// Where the privilege is missing and the environment says `CI=true`.
#[doc(hidden)]
pub fn may_run(test: &str) -> bool {
    verdict(test, missing_privilege(), std::env::var("CI").ok().as_deref())
}

fn verdict(test: &str, missing: Option<String>, ci: Option<&str>) -> bool {
    let Some(reason) = missing else { return true };
    assert!(!must_run(ci), "{test} may not be skipped when CI=true: {reason}");
    eprintln!("SKIPPED {test}: {reason}");
    false
}

/// Returns from the calling test, with the reason printed, where the process may not make network namespaces.
///
/// With `CI=true` in the environment it panics instead.
#[macro_export]
macro_rules! require_root_or_skip {
    () => {
        if !$crate::may_run(concat!(module_path!(), " line ", line!())) {
            return;
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runs_where_nothing_is_missing() {
        assert!(verdict("t", None, Some("true")));
        assert!(verdict("t", None, None));
    }

    #[test]
    fn a_test_is_skipped_where_a_privilege_is_missing() {
        assert!(!verdict("t", Some("no".into()), None));
        assert!(!verdict("t", Some("no".into()), Some("false")));
    }

    #[test]
    #[should_panic(expected = "may not be skipped")]
    fn a_skip_is_a_failure_on_the_build_server() {
        verdict("t", Some("no".into()), Some("true"));
    }
}
