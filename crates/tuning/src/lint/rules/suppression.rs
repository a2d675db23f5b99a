//! Rules about suppressions themselves.

use crate::lint::rule::{Kind, Rule, Severity, conf};

pub(in crate::lint) const RULES: &[&Rule] = &[&NO_REASON, &UNUSED, &UNKNOWN_RULE];

pub(in crate::lint) static NO_REASON: Rule = Rule {
    id: "LR090",
    name: "suppression-without-reason",
    kind: Kind::Suppression,
    severity: Severity::Warning,
    weight: 30,
    summary: "`linerate: allow` without a reason",
    why: "Whoever reads it next needs the reason more than the exception.",
    example: conf(
        "# linerate: allow LR073\nnet.core.somaxconn = 1024\n",
        "# linerate: allow LR073 the accept queue of this appliance is tested with 1024\nnet.core.somaxconn = 1024\n",
    ),
};

pub(in crate::lint) static UNUSED: Rule = Rule {
    id: "LR091",
    name: "suppression-unused",
    kind: Kind::Suppression,
    severity: Severity::Note,
    weight: 10,
    summary: "a suppression of what isn't there",
    why: "The rule no longer applies to this line; take the comment out.",
    example: conf(
        "# linerate: allow LR073 small on purpose\nnet.core.somaxconn = 8192\n",
        "# linerate: allow LR073 small on purpose\nnet.core.somaxconn = 1024\n",
    ),
};

pub(in crate::lint) static UNKNOWN_RULE: Rule = Rule {
    id: "LR092",
    name: "suppression-of-nothing",
    kind: Kind::Suppression,
    severity: Severity::Warning,
    weight: 30,
    summary: "`linerate:` followed by no rule and no verb",
    why: "The comment allows nothing.",
    example: conf(
        "# linerate: allow LR999 because\nnet.ipv4.tcp_mtu_probing = 1\n",
        "# linerate is a program\nnet.ipv4.tcp_mtu_probing = 1\n",
    ),
};
