//! The figures: bandwidths, and latencies.

use oblivio_sim::dram::bandwidth::{Load, Unloaded};
use oblivio_sim::dram::published::{Quantity, Verdict};

use super::Results;
use crate::report::{Bars, Figure, Plot, Series, Stated};

/// The simulators whose numbers are compared.
const PAPER: &str = "USIMM, DRAMsim3, Ramulator 1";

/// The name of this simulator's bars.
const OURS: &str = "this simulator";

/// Makes the figures of `results`.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let spec = &results.part;
    let peaks = [1, 4].map(|channels| format!("{:.1}", spec.peak_gb_per_second(channels)));
    let bandwidth = figure(
        results,
        "dram-bandwidth",
        "Bandwidth of the simulated DRAM under load",
        "GB/s",
        format!(
            "The data buses of {} move {} GB/s on 1 channel and {} GB/s on 4. Up to 128 requests \
             are in flight, as through a reorder buffer; paths are 15 buckets of 256 bytes at \
             random addresses, read and then written.",
            spec.name, peaks[0], peaks[1]
        ),
        |verdict| matches!(verdict.cell.quantity, Quantity::Bandwidth(_)),
    );
    let latency = figure(
        results,
        "dram-latency",
        "Latency of a read in the idle simulated DRAM",
        "clocks of the command bus",
        "USIMM reports processor cycles, four to a clock, and the same values for any number of \
         channels."
            .to_owned(),
        |verdict| matches!(verdict.cell.quantity, Quantity::Latency(_)),
    );
    vec![bandwidth, latency]
}

fn figure(
    results: &Results,
    id: &str,
    title: &str,
    value: &str,
    remark: String,
    is_shown: impl Fn(&Verdict) -> bool,
) -> Figure {
    let shown: Vec<_> = results.measured.iter().filter(|verdict| is_shown(verdict)).collect();
    let series = |name: &str, value: fn(&Verdict) -> Option<f64>| Series {
        name: name.to_owned(),
        values: shown.iter().map(|verdict| value(verdict)).collect(),
    };
    let bars = Bars {
        labels: shown.iter().map(|verdict| label(verdict)).collect(),
        value: value.to_owned(),
        stacked: false,
        series: vec![
            series("USIMM", |verdict| verdict.cell.usimm),
            series("DRAMsim3", |verdict| verdict.cell.dramsim3),
            series("Ramulator 1", |verdict| verdict.cell.ramulator),
            series(OURS, |verdict| Some(verdict.ours)),
        ],
    };
    let bands = "The published simulators differ from each other. The band extends beyond their \
                 smallest and largest number: by 2 % for streams, 5 % for other loads, 3 clocks \
                 for reads of idle DRAM. The stated number is its middle.";
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        paper: PAPER.to_owned(),
        plot: Plot::Bars(bars),
        stated: shown.iter().map(|verdict| stated(verdict)).collect(),
        remarks: vec![bands.to_owned(), remark],
        origin: format!(
            "{} of specs/, seed {}, version {}",
            results.part.name, results.seed, results.version
        ),
    }
}

fn stated(verdict: &Verdict) -> Stated {
    let (least, most) = verdict.cell.band();
    let (middle, band) = (f64::midpoint(least, most), (most - least) / 2.0);
    Stated::new(label(verdict), middle, band, Some(verdict.ours)).at(OURS, label(verdict))
}

fn label(verdict: &Verdict) -> String {
    let what = match verdict.cell.quantity {
        Quantity::Bandwidth(Load::StreamRead) => "stream read",
        Quantity::Bandwidth(Load::RandomRead) => "random read",
        Quantity::Bandwidth(Load::StreamReadWrite) => "stream read and write",
        Quantity::Bandwidth(Load::RandomReadWrite) => "random read and write",
        Quantity::Bandwidth(Load::PathLike) => "path-like",
        Quantity::Latency(Unloaded::RowHit) => "read of an open row",
        Quantity::Latency(Unloaded::Random) => "read anywhere",
    };
    let channels = verdict.cell.channels;
    format!("{what}, {channels} channel{}", if channels == 1 { "" } else { "s" })
}
