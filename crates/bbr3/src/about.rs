use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use crate::LoadError;
use crate::error::io_error;

/// Bytes of the record. Text, one `key=value` a line, NUL to the end: later versions may add lines.
const LENGTH: usize = 256;

/// What a loader leaves beside the program it installed, in a map that nobody can write any more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The version of the crate that loaded it.
    pub linerate_version: String,
    /// The profile it was asked for, with `+` behind it where single knobs were changed.
    pub profile: String,
    /// The default congestion control that it replaced, where the loader made it the default.
    pub previous_default: Option<String>,
}

impl About {
    /// Of a program that this crate loads.
    pub fn new(profile: &str, previous_default: Option<&str>) -> Self {
        Self {
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: profile.to_owned(),
            previous_default: previous_default.map(str::to_owned),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("version={}\nprofile={}\n", self.linerate_version, self.profile);
        if let Some(previous) = &self.previous_default {
            text += &format!("previous={previous}\n");
        }
        let mut bytes = text.into_bytes();
        bytes.resize(LENGTH, 0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()?;
        let value = |wanted: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once('='));
            pairs.find(|(key, _)| *key == wanted).map(|(_, value)| value.to_owned())
        };
        Some(Self {
            linerate_version: value("version")?,
            profile: value("profile")?,
            previous_default: value("previous"),
        })
    }

    /// As a map to pin.
    pub(crate) fn to_map(&self) -> Result<MapHandle, LoadError> {
        let failed = LoadError::libbpf("write the record of what is loaded");
        let make = || {
            let options = libbpf_sys::bpf_map_create_opts {
                sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
                ..Default::default()
            };
            let map = MapHandle::create(MapType::Array, Some("linerate_about"), 4, LENGTH as u32, 1, &options)?;
            map.update(&0_u32.to_ne_bytes(), &self.to_bytes(), MapFlags::ANY)?;
            map.freeze()?;
            Ok(map)
        };
        make().map_err(failed)
    }

    /// From a pinned one. `None` where it is something else.
    pub(crate) fn from_map(map: &MapHandle) -> Option<Self> {
        let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| io_error(&error)).ok()??;
        Self::from_bytes(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for previous in [None, Some("cubic")] {
            let about = About::new("lossy-link+", previous);
            assert_eq!(About::from_bytes(&about.to_bytes()), Some(about));
        }
    }

    #[test]
    fn other_bytes_are_no_record() {
        for bytes in [&b""[..], b"\0\0\0\0", b"version=1\n\0", b"\xff\xfe", b"profile=x\n"] {
            assert_eq!(About::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn lines_of_a_later_version_are_passed_over() {
        let about = About::from_bytes(b"version=9\nmood=good\nprofile=x\n\0\0").unwrap();
        assert_eq!((about.linerate_version.as_str(), about.profile.as_str()), ("9", "x"));
    }
}
