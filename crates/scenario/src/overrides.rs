//! What a command line changes about a scenario.

use path::LossModel;
use units::{Bytes, Duration, Probability};

use crate::cells::is_pattern;
use crate::error::{Reason, ScenarioError, quoted};
use crate::suggest::hint;
use crate::{Profile, QueueSpec, Scenario};

/// Values that take the place of a scenario's own; `None` keeps those.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overrides {
    /// Only these profiles, by name, in the scenario's order. Applied before `congestion_controls`.
    pub profiles: Option<Vec<String>>,
    /// Only these congestion controls; see [`Scenario::with_overrides`].
    pub congestion_controls: Option<Vec<String>>,
    /// Losses in the data direction. They replace a loss by pattern; a mean burst stays.
    pub losses: Option<Vec<Probability>>,
    /// Round-trip times of the path. Flows with one of their own keep it.
    pub rtts: Option<Vec<Duration>>,
    /// Queues of the data direction.
    pub queues: Option<Vec<QueueSpec>>,
    /// Largest socket buffers of both ends, to send and to receive, in place of each profile's.
    pub buffers: Option<Bytes>,
    /// Runs per cell.
    pub repeats: Option<u32>,
    /// First seed.
    pub seed: Option<u64>,
    /// Length of one run, warm-up included.
    pub duration: Option<Duration>,
    /// Left out of the figures at the start.
    pub warmup: Option<Duration>,
}

impl Scenario {
    /// The scenario with other values.
    ///
    /// With `congestion_controls`, the profiles whose control is listed stay. For a control that no profile has, the *last*
    /// profile (by custom the one with the largest stack) is copied with that control: `bbr + 32 MiB buffers` becomes
    /// `reno + 32 MiB buffers`, and a profile whose name does not hold its control, such as `tuned`, becomes
    /// `reno (tuned)`. A copy takes along the figures published for its model under that very control
    /// ([`Published::congestion_control`]). Published figures are left out where they do not belong any more: those of a profile
    /// or loss that is not run, all of them with a round-trip time that is not the scenario's own, and a count of
    /// retransmissions with another duration.
    ///
    /// [`Published::congestion_control`]: crate::Published::congestion_control
    ///
    /// # Errors
    /// A profile that the scenario does not have, an empty list, and what [`Scenario::check`] refuses.
    pub fn with_overrides(mut self, overrides: Overrides) -> Result<Self, ScenarioError> {
        if let Some(names) = &overrides.profiles {
            self.keep_profiles(names)?;
        }
        if let Some(controls) = &overrides.congestion_controls {
            self.select_controls(controls)?;
        }
        if let Some(buffers) = overrides.buffers {
            self.set_buffers(buffers);
        }
        if let Some(losses) = overrides.losses {
            self.path.losses = losses;
            if is_pattern(&self.path.forward.loss) {
                self.path.forward.loss = LossModel::None;
            }
        }
        if let Some(rtts) = overrides.rtts {
            if rtts.iter().any(|rtt| !self.path.rtts.contains(rtt)) {
                self.published.clear();
            }
            self.path.rtts = rtts;
        }
        if let Some(queues) = overrides.queues {
            self.path.queues = queues;
        }
        self.run.repeats = overrides.repeats.unwrap_or(self.run.repeats);
        self.run.seed = overrides.seed.unwrap_or(self.run.seed);
        if let Some(duration) = overrides.duration {
            if duration != self.run.duration {
                self.published.iter_mut().for_each(|figures| figures.retransmissions = None);
            }
            self.run.duration = duration;
        }
        self.run.warmup = overrides.warmup.unwrap_or(self.run.warmup);
        let (profiles, losses) = (&self.profiles, &self.path.losses);
        self.published.retain(|figures| {
            figures.has_figure()
                && profiles.iter().any(|profile| profile.name == figures.profile)
                && figures.loss.is_none_or(|loss| losses.contains(&loss))
        });
        self.check()?;
        Ok(self)
    }

