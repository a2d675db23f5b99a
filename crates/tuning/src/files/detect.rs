//! What a file is, by its name and by what it holds.

use super::{Format, is_key_like};

/// Names decide where they are clear; else the text does, and `sysctl.d(5)` is what is left.
pub fn detect(name: &str, text: &str) -> Format {
    let base = name.rsplit('/').next().unwrap_or(name);
    let extension = base.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if text.starts_with("#!") {
        return Format::Shell;
    }
    if text.starts_with("#cloud-config") {
        return Format::Yaml;
    }
    if name.ends_with("ufw/sysctl.conf") {
        return Format::Ufw;
    }
    if base == "tuned.conf" || has_tuned_sections(text) {
        return Format::Tuned;
    }
    match extension.as_deref() {
        Some("yml" | "yaml" | "j2") if !name.ends_with(".conf.j2") => return Format::Yaml,
        Some("sh" | "bash" | "zsh") => return Format::Shell,
        Some("conf") => return Format::SysctlD,
        _ => {}
    }
    if matches!(base, "cmdline" | "cmdline.txt" | "grub") || is_command_line(text) {
        return Format::CommandLine;
    }
    let shell = text.lines().filter(|line| is_shell_like(line)).count();
    let settings = text.lines().filter(|line| is_setting_like(line)).count();
    let yaml = text.lines().filter(|line| is_yaml_like(line)).count();
    if shell > 0
        && shell >= settings.min(1)
        && (shell > yaml || has_heredoc(text))
        && (settings == 0 || has_heredoc(text))
    {
        return Format::Shell;
    }
    if yaml > settings { Format::Yaml } else { Format::SysctlD }
}

fn has_tuned_sections(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| line == "[sysctl]") && text.lines().any(|line| line.trim() == "[main]")
}

fn is_command_line(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("");
    lines.next().is_none() && first.split_whitespace().any(|word| word.starts_with("sysctl.") && word.contains('='))
}

fn has_heredoc(text: &str) -> bool {
    text.lines().any(|line| line.contains("<<") && !line.trim_start().starts_with('#'))
}

fn is_shell_like(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("$ ").trim_start_matches("sudo ");
    ["sysctl -", "sysctl net", "echo ", "cat <<", "cat >", "tee ", "printf ", "modprobe "]
        .iter()
        .any(|c| line.starts_with(c))
}

fn is_setting_like(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| is_key_like(key.trim()))
}

fn is_yaml_like(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    line.split_once(':').is_some_and(|(key, rest)| {
        !key.is_empty()
            && !key.contains(['=', ' ', '#', '$', '/'])
            && (rest.is_empty() || rest.starts_with(' ') || rest.starts_with('\r'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_first_and_text_where_names_say_nothing() {
        for (name, text, format) in [
            ("/etc/sysctl.d/10-x.conf", "sysctl -w a.b=1\n", Format::SysctlD),
            ("/etc/ufw/sysctl.conf", "", Format::Ufw),
            ("/usr/lib/tuned/x/tuned.conf", "", Format::Tuned),
            ("-", "[main]\nsummary=x\n[sysctl]\nvm.swappiness=10\n", Format::Tuned),
            ("setup", "#!/bin/sh\n", Format::Shell),
            ("-", "cat <<EOF >> /etc/sysctl.conf\nnet.core.somaxconn=1\nEOF\n", Format::Shell),
            ("-", "sudo sysctl -w net.core.somaxconn=1\n", Format::Shell),
            ("-", "net.core.somaxconn = 1\nsysctl -w net.core.rmem_max=1\n", Format::SysctlD),
            ("compose.yaml", "", Format::Yaml),
            ("-", "services:\n  a:\n    sysctls:\n      net.core.somaxconn: 1\n", Format::Yaml),
            ("user-data", "#cloud-config\n", Format::Yaml),
            ("/proc/cmdline", "quiet", Format::CommandLine),
            ("-", "root=/dev/vda sysctl.net.core.somaxconn=1\n", Format::CommandLine),
            ("-", "net.core.somaxconn = 1\n", Format::SysctlD),
            ("-", "", Format::SysctlD),
        ] {
            assert_eq!(detect(name, text), format, "{name} {text:?}");
        }
    }
}
