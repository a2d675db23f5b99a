//! What an apply does not begin, with the sentence, and plans that are not as they should be.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use apply::Disk;
use common::{Machine, change, host, plain, plan, prepared, request};
use tuning::journal::{Step, Tree};
use tuning::plan::{ChangeKind, Host, Plan};
use tuning::transaction::{self, Check, prepare};

struct Case {
    folder: tempfile::TempDir,
    machine: Machine,
    plan: Plan,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::new(folder.path());
        Self { folder, machine, plan: plan() }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn refused(&self, parts: &[&str]) {
        let before = self.machine.picture(self.root());
        let refusals = prepared(&self.machine, self.root(), &self.plan).expect_err("it has to be refused");
        let text: Vec<_> = refusals.iter().map(|refusal| refusal.why.as_str()).collect();
        let text = text.join("\n");
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        assert_eq!((self.machine.picture(self.root()), self.machine.calls()), (before, 0), "looking changes nothing");
    }

    #[track_caller]
    fn accepted(&self) -> transaction::Prepared {
        prepared(&self.machine, self.root(), &self.plan).expect("nothing is against it")
    }
}

#[test]
fn a_plan_from_another_host_or_kernel_is_refused_and_this_hosts_is_not() {
    let mut case = Case::new();
    case.accepted();
    case.plan.host.id = "other".into();
    case.refused(&["made for host", "make one here"]);
    case.plan = plan();
    case.plan.host.kernel = "6.1.0".into();
    case.refused(&["made for Linux 6.1.0, and this host runs 6.12.1"]);
    case.plan = plan();
    // Without a machine-id the name decides.
    case.plan.host.id = String::new();
    case.accepted();
    case.plan.host.name = "elsewhere".into();
    case.refused(&["made for host \"elsewhere\""]);
}

#[test]
fn devices_that_are_gone_renamed_or_set_by_hand_are_refused() {
    let case = Case::new();
    case.machine.remove_device("eth0");
    case.refused(&["\"eth0 root\": there is no such device: it was renamed or taken out"]);
    for (tree, part) in [
        (Tree { root: "htb".into(), handle: 1, leaves: Vec::new() }, "eth0 has htb (handle 1:): somebody has set that"),
        (Tree { root: "fq_codel".into(), handle: 0x8001, leaves: Vec::new() }, "somebody has set that"),
        (Tree { root: "cake".into(), handle: 0, leaves: Vec::new() }, "somebody has set that"),
        (plain("noqueue", 0), "somebody has set that"),
        (plain("pfifo_fast", 0), "and the plan saw fq_codel: plan anew"),
        (plain("fq_codel", 4), "and the plan saw fq_codel"),
    ] {
        case.machine.set_device("eth0", tree);
        case.refused(&["change 5, \"eth0 root\"", part]);
    }
}

#[test]
fn a_value_that_was_changed_since_the_plan_is_refused() {
    let case = Case::new();
    case.write("proc/sys/net/ipv4/tcp_rmem", "4096 131072 7000000\n");
    case.refused(&["it is 4096 131072 7000000 now, and the plan saw 4096 131072 6291456"]);
    fs::remove_file(case.root().join("proc/sys/net/netfilter/nf_conntrack_max")).unwrap();
    case.refused(&["the module nf_conntrack brings it, and is not loaded", "modprobe nf_conntrack"]);
}

#[test]
fn whoever_has_a_later_word_is_named_with_file_and_line() {
    let case = Case::new();
    case.write("etc/sysctl.d/99-zzz.conf", "# x\nnet/ipv4/tcp_rmem = 4096 1 1\n");
    case.refused(&["net.ipv4.tcp_rmem: /etc/sysctl.d/99-zzz.conf:2 sets it to 4096 1 1"]);
    // The same value is no quarrel.
    case.write("etc/sysctl.d/99-zzz.conf", "net.ipv4.tcp_rmem = 8192 262144\t40894464\n");
    case.accepted();
    case.write("etc/ufw/ufw.conf", "ENABLED=yes\n");
    case.write("etc/ufw/sysctl.conf", "net/ipv4/tcp_congestion_control=cubic\n");
    case.refused(&["/etc/ufw/sysctl.conf:1", "change it there"]);
    case.write("etc/ufw/ufw.conf", "ENABLED=no\n");
    case.write("etc/tuned/active_profile", "mine\n");
    case.write("etc/tuned/mine/tuned.conf", "[sysctl]\nnet.ipv4.tcp_congestion_control=cubic\n");
    // tuned applies the settings files once more behind its profile: the drop-in has the last word.
    case.accepted();
    case.write("etc/tuned/tuned-main.conf", "reapply_sysctl=0\n");
    case.refused(&["/etc/tuned/mine/tuned.conf:2", "tuned"]);
}

#[test]
fn remnants_of_the_old_file_are_told_and_do_not_win() {
    let case = Case::new();
    case.write("etc/sysctl.conf", "net.ipv4.tcp_rmem = 4096 87380 1\n");
    let notes = case.accepted().notes;
    assert!(
        notes.iter().any(|note| note.contains("/etc/sysctl.conf:1") && note.contains("sysctl --system")),
        "{notes:?}"
    );
    symlink("../sysctl.conf", case.root().join("etc/sysctl.d/99-sysctl.conf")).unwrap();
    case.accepted();
}

