//! What a figure shows and what the paper states: one file each in `manifests`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::own::{self, OwnMachine, ReadBeside};
use super::plotted::{Axis, Plotted};
use super::setting::Setting;
use super::stated_number::StatedNumber;
use super::variants::Variant;
use super::workloads::{self, PROGRAMS, RANDOM};
use crate::choice::chosen;
use crate::{LabError, blocks};

/// A figure to be made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What it is called here: `fig10`.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// Which figure of which paper it is.
    pub paper: String,
    /// Whether it takes so long that it is made only if it is named.
    #[serde(default)]
    pub overnight: bool,
    /// Machines of its own, by name.
    #[serde(default)]
    pub(super) machines: BTreeMap<String, OwnMachine>,
    /// The same, made.
    #[serde(skip)]
    pub(super) own: Vec<Variant>,
    /// The machines that are shown.
    pub variants: Vec<String>,
    /// What runs on them; `programs` stands for all of [`PROGRAMS`], and `random` for all of [`RANDOM`].
    pub workloads: Vec<String>,
    /// What is set otherwise than the evaluation says: one setting, or those that stand under the bars. The
    /// stated numbers are of the first.
    #[serde(default = "as_it_is")]
    pub settings: Vec<Setting>,
    /// What is drawn.
    pub plot: Plotted,
    /// What the paper says in numbers.
    #[serde(default)]
    pub stated: Vec<StatedNumber>,
    /// Paragraphs for readers of the figure.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Why ours differ from the paper's numbers, where they do.
    #[serde(default)]
    pub reasons: Vec<String>,
}

fn as_it_is() -> Vec<Setting> {
    vec![Setting::default()]
}

/// All of them, in the order of the papers.
const FILES: [(&str, &str); 35] = [
    ("slowdown.toml", include_str!("../../manifests/slowdown.toml")),
    ("fig02.toml", include_str!("../../manifests/fig02.toml")),
    ("fig10.toml", include_str!("../../manifests/fig10.toml")),
    ("unpaced.toml", include_str!("../../manifests/unpaced.toml")),
    ("fig11.toml", include_str!("../../manifests/fig11.toml")),
    ("fig12.toml", include_str!("../../manifests/fig12.toml")),
    ("fig14.toml", include_str!("../../manifests/fig14.toml")),
    ("fig15.toml", include_str!("../../manifests/fig15.toml")),
    ("fig16.toml", include_str!("../../manifests/fig16.toml")),
    ("made.toml", include_str!("../../manifests/made.toml")),
    ("settings.toml", include_str!("../../manifests/settings.toml")),
    ("warm.toml", include_str!("../../manifests/warm.toml")),
    ("near.toml", include_str!("../../manifests/near.toml")),
    ("near-warm.toml", include_str!("../../manifests/near-warm.toml")),
    ("evictions.toml", include_str!("../../manifests/evictions.toml")),
    ("fetches.toml", include_str!("../../manifests/fetches.toml")),
    ("requests.toml", include_str!("../../manifests/requests.toml")),
    ("plb.toml", include_str!("../../manifests/plb.toml")),
    ("cells.toml", include_str!("../../manifests/cells.toml")),
    ("depth.toml", include_str!("../../manifests/depth.toml")),
    ("initial.toml", include_str!("../../manifests/initial.toml")),
    ("in-order.toml", include_str!("../../manifests/in-order.toml")),
    ("in-order-paths.toml", include_str!("../../manifests/in-order-paths.toml")),
    ("real.toml", include_str!("../../manifests/real.toml")),
    ("real-one-channel.toml", include_str!("../../manifests/real-one-channel.toml")),
    ("pages.toml", include_str!("../../manifests/pages.toml")),
    ("energy.toml", include_str!("../../manifests/energy.toml")),
    ("tree-top.toml", include_str!("../../manifests/tree-top.toml")),
    ("tree-top-size.toml", include_str!("../../manifests/tree-top-size.toml")),
    ("context-switch.toml", include_str!("../../manifests/context-switch.toml")),
    ("context-switch-speed.toml", include_str!("../../manifests/context-switch-speed.toml")),
    ("context-switch-paths.toml", include_str!("../../manifests/context-switch-paths.toml")),
    ("block-size.toml", include_str!("../../manifests/block-size.toml")),
    ("positions-on-chip.toml", include_str!("../../manifests/positions-on-chip.toml")),
    ("tiny07.toml", include_str!("../../manifests/tiny07.toml")),
];

impl Manifest {
    /// All figures of the evaluation.
    ///
    /// # Errors
    /// [`LabError::Input`] if a manifest is none, or names a figure that there is not.
    pub fn all() -> Result<Vec<Self>, LabError> {
        let all = FILES.iter().map(|(file, text)| Self::parse(file, text));
        let all: Vec<_> = all.collect::<Result<_, _>>()?;
        Self::check_shown_by(&all)?;
        Ok(all)
    }

