//! The contents of Figs. 3, 4 and 13, with the numbers that the paper states, and a plot of
//! background evictions.

use oblivio_sim::functional::Snapshot;

use super::course::RequestSource;
use super::figure::{Content, Made};
use super::readings::{Levels, ends, mean, mean_over_paths, middle_of, stretches};
use super::record::{BlocksRecord, Taken};
use crate::LabError;
use crate::evaluation::Variant;
use crate::report::{Bars, Curves, Plot, Series, Stated};

/// The quarters of the programs' paths after which Fig. 3 shows a snapshot. The figure also shows
/// the first snapshot, the last snapshot under programs, and the last snapshot of all.
const QUARTERS: [usize; 3] = [1, 2, 3];

/// Draws Fig. 3.
pub(super) fn baseline_levels(made: &Made<'_>) -> Result<Content, LabError> {
    let record = made.first()?;
    let levels = Levels::from_record(record)?;
    let top = 3;
    let each = || {
        record.snapshots.iter().filter_map(|taken| taken.snapshot.utilisation().get(top).copied())
    };
    let last = |utilisation: &[f64]| utilisation.last().copied();
    let stated = vec![
        number("level 3, the least of all snapshots", 0.11, 0.1, each().reduce(f64::min)),
        number("level 3, the most of all snapshots", 0.5, 0.15, each().reduce(f64::max)),
        number(
            "middle levels after programs, mean (20 % and lower)",
            0.1,
            0.1,
            middle_of(record, &levels.programs),
        ),
        number("middle levels after chance, mean", 0.3, 0.05, middle_of(record, &levels.chance)),
        number("last level after programs", 0.8, 0.05, last(&levels.programs)),
        number("last level after chance", 0.7, 0.05, last(&levels.chance)),
    ];
    Ok(Content {
        plot: curves(record)?,
        stated,
        remarks: vec![made.setting_remark()?, course_remark(record), mean_remark()],
    })
}

/// Draws Fig. 13.
pub(super) fn alloc_levels(made: &Made<'_>) -> Result<Content, LabError> {
    let record = made.first()?;
    let levels = Levels::from_record(record)?;
    let top = levels.chance.iter().take(4).copied().collect::<Vec<_>>();
    let stated = vec![
        number(
            "middle levels after chance, mean (more than 50 %)",
            0.75,
            0.25,
            middle_of(record, &levels.chance),
        ),
        number("levels 0 to 3 after chance, mean (rarely an empty slot)", 1.0, 0.1, mean(&top)),
    ];
    let mut remarks = vec![made.setting_remark()?, course_remark(record), mean_remark()];
    remarks.extend(middle_of(record, &levels.programs).map(|middle| {
        format!(
            "After programs the middle levels are {:.0} % full; the paper says that they are \
             fuller than without IR-Alloc and still low.",
            100.0 * middle
        )
    }));
    Ok(Content { plot: curves(record)?, stated, remarks })
}

/// Draws Fig. 4: the utilisation of the levels at the end of each run.
pub(super) fn levels_of_each(made: &Made<'_>) -> Result<Content, LabError> {
    let last = |record: &BlocksRecord| {
        record.snapshots.last().map(|taken| taken.snapshot.utilisation()).unwrap_or_default()
    };
    let series = made.runs().map(|(run, record)| Series {
        name: run.course.name().to_owned(),
        values: by_level(&last(record)),
    });
    let plot = over_levels(series.collect());
    let remark = "The paper has three plots and no numbers.";
    let remarks = vec![made.setting_remark()?, remark.to_owned()];
    Ok(Content { plot, stated: Vec::new(), remarks })
}

/// Plots the background evictions of each stretch of Fig. 3 and Fig. 13.
pub(super) fn evictions(made: &Made<'_>) -> Result<Content, LabError> {
    let labels: Vec<_> =
        stretches(made.first()?).into_iter().map(|(name, ..)| name.to_owned()).collect();
    let series = made.runs().map(|(run, record)| Series {
        name: title(run.variant).to_owned(),
        values: stretches(record)
            .into_iter()
            .map(|(_, from, to)| evictions_per_request(from, to))
            .collect(),
    });
    let plot = Plot::Bars(Bars {
        labels,
        value: EVICTIONS.to_owned(),
        stacked: false,
        series: series.collect(),
    });
    let remark = "The paper has no numbers: background eviction is low in general, and under \
                  chance there is a high possibility of it.";
    Ok(Content { plot, stated: Vec::new(), remarks: vec![remark.to_owned()] })
}

const EVICTIONS: &str = "background evictions per request";

fn evictions_per_request(from: &Snapshot, to: &Snapshot) -> Option<f64> {
    let requests = to.found.requests() - from.found.requests();
    let evictions = to.paths.evictions - from.paths.evictions;
    (requests > 0).then(|| evictions as f64 / requests as f64)
}

/// Plots one curve per selected snapshot, and one curve for the mean over all paths.
fn curves(record: &BlocksRecord) -> Result<Plot, LabError> {
    ends(record)?;
    let snapshots = &record.snapshots;
    let of_programs =
        snapshots.iter().filter(|taken| taken.after != RequestSource::UNIFORM).count() - 1;
    let shown = [0].into_iter().chain(QUARTERS.map(|quarter| of_programs * quarter / 4));
    let shown = shown.chain([of_programs, snapshots.len() - 1]);
    let curve = |number: usize| {
        let Taken { after, snapshot } = &snapshots[number];
        let name = match snapshot.paths.paths() {
            0 => "start".to_owned(),
            paths => format!("{}, after {after}", millions(paths)),
        };
        Series { name, values: by_level(&snapshot.utilisation()) }
    };
    let mean = Series { name: "mean".to_owned(), values: by_level(&mean_over_paths(snapshots)) };
    Ok(over_levels(shown.map(curve).chain([mean]).collect()))
}

pub(super) fn over_levels(series: Vec<Series<[f64; 2]>>) -> Plot {
    let axes = ["level".to_owned(), "part of the slots that hold blocks".to_owned()];
    Plot::Curves(Curves { axes, is_log: false, series })
}

pub(super) fn by_level(utilisation: &[f64]) -> Vec<[f64; 2]> {
    utilisation.iter().enumerate().map(|(level, part)| [level as f64, *part]).collect()
}

pub(super) fn course_remark(record: &BlocksRecord) -> String {
    let names: Vec<_> = stretches(record).into_iter().map(|(name, ..)| name).collect();
    format!(
        "One after the other: {}. Programs have equal shares of 37 in 40 paths; the paper does \
         not say how it mixed them.",
        names.join(", ")
    )
}

fn mean_remark() -> String {
    "The mean is over all paths: each snapshot counts for the paths since the one before, shown or \
     not."
        .to_owned()
}

pub(super) fn number(what: &str, paper: f64, band: f64, ours: Option<f64>) -> Stated {
    Stated::new(what, paper, band, ours)
}

fn millions(paths: u64) -> String {
    match paths {
        0..1_000_000 => format!("{} K", paths / 1000),
        _ => format!("{:.1} M", paths as f64 / 1e6),
    }
}

fn title(variant: &str) -> &str {
    Variant::named(variant).map_or(variant, |variant| &variant.title)
}