#[test]
fn somebody_elses_file_of_our_name_is_left_alone() {
    let case = Case::new();
    case.write("etc/sysctl.d/99-zz-linerate.conf", "net.ipv4.tcp_rmem = 1 2 3\n");
    case.refused(&["/etc/sysctl.d/99-zz-linerate.conf is there and was not written by `linerate apply`"]);
    let path = case.root().join("etc/sysctl.d/99-zz-linerate.conf");
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    case.refused(&["was not written by"]);
    // Linerate's own of which no journal knows.
    fs::remove_file(&path).unwrap();
    case.write(
        "etc/sysctl.d/99-zz-linerate.conf",
        "# Written by `linerate apply`; `linerate rollback` puts back what was here before.\n",
    );
    case.refused(&["its journal is gone"]);
}

#[test]
fn plans_that_were_edited_by_hand_are_refused_by_what_is_wrong() {
    use ChangeKind::{Qdisc, Ring, Sysctl};
    let mut case = Case::new();
    for (change, part) in [
        (change(Sysctl, "net/ipv4/tcp_rmem", "1", "2"), "write it as net.ipv4.tcp_rmem"),
        (change(Sysctl, "net.ipv4.../x", "1", "2"), "a part of the key"),
        (change(Sysctl, "net.core.somaxconn", "4096", "8192\nnet.ipv4.ip_forward = 1"), "a value is one line"),
        (change(Sysctl, "net.core.somaxconn", "4096", ""), "a value is one line"),
        (change(Sysctl, "kernel.core_pattern", "core", "|/tmp/x"), "no matter of the network"),
        (change(Sysctl, "net.ipv4.tcp_banana", "1", "2"), "no key that linerate knows"),
        (change(Sysctl, "net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 87380 6291456"), "131072 would become 87380"),
        (change(Qdisc, "eth0", "fq_codel", "fq"), "`DEVICE root` or `DEVICE leaves`"),
        (change(Qdisc, "../x root", "fq_codel", "fq"), "`DEVICE root` or `DEVICE leaves`"),
        (change(Qdisc, "eth0 root", "fq_codel", "htb"), "\"htb\" is none of"),
        (change(Qdisc, "eth1 root", "fq_codel fq_codel", "fq"), "plan anew"),
        (change(Ring, "eth0 rx", "256", "many"), "a ring's size is a number"),
        (change(Ring, "eth0 rx", "256", "4096"), "4096 is not between 256, which is there, and 1024"),
        (change(Ring, "eth0 rx", "128", "512"), "the plan saw 128"),
        (change(Ring, "lo rx", "1", "2"), "no rings"),
    ] {
        case.plan.changes = vec![change];
        case.refused(&["change 1", part]);
    }
    let twice = plan().changes[0].clone();
    case.plan.changes = vec![twice.clone(), twice];
    case.refused(&["change 2: net.ipv4.tcp_rmem is named twice"]);
    case.plan.schema = "linerate.plan/7".into();
    case.refused(&["schema \"linerate.plan/7\""]);
}

#[test]
fn a_container_and_a_program_that_others_may_change_are_refused() {
    let case = Case::new();
    let disk = Disk::new(case.root());
    let host: Host = host();
    let check = |container: Option<&str>, exec: Result<String, String>| {
        let check = Check {
            host: &host,
            container: container.map(str::to_owned),
            root: &disk,
            transactions: &[],
            live_only: false,
            exec,
            systemd: true,
        };
        prepare(&case.machine, &case.plan, &check).map(drop)
    };
    assert!(check(None, Ok("/usr/bin/linerate".into())).is_ok());
    let refusals = check(Some("a docker container"), Ok("/usr/bin/linerate".into())).unwrap_err();
    assert!(refusals[0].why.contains("container"), "{refusals:?}");
    let refusals = check(None, Err("/tmp can be changed by others".into())).unwrap_err();
    assert!(refusals[0].why.contains("/tmp can be changed"), "{refusals:?}");
}

#[test]
fn a_transaction_that_is_open_is_named_and_its_way_out() {
    let mut case = Case::new();
    let steps = case.accepted();
    transaction::apply(&mut case.machine, request(&steps, Some(1_000_000))).unwrap();
    case.machine = case.machine.again();
    let refusals = prepared(&case.machine, case.root(), &case.plan).unwrap_err();
    assert!(refusals[0].why.contains("`linerate confirm` keeps it"), "{refusals:?}");
}

#[test]
fn what_is_as_planned_already_has_no_steps_and_devices_come_before_the_default() {
    let mut case = Case::new();
    let steps = case.accepted();
    let place = |what: &str| steps.steps.iter().position(|(step, _)| step.what() == what).unwrap();
    assert!(place("eth0") < place("net.core.default_qdisc") && place("eth1") < place("net.core.default_qdisc"));
    let lasting: Vec<bool> = steps.steps.iter().map(|(_, lasting)| *lasting).collect();
    assert!(lasting.is_sorted(), "what lasts comes last: {lasting:?}");
    assert!(
        steps.steps.iter().any(|(step, _)| matches!(step, Step::File { path, .. } if path == transaction::MODULES))
    );
    transaction::apply(&mut case.machine, request(&steps, None)).unwrap();
    assert!(case.accepted().steps.is_empty());
}