    /// Buffers of at most `most` bytes. The receive buffer begins at a quarter of that: while the kernel's tuning raises it from its own
    /// 128 KiB, the receive window limits a flow's start, under loss for seconds, and BBR takes that for the path's limit. Profiles that then differ in nothing are one;
    /// published figures go, since they belong to the buffers they were measured with.
    fn set_buffers(&mut self, most: Bytes) {
        let begin = (most.as_u64() / 4).max(131_072);
        let keys = [("net.ipv4.tcp_rmem", begin), ("net.ipv4.tcp_wmem", 16_384)];
        let values = keys.map(|(key, begin)| (key.to_owned(), format!("4096 {begin} {}", most.as_u64())));
        let is_other = |(key, _): &(String, String)| keys.iter().all(|(own, _)| key != own);
        self.sysctls.retain(is_other);
        self.published.clear();
        let mut kept: Vec<Profile> = Vec::new();
        for mut profile in self.profiles.drain(..) {
            profile.sysctls.retain(is_other);
            profile.sysctls.extend(values.iter().cloned());
            let same = |other: &Profile| {
                other.congestion_control == profile.congestion_control && other.sysctls == profile.sysctls
            };
            if kept.iter().any(same) {
                continue;
            }
            profile.name = format!("{} + {most} buffers", without_stack(&profile.name));
            while kept.iter().any(|other| other.name == profile.name) {
                profile.name = format!("{} ({})", profile.name, profile.congestion_control);
            }
            kept.push(profile);
        }
        self.profiles = kept;
    }

    fn keep_profiles(&mut self, names: &[String]) -> Result<(), ScenarioError> {
        let known: Vec<&str> = self.profiles.iter().map(|profile| profile.name.as_str()).collect();
        for name in names {
            if !known.contains(&name.as_str()) {
                let reason = Reason::UnknownName { text: quoted(name), what: "a profile", hint: hint(name, &known) };
                return Err(ScenarioError::one(&self.name, reason));
            }
        }
        self.profiles.retain(|profile| names.contains(&profile.name));
        Ok(())
    }

    fn select_controls(&mut self, controls: &[String]) -> Result<(), ScenarioError> {
        if controls.is_empty() {
            let sentence = "the list of congestion controls is empty".to_owned();
            return Err(ScenarioError::one(&self.name, Reason::Impossible(sentence)));
        }
        let Some(model) = self.profiles.last().cloned() else { return Ok(()) };
        for (index, control) in controls.iter().enumerate() {
            let known = self.profiles.iter().any(|profile| profile.congestion_control == *control);
            if known || controls[..index].contains(control) {
                continue;
            }
            let mut name = name_for(control, &model);
            while self.profiles.iter().any(|profile| profile.name == name) {
                name = format!("{control} ({name})");
            }
            let figures = self.published.iter().filter(|figures| {
                figures.profile == model.name && figures.congestion_control.as_deref() == Some(control)
            });
            let copies: Vec<_> =
                figures.cloned().map(|figures| crate::Published { profile: name.clone(), ..figures }).collect();
            self.published.extend(copies);
            self.profiles.push(Profile { name, congestion_control: control.clone(), sysctls: model.sysctls.clone() });
        }
        self.profiles.retain(|profile| controls.contains(&profile.congestion_control));
        Ok(())
    }
}

/// A profile's name without what it says of its stack: `bbr (default stack)` and `bbr + 64 MiB buffers` are both `bbr`.
fn without_stack(name: &str) -> &str {
    let name = name.strip_suffix(" (default stack)").unwrap_or(name);
    match name.rsplit_once(" + ") {
        Some((before, stack)) if stack.ends_with(" buffers") => before,
        _ => name,
    }
}

/// The name of a copy of `model` for `control`: the model's with the control in it exchanged, where it stands as a word.
fn name_for(control: &str, model: &Profile) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let own = model.congestion_control.as_str();
    for (start, found) in model.name.match_indices(own) {
        let (before, after) = (&model.name[..start], &model.name[start + found.len()..]);
        if !before.ends_with(is_part) && !after.starts_with(is_part) {
            return format!("{before}{control}{after}");
        }
    }
    format!("{control} ({})", model.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_named_after_its_control_where_the_model_was_and_after_both_where_not() {
        let model =
            |name: &str| Profile { name: name.to_owned(), congestion_control: "bbr".to_owned(), sysctls: Vec::new() };
        assert_eq!(name_for("bbr3", &model("bbr")), "bbr3");
        assert_eq!(name_for("bbr3", &model("bbr + 32 MiB buffers")), "bbr3 + 32 MiB buffers");
        assert_eq!(name_for("reno", &model("tuned")), "reno (tuned)");
        assert_eq!(name_for("reno", &model("bbr3, bbr-like")), "reno (bbr3, bbr-like)");
        assert_eq!(without_stack("bbr + tuned + 64 MiB buffers"), "bbr + tuned");
        assert_eq!(without_stack("cubic (default stack)"), "cubic");
        assert_eq!(without_stack("bbr + ecn"), "bbr + ecn");
        assert_eq!(name_for("reno", &model("as bbr3 but (bbr)")), "as bbr3 but (reno)");
    }
}
