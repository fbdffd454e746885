//! Manifests. Each is a file in the folder `manifests`, with the contents of a figure and the
//! numbers that the paper states.

use std::collections::BTreeMap;

use oblivio_sim::cut_lines;
use serde::Deserialize;

use super::own::{self, OwnMachine, ReadBeside};
use super::plotted::{Axis, Plotted};
use super::setting::SwitchSetting;
use super::stated_number::StatedNumber;
use super::variants::Variant;
use super::workloads::{self, PROGRAMS, RANDOM};
use crate::choice::chosen;
use crate::{LabError, blocks};

#[cfg(test)]
mod tests;

/// The description of a figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name of the figure, such as `fig10`.
    pub id: String,
    /// The title of the figure, in one line.
    pub title: String,
    /// The reproduced figure, and its paper.
    pub paper: String,
    /// Whether the figure takes so long that it is made only if named.
    #[serde(default)]
    pub overnight: bool,
    /// Machines that the manifest defines, by name.
    #[serde(default)]
    pub(super) machines: BTreeMap<String, OwnMachine>,
    /// The built form of `machines`.
    #[serde(skip)]
    pub(super) own: Vec<Variant>,
    /// The names of the machines that the figure shows.
    pub variants: Vec<String>,
    /// The workloads. `programs` means all of [`PROGRAMS`], and `random` all of [`RANDOM`].
    pub workloads: Vec<String>,
    /// Settings that replace the evaluation's setting. Several settings label the bars. Stated
    /// numbers use the first setting.
    #[serde(default = "as_it_is")]
    pub settings: Vec<SwitchSetting>,
    /// The plot of the figure.
    pub plot: Plotted,
    /// The numbers that the paper states.
    #[serde(default)]
    pub stated: Vec<StatedNumber>,
    /// Paragraphs for readers of the figure.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Reasons for differences from the paper's numbers.
    #[serde(default)]
    pub reasons: Vec<String>,
}

fn as_it_is() -> Vec<SwitchSetting> {
    vec![SwitchSetting::default()]
}

