//! The job itself.

use serde::{Deserialize, Serialize};

use super::block::{Block, Part};
use super::judge::{Difference, Judgement, Limits, Sample, Series, can_still_differ, judge};
use crate::plan::Change;

/// What acts for the job.
pub trait Ends {
    /// Why something could not be done.
    type Error;

    /// One run over the path, with whatever is set now.
    ///
    /// # Errors
    /// Where the run gave no figure.
    fn measure(&mut self) -> Result<Sample, Self::Error>;

    /// Sets changes; all of them or, with an error, none.
    ///
    /// # Errors
    /// Where one could not be set.
    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error>;

    /// Takes changes back that were set.
    ///
    /// # Errors
    /// Where one could not be taken back.
    fn undo(&mut self, changes: &[Change]) -> Result<(), Self::Error>;

    /// Whether somebody wants the job to end.
    fn stopped(&self) -> bool;

    /// Told as it happens, for whoever watches.
    fn tell(&mut self, event: Event<'_>);
}

/// What happens meanwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// A block, or all that is kept, is compared now: which, and with how many pairs.
    Compare {
        /// `None`: everything that is kept, against nothing.
        block: Option<Block>,
        /// Whether it is the second look, at what happens without it.
        again: bool,
        /// Pairs to come.
        pairs: u32,
    },
    /// A run ended.
    Run {
        /// Whether with what is compared.
        with: bool,
        /// What it gave.
        sample: &'a Sample,
    },
}

/// How it is done.
pub struct Options<'a> {
    /// Pairs of runs for each comparison. Six are the fewest by which a signed-rank test can reach 5 %.
    pub pairs: u32,
    /// From where on a difference counts.
    pub limits: Limits,
    /// Compares two paired series, with first.
    pub differ: &'a dyn Fn(&[f64], &[f64]) -> Difference,
    /// Whether the n-th pair begins with the block set; from a seeded generator.
    pub with_first: &'a mut dyn FnMut() -> bool,
}

/// Why a block stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// It helped by itself.
    Helped,
    /// Without it, what else is kept does less.
    Needed,
}

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "why")]
pub enum Settled {
    /// It is set.
    Kept(Kept),
    /// It made no difference, and nothing else needs it.
    NoDifference,
    /// It did harm.
    Harmed,
    /// A transfer can't show what it does; it wasn't tried.
    NotMeasurable,
    /// The job ended before its turn.
    NotTried,
}

/// A block and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The block with its changes.
    #[serde(flatten)]
    pub part: Part,
    /// What became of it.
    #[serde(flatten)]
    pub settled: Settled,
    /// The runs on which this rests: those of the last comparison.
    pub series: Series,
    /// What they say.
    pub judgement: Option<Judgement>,
}

/// The end of the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// In the order in which they were tried.
    pub blocks: Vec<Job>,
    /// Everything that is kept against the host as it was.
    pub whole: Series,
    /// What that says; `None` where nothing is kept or the job was stopped.
    pub judgement: Option<Judgement>,
    /// Whether it was stopped: what was undecided then is not set.
    pub partial: bool,
}

impl Outcome {
    /// The changes that stay.
    pub fn kept(&self) -> impl Iterator<Item = &Change> {
        let kept = self.blocks.iter().filter(|job| matches!(job.settled, Settled::Kept(_)));
        kept.flat_map(|job| &job.part.changes)
    }
}

/// Does the job. After it, exactly the changes of the blocks that are kept are set; after an error, or when stopped, those that were
/// already decided are set and no others (an error in taking back is returned as it is: then the caller's own record of what it
/// set decides).
///
/// # Errors
/// The first of `ends`.
pub fn run<E: Ends>(ends: &mut E, parts: Vec<Part>, options: &mut Options<'_>) -> Result<Outcome, E::Error> {
    let mut blocks: Vec<Job> = parts.into_iter().map(Job::new).collect();
    let mut partial = false;
    for job in blocks.iter_mut().filter(|job| job.part.block.shows_in_a_transfer()) {
        let Some(series) = compare(ends, &job.part, false, options)? else {
            partial = true;
            break;
        };
        let judgement = judge(&series, &options.limits, options.differ);
        job.settled = if judgement.stays(&options.limits) {
            Settled::Kept(Kept::Helped)
        } else if judgement.hurts(&options.limits) {
            Settled::Harmed
        } else {
            Settled::NoDifference
        };
        (job.series, job.judgement) = (series, Some(judgement));
        // What made no difference stays for now: a later block may need it.
        if job.settled != Settled::Harmed {
            ends.apply(&job.part.changes)?;
        }
    }
    second_look(ends, &mut blocks, options, &mut partial)?;
    let (mut whole, mut judgement) = (Series::default(), None);
    let kept: Vec<Change> = kept(&blocks).cloned().collect();
    let mut alone = blocks.iter().filter(|job| matches!(job.settled, Settled::Kept(_)));
    if let (Some(only), None) = (alone.next(), alone.next()) {
        // Its own runs are those of the whole.
        (whole, judgement) = (only.series.clone(), only.judgement.clone());
    } else if !kept.is_empty() && !partial {
        match pairs(ends, &kept, true, None, false, options)? {
            Some(series) => {
                let found = judge(&series, &options.limits, options.differ);
                // Together they may undo each other's gain: then the host stays as it was.
                if !found.stays(&options.limits) {
                    ends.undo(&kept)?;
                    let settled = if found.hurts(&options.limits) { Settled::Harmed } else { Settled::NoDifference };
                    for job in blocks.iter_mut().filter(|job| matches!(job.settled, Settled::Kept(_))) {
                        job.settled = settled;
                    }
                }
                (whole, judgement) = (series, Some(found));
            }
            None => partial = true,
        }
    }
    Ok(Outcome { blocks, whole, judgement, partial })
}

