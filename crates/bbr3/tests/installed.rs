//! Controls that stay loaded, on the running kernel. Each test has a BPF file system of its own, so that whatever it loads goes with it.
#![cfg(feature = "bpf")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use bbr3::{About, Exclusive, Found, Installed, Knobs, LoadError, Options, Profile, State, Unloaded};
use host::netns::NetNs;
use host::tcp;
use testkit::{require_root_or_skip, with_private_bpffs};

/// A name that no other test, and no other run of this one, uses.
fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("lt{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn options(name: &str, profile: Profile) -> Options {
    Options { name: name.to_owned(), knobs: profile.knobs() }
}

fn about() -> About {
    About::new("faithful", None)
}

fn load(name: &str) -> Result<Installed, LoadError> {
    Installed::load(&options(name, Profile::Faithful), &about(), &Exclusive::wait()?)
}

fn unload(name: &str) -> Result<Unloaded, LoadError> {
    Installed::unload(name, &Exclusive::wait()?)
}

fn is_registered(name: &str) -> bool {
    host::cc::available().unwrap().iter().any(|there| there == name)
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from("/sys/fs/bpf/linerate").join(name)
}

/// A connection over `lo` whose sender runs `name`, after carrying a megabyte.
fn connection(name: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    tcp::set_congestion_control(&client, name).unwrap();
    assert_eq!(tcp::congestion_control(&client).unwrap(), name);
    let (mut server, _) = listener.accept().unwrap();
    let receiver = thread::spawn(move || {
        server.read_exact(&mut vec![0; 1_000_000]).unwrap();
        server
    });
    client.write_all(&vec![7; 1_000_000]).unwrap();
    (client, receiver.join().unwrap())
}

#[test]
fn a_control_stays_without_a_process_and_a_flow_really_runs_it() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        drop(load(&name).unwrap());
        let Found::Control(installed) = Installed::find(&name).unwrap() else { panic!("it should be found") };
        let before = installed.totals().unwrap();
        assert_eq!((before.inits, before.acks), (0, 0));
        let ends = connection(&name);
        drop(ends);
        // The kernel closes it after the last acknowledgements.
        while installed.totals().unwrap().releases == 0 {
            thread::yield_now();
        }
        let after = installed.totals().unwrap();
        assert_eq!((after.inits, after.releases, after.degraded), (1, 1, 0));
        assert!(after.acks > 0, "{after:?}");
        assert_eq!(installed.knobs().unwrap(), Knobs::default().to_raw().unwrap());
        assert_eq!(installed.about().unwrap(), about());
        assert_eq!(Installed::names().unwrap(), [name.as_str()]);
        assert_eq!(unload(&name).unwrap(), Unloaded::Control);
        assert!(!is_registered(&name));
        assert!(!folder(&name).exists() && !folder("").exists(), "nothing is left in bpffs");
    });
}

#[test]
fn a_name_can_be_loaded_only_once() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        load(&name).unwrap();
        assert!(matches!(load(&name), Err(LoadError::AlreadyLoaded(taken)) if taken == name));
        assert!(is_registered(&name), "the first one stays");
        unload(&name).unwrap();
        assert!(matches!(load("cubic"), Err(LoadError::AlreadyLoaded(_))));
        assert!(!folder("cubic").exists());
    });
}

#[test]
fn two_loaders_at_once_wait_for_each_other_and_one_succeeds() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        // Threads of this thread share its mount namespace.
        let results = thread::scope(|scope| {
            let loaders: Vec<_> = (0..3).map(|_| scope.spawn(|| load(&name).is_ok())).collect();
            loaders.into_iter().map(|loader| loader.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(results.iter().filter(|succeeded| **succeeded).count(), 1, "{results:?}");
        assert!(is_registered(&name));
        unload(&name).unwrap();
        assert!(!is_registered(&name));
    });
}

