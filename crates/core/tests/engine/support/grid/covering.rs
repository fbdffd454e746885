//! A covering set: every compatible pair or triple of levels occurs in one of its combinations.

use std::collections::HashSet;

use super::factors::{Choice, Combination, choices};
use super::refusal::{Refusal, refusal};

/// A set of factor levels (choices of techniques), at most one per factor, sorted. Each level is a
/// pair of the number of its factor and its number within the factor.
pub(crate) type Levels = Vec<(usize, usize)>;

/// The sets of `strength` factor levels that occur together in an allowed combination.
pub(crate) fn allowed_together(strength: usize) -> HashSet<Levels> {
    allowed().iter().flat_map(|choice| together(choice, strength)).collect()
}

/// Builds a covering set greedily: adds the combination that covers the most new sets of levels,
/// until all are covered.
pub(crate) fn covering_set(strength: usize) -> Vec<Combination> {
    let allowed: Vec<_> =
        allowed().into_iter().map(|choice| (choice, together(&choice, strength))).collect();
    let mut missing = allowed_together(strength);
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let gain =
            |of: &&(_, Vec<Levels>)| of.1.iter().filter(|one| missing.contains(*one)).count();
        // The first of several equally good combinations.
        let (choice, covered) =
            allowed.iter().rev().max_by_key(gain).expect("some combination is allowed");
        missing.retain(|one| !covered.contains(one));
        chosen.push(Combination::from(*choice));
    }
    chosen
}

/// All combinations that are not refused.
pub(crate) fn all_allowed() -> Vec<Combination> {
    allowed().into_iter().map(Combination::from).collect()
}

/// All refused combinations.
pub(crate) fn all_refused() -> impl Iterator<Item = (Combination, Refusal)> {
    choices().map(Combination::from).filter_map(|refused| Some((refused, refusal(&refused)?)))
}

fn allowed() -> Vec<Choice> {
    choices().filter(|choice| refusal(&Combination::from(*choice)).is_none()).collect()
}

/// The sets of `strength` factor levels that occur together in a choice.
pub(crate) fn together(choice: &Choice, strength: usize) -> Vec<Levels> {
    let mut chosen = vec![Levels::new()];
    for _ in 0..strength {
        let longer = chosen.iter().flat_map(|levels| {
            let first = levels.last().map_or(0, |(factor, _)| factor + 1);
            let next = choice.iter().copied().enumerate().skip(first);
            next.map(|level| levels.iter().copied().chain([level]).collect())
        });
        chosen = longer.collect();
    }
    chosen
}
