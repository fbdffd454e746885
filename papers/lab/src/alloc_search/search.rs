//! The greedy search of IR-ORAM, section IV-B.

use std::num::NonZeroUsize;

use super::measure::measure;
use super::timed::{TimedRecord, all_records, time};
use super::{Candidate, Judge, PAPER_PROFILES, Plan, Profile, Run, Scheme, Search, Verdict};
use crate::paper::PAPER_SLOTS;
use crate::{Host, LabError, workers};

/// Searches as `plan` asks, on `threads` threads. The steps are accesses, or records where time is taken. Runs that take time
/// are handed to [`Host::keep`], and those among `kept` are not made again.
///
/// # Errors
/// [`LabError::Plan`] when the plan cannot be followed, [`LabError::Engine`] and [`LabError::Simulation`] when a run fails, and
/// what [`Host::keep`] fails with.
pub fn run(
    plan: &Plan,
    kept: &[TimedRecord],
    threads: NonZeroUsize,
    host: &impl Host<TimedRecord>,
) -> Result<Search, LabError> {
    plan.check()?;
    let bench = Bench { plan, kept, threads, host };

    let uniform = plan.uniform();
    let is_the_papers = plan.scheme == Scheme::Path && plan.slots == PAPER_SLOTS;
    let paper = if is_the_papers { &PAPER_PROFILES[..] } else { &[] };
    let compared = std::iter::once(("uniform".to_owned(), uniform.clone())).chain(
        paper
            .iter()
            .map(|paper| (format!("IR-Alloc {}", paper.number), paper.scaled_to(plan.leaf_level))),
    );
    let began = host.seconds();
    let mut compared = bench.run(compared.collect())?.into_iter();
    bench.foresee(host.seconds() - began, compared.len());
    let baseline = compared.next().expect("the first is the uniform tree");
    let paper = compared.collect();

    let mut tried = Vec::new();
    let mut best = baseline.clone();
    let mut proposals = vec![start(plan)];
    for round in 0.. {
        let mut candidates = bench.round(round, proposals, &baseline, &best)?;
        let taken = take_best(&mut candidates, plan);
        tried.append(&mut candidates);
        proposals = match taken {
            Some(taken) => {
                best = taken;
                steps_down(plan, &best.profile)
            }
            // The paper's start was too bold for this tree: take smaller steps.
            None if round == 0 => steps_down(plan, &uniform),
            None => break,
        };
    }

    let endurance = bench.endure(&baseline, &mut tried)?;
    Ok(Search { plan: plan.clone(), baseline, tried, paper, endurance })
}

/// The next steps. A path takes as long as the channel that has most of it, so that one slot less saves no time on several
/// channels, and one on as many levels does.
pub(super) fn steps_down(plan: &Plan, profile: &Profile) -> Vec<Profile> {
    let at_once = match plan.judge {
        Judge::Slots => vec![1],
        Judge::Time(judge) => vec![1, judge.channels as usize],
    };
    profile.steps_down(plan.tree_top_levels, &at_once)
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

/// Marks the best candidate of the round as taken.
fn take_best(candidates: &mut [Candidate], plan: &Plan) -> Option<Candidate> {
    let cost = |candidate: &Candidate| candidate.cost(plan).unwrap_or(f64::INFINITY);
    let best = candidates
        .iter_mut()
        .filter(|candidate| candidate.verdict == Verdict::Passed)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    best.verdict = Verdict::Taken;
    Some(best.clone())
}

/// Runs profiles, and judges them.
struct Bench<'a, H> {
    plan: &'a Plan,
    kept: &'a [TimedRecord],
    threads: NonZeroUsize,
    host: &'a H,
}

impl<H: Host<TimedRecord>> Bench<'_, H> {
    /// Says how long a search by time takes, as far as that can be known from its first profiles.
    fn foresee(&self, seconds: f64, profiles: usize) {
        if matches!(self.plan.judge, Judge::Time(_)) {
            let each = seconds / profiles.max(1) as f64;
            self.host.foreseen(&format!(
                "{profiles} profiles to compare with took {seconds:.0} s; a search tries some 15 to 50 more, in {:.0} to {:.0} minutes",
                each * 15.0 / 60.0,
                each * 50.0 / 60.0
            ));
        }
    }

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
        } else if candidate.cost(self.plan) >= best.cost(self.plan) {
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
    /// does better there. Where time is taken there is no other tree, but other coins.
    fn endure(&self, baseline: &Candidate, tried: &mut [Candidate]) -> Result<Run, LabError> {
        if matches!(self.plan.judge, Judge::Time(_)) {
            let taken = tried.iter().rev().find(|tried| tried.verdict == Verdict::Taken);
            return self.last_run(&taken.unwrap_or(baseline).profile);
        }
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
        let Self { plan, host, .. } = self;
        let there = plan.on_last_tree();
        let (_, seed) = plan.seeds();
        let profile = profile.carried(
            plan.tree_top_levels,
            plan.slots,
            there.leaf_level,
            there.tree_top_levels,
        );
        let accesses = plan.endurance_accesses;
        host.planned(match plan.judge {
            Judge::Slots => accesses + there.warm_up_accesses(),
            Judge::Time(_) => all_records(accesses),
        });
        self.one(&there, &profile, accesses, seed)
    }

    /// All runs of all profiles.
    fn run(&self, profiles: Vec<(String, Profile)>) -> Result<Vec<Candidate>, LabError> {
        let Self { plan, threads, host, .. } = self;
        host.planned(plan.accesses_per_profile() * profiles.len() as u64);
        let (seeds, _) = plan.seeds();
        let tasks: Vec<_> = profiles
            .iter()
            .flat_map(|(_, profile)| seeds.iter().map(move |seed| (profile, *seed)))
            .collect();
        let mut runs = workers::run_all(&tasks, *threads, |(profile, seed)| {
            self.one(plan, profile, plan.accesses_per_run(), *seed)
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

    fn one(
        &self,
        plan: &Plan,
        profile: &Profile,
        accesses: u64,
        seed: u64,
    ) -> Result<Run, LabError> {
        match &plan.judge {
            Judge::Slots => measure(plan, profile, accesses, seed, &|made| self.host.made(made)),
            Judge::Time(judge) => {
                time(judge, plan, profile, (accesses, seed), self.kept, self.host)
            }
        }
    }
}
