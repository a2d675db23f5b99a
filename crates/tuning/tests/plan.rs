//! Plans: what they hold for whom, and the rules that hold for all.

mod common;

use common::server;
use proptest::prelude::*;
use tuning::plan::{Change, ChangeKind, Facts, Plan, Presence, Role, Softnet, Target, plan};
use units::{Duration, Rate};

fn target(bandwidth: &str, rtt: &str, role: Role) -> Target {
    Target { bandwidth: bandwidth.parse().unwrap(), rtt: rtt.parse().unwrap(), role, connections: None }
}

fn with(connections: u64, target: Target) -> Target {
    Target { connections: Some(connections), ..target }
}

#[track_caller]
fn change<'p>(plan: &'p Plan, key: &str) -> &'p Change {
    plan.changes.iter().find(|change| change.key == key).unwrap_or_else(|| panic!("no change of {key}: {plan:#?}"))
}

fn keys(plan: &Plan) -> Vec<&str> {
    plan.changes.iter().map(|change| change.key.as_str()).collect()
}

fn set(facts: &mut Facts, key: &str, value: &str) {
    facts.sysctls.insert(key.to_owned(), value.to_owned());
}

#[test]
fn a_bulk_server_gets_buffers_for_its_path_bbr_and_fq_and_nothing_else() {
    let plan = plan(&server(), &target("10gbit", "100ms", Role::Bulk)).unwrap();
    assert_eq!(
        keys(&plan),
        [
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_wmem",
            "net.ipv4.tcp_congestion_control",
            "net.core.default_qdisc",
            "eth0 root"
        ]
    );
    // 125 MB in flight, twice; a third of 16 GiB's 9.4 % bounds it: 377442 pages / 4, in whole MiB.
    assert_eq!(change(&plan, "net.ipv4.tcp_rmem").to, "4096 131072 385875968");
    assert!(change(&plan, "net.ipv4.tcp_rmem").why.contains("125 MB in flight"));
    assert!(plan.notes.iter().any(|note| note.contains("tcp_rmem is bounded by a quarter")), "{:?}", plan.notes);
}

#[test]
fn the_window_share_of_the_kernel_decides_the_receive_buffer() {
    let wanted = target("1gbit", "80ms", Role::Bulk);
    // 10 MB, twice, over one half: 40 MB, in whole MiB.
    assert_eq!(change(&plan(&server(), &wanted).unwrap(), "net.ipv4.tcp_rmem").to, "4096 131072 40894464");
    let mut old = server();
    old.kernel = "6.1.0-50-amd64".to_owned();
    set(&mut old, "net.ipv4.tcp_adv_win_scale", "2");
    // 3/4 before 6.6 with that scale: 26.7 MB.
    assert_eq!(change(&plan(&old, &wanted).unwrap(), "net.ipv4.tcp_rmem").to, "4096 131072 27262976");
    set(&mut old, "net.ipv4.tcp_adv_win_scale", "-2");
    // A quarter: 80 MB.
    assert_eq!(change(&plan(&old, &wanted).unwrap(), "net.ipv4.tcp_rmem").to, "4096 131072 80740352");
}

#[test]
fn a_host_in_the_next_rack_needs_nothing() {
    for role in [Role::Database, Role::Workstation] {
        let plan = plan(&server(), &target("1gbit", "1ms", role)).unwrap();
        assert_eq!(keys(&plan), Vec::<&str>::new(), "{role:?}");
        assert!(plan.kept.iter().any(|kept| kept.key == "net.ipv4.tcp_rmem"));
    }
}

#[test]
fn a_senders_receive_buffer_and_a_routers_buffers_are_left_alone() {
    let web = plan(&server(), &target("1gbit", "80ms", Role::Web)).unwrap();
    assert!(!keys(&web).contains(&"net.ipv4.tcp_rmem"));
    assert!(keys(&web).contains(&"net.ipv4.tcp_wmem"));
    let router = plan(&server(), &target("1gbit", "80ms", Role::Router)).unwrap();
    assert_eq!(keys(&router), Vec::<&str>::new());
    assert!(router.notes.iter().any(|note| note.contains("ip_forward")));
}

