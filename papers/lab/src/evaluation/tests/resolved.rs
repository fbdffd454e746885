//! The runs of each manifest are fixed, so that recorded runs still belong to their figures.

use super::*;

/// For each figure, the number of its runs, and a checksum over their names, seeds and labels. The
/// name of a run contains all parameters that the run depends on. The runs are in the committed
/// results. If a figure changes on purpose, update its checksum and repeat its runs.
const RESOLVED: [(&str, usize, u32); 35] = [
    ("slowdown", 112, 1848298618),
    ("slowdown-real", 10, 3519576821),
    ("fig02", 238, 4261035473),
    ("fig02-real", 5, 1317847443),
    ("fig10", 1020, 4029929678),
    ("unpaced", 70, 2881883336),
    ("fig11", 102, 1006152476),
    ("deepsjeng", 4, 4168563155),
    ("fig12", 196, 4173292475),
    ("fig14", 148, 1564894761),
    ("fig15", 140, 317316107),
    ("fig16", 169, 4239548694),
    ("made", 32, 387000482),
    ("fetches", 90, 946775688),
    ("requests", 350, 2486148797),
    ("plb", 40, 3683453206),
    ("cells", 336, 2479464296),
    ("depth", 12, 4106605753),
    ("initial", 140, 1046721852),
    ("old", 210, 972752726),
    ("in-order", 252, 4181074656),
    ("in-order-paths", 28, 1821641127),
    ("rho-rules", 70, 3985819051),
    ("real", 40, 1485508364),
    ("real-one-channel", 40, 338786532),
    ("pages", 16, 2191923172),
    ("energy", 154, 2190117419),
    ("tree-top", 24, 931142910),
    ("tree-top-size", 4, 2656189886),
    ("context-switch", 45, 4208920953),
    ("context-switch-speed", 45, 904295222),
    ("context-switch-paths", 45, 4208920953),
    ("block-size", 27, 3986873372),
    ("positions-on-chip", 30, 2342061541),
    ("tiny07", 21, 654688248),
];

fn resolved(figure: &Manifest, plan: &EvaluationPlan) -> (usize, u32) {
    let runs = plan.runs_of(figure).unwrap();
    let mut sum = crc32fast::Hasher::new();
    let mut add = |text: &str| {
        sum.update(text.as_bytes());
        sum.update(b"\n");
    };
    for run in &runs {
        add(&format!("{} {}", plan.key(run), plan.seed_of(&run.workload)));
    }
    for setting in &figure.settings {
        let of_each = |run: Run| format!("{} {}", plan.key(&run), setting.label(24));
        add(&of_each(plan.run(&figure.variants[0], "uniform", setting).unwrap()));
    }
    for number in &figure.stated {
        for NumberReading { name, setting } in &number.readings {
            let run = plan.run(&number.variant, "uniform", setting).unwrap();
            add(&format!("{}: {name}: {}", number.what, plan.key(&run)));
        }
    }
    (runs.len(), sum.finalize())
}

#[test]
fn the_runs_of_each_figure_have_not_changed() {
    let (_, plan, _) = committed("evaluation-parts");
    let all = Manifest::all().unwrap();
    let found: Vec<_> = all
        .iter()
        .map(|figure| {
            let (runs, sum) = resolved(figure, &plan);
            (figure.id.as_str(), runs, sum)
        })
        .collect();
    assert_eq!(found, RESOLVED);
}
