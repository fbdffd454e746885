//! The greedy search of IR-ORAM, section IV-B.

use std::num::NonZeroUsize;

use super::measure::measure;
use super::{Candidate, PAPER_PROFILES, Plan, Profile, Run, Scheme, Search, Verdict};
use crate::paper::PAPER_SLOTS;
use crate::{LabError, workers};

/// How far a search is.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// So many accesses more will be made.
    Planned(u64),
    /// So many accesses have been made.
    Made(u64),
}

/// Searches as `plan` asks, on `threads` threads.
///
/// # Errors
/// [`LabError::Plan`] when the plan cannot be followed, [`LabError::Engine`] when the engine fails.
pub fn run(
    plan: &Plan,
    threads: NonZeroUsize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Search, LabError> {
    plan.check()?;
    let judge = Judge { plan, threads, progress };

    let uniform = plan.uniform();
    let is_the_papers = plan.scheme == Scheme::Path && plan.slots == PAPER_SLOTS;
    let paper = if is_the_papers { &PAPER_PROFILES[..] } else { &[] };
    let compared = std::iter::once(("uniform".to_owned(), uniform.clone())).chain(
        paper
            .iter()
            .map(|paper| (format!("IR-Alloc {}", paper.number), paper.scaled_to(plan.leaf_level))),
    );
    let mut compared = judge.run(compared.collect())?.into_iter();
    let baseline = compared.next().expect("the first is the uniform tree");
    let paper = compared.collect();

    let mut tried = Vec::new();
    let mut best = baseline.clone();
    let mut proposals = vec![start(plan)];
    for round in 0.. {
        let mut candidates = judge.round(round, proposals, &baseline, &best)?;
        let taken = take_best(&mut candidates, plan);
        tried.append(&mut candidates);
        proposals = match taken {
            Some(taken) => {
                best = taken;
                best.profile.steps_down(plan.tree_top_levels)
            }
            // The paper's start was too bold for this tree: take smaller steps.
            None if round == 0 => uniform.steps_down(plan.tree_top_levels),
            None => break,
        };
    }

    let endurance = judge.endure(&baseline, &mut tried)?;
    Ok(Search { plan: plan.clone(), baseline, tried, paper, endurance })
}

/// Where the paper starts: a slot less on all levels in storage from the deepest on that the space
/// allows. (Its text names that level alone; those above it are the first to follow.)
fn start(plan: &Plan) -> Profile {
    let uniform = plan.uniform();
    let top = usize::from(plan.tree_top_levels);
    let less_down_to = |end| uniform.with_one_less(top..end);
    (top + 1..=uniform.slots().len())
        .map(less_down_to)
        .take_while(|profile| profile.space_loss(&uniform) <= plan.space_loss_max)
        .last()
        .unwrap_or_else(|| less_down_to(top + 1))
}

/// Marks the candidate of the round that moves the fewest slots as taken.
fn take_best(candidates: &mut [Candidate], plan: &Plan) -> Option<Candidate> {
    let slots = |candidate: &Candidate| candidate.slots_per_access(plan).unwrap_or(f64::INFINITY);
    let best = candidates
        .iter_mut()
        .filter(|candidate| candidate.verdict == Verdict::Passed)
        .min_by(|a, b| slots(a).total_cmp(&slots(b)))?;
    best.verdict = Verdict::Taken;
    Some(best.clone())
}

/// Runs profiles, and judges them.
struct Judge<'a> {
    plan: &'a Plan,
    threads: NonZeroUsize,
    progress: &'a (dyn Fn(Progress) + Sync),
}

