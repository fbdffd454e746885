//! An experiment that may explain why a number differs, named by its bars: what it makes of the number is looked up.

use serde::{Deserialize, Serialize};

use super::{Figure, NotFigures, Plot, Verdict};

/// Two bars of a figure: one that has our number, as it stands or under a reading, and one of runs in which a thing or two are
/// changed. It has no number of its own: whether it explains anything is known where its figure is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Change {
    /// The id of the figure.
    pub figure: String,
    /// The bar that it starts from.
    pub from: BarName,
    /// The bar of what was changed.
    pub to: BarName,
    /// What differs between the runs of the two: `workload` or `trace`, or keys of their specification: `oram.remap`.
    pub differs_in: Vec<String>,
    /// The values of the two bars, which no file gives.
    #[serde(skip)]
    pub(super) found: Option<[f64; 2]>,
}

/// Which bar of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarName {
    /// The series that it is of.
    pub series: String,
    /// What stands under it.
    pub label: String,
}

/// A change that explains a number, by what was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// One setting.
    OneSetting,
    /// The program, and nothing else. That a program has the paper's number does not say that the paper's program is like it.
    OtherProgram,
    /// Two settings, of which neither alone is known to do it.
    TwoSettings,
}

impl Change {
    /// What kind of change it is.
    pub fn kind(&self) -> ChangeKind {
        match &*self.differs_in {
            [workload] if workload == "workload" => ChangeKind::OtherProgram,
            [_] => ChangeKind::OneSetting,
            _ => ChangeKind::TwoSettings,
        }
    }

    /// Refuses a change of too many things to explain anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { from, to, differs_in, .. } = self;
        let has_program = differs_in.iter().any(|key| key == "workload");
        let wrong = match &**differs_in {
            _ if from == to => {
                "its two bars are one: name the one that it starts from, and the changed one"
            }
            [_] => return Ok(()),
            [first, second] if first != second && !has_program => return Ok(()),
            _ => {
                "differs-in has one key, or two keys of settings: a change of more explains nothing"
            }
        };
        Err(wrong.to_owned())
    }
}

/// Looks up in `figures`, which are all of a page, what each number becomes that a change may explain. Where its figure is not
/// among them nothing is found, and it explains nothing.
///
/// # Errors
/// [`NotFigures`] where the figure of a change is there, and has no such bar.
pub fn look_up(figures: &mut [Figure]) -> Result<(), NotFigures> {
    let mut found = Vec::new();
    for figure in &*figures {
        for stated in &figure.stated {
            // Only what differs is to be explained: figures of fewer traces have no bars for the programs that are missing.
            let change = stated.change.as_ref().filter(|_| stated.verdict() == Verdict::Differs);
            let values = change.map(|change| values(figures, change)).transpose();
            let said =
                |why| NotFigures(format!("figure {:?}, {:?}: {why}", figure.id, stated.what));
            found.push(values.map_err(said)?.flatten());
        }
    }
    let all = figures.iter_mut().flat_map(|figure| &mut figure.stated);
    for (stated, found) in all.zip(found) {
        if let Some(change) = &mut stated.change {
            change.found = found;
        }
    }
    Ok(())
}

/// The values of the two bars. Nothing, if there is no such figure here or one of them was not measured.
fn values(figures: &[Figure], change: &Change) -> Result<Option<[f64; 2]>, String> {
    let Some(figure) = figures.iter().find(|figure| figure.id == change.figure) else {
        return Ok(None);
    };
    let [from, to] = [&change.from, &change.to].map(|bar| value(figure, bar));
    Ok(from?.zip(to?).map(<[f64; 2]>::from))
}

