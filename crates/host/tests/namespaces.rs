//! Namespaces on the running kernel: made, entered, left, and what happens where they may not be made.

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;

use linerate_host::netns::NetNs;
use linerate_host::userns::{self, Privilege};
use testkit::require_root_or_skip;

#[test]
fn a_new_namespace_has_lo_up_and_nothing_else() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    let (devices, reached) = namespace
        .run(|| {
            let devices = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            (devices, TcpStream::connect(listener.local_addr().unwrap()).is_ok())
        })
        .unwrap();
    assert!(reached, "lo carries no connection");
    let names: Vec<&str> =
        devices.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect();
    assert_eq!(names, ["lo"]);
}

#[test]
fn the_calling_thread_stays_in_its_own_namespace() {
    require_root_or_skip!();
    let before = NetNs::current().unwrap().inode().unwrap();
    let namespace = NetNs::create().unwrap();
    let inside = namespace.run(|| NetNs::current().unwrap().inode().unwrap()).unwrap();
    assert_eq!(inside, namespace.inode().unwrap());
    assert_ne!(inside, before);
    assert_eq!(NetNs::current().unwrap().inode().unwrap(), before);
}

#[test]
fn a_port_taken_in_one_namespace_is_free_in_another() {
    require_root_or_skip!();
    let (one, two) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    let _taken = one.run(|| TcpListener::bind("127.0.0.1:5001").unwrap()).unwrap();
    assert!(one.run(|| TcpListener::bind("127.0.0.1:5001").is_err()).unwrap());
    assert!(two.run(|| TcpListener::bind("127.0.0.1:5001").is_ok()).unwrap());
}

#[test]
fn a_spawned_thread_lives_inside_the_namespace_and_returns_its_value() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    let thread = namespace.spawn("inside", || NetNs::current().unwrap().inode().unwrap()).unwrap();
    assert_eq!(thread.join().unwrap(), namespace.inode().unwrap());
}

#[test]
fn a_panic_inside_a_namespace_goes_on_in_the_caller() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    let caught = std::panic::catch_unwind(|| namespace.run(|| panic!("from inside")));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"from inside"));
}

#[test]
fn a_clone_keeps_the_namespace_alive() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    let clone = namespace.clone();
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(namespace);
    assert!(clone.run(|| TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap());
}

#[test]
fn a_command_runs_inside_the_namespace() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    let output = namespace.command("readlink").arg("/proc/self/ns/net").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), format!("net:[{}]", namespace.inode().unwrap()));
}

#[test]
fn a_command_dies_with_the_thread_that_started_it() {
    require_root_or_skip!();
    use std::os::unix::process::ExitStatusExt;
    let namespace = NetNs::create().unwrap();
    let mut child = std::thread::spawn(move || namespace.command("sleep").arg("600").spawn().unwrap()).join().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

/// Runs one test of this binary in a child process as user 65534, without any capability; its output and success.
fn as_nobody(test: &str) -> (bool, String) {
    let output = Command::new("/proc/self/exe")
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("LINERATE_AS_NOBODY", "1")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// The test harness always has a second thread, so the part that must be single-threaded runs in a forked child.
fn in_single_threaded_child(body: fn() -> Result<(), String>) -> Result<(), String> {
    use std::io::Write;
    use std::io::{Read, pipe};
    let (mut reader, mut writer) = pipe().unwrap();
    // SAFETY: the child has one thread, runs `body` and leaves by _exit; the C library's allocator is usable after fork.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let result = body();
            let _ = writer.write_all(result.as_ref().err().map_or("", String::as_str).as_bytes());
            // SAFETY: _exit ends the process at once.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            drop(writer);
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            match nix::sys::wait::waitpid(child, None).unwrap() {
                nix::sys::wait::WaitStatus::Exited(_, 0) => Ok(()),
                status => Err(format!("{status:?} {text}")),
            }
        }
    }
}

#[test]
fn a_user_without_rights_gets_namespaces_through_a_user_namespace() {
    if std::env::var_os("LINERATE_AS_NOBODY").is_none() {
        require_root_or_skip!();
        let (ok, text) = as_nobody("a_user_without_rights_gets_namespaces_through_a_user_namespace");
        assert!(ok, "{text}");
        assert!(text.contains("ran as 65534"), "the child ran another test: {text}");
        return;
    }
    println!("ran as {}", nix::unistd::getuid());
    in_single_threaded_child(|| {
        if NetNs::create().is_ok() {
            return Err("user 65534 made a network namespace without a user namespace".into());
        }
        match userns::enter_if_needed() {
            Ok(Privilege::UserNamespace) => {}
            other => return Err(format!("expected a user namespace, got {other:?}")),
        }
        let namespace = NetNs::create().map_err(|e| e.to_string())?;
        namespace
            .run(|| TcpListener::bind("127.0.0.1:0").map(drop))
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())?;
        // A second call finds the rights and changes nothing.
        matches!(userns::enter_if_needed(), Ok(Privilege::Root)).then_some(()).ok_or("second call".into())
    })
    .unwrap();
}

#[test]
fn a_user_namespace_is_refused_to_a_process_with_several_threads() {
    if std::env::var_os("LINERATE_AS_NOBODY").is_none() {
        require_root_or_skip!();
        let (ok, text) = as_nobody("a_user_namespace_is_refused_to_a_process_with_several_threads");
        assert!(ok, "{text}");
        assert!(text.contains("ran as 65534"), "the child ran another test: {text}");
        return;
    }
    println!("ran as {}", nix::unistd::getuid());
    // The harness's own threads are enough.
    let error = userns::enter_if_needed().unwrap_err().to_string();
    assert!(error.contains("one thread"), "{error}");
    let error = NetNs::create().unwrap_err().to_string();
    for hint in ["CAP_SYS_ADMIN", "sudo", "kernel.unprivileged_userns_clone", "user.max_user_namespaces", "apparmor"] {
        assert!(error.contains(hint), "{error} does not name {hint}");
    }
}

#[test]
fn root_stays_root() {
    require_root_or_skip!();
    assert_eq!(userns::enter_if_needed().unwrap(), Privilege::Root);
}
