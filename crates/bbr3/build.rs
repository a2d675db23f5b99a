//! Compiles the BPF program with clang.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Versions that Debian and Ubuntu package under a name of their own, newest first. Older ones are not tried.
const PACKAGED: std::ops::RangeInclusive<u32> = 14..=24;

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let Some(clang) = find_clang() else {
        fail(
            "clang is needed to compile the BBRv3 program: install the package clang, or build with --no-default-features",
        )
    };
    // The Linux API headers of libbpf, from the build of libbpf-sys.
    let headers = PathBuf::from(env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers"));
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("bbr3.bpf.o");
    compile(&clang, &headers, &object);
}

/// The compiler: `$CLANG`, or `clang`, or the newest `clang-N`.
fn find_clang() -> Option<PathBuf> {
    if let Some(chosen) = env::var_os("CLANG") {
        return Some(chosen.into());
    }
    let versioned = PACKAGED.rev().map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned()).chain(versioned).map(PathBuf::from).find(|clang| runs(clang))
}

fn runs(clang: &Path) -> bool {
    Command::new(clang).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn compile(clang: &Path, headers: &Path, object: &Path) {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let output = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fno-stack-protector"])
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"])
        // No path of the building machine goes into the object.
        .arg(format!("-ffile-prefix-map={root}=."))
        .arg(format!("-ffile-prefix-map={}=libbpf", headers.display()))
        .arg("-I")
        .arg(headers)
        .args(["-c", "src/bpf/bbr3.bpf.c", "-o"])
        .arg(object)
        .current_dir(&root)
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            fail(&format!("{} could not compile the BBRv3 program (14 or newer is needed)", clang.display()))
        }
        Err(error) => fail(&format!("{} could not be run: {error}", clang.display())),
    }
}

/// Stops the build with one line.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
