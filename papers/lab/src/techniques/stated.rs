//! Compares numbers that the papers state with our counts.
//!
//! The papers state speeds as cycles of a simulated processor. Here a speed is a ratio of bytes:
//! the speed if only transfers to and from storage took time.

use std::fmt::Write;

use super::table::mean;
use super::technique::{
    NAME_BASELINE, NAME_CLIENT, NAME_FLAT, NAME_IR_ORAM, NAME_IR_STASH, NAME_LLC, NAME_LLC_D,
    NAME_LLC_D_IR, NAME_RAW, NAME_RAW_FLAT, NAME_RHO, NAME_SERVED,
};
use super::{Counts, Results};

/// A number that a paper states, and the counts to compare it with.
struct Stated {
    what: &'static str,
    paper: &'static str,
    technique: &'static str,
    against: &'static str,
    count: Count,
    on: On,
    shown: RatioForm,
}

/// The count to compare with the paper's number.
#[derive(Clone, Copy)]
enum Count {
    /// Path accesses for the position map.
    PositionMap,
    Bytes,
    BytesPerPath,
    AesBlocks,
}

/// The workloads under which the counts are compared.
#[derive(Clone, Copy)]
enum On {
    /// The traces, or all workloads if there are no traces.
    Programs,
    /// The workload of this name.
    One(&'static str),
}

/// The presentation of the number.
#[derive(Clone, Copy)]
enum RatioForm {
    /// The remaining fraction, such as 49 %.
    Left,
    /// The speed-up, such as +27 %.
    Faster,
    /// A factor, such as "3.4 times as much".
    Times,
    /// An inverse factor, such as "3.4 times less".
    TimesLess,
}

const HEAD: &str = "\
| what                                                        | the paper                      \
| here: mean (least to most)       |
|-------------------------------------------------------------|--------------------------------\
|----------------------------------|
";

const STATED: &[Stated] = &[
    path_slots("IR-Alloc 1: slots of a path in storage", "43 of 60: 72 %", "IR-Alloc 1"),
    path_slots("IR-Alloc 2: slots of a path in storage", "42 of 60: 70 %", "IR-Alloc 2"),
    path_slots("IR-Alloc 3: slots of a path in storage", "37 of 60: 62 %", "IR-Alloc 3"),
    path_slots("IR-Alloc 4: slots of a path in storage", "36 of 60: 60 %", "IR-Alloc 4"),
    speed("IR-Alloc 4: speed over Baseline", "+41 %", "IR-Alloc 4", NAME_BASELINE),
    Stated {
        on: On::One("uniform"),
        ..speed("the same, uniform requests", "no number (Fig. 16)", "IR-Alloc 4", NAME_BASELINE)
    },
    position_map("IR-Stash: position-map accesses over Baseline", NAME_CLIENT),
    position_map("the same, over a Baseline that serves stash hits", NAME_SERVED),
    speed("IR-Stash: speed over Baseline", "+27 %", NAME_IR_STASH, NAME_CLIENT),
    speed(
        "IR-Stash + IR-Alloc 1: speed over Baseline",
        "+57 %, with IR-DWB",
        NAME_IR_ORAM,
        NAME_CLIENT,
    ),
    speed("LLC-D: speed over Baseline", "faster mostly; mcf 1.9x slower", NAME_LLC_D, NAME_LLC),
    speed("IR-Stash + IR-Alloc: speed over LLC-D", "+72 %", NAME_LLC_D_IR, NAME_LLC_D),
    speed("Rho: speed over Baseline", "+11 %; mcf much slower", NAME_RHO, NAME_LLC),
    Stated {
        count: Count::AesBlocks,
        shown: RatioForm::TimesLess,
        ..speed("RAW ORAM: AES blocks, flat map", "about 3 times fewer", NAME_RAW_FLAT, NAME_FLAT)
    },
    speed("RAW ORAM: bytes, flat map", "+6 %", NAME_RAW_FLAT, NAME_FLAT),
    recursion("recursive over flat map, RAW ORAM, scan", "490 / 276 cycles: 1.8 times", "scan"),
    recursion("the same, no locality", "950 / 276 cycles: 3.4 times", "uniform"),
];

const fn speed(
    what: &'static str,
    paper: &'static str,
    technique: &'static str,
    against: &'static str,
) -> Stated {
    let (count, on, shown) = (Count::Bytes, On::Programs, RatioForm::Faster);
    Stated { what, paper, technique, against, count, on, shown }
}

const fn path_slots(what: &'static str, paper: &'static str, technique: &'static str) -> Stated {
    let (count, on, shown) = (Count::BytesPerPath, On::Programs, RatioForm::Left);
    Stated { what, paper, technique, against: NAME_BASELINE, count, on, shown }
}

const fn position_map(what: &'static str, against: &'static str) -> Stated {
    let (count, on, shown) = (Count::PositionMap, On::Programs, RatioForm::Left);
    Stated { what, paper: "49 %", technique: NAME_IR_STASH, against, count, on, shown }
}

const fn recursion(what: &'static str, paper: &'static str, workload: &'static str) -> Stated {
    let (count, on, shown) = (Count::Bytes, On::One(workload), RatioForm::Times);
    Stated { what, paper, technique: NAME_RAW, against: NAME_RAW_FLAT, count, on, shown }
}

impl Results {
    /// A table of the numbers that papers state, with our counts.
    pub fn paper_table(&self) -> String {
        STATED.iter().fold(HEAD.to_owned(), |mut table, stated| {
            let ratios = stated.ratios(self);
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {:59} | {:30} | {:32} |",
                stated.what,
                stated.paper,
                stated.shown.text(&ratios)
            );
            table
        })
    }
}

impl Stated {
    /// The ratio for each compared workload.
    fn ratios(&self, results: &Results) -> Vec<f64> {
        let over = |count: fn(&Counts) -> u64| results.over(self.technique, self.against, count);
        let all = match self.count {
            Count::PositionMap => over(|counts| counts.position_map),
            Count::Bytes => over(|counts| counts.bytes),
            Count::AesBlocks => over(|counts| counts.aes_blocks),
            Count::BytesPerPath => {
                let paths = over(Counts::paths);
                over(|counts| counts.bytes).iter().zip(paths).map(|(a, b)| a / b).collect()
            }
        };
        let is_made = |number| number < all.len() - results.traces.len().min(all.len());
        let counts = |number, workload| match self.on {
            On::One(name) => workload == name,
            On::Programs => results.traces.is_empty() || !is_made(number),
        };
        let named = all.iter().zip(results.workloads()).enumerate();
        named
            .filter(|(number, (_, workload))| counts(*number, *workload))
            .map(|(_, (ratio, _))| *ratio)
            .collect()
    }
}

impl RatioForm {
    fn text(self, ratios: &[f64]) -> String {
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        match sorted[..] {
            [] => String::new(),
            [one] => self.one(one),
            [least, .., most] => {
                let [mean, least, most] = [mean(ratios), least, most].map(|ratio| self.one(ratio));
                match self {
                    _ if least == most => mean,
                    Self::Left | Self::Times => format!("{mean} ({least} to {most})"),
                    Self::Faster | Self::TimesLess => format!("{mean} ({most} to {least})"),
                }
            }
        }
    }

    fn one(self, ratio: f64) -> String {
        match self {
            Self::Left => format!("{:.0} %", 100.0 * ratio),
            Self::Faster => format!("{:+.0} %", 100.0 * (1.0 / ratio - 1.0)),
            Self::Times => format!("{ratio:.2} times"),
            Self::TimesLess => format!("{:.2} times", 1.0 / ratio),
        }
    }
}
