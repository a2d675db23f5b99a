//! The lines of nginx's and HAProxy's configuration that decide a listener's backlog.
//!
//! nginx asks for 511 unless `listen … backlog=N` says otherwise (`NGX_LISTEN_BACKLOG`, os/unix/ngx_linux_config.h); HAProxy for what
//! `bind … backlog N`, the section's `backlog`, or else its `maxconn` says (its configuration manual, `backlog`).

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;

use facts::Configured;

use crate::effective::pattern::matches;
use crate::effective::root::{Root, read_file};

/// More files than any server includes.
const MOST_FILES: usize = 2_000;

/// A line that makes a server listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address; `None`: every one, or a name.
    pub address: Option<IpAddr>,
    /// The first port.
    pub port: u16,
    /// The last port.
    pub last_port: u16,
    /// The line.
    pub configured: Configured,
}

/// The line that belongs to a listener: with its address before one for every address, one that names a backlog before others.
pub fn for_listener(lines: &[Listen], address: IpAddr, port: u16) -> Option<&Configured> {
    let fits = |line: &&Listen| (line.port..=line.last_port).contains(&port);
    let score = |line: &&Listen| {
        let exact = match line.address {
            Some(own) => u8::from(own == address) * 2,
            None => u8::from(address.is_unspecified()),
        };
        (exact, line.configured.backlog.is_some())
    };
    // The first of equals: `max_by_key` takes the last.
    lines.iter().rev().filter(fits).max_by_key(score).map(|line| &line.configured)
}

