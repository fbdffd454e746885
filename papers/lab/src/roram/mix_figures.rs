//! rORAM's Fig. 7: the throughput of mixes of programs on each medium.

use super::figures::{origin, reason};
use super::recordings::Mix;
use super::{Form, Results};
use crate::report::{Bars, Figure, Plot, Series, Stated};
use oblivio_models::medium::Medium;

pub(super) fn figure(results: &Results, medium: Medium) -> Figure {
    let series = Form::ALL.map(|form| Series {
        name: form.to_string(),
        values: Mix::ALL
            .map(|mix| results.mix(form, medium, mix).map(|cell| cell.blocks_per_second()))
            .into(),
    });
    let bars = Bars {
        labels: Mix::ALL.map(|mix| mix.to_string()).into(),
        value: "blocks a second".to_owned(),
        stacked: false,
        series: series.into(),
    };
    let stated = Mix::ALL.map(|mix| {
        let (paper, band) = stated(medium, mix);
        let ours = results.mix_factor(medium, mix, Form::PathRecursive, Form::Roram);
        Stated::new(format!("rORAM over Path ORAM, {mix}"), paper, band, ours)
    });
    let figure = Figure {
        id: format!("roram-fig07-{}", medium.id()),
        title: format!("Blocks a second for file systems on {medium}"),
        paper: format!("rORAM, Fig. 7 ({})", part(medium)),
        plot: Plot::Bars(bars),
        stated: stated.into(),
        remarks: remarks(results, medium),
        origin: origin(results),
    };
    figure.explained(&[why(medium)])
}

/// The reason why factors differ from the paper's factors.
fn why(medium: Medium) -> &'static str {
    match medium {
        Medium::Disk | Medium::MeanDisk => {
            "the factor follows from the lengths of requests, which the paper does not give. Ours \
             are 1 MiB (SeqRead), at most 128 KiB (FileServer) and 256 KiB (VideoServer). Fig. 6 \
             has about these factors for ranges of 2^8, 2^5 and 2^6 blocks."
        }
        Medium::Ssd | Medium::Link | Medium::OtherLink { .. } => reason(medium),
    }
}

fn part(medium: Medium) -> &'static str {
    match medium {
        Medium::Disk | Medium::MeanDisk => "a",
        Medium::Ssd => "b",
        Medium::Link | Medium::OtherLink { .. } => "c",
    }
}

/// The paper's factor for a mix on a medium, and the largest difference that counts as agreement.
/// For the file server the paper says "up to".
fn stated(medium: Medium, mix: Mix) -> (f64, f64) {
    match (mix, medium) {
        (Mix::SeqRead, Medium::Disk | Medium::MeanDisk | Medium::Ssd) => (12.5, 2.5),
        (Mix::SeqRead, _) => (6.0, 1.0),
        (Mix::FileServer, _) => (5.0, 1.0),
        (Mix::VideoServer, Medium::Disk | Medium::MeanDisk) => (11.0, 2.0),
        (Mix::VideoServer, Medium::Ssd) => (8.0, 1.5),
        (Mix::VideoServer, _) => (4.0, 1.0),
    }
}

fn remarks(results: &Results, medium: Medium) -> Vec<String> {
    let factors = |slow, fast| {
        let factor = |mix| match results.mix_factor(medium, mix, slow, fast) {
            Some(factor) => format!("{mix} {factor:.1}"),
            None => format!("{mix} not measured"),
        };
        Mix::ALL.map(factor).join(", ")
    };
    let requests = Mix::ALL.map(|mix| {
        let cell = results.mix(Form::Roram, medium, mix);
        let (requests, blocks) = cell.map_or((0, 0), |cell| (cell.requests, cell.blocks));
        format!("{mix} {requests} requests of {blocks} blocks")
    });
    vec![
        format!(
            "Requests of an ext4 file system to a disk of 16 GiB were recorded once, and are \
             replayed: {}. They come one after the other, and reads and writes take equal time. \
             The paper counts queries, and does not define them.",
            requests.join(", ")
        ),
        format!(
            "rORAM over Path ORAM with its map on the client: {}; over Batched Eviction: {}.",
            factors(Form::PathFlat, Form::Roram),
            factors(Form::BatchedEviction, Form::Roram)
        ),
        format!(
            "This project's volume with ranges of 4 KiB and 1 MiB over its volume of blocks: {}; \
             over one of blocks of 1 MiB, which reads a mebibyte for any block: {}.",
            factors(Form::Blocks, Form::Classes),
            factors(Form::Mebibytes, Form::Classes)
        ),
    ]
}