#[test]
fn bpffs_is_mounted_where_it_is_not_and_goes_again_when_nothing_was_loaded() {
    require_root_or_skip!();
    with_private_bpffs(false, || {
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted);
        let lock = Exclusive::wait().unwrap();
        assert!(lock.mounted_now());
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::Mounted);
        lock.undo();
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted);
    });
}

#[test]
fn a_read_only_bpffs_is_named_and_left_alone() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        use nix::mount::{MsFlags, mount};
        let none = None::<&str>;
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        mount(none, "/sys/fs/bpf", none, flags, none).unwrap();
        assert!(matches!(Exclusive::wait(), Err(LoadError::BpffsReadOnly)));
    });
}

#[test]
fn leftovers_are_told_apart_and_cleared_away_by_the_next_load() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        load(&name).unwrap();
        // What a loader leaves that is killed between pinning its maps and registering.
        fs::remove_file(folder(&name).join("link")).expect("this kernel registers by link");
        while is_registered(&name) {
            thread::yield_now();
        }
        assert!(matches!(Installed::find(&name).unwrap(), Found::Leftovers));
        assert_eq!(Installed::names().unwrap(), [name.as_str()]);
        load(&name).unwrap();
        assert!(matches!(Installed::find(&name).unwrap(), Found::Control(_)));
        fs::remove_file(folder(&name).join("link")).unwrap();
        assert_eq!(unload(&name).unwrap(), Unloaded::Leftovers);
        assert!(matches!(unload(&name), Err(LoadError::NotInstalled(_))));
    });
}

#[test]
fn an_upgrade_gives_new_sockets_the_new_program_and_old_ones_keep_theirs() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        let old = load(&name).unwrap();
        let (mut client, mut server) = connection(&name);
        let old_id = old.map_id();
        let lock = Exclusive::wait().unwrap();
        let new = Installed::upgrade(&options(&name, Profile::LossyLink), &about(), &lock).unwrap();
        assert_ne!(new.map_id(), old_id);
        assert_eq!(new.knobs().unwrap(), Profile::LossyLink.knobs().to_raw().unwrap());
        assert_eq!(new.totals().unwrap().inits, 0);
        let second = connection(&name);
        assert_eq!(new.totals().unwrap().inits, 1);
        // The old socket still works, and the kernel holds two programs of one name.
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let generations = || -> Vec<_> {
            bbr3::generations().unwrap().into_iter().filter(|generation| generation.name == name).collect()
        };
        let both = generations();
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both.iter().all(|one| one.ours && one.state == State::Ready && one.program.is_some()));
        assert_eq!(both.iter().map(|one| one.totals.unwrap().inits).collect::<Vec<_>>(), [1, 1]);
        let program = |index: usize| both[index].program.clone().unwrap();
        assert_ne!(program(0).id, program(1).id);
        assert_eq!(program(0).tag, program(1).tag, "knobs are data: the instructions are the same");
        drop((client, server));
        while generations().len() > 1 {
            thread::yield_now();
        }
        assert_eq!(Some(generations()[0].map_id), new.map_id(), "the old program went with its last socket");
        drop(second);
        assert!(!folder(&name).join("next").exists());
        Installed::unload(&name, &lock).unwrap();
    });
}

#[test]
fn a_default_stays_on_the_old_program_until_it_is_written_again_and_on_one_that_is_gone_too() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        let lock = Exclusive::wait().unwrap();
        Installed::load(&options(&name, Profile::Faithful), &about(), &lock).unwrap();
        // Sockets that began, by program, oldest first.
        let inits = || -> Vec<u64> {
            let all = bbr3::generations().unwrap();
            all.iter().filter(|one| one.name == name).map(|one| one.totals.unwrap().inits).collect()
        };
        let connect = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let control = tcp::congestion_control(&client).unwrap();
            let (server, _) = listener.accept().unwrap();
            (client, server, control)
        };
        NetNs::create()
            .unwrap()
            .run(|| {
                host::cc::set_default_control(&name).unwrap();
                let _first = connect();
                assert_eq!(inits(), [2]);
                Installed::upgrade(&options(&name, Profile::LossyLink), &about(), &lock).unwrap();
                let second = connect();
                assert_eq!((second.2.as_str(), inits()), (name.as_str(), vec![4, 0]), "still the old program");
                host::cc::set_default_control(&name).unwrap();
                let _third = connect();
                assert_eq!(inits(), [4, 2], "written again, it is the new one");
                Installed::unload(&name, &lock).unwrap();
                assert!(!is_registered(&name));
                let fourth = connect();
                assert_eq!((fourth.2.as_str(), inits()), (name.as_str(), vec![4, 4]), "gone, and still the default");
                host::cc::set_default_control("reno").unwrap();
                assert_eq!(connect().2, "reno");
            })
            .unwrap();
    });
}