#[test]
fn the_guides_lowered_values_are_put_right() {
    let mut facts = server();
    facts.memory_bytes = 64 << 30;
    set(&mut facts, "net.ipv4.tcp_mem", "65536 131072 262144");
    set(&mut facts, "net.ipv4.tcp_rmem", "4096 87380 67108864");
    let plan = plan(&facts, &target("1gbit", "80ms", Role::Bulk)).unwrap();
    let memory = change(&plan, "net.ipv4.tcp_mem");
    assert_eq!(memory.to, "786432 1048576 1572864");
    assert!(memory.why.contains("262144 pages are 1 GiB"), "{}", memory.why);
    // The third value is large enough, and stays.
    assert_eq!(change(&plan, "net.ipv4.tcp_rmem").to, "4096 131072 67108864");
}

#[test]
fn tcp_mem_of_the_kernels_own_size_is_left_alone() {
    let plan = plan(&server(), &target("10gbit", "100ms", Role::Bulk)).unwrap();
    let kept = plan.kept.iter().find(|kept| kept.key == "net.ipv4.tcp_mem").unwrap();
    assert!(kept.why.starts_with("pages: at most 1.55 GB"), "{}", kept.why);
}

#[test]
fn what_somebody_turned_off_is_turned_on_again() {
    let mut facts = server();
    for key in ["net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"] {
        set(&mut facts, key, "0");
        assert_eq!(change(&plan(&facts, &target("1gbit", "1ms", Role::Database)).unwrap(), key).to, "1");
    }
}

#[test]
fn bbr_is_for_paths_on_which_loss_would_hold_cubic_and_for_kernels_that_have_it() {
    let control = "net.ipv4.tcp_congestion_control";
    let wide = target("1gbit", "80ms", Role::Web);
    assert_eq!(change(&plan(&server(), &wide).unwrap(), control).to, "bbr");
    // One packet in 100,000 still lets CUBIC through here.
    let slow = target("10mbit", "20ms", Role::Web);
    assert!(!keys(&plan(&server(), &slow).unwrap()).contains(&control));
    let near = target("10gbit", "1ms", Role::Web);
    assert!(!keys(&plan(&server(), &near).unwrap()).contains(&control));
    let mut without = server();
    without.modules.insert("tcp_bbr".to_owned(), Presence::Absent);
    assert!(!keys(&plan(&without, &wide).unwrap()).contains(&control));
    let mut third = server();
    set(&mut third, "net.ipv4.tcp_available_congestion_control", "reno cubic bbr bbr3");
    assert_eq!(change(&plan(&third, &wide).unwrap(), control).to, "bbr3");
    let mut chosen = server();
    set(&mut chosen, control, "dctcp");
    assert!(!keys(&plan(&chosen, &wide).unwrap()).contains(&control));
}

#[test]
fn slow_start_after_idle_is_for_senders_without_bbr() {
    let key = "net.ipv4.tcp_slow_start_after_idle";
    let wide = target("1gbit", "80ms", Role::Video);
    assert!(!keys(&plan(&server(), &wide).unwrap()).contains(&key), "BBR does not look at it");
    let mut without = server();
    without.modules.clear();
    assert_eq!(change(&plan(&without, &wide).unwrap(), key).to, "0");
}

#[test]
fn a_proxy_with_many_connections_gets_ports_and_its_services_keep_theirs() {
    let few = with(20_000, target("1gbit", "1ms", Role::Proxy));
    assert!(!keys(&plan(&server(), &few).unwrap()).contains(&"net.ipv4.ip_local_port_range"));
    let many = plan(&server(), &with(50_000, few)).unwrap();
    assert_eq!(change(&many, "net.ipv4.ip_local_port_range").to, "10240 65535");
    assert_eq!(change(&many, "net.ipv4.ip_local_reserved_ports").to, "11211,50051");
    let at = |key: &str| many.changes.iter().position(|change| change.key == key).unwrap();
    assert!(at("net.ipv4.ip_local_reserved_ports") < at("net.ipv4.ip_local_port_range"));
    let mut unknown = server();
    unknown.listening_ports = None;
    assert!(!keys(&plan(&unknown, &with(50_000, few)).unwrap()).contains(&"net.ipv4.ip_local_port_range"));
    let huge = plan(&server(), &with(200_000, few)).unwrap();
    assert!(huge.notes.iter().any(|note| note.contains("need 4 source addresses")), "{:?}", huge.notes);
}