impl Judge<'_> {
    /// Runs the proposals that do not lose too much space, and judges all.
    fn round(
        &self,
        round: u32,
        proposals: Vec<Profile>,
        baseline: &Candidate,
        best: &Candidate,
    ) -> Result<Vec<Candidate>, LabError> {
        let (fitting, too_small) = proposals.into_iter().partition::<Vec<_>, _>(|profile| {
            profile.space_loss(&baseline.profile) <= self.plan.space_loss_max
        });
        let name = format!("round {round}");
        let fitting = fitting.into_iter().map(|profile| (name.clone(), profile)).collect();
        let mut candidates = self.run(fitting)?;
        for candidate in &mut candidates {
            candidate.verdict = self.verdict(candidate, baseline, best);
        }
        candidates.extend(too_small.into_iter().map(|profile| Candidate {
            name: name.clone(),
            profile,
            verdict: Verdict::TooMuchSpace,
            runs: Vec::new(),
        }));
        Ok(candidates)
    }

    fn verdict(&self, candidate: &Candidate, baseline: &Candidate, best: &Candidate) -> Verdict {
        let evictions = candidate.evictions_per_access();
        if !evictions.is_some_and(|evictions| self.allows(evictions, baseline)) {
            Verdict::TooManyEvictions
        } else if candidate.slots_per_access(self.plan) >= best.slots_per_access(self.plan) {
            Verdict::NoGain
        } else {
            Verdict::Passed
        }
    }

    /// Whether so many background evictions are within the limit. A uniform tree that is itself too
    /// full allows for none.
    fn allows(&self, evictions_per_access: f64, baseline: &Candidate) -> bool {
        let Some(least) = baseline.evictions_per_access() else { return false };
        let extra = |evictions| self.plan.scheme.extra_paths(evictions);
        extra(evictions_per_access) <= extra(least) + self.plan.extra_evictions_max
    }

    /// The last run: what was taken last, on the last tree, or what was taken before it where that
    /// does better there.
    fn endure(&self, baseline: &Candidate, tried: &mut [Candidate]) -> Result<Run, LabError> {
        let mut held: Option<(usize, Run, f64)> = None;
        for at in (0..tried.len()).rev() {
            let Candidate { profile, verdict: Verdict::Taken, .. } = &tried[at] else { continue };
            // It can do no better there than without a background eviction.
            let at_best = self.plan.slots_moved(profile, 0.0);
            if held.as_ref().is_some_and(|(_, _, slots)| *slots <= at_best) {
                break;
            }
            let run = self.last_run(profile)?;
            match (self.slots_if_held(profile, &run, baseline), &held) {
                (None, None) => tried[at].verdict = Verdict::NotOnLastTree,
                (Some(slots), held_now)
                    if held_now.as_ref().is_none_or(|(_, _, least)| slots < *least) =>
                {
                    if let Some((bolder, ..)) = held.replace((at, run, slots)) {
                        tried[bolder].verdict = Verdict::NotOnLastTree;
                    }
                }
                _ => break,
            }
        }
        held.map_or_else(|| self.last_run(&baseline.profile), |(_, run, _)| Ok(run))
    }

    /// The slots that an access moves by its last run, when that keeps to the limit and gains.
    fn slots_if_held(&self, profile: &Profile, run: &Run, baseline: &Candidate) -> Option<f64> {
        let evictions =
            run.evictions_per_access().filter(|evictions| self.allows(*evictions, baseline))?;
        let slots = self.plan.slots_moved(profile, evictions);
        let uniform = self.plan.slots_moved(&baseline.profile, 0.0);
        (slots < uniform).then_some(slots)
    }

    /// A run of `profile` on the last tree.
    fn last_run(&self, profile: &Profile) -> Result<Run, LabError> {
        let Self { plan, progress, .. } = self;
        let there = plan.on_last_tree();
        let (_, seed) = plan.seeds();
        progress(Progress::Planned(plan.endurance_accesses + there.warm_up_accesses()));
        let made = |accesses| progress(Progress::Made(accesses));
        let profile = profile.carried(
            plan.tree_top_levels,
            plan.slots,
            there.leaf_level,
            there.tree_top_levels,
        );
        measure(&there, &profile, plan.endurance_accesses, seed, &made)
    }

    /// All runs of all profiles.
    fn run(&self, profiles: Vec<(String, Profile)>) -> Result<Vec<Candidate>, LabError> {
        let Self { plan, threads, progress } = self;
        progress(Progress::Planned(plan.accesses_per_profile() * profiles.len() as u64));
        let (seeds, _) = plan.seeds();
        let tasks: Vec<_> = profiles
            .iter()
            .flat_map(|(_, profile)| seeds.iter().map(move |seed| (profile, *seed)))
            .collect();
        let mut runs = workers::run_all(&tasks, *threads, |(profile, seed)| {
            let made = |accesses| progress(Progress::Made(accesses));
            measure(plan, profile, plan.accesses_per_run(), *seed, &made)
        })?
        .into_iter();
        let candidates = profiles.into_iter().map(|(name, profile)| Candidate {
            name,
            profile,
            verdict: Verdict::Compared,
            runs: runs.by_ref().take(seeds.len()).collect(),
        });
        Ok(candidates.collect())
    }
}