#[test]
fn only_what_is_installed_can_be_upgraded_and_a_failed_upgrade_changes_nothing() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        let lock = Exclusive::wait().unwrap();
        let missing = Installed::upgrade(&options(&name, Profile::Faithful), &about(), &lock);
        assert!(matches!(missing, Err(LoadError::NotInstalled(_))));
        let installed = Installed::load(&options(&name, Profile::Faithful), &about(), &lock).unwrap();
        let bad = Knobs { probe_max_rounds: 0, ..Knobs::default() };
        let refused = Installed::upgrade(&Options { name: name.clone(), knobs: bad }, &about(), &lock);
        assert!(matches!(refused, Err(LoadError::Knob(_))));
        assert!(!folder(&name).join("next").exists());
        assert_eq!(installed.knobs().unwrap(), Knobs::default().to_raw().unwrap());
        Installed::unload(&name, &lock).unwrap();
    });
}

#[test]
fn an_upgrade_that_was_killed_half_way_is_ended_by_the_next_loader() {
    require_root_or_skip!();
    with_private_bpffs(true, || {
        let name = unique_name();
        let lock = Exclusive::wait().unwrap();
        let faithful = options(&name, Profile::Faithful);
        Installed::load(&faithful, &about(), &lock).unwrap();
        let raw = |profile: Profile| profile.knobs().to_raw().unwrap();
        let knobs_now = || match Installed::find(&name).unwrap() {
            Found::Control(installed) => installed.knobs().unwrap(),
            other => panic!("{other:?}"),
        };

        // Killed before the kernel took the new program: its pins go.
        let next = folder(&name).join("next");
        fs::create_dir(&next).unwrap();
        let other = unique_name();
        let donor = Installed::load(&options(&other, Profile::LossyLink), &about(), &lock).unwrap();
        for pin in ["ops", "rodata_knobs"] {
            donor.map(pin).unwrap().pin(next.join(pin)).unwrap();
        }
        assert!(matches!(Installed::load(&faithful, &about(), &lock), Err(LoadError::AlreadyLoaded(_))));
        assert!(!next.exists());
        assert_eq!(knobs_now(), raw(Profile::Faithful));
        Installed::unload(&other, &lock).unwrap();

        // Killed after it: they move into place. The state is made by moving the pins of a whole upgrade back.
        Installed::upgrade(&options(&name, Profile::LossyLink), &about(), &lock).unwrap();
        fs::create_dir(&next).unwrap();
        for pin in ["ops", "rodata_knobs"] {
            fs::rename(folder(&name).join(pin), next.join(pin)).unwrap();
        }
        assert!(matches!(Installed::load(&faithful, &about(), &lock), Err(LoadError::AlreadyLoaded(_))));
        assert!(!next.exists());
        assert_eq!(knobs_now(), raw(Profile::LossyLink));
        Installed::unload(&name, &lock).unwrap();
    });
}

#[test]
fn bad_names_never_reach_the_file_system() {
    for name in ["", "..", "a/b", "sixteen_letters_", "a.b", "a-b"] {
        assert!(matches!(Installed::find(name), Err(LoadError::BadName(_))), "{name:?}");
    }
}