#[test]
fn listeners_queues_follow_the_clients() {
    let web = target("1gbit", "1ms", Role::Web);
    let listen = "net.core.somaxconn";
    assert!(!keys(&plan(&server(), &with(100_000, web)).unwrap()).contains(&listen));
    assert_eq!(change(&plan(&server(), &with(1_000_000, web)).unwrap(), listen).to, "16384");
    let mut lowered = server();
    set(&mut lowered, listen, "128");
    assert_eq!(change(&plan(&lowered, &web).unwrap(), listen).to, "4096");
}

#[test]
fn a_routers_tables_follow_its_connections_and_buckets_come_along() {
    let mut facts = server();
    set(&mut facts, "net.netfilter.nf_conntrack_max", "262144");
    set(&mut facts, "net.netfilter.nf_conntrack_buckets", "262144");
    set(&mut facts, "net.netfilter.nf_conntrack_count", "1000");
    let router = target("10gbit", "20ms", Role::Router);
    assert!(keys(&plan(&facts, &router).unwrap()).is_empty());
    let busy = plan(&facts, &with(1_000_000, router)).unwrap();
    assert_eq!(change(&busy, "net.netfilter.nf_conntrack_max").to, "2097152");
    assert_eq!(change(&busy, "net.netfilter.nf_conntrack_buckets").to, "2097152");
    facts.neighbours = Some(3_000);
    let crowded = plan(&facts, &router).unwrap();
    assert_eq!(change(&crowded, "net.ipv4.neigh.default.gc_thresh3").to, "16384");
}

#[test]
fn queues_change_by_role_and_nobodys_choice_is_taken_away() {
    let key = "net.core.default_qdisc";
    let cases = [
        (Role::Web, "fq_codel", Some("fq")),
        (Role::Web, "fq", None),
        (Role::Web, "cake", None),
        (Role::Web, "sfq", None),
        (Role::Router, "pfifo_fast", Some("fq_codel")),
        (Role::Router, "fq_codel", None),
        (Role::KubernetesNode, "pfifo_fast", Some("fq_codel")),
        (Role::Workstation, "pfifo_fast", Some("fq_codel")),
        (Role::Workstation, "fq_codel", None),
    ];
    for (role, there, wanted) in cases {
        let mut facts = server();
        facts.interfaces = None;
        set(&mut facts, key, there);
        let plan = plan(&facts, &target("1gbit", "1ms", role)).unwrap();
        let got = plan.changes.iter().find(|change| change.key == key).map(|change| change.to.as_str());
        assert_eq!(got, wanted, "{role:?} with {there}");
    }
}

#[test]
fn a_card_with_many_queues_keeps_mq_and_a_configured_one_keeps_everything() {
    let web = target("1gbit", "1ms", Role::Web);
    let mut facts = server();
    let card = &mut facts.interfaces.as_mut().unwrap()[0];
    card.qdisc = "mq".to_owned();
    card.leaves = vec!["fq_codel".to_owned(); 4];
    let leaves = plan(&facts, &web).unwrap();
    let leaves = change(&leaves, "eth0 leaves");
    assert_eq!((leaves.kind, leaves.to.as_str()), (ChangeKind::Qdisc, "fq fq fq fq"));
    facts.interfaces.as_mut().unwrap()[0].configured = true;
    assert!(!keys(&plan(&facts, &web).unwrap()).iter().any(|key| key.starts_with("eth0")));
    let mut shaped = server();
    shaped.interfaces.as_mut().unwrap()[0].qdisc = "htb".to_owned();
    assert!(!keys(&plan(&shaped, &web).unwrap()).iter().any(|key| key.starts_with("eth0")));
}

#[test]
fn receive_queues_grow_only_where_the_kernel_counted_drops() {
    let web = target("10gbit", "1ms", Role::Web);
    assert!(!keys(&plan(&server(), &web).unwrap()).contains(&"net.core.netdev_max_backlog"));
    let mut facts = server();
    facts.softnet = Some(Softnet { processed: 1_000_000, dropped: 7, squeezed: 5_000 });
    let plan = plan(&facts, &web).unwrap();
    assert_eq!(change(&plan, "net.core.netdev_max_backlog").to, "9000");
    assert_eq!(change(&plan, "net.core.netdev_budget").to, "600");
}

