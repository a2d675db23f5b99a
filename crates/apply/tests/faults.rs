//! Every acting call of an apply and of a rollback is made to fail in every way, and the next rollback has to put everything back.

mod common;

use std::path::Path;

use common::{Fault, Machine, plan, prepared, request};
use tuning::transaction::{self, Standing, World, standing};

const FAULTS: [Fault; 7] = [
    Fault::KilledBefore,
    Fault::KilledAfter,
    Fault::Error(nix::libc::ENOSPC),
    Fault::Error(nix::libc::EROFS),
    Fault::Error(nix::libc::EPERM),
    Fault::Error(nix::libc::EINVAL),
    Fault::ShortWrite,
];

/// In memory where there is such a place: thousands of fsyncs of a disk take minutes.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Rolls back whatever is open, as `linerate rollback --all` does.
fn roll_back_all(machine: &mut Machine) -> bool {
    let boot_id = machine.boot_id();
    if transaction::close_other_boots(machine).is_err() {
        return false;
    }
    let all = transaction::load(machine).expect("journals can be read");
    let open: Vec<_> = all.iter().rev().filter(|one| standing(one, &boot_id) != Standing::Closed).collect();
    open.iter().all(|one| {
        let undone = transaction::roll_back(machine, one, false, "rolled back").expect("no journal is damaged");
        assert_eq!(undone.left().count(), 0, "nobody else has changed anything: {undone:?}");
        undone.is_complete() && undone.journal.is_none()
    })
}

fn open_transactions(machine: &Machine) -> usize {
    let boot_id = machine.boot_id();
    transaction::load(machine).unwrap().iter().filter(|one| standing(one, &boot_id) != Standing::Closed).count()
}

fn apply(machine: &mut Machine, root: &Path, confirm: bool) -> bool {
    let prepared = prepared(machine, root, &plan()).expect("the plan can be made");
    let applied = transaction::apply(machine, request(&prepared, confirm.then_some(60_000_000_000)));
    applied.is_ok() && (!confirm || transaction::confirm(machine).is_ok())
}

/// Fails call after call until none is left. Returns how many points there were.
fn at_every_call(applied: bool, restart: bool, confirm: bool) -> usize {
    let mut points = 0;
    for fault in FAULTS {
        for at in 0.. {
            let folder = folder();
            let root = folder.path();
            let machine = Machine::new(root);
            let before = machine.picture(root);
            let mut machine = if applied {
                let mut machine = machine;
                assert!(apply(&mut machine, root, confirm), "nothing fails here");
                assert_ne!(machine.picture(root), before);
                if restart { machine.restarted(root) } else { machine.again() }
            } else {
                machine
            };
            machine = machine.with_fault(at, fault);
            let ended_well = if applied { roll_back_all(&mut machine) } else { apply(&mut machine, root, confirm) };
            if machine.calls() <= at {
                assert!(ended_well, "without a fault it works");
                break;
            }
            points += 1;
            let what = format!("{fault:?} at call {at} ({})", machine.name_of(at));
            let killed = matches!(fault, Fault::KilledBefore | Fault::KilledAfter);
            let now = machine.picture(root);
            if !applied && !killed && !ended_well {
                assert_eq!(now, before, "{what}: a failed apply leaves nothing behind");
            }
            let mut next = if killed && restart && !applied { machine.restarted(root) } else { machine.again() };
            if killed && restart && !applied {
                // What lasts is there whole, or not; a restart shows no half of the live values.
                assert_eq!(next.sysctl("net.core.somaxconn").unwrap().unwrap(), "128");
            }
            assert!(roll_back_all(&mut next), "{what}: the next rollback works");
            let mut after = next.picture(root);
            if restart {
                // The boot has read the administrator's own file.
                let key = "proc/sys/net/core/somaxconn";
                after.insert(key.into(), before[key].clone());
            }
            assert_eq!(after, before, "{what}: the next rollback restores every byte");
            assert_eq!(open_transactions(&next), 0, "{what}");
        }
    }
    points
}

