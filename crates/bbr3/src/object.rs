//! The compiled program, before and while it is loaded.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::{AsRawLibbpf, Object, ObjectBuilder, OpenObject};
use nix::errno::Errno;
use zerocopy::IntoBytes;

use crate::error::io_error;
use crate::kernel::not_permitted;
use crate::{Kernel, LoadError, Options, Registration, log};

/// What build.rs compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bbr3.bpf.o"));

/// `TCP_CA_NAME_MAX` of include/net/tcp.h, the final NUL included.
const NAME_MAX: usize = 16;

/// The struct_ops map to register, and the one to leave out.
pub(crate) fn registration_map(registration: Registration) -> (&'static str, &'static str) {
    match registration {
        Registration::Link => ("bbr3_by_link", "bbr3_by_map"),
        Registration::Map => ("bbr3_by_map", "bbr3_by_link"),
    }
}

/// Whether the kernel takes it as the name of a congestion control in BPF: `bpf_obj_name_cpy` allows a dot too, bpffs does not.
pub(crate) fn check_name(name: &str) -> Result<(), LoadError> {
    let fits = !name.is_empty() && name.len() < NAME_MAX;
    if fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok(())
    } else {
        Err(LoadError::BadName(name.to_owned()))
    }
}

/// Has the kernel verify the program and make its maps. Nothing is registered yet.
pub(crate) fn load(options: &Options, kernel: Kernel) -> Result<Object, LoadError> {
    check_name(&options.name)?;
    let knobs = options.knobs.to_raw()?;
    let mut open = open()?;
    write_value(&mut open, ".rodata.knobs", 0, knobs.as_bytes())?;
    write_value(&mut open, ".rodata.feature", 0, kernel.features().as_bytes())?;
    let (wanted, unwanted) = registration_map(kernel.registration);
    let mut name = [0; NAME_MAX];
    name[..options.name.len()].copy_from_slice(options.name.as_bytes());
    let offset = offset_in_operations(&open, "name")?;
    write_value(&mut open, wanted, offset, &name)?;
    if !kernel.tx_start_callback {
        // libbpf leaves a callback out that the kernel does not know, where nothing is set.
        let offset = offset_in_operations(&open, "cwnd_event_tx_start")?;
        write_value(&mut open, wanted, offset, &[0; size_of::<usize>()])?;
    }
    for mut map in open.maps_mut().filter(|map| map.name() == unwanted) {
        map.set_autocreate(false).map_err(LoadError::libbpf("leave out a map"))?;
    }
    let (loaded, said) = log::listen(|| open.load());
    loaded.map_err(|error| refused(&io_error(&error), &said))
}

fn open() -> Result<OpenObject, LoadError> {
    let (opened, said) = log::listen(|| {
        let mut builder = ObjectBuilder::default();
        builder.name("bbr3")?;
        builder.open_memory(OBJECT)
    });
    opened.map_err(|error| {
        let source = if said.is_empty() { io_error(&error) } else { io::Error::other(said) };
        LoadError::Step { step: "open the BPF program", source }
    })
}

