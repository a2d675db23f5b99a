//! Defaults and sockets in every network namespace.

use std::collections::BTreeMap;

use host::everywhere::{self, Holder, Place};
use host::tcp::ControlUsers;
use serde_json::{Value, json};

use crate::exit::Failure;

/// What was found in one namespace.
pub struct Space {
    /// The namespace.
    pub place: Place,
    /// The control of its new sockets.
    pub default: Result<String, String>,
    /// Its sockets, by control.
    pub users: Result<BTreeMap<String, ControlUsers>, String>,
}

impl Space {
    /// Whether `name` is its default.
    pub fn defaults_to(&self, name: &str) -> bool {
        self.default.as_deref() == Ok(name)
    }

    /// Its sockets that use `name`.
    pub fn users_of(&self, name: &str) -> ControlUsers {
        self.users.as_ref().ok().and_then(|users| users.get(name)).copied().unwrap_or_default()
    }

    /// `here`, `nginx (process 12)`.
    pub fn place_name(&self) -> String {
        self.place.holder.to_string()
    }

    /// The same after "in".
    #[cfg(feature = "bpf")]
    pub fn place_words(&self) -> String {
        match self.place.holder {
            Holder::Here => "this network namespace".to_owned(),
            _ => format!("the network namespace of {}", self.place.holder),
        }
    }

    /// Makes `name` the default in it.
    #[cfg(feature = "bpf")]
    pub fn set_default(&self, name: &str) -> Result<(), String> {
        let write = || host::cc::set_default_control(name).map_err(|error| error.to_string());
        inside(&self.place, write).and_then(|result| result)
    }
}

/// What was found everywhere.
pub struct Survey {
    /// Each namespace, the own first.
    pub spaces: Vec<Space>,
    /// Processes that could not be looked into.
    pub hidden_processes: usize,
}

fn inside<T: Send>(place: &Place, f: impl FnOnce() -> T + Send) -> Result<T, String> {
    if place.holder == Holder::Here { Ok(f()) } else { place.namespace.run(f).map_err(|error| error.to_string()) }
}

impl Survey {
    /// Looks everywhere. What can't be read is marked, and is no error.
    pub fn take() -> Result<Self, Failure> {
        let found = everywhere::look().map_err(Failure::failed)?;
        let look = |place: Place| {
            let seen = inside(&place, || (host::cc::default_control(), host::tcp::control_users()));
            let (default, users) = match seen {
                Ok((default, users)) => {
                    (default.map_err(|error| error.to_string()), users.map_err(|error| error.to_string()))
                }
                Err(error) => (Err(error.clone()), Err(error)),
            };
            Space { place, default, users }
        };
        Ok(Self { spaces: found.places.into_iter().map(look).collect(), hidden_processes: found.hidden_processes })
    }

    /// The namespaces where `name` is the default.
    pub fn defaulting_to<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Space> {
        self.spaces.iter().filter(move |space| space.defaults_to(name))
    }

    /// All sockets that use `name`.
    pub fn users_of(&self, name: &str) -> ControlUsers {
        self.spaces.iter().map(|space| space.users_of(name)).fold(ControlUsers::default(), |sum, one| ControlUsers {
            connections: sum.connections + one.connections,
            listeners: sum.listeners + one.listeners,
        })
    }

    /// A sentence about what is missing.
    pub fn gaps(&self) -> Option<String> {
        let unread = self.spaces.iter().filter(|space| space.default.is_err() || space.users.is_err()).count();
        let mut parts = Vec::new();
        if self.hidden_processes > 0 {
            parts.push(format!("{} could not be looked into", plural(self.hidden_processes, "process", "processes")));
        }
        if unread > 0 {
            let why = self.spaces.iter().find_map(|space| space.users.as_ref().err().or(space.default.as_ref().err()));
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            parts.push(format!(
                "{} could not be read in full{why}",
                plural(unread, "network namespace", "network namespaces")
            ));
        }
        let more = if nix::unistd::geteuid().is_root() { "" } else { " Root sees more." };
        (!parts.is_empty()).then(|| format!("Incomplete: {}.{more}", parts.join(", and ")))
    }

    /// For a JSON document.
    pub fn to_json(&self) -> Value {
        let spaces = self.spaces.iter().map(|space| {
            let users = space.users.as_ref().ok().map(|users| {
                let entries = users.iter().map(|(name, users)| {
                    (name.clone(), json!({ "connections": users.connections, "listening": users.listeners }))
                });
                Value::Object(entries.collect())
            });
            json!({
                "inode": space.place.inode,
                "holder": space.place_name(),
                "here": space.place.holder == Holder::Here,
                "default": space.default.as_ref().ok(),
                "sockets": users,
                "error": space.default.as_ref().err().or(space.users.as_ref().err()),
            })
        });
        spaces.collect()
    }
}

fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