    /// The figures called `ids`; or if there are none, all but those that take a night.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an id that no figure has.
    pub fn chosen(ids: &[String]) -> Result<Vec<Self>, LabError> {
        let mut figures = chosen(Self::all()?, |figure| &figure.id, ids)?;
        figures.retain(|figure| !figure.overnight || ids.contains(&figure.id));
        Ok(figures)
    }

    /// What the file called `file` says, which names no other file.
    ///
    /// # Errors
    /// [`LabError::Input`], which names the file and what is wrong in it.
    pub fn parse(file: &str, text: &str) -> Result<Self, LabError> {
        let none = |name: &str| Err(LabError::Input(format!("there is no file {name} beside it")));
        Self::read(file, text, &none)
    }

    /// What the file called `file` says. `read` gives the text of a file that lies beside it: a machine.
    ///
    /// # Errors
    /// [`LabError::Input`], which names the file and what is wrong in it.
    pub fn read(file: &str, text: &str, read: &ReadBeside<'_>) -> Result<Self, LabError> {
        let wrong = |message: String| LabError::Input(format!("{file}: {message}"));
        let mut manifest: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        manifest.own = own::machines(file, text, &manifest.machines, read)?;
        manifest.check().map_err(wrong)?;
        Ok(manifest)
    }

    /// Those of `figures` that are called `ids`, or all if there are none.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an id that no figure has, and for two figures of one.
    pub fn chosen_of(figures: Vec<Self>, ids: &[String]) -> Result<Vec<Self>, LabError> {
        for (number, figure) in figures.iter().enumerate() {
            if figures[..number].iter().any(|other| other.id == figure.id) {
                let message = format!("two manifests have the id {}: rename one", figure.id);
                return Err(LabError::Plan(message));
            }
        }
        chosen(figures, |figure| &figure.id, ids)
    }

    /// The machine that it calls `name`: one of its own, or one that is built in.
    pub(super) fn machine(&self, name: &str) -> Option<&Variant> {
        self.own.iter().find(|own| own.name == name).or_else(|| Variant::named(name))
    }

    /// Its workloads by name.
    pub fn workload_names(&self) -> Vec<&str> {
        let named = self.workloads.iter().map(String::as_str);
        named
            .flat_map(|name| match name {
                "programs" => PROGRAMS.to_vec(),
                "random" => RANDOM.to_vec(),
                name => vec![name],
            })
            .collect()
    }

