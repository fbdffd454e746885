//! Settings that many figures have: each stands in one file, by its name.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::setting::Setting;

const FILE: &str = include_str!("../../manifests/named/settings.toml");

/// The setting called `name`, for a reading of a stated number or for a setting that is like it.
///
/// # Errors
/// What to write instead.
pub(super) fn named(name: &str) -> Result<Setting, String> {
    let mut tables: BTreeMap<String, toml::Table> =
        toml::from_str(FILE).map_err(|error| format!("the built-in settings: {error}"))?;
    let Some(table) = tables.remove(name) else {
        let names: Vec<_> = tables.into_keys().collect();
        return Err(format!("no setting is called {name:?}: choose from {}", names.join(", ")));
    };
    table.try_into().map_err(|error| format!("the built-in setting {name}: {error}"))
}

/// For a key whose value is the name of a setting.
pub(super) fn by_name<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Box<Setting>>, D::Error> {
    let name = String::deserialize(from)?;
    named(&name).map(|setting| Some(setting.into())).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_built_in_setting_is_one_and_has_a_name_for_readers() {
        let tables: BTreeMap<String, toml::Table> = toml::from_str(FILE).unwrap();
        assert!(tables.len() > 4);
        let mut titles: Vec<_> = tables.keys().map(|name| named(name).unwrap().name).collect();
        titles.sort_unstable();
        assert!(titles.iter().all(Option::is_some) && titles.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn another_name_is_refused_with_those_that_there_are() {
        let error = toml::from_str::<Setting>("like = \"one-chanel\"").unwrap_err().to_string();
        assert!(
            error.contains("no setting is called \"one-chanel\": choose from in-order"),
            "{error}"
        );
        assert!(toml::from_str::<Setting>("like = 1").is_err());
    }
}
