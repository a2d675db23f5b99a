//! A program that runs in this kernel, whoever loaded it: found by the name it is registered by.

use std::collections::HashMap;
use std::io;

use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::errno::Errno;
use zerocopy::FromBytes;

use crate::error::io_error;
use crate::generation::generations;
use crate::raw::{Features, RawKnobs};
use crate::{LoadError, Totals};

/// Why a running program can't be looked into. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RunningError {
    /// The process may not look at BPF programs.
    #[error("looking into a running congestion control needs root (CAP_SYS_ADMIN)")]
    NotPermitted,
    /// Nothing of ours is registered by that name.
    #[error("no BBRv3 of linerate is loaded as \"{0}\"")]
    NotLoaded(String),
    /// It was loaded by another version of linerate.
    #[error("the BBRv3 loaded as \"{name}\" is of another version of linerate: {what}")]
    OtherVersion {
        /// Its name.
        name: String,
        /// What does not fit.
        what: &'static str,
    },
    /// Another step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl From<LoadError> for RunningError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::NotPermitted => Self::NotPermitted,
            LoadError::Step { step, source } => Self::Step { step, source },
            other => Self::Step { step: "look for it in the kernel", source: io::Error::other(other) },
        }
    }
}

impl RunningError {
    pub(crate) fn libbpf(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |error| Self::io(step)(io_error(&error))
    }

    pub(crate) fn io(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPERM | Errno::EACCES) => Self::NotPermitted,
            _ => Self::Step { step, source },
        }
    }
}

/// What a callback has cost since statistics were switched on (`BPF_ENABLE_STATS`, or the sysctl kernel.bpf_stats_enabled).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCost {
    /// The callback, cut to 15 letters by the kernel.
    pub name: String,
    /// Calls.
    pub runs: u64,
    /// Nanoseconds in all calls, the kernel's own taking of the time included.
    pub nanos: u64,
}

/// A BBRv3 of this crate that is registered in the kernel.
#[derive(Debug)]
pub struct Running {
    name: String,
    maps: HashMap<String, u32>,
}

impl Running {
    /// The program registered as `name`. Where an older one of that name still serves sockets, the newest.
    ///
    /// # Errors
    /// [`RunningError`].
    pub fn find(name: &str) -> Result<Self, RunningError> {
        if !nix::unistd::geteuid().is_root() && MapInfoIter::default().next().is_none() {
            return Err(RunningError::NotPermitted);
        }
        let not_loaded = || RunningError::NotLoaded(name.to_owned());
        let newest = generations()?
            .into_iter()
            .filter(|generation| generation.ours && generation.name == name)
            .max_by_key(|generation| generation.map_id)
            .ok_or_else(not_loaded)?;
        let ids = newest.program.ok_or_else(not_loaded)?.maps;
        let maps = MapInfoIter::default()
            .filter(|map| ids.contains(&map.id))
            .map(|map| (map.name.to_string_lossy().into_owned(), map.id))
            .collect();
        Ok(Self { name: name.to_owned(), maps })
    }

    /// The name for `TCP_CONGESTION`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One of its maps, by the end of its name.
    pub(crate) fn map(&self, suffix: &str) -> Result<MapHandle, RunningError> {
        let (_, id) =
            self.maps.iter().find(|(name, _)| name.ends_with(suffix)).ok_or_else(|| self.other("a map is missing"))?;
        MapHandle::from_map_id(*id).map_err(RunningError::libbpf("open a map of the program"))
    }

    pub(crate) fn other(&self, what: &'static str) -> RunningError {
        RunningError::OtherVersion { name: self.name.clone(), what }
    }

    fn value<T: FromBytes>(&self, map: &str) -> Result<T, RunningError> {
        read_value(&self.map(map)?)?.ok_or_else(|| self.other("a map has another layout"))
    }

    /// The parameters it was loaded with.
    ///
    /// # Errors
    /// [`RunningError`].
    pub fn knobs(&self) -> Result<RawKnobs, RunningError> {
        self.value(".rodata.knobs")
    }

    /// What it was told of the kernel.
    ///
    /// # Errors
    /// [`RunningError`].
    pub fn features(&self) -> Result<Features, RunningError> {
        self.value(".rodata.feature")
    }

    /// The counters now.
    ///
    /// # Errors
    /// [`RunningError`].
    pub fn totals(&self) -> Result<Totals, RunningError> {
        let map = self.map(".bss")?;
        let bytes =
            map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(RunningError::libbpf("read the counters"))?;
        bytes.and_then(|bytes| Totals::from_bytes(&bytes)).ok_or_else(|| self.other("the counters have another layout"))
    }

    /// What its callbacks have cost.
    pub fn cost(&self) -> Vec<ProgramCost> {
        let options = ProgInfoQueryOptions::default().include_map_ids(true);
        let state = self.state_map_id();
        ProgInfoIter::with_query_opts(options)
            .filter(|info| state.is_some_and(|state| info.map_ids.contains(&state)))
            .map(|info| ProgramCost {
                name: info.name.to_string_lossy().into_owned(),
                runs: info.run_cnt,
                nanos: info.run_time_ns,
            })
            .collect()
    }

    /// The map with every socket's state: its first 52 bytes are the [`crate::Monitor`] record. For `ss --bpf-map-id`.
    pub fn state_map_id(&self) -> Option<u32> {
        self.maps.get("bbr3_state").copied()
    }
}

/// The only value of a map, where it has the size of a `T`.
pub(crate) fn read_value<T: FromBytes>(map: &MapHandle) -> Result<Option<T>, RunningError> {
    let bytes =
        map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(RunningError::libbpf("read a map of the program"))?;
    Ok(bytes.and_then(|bytes| T::read_from_bytes(&bytes).ok()))
}
