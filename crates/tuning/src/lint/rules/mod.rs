//! All rules.

pub(super) mod conflict;
pub(super) mod danger;
pub(super) mod effect;
pub(super) mod habit;
pub(super) mod names;
pub(super) mod order;
pub(super) mod suppression;
pub(super) mod syntax;
pub(super) mod values;

use super::rule::Rule;

/// Every rule, by its number.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let mut rules: Vec<&'static Rule> = [
        syntax::RULES,
        names::RULES,
        values::RULES,
        effect::RULES,
        conflict::RULES,
        danger::RULES,
        habit::RULES,
        order::RULES,
        suppression::RULES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect();
    rules.sort_by_key(|rule| rule.id);
    rules.into_iter()
}

/// The rule with this number or name.
pub fn find(name: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id.eq_ignore_ascii_case(name) || rule.name == name)
}
