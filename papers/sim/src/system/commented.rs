//! A machine as a file for people: every key with a comment, also those that are not set.
//!
//! TOML's serialiser knows no comments, so they go between the lines that it writes. Keys that this machine does
//! not have are taken from one that has them all, behind a `#`.

use std::fmt::Write;

use super::notes::note;

/// The widest line of a comment, in characters.
const WIDTH: usize = 110;

/// A table, as lines. That at the top has no name.
struct Table<'a> {
    path: &'a str,
    entries: Vec<Entry<'a>>,
}

/// A key, and its line.
struct Entry<'a> {
    key: &'a str,
    line: &'a str,
}

/// What `text` says, with comments, and with the keys of `full` that it lacks as comments.
pub(super) fn commented(text: &str, full: &str) -> String {
    let (own, full) = (tables(text), tables(full));
    let mut file = String::new();
    for table in &own {
        begin(&mut file, table.path, "");
        table.entries.iter().for_each(|entry| put(&mut file, table.path, entry, ""));
        let alike = full.iter().filter(|other| other.path == table.path);
        for entry in alike.flat_map(|other| &other.entries) {
            if !says(&own, &path_of(table.path, entry.key)) {
                put(&mut file, table.path, entry, "#");
            }
        }
    }
    for table in full.iter().filter(|table| !says(&own, table.path)) {
        begin(&mut file, table.path, "#");
        table.entries.iter().for_each(|entry| put(&mut file, table.path, entry, "#"));
    }
    file
}

/// Whether there is a key or a table of this path, or one within it.
fn says(tables: &[Table<'_>], path: &str) -> bool {
    tables.iter().any(|table| {
        let is_within = table.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        let mut keys = table.entries.iter().map(|entry| path_of(table.path, entry.key));
        table.path == path || is_within || keys.any(|key| key == path)
    })
}

/// Lines as the serialiser writes them: a key each, and never more than one.
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

/// The key that a table is of: itself, or where it is one of a few alternatives, the one that has them.
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

/// The comment on a key. The name of an alternative has none: it is in that of the key.
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
    use crate::controller::{ControllerSpec, OramSpec, Pace, RhoSpec, Scheme, WriteMarks};
    use crate::dram::{BankGroups, DramSpec, Queues, Timing};
    use crate::processor::ProcessorSpec;
    use crate::system::SystemSpec;
    use crate::system::notes::NOTES;

    /// Hears the names of the fields that a type would read.
    struct Fields(&'static [&'static str]);

    impl<'de> Deserializer<'de> for &mut Fields {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(de::Error::custom("no struct"))
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
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
        let mut fields = Fields(&[]);
        assert!(T::deserialize(&mut fields).is_err());
        fields.0
    }

    /// Every key that a machine may have, by its path.
    fn all_keys() -> Vec<String> {
        let of_tables = [
            ("", fields::<SystemSpec>()),
            ("processor", fields::<ProcessorSpec>()),
            ("dram", fields::<DramSpec>()),
            ("dram.timing", fields::<Timing>()),
            ("dram.bank_groups", fields::<BankGroups>()),
            ("dram.queues", fields::<Queues>()),
            ("controller", fields::<ControllerSpec>()),
            ("controller.write_marks", fields::<WriteMarks>()),
            ("oram", fields::<OramSpec>()),
            ("oram.rho", fields::<RhoSpec>()),
        ];
        // A table that is new has keys as well. That of a pace has the name of an alternative.
        let full = toml::to_string(&SystemSpec::with_every_key().unwrap()).unwrap();
        for Table { path, .. } in tables(&full) {
            let is_known = of_tables.iter().any(|(table, _)| *table == path);
            assert!(
                is_known || path == "controller.pace",
                "{path} is a table that is not in this test"
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
            assert!(keys.iter().any(|known| known == key), "{key} is a comment on no key");
        }
    }

    /// Those with all keys: of two, since not all go together.
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
        // Where there is no ORAM, all of it is there to be set.
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
