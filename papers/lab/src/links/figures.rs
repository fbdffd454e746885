//! Draws the figures: time of a request and throughput, by the size of blocks, on each link; and
//! the steps from the paper's number to a volume.

use super::{Cell, Form, LinkStep, Results, all_links, id};
use crate::report::{Bars, Curves, Figure, Plot, Series, Stated};
use oblivio_models::link::{FRAME_BYTES, Link, REQUEST_BYTES};

/// Delay of Path ORAM in S³ORAM's Table 1, in seconds.
const STATED_SECONDS: f64 = 20.3;

/// The maximum difference from the stated delay, in seconds, that counts as agreement. The stated
/// delay has three digits, and the paper leaves the link's delay open.
const STATED_BAND: f64 = 0.1;

/// Name of the series whose bars show the steps.
const BY_THE_MODEL: &str = "by the model";

/// Makes the figures of `results`.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let of_links = all_links().flat_map(|link| [latency(results, link), rate(results, link)]);
    [steps(results)].into_iter().chain(of_links).collect()
}

fn steps(results: &Results) -> Figure {
    let ours =
        results.steps.iter().find(|cell| cell.step == LinkStep::Paper).map(|cell| cell.seconds);
    let seconds: Vec<_> = results.steps.iter().map(|cell| Some(cell.seconds)).collect();
    Figure {
        id: "links-steps".to_owned(),
        title: "From the paper's Path ORAM to a volume: 40 GB in blocks of 128 KiB".to_owned(),
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
            .at(BY_THE_MODEL, LinkStep::Paper.label()),
        ],
        remarks: vec![
            "The paper measured. This model divides bytes by rates, down and then up, and adds two \
             round trips of 25 ms, which the table does not state. Section 5 of the paper has \
             other \
             links, of 29/5 and 27/9 Mbit/s: the second and third bar only change the link. The \
             fourth bar only changes the slots of a bucket."
                .to_owned(),
            "From the fifth bar on, each bar makes one change to the bar before it, and shows the \
             time between two of many requests in flight. The sixth bar changes the scheme to RAW \
             ORAM: every fifth access writes a path, and buckets have headers and seals, which the \
             paper does not count. In the last bar the client keeps the upper levels."
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
            "A whole request with its share of evictions, one step after the other: all round \
             trips, then all bytes down, then all bytes up."
                .to_owned(),
            format!(
                "The block itself arrives earlier, if no other request is in flight and no \
                 eviction is due. Milliseconds, for the smallest to the largest blocks: {}.",
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
            "Whole blocks at random addresses, with enough requests in flight that the slower \
             direction is the bottleneck."
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
        "A model: a request for a piece takes {REQUEST_BYTES} bytes, and a message {FRAME_BYTES} \
         more. Path ORAM only moves blocks, as in the paper; volumes also move headers and seals. \
         If \
         the position map is in the tree, a request is several accesses. The default client has \
         48 MiB, and 96 MiB for blocks that need more."
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

/// Describes the parameters of a figure, in words.
fn origin(results: &Results) -> String {
    format!("a disk of {} bytes, version {}", results.disk_bytes, results.version)
}

#[cfg(test)]
mod tests {
    use super::super::{LinksPlan, PAPER_DISK_BYTES};
    use super::*;
    use crate::counting::results_of;

    #[test]
    fn the_stated_number_is_drawn_at_its_bar() {
        let figures = figures(&results_of(LinksPlan { disk_bytes: PAPER_DISK_BYTES }, 1).unwrap());
        assert_eq!((figures[0].stated.len(), figures[0].stated_drawn()), (1, 1));
    }
}
