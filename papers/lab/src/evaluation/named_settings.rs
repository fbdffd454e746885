//! Settings that several figures share, by name, in one file.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::setting::SwitchSetting;

const FILE: &str = include_str!("../../manifests/named/settings.toml");

/// Returns the setting `name`, for a reading of a stated number or for `like` in another setting.
///
/// # Errors
/// Returns an error for an unknown name. The message lists the known names.
pub(super) fn named(name: &str) -> Result<SwitchSetting, String> {
    let mut tables: BTreeMap<String, toml::Table> =
        toml::from_str(FILE).map_err(|error| format!("the built-in settings: {error}"))?;
    let Some(table) = tables.remove(name) else {
        let names: Vec<_> = tables.into_keys().collect();
        return Err(format!("there is no setting {name:?}: choose from {}", names.join(", ")));
    };
    table.try_into().map_err(|error| format!("the built-in setting {name}: {error}"))
}

/// Deserializes a key whose value is the name of a setting.
pub(super) fn by_name<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Box<SwitchSetting>>, D::Error> {
    let name = String::deserialize(from)?;
    named(&name).map(|setting| Some(setting.into())).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_built_in_setting_is_valid_and_has_a_name() {
        let tables: BTreeMap<String, toml::Table> = toml::from_str(FILE).unwrap();
        assert!(tables.len() > 4);
        let mut titles: Vec<_> = tables.keys().map(|name| named(name).unwrap().name).collect();
        titles.sort_unstable();
        assert!(titles.iter().all(Option::is_some) && titles.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error =
            toml::from_str::<SwitchSetting>("like = \"one-chanel\"").unwrap_err().to_string();
        assert!(
            error.contains("there is no setting \"one-chanel\": choose from in-order"),
            "{error}"
        );
        assert!(toml::from_str::<SwitchSetting>("like = 1").is_err());
    }
}
