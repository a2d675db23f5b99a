//! Which tuned profile is active, and what it sets.

use crate::files::{Document, Format};

use super::root::{Root, read_file};

/// A profile's file and its document.
pub(super) struct Profile {
    pub(super) path: String,
    pub(super) document: Document,
}

/// Profiles include others; no chain that people write is longer.
const LONGEST_CHAIN: usize = 16;

/// The active profiles' files, included ones before those that include them. Empty: tuned isn't there or has no profile.
pub(super) fn active(root: &(impl Root + ?Sized)) -> Vec<Profile> {
    let text =
        |path: &str| read_file(root, path).ok().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let names = text("/etc/tuned/active_profile").unwrap_or_default();
    let mut profiles = Vec::new();
    for name in names.split_whitespace() {
        add(root, name, LONGEST_CHAIN, &mut profiles);
    }
    profiles
}

fn add(root: &(impl Root + ?Sized), name: &str, depth: usize, profiles: &mut Vec<Profile>) {
    let directories = ["/etc/tuned", "/etc/tuned/profiles", "/usr/lib/tuned", "/usr/lib/tuned/profiles"];
    if depth == 0 || name.contains(['/', '\0']) {
        return;
    }
    for directory in directories {
        let path = format!("{directory}/{name}/tuned.conf");
        let Ok(Some(bytes)) = read_file(root, &path) else { continue };
        if profiles.iter().any(|profile| profile.path == path) {
            return;
        }
        let document = Document::parse(&path, &bytes, Some(Format::Tuned));
        for line in document.source.text().lines() {
            if let Some((key, value)) = line.split_once('=')
                && key.trim() == "include"
            {
                value
                    .split([',', ';', ' '])
                    .map(str::trim)
                    .filter(|n| !n.is_empty())
                    .for_each(|n| add(root, n, depth - 1, profiles));
            }
        }
        profiles.push(Profile { path, document });
        return;
    }
}

/// Whether tuned applies the settings files again behind its profile: `reapply_sysctl` of `tuned-main.conf`, on by default.
pub(super) fn reapplies(root: &(impl Root + ?Sized)) -> bool {
    let text = read_file(root, "/etc/tuned/tuned-main.conf").ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let value = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("reapply_sysctl")?.trim_start().strip_prefix('='))
        .next_back();
    !value.is_some_and(|value| matches!(value.trim().to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off"))
}