    /// Every variant that has to run: those shown, those with a stated number, and those that these are held
    /// against.
    pub fn variant_names(&self) -> Vec<&str> {
        let shown = self.variants.iter().map(String::as_str);
        let references = self.plot.measures.iter().filter_map(|named| named.measure.reference());
        let stated = self.stated.iter().map(|stated| stated.variant.as_str());
        let held_against = self.stated.iter().filter_map(|stated| stated.measure.reference());
        let mut names = Vec::new();
        for name in shown.chain(stated).chain(references).chain(held_against) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Refuses a number whose `shown-by` names no figure: none of `manifests`, of the evaluation, or of
    /// [`blocks`].
    ///
    /// # Errors
    /// [`LabError::Input`], which names the manifest and the number.
    pub fn check_shown_by(manifests: &[Self]) -> Result<(), LabError> {
        let files = FILES.iter().filter_map(|(file, _)| file.strip_suffix(".toml"));
        let of_blocks = blocks::FIGURES.iter().map(|figure| figure.id);
        let given = manifests.iter().map(|manifest| manifest.id.as_str());
        let known: Vec<_> = files.chain(of_blocks).chain(given).collect();
        for manifest in manifests {
            for StatedNumber { what, shown_by, .. } in &manifest.stated {
                let unknown = shown_by.as_ref().filter(|id| !known.contains(&id.as_str()));
                if let Some(unknown) = unknown {
                    return Err(LabError::Input(format!(
                        "{}: {what}: shown-by = {unknown:?} is no figure: choose from {}",
                        manifest.id,
                        known.join(", ")
                    )));
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let named = [
            (self.variants.is_empty(), "variants"),
            (self.workloads.is_empty(), "workloads"),
            (self.settings.is_empty(), "settings"),
            (self.plot.measures.is_empty(), "measures"),
        ];
        if let Some((_, what)) = named.iter().find(|(is_missing, _)| *is_missing) {
            return Err(format!("{what} is empty: name one at least"));
        }
        if let Some(name) = self.variant_names().iter().find(|name| self.machine(name).is_none()) {
            return Err(format!(
                "there is no variant {name}: use one that is built in, or describe it in [machines.{name}]"
            ));
        }
        let shown = self.workload_names();
        if let Some(name) =
            shown.iter().find(|name| workloads::names().all(|known| known != **name))
        {
            return Err(format!("there is no workload {name}"));
        }
        if self.settings.len() > 1 && self.plot.labels != Axis::Settings {
            return Err("several settings are shown as labels = \"settings\" alone".to_owned());
        }
        self.plot.check(&self.variants)?;
        self.stated.iter().try_for_each(|number| number.check(&shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../manifests/fig11.toml");

    /// The same without its readings.
    fn without_readings() -> String {
        let parts = GOOD.split("readings = [\n");
        parts
            .map(|part| part.split_once("\n]\n").filter(|_| part.starts_with("    { name")))
            .zip(GOOD.split("readings = [\n"))
            .map(|(cut, part)| cut.map_or(part, |(_, rest)| rest))
            .collect()
    }

    #[test]
    fn all_manifests_are_good_and_called_by_their_files() {
        let all = Manifest::all().unwrap();
        for (manifest, (file, _)) in all.iter().zip(FILES) {
            assert_eq!(format!("{}.toml", manifest.id), file);
        }
        assert_eq!(Manifest::chosen(&["fig12".to_owned()]).unwrap(), [all[5].clone()]);
        let unasked = Manifest::chosen(&[]).unwrap();
        assert!(unasked.len() > 15 && unasked.iter().all(|figure| !figure.overnight));
        assert!(Manifest::chosen(&["cells".to_owned()]).unwrap()[0].overnight);
        let error = Manifest::chosen(&["fig7".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no figure fig7: choose from slowdown, fig02"), "{error}");
    }

    #[test]
    fn everything_that_is_held_against_runs_too() {
        let fig11 = Manifest::parse("fig11.toml", GOOD).unwrap();
        let both = ["llc-d-ir-stash-ir-alloc-1", "llc-d-ir-stash-ir-alloc-4"];
        assert_eq!(fig11.variant_names(), [both[0], both[1], "llc-d"]);
        assert_eq!(fig11.workload_names().len(), 14);
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_its_file_and_line() {
        let text = without_readings();
        for (good, bad, message) in [
            ("title", "titel", "line 2"),
            ("[plot]", "[plot]\ncolour = \"red\"", "unknown field `colour`"),
            ("\"llc-d\"", "\"llc-e\"", "no variant llc-e"),
            ("\"programs\"", "\"games\"", "no workload games"),
            ("workload = \"mcf\"", "workload = \"uniform\"", "not one of this figure"),
            ("band = 0.1", "band = -0.1", "a band is 0 or more"),
            ("speed-over", "speed-under", "unknown variant"),
            (
                "variants = [\"llc-d-ir-stash-ir-alloc-1\", \"llc-d-ir-stash-ir-alloc-4\"]",
                "variants = []",
                "variants is empty",
            ),
            ("band = 0.1", "band = 0.1\nreading = []", "unknown field `reading`"),
            ("band = 0.1\nwhy", "band = 0.1\nfitted = true\n#", "what was fitted"),
            (
                "band = 0.1",
                "band = 0.1\nreadings = [{ name = \"a\", setting = {} }, { name = \"a\", setting = {} }]",
                "a name of its own",
            ),
            (
                "band = 0.1",
                "band = 0.1\nreadings = [{ name = \"\", setting = {} }]",
                "a name of its own",
            ),
            (
                "band = 0.1",
                "band = 0.1\nreadings = [{ name = \"a\", setting = { name = \"b\" } }]",
                "leave that of its setting out",
            ),
            ("band = 0.1", "band = 0.1\nreadings = [{ name = \"a\" }]", "missing field `setting`"),
            ("[plot]", "settings = [{}, { levels = 1 }]\n[plot]", "labels = \"settings\""),
            ("[plot]", "settings = [{ speed = 1 }]\n[plot]", "unknown field `speed`"),
        ] {
            assert!(text.contains(good), "{good}");
            let error = Manifest::parse("x.toml", &text.replace(good, bad)).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("x.toml: ") && error.contains(message), "{bad}: {error}");
        }
    }

    #[test]
    fn a_reason_is_shown_by_a_figure_that_there_is() {
        let fig11 = |id: &str| {
            let text = GOOD.replace("shown-by = \"requests\"", &format!("shown-by = {id:?}"));
            Manifest::parse("fig11.toml", &text).unwrap()
        };
        for id in ["near", "fig03", "fig11"] {
            Manifest::check_shown_by(&[fig11(id)]).unwrap();
        }
        // One of the figures that are given beside it, and not of the evaluation.
        let own = Manifest { id: "own".to_owned(), ..fig11("own") };
        Manifest::check_shown_by(std::slice::from_ref(&own)).unwrap();
        Manifest::check_shown_by(&[fig11("own"), own]).unwrap();
        let error = Manifest::check_shown_by(&[fig11("own")]).unwrap_err().to_string();
        assert!(error.contains("fig11: IR-Stash and IR-Alloc, mean"), "{error}");
        assert!(error.contains("\"own\" is no figure: choose from slowdown, fig02"), "{error}");
    }
}
