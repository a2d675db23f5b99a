//! What the command line changes about a scenario.

use linerate_scenario::{NoFiles, Overrides, QueueSpec, Scenario};
use units::{Bytes, Duration, Probability};

fn own(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn read(name: &str) -> Scenario {
    Scenario::builtin(name).unwrap_or_else(|error| panic!("{error}"))
}

fn with(name: &str, overrides: Overrides) -> Scenario {
    read(name).with_overrides(overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn profiles(scenario: &Scenario) -> Vec<(&str, &str)> {
    scenario.profiles.iter().map(|p| (p.name.as_str(), p.congestion_control.as_str())).collect()
}

fn controls(list: &[&str]) -> Overrides {
    Overrides { congestion_controls: own(list), ..Overrides::default() }
}

#[test]
fn no_overrides_leave_a_scenario_as_it_is() {
    assert_eq!(with("transcontinental", Overrides::default()), read("transcontinental"));
}

#[test]
fn other_buffers_take_the_place_of_a_scenarios_and_a_profiles_own() {
    let buffers = Overrides { buffers: Some(Bytes::new(256 << 20)), ..Overrides::default() };
    let scenario = with("cross-continental-lossy", buffers.clone());
    assert_eq!(profiles(&scenario), [("cubic + 256 MiB buffers", "cubic"), ("bbr + 256 MiB buffers", "bbr")]);
    let value = |key: &str| scenario.profiles[1].sysctls.iter().find(|(k, _)| k == key).unwrap().1.as_str();
    assert_eq!(value("net.ipv4.tcp_rmem"), "4096 67108864 268435456");
    assert_eq!(value("net.ipv4.tcp_wmem"), "4096 16384 268435456");
    assert!(scenario.published.is_empty(), "nobody published anything for these buffers");
    // transcontinental has its buffers for all profiles in one place.
    let scenario = with("transcontinental", Overrides { congestion_controls: own(&["bbr3"]), ..buffers });
    assert_eq!(profiles(&scenario), [("bbr3 + 256 MiB buffers", "bbr3")]);
    assert!(scenario.sysctls.iter().all(|(key, _)| !key.ends_with("mem")));
}

#[test]
fn a_congestion_control_keeps_all_profiles_that_have_it() {
    let scenario = with("long-fat", controls(&["bbr"]));
    assert_eq!(profiles(&scenario), [("bbr (default stack)", "bbr"), ("bbr + 32 MiB buffers", "bbr")]);
    assert_eq!(scenario.published.len(), 1, "the cubic row has nothing to stand beside");
}

#[test]
fn a_congestion_control_that_no_profile_has_gets_the_last_profiles_stack() {
    let scenario = with("long-fat", controls(&["reno", "cubic", "reno"]));
    assert_eq!(profiles(&scenario), [("cubic (default stack)", "cubic"), ("reno + 32 MiB buffers", "reno")]);
    assert_eq!(scenario.profiles[1].sysctls, read("long-fat").profiles[2].sysctls);
    assert_eq!(scenario.published.len(), 1, "what was published for bbr is not reno's");
}

#[test]
fn figures_published_under_a_controls_name_go_to_it_when_it_runs() {
    let scenario = with("transcontinental", controls(&["cubic", "bbr3"]));
    assert_eq!(profiles(&scenario), [("cubic", "cubic"), ("bbr3", "bbr3")]);
    assert_eq!(scenario.published.iter().filter(|f| f.profile == "bbr3").count(), 4);
    assert_eq!(scenario.published.iter().filter(|f| f.profile == "bbr").count(), 0);
    // And beside both where both run.
    let scenario = with("transcontinental", controls(&["bbr", "bbr3"]));
    assert_eq!(scenario.published.iter().filter(|f| f.profile == "bbr3").count(), 4);
    assert_eq!(scenario.published.iter().filter(|f| f.profile == "bbr").count(), 4);
    let scenario = with("cross-continental-lossy", controls(&["bbr3"]));
    assert_eq!(profiles(&scenario), [("bbr3 + 64 MiB buffers", "bbr3")]);
    assert_eq!(scenario.published.len(), 1);
}

#[test]
fn profiles_are_chosen_first_and_then_lend_their_stack() {
    let overrides = Overrides { profiles: own(&["bbr (default stack)"]), ..controls(&["reno"]) };
    let scenario = with("long-fat", overrides);
    assert_eq!(profiles(&scenario), [("reno (default stack)", "reno")]);
    let chosen = Overrides { profiles: own(&["bbr + 32 MiB buffers"]), ..Overrides::default() };
    assert_eq!(profiles(&with("long-fat", chosen)), [("bbr + 32 MiB buffers", "bbr")]);
}

#[test]
fn a_copy_never_takes_a_name_that_is_taken() {
    let text = "name = \"a\"\ntitle = \"A\"\n[path]\nrate = \"1mbit\"\nrtt = \"40ms\"\n[[profile]]\nname = \"reno\"\n\
                congestion_control = \"cubic\"\n[[profile]]\nname = \"bbr\"\ncongestion_control = \"bbr\"\n";
    let scenario = Scenario::parse(text, "a.toml", &NoFiles).expect("sound");
    let scenario = scenario.with_overrides(controls(&["cubic", "reno"])).expect("sound");
    assert_eq!(profiles(&scenario), [("reno", "cubic"), ("reno (reno)", "reno")]);
}

#[test]
fn swept_values_are_replaced_and_figures_stay_with_their_cells() {
    let losses = Some(vec![Probability::ZERO, "2%".parse().expect("a loss")]);
    let scenario = with("transcontinental", Overrides { losses, ..Overrides::default() });
    assert_eq!(scenario.path.losses.len(), 2);
    assert_eq!(scenario.published.len(), 2, "of 0 % only");

    let rtts = |millis: &[u64]| Some(millis.iter().map(|ms| Duration::from_millis(*ms)).collect());
    let scenario = with("transcontinental", Overrides { rtts: rtts(&[80, 10]), ..Overrides::default() });
    assert_eq!(scenario.path.rtts.len(), 2);
    assert!(scenario.published.is_empty(), "nobody published 10 ms");
    let same = with("transcontinental", Overrides { rtts: rtts(&[80]), ..Overrides::default() });
    assert_eq!(same.published.len(), 8);

    let queues = Some(vec![QueueSpec::BdpMilli(500)]);
    let scenario = with("transcontinental", Overrides { queues, ..Overrides::default() });
    assert_eq!(scenario.path.queues, [QueueSpec::BdpMilli(500)]);
}

#[test]
fn a_loss_given_replaces_a_pattern() {
    let text = "name = \"a\"\ntitle = \"A\"\n[path]\nrate = \"1mbit\"\nrtt = \"40ms\"\nloss = { every = 5 }";
    let scenario = Scenario::parse(text, "a.toml", &NoFiles).expect("sound");
    let loss: Probability = "1%".parse().expect("a loss");
    let scenario =
        scenario.with_overrides(Overrides { losses: Some(vec![loss]), ..Overrides::default() }).expect("sound");
    assert_eq!(scenario.cells().expect("cells")[0].forward.loss, path::LossModel::Independent(loss));
}

#[test]
fn how_long_and_how_often_are_replaced_and_counts_of_another_duration_left_out() {
    let overrides = Overrides {
        repeats: Some(3),
        seed: Some(9),
        duration: Some(Duration::from_secs(10)),
        warmup: Some(Duration::from_secs(2)),
        ..Overrides::default()
    };
    let scenario = with("long-fat", overrides);
    let cells = scenario.cells().expect("cells");
    assert_eq!(cells.len(), 9);
    assert_eq!(cells.iter().map(|cell| cell.seed).max(), Some(11));
    assert_eq!(scenario.run.duration, Duration::from_secs(10));
    assert_eq!(scenario.run.warmup, Duration::from_secs(2));
    assert_eq!(scenario.published.len(), 2);
    assert!(scenario.published.iter().all(|figures| figures.retransmissions.is_none() && figures.goodput.is_some()));
}

#[test]
fn impossible_overrides_are_refused_in_a_sentence() {
    let refused =
        |overrides: Overrides| read("transcontinental").with_overrides(overrides).expect_err("impossible").to_string();
    let base = Overrides::default;
    assert_eq!(
        refused(Overrides { losses: Some(vec![Probability::ONE]), ..base() }),
        "transcontinental: a loss of 100% lets nothing through"
    );
    assert_eq!(
        refused(Overrides { losses: Some(vec![]), ..base() }),
        "transcontinental: the path needs at least one loss"
    );
    assert_eq!(
        refused(Overrides { duration: Some(Duration::from_secs(3)), ..base() }),
        "transcontinental: a run of 3 s is not longer than its warm-up of 3 s"
    );
    assert_eq!(
        refused(Overrides { profiles: own(&["bbrr"]), ..base() }),
        "transcontinental: \"bbrr\" is not a profile; did you mean \"bbr\"?"
    );
    assert_eq!(
        refused(Overrides { profiles: own(&[]), ..base() }),
        "transcontinental: a scenario needs at least one profile"
    );
    assert_eq!(refused(controls(&[])), "transcontinental: the list of congestion controls is empty");
    assert_eq!(
        refused(controls(&["no such"])),
        "transcontinental: \"no such\" is no congestion control's name: 1 to 15 letters, digits, \"-\" and \"_\""
    );
    assert_eq!(refused(Overrides { repeats: Some(0), ..base() }), "transcontinental: 0 repeats measure nothing");
}
