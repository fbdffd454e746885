//! Writes a machine as a TOML file with a comment on every key, including keys that are not set.
//!
//! TOML's serialiser does not support comments, so they are inserted between its lines. Keys that
//! this machine lacks are taken from a machine that has all keys, and commented out with `#`.

use std::fmt::Write;

use super::notes::note;

/// Maximum width of a comment line, in characters.
const WIDTH: usize = 110;

/// The lines of a table. The top-level table has an empty path.
struct Table<'a> {
    path: &'a str,
    entries: Vec<Entry<'a>>,
}

/// A key and its line.
struct Entry<'a> {
    key: &'a str,
    line: &'a str,
}

/// Adds comments to `text`, and the missing keys of `full`, commented out.
pub(super) fn commented(text: &str, full: &str) -> String {
    let (own, full) = (tables(text), tables(full));
    let mut file = String::new();
    for table in &own {
        begin(&mut file, table.path, "");
        table.entries.iter().for_each(|entry| put(&mut file, table.path, entry, ""));
        let alike = full.iter().filter(|other| other.path == table.path);
        for entry in alike.flat_map(|other| &other.entries) {
            if !has_entry(&own, &path_of(table.path, entry.key)) {
                put(&mut file, table.path, entry, "#");
            }
        }
    }
    for table in full.iter().filter(|table| !has_entry(&own, table.path)) {
        begin(&mut file, table.path, "#");
        table.entries.iter().for_each(|entry| put(&mut file, table.path, entry, "#"));
    }
    file
}

/// Whether a key or table with this path exists, or a table within it.
fn has_entry(tables: &[Table<'_>], path: &str) -> bool {
    tables.iter().any(|table| {
        let is_within = table.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        let mut keys = table.entries.iter().map(|entry| path_of(table.path, entry.key));
        table.path == path || is_within || keys.any(|key| key == path)
    })
}

/// Splits the output of the serialiser, which writes one key per line.
fn tables(text: &str) -> Vec<Table<'_>> {
    let mut tables = vec![Table { path: "", entries: Vec::new() }];
    for line in text.lines() {
        if let Some(path) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            tables.push(Table { path, entries: Vec::new() });
        } else if let (Some((key, _)), Some(table)) = (line.split_once(" = "), tables.last_mut()) {
            table.entries.push(Entry { key, line });
        }
    }
    tables
}

fn begin(file: &mut String, path: &str, mark: &str) {
    if path.is_empty() {
        return;
    }
    file.push('\n');
    explain(file, key_of(path));
    let _ = writeln!(file, "{mark}[{path}]");
}

/// The key that a table belongs to: the table itself or, if it is a variant of an enum, the key
/// whose value is that enum.
fn key_of(table: &str) -> &str {
    match (note(table), table.rsplit_once('.')) {
        (None, Some((key, _alternative))) => key,
        _ => table,
    }
}

fn put(file: &mut String, table: &str, Entry { key, line }: &Entry<'_>, mark: &str) {
    explain(file, &path_of(table, key));
    let _ = writeln!(file, "{mark}{line}");
}

