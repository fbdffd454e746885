//! Fig. 6: the levels on which requested blocks are found.

use super::figure::{Content, Made};
use super::makers::{course_remark, number};
use super::readings::{FoundShares, ends};
use crate::LabError;
use crate::report::{Bars, Plot, Series};

/// Draws Fig. 6 for requests for data only.
pub(super) fn found(made: &Made<'_>) -> Result<Content, LabError> {
    let record = made.first()?;
    let [start, programs, end] = ends(record)?;
    let (levels, top) = (record.spec.slots.len(), usize::from(record.spec.tree_top_levels));
    let shares = [("programs", start, programs), ("chance", programs, end), ("all", start, end)]
        .map(|(name, from, to)| (name, FoundShares::between(from, to, levels)));
    let stated =
        vec![number("tree top, of all requests", 0.23, 0.05, Some(shares[2].1.above(top)))];
    let parts = shares.iter().map(|(name, shares)| {
        format!("{name} {:.1} % and {:.1} %", 100.0 * shares.above(top), 100.0 * shares.stash)
    });
    let remarks = vec![
        made.setting_remark()?,
        course_remark(record),
        format!(
            "Found on the {top} levels of the tree top, and in the stash: {}.",
            parts.collect::<Vec<_>>().join("; ")
        ),
    ];
    let plot = over_places(&shares, levels, "part of the requests for data");
    Ok(Content { plot, stated, remarks })
}

/// Draws Fig. 6 for requests for data, for requests for blocks of the position map, and for all
/// requests.
pub(super) fn found_by_all(made: &Made<'_>) -> Result<Content, LabError> {
    let record = made.first()?;
    let [start, programs, end] = ends(record)?;
    let (levels, top) = (record.spec.slots.len(), usize::from(record.spec.tree_top_levels));
    let shares = [
        ("data", FoundShares::between(start, programs, levels)),
        ("position map", FoundShares::of_position_map(start, programs, levels)),
        ("all", FoundShares::of_both_kinds(start, programs, levels)),
    ];
    let with_chance = FoundShares::of_both_kinds(start, end, levels);
    // Runs of older versions counted only requests for data.
    let is_counted = end.found_position_map.requests() > 0 || end.paths.position_map == 0;
    let of_all = |part: f64| is_counted.then_some(part);
    let [of_data, (top_of_all, stash)] =
        [&shares[0].1, &shares[2].1].map(|shares| (shares.above(top), shares.stash));
    let stated = vec![
        number("tree top, of the requests for data", 0.23, 0.05, Some(of_data.0)),
        number("tree top, of all paths", 0.23, 0.05, of_all(top_of_all)),
        number("stash and tree top, of all paths", 0.23, 0.05, of_all(stash + top_of_all)),
    ];
    let remarks = vec![
        made.setting_remark()?,
        course_remark(record),
        format!(
            "Under programs alone. With chance at the end, {:.1} % of all requests find their \
             block in the tree top, and {:.1} % in the stash.",
            100.0 * with_chance.above(top),
            100.0 * with_chance.stash
        ),
        "Requests for the position map are those that miss the PLB. A block found in the stash \
         makes no path; the paper's figure has levels alone."
            .to_owned(),
    ];
    let plot = over_places(&shares, levels, "part of the requests of each kind");
    Ok(Content { plot, stated, remarks })
}

/// Draws a bar for the stash, and a bar for each level.
fn over_places(shares: &[(&str, FoundShares)], levels: usize, value: &str) -> Plot {
    let labels = ["stash".to_owned()].into_iter().chain((0..levels).map(|level| level.to_string()));
    let series = shares.iter().map(|(name, shares)| Series {
        name: (*name).to_owned(),
        values: [shares.stash].iter().chain(&shares.levels).copied().map(Some).collect(),
    });
    Plot::Bars(Bars {
        labels: labels.collect(),
        value: value.to_owned(),
        stacked: false,
        series: series.collect(),
    })
}
