//! A value with its place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that was read, or the reason why there is none; and where it was looked for: a path, or a netlink message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Fact<T> {
    /// Where it was looked for.
    #[serde(default)]
    pub from: String,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<T>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self { from: String::new(), value: None, missing: Some("not looked at".to_owned()) }
    }
}

impl<T> Fact<T> {
    /// A value that was read from `from`.
    pub fn known(from: impl Into<String>, value: T) -> Self {
        Self { from: from.into(), value: Some(value), missing: None }
    }

    /// No value, and why.
    pub fn missing(from: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { from: from.into(), value: None, missing: Some(why.to_string()) }
    }

    /// What reading `from` gave.
    pub fn of(from: impl Into<String>, result: Result<T, impl fmt::Display>) -> Self {
        match result {
            Ok(value) => Self::known(from, value),
            Err(why) => Self::missing(from, why),
        }
    }

    /// The value, where there is one.
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_keeps_its_reason_in_json_and_back() {
        let fact: Fact<Vec<u32>> = Fact::of("/proc/x", Err::<Vec<u32>, _>("permission denied"));
        let text = serde_json::to_string(&fact).unwrap();
        assert_eq!(text, r#"{"from":"/proc/x","missing":"permission denied"}"#);
        assert_eq!(serde_json::from_str::<Fact<Vec<u32>>>(&text).unwrap(), fact);
        assert_eq!(serde_json::from_str::<Fact<u32>>(r#"{"from":"x","value":7}"#).unwrap().get(), Some(&7));
    }
}