fn path_of(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// Writes the comment on a key. The name of a variant has no comment, since the comment on its key
/// covers it.
fn explain(file: &mut String, path: &str) {
    let mut line = String::from("#");
    for word in note(path).into_iter().flat_map(str::split_whitespace) {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(file, "{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        let _ = writeln!(file, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::Error;
    use serde::de::{self, DeserializeOwned, Deserializer, Visitor};

    use super::*;
    use crate::controller::{ControllerSpec, OramSpec, Pace, RhoSpec, Scheme, WriteWatermarks};
    use crate::dram::{BankGroups, DramSpec, Queues, Timing};
    use crate::processor::ProcessorSpec;
    use crate::system::SystemSpec;
    use crate::system::notes::NOTES;

    /// A deserializer that captures the field names that a type would read.
    struct Fields(&'static [&'static str]);

    impl<'de> Deserializer<'de> for &mut Fields {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(de::Error::custom("not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Error> {
            self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
        let mut fields = Fields(&[]);
        assert!(T::deserialize(&mut fields).is_err());
        fields.0
    }

    /// The paths of all keys that a machine may have.
    fn all_keys() -> Vec<String> {
        let of_tables = [
            ("", fields::<SystemSpec>()),
            ("processor", fields::<ProcessorSpec>()),
            ("dram", fields::<DramSpec>()),
            ("dram.timing", fields::<Timing>()),
            ("dram.bank_groups", fields::<BankGroups>()),
            ("dram.queues", fields::<Queues>()),
            ("controller", fields::<ControllerSpec>()),
            ("controller.write_marks", fields::<WriteWatermarks>()),
            ("oram", fields::<OramSpec>()),
            ("oram.rho", fields::<RhoSpec>()),
        ];
        // Also detects new tables. The only key of `controller.pace` is a variant of an enum, so
        // the list above lacks that table.
        let full = toml::to_string(&SystemSpec::with_every_key().unwrap()).unwrap();
        for Table { path, .. } in tables(&full) {
            let is_known = of_tables.iter().any(|(table, _)| *table == path);
            assert!(
                is_known || path == "controller.pace",
                "{path} is a table that this test does not list"
            );
        }
        let keys = |(table, keys): &(&str, &'static [&'static str])| {
            keys.iter().map(|key| path_of(table, key)).collect::<Vec<_>>()
        };
        of_tables.iter().flat_map(keys).collect()
    }

    #[test]
    fn every_key_has_a_comment_and_no_other() {
        let keys = all_keys();
        assert!(keys.len() > 60, "{keys:?}");
        for key in &keys {
            assert!(note(key).is_some(), "{key} has no comment: write one in notes.rs");
        }
        for (key, _) in NOTES {
            assert!(keys.iter().any(|known| known == key), "the comment on {key} has no key");
        }
    }

    /// Machines that together have all keys. Not all keys can be combined in one machine.
    fn machines() -> [SystemSpec; 5] {
        let paper = || SystemSpec::paper(12).unwrap();
        let plain = SystemSpec { oram: None, ..paper() };
        let mut raw = paper();
        raw.controller.pace = Pace::Free;
        let oram = raw.oram.as_mut().unwrap();
        oram.scheme = Scheme::Raw { evict_period: 5 };
        let mut full = SystemSpec::with_every_key().unwrap();
        full.controller.context_switch = None;
        let mut switched = SystemSpec::with_every_key().unwrap();
        switched.oram.as_mut().unwrap().rho = None;
        [paper(), plain, raw, full, switched]
    }

    #[test]
    fn every_key_is_there_behind_its_comment_and_set_or_not() {
        for spec in machines() {
            let file = spec.to_toml().unwrap();
            assert_eq!(SystemSpec::parse(&file, "a.toml").unwrap(), spec, "{file}");
            let lines: Vec<_> = file.lines().collect();
            let mut table = "";
            let mut found = Vec::new();
            for (line, before) in lines[1..].iter().zip(&lines) {
                let bare = line.strip_prefix('#').unwrap_or(line);
                let path = if let Some(name) = bare.strip_prefix('[') {
                    table = name.trim_end_matches(']');
                    key_of(table).to_owned()
                } else if let Some((key, _)) =
                    bare.split_once(" = ").filter(|_| !bare.starts_with(' '))
                {
                    path_of(table, key)
                } else {
                    continue;
                };
                assert!(before.starts_with("# ") || note(&path).is_none(), "{path} in {file}");
                found.push(path);
            }
            for key in all_keys() {
                assert!(found.contains(&key), "no {key} in {file}");
            }
            assert!(lines.iter().all(|line| line.len() <= WIDTH), "{file}");
        }
    }

    #[test]
    fn keys_that_are_not_set_can_be_set_where_they_are() {
        let [paper, plain, _, full, _] = machines();
        let file = paper.to_toml().unwrap().replace("#tree_top_ways", "tree_top_ways");
        let file = file.replace("#context_switch", "context_switch");
        let set = SystemSpec::parse(&file, "a.toml").unwrap();
        assert_eq!(set.oram.unwrap().tree_top_ways, Some(4));
        assert_eq!(set.controller.context_switch, Some(32_000_000));
        // Without an ORAM, all of its keys are present but commented out.
        let mut file = String::new();
        for line in plain.to_toml().unwrap().lines() {
            let is_oram = file.contains("\n[oram]") || line == "#[oram]";
            let line = line
                .strip_prefix('#')
                .filter(|line| is_oram && !line.starts_with(' '))
                .unwrap_or(line);
            let _ = writeln!(file, "{line}");
        }
        assert_eq!(SystemSpec::parse(&file, "a.toml").unwrap().oram, full.oram);
    }

    #[test]
    fn a_name_that_looks_like_keys_is_kept() {
        let mut spec = machines()[0].clone();
        spec.dram.name = "mine\n[oram]\nslots = 7".to_owned();
        assert_eq!(SystemSpec::parse(&spec.to_toml().unwrap(), "a.toml").unwrap(), spec);
    }
}
