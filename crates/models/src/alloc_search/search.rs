//! The greedy search of IR-ORAM, section IV-B.

use std::num::NonZeroUsize;

use super::{Candidate, Judge, Profile, Run, Search, SearchPlan, Verdict};
use crate::{Error, workers};

/// Runs the profiles of a search. Progress is counted in accesses, or in records in a search by
/// time.
pub trait Bench<J>: Sync {
    /// The error of a failed run.
    type Error: From<Error> + Send;

    /// Announces that `steps` more steps will run.
    fn planned(&self, steps: u64);

    /// Runs a warm-up and `accesses` counted accesses (records in a search by time) on `profile`,
    /// with all randomness from `seed`.
    ///
    /// # Errors
    /// The error of the failed run.
    fn run(
        &self,
        plan: &SearchPlan<J>,
        profile: &Profile,
        accesses: u64,
        seed: u64,
    ) -> Result<Run, Self::Error>;

    /// Called when all profiles that serve for comparison have run. They are the first `profiles`
    /// profiles of the search.
    fn has_compared(&self, profiles: usize) {
        let _ = profiles;
    }
}

/// Runs the search of `plan` on `threads` threads. Also runs the named profiles of `compared`.
///
/// # Errors
/// [`Error::Plan`] if the plan is invalid, or the error of a failed run.
pub fn run<J: Judge, B: Bench<J>>(
    plan: &SearchPlan<J>,
    compared: Vec<(String, Profile)>,
    threads: NonZeroUsize,
    bench: &B,
) -> Result<Search<J>, B::Error> {
    plan.check()?;
    let runner = Runner { plan, threads, bench };

    let uniform = plan.uniform();
    let compared = std::iter::once(("uniform".to_owned(), uniform.clone())).chain(compared);
    let mut compared = runner.run(compared.collect())?.into_iter();
    bench.has_compared(compared.len());
    let baseline = compared.next().expect("the first profile is the uniform tree");
    let paper = compared.collect();

    let mut tried = Vec::new();
    let mut best = baseline.clone();
    // Section IV-B of IR-ORAM: start with one slot less on some levels.
    let mut proposals = vec![start(plan)];
    for round in 0.. {
        let mut candidates = runner.round(round, proposals, &baseline, &best)?;
        let taken = take_best(&mut candidates, plan);
        tried.append(&mut candidates);
        // Section IV-B of IR-ORAM: shrink gradually, until no step is better (a local optimum).
        proposals = match taken {
            Some(taken) => {
                best = taken;
                steps_down(plan, &best.profile)
            }
            // The paper's first step was too large for this tree: try single steps.
            None if round == 0 => steps_down(plan, &uniform),
            None => break,
        };
    }

    let endurance = runner.run_last_tree(&baseline, &mut tried)?;
    Ok(Search { plan: plan.clone(), baseline, tried, paper, endurance })
}

/// The next profiles to try, each one step below `profile`. A path takes as long as its busiest
/// channel. So on several channels, one slot less on one level may save no time, while one slot
/// less on as many levels as there are channels does.
pub fn steps_down<J: Judge>(plan: &SearchPlan<J>, profile: &Profile) -> Vec<Profile> {
    let at_once = match plan.judge.channels() {
        None => vec![1],
        Some(channels) => vec![1, channels as usize],
    };
    profile.steps_down(plan.tree_top_levels, &at_once)
}

/// The paper's first profile: one slot less on all levels in storage, down to the deepest level
/// that the space limit allows. If the limit allows none, only the topmost of these levels has one
/// slot less. (The paper names only the deepest level. The next steps of the search would shrink
/// the levels above it anyway.)
fn start<J: Judge>(plan: &SearchPlan<J>) -> Profile {
    let uniform = plan.uniform();
    let top = usize::from(plan.tree_top_levels);
    let less_down_to = |end| uniform.with_one_less(top..end);
    (top + 1..=uniform.slots().len())
        .map(less_down_to)
        .take_while(|profile| profile.space_loss(&uniform) <= plan.space_loss_max)
        .last()
        .unwrap_or_else(|| less_down_to(top + 1))
}

/// Marks the best candidate of the round as taken, and returns it.
fn take_best<J: Judge>(candidates: &mut [Candidate], plan: &SearchPlan<J>) -> Option<Candidate> {
    let cost = |candidate: &Candidate| candidate.cost(plan).unwrap_or(f64::INFINITY);
    let best = candidates
        .iter_mut()
        .filter(|candidate| candidate.verdict == Verdict::NotBest)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    best.verdict = Verdict::Taken;
    Some(best.clone())
}

/// Runs and judges profiles.
struct Runner<'a, J, B> {
    plan: &'a SearchPlan<J>,
    threads: NonZeroUsize,
    bench: &'a B,
}

