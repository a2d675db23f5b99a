use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, MemberAttr, Ptr, Struct};
use libbpf_rs::btf::{Btf, TypeId};
use libbpf_sys::{BPF_PROG_TYPE_STRUCT_OPS, bpf_insn, bpf_prog_load, bpf_prog_load_opts};
use nix::errno::Errno;

use crate::LoadError;
use crate::raw::Features;

/// How the kernel takes a congestion control in BPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Registration {
    /// By a link: it goes with the last holder or pin, and can be replaced at once (6.4 and later).
    Link,
    /// By a map: it stays until it is taken out (6.1 to 6.3).
    Map,
}

/// What the running kernel can do for this program: from its type information and by trying, never from its version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// How a control is registered.
    pub registration: Registration,
    /// `cong_control(sk, ack, flag, rs)` instead of `cong_control(sk, rs)` (6.10 and later).
    pub four_arguments: bool,
    /// A program may write `tcp_sock.app_limited` (6.4 and later).
    pub app_limited_writable: bool,
    /// The start of a transmission has a callback of its own (7.1 and later).
    pub tx_start_callback: bool,
}

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

impl Kernel {
    /// Looks at the running kernel.
    ///
    /// # Errors
    /// [`LoadError`], where it can't run a congestion control in BPF or this process may not load one.
    pub fn detect() -> Result<Self, LoadError> {
        if !Path::new(VMLINUX).exists() {
            return Err(LoadError::NoBtf);
        }
        if fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").is_ok_and(|value| value.trim() == "0") {
            return Err(LoadError::NoJit);
        }
        let btf = Btf::from_vmlinux().map_err(LoadError::libbpf("read the kernel's type information"))?;
        let operations: Struct<'_> = btf.type_by_name("tcp_congestion_ops").ok_or(LoadError::TooOld)?;
        // The kernel's wrapper around a structure that BPF may implement.
        btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").ok_or(LoadError::TooOld)?;
        let arguments = argument_count(&btf, &operations, "cong_control").ok_or(LoadError::TooOld)?;
        let by_link = btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some();
        Ok(Self {
            registration: if by_link { Registration::Link } else { Registration::Map },
            four_arguments: arguments == 4,
            app_limited_writable: may_write(&btf, &operations, "app_limited")?,
            tx_start_callback: member(&operations, "cwnd_event_tx_start").is_some(),
        })
    }

    /// As the program is told.
    pub(crate) fn features(self) -> Features {
        Features {
            cong_control_four_args: u32::from(self.four_arguments),
            app_limited_writable: u32::from(self.app_limited_writable),
        }
    }
}

/// Index, type and offset in bytes of a member.
pub(crate) fn member(of: &Struct<'_>, name: &str) -> Option<(usize, TypeId, u32)> {
    of.iter().enumerate().find(|(_, member)| member.name == Some(OsStr::new(name))).and_then(|(index, member)| {
        match member.attr {
            MemberAttr::Normal { offset } => Some((index, member.ty, offset / 8)),
            MemberAttr::BitField { .. } => None,
        }
    })
}

fn argument_count(btf: &Btf<'_>, operations: &Struct<'_>, callback: &str) -> Option<usize> {
    let (_, pointer, _) = member(operations, callback)?;
    let pointer: Ptr<'_> = btf.type_by_id(pointer)?;
    FuncProto::try_from(pointer.referenced_type()).ok().map(|function| function.len())
}

/// A number of include/linux/errno.h that was never meant for user space.
const ENOTSUPP: i32 = 524;

const NAME: &CStr = c"linerate_probe";
const LICENSE: &CStr = c"Dual MIT/GPL";

