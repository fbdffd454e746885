//! What a report shows: how long a request takes and how many bytes there are a second, by the size of blocks, on each link; and
//! the steps from the paper's figure to a volume.

use super::{Cell, Form, Results, Step, all_links, id};
use crate::report::{Bars, Curves, Figure, Plot, Series, Stated};
use oblivio_models::link::{FRAME_BYTES, Link, REQUEST_BYTES};

/// What S³ORAM states for Path ORAM in its Table 1, in seconds.
const STATED_SECONDS: f64 = 20.3;

/// How far a figure of three digits and a delay that the paper leaves open may be from it.
const STATED_BAND: f64 = 0.1;

/// What the bars of the steps are called.
const BY_THE_MODEL: &str = "by the model";

/// The figures of `results`.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let of_links = all_links().flat_map(|link| [latency(results, link), rate(results, link)]);
    [steps(results)].into_iter().chain(of_links).collect()
}

fn steps(results: &Results) -> Figure {
    let ours = results.steps.iter().find(|cell| cell.step == Step::Paper).map(|cell| cell.seconds);
    let seconds: Vec<_> = results.steps.iter().map(|cell| Some(cell.seconds)).collect();
    Figure {
        id: "links-steps".to_owned(),
        title: "From the paper's Path ORAM to a volume: 40 GB in blocks of 128 KiB, seconds a request".to_owned(),
        paper: "S³ORAM, Table 1".to_owned(),
        plot: Plot::Bars(Bars {
            labels: results.steps.iter().map(|cell| cell.step.label().to_owned()).collect(),
            value: "seconds a request".to_owned(),
            stacked: false,
            series: vec![Series { name: BY_THE_MODEL.to_owned(), values: seconds }],
        }),
        stated: vec![
            Stated::new(
                "Path ORAM, end-to-end delay on 27/6 Mbit/s, seconds",
                STATED_SECONDS,
                STATED_BAND,
                ours,
            )
            .at(BY_THE_MODEL, Step::Paper.label()),
        ],
        remarks: vec![
            "The paper measured; this is bytes over rates, down and then up, and two round trips of 25 ms, which the table does not \
             state. Its section 5 has other links, of 29/5 and 27/9: the second and third bar change nothing but the link. So does \
             the fourth with the slots of a bucket."
                .to_owned(),
            "From the fifth bar on, each is the one before with one change, and the time is that between two requests with many under way. \
             The sixth changes the scheme: a path is written every fifth time, in a tree of its own, with what seals and finds blocks, which the paper's \
             bytes leave out. The last leaves upper levels to the client."
                .to_owned(),
        ],
        origin: origin(results),
    }
}

fn latency(results: &Results, link: Link) -> Figure {
    let answers = Form::ALL.map(|form| {
        let of_form = results.cells.iter().filter(|cell| (cell.form, cell.link) == (form, link));
        let seconds = of_form.map(|cell| cell.answer_seconds);
        let (least, most) =
            seconds.fold((f64::INFINITY, 0f64), |(least, most), it| (least.min(it), most.max(it)));
        format!("{form} {:.0} to {:.0}", least * 1e3, most * 1e3)
    });
    figure(
        results,
        link,
        ("latency", "Seconds a request", "seconds a request"),
        &|cell| cell.serial_seconds,
        vec![
            "The whole request with its share of evictions, nothing done at the same time: all trips, then all bytes down, then all bytes up."
                .to_owned(),
            format!(
                "The block itself is there earlier, if nothing else is under way and no eviction is due; milliseconds, from the smallest to the largest blocks: {}.",
                answers.join(", ")
            ),
        ],
    )
}

fn rate(results: &Results, link: Link) -> Figure {
    figure(
        results,
        link,
        ("rate", "Megabytes of blocks a second", "MB/s"),
        &|cell| cell.bytes_per_second() / 1e6,
        vec![
            "Whole blocks at places anywhere, with so many requests under way that the slower direction is the bound."
                .to_owned(),
        ],
    )
}

fn figure(
    results: &Results,
    link: Link,
    (kind, title, axis): (&str, &str, &str),
    value: &dyn Fn(&Cell) -> f64,
    mut remarks: Vec<String>,
) -> Figure {
    let series = Form::ALL.map(|form| {
        let of_form = results.cells.iter().filter(|cell| (cell.form, cell.link) == (form, link));
        let points = of_form.map(|cell| [f64::from(cell.block_bytes).log2() - 10.0, value(cell)]);
        Series { name: form.to_string(), values: points.collect() }
    });
    remarks.push(format!(
        "A model: {REQUEST_BYTES} bytes ask for a piece, {FRAME_BYTES} are around a message. Path ORAM moves blocks alone, as in the paper; \
         volumes also move what seals and finds them. Where the map lies in the tree, a request is several accesses. The default \
         client has 48 MiB, and 96 MiB where blocks have no room in less."
    ));
    Figure {
        id: format!("links-{kind}-{}", id(link)),
        title: format!("{title} by the size of blocks, on {link}"),
        paper: "S³ORAM, section 5".to_owned(),
        plot: Plot::Curves(Curves {
            axes: ["KiB of a block (two to the …)".to_owned(), axis.to_owned()],
            is_log: true,
            series: series.into(),
        }),
        stated: Vec::new(),
        remarks,
        origin: origin(results),
    }
}

/// From what a figure was made.
fn origin(results: &Results) -> String {
    format!("a disk of {} bytes, version {}", results.disk_bytes, results.version)
}

#[cfg(test)]
mod tests {
    use super::super::{PAPER_DISK_BYTES, Plan};
    use super::*;
    use crate::counting::results_of;

    #[test]
    fn what_the_paper_states_is_drawn_at_its_bar() {
        let figures = figures(&results_of(Plan { disk_bytes: PAPER_DISK_BYTES }, 1).unwrap());
        assert_eq!((figures[0].stated.len(), figures[0].stated_drawn()), (1, 1));
    }
}
