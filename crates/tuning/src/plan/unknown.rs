//! What a plan would look at and the facts do not show. It is not planned for, and the plan says so: silence would mean "all is well".

use super::{Facts, Role};

/// Keys that the plan of a role rests on, with how many values each has; 0: a name.
fn looked_at(role: Role) -> Vec<(&'static str, usize)> {
    let mut keys = Vec::new();
    if role.receives() {
        keys.push(("net.ipv4.tcp_rmem", 3));
    }
    if role.sends() {
        keys.push(("net.ipv4.tcp_wmem", 3));
    }
    if role.serves() || role == Role::Bulk {
        keys.push(("net.ipv4.tcp_congestion_control", 0));
    }
    keys.push(("net.core.default_qdisc", 0));
    if role.serves() || role == Role::Database {
        keys.push(("net.core.somaxconn", 1));
    }
    if role == Role::Proxy {
        keys.push(("net.ipv4.ip_local_port_range", 2));
    }
    keys
}

/// Those of them that the facts don't have, or that hold something else than such a key does.
pub fn not_known(facts: &Facts, role: Role) -> Vec<&'static str> {
    let is_known = |key: &str, values: usize| match values {
        0 => facts.sysctl(key).is_some_and(|value| !value.is_empty()),
        _ => facts.numbers(key).is_some_and(|numbers| numbers.len() == values),
    };
    looked_at(role).into_iter().filter(|(key, values)| !is_known(key, *values)).map(|(key, _)| key).collect()
}