/// Writes into a map's value before it is loaded.
fn write_value(object: &mut OpenObject, map: &str, offset: usize, bytes: &[u8]) -> Result<(), LoadError> {
    let missing = || LoadError::Step { step: "set the program's parameters", source: io::Error::other(map.to_owned()) };
    let mut map = object.maps_mut().find(|candidate| candidate.name() == map).ok_or_else(missing)?;
    let value = map.initial_value_mut().ok_or_else(missing)?;
    let place = value.get_mut(offset..offset + bytes.len()).ok_or_else(missing)?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// Where a member is in the program's own definition of `tcp_congestion_ops`, in bytes.
fn offset_in_operations(object: &OpenObject, name: &str) -> Result<usize, LoadError> {
    // SAFETY: the object lives as long as the reference, and libbpf's accessors do not change it.
    let raw = unsafe { object.as_libbpf_object().as_ref() };
    let btf = Btf::from_bpf_object(raw).map_err(LoadError::libbpf("read the program's type information"))?;
    btf.as_ref()
        .and_then(|btf| btf.type_by_name::<Struct<'_>>("tcp_congestion_ops"))
        .and_then(|operations| {
            operations.iter().find(|member| member.name == Some(OsStr::new(name))).map(|member| member.attr)
        })
        .and_then(|attributes| match attributes {
            MemberAttr::Normal { offset } => Some(offset as usize / 8),
            MemberAttr::BitField { .. } => None,
        })
        .ok_or_else(|| LoadError::Step {
            step: "read the program's type information",
            source: io::Error::other(format!("tcp_congestion_ops has no {name}")),
        })
}

/// What a failed load means.
fn refused(error: &io::Error, said: &str) -> LoadError {
    if error.raw_os_error() == Some(Errno::EPERM as i32) && !said.contains("BEGIN PROG LOAD LOG") {
        return not_permitted();
    }
    let reason = verifier_reason(said).unwrap_or_else(|| error.to_string());
    match save_log(said) {
        Ok(log) => LoadError::Refused { reason, log },
        Err(source) => LoadError::Step { step: "save the verifier's log", source },
    }
}

/// The verifier's last word: the line before its statistics.
fn verifier_reason(said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let end = lines.iter().position(|line| line.starts_with("processed ") && line.contains(" insns "))?;
    lines[..end].iter().rev().find(|line| !line.is_empty()).map(|line| (*line).to_owned())
}

/// A file only its owner reads, for the log names kernel addresses.
fn save_log(said: &str) -> io::Result<PathBuf> {
    let name = format!("linerate-bbr3-verifier-{}.log", std::process::id());
    // Early at boot the file system of /tmp is not writable yet.
    let folders = [std::env::temp_dir(), PathBuf::from("/run")];
    let mut result = Err(io::ErrorKind::NotFound.into());
    for path in folders.map(|folder| folder.join(&name)) {
        result = write_new(&path, said).map(|()| path);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset and name of each member of a structure in the compiled program, and its size.
    fn in_c(name: &str) -> (usize, Vec<(usize, String)>) {
        use libbpf_rs::HasSize as _;
        let object = open().unwrap();
        // SAFETY: as in offset_in_operations().
        let btf = Btf::from_bpf_object(unsafe { object.as_libbpf_object().as_ref() }).unwrap().unwrap();
        let found: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("the program has no struct {name}"));
        let members = found.iter().map(|member| match member.attr {
            MemberAttr::Normal { offset } => {
                (offset as usize / 8, member.name.unwrap_or_default().to_string_lossy().into_owned())
            }
            MemberAttr::BitField { .. } => panic!("{name} has bit-fields"),
        });
        (found.size(), members.collect())
    }

    #[test]
    fn every_structure_that_the_program_tells_of_lies_there_as_it_does_here() {
        use crate::raw::*;
        macro_rules! check {
            ($($name:ident)+) => {$(
                let here: Vec<_> = $name::FIELDS.iter().map(|field| (field.offset, field.name.to_owned())).collect();
                assert_eq!(in_c($name::C_NAME), (size_of::<$name>(), here), "{}", $name::C_NAME);
            )+};
        }
        check!(RawKnobs Features Conn Ack Sample State RingEntry Ring Reader);
    }

    #[test]
    fn names_are_what_the_kernel_takes() {
        for good in ["bbr3", "a", "bbr3_lossy_link"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "sixteen_letters_", "two words", "a/b", "bbr-3", "bbr.3", "bbr³"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_verifiers_reason_is_the_line_before_its_statistics() {
        let said = "libbpf: -- BEGIN PROG LOAD LOG --\n0: (b7) r0 = 0\nR1 invalid mem access 'scalar'\nprocessed 7 insns (limit 1000000)\n";
        assert_eq!(verifier_reason(said).as_deref(), Some("R1 invalid mem access 'scalar'"));
        assert_eq!(verifier_reason("nothing of the kind"), None);
    }

    #[test]
    fn a_refusal_of_the_verifier_is_one_sentence_and_a_log_only_its_owner_reads() {
        use std::os::unix::fs::PermissionsExt;
        testkit::require_root_or_skip!();
        let kernel = Kernel::detect().unwrap();
        // The program then reads its arguments as another kernel passes them.
        let wrong = Kernel { four_arguments: !kernel.four_arguments, ..kernel };
        match load(&Options::default(), wrong) {
            Err(error @ LoadError::Refused { .. }) => {
                let sentence = error.to_string();
                let LoadError::Refused { reason, log } = error else { unreachable!() };
                let text = fs::read_to_string(&log).unwrap();
                assert!(text.contains(&reason) && !reason.is_empty(), "{reason}");
                assert!(sentence.contains(&reason) && sentence.contains(log.to_str().unwrap()), "{sentence}");
                assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
                fs::remove_file(log).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}