#[test]
fn unsent_data_is_bounded_where_all_connections_could_fill_memory() {
    let key = "net.ipv4.tcp_notsent_lowat";
    let video = target("100mbit", "50ms", Role::Video);
    assert!(!keys(&plan(&server(), &with(100, video)).unwrap()).contains(&key));
    assert_eq!(change(&plan(&server(), &with(100_000, video)).unwrap(), key).to, "131072");
    let mut chosen = server();
    set(&mut chosen, key, "16384");
    assert!(!keys(&plan(&chosen, &with(100_000, video)).unwrap()).contains(&key));
}

#[test]
fn a_plan_needs_a_kernel_memory_and_a_path() {
    let web = target("1gbit", "80ms", Role::Web);
    let refused = |facts: &Facts, target: &Target| plan(facts, target).unwrap_err().to_string();
    let mut facts = server();
    facts.kernel = "banana".to_owned();
    assert!(refused(&facts, &web).contains("banana"));
    facts = server();
    facts.memory_bytes = 0;
    assert!(refused(&facts, &web).contains("memory"));
    assert!(refused(&server(), &Target { bandwidth: Rate::ZERO, ..web }).contains("bandwidth"));
    assert!(refused(&server(), &Target { rtt: Duration::ZERO, ..web }).contains("round-trip"));
}

#[test]
fn every_change_says_why_what_for_at_what_risk_and_from_where() {
    for role in Role::ALL {
        let plan = plan(&server(), &with(1_000_000, target("10gbit", "100ms", role))).unwrap();
        for change in &plan.changes {
            for text in [&change.why, &change.effect, &change.risk, &change.source] {
                assert!(!text.is_empty(), "{role:?}: {change:#?}");
            }
        }
    }
}

#[test]
fn eight_hundred_gigabits_over_ten_seconds_do_not_overflow() {
    let mut facts = server();
    facts.memory_bytes = 4 << 40;
    set(&mut facts, "net.ipv4.tcp_mem", "50331648 67108864 100663296");
    let plan = plan(&facts, &with(u64::MAX, target("800gbit", "10s", Role::Bulk))).unwrap();
    assert_eq!(change(&plan, "net.ipv4.tcp_rmem").to, "4096 131072 2146435072");
    assert!(change(&plan, "net.ipv4.tcp_rmem").why.contains("TCP's largest window is"));
}

/// What the host shows once a plan is followed.
fn followed(mut facts: Facts, plan: &Plan) -> Facts {
    for change in &plan.changes {
        match change.kind {
            ChangeKind::Sysctl => {
                facts.sysctls.insert(change.key.clone(), change.to.clone());
            }
            ChangeKind::Qdisc => {
                let (device, part) = change.key.rsplit_once(' ').unwrap();
                let devices = facts.interfaces.as_mut().unwrap();
                let device = devices.iter_mut().find(|d| d.name == device).unwrap();
                if part == "root" {
                    device.qdisc = change.to.clone();
                } else {
                    device.leaves = change.to.split_whitespace().map(str::to_owned).collect();
                }
            }
            ChangeKind::Ring => panic!("no rule plans rings so far"),
        }
    }
    facts
}

