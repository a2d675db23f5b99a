//! Congestion controls in BPF as the kernel holds them: struct_ops maps. One that was replaced or taken out lives until its last
//! socket closes, so that several of one name can be there at once.
//!
//! Linux: kernel/bpf/bpf_struct_ops.c. Reading such a map gives `struct bpf_struct_ops_tcp_congestion_ops`: a reference count, a
//! state, and the operations, with the program's number in place of each function pointer.

use std::io;
use std::os::fd::AsFd;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use units::Duration;

use crate::kernel::member;
use crate::{LoadError, Totals};

/// `enum bpf_struct_ops_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Made, never registered.
    Initial,
    /// Registered by map.
    InUse,
    /// Was registered by map, and lives for the sockets that still use it.
    ToBeFreed,
    /// Made for registration by link. Whether a link has it, only the link tells.
    Ready,
}

/// One congestion control in BPF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The kernel's number of its map.
    pub map_id: u32,
    /// The congestion control's name.
    pub name: String,
    /// How far its registration is.
    pub state: State,
    /// Whether it is a program of this crate, of whatever version.
    pub ours: bool,
    /// The program that handles ACKs: its number and its tag, a hash of its instructions.
    pub program: Option<Program>,
    /// Its counters, where it is one of ours and has today's layout.
    pub totals: Option<Totals>,
}

/// The program of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The kernel's number.
    pub id: u32,
    /// Hash of its instructions as loaded, in hexadecimal.
    pub tag: String,
    /// When it was loaded, since the machine started.
    pub loaded_after_boot: Duration,
    /// How often it ran and for how long in all; zero unless sysctl kernel.bpf_stats_enabled = 1.
    pub runs: u64,
    /// See `runs`.
    pub run_time: Duration,
    /// The kernel's numbers of its maps.
    pub(crate) maps: Vec<u32>,
}

/// Offsets in a struct_ops map's value, in bytes.
struct Layout {
    value_type: u32,
    name: usize,
    cong_control: usize,
}

impl Layout {
    fn of_kernel() -> Result<Self, LoadError> {
        let btf = Btf::from_vmlinux().map_err(|_| LoadError::NoBtf)?;
        let value: Struct<'_> = btf.type_by_name("bpf_struct_ops_tcp_congestion_ops").ok_or(LoadError::TooOld)?;
        let operations: Struct<'_> = btf.type_by_name("tcp_congestion_ops").ok_or(LoadError::TooOld)?;
        let (_, _, data) = member(&value, "data").ok_or(LoadError::TooOld)?;
        let offset = |name| member(&operations, name).map(|(_, _, offset)| (data + offset) as usize);
        Ok(Self {
            value_type: u32::from(value.type_id()),
            name: offset("name").ok_or(LoadError::TooOld)?,
            cong_control: offset("cong_control").ok_or(LoadError::TooOld)?,
        })
    }
}

fn word(value: &[u8], at: usize) -> Option<u32> {
    value.get(at..at + 4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

fn name_at(value: &[u8], at: usize) -> Option<String> {
    let bytes = value.get(at..at + 16)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn read(map: &MapHandle) -> Result<Vec<u8>, LoadError> {
    map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(LoadError::libbpf("read a struct_ops map"))?
        .ok_or_else(|| LoadError::Step { step: "read a struct_ops map", source: io::ErrorKind::NotFound.into() })
}

fn state_of(value: &[u8]) -> Option<State> {
    match word(value, 4)? {
        0 => Some(State::Initial),
        1 => Some(State::InUse),
        2 => Some(State::ToBeFreed),
        3 => Some(State::Ready),
        _ => None,
    }
}

/// How far the registration of a struct_ops map is. One that was never registered has no value to read on some kernels.
pub(crate) fn state(map: &MapHandle) -> Result<State, LoadError> {
    let value = match map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY) {
        Ok(Some(value)) => value,
        Ok(None) => return Ok(State::Initial),
        Err(error) => return Err(LoadError::libbpf("read a struct_ops map")(error)),
    };
    state_of(&value).ok_or_else(|| LoadError::Step {
        step: "read a struct_ops map",
        source: io::Error::other("it is in a state that this version does not know"),
    })
}

/// The kernel's number of a map.
pub(crate) fn map_id(map: &impl AsFd) -> Option<u32> {
    libbpf_rs::MapInfo::new(map.as_fd()).ok().map(|info| info.info.id)
}

/// Every congestion control in BPF that the kernel holds, oldest first. Processes with their own, and those without a name, are included.
///
/// # Errors
/// Where the kernel has no type information or this process may not ask.
pub fn generations() -> Result<Vec<Generation>, LoadError> {
    let layout = Layout::of_kernel()?;
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let mut programs: Vec<Program> = ProgInfoIter::with_query_opts(options)
        .map(|info| Program {
            id: info.id,
            tag: info.tag.0.iter().map(|byte| format!("{byte:02x}")).collect(),
            loaded_after_boot: Duration::from_nanos(info.load_time.as_nanos() as u64),
            runs: info.run_cnt,
            run_time: Duration::from_nanos(info.run_time_ns),
            maps: info.map_ids,
        })
        .collect();
    let mut found = Vec::new();
    for info in MapInfoIter::default() {
        if info.ty != MapType::StructOps || info.btf_vmlinux_value_type_id != layout.value_type {
            continue;
        }
        // It may have gone meanwhile, or have nothing to read yet.
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        let Ok(value) = read(&map) else { continue };
        let (Some(name), Some(state)) = (name_at(&value, layout.name), state_of(&value)) else { continue };
        if state == State::Initial {
            continue;
        }
        let id = word(&value, layout.cong_control);
        let program = id.and_then(|id| programs.iter().position(|program| program.id == id));
        let program = program.map(|index| programs.swap_remove(index));
        let ours = info.name == "bbr3_by_link" || info.name == "bbr3_by_map";
        let totals = if ours { program.as_ref().and_then(totals_of) } else { None };
        found.push(Generation { map_id: info.id, name, state, ours, program, totals });
    }
    Ok(found)
}

fn totals_of(program: &Program) -> Option<Totals> {
    let mut maps = program.maps.iter().filter_map(|id| MapHandle::from_map_id(*id).ok());
    let map = maps.find(|map| map.name().to_string_lossy().ends_with(".bss"))?;
    Totals::from_bytes(&map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_at_the_offsets_of_the_kernel() {
        let mut value = vec![0; 128];
        value[4] = 3;
        value[64..68].copy_from_slice(b"bbr3");
        assert_eq!(state_of(&value), Some(State::Ready));
        assert_eq!(name_at(&value, 64).as_deref(), Some("bbr3"));
    }

    #[test]
    fn a_value_that_is_too_short_is_none() {
        assert_eq!(state_of(&[0; 7]), None);
        assert_eq!(name_at(&[b'a'; 20], 5), None);
        assert_eq!(state_of(&[0, 0, 0, 0, 9, 0, 0, 0]), None);
    }
}
