//! Fig. 5: to which level blocks go when a path is written back.

use oblivio_sim::functional::Migration;

use super::figure::{Content, Made};
use super::makers::course_remark;
use super::readings::ends;
use crate::LabError;
use crate::report::{Bars, Curves, Plot, Series};

/// So many levels nearer to the root or to the leaves are shown, and what is further with the last.
const LEVELS_SHOWN: usize = 6;

/// Fig. 5(a): blocks that were in the stash before the path was read, and those that were asked for.
pub(super) fn of_the_stash(made: &Made<'_>) -> Result<Content, LabError> {
    let moved = moved(made)?;
    let part = |counts: &[u64]| {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let points = (0..).zip(counts);
        points.map(|(level, count)| [f64::from(level), *count as f64 / all]).collect()
    };
    let series = [("pre-existing", &moved.pre_existing), ("asked for", &moved.asked)];
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
        "Of the pre-existing blocks that find a place, {:.1} % go to levels 0 to 9. The paper says that they tend to go \
         to a top level, and has no numbers.",
        100.0 * upper
    );
    let remarks = vec![made.setting_remark()?, course_remark(made.first()?), remark];
    Ok(Content { plot, stated: Vec::new(), remarks })
}

/// Fig. 5(b): blocks that were on the path, by how much nearer to the leaves they are after it.
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
        "Of the blocks that a path brought and nobody asked for, {:.1} % go to the same level, {:.1} % nearer to the \
         leaves, and {:.1} % nearer to the root or to the stash. The paper says that they are likely to go to the same or \
         lower levels, and has no numbers.",
        100.0 * same,
        100.0 * down,
        100.0 * up
    );
    let remarks = vec![made.setting_remark()?, course_remark(made.first()?), remark];
    Ok(Content { plot, stated: Vec::new(), remarks })
}

/// What moved under programs.
fn moved(made: &Made<'_>) -> Result<Migration, LabError> {
    let record = made.first()?;
    let [start, programs, _] = ends(record)?;
    match (&start.migration, &programs.migration) {
        (Some(before), Some(after)) => Ok(after.since(before)),
        _ => Err(LabError::Plan(format!("nobody watched where blocks went in {}", record.key))),
    }
}

const STEPS: usize = 2 * LEVELS_SHOWN + 2;

/// Of the blocks on levels `from`: the part that goes to the stash, then by steps towards the leaves, from those
/// that go up on.
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

/// The parts that go nearer to the leaves, nowhere, and nearer to the root or to the stash.
fn directions(steps: &[f64; STEPS]) -> [f64; 3] {
    let (up, rest) = steps.split_at(LEVELS_SHOWN + 1);
    [rest[1..].iter().sum(), rest[0], up.iter().sum()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_by_steps_from_where_they_were() {
        let levels = 9;
        let mut from_path = vec![vec![0; levels + 1]; levels];
        // From level 8: one step and eight steps up, the same, and the stash. From level 1: three down.
        from_path[8] = vec![2, 0, 0, 0, 0, 0, 0, 1, 4, 1];
        from_path[1][4] = 8;
        let moved = Migration { pre_existing: vec![0; levels], asked: vec![0; levels], from_path };
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