fn value(figure: &Figure, bar: &BarName) -> Result<Option<f64>, String> {
    let Plot::Bars(bars) = &figure.plot else {
        return Err(format!("its change is of the figure {}, which has no bars", figure.id));
    };
    let series = bars.series.iter().find(|series| series.name == bar.series);
    let label = bars.labels.iter().position(|label| *label == bar.label);
    let (Some(series), Some(label)) = (series, label) else {
        return Err(format!(
            "the figure {} has no bar {:?} of a series {:?}, which its change names",
            figure.id, bar.label, bar.series
        ));
    };
    Ok(series.values.get(label).copied().flatten())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Bars, Series, Stated};
    use super::*;

    fn bar(label: &str) -> BarName {
        BarName { series: "speed".to_owned(), label: label.to_owned() }
    }

    /// From 0.5 to what `found` says, as a page has it.
    pub(in super::super) fn change(differs_in: &[&str], found: Option<f64>) -> Change {
        Change {
            figure: "why".to_owned(),
            from: bar("before"),
            to: bar("after"),
            differs_in: differs_in.iter().map(|&key| key.to_owned()).collect(),
            found: found.map(|to| [0.5, to]),
        }
    }

    fn figure(id: &str, values: [Option<f64>; 2], stated: Vec<Stated>) -> Figure {
        Figure {
            id: id.to_owned(),
            title: "t".to_owned(),
            paper: "p".to_owned(),
            plot: Plot::Bars(Bars {
                labels: ["before", "after"].map(str::to_owned).into(),
                value: "v".to_owned(),
                stacked: false,
                series: vec![Series { name: "speed".to_owned(), values: values.into() }],
            }),
            stated,
            remarks: Vec::new(),
            origin: "o".to_owned(),
        }
    }

    /// The page of a number of 1 ± 0.1, where ours is `ours`, and of the figure of its change with these values.
    fn page(ours: f64, values: [Option<f64>; 2]) -> Vec<Figure> {
        let change = Some(change(&["oram.remap"], None));
        let stated = Stated { change, ..Stated::new("mean", 1.0, 0.1, Some(ours)) };
        vec![figure("fig10", [None; 2], vec![stated]), figure("why", values, Vec::new())]
    }

    #[test]
    fn a_change_explains_a_number_if_its_bars_on_the_page_say_so() {
        let explained = Verdict::Explained(ChangeKind::OneSetting);
        for (ours, values, verdict) in [
            (2.0, [Some(0.5), Some(1.05)], explained),
            (2.0, [Some(0.5), Some(1.2)], Verdict::Differs),
            (2.0, [Some(0.95), Some(1.05)], Verdict::Differs),
            (2.0, [Some(0.5), None], Verdict::Differs),
            (2.0, [None, Some(1.05)], Verdict::Differs),
            (1.0, [Some(0.5), Some(1.05)], Verdict::Agrees),
        ] {
            let mut page = page(ours, values);
            look_up(&mut page).unwrap();
            assert_eq!(page[0].stated[0].verdict(), verdict, "{ours} {values:?}");
        }
        // Not looked up, or not on the page.
        let mut alone = page(2.0, [Some(0.5), Some(1.05)]);
        assert_eq!(alone[0].verdict(), Verdict::Differs);
        look_up(&mut alone[..1]).unwrap();
        assert_eq!(alone[0].verdict(), Verdict::Differs);
    }

    #[test]
    fn what_a_change_makes_of_a_number_cannot_be_typed_in() {
        let mut whole = page(2.0, [Some(0.5), Some(1.05)]);
        look_up(&mut whole).unwrap();
        let text = serde_json::to_string(&whole[..1]).unwrap();
        assert!(!text.contains("1.05") && !text.contains("found"), "{text}");
        assert_eq!(super::super::read(&text).unwrap()[0].verdict(), Verdict::Differs);
        let typed = text.replace(r#""differs-in""#, r#""found": [0.5, 1.05], "differs-in""#);
        assert!(
            super::super::read(&typed).unwrap_err().to_string().contains("unknown field `found`")
        );
        // What files had before explains nothing.
        let before = r#"{"what": "m", "paper": 1.0, "band": 0.1, "ours": 2.0, "one-change": 1.0, "shown-by": "why"}"#;
        let before: Stated = serde_json::from_str(before).unwrap();
        assert_eq!(before.verdict(), Verdict::Differs);
    }

    #[test]
    fn a_bar_that_its_figure_has_not_is_refused() {
        let refused = |ours: f64, spoil: fn(&mut [Figure])| {
            let mut page = page(ours, [Some(0.5), Some(1.05)]);
            spoil(&mut page);
            look_up(&mut page).map_err(|error| error.to_string())
        };
        let rename_series = |page: &mut [Figure]| {
            let Plot::Bars(bars) = &mut page[1].plot else { panic!("bars") };
            bars.series[0].name = "time".to_owned();
        };
        let rename_label = |page: &mut [Figure]| {
            let Plot::Bars(bars) = &mut page[1].plot else { panic!("bars") };
            bars.labels[1] = "later".to_owned();
        };
        let error = refused(2.0, rename_series).unwrap_err();
        assert!(
            error.contains("\"fig10\", \"mean\": the figure why has no bar \"before\""),
            "{error}"
        );
        assert!(refused(2.0, rename_label).unwrap_err().contains("no bar \"after\""));
        // A number that agrees needs no explanation, and a figure of fewer traces has fewer bars.
        assert_eq!(refused(1.0, rename_label), Ok(()));
    }

    #[test]
    fn a_change_is_called_by_what_it_changes() {
        for (keys, kind) in [
            (&["oram.remap"][..], Some(ChangeKind::OneSetting)),
            (&["trace"], Some(ChangeKind::OneSetting)),
            (&["workload"], Some(ChangeKind::OtherProgram)),
            (&["trace", "oram.fan_out"], Some(ChangeKind::TwoSettings)),
            (&[], None),
            (&["a", "a"], None),
            (&["workload", "processor.llc_bytes"], None),
            (&["a", "b", "c"], None),
        ] {
            let change = change(keys, None);
            let found = change.check().map(|()| change.kind());
            assert_eq!(found.ok(), kind, "{keys:?}");
        }
        let same = Change { to: bar("before"), ..change(&["a"], None) };
        assert!(same.check().unwrap_err().contains("its two bars are one"));
    }
}