fn kept(blocks: &[Job]) -> impl Iterator<Item = &Change> {
    blocks.iter().filter(|job| matches!(job.settled, Settled::Kept(_))).flat_map(|job| &job.part.changes)
}

/// Leaves each block out again that is set without having helped. Where nothing helped, none can be needed.
fn second_look<E: Ends>(
    ends: &mut E,
    blocks: &mut [Job],
    options: &mut Options<'_>,
    partial: &mut bool,
) -> Result<(), E::Error> {
    let helped_last = blocks.iter().rposition(|job| matches!(job.settled, Settled::Kept(_)));
    for (index, job) in blocks.iter_mut().enumerate().filter(|(_, job)| job.settled == Settled::NoDifference) {
        // Only a block that came later can have needed it: those before it were judged without it.
        let may_be_needed = helped_last.is_some_and(|last| last > index) && !*partial;
        ends.undo(&job.part.changes)?;
        if !may_be_needed {
            continue;
        }
        let Some(series) = compare(ends, &job.part, true, options)? else {
            *partial = true;
            continue;
        };
        let judgement = judge(&series, &options.limits, options.differ);
        if judgement.stays(&options.limits) {
            ends.apply(&job.part.changes)?;
            job.settled = Settled::Kept(Kept::Needed);
        }
        (job.series, job.judgement) = (series, Some(judgement));
    }
    Ok(())
}

/// Runs a block's pairs, from a state without it to a state without it; `None` where it was stopped.
fn compare<E: Ends>(
    ends: &mut E,
    part: &Part,
    again: bool,
    options: &mut Options<'_>,
) -> Result<Option<Series>, E::Error> {
    pairs(ends, &part.changes, false, Some(part.block), again, options)
}

/// Runs pairs with and without `changes`, which are set or not before and just so afterwards, also after an error.
fn pairs<E: Ends>(
    ends: &mut E,
    changes: &[Change],
    set: bool,
    block: Option<Block>,
    again: bool,
    options: &mut Options<'_>,
) -> Result<Option<Series>, E::Error> {
    ends.tell(Event::Compare { block, again, pairs: options.pairs });
    let mut state = set;
    let result = take_pairs(ends, changes, &mut state, options);
    let back = switch(ends, changes, &mut state, set);
    let series = result?;
    back.map(|()| series)
}

fn take_pairs<E: Ends>(
    ends: &mut E,
    changes: &[Change],
    state: &mut bool,
    options: &mut Options<'_>,
) -> Result<Option<Series>, E::Error> {
    let mut series = Series::default();
    for left in (0..options.pairs).rev() {
        let first = (options.with_first)();
        for with in [first, !first] {
            if ends.stopped() {
                return Ok(None);
            }
            switch(ends, changes, state, with)?;
            let sample = ends.measure()?;
            ends.tell(Event::Run { with, sample: &sample });
            if with { &mut series.with } else { &mut series.without }.push(sample);
        }
        if !can_still_differ(&series, left, &options.limits, options.differ) {
            break;
        }
    }
    // A run that was cut short by the signal is no figure.
    Ok((!ends.stopped()).then_some(series))
}

fn switch<E: Ends>(ends: &mut E, changes: &[Change], state: &mut bool, to: bool) -> Result<(), E::Error> {
    if *state == to {
        return Ok(());
    }
    if to {
        ends.apply(changes)?
    } else {
        ends.undo(changes)?
    }
    *state = to;
    Ok(())
}

impl Job {
    fn new(part: Part) -> Self {
        let settled = if part.block.shows_in_a_transfer() { Settled::NotTried } else { Settled::NotMeasurable };
        Self { part, settled, series: Series::default(), judgement: None }
    }
}