impl<J: Judge, B: Bench<J>> Runner<'_, J, B> {
    /// Runs the proposed profiles that keep to the space limit. Returns all proposals with their
    /// verdicts.
    fn round(
        &self,
        round: u32,
        proposals: Vec<Profile>,
        baseline: &Candidate,
        best: &Candidate,
    ) -> Result<Vec<Candidate>, B::Error> {
        // Section IV-B of IR-ORAM, constraint 1: the loss of space.
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
        } else if candidate.cost(self.plan) >= best.cost(self.plan) {
            Verdict::NoGain
        } else {
            Verdict::NotBest
        }
    }

    /// Whether the number of background evictions is within the limit. If the uniform tree itself
    /// is too full, no number is within it.
    fn allows(&self, evictions_per_access: f64, baseline: &Candidate) -> bool {
        let Some(least) = baseline.evictions_per_access() else { return false };
        // Section IV-B of IR-ORAM, constraint 2: the increase of background evictions.
        let extra = |evictions| self.plan.scheme.extra_paths(evictions);
        extra(evictions_per_access) <= extra(least) + self.plan.extra_evictions_max
    }

    /// Runs the most recently taken profile on the last tree. Falls back to an earlier one if
    /// the later one exceeds the limits there or moves more slots, and to the uniform tree if no
    /// profile is accepted. A search by time only uses another seed, not another tree, and does not
    /// fall back.
    fn run_last_tree(
        &self,
        baseline: &Candidate,
        tried: &mut [Candidate],
    ) -> Result<Run, B::Error> {
        if self.plan.judge.channels().is_some() {
            let taken = tried.iter().rev().find(|tried| tried.verdict == Verdict::Taken);
            return self.last_run(&taken.unwrap_or(baseline).profile);
        }
        let mut accepted: Option<(usize, Run, f64)> = None;
        for at in (0..tried.len()).rev() {
            let Candidate { profile, verdict: Verdict::Taken, .. } = &tried[at] else { continue };
            // At best, the profile needs no background evictions on the last tree.
            let at_best = self.plan.slots_moved(profile, 0.0);
            if accepted.as_ref().is_some_and(|(_, _, slots)| *slots <= at_best) {
                break;
            }
            let run = self.last_run(profile)?;
            match (self.slots_if_accepted(profile, &run, baseline), &accepted) {
                (None, None) => tried[at].verdict = Verdict::NotOnLastTree,
                (Some(slots), accepted_now)
                    if accepted_now.as_ref().is_none_or(|(_, _, least)| slots < *least) =>
                {
                    if let Some((bolder, ..)) = accepted.replace((at, run, slots)) {
                        tried[bolder].verdict = Verdict::NotOnLastTree;
                    }
                }
                _ => break,
            }
        }
        accepted.map_or_else(|| self.last_run(&baseline.profile), |(_, run, _)| Ok(run))
    }

    /// The slots moved per access in `run`, the run on the last tree. `None` if `profile` exceeds
    /// the limit on background evictions there, or moves no fewer slots than the uniform tree.
    fn slots_if_accepted(&self, profile: &Profile, run: &Run, baseline: &Candidate) -> Option<f64> {
        let evictions =
            run.evictions_per_access().filter(|evictions| self.allows(*evictions, baseline))?;
        let slots = self.plan.slots_moved(profile, evictions);
        let uniform = self.plan.slots_moved(&baseline.profile, 0.0);
        (slots < uniform).then_some(slots)
    }

    /// Runs `profile` on the last tree.
    fn last_run(&self, profile: &Profile) -> Result<Run, B::Error> {
        let Self { plan, bench, .. } = self;
        let there = plan.on_last_tree();
        let (_, seed) = plan.seeds();
        let profile = profile.carried(
            plan.tree_top_levels,
            plan.slots,
            there.leaf_level,
            there.tree_top_levels,
        );
        let accesses = plan.endurance_accesses;
        bench.planned(there.steps_of_run(accesses));
        bench.run(&there, &profile, accesses, seed)
    }

    /// Runs each of `profiles` with every seed.
    fn run(&self, profiles: Vec<(String, Profile)>) -> Result<Vec<Candidate>, B::Error> {
        let Self { plan, threads, bench } = self;
        bench.planned(plan.accesses_per_profile() * profiles.len() as u64);
        let (seeds, _) = plan.seeds();
        let tasks: Vec<_> = profiles
            .iter()
            .flat_map(|(_, profile)| seeds.iter().map(move |seed| (profile, *seed)))
            .collect();
        let mut runs = workers::run_all(&tasks, *threads, |(profile, seed)| {
            bench.run(plan, profile, plan.accesses_per_run(), *seed)
        })?
        .into_iter();
        let candidates = profiles.into_iter().map(|(name, profile)| Candidate {
            name,
            profile,
            verdict: Verdict::ComparisonOnly,
            runs: runs.by_ref().take(seeds.len()).collect(),
        });
        Ok(candidates.collect())
    }
}
