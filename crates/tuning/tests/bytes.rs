//! Any bytes at all: random ones, and mutations of files that people have. The fuzz target `fuzz/fuzz_targets/lint.rs` does the same
//! for longer.

use proptest::prelude::*;
use tuning::files::{Document, Format};
use tuning::lint::exercise;

/// Files of every kind, with the kinds of mistakes people make.
const SEEDS: [&str; 9] = [
    "net.core.default_qdisc = fq # x\nnet.ipv4.tcp_rmem = \"4096 87380 67108864\"\r\n-net.ipv4.conf.*.rp_filter = 1\n; c\nnet.a=1;net.b=2\n",
    "net.ipv4.tcp_mem = 65536 131072 262144\nnet.ipv4.tcp_tw_recycle = 1\nnet.core.rmem_max = 16M\n# linerate: allow LR030 reason\n",
    "#!/bin/sh\ncat > /etc/sysctl.d/9.conf <<'EOF'\nnet.ipv4.tcp_fin_timeout = 15\nEOF\nsysctl -w net.core.somaxconn=$X\n",
    "echo \"net.ipv4.tcp_sack = 0\\nnet.b=1\" | sudo tee -a /etc/sysctl.conf && echo 1 > /proc/sys/net/ipv4/ip_forward\n",
    "[main]\nsummary=x\n[sysctl]\nnet.core.rmem_max=>4194304 # c\nnet.ipv4.tcp_rmem=\"4096 1 2\"\n",
    "services:\n  a:\n    sysctls:\n      net.core.somaxconn: 1024\n      - net.b=1\n    command: [sh, -c, \"sysctl -w net.c=1\"]\n",
    "#cloud-config\nwrite_files:\n- path: /etc/sysctl.d/x.conf\n  content: |\n    net.ä = 1\nruncmd:\n- [sysctl, -w, net.e=5]\n",
    "- sysctl: name=net.b value='2' state=present\n- ansible.posix.sysctl: {name: net.c, value: '{{ c }}'}\n",
    "quiet sysctl.net.core.somaxconn=4096 \"sysctl.net.ipv4.tcp_rmem=4096 1 2\"\n",
];

#[test]
fn the_fuzzers_seeds_hold_and_those_that_once_broke_too() {
    // `found-*` pointed outside the text once: quotes and blanks of Unicode in the middle of a value.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/lint");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.to_string_lossy().contains("found-")));
    for file in files {
        exercise(&std::fs::read(file).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_read_as_any_format_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn random_text_of_the_characters_that_matter_is_too(text in "[-a-z0-9.=/ \t\n\r#;:'\"$<>{}\\[\\]|&*?\u{200b}ä]{0,200}", choice in any::<u8>()) {
        exercise(&[&[choice], text.as_bytes()].concat());
    }

    #[test]
    fn files_that_people_have_may_be_cut_and_changed_anywhere(
        seed in 0..SEEDS.len(), other in 0..SEEDS.len(), choice in any::<u8>(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = [SEEDS[seed].as_bytes(), SEEDS[other].as_bytes()].concat();
        for (from, to, byte) in cuts {
            if bytes.is_empty() { break; }
            let (a, b) = (from.index(bytes.len()), to.index(bytes.len()));
            match byte % 4 {
                0 => { bytes.drain(a.min(b)..a.max(b)); }
                1 => bytes[a] = byte,
                2 => bytes.insert(a, byte),
                _ => { let part = bytes[a.min(b)..a.max(b)].to_vec(); bytes.splice(a..a, part); }
            }
        }
        exercise(&[&[choice], bytes.as_slice()].concat());
    }

    #[test]
    fn every_line_that_is_written_as_a_setting_is_read_as_one(
        key in "net\\.[a-z_]{1,12}\\.[a-z_]{1,12}", value in "[a-z0-9]{1,12}( [0-9]{1,9}){0,2}", before in "[ \t]{0,3}", between in "[ \t]{0,3}",
    ) {
        let text = format!("# c\n{before}{key}{between}={between}{value}{before}\n");
        let document = Document::parse("x.conf", text.as_bytes(), Some(Format::SysctlD));
        prop_assert_eq!(document.settings.len(), 1);
        let setting = &document.settings[0];
        prop_assert_eq!(&setting.key, &key);
        prop_assert_eq!(&setting.value, &value);
        prop_assert_eq!(setting.key_span.of(&text), &key);
        prop_assert_eq!(setting.value_span.of(&text), &value);
        prop_assert_eq!(document.position(setting.key_span).column, before.len() + 1);
    }
}