#[test]
fn every_call_of_an_apply_may_fail_or_be_the_last() {
    let points = at_every_call(false, false, false);
    println!("apply: {points} points");
    assert!(points >= 150, "{points}");
}

#[test]
fn every_call_of_a_rollback_may_fail_or_be_the_last() {
    let points = at_every_call(true, false, false);
    println!("rollback: {points} points");
    assert!(points >= 150, "{points}");
}

#[test]
fn every_call_of_an_apply_that_is_confirmed_may_fail_or_be_the_last() {
    let points = at_every_call(false, false, true);
    println!("apply and confirm: {points} points");
    assert!(points >= 150, "{points}");
}

#[test]
fn a_machine_that_restarts_at_any_call_of_an_apply_is_restored_by_the_next_rollback() {
    let points = at_every_call(false, true, false);
    println!("apply, restart: {points} points");
    assert!(points >= 150, "{points}");
}

#[test]
fn every_call_of_a_rollback_after_a_restart_may_fail_or_be_the_last() {
    let points = at_every_call(true, true, false);
    println!("rollback after a restart: {points} points");
    assert!(points >= 150, "{points}");
}

#[test]
fn an_unconfirmed_apply_leaves_nothing_for_a_restart_to_undo() {
    let folder = folder();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.restarted(root).picture(root);
    let prepared = prepared(&machine, root, &plan()).unwrap();
    transaction::apply(&mut machine, request(&prepared, Some(60_000_000_000))).unwrap();
    let waiting = transaction::load(&machine).unwrap();
    assert_eq!(standing(&waiting[0], &machine.boot_id()), Standing::Waiting);
    let mut next = machine.restarted(root);
    assert_eq!(next.picture(root), before, "the boot has found nothing of it");
    let all = transaction::load(&next).unwrap();
    assert_eq!(standing(&all[0], &next.boot_id()), Standing::OfAnotherBoot);
    assert!(transaction::confirm(&mut next).is_err(), "too late");
    transaction::close_other_boots(&mut next).unwrap();
    assert_eq!(open_transactions(&next), 0);
}

#[test]
fn a_confirmation_past_the_deadline_is_refused_and_an_unwatched_transaction_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut machine = Machine::new(root);
    let before = machine.picture(root);
    let steps = prepared(&machine, root, &plan()).unwrap();
    transaction::apply(&mut machine, request(&steps, Some(3_000_000_000))).unwrap();
    let found = |machine: &Machine| {
        let all = transaction::load(machine).unwrap();
        transaction::verify(machine, &apply::Disk::new(root), &all)
    };
    assert!(found(&machine).is_empty(), "{:?}", found(&machine));
    let mut machine = machine.without_guard();
    let findings = found(&machine);
    assert!(findings.iter().any(|f| f.why.contains("nobody watches")), "{findings:?}");
    let refusals = prepared(&machine, root, &plan()).unwrap_err();
    assert!(refusals[0].why.contains("`linerate rollback 1` undoes it"), "{refusals:?}");
    machine.wait(3_000_000_000);
    let late = transaction::confirm(&mut machine).unwrap_err().to_string();
    assert!(late.contains("is over") && late.contains("`linerate rollback 1`"), "{late}");
    assert!(roll_back_all(&mut machine));
    assert_eq!(machine.picture(root), before);
}

#[test]
fn without_a_guard_nothing_is_changed() {
    let folder = folder();
    let root = folder.path();
    let mut machine = Machine::new(root).without_guard();
    let before = machine.picture(root);
    let prepared = prepared(&machine, root, &plan()).unwrap();
    let failed = transaction::apply(&mut machine, request(&prepared, Some(1))).unwrap_err();
    assert!(failed.to_string().contains("nothing was changed"), "{failed}");
    assert_eq!((machine.picture(root), open_transactions(&machine)), (before, 0));
}
