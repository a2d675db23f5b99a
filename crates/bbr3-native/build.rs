//! Compiles the kernel program's headers natively.

fn main() {
    println!("cargo::rerun-if-changed=src/native.c");
    println!("cargo::rerun-if-changed=../bbr3/src/bpf");
    println!("cargo::rerun-if-env-changed=LINERATE_C_COVERAGE");
    let mut build = cc::Build::new();
    build.file("src/native.c").include("../bbr3/src/bpf").std("gnu11").warnings(true).extra_warnings(true);
    build.flag_if_supported("-Wno-unused-parameter").flag("-Werror");
    if std::env::var_os("LINERATE_C_COVERAGE").is_some() {
        // scripts/bbr3-coverage: counts lines and branches of the headers.
        build.flag("--coverage").flag("-O0").flag("-fprofile-abs-path");
        println!("cargo::rustc-link-lib=gcov");
    }
    build.compile("bbr3_native");
}
