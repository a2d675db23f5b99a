//! Patterns of keys, as `glob(7)` and `fnmatch(3)` match them.

/// Whether a key is a pattern: it holds `*`, `?` or `[`.
pub fn is_pattern(key: &str) -> bool {
    key.contains(['*', '?', '['])
}

/// Whether `path` matches, component by component: `*` never matches a `/`, and no wildcard a `.` at a component's start.
pub fn matches(pattern: &str, path: &str) -> bool {
    let mut components = path.split('/');
    let fits = pattern.split('/').all(|part| {
        components.next().is_some_and(|name| {
            !(name.starts_with('.') && part.starts_with(['*', '?', '['])) && component(&chars(part), &chars(name))
        })
    });
    fits && components.next().is_none()
}

/// The same as `fnmatch` without flags, as procps matches exclusions: `*` matches a `/` too.
pub fn matches_across(pattern: &str, path: &str) -> bool {
    component(&chars(pattern), &chars(path))
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// Matching with one point to go back to: time is at most the product of the lengths.
fn component(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                back = Some((p + 1, t));
                p += 1;
                continue;
            }
            None if t == text.len() => return true,
            None => None,
            Some(_) if t == text.len() => None,
            Some('?') => Some(1),
            Some('[') => match set(&pattern[p..], text[t]) {
                Some((true, length)) => Some(length),
                Some((false, _)) => None,
                None => (text[t] == '[').then_some(1),
            },
            Some('\\') => pattern.get(p + 1).is_some_and(|c| *c == text[t]).then_some(2),
            Some(c) => (*c == text[t]).then_some(1),
        };
        match (step, back) {
            (Some(length), _) => {
                p += length;
                t += 1;
            }
            (None, Some((after, at))) if at < text.len() => {
                back = Some((after, at + 1));
                (p, t) = (after, at + 1);
            }
            (None, _) => return false,
        }
    }
}

/// `[a-z]` at the start of `pattern`: whether it holds `c`, and how long it is. `None`: there is no end, so it is no set.
fn set(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let mut at = 1;
    let negated = matches!(pattern.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let first = at;
    let mut holds = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((holds != negated, at + 1));
        }
        if low == '/' {
            return None;
        }
        if pattern.get(at + 1) == Some(&'-') && pattern.get(at + 2).is_some_and(|high| *high != ']') {
            holds |= (low..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            holds |= low == c;
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_inside_one_component() {
        for (pattern, path, wanted) in [
            ("net/ipv4/conf/*/rp_filter", "net/ipv4/conf/eth0/rp_filter", true),
            ("net/ipv4/conf/*/rp_filter", "net/ipv4/conf/a/b/rp_filter", false),
            ("net/ipv4/conf/eth?/rp_filter", "net/ipv4/conf/eth0/rp_filter", true),
            ("net/ipv4/conf/eth[0-1]/x", "net/ipv4/conf/eth1/x", true),
            ("net/ipv4/conf/eth[!0-1]/x", "net/ipv4/conf/eth1/x", false),
            ("net/ipv4/conf/e*h*0/x", "net/ipv4/conf/eth00/x", true),
            ("net/[x", "net/[x", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("*", "", true),
            ("*", ".hidden", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, path), wanted, "{pattern} {path}");
        }
        assert!(matches_across("net/ipv4/*", "net/ipv4/conf/eth0/x"));
    }
}
