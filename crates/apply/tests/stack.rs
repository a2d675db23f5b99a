//! Transactions one above the other, what others change in between, journals that are damaged, and what verify says.

mod common;

use std::fs;
use std::path::Path;

use apply::{Disk, Lock};
use common::{Machine, change, plain, plan, prepared, request};
use tuning::plan::ChangeKind::Sysctl;
use tuning::transaction::{self, Finding, Standing, Transaction, Undone, World, standing};

fn apply(machine: &mut Machine, root: &Path, plan: &tuning::plan::Plan) {
    let prepared = prepared(machine, root, plan).expect("the plan can be made");
    transaction::apply(machine, request(&prepared, None)).expect("it is made");
}

fn load(machine: &Machine) -> Vec<Transaction> {
    transaction::load(machine).unwrap()
}

fn roll_back(machine: &mut Machine, index: usize) -> Undone {
    let all = load(machine);
    transaction::roll_back(machine, &all[index], false, "rolled back").unwrap()
}

fn verify(machine: &Machine, root: &Path) -> Vec<Finding> {
    transaction::verify(machine, &Disk::new(root), &load(machine))
}

fn second_plan() -> tuning::plan::Plan {
    let mut plan = plan();
    plan.changes = vec![
        change(Sysctl, "net.ipv4.tcp_rmem", "8192 262144 40894464", "8192 262144 80000000"),
        change(Sysctl, "net.core.somaxconn", "4096", "8192"),
    ];
    plan
}

#[test]
fn a_second_apply_stands_on_the_first_and_each_rollback_takes_one_away() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.picture(root);
    apply(&mut machine, root, &plan());
    let first = machine.picture(root);
    apply(&mut machine, root, &second_plan());
    let drop_in = fs::read_to_string(root.join("etc/sysctl.d/99-zz-linerate.conf")).unwrap();
    for line in
        ["net.ipv4.tcp_rmem = 8192 262144 80000000\n", "net.core.somaxconn = 8192\n", "-net.core.default_qdisc = fq\n"]
    {
        assert!(drop_in.contains(line), "{line}: {drop_in}");
    }
    assert_eq!(drop_in.matches("net.ipv4.tcp_rmem").count(), 1, "{drop_in}");
    assert_eq!(verify(&machine, root), []);
    assert!(roll_back(&mut machine, 1).is_complete());
    assert_eq!(machine.picture(root), first);
    assert_eq!(verify(&machine, root), []);
    assert!(roll_back(&mut machine, 0).is_complete());
    assert_eq!(machine.picture(root), before);
}

#[test]
fn what_somebody_else_has_changed_since_is_left_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.picture(root);
    apply(&mut machine, root, &plan());
    fs::write(root.join("proc/sys/net/ipv4/tcp_rmem"), "4096 131072 99\n").unwrap();
    let htb = tuning::journal::Tree { root: "htb".into(), handle: 1, leaves: Vec::new() };
    machine.set_device("eth0", htb);
    machine.remove_device("eth1");
    let drop_in = root.join("etc/sysctl.d/99-zz-linerate.conf");
    let text = fs::read_to_string(&drop_in).unwrap() + "# mine\n";
    fs::write(&drop_in, &text).unwrap();
    let kinds: Vec<_> = verify(&machine, root).into_iter().map(|finding| (finding.kind, finding.what)).collect();
    let named = |what: &str| kinds.iter().any(|(_, there)| there == what);
    assert!(
        named("net.ipv4.tcp_rmem") && named("eth0") && named("eth1") && named("/etc/sysctl.d/99-zz-linerate.conf"),
        "{kinds:?}"
    );
    let undone = roll_back(&mut machine, 0);
    assert!(undone.is_complete());
    let left: Vec<&str> = undone.left().map(|left| left.what.as_str()).collect();
    assert_eq!(left, ["/etc/sysctl.d/99-zz-linerate.conf", "net.ipv4.tcp_rmem", "eth0"]);
    assert_eq!(fs::read_to_string(&drop_in).unwrap(), text, "a file with somebody's own lines is left");
    let after = machine.picture(root);
    for same in ["proc/sys/net/ipv4/tcp_congestion_control", "proc/sys/net/core/default_qdisc", "rings"] {
        assert_eq!(after[same], before[same]);
    }
}

