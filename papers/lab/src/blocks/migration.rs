//! Fig. 5: the levels to which blocks move when a path is written back.

use oblivio_sim::functional::Migration;

use super::figure::{Content, Made};
use super::makers::course_remark;
use super::readings::ends;
use crate::LabError;
use crate::report::{Bars, Curves, Plot, Series};

/// Moves by up to this number of levels have a bar for each number. Longer moves count in the
/// outermost bars.
const LEVELS_SHOWN: usize = 6;

/// Draws Fig. 5(a): blocks that were in the stash before the path was read, and requested blocks.
pub(super) fn of_the_stash(made: &Made<'_>) -> Result<Content, LabError> {
    let moved = moved(made)?;
    let part = |counts: &[u64]| {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let points = (0..).zip(counts);
        points.map(|(level, count)| [f64::from(level), *count as f64 / all]).collect()
    };
    let series = [("pre-existing", &moved.pre_existing), ("asked for", &moved.requested)];
    let plot = Plot::Curves(Curves {
        axes: ["level".to_owned(), "part of the blocks that go to a level".to_owned()],
        is_log: false,
        series: series
            .map(|(name, counts)| Series { name: name.to_owned(), values: part(counts) })
            .into(),
    });
    let upper = moved.pre_existing.iter().take(10).sum::<u64>() as f64
        / moved.pre_existing.iter().sum::<u64>().max(1) as f64;
    let remark = format!(
        "{:.1} % of the pre-existing blocks that find a place go to levels 0 to 9. The paper says \
         that they tend to go to a top level, and has no numbers.",
        100.0 * upper
    );
    let remarks = vec![made.setting_remark()?, course_remark(made.first()?), remark];
    Ok(Content { plot, stated: Vec::new(), remarks })
}

/// Draws Fig. 5(b): blocks that were on the path, by the number of levels that they moved.
pub(super) fn of_the_path(made: &Made<'_>) -> Result<Content, LabError> {
    let moved = moved(made)?;
    let levels = moved.from_path.len();
    let bands = [("levels 0 to 9", 0..10.min(levels)), ("levels 10 on", 10.min(levels)..levels)];
    let all = ("all levels", 0..levels);
    let series = bands.into_iter().chain([all]).map(|(name, from)| Series {
        name: name.to_owned(),
        values: steps(&moved, from).map(Some).to_vec(),
    });
    let step = |steps: usize, where_to: &str| {
        let or_more = if steps == LEVELS_SHOWN { " or more" } else { "" };
        format!("{steps}{or_more} {where_to}")
    };
    let labels = ["stash".to_owned()]
        .into_iter()
        .chain((1..=LEVELS_SHOWN).rev().map(|steps| step(steps, "up")))
        .chain(["same level".to_owned()])
        .chain((1..=LEVELS_SHOWN).map(|steps| step(steps, "down")));
    let plot = Plot::Bars(Bars {
        labels: labels.collect(),
        value: "part of the blocks that were on these levels of the path".to_owned(),
        stacked: false,
        series: series.collect(),
    });
    let [down, same, up] = directions(&steps(&moved, 0..levels));
    let remark = format!(
        "{:.1} % of the blocks on the path that were not requested go to the same level, {:.1} % \
         nearer to the leaves, and {:.1} % nearer to the root or to the stash. The paper says that \
         they are likely to go to the same or lower levels, and has no numbers.",
        100.0 * same,
        100.0 * down,
        100.0 * up
    );
    let remarks = vec![made.setting_remark()?, course_remark(made.first()?), remark];
    Ok(Content { plot, stated: Vec::new(), remarks })
}

/// The moves of blocks while the programs ran.
fn moved(made: &Made<'_>) -> Result<Migration, LabError> {
    let record = made.first()?;
    let [start, programs, _] = ends(record)?;
    match (&start.migration, &programs.migration) {
        (Some(before), Some(after)) => Ok(after.since(before)),
        _ => Err(LabError::Plan(format!(
            "the run {} did not record where blocks \
                                         moved",
            record.key
        ))),
    }
}

const STEPS: usize = 2 * LEVELS_SHOWN + 2;

/// The fractions of the blocks on levels `from` that move to each destination. Element 0 is the
/// stash. The other elements are moves by a number of levels towards the leaves, from
/// -`LEVELS_SHOWN` to `LEVELS_SHOWN`.
fn steps(moved: &Migration, from: std::ops::Range<usize>) -> [f64; STEPS] {
    let mut counts = [0; STEPS];
    for level in from {
        let row = &moved.from_path[level];
        for (to, count) in row.iter().enumerate() {
            let place = match to {
                stash if stash == row.len() - 1 => 0,
                down if down > level => LEVELS_SHOWN + 1 + (down - level).min(LEVELS_SHOWN),
                up => LEVELS_SHOWN + 1 - (level - up).min(LEVELS_SHOWN),
            };
            counts[place] += count;
        }
    }
    let all = counts.iter().sum::<u64>().max(1) as f64;
    counts.map(|count| count as f64 / all)
}

/// The fractions of blocks that move nearer to the leaves, that stay, and that move nearer to the
/// root or to the stash.
fn directions(steps: &[f64; STEPS]) -> [f64; 3] {
    let (up, rest) = steps.split_at(LEVELS_SHOWN + 1);
    [rest[1..].iter().sum(), rest[0], up.iter().sum()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_counted_by_levels() {
        let levels = 9;
        let mut from_path = vec![vec![0; levels + 1]; levels];
        // From level 8: one level up, eight levels up, no move, and the stash. From level 1: three
        // levels down.
        from_path[8] = vec![2, 0, 0, 0, 0, 0, 0, 1, 4, 1];
        from_path[1][4] = 8;
        let moved =
            Migration { pre_existing: vec![0; levels], requested: vec![0; levels], from_path };
        let all = steps(&moved, 0..levels);
        let [stash, most_up, one_up, same, three_down] = [0, 1, 6, 7, 10].map(|place| all[place]);
        assert_eq!(
            [stash, most_up, one_up, same, three_down].map(|part| part * 16.0),
            [1.0, 2.0, 1.0, 4.0, 8.0]
        );
        assert_eq!(directions(&all), [0.5, 0.25, 0.25]);
        assert_eq!(steps(&moved, 0..8)[10], 1.0);
        assert_eq!(steps(&moved, 2..3), [0.0; STEPS]);
    }
}
