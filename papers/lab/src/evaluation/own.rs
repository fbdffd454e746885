//! Machines that a manifest defines: from a file next to it, or a built-in machine with other
//! settings.

use std::borrow::Cow;
use std::collections::BTreeMap;

use oblivio_sim::system::SystemSpec;
use serde::Deserialize;
use toml::Spanned;

use super::setting::SwitchSetting;
use super::switches::Switches;
use super::variants::{Variant, VariantKind};
use crate::LabError;
use oblivio_models::paper::PAPER_LEAF_LEVEL;

/// The maximum number of machines in a manifest; more than any manifest needs.
const MACHINES_MAX: usize = 64;

/// The maximum length of a name. Names of machines are part of the names of runs.
const NAME_BYTES_MAX: usize = 40;

/// A function that reads a file that a manifest names. The file is next to the manifest.
pub type ReadBeside<'a> = dyn Fn(&str) -> Result<String, LabError> + 'a;

/// A machine of a manifest: a table `[machines.NAME]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct OwnMachine {
    /// The name in figures.
    title: Spanned<String>,
    /// The file that describes the machine, as `oblivio-lab simulate --print-spec` writes it.
    spec: Option<Spanned<String>>,
    /// The built-in machine on which this one is based.
    of: Option<Spanned<String>>,
    /// The differences from the built-in machine, as in the settings of a figure.
    set: Option<Spanned<SwitchSetting>>,
}

/// Builds the machines of `tables`, from the manifest `file` whose text is `text`.
pub(super) fn machines(
    file: &str,
    text: &str,
    tables: &BTreeMap<String, OwnMachine>,
    read: &ReadBeside<'_>,
) -> Result<Vec<Variant>, LabError> {
    if tables.len() > MACHINES_MAX {
        let message = format!("{file}: more than {MACHINES_MAX} machines: split the manifest");
        return Err(LabError::Input(message));
    }
    let machine = |(name, own): (&String, &OwnMachine)| {
        let wrong = |at: usize, message: &str| {
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            LabError::Input(format!("{file}, line {line}: machine {name}: {message}"))
        };
        let at = own.title.span().start;
        check_name(name).map_err(|message| wrong(at, message))?;
        Ok(Variant {
            name: Cow::Owned(name.clone()),
            title: Cow::Owned(own.title.get_ref().clone()),
            kind: own.kind(at, &wrong, read)?,
        })
    };
    tables.iter().map(machine).collect()
}

impl OwnMachine {
    fn kind(
        &self,
        at: usize,
        wrong: &dyn Fn(usize, &str) -> LabError,
        read: &ReadBeside<'_>,
    ) -> Result<VariantKind, LabError> {
        match (&self.spec, &self.of, &self.set) {
            (Some(path), None, None) => {
                let (at, path) = (path.span().start, path.get_ref());
                let text = read(path).map_err(|error| wrong(at, &error.to_string()))?;
                let spec = SystemSpec::parse(&text, path)
                    .map_err(|error| wrong(at, &error.to_string()))?;
                Ok(VariantKind::Described(spec.into()))
            }
            (None, Some(of), set) => {
                let Some(variant) = Variant::named(of.get_ref()) else {
                    let message = format!("there is no built-in machine {}", of.get_ref());
                    return Err(wrong(of.span().start, &message));
                };
                let setting = set.as_ref().map(|set| set.get_ref().clone()).unwrap_or_default();
                if !setting.is_of_machine() {
                    let message = "name, levels, warm-ups, warm-up-records and keeps-llc are not \
                                   settings of a machine: move them to the settings of the figure";
                    return Err(wrong(set.as_ref().map_or(at, |set| set.span().start), message));
                }
                if let Some(set) = set {
                    let at = set.span().start;
                    setting.check().map_err(|message| wrong(at, &message))?;
                    if !changes(variant, &setting) {
                        let message = format!(
                            "set changes nothing of {}: remove it, or set what that machine has",
                            variant.name
                        );
                        return Err(wrong(at, &message));
                    }
                }
                Ok(VariantKind::Set(variant, setting.into()))
            }
            (_, None, Some(set)) => Err(wrong(
                set.span().start,
                "set changes a built-in machine: name that machine with of. Change a machine from \
                 a file in its file",
            )),
            _ => Err(wrong(at, "give its origin: spec = \"FILE\", or of = \"MACHINE\"")),
        }
    }
}

/// Whether `set` changes `variant` in any evaluation. Applies `set` to two sets of switches that
/// differ in every value, so at least one of them does not already have the values of `set`.
fn changes(variant: &Variant, set: &SwitchSetting) -> bool {
    [Switches::PAPER, Switches::UNLIKE_PAPER].iter().any(|switches| {
        let made = |switches: &Switches| {
            let switches = variant.switches(switches);
            let spec = variant.spec(PAPER_LEAF_LEVEL, &switches).ok();
            let has_small_tree = spec
                .as_ref()
                .is_some_and(|spec| spec.oram.as_ref().is_some_and(|oram| oram.rho.is_some()));
            let beside = (switches.pages, has_small_tree && switches.fills_small_tree);
            (spec.map(SystemSpec::without_unused), beside)
        };
        made(&set.apply_to(switches)) != made(switches)
    })
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err("a name consists of 1 to 40 lowercase letters, digits and hyphens");
    }
    match Variant::named(name) {
        Some(_) => Err("a machine of this name is built in: choose another"),
        None => Ok(()),
    }
}