/// The lines of nginx. `main`: its configuration file. Relative names of included files start at that file's folder.
pub fn nginx(root: &(impl Root + ?Sized), main: &str) -> Vec<Listen> {
    let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([main.to_owned()]);
    let mut todo = vec![main.to_owned()];
    while let Some(file) = todo.pop() {
        let Ok(Some(bytes)) = read_file(root, &file) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        for directive in nginx_directives(&text) {
            match directive.words.first().map(String::as_str) {
                Some("listen") => found.extend(nginx_listen(&file, &directive)),
                Some("include") => {
                    let Some(name) = directive.words.get(1) else { continue };
                    let path = if name.starts_with('/') { name.clone() } else { format!("{folder}/{name}") };
                    for path in expanded(root, &path) {
                        if seen.len() < MOST_FILES && seen.insert(path.clone()) {
                            todo.push(path);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The paths that a name with a pattern in its last part means, sorted.
fn expanded(root: &(impl Root + ?Sized), path: &str) -> Vec<String> {
    let Some((folder, name)) = path.rsplit_once('/') else { return Vec::new() };
    if !name.contains(['*', '?', '[']) {
        return vec![path.to_owned()];
    }
    let mut names = root.list(folder).unwrap_or_default();
    names.retain(|candidate| !candidate.starts_with('.') && matches(name, candidate));
    names.sort();
    names.into_iter().map(|name| format!("{folder}/{name}")).collect()
}

struct Directive {
    line: usize,
    words: Vec<String>,
}

/// Words up to `;`, `{` or `}`; quotes and comments as nginx reads them (`ngx_conf_read_token`).
fn nginx_directives(text: &str) -> Vec<Directive> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let (mut line, mut start) = (1, 1);
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\n' {
            line += 1;
        }
        if let Some(end) = quote {
            match c {
                '\\' => word.get_or_insert_default().extend(characters.next()),
                c if c == end => quote = None,
                c => word.get_or_insert_default().push(c),
            }
            continue;
        }
        match c {
            '"' | '\'' if word.is_none() => {
                if words.is_empty() {
                    start = line;
                }
                quote = Some(c);
                word = Some(String::new());
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            '#' if word.is_none() => {
                if characters.by_ref().any(|c| c == '\n') {
                    line += 1;
                }
            }
            ';' | '{' | '}' => {
                words.extend(word.take());
                if !words.is_empty() {
                    all.push(Directive { line: start, words: std::mem::take(&mut words) });
                }
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => {
                if words.is_empty() && word.is_none() {
                    start = line;
                }
                word.get_or_insert_default().push(c);
            }
        }
    }
    all
}

fn nginx_listen(file: &str, directive: &Directive) -> Option<Listen> {
    let (address, port) = address_and_ports(directive.words.get(1)?, Some(80))?;
    let backlog = directive.words.iter().find_map(|word| word.strip_prefix("backlog=")?.parse().ok());
    Some(Listen {
        address,
        port: port.0,
        last_port: port.1,
        configured: Configured {
            program: "nginx".to_owned(),
            file: file.to_owned(),
            line: directive.line,
            text: format!("{};", directive.words.join(" ")),
            backlog,
        },
    })
}

/// `80`, `*:80`, `[::]:80`, `192.0.2.1:8000-8010`, `192.0.2.1` with a port of its own. `None`: not TCP, or a form this does not know.
fn address_and_ports(text: &str, without: Option<u16>) -> Option<(Option<IpAddr>, (u16, u16))> {
    let one = |port: u16| (port, port);
    let ports = |text: &str| -> Option<(u16, u16)> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    if text.contains(['/', '@']) || text.starts_with("unix:") {
        return None;
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, ports(port)?),
        _ if text.starts_with('[') || text.parse::<Ipv4Addr>().is_ok() => (text, one(without?)),
        _ => match (ports(text), without) {
            // A number alone is a port for nginx; for HAProxy it would be an address.
            (Some(port), Some(_)) => ("*", port),
            _ => return None,
        },
    };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    Some((address, port))
}

/// The lines of HAProxy, from its files in their order.
pub fn haproxy(root: &(impl Root + ?Sized), files: &[String]) -> Vec<Listen> {
    let mut found: Vec<Listen> = Vec::new();
    // What sections without a value of their own get: from the last `defaults`.
    let mut default_backlog = None;
    let mut in_defaults = false;
    // Where the section's first line stands in `found`, and its own value.
    let (mut section, mut own_backlog) = (0, None);
    let close = |found: &mut Vec<Listen>, section: usize, own: Option<u64>, default: Option<u64>| {
        for line in &mut found[section..] {
            line.configured.backlog = line.configured.backlog.or(own).or(default);
        }
    };
    for file in files.iter().take(MOST_FILES) {
        let Ok(Some(bytes)) = read_file(root, file) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            let after = |word: &str| {
                let at = words.iter().position(|candidate| *candidate == word)?;
                words.get(at + 1)?.parse().ok()
            };
            match words.first().copied() {
                Some("global" | "defaults" | "frontend" | "listen" | "backend" | "peers" | "resolvers" | "cache") => {
                    close(&mut found, section, own_backlog, default_backlog);
                    (section, own_backlog) = (found.len(), None);
                    in_defaults = words[0] == "defaults";
                    if in_defaults {
                        default_backlog = None;
                    }
                }
                Some("backlog") if in_defaults => default_backlog = after("backlog"),
                Some("backlog") => own_backlog = after("backlog"),
                Some("bind") => {
                    let places = words.get(1).copied().unwrap_or_default().split(',');
                    for place in places {
                        let place = ["ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"]
                            .iter()
                            .find_map(|family| place.strip_prefix(family))
                            .unwrap_or(place);
                        let Some((address, ports)) = address_and_ports(place, None) else { continue };
                        let configured = Configured {
                            program: "haproxy".to_owned(),
                            file: file.clone(),
                            line: number + 1,
                            text: words.join(" "),
                            backlog: after("backlog"),
                        };
                        found.push(Listen { address, port: ports.0, last_port: ports.1, configured });
                    }
                }
                _ => {}
            }
        }
    }
    close(&mut found, section, own_backlog, default_backlog);
    found
}

/// Which files a program reads, by the words it was started with: `None` for programs this does not know.
pub fn files_of(root: &(impl Root + ?Sized), program: &str, words: &[String]) -> Option<Vec<String>> {
    // nginx replaces its words by a title with the original ones in it: `nginx: master process /usr/sbin/nginx -c /x`.
    let words: Vec<&str> = words.iter().flat_map(|word| word.split(' ')).collect();
    let after = |option: &str| {
        let joined = |word: &&str| word.len() > option.len() && word.starts_with(option) && option.len() == 2;
        words
            .iter()
            .position(|word| *word == option)
            .and_then(|at| words.get(at + 1).copied())
            .or_else(|| words.iter().find(|word| joined(word)).map(|word| &word[2..]))
    };
    match program {
        "nginx" => {
            let file = after("-c").unwrap_or("/etc/nginx/nginx.conf");
            Some(vec![if file.starts_with('/') { file.to_owned() } else { format!("/etc/nginx/{file}") }])
        }
        "haproxy" => {
            let mut files = Vec::new();
            for (at, word) in words.iter().enumerate() {
                let Some(file) = (*word == "-f").then(|| words.get(at + 1)).flatten() else { continue };
                // A folder means the files in it, in the order of their names.
                match root.list(file) {
                    Ok(mut names) => {
                        names.retain(|name| name.ends_with(".cfg"));
                        names.sort();
                        files.extend(names.iter().map(|name| format!("{}/{name}", file.trim_end_matches('/'))));
                    }
                    Err(_) => files.push((*file).to_owned()),
                }
            }
            if files.is_empty() {
                files.push("/etc/haproxy/haproxy.cfg".to_owned());
            }
            Some(files)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::MemoryRoot;

    fn site() -> MemoryRoot {
        MemoryRoot::new()
            .file("/etc/nginx/nginx.conf", "# main\nhttp {\n  include mime.types;\n  include sites/*.conf;\n}\n")
            .file("/etc/nginx/mime.types", "types { text/html html; }")
            .file(
                "/etc/nginx/sites/a.conf",
                "server {\n  listen 80; # plain\n  listen 443 ssl backlog=4096 reuseport;\n}\n",
            )
            .file(
                "/etc/nginx/sites/b.conf",
                "server {\n\n  listen \"[::]:8080\"\n    ipv6only=off;\n  listen unix:/run/x;\n}\n",
            )
            .file("/etc/nginx/sites/b.bak", "server { listen 81; }")
    }

    #[test]
    fn nginx_lines_are_found_through_includes_with_their_backlog() {
        let lines = nginx(&site(), "/etc/nginx/nginx.conf");
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let plain = for_listener(&lines, any, 80).unwrap();
        assert_eq!((plain.file.as_str(), plain.line, plain.backlog), ("/etc/nginx/sites/a.conf", 2, None));
        assert_eq!(plain.text, "listen 80;");
        assert_eq!(for_listener(&lines, any, 443).unwrap().backlog, Some(4096));
        let six = for_listener(&lines, "::".parse().unwrap(), 8080).unwrap();
        assert_eq!((six.line, six.text.as_str()), (3, "listen [::]:8080 ipv6only=off;"));
        assert_eq!(for_listener(&lines, any, 81), None);
    }

    #[test]
    fn an_include_that_includes_itself_ends() {
        let root = MemoryRoot::new().file("/n/a", "include /n/a; include /n/*; listen 1;");
        assert_eq!(nginx(&root, "/n/a").len(), 1);
    }

    #[test]
    fn haproxy_takes_the_lines_value_then_the_sections_then_the_defaults() {
        let text = "global\n  maxconn 100\ndefaults\n  backlog 1000\nfrontend a\n  bind :80,*:81\n  bind 192.0.2.1:443 ssl crt /x backlog 5\n\
                    frontend b\n  backlog 7\n  bind [::]:8000-8010 # c\n  bind /run/x\n";
        let root = MemoryRoot::new().file("/etc/haproxy/haproxy.cfg", text);
        let lines = haproxy(&root, &["/etc/haproxy/haproxy.cfg".to_owned()]);
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let of = |port| for_listener(&lines, any, port).map(|line| (line.line, line.backlog));
        assert_eq!(of(80), Some((6, Some(1000))));
        assert_eq!(of(81), Some((6, Some(1000))));
        assert_eq!(of(443), Some((7, Some(5))));
        assert_eq!(of(8005), Some((10, Some(7))));
        assert_eq!(of(9), None);
    }

    #[test]
    fn the_files_are_those_on_the_programs_command_line() {
        let root = MemoryRoot::new().file("/h/2.cfg", "").file("/h/1.cfg", "").file("/h/x.map", "");
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let nginx = words("nginx: master process /usr/sbin/nginx -c /srv/n.conf -g daemon off;");
        assert_eq!(files_of(&root, "nginx", &nginx).unwrap(), ["/srv/n.conf"]);
        assert_eq!(files_of(&root, "nginx", &words("nginx")).unwrap(), ["/etc/nginx/nginx.conf"]);
        assert_eq!(files_of(&root, "haproxy", &words("haproxy|-f|/h")).unwrap(), ["/h/1.cfg", "/h/2.cfg"]);
        assert_eq!(files_of(&root, "haproxy", &words("haproxy|-Ws")).unwrap(), ["/etc/haproxy/haproxy.cfg"]);
        assert_eq!(files_of(&root, "sshd", &words("sshd")), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_or_run_on(text: String) {
            let root = MemoryRoot::new().file("/etc/x", &text);
            for line in nginx(&root, "/etc/x").into_iter().chain(haproxy(&root, &["/etc/x".to_owned()])) {
                proptest::prop_assert!(line.configured.line <= text.lines().count() + 1);
            }
        }
    }
}