/// The built-in manifests, in the order of the papers.
const FILES: [(&str, &str); 35] = [
    ("slowdown.toml", include_str!("../../manifests/slowdown.toml")),
    ("slowdown-real.toml", include_str!("../../manifests/slowdown-real.toml")),
    ("fig02.toml", include_str!("../../manifests/fig02.toml")),
    ("fig02-real.toml", include_str!("../../manifests/fig02-real.toml")),
    ("fig10.toml", include_str!("../../manifests/fig10.toml")),
    ("unpaced.toml", include_str!("../../manifests/unpaced.toml")),
    ("fig11.toml", include_str!("../../manifests/fig11.toml")),
    ("deepsjeng.toml", include_str!("../../manifests/deepsjeng.toml")),
    ("fig12.toml", include_str!("../../manifests/fig12.toml")),
    ("fig14.toml", include_str!("../../manifests/fig14.toml")),
    ("fig15.toml", include_str!("../../manifests/fig15.toml")),
    ("fig16.toml", include_str!("../../manifests/fig16.toml")),
    ("made.toml", include_str!("../../manifests/made.toml")),
    ("fetches.toml", include_str!("../../manifests/fetches.toml")),
    ("requests.toml", include_str!("../../manifests/requests.toml")),
    ("plb.toml", include_str!("../../manifests/plb.toml")),
    ("cells.toml", include_str!("../../manifests/cells.toml")),
    ("depth.toml", include_str!("../../manifests/depth.toml")),
    ("initial.toml", include_str!("../../manifests/initial.toml")),
    ("old.toml", include_str!("../../manifests/old.toml")),
    ("in-order.toml", include_str!("../../manifests/in-order.toml")),
    ("in-order-paths.toml", include_str!("../../manifests/in-order-paths.toml")),
    ("rho-rules.toml", include_str!("../../manifests/rho-rules.toml")),
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
    /// [`LabError::Input`] if a manifest is invalid or names an unknown figure.
    pub fn all() -> Result<Vec<Self>, LabError> {
        let all = FILES.iter().map(|(file, text)| Self::parse(file, text));
        let all: Vec<_> = all.collect::<Result<_, _>>()?;
        Self::check_shown_by(&all)?;
        Ok(all)
    }

    /// The figures named in `ids`. If `ids` is empty, all figures except those that take a night.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an unknown id.
    pub fn chosen(ids: &[String]) -> Result<Vec<Self>, LabError> {
        let mut figures = chosen(Self::all()?, |figure| &figure.id, ids)?;
        figures.retain(|figure| !figure.overnight || ids.contains(&figure.id));
        Ok(figures)
    }

    /// Parses the manifest `file` with contents `text`. The manifest must not name other files.
    ///
    /// # Errors
    /// [`LabError::Input`], which names the file and the error.
    pub fn parse(file: &str, text: &str) -> Result<Self, LabError> {
        let none = |name: &str| Err(LabError::Input(format!("there is no file {name} next to it")));
        Self::read(file, text, &none)
    }

    /// Parses the manifest `file` with contents `text`. `read` returns the text of a file next to
    /// the manifest, which describes a machine.
    ///
    /// # Errors
    /// [`LabError::Input`], which names the file and the error.
    pub fn read(file: &str, text: &str, read: &ReadBeside<'_>) -> Result<Self, LabError> {
        let wrong = |message: String| LabError::Input(format!("{file}: {message}"));
        let mut manifest: Self =
            toml::from_str(text).map_err(|error| wrong(cut_lines(&error.to_string())))?;
        manifest.own = own::machines(file, text, &manifest.machines, read)?;
        manifest.check().map_err(wrong)?;
        Ok(manifest)
    }

    /// The elements of `figures` named in `ids`, or all of them if `ids` is empty.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an unknown id, and for two figures with the same id.
    pub fn chosen_of(figures: Vec<Self>, ids: &[String]) -> Result<Vec<Self>, LabError> {
        for (number, figure) in figures.iter().enumerate() {
            if figures[..number].iter().any(|other| other.id == figure.id) {
                let message = format!("two manifests have the id {}: rename one", figure.id);
                return Err(LabError::Plan(message));
            }
        }
        chosen(figures, |figure| &figure.id, ids)
    }

    /// The machine called `name`: defined in the manifest, or built in.
    pub(super) fn machine(&self, name: &str) -> Option<&Variant> {
        self.own.iter().find(|own| own.name == name).or_else(|| Variant::named(name))
    }

    /// The names of the figure's workloads.
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

    /// All variants that have to run: shown variants, variants with a stated number, and the
    /// variants that these are compared with.
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

    /// Refuses a stated number whose `shown-by` names no figure of `manifests`, of the evaluation,
    /// or of [`blocks`].
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

    /// Refuses duplicate entries and duplicate names: a mean would count an entry twice, and a
    /// reader could not tell two names apart.
    fn check_names(&self) -> Result<(), String> {
        let machines = self.variants.iter().filter_map(|name| self.machine(name));
        let titles = machines.map(|machine| machine.title.to_string());
        let measures = self.plot.measures.iter().map(|named| named.name.clone());
        let settings = self.settings.iter().map(|setting| {
            setting.name.clone().unwrap_or_else(|| format!("levels = {}", setting.all_levels()))
        });
        let numbers = self.stated.iter().map(|number| number.what.clone());
        let workloads = self.workload_names().into_iter().map(str::to_owned).collect();
        for (what, names) in [
            ("variants", self.variants.clone()),
            ("titles of variants", titles.collect()),
            ("workloads", workloads),
            ("settings", settings.collect()),
            ("measures", measures.collect()),
            ("stated numbers", numbers.collect::<Vec<_>>()),
        ] {
            let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            if let Some((_, name)) = twice {
                return Err(format!("{what}: {name:?} occurs twice: remove one, or rename it"));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let named = [
            (self.id.is_empty(), "id"),
            (self.title.is_empty(), "title"),
            (self.variants.is_empty(), "variants"),
            (self.workloads.is_empty(), "workloads"),
            (self.settings.is_empty(), "settings"),
            (self.plot.measures.is_empty(), "measures"),
        ];
        if let Some((_, what)) = named.iter().find(|(is_missing, _)| *is_missing) {
            return Err(format!("{what} is empty: give at least one"));
        }
        if let Some(name) = self.variant_names().iter().find(|name| self.machine(name).is_none()) {
            return Err(format!(
                "there is no variant {name}: use a built-in one, or describe it in \
                 [machines.{name}]"
            ));
        }
        let shown = self.workload_names();
        if let Some(name) =
            shown.iter().find(|name| workloads::names().all(|known| known != **name))
        {
            return Err(format!("there is no workload {name}: docs/add-a-figure.md lists them"));
        }
        self.check_names()?;
        if self.settings.len() > 1 && self.plot.labels != Axis::Settings {
            return Err("several settings need labels = \"settings\"".to_owned());
        }
        self.settings.iter().try_for_each(SwitchSetting::check)?;
        self.stated.iter().try_for_each(|number| number.check(&shown))
    }
}
