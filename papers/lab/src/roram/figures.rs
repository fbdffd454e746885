//! Makes rORAM's Fig. 6 for each medium, with two models of the disk, and collects the figures of
//! the other modules.

use super::{Form, Results, mix_figures, seek_figures};
use crate::report::{Curves, Figure, Plot, Series, Stated};
use oblivio_models::medium::Medium;

/// The base-2 logarithm of the smallest range, in blocks, for which the paper states a speed-up.
const STATED_FROM: u8 = 10;

/// Makes all figures of `results`.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let lengths = Medium::ALL.map(|medium| figure(results, medium));
    let mixes = Medium::ALL.map(|medium| mix_figures::figure(results, medium));
    lengths.into_iter().chain(mixes).chain(seek_figures::figures(results)).collect()
}

/// Describes the parameters of a figure, in words.
pub(super) fn origin(results: &Results) -> String {
    let (blocks, seed, version) = (1u64 << results.level, results.seed, &results.version);
    format!("{blocks} blocks of 4 KiB, seed {seed}, version {version}")
}

fn figure(results: &Results, medium: Medium) -> Figure {
    let series = Form::ALL.map(|form| Series {
        name: form.to_string(),
        values: (0..=results.ell)
            .filter_map(|exponent| {
                let cell = results.cell(form, medium, exponent)?;
                Some([f64::from(exponent), cell.seconds_per_block])
            })
            .collect(),
    });
    let curves = Curves {
        axes: ["blocks of a range (two to the …)".to_owned(), "seconds a block".to_owned()],
        is_log: true,
        series: series.into(),
    };
    let (part, paper, band) = match medium {
        Medium::Ssd => ("a", 25.0, 5.0),
        Medium::Disk | Medium::MeanDisk => ("b", 40.0, 10.0),
        Medium::Link | Medium::OtherLink { .. } => ("c", 10.0, 2.0),
    };
    let factors = results.factors(medium, Form::PathRecursive, Form::Roram, STATED_FROM);
    let mean = (!factors.is_empty()).then(|| factors.iter().sum::<f64>() / factors.len() as f64);
    let figure = Figure {
        id: format!("roram-fig06-{}", medium.id()),
        title: format!("Seconds a block on {medium}, by the length of a range"),
        paper: format!("rORAM, Fig. 6 ({part})"),
        plot: Plot::Curves(curves),
        stated: vec![Stated::new(
            format!("rORAM over Path ORAM, ranges of 2^{STATED_FROM} blocks and more, mean factor"),
            paper,
            band,
            mean,
        )],
        remarks: remarks(results, medium),
        origin: origin(results),
    };
    figure.explained(&[reason(medium)])
}

/// The reason why our factor on `medium` differs from the paper's factor.
pub(super) fn reason(medium: Medium) -> &'static str {
    match medium {
        Medium::Disk | Medium::MeanDisk => {
            "Path ORAM's seeks are short here: its trees take a fifteenth of the space of rORAM's, \
             on the same disk. This is the only difference between roram-fig06-mean-disk and \
             roram-fig06-disk."
        }
        Medium::Ssd | Medium::Link | Medium::OtherLink { .. } => {
            "not known. The paper names the medium, but not the time of a request on it. Here the \
             factor follows from two numbers, seconds a request and bytes a second, which were not \
             varied."
        }
    }
}

fn remarks(results: &Results, medium: Medium) -> Vec<String> {
    let range = |slow, fast, from| {
        let factors = results.factors(medium, slow, fast, from);
        if factors.is_empty() {
            return "not measured, ranges are shorter".to_owned();
        }
        let least = factors.iter().copied().fold(f64::INFINITY, f64::min);
        let most = factors.iter().copied().fold(0.0, f64::max);
        format!("{least:.1} to {most:.1}")
    };
    let of_volume = range(Form::PathRecursive, Form::Classes, STATED_FROM);
    vec![
        "Nothing is stored: random choices and counts determine the buckets, and a model of the \
         medium gives the time of a request. Requests come one after the other. A bucket of the \
         position map takes a sector."
            .to_owned(),
        format!(
            "Factors for ranges of 2^{STATED_FROM} blocks and more: rORAM over Path ORAM with a \
             recursive position map, {}; over Path ORAM with its map on the client, {}; over \
             Batched Eviction, {}.",
            range(Form::PathRecursive, Form::Roram, STATED_FROM),
            range(Form::PathFlat, Form::Roram, STATED_FROM),
            range(Form::BatchedEviction, Form::Roram, STATED_FROM),
        ),
        format!(
            "This project's volume with ranges of 4 KiB and 1 MiB, over Path ORAM with a recursive \
             map: {of_volume}; over its volume of blocks: {}. Ranges begin anywhere, so the ends \
             of most are read block by block.",
            range(Form::Blocks, Form::Classes, STATED_FROM),
        ),
    ]
}