/// Whether a congestion control may write this field of `tcp_sock`: has the kernel verify a program of five instructions that does.
/// Nothing is registered.
fn may_write(btf: &Btf<'_>, operations: &Struct<'_>, field: &str) -> Result<bool, LoadError> {
    let (init, _, _) = member(operations, "init").ok_or(LoadError::TooOld)?;
    let socket: Struct<'_> = btf.type_by_name("tcp_sock").ok_or(LoadError::TooOld)?;
    let Some((_, _, offset)) = member(&socket, field) else { return Ok(false) };
    let Ok(offset) = i16::try_from(offset) else { return Ok(false) };
    let program = [
        // r1 = ctx[0], the socket; r2 = 0; *(u32 *)(r1 + offset) = r2; r0 = 0; return
        instruction(libbpf_sys::BPF_LDX | libbpf_sys::BPF_MEM | libbpf_sys::BPF_DW, 1, 1, 0),
        instruction(libbpf_sys::BPF_ALU64 | libbpf_sys::BPF_MOV | libbpf_sys::BPF_K, 2, 0, 0),
        instruction(libbpf_sys::BPF_STX | libbpf_sys::BPF_MEM | libbpf_sys::BPF_W, 1, 2, offset),
        instruction(libbpf_sys::BPF_ALU64 | libbpf_sys::BPF_MOV | libbpf_sys::BPF_K, 0, 0, 0),
        instruction(libbpf_sys::BPF_JMP | libbpf_sys::BPF_EXIT, 0, 0, 0),
    ];
    let mut options = bpf_prog_load_opts {
        sz: size_of::<bpf_prog_load_opts>() as libbpf_sys::size_t,
        attach_btf_id: u32::from(operations.type_id()),
        expected_attach_type: init as u32,
        ..Default::default()
    };
    // SAFETY: name and license are NUL-terminated, `program` has as many instructions as said, and `options` says its own size; all
    // outlive the call, which keeps none of them.
    let result = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_STRUCT_OPS,
            NAME.as_ptr(),
            LICENSE.as_ptr(),
            program.as_ptr(),
            program.len() as libbpf_sys::size_t,
            &raw mut options,
        )
    };
    if result >= 0 {
        // SAFETY: a descriptor that the call has just opened, and that nobody else knows.
        drop(unsafe { OwnedFd::from_raw_fd(result) });
        return Ok(true);
    }
    if -result == ENOTSUPP {
        return Err(LoadError::TooOld);
    }
    match Errno::from_raw(-result) {
        Errno::EACCES | Errno::EINVAL => Ok(false),
        Errno::EPERM => Err(not_permitted()),
        Errno::EOPNOTSUPP => Err(LoadError::TooOld),
        other => Err(LoadError::Step { step: "try what the kernel's verifier allows", source: other.into() }),
    }
}

fn instruction(code: u32, destination: u8, source: u8, offset: i16) -> bpf_insn {
    let mut instruction = bpf_insn { code: code as u8, off: offset, ..Default::default() };
    instruction.set_dst_reg(destination);
    instruction.set_src_reg(source);
    instruction
}

/// What EPERM means here.
pub(crate) fn not_permitted() -> LoadError {
    match fs::read_to_string("/sys/kernel/security/lockdown").ok().as_deref().and_then(lockdown_mode) {
        Some(mode) if nix::unistd::geteuid().is_root() => LoadError::Lockdown(mode.to_owned()),
        _ => LoadError::NotPermitted,
    }
}

/// The mode in force, unless it is `none`: the kernel writes `none [integrity] confidentiality`.
fn lockdown_mode(text: &str) -> Option<&str> {
    let mode = text.split(['[', ']']).nth(1)?;
    (mode != "none").then_some(mode)
}

/// Whether the kernel could load a module for the control `name`, or has it built in: modules.dep(5), modules.builtin.
pub(crate) fn has_module(name: &str) -> io::Result<bool> {
    let release = nix::sys::utsname::uname().map_err(io::Error::from)?;
    let directory = Path::new("/lib/modules").join(release.release());
    let file = format!("/tcp_{name}.ko");
    Ok(["modules.dep", "modules.builtin"].iter().any(|list| {
        fs::read_to_string(directory.join(list))
            .is_ok_and(|text| text.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&file))))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lockdown_mode_in_force_is_the_bracketed_one() {
        assert_eq!(lockdown_mode("none integrity [confidentiality]\n"), Some("confidentiality"));
        assert_eq!(lockdown_mode("[none] integrity confidentiality\n"), None);
        assert_eq!(lockdown_mode(""), None);
    }
}