#[test]
fn a_device_whose_default_was_changed_by_hand_gets_its_own_kind_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    // An administrator has set the default, and devices that were up kept theirs.
    fs::write(root.join("proc/sys/net/core/default_qdisc"), "fq\n").unwrap();
    machine.set_device("eth0", plain("pfifo_fast", 0));
    let mut plan = plan();
    plan.changes.retain(|change| change.key.starts_with("eth"));
    plan.changes[0].from = "pfifo_fast".into();
    let before = machine.picture(root);
    apply(&mut machine, root, &plan);
    assert_ne!(machine.picture(root), before);
    assert!(roll_back(&mut machine, 0).is_complete());
    assert_eq!(machine.picture(root), before, "the default is lent for a moment and returned");
}

#[test]
fn after_a_restart_verify_says_what_did_not_survive_and_why_and_late_sets_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.picture(root);
    apply(&mut machine, root, &plan());
    let mut machine = machine.restarted(root);
    // Rings and late modules are nothing that sysctl.d sets.
    fs::write(root.join("proc/sys/net/netfilter/nf_conntrack_max"), "65536\n").unwrap();
    let findings = verify(&machine, root);
    let why = |what: &str| findings.iter().find(|f| f.what == what).map(|f| f.why.clone()).unwrap_or_default();
    assert!(why("net.netfilter.nf_conntrack_max").contains("nf_conntrack"), "{findings:?}");
    assert!(why("eth0").contains("driver"), "{findings:?}");
    assert_eq!(findings.len(), 2, "{findings:?}");
    let all = load(&machine);
    let late = transaction::late(&mut machine, &all);
    assert!(late.iter().all(|late| late.result.is_ok()) && late.len() == 2, "{late:?}");
    assert_eq!(verify(&machine, root), []);
    fs::write(root.join("etc/sysctl.d/99-zzz.conf"), "net.ipv4.tcp_congestion_control = cubic\n").unwrap();
    assert_eq!(verify(&machine, root)[0].kind, "boot");
    let mut machine = machine.restarted(root);
    let findings = verify(&machine, root);
    let finding = findings.iter().find(|finding| finding.what == "net.ipv4.tcp_congestion_control").unwrap();
    assert!(finding.why.contains("did not survive the restart: /etc/sysctl.d/99-zzz.conf:1"), "{finding:?}");
    fs::remove_file(root.join("etc/sysctl.d/99-zzz.conf")).unwrap();
    assert!(roll_back(&mut machine, 0).is_complete());
    let mut after = machine.picture(root);
    after.insert("proc/sys/net/core/somaxconn".into(), before["proc/sys/net/core/somaxconn"].clone());
    assert_eq!(after, before);
}

#[test]
fn late_leaves_alone_what_somebody_else_has_set_at_boot() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    apply(&mut machine, root, &plan());
    let mut machine = machine.restarted(root);
    fs::write(root.join("proc/sys/net/netfilter/nf_conntrack_max"), "1000\n").unwrap();
    let htb = tuning::journal::Tree { root: "htb".into(), handle: 1, leaves: Vec::new() };
    machine.set_device("eth0", htb);
    let all = load(&machine);
    let late = transaction::late(&mut machine, &all);
    let what: Vec<_> = late.iter().map(|late| (late.what.as_str(), late.to.as_str())).collect();
    assert_eq!(what, [("eth0", "1024")], "only the ring");
}

