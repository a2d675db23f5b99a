//! `[[flow]]`.

use toml::de::DeValue;
use units::{Bytes, Duration};

use super::keys;
use super::section::{Item, Notes, Section};
use crate::error::{Reason, quoted};
use crate::suggest::hint;
use crate::{FlowKind, FlowSpec};

const REQUEST: Bytes = Bytes::new(100);
const RESPONSE: Bytes = Bytes::new(1000);
const PAUSE: Duration = Duration::from_millis(100);

impl FlowSpec {
    /// One bulk flow from start to end, under the profile's congestion control.
    pub(crate) fn bulk() -> Self {
        Self {
            label: "bulk".to_owned(),
            count: 1,
            kind: FlowKind::Bulk { bytes: None },
            congestion_control: None,
            rtt: None,
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            duration: None,
        }
    }
}

pub(super) fn read(notes: &mut Notes<'_>, top: &Section<'_, '_>) -> Vec<FlowSpec> {
    if top.item(notes, "flow").is_none() {
        return vec![FlowSpec::bulk()];
    }
    let tables = top.tables(notes, "flow");
    tables.iter().filter_map(|item| read_flow(notes, item)).collect()
}

fn read_flow(notes: &mut Notes<'_>, item: &Item<'_, '_>) -> Option<FlowSpec> {
    // Which keys are known depends on the kind.
    let kind = match item.value() {
        DeValue::Table(table) => table.get("kind").and_then(|kind| kind.get_ref().as_str()),
        _ => None,
    };
    let (heading, known) = match kind {
        None | Some("bulk") => ("[[flow]] of kind \"bulk\"", keys::FLOW_BULK),
        Some("request-response") => ("[[flow]] of kind \"request-response\"", keys::FLOW_REQUEST_RESPONSE),
        Some(_) => ("[[flow]]", keys::FLOW),
    };
    let flow = item.table(notes, heading, known, "[[flow]] above it")?;
    let kind = match flow.text(notes, "kind") {
        Some("request-response") => FlowKind::RequestResponse {
            request: flow.quantity(notes, "request").unwrap_or(REQUEST),
            response: flow.quantity(notes, "response").unwrap_or(RESPONSE),
            pause: flow.quantity(notes, "pause").unwrap_or(PAUSE),
        },
        None | Some("bulk") => FlowKind::Bulk { bytes: flow.quantity(notes, "bytes") },
        Some(other) => {
            let hint = hint(other, &["bulk", "request-response"]);
            let offset = flow.item(notes, "kind").map_or(item.offset, |kind| kind.offset);
            notes.problem(offset, Reason::UnknownName { text: quoted(other), what: "a kind of flow", hint });
            return None;
        }
    };
    let congestion_control = flow.text(notes, "congestion_control").map(str::to_owned);
    let default_label = match (&congestion_control, kind) {
        (Some(control), _) => control.clone(),
        (None, FlowKind::Bulk { .. }) => "bulk".to_owned(),
        (None, FlowKind::RequestResponse { .. }) => "requests".to_owned(),
    };
    Some(FlowSpec {
        label: flow.text(notes, "label").map_or(default_label, str::to_owned),
        count: flow.integer(notes, "count").unwrap_or(1),
        kind,
        congestion_control,
        rtt: flow.quantity(notes, "rtt"),
        start: flow.quantity(notes, "start").unwrap_or(Duration::ZERO),
        stagger: flow.quantity(notes, "stagger").unwrap_or(Duration::ZERO),
        duration: flow.quantity(notes, "duration"),
    })
}
