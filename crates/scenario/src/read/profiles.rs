//! `[[profile]]`, `[sysctl]` and `[[published]]`.

use toml::de::DeValue;

use super::keys;
use super::section::{Item, Notes, Section};
use crate::{Profile, Published};

/// Off, the kernel starts a connection from what it remembers of an earlier one to the same address: the variants of an
/// experiment would not be independent (ip-sysctl.rst, `tcp_no_metrics_save`).
const NO_METRICS: (&str, &str) = ("net.ipv4.tcp_no_metrics_save", "1");

/// Buffers large enough never to be what limits a flow on the paths this program emulates: 1 GiB, the largest window that TCP can announce (RFC 7323,
/// 2.3). The receive buffer begins large too: while the kernel raises it from its own 128 KiB, the window limits a flow's start.
const LARGE_BUFFERS: [(&str, &str); 2] =
    [("net.ipv4.tcp_rmem", "4096 67108864 1073741824"), ("net.ipv4.tcp_wmem", "4096 16384 1073741824")];

impl Profile {
    /// The congestion control `control`, under that name, with buffers of up to 1 GiB, the largest window that TCP can announce (RFC 7323, 2.3).
    pub(crate) fn with_large_buffers(control: &str) -> Self {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            name: control.to_owned(),
            congestion_control: control.to_owned(),
            sysctls: LARGE_BUFFERS.map(own).to_vec(),
        }
    }
}

/// What both ends get in every variant unless the scenario says otherwise.
pub(crate) fn common_sysctls() -> Vec<(String, String)> {
    vec![(NO_METRICS.0.to_owned(), NO_METRICS.1.to_owned())]
}

pub(super) fn read(notes: &mut Notes<'_>, top: &Section<'_, '_>) -> Vec<Profile> {
    if top.item(notes, "profile").is_none() {
        return ["cubic", "bbr"].map(Profile::with_large_buffers).to_vec();
    }
    let tables = top.tables(notes, "profile");
    tables.iter().filter_map(|item| read_profile(notes, item)).collect()
}

fn read_profile(notes: &mut Notes<'_>, item: &Item<'_, '_>) -> Option<Profile> {
    let profile = item.table(notes, "[[profile]]", keys::PROFILE, "[[profile]] above it")?;
    let congestion_control = profile.required_text(notes, "congestion_control");
    Some(Profile {
        name: profile.text(notes, "name").map_or_else(|| congestion_control.clone(), str::to_owned),
        congestion_control,
        sysctls: read_sysctls(notes, &profile).unwrap_or_default(),
    })
}

pub(super) fn read_common_sysctls(notes: &mut Notes<'_>, top: &Section<'_, '_>) -> Vec<(String, String)> {
    let own = read_sysctls(notes, top).unwrap_or_default();
    let mut sysctls = common_sysctls();
    sysctls.retain(|(name, _)| own.iter().all(|(own_name, _)| own_name != name));
    sysctls.extend(own);
    sysctls
}

fn read_sysctls(notes: &mut Notes<'_>, section: &Section<'_, '_>) -> Option<Vec<(String, String)>> {
    const EXPECTED: &str = "a table, such as { \"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\" }";
    let item = section.item(notes, "sysctl")?;
    let DeValue::Table(table) = item.value() else {
        item.wrong_type(notes, EXPECTED);
        return None;
    };
    // The names are checked by what they are, not by a list.
    let known: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
    let table = item.table(notes, "[sysctl]", &known, EXPECTED)?;
    let items = table.flattened(notes);
    let mut sysctls: Vec<(String, String)> = Vec::new();
    for item in &items {
        let value = match item.value() {
            DeValue::String(text) => text.trim().to_owned(),
            DeValue::Integer(integer) => integer.to_string(),
            _ => {
                item.wrong_type(notes, "the value as a number or as text in quotes");
                continue;
            }
        };
        sysctls.push((item.key().to_owned(), value));
    }
    Some(sysctls)
}

pub(super) fn read_published(notes: &mut Notes<'_>, top: &Section<'_, '_>) -> Vec<Published> {
    let tables = top.tables(notes, "published");
    tables.iter().filter_map(|item| read_figures(notes, item)).collect()
}

fn read_figures(notes: &mut Notes<'_>, item: &Item<'_, '_>) -> Option<Published> {
    let published = item.table(notes, "[[published]]", keys::PUBLISHED, "[[published]] above it")?;
    let profile = published.required_text(notes, "profile");
    Some(Published {
        label: published.text(notes, "label").map_or_else(|| profile.clone(), str::to_owned),
        profile,
        congestion_control: published.text(notes, "congestion_control").map(str::to_owned),
        loss: published.quantity(notes, "loss"),
        goodput: published.quantity(notes, "goodput"),
        rtt_under_load: published.quantity(notes, "rtt_under_load"),
        queueing_delay: published.quantity(notes, "queueing_delay"),
        completion: published.quantity(notes, "completion"),
        retransmissions: published.integer(notes, "retransmissions"),
        first_contentful_paint: published.quantity(notes, "first_contentful_paint"),
        note: published.text(notes, "note").map(|note| note.trim().to_owned()),
    })
}
