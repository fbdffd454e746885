//! Makes the figures: the paper's formulas next to our counts, and the tails of the stash.

use super::RawTrafficSetting;
use super::formula;
use super::results::{Results, SettingResult};
use crate::report::{Bars, Curves, Figure, Plot, Series, Stated};

/// The setting that the paper chose, for which it states numbers.
const CHOSEN: RawTrafficSetting = RawTrafficSetting { z: 5, a: 5 };

/// Makes the figures: memory, encryption, stash.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    vec![memory(results), encryption(results), stash(results)]
}

fn memory(results: &Results) -> Figure {
    let relative = |of: &dyn Fn(&SettingResult) -> f64| -> Vec<Option<f64>> {
        results.settings.iter().map(|result| Some(of(result))).collect()
    };
    let counted = |result: &SettingResult| result.counted.units / results.path.units;
    let series = vec![
        series("formula", relative(&|r| formula::memory(r.setting) / formula::path())),
        series("counted", relative(&counted)),
        series(
            "bytes, with the engine's headers",
            relative(&|r| r.counted.bytes / results.path.bytes),
        ),
    ];
    let ours = results.settings.iter().find(|result| result.setting == CHOSEN).map(counted);
    let stated = vec![number("Z5 A5, memory traffic over Path ORAM's", 0.94, 0.01, ours)];
    let remark = "Formula: Z + 2 + 2 (Z + 1) / A blocks for each bucket of a path, over the \
                  2 (Z + 1) = 10 of Path ORAM with Z = 4. Counted: the engine's requests to its \
                  store, with a header counted as a block, as in the paper. The last bars are its \
                  bytes, with headers of their actual size.";
    figure(results, "raw-memory", "Memory traffic of RAW ORAM over Z and A", series, stated, remark)
}

fn encryption(results: &Results) -> Figure {
    let relative = |of: &dyn Fn(&SettingResult) -> f64| -> Vec<Option<f64>> {
        results.settings.iter().map(|result| Some(of(result))).collect()
    };
    let counted = |result: &SettingResult| result.counted.aes_blocks / results.path.aes_blocks;
    let series = vec![
        series("formula", relative(&|r| formula::encryption(r.setting) / formula::path())),
        series("AES blocks", relative(&counted)),
    ];
    let chosen = results.settings.iter().find(|result| result.setting == CHOSEN);
    let ours = chosen.map(|result| 1.0 / counted(result));
    let stated = vec![number("Z5 A5, encryption of Path ORAM over its own (~3)", 3.0, 0.3, ours)];
    let remark = "Formula: roughly 1 + 2 (Z + 1) / A blocks for each bucket of a path, over 10. \
                  Counted: AES blocks that the engine computed, with its own headers, over those \
                  by Path ORAM.";
    figure(results, "raw-encryption", "Encryption of RAW ORAM over Z and A", series, stated, remark)
}

fn stash(results: &Results) -> Figure {
    let tail = |result: &SettingResult| Series {
        name: name(result.setting),
        values: result.survival().log2().map(|(n, log2)| [n as f64, log2]).collect(),
    };
    let bound = |result: &SettingResult| result.fit().map(|fit| fit.stash_blocks_max);
    let bounds = results.settings.iter().map(|result| {
        let bound = match (result.ran_away(), bound(result)) {
            (true, _) => "the stash ran away".to_owned(),
            (false, Some(c)) => format!("{:.0} ({:.0} to {:.0})", c.value, c.low, c.high),
            (false, None) => "too little of a tail".to_owned(),
        };
        let analysis = if formula::ring_bound(result.setting) > 0.0 { "holds" } else { "fails" };
        format!("{}: {bound}, analysis {analysis}", name(result.setting))
    });
    let remarks = vec![
        format!(
            "C for an overflow probability of 2^-80, with its interval of 95 %, by the method of \
             the stash study; and whether Ring ORAM's condition Z ln(2Z/A) + A/2 - Z - ln 4 > 0 \
             holds, without which its analysis gives no bound: {}.",
            bounds.collect::<Vec<_>>().join("; ")
        ),
        "Blocks left after each eviction, A/2 blocks a leaf, under a round-robin scan. The stash \
         study tests the paper's C = 64, with more accesses on a deeper tree."
            .to_owned(),
    ];
    let plot = Plot::Curves(Curves {
        axes: ["n".to_owned(), "log2 P(more than n blocks are left)".to_owned()],
        is_log: false,
        series: results.settings.iter().map(tail).collect(),
    });
    Figure {
        id: "raw-stash".to_owned(),
        title: "Tails of the stash of RAW ORAM over Z and A".to_owned(),
        paper: "Tiny ORAM, section IV-B".to_owned(),
        plot,
        stated: Vec::new(),
        remarks,
        origin: origin(results),
    }
}

fn figure(
    results: &Results,
    id: &str,
    title: &str,
    series: Vec<Series<Option<f64>>>,
    stated: Vec<Stated>,
    remark: &str,
) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        paper: "Tiny ORAM, Fig. 6".to_owned(),
        plot: Plot::Bars(Bars {
            labels: results.settings.iter().map(|result| name(result.setting)).collect(),
            value: "over Path ORAM with Z = 4".to_owned(),
            stacked: false,
            series,
        }),
        stated,
        remarks: vec![remark.to_owned()],
        origin: origin(results),
    }
}

fn series(name: &str, values: Vec<Option<f64>>) -> Series<Option<f64>> {
    Series { name: name.to_owned(), values }
}

fn name(RawTrafficSetting { z, a }: RawTrafficSetting) -> String {
    format!("Z{z} A{a}")
}

fn number(what: &str, paper: f64, band: f64, ours: Option<f64>) -> Stated {
    Stated::new(what, paper, band, ours)
}

fn origin(results: &Results) -> String {
    let plan = &results.plan;
    format!(
        "traffic of {} accesses with leaves on level {}; stash of {} accesses for each Z and A in \
         {} runs, with leaves on level {}; seed {}",
        plan.counted_accesses,
        plan.counted_leaf_level,
        plan.stash_accesses,
        plan.runs,
        plan.stash_leaf_level,
        plan.seed
    )
}
