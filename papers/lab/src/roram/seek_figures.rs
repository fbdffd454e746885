//! Seeks of rORAM: by the number of blocks, and in storage of several parts.

use super::Results;
use super::figures::origin;
use super::results::SeekCell;
use crate::report::{Curves, Figure, Plot, Series};

pub(super) fn figures(results: &Results) -> [Figure; 2] {
    [by_blocks(results), by_parts(results)]
}

fn by_blocks(results: &Results) -> Figure {
    let whole: Vec<_> = results.seeks.iter().filter(|cell| cell.parts == 1).collect();
    let points = |is_shown: &dyn Fn(&SeekCell) -> bool| {
        let shown = whole.iter().filter(|cell| is_shown(cell));
        let mut points: Vec<_> = shown.map(|cell| [f64::from(cell.level), cell.seeks]).collect();
        points.dedup();
        points
    };
    let all = points(&|cell| cell.ell == cell.level);
    let some = points(&|cell| cell.ell == results.ell.min(cell.level));
    let squares = all.iter().map(|[level, seeks]| seeks / (level * level));
    let (least, most) =
        squares.fold((f64::INFINITY, 0f64), |(least, most), it| (least.min(it), most.max(it)));
    let factor = match all.is_empty() {
        true => "There are too few blocks for a figure.".to_owned(),
        false => format!(
            "With ranges of all lengths, {least:.2} to {most:.2} log² N: O(log² N), as in the \
             paper."
        ),
    };
    figure(
        results,
        "roram-seeks",
        "Seeks of an access, by the number of blocks",
        ["blocks (two to the …)", "seeks of an access"],
        vec![
            Series { name: format!("ranges up to 2^{}", results.ell), values: some },
            Series { name: "ranges up to all blocks".to_owned(), values: all },
        ],
        format!(
            "{factor} Each tree is read and written once, and the tree of the range twice more; a \
             level of a run takes one seek, or two if the run wraps."
        ),
    )
}

fn by_parts(results: &Results) -> Figure {
    let is_it = |cell: &&SeekCell| (cell.level, cell.ell) == (results.level, results.ell);
    let cells: Vec<_> = results.seeks.iter().filter(is_it).collect();
    let one = cells.iter().find(|cell| cell.parts == 1).map_or(f64::NAN, |cell| cell.seeks);
    let levels = f64::from(results.level + 1);
    let points = |value: &dyn Fn(&SeekCell) -> f64| {
        let mut points: Vec<_> =
            cells.iter().map(|cell| [f64::from(cell.parts), value(cell)]).collect();
        points.dedup();
        points
    };
    let formula = |parts: f64| one * (1.0 + levels / parts) / (1.0 + levels);
    figure(
        results,
        "roram-parallel",
        "Sequential seeks of an access, by the parts of storage",
        ["parts", "sequential seeks of an access"],
        vec![
            Series {
                name: "levels assigned in \
                            turn"
                    .to_owned(),
                values: points(&|cell| cell.seeks),
            },
            Series {
                name: "log N · (1 + log N / k), through the first point".to_owned(),
                values: points(&|cell| formula(cell.parts.into())),
            },
            Series {
                name: "a k-th of the first point".to_owned(),
                values: points(&|cell| one / f64::from(cell.parts)),
            },
        ],
        format!(
            "Levels of trees are assigned to parts in turn, and parts seek in parallel. The \
             speed-up is perfect while the number of parts divides the {levels} levels, and ends \
             with one part for each level."
        ),
    )
}

fn figure(
    results: &Results,
    id: &str,
    title: &str,
    axes: [&str; 2],
    series: Vec<Series<[f64; 2]>>,
    remark: String,
) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        paper: "rORAM, sections VI and VIII-A".to_owned(),
        plot: Plot::Curves(Curves { axes: axes.map(str::to_owned), is_log: false, series }),
        stated: Vec::new(),
        remarks: vec![remark],
        origin: origin(results),
    }
}