/// Hosts as odd as they come.
fn facts() -> impl Strategy<Value = Facts> {
    let sizes = proptest::collection::vec(0u64..=1 << 40, 12);
    let names = (0usize..4, 0usize..5, any::<bool>(), 1u32..=7, 0u32..20);
    (sizes, names, 1u64..=1 << 45, proptest::collection::vec(any::<u16>(), 0..20)).prop_map(
        |(sizes, (control, qdisc, listening, major, minor), memory, ports)| {
            let mut facts = server();
            facts.kernel = format!("{major}.{minor}.0");
            facts.memory_bytes = memory;
            let int = |n: u64| (n % (1 << 31)).max(1);
            let three = |n: u64| format!("{} {} {}", int(n) / 4, int(n) / 2, int(n));
            set(&mut facts, "net.ipv4.tcp_rmem", &three(sizes[0]));
            set(&mut facts, "net.ipv4.tcp_wmem", &three(sizes[1]));
            set(&mut facts, "net.ipv4.tcp_mem", &format!("{} {} {}", sizes[2] / 2, sizes[2], sizes[2] * 2));
            set(&mut facts, "net.core.somaxconn", &int(sizes[3]).to_string());
            set(&mut facts, "net.ipv4.tcp_max_syn_backlog", &int(sizes[4]).to_string());
            set(&mut facts, "net.netfilter.nf_conntrack_max", &int(sizes[5]).to_string());
            set(&mut facts, "net.netfilter.nf_conntrack_buckets", &int(sizes[6]).to_string());
            set(&mut facts, "net.netfilter.nf_conntrack_count", &(int(sizes[7]) % int(sizes[5])).to_string());
            set(&mut facts, "net.core.netdev_max_backlog", &int(sizes[8]).to_string());
            set(&mut facts, "net.ipv4.tcp_notsent_lowat", &(sizes[9] % (1 << 32)).to_string());
            set(&mut facts, "net.ipv4.ip_local_port_range", &format!("{} 60999", 1024 + sizes[10] % 50_000));
            set(&mut facts, "net.ipv4.tcp_congestion_control", ["cubic", "reno", "bbr", "dctcp"][control]);
            set(&mut facts, "net.core.default_qdisc", ["pfifo_fast", "fq_codel", "fq", "cake", "sfq"][qdisc]);
            facts.neighbours = Some(sizes[11] % 100_000);
            facts.softnet =
                Some(Softnet { processed: sizes[11], dropped: sizes[10] % 2, squeezed: sizes[9] % 1_000_000 });
            facts.listening_ports = listening.then_some(ports);
            facts
        },
    )
}

fn targets() -> impl Strategy<Value = Target> {
    let role = (0..Role::ALL.len()).prop_map(|index| Role::ALL[index]);
    (1u64..=800_000_000_000, 1u64..=10_000_000_000, role, proptest::option::of(0u64..=u64::MAX)).prop_map(
        |(bps, nanos, role, connections)| Target {
            bandwidth: Rate::from_bps(bps),
            rtt: Duration::from_nanos(nanos),
            role,
            connections,
        },
    )
}

/// Keys whose change makes a number smaller by design: switches, a limit that was never set, and a range that begins earlier.
const NO_SIZE: [&str; 3] =
    ["net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat", "net.ipv4.ip_local_port_range"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_never_lowers_a_size(facts in facts(), target in targets()) {
        for change in plan(&facts, &target).unwrap().changes {
            let numbers = |text: &str| text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>();
            if let (Ok(from), Ok(to)) = (numbers(&change.from), numbers(&change.to))
                && !NO_SIZE.contains(&change.key.as_str())
            {
                prop_assert!(from.iter().zip(&to).all(|(from, to)| from <= to), "{change:#?}");
            }
        }
    }

    #[test]
    fn the_plan_of_a_host_that_followed_its_plan_is_empty(facts in facts(), target in targets()) {
        let first = plan(&facts, &target).unwrap();
        let second = plan(&followed(facts, &first), &target).unwrap();
        prop_assert_eq!(second.changes, vec![]);
    }

    #[test]
    fn the_kernel_takes_every_value_of_a_plan(facts in facts(), target in targets()) {
        let plan = plan(&facts, &target).unwrap();
        let kernel = facts.kernel.parse().unwrap();
        for change in plan.changes.iter().filter(|change| change.kind == ChangeKind::Sysctl) {
            let knob = tuning::Catalogue::builtin().lookup(&change.key).unwrap().knob;
            let fields: Vec<&str> = change.to.split_whitespace().collect();
            if let Some(range) = knob.range_in(kernel) {
                for field in &fields {
                    let number: i64 = field.parse().unwrap();
                    prop_assert!((range.min..=range.max).contains(&number), "{change:#?}");
                }
                prop_assert!((usize::from(knob.arity.0)..=usize::from(knob.arity.1)).contains(&fields.len()));
            }
        }
    }

    #[test]
    fn a_plan_survives_json(facts in facts(), target in targets()) {
        let plan = plan(&facts, &target).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}