#[test]
fn damaged_journals_are_refused_with_the_line_and_can_be_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.picture(root);
    apply(&mut machine, root, &plan());
    let path = root.join("var/lib/linerate/0001.journal");
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let edited = whole.replace("4096 131072 6291456", "4096 131072 9999999");
    let without_head = lines[3..].join("\n") + "\n";
    let cut = lines[..2].join("\n") + "\n";
    for text in [edited.as_str(), &without_head, &cut, "", "banana", "\0\0\0\n"] {
        fs::write(&path, text).unwrap();
        let all = load(&machine);
        assert_eq!(standing(&all[0], &machine.boot_id()), Standing::Damaged, "{text:?}");
        let now = machine.picture(root);
        transaction::roll_back(&mut machine, &all[0], false, "x").expect_err("nothing is done by it");
        assert_eq!(machine.picture(root), now);
        assert!(verify(&machine, root).iter().any(|finding| finding.kind == "journal"));
    }
    // One line is gone: everything but that is put back.
    fs::write(&path, &edited).unwrap();
    let all = load(&machine);
    let undone = transaction::roll_back(&mut machine, &all[0], true, "x").unwrap();
    assert!(undone.unreadable.as_ref().is_some_and(|which| which.starts_with("line")), "{:?}", undone.unreadable);
    assert!(!undone.is_complete() && undone.failures().next().is_none());
    let after = machine.picture(root);
    let differs: Vec<_> = before.keys().filter(|key| after.get(*key) != before.get(*key)).collect();
    assert_eq!(differs, ["proc/sys/net/ipv4/tcp_rmem"]);
    assert!(root.join("var/lib/linerate/0001.journal.damaged").exists(), "what was damaged is kept aside");
}

#[test]
fn an_empty_journal_and_one_that_is_gone_leave_files_that_are_named_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    apply(&mut machine, root, &plan());
    let path = root.join("var/lib/linerate/0001.journal");
    fs::write(&path, "").unwrap();
    let all = load(&machine);
    let undone = transaction::roll_back(&mut machine, &all[0], true, "x").unwrap();
    assert!(!undone.is_complete() && undone.remains.contains(&transaction::DROP_IN.to_owned()), "{undone:?}");
    let is_found = |machine: &Machine| {
        verify(machine, root).iter().any(|found| found.what == transaction::DROP_IN && found.why.contains("no journal"))
    };
    assert!(is_found(&machine));
    let removed = transaction::remove_orphans(&mut machine).unwrap();
    assert!(removed.contains(&transaction::DROP_IN.to_owned()) && !is_found(&machine));
    assert!(!root.join("etc/sysctl.d/99-zz-linerate.conf").exists());
    transaction::uninstall_files(&mut machine).unwrap();
    assert!(root.join("var/lib/linerate/0001.journal.damaged").exists(), "not everything in it was undone");
}

#[test]
fn a_state_directory_that_others_can_write_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    apply(&mut machine, root, &plan());
    let state = root.join("var/lib/linerate");
    for (path, mode, why) in
        [(state.join("0001.journal"), 0o666, "written by others"), (state.clone(), 0o755, "chmod 700")]
    {
        let usual = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = transaction::load(&machine).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        fs::set_permissions(&path, usual).unwrap();
    }
    assert_eq!(load(&machine).len(), 1);
}

#[test]
fn two_operators_cannot_be_at_work_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let live = apply::Live::new(folder.path());
    let first = Lock::take(&live, "apply").unwrap();
    let second = Lock::take(&live, "rollback").unwrap_err().to_string();
    let me = std::process::id();
    assert!(second.contains(&format!("another linerate is at work: apply (process {me})")), "{second}");
    drop(first);
    Lock::take(&live, "rollback").unwrap();
}

#[test]
fn uninstall_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.picture(root);
    apply(&mut machine, root, &plan());
    assert!(roll_back(&mut machine, 0).is_complete());
    transaction::uninstall_files(&mut machine).unwrap();
    assert_eq!(machine.picture(root), before);
    assert!(!root.join("var/lib/linerate").exists());
}
