//! The arguments of the plugin: `name=value`, after its file on the emulator's command line.

use std::path::PathBuf;

use oblivio_sim::LINE_BYTES;
use oblivio_sim::cache::CacheShape;
use oblivio_sim::recording::{FirstLevelSpec, StoreMisses};

/// The parameters of a recording, and the location of its file.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) output: PathBuf,
    /// The number of records after which recording stops.
    pub(crate) records_max: u64,
    pub(crate) first_level: FirstLevelSpec,
}

impl Arguments {
    /// Parses the arguments. Every argument except `out` has a default. An error names the
    /// argument.
    pub(crate) fn parse<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut output = None;
        let mut records_max = 2_000_000;
        let mut warm_up = 0;
        let mut kib = 256;
        let mut ways = 2;
        let mut store_misses = StoreMisses::default();
        for argument in arguments {
            let number = |value: &str| {
                value.parse::<u64>().map_err(|_| format!("{argument}: not a 64-bit number"))
            };
            match argument.split_once('=') {
                Some(("out", path)) => output = Some(PathBuf::from(path)),
                Some(("records", value)) => records_max = number(value)?,
                Some(("warmup", value)) => warm_up = number(value)?,
                Some(("l1_kib", value)) => kib = number(value)?,
                Some(("l1_ways", value)) => ways = number(value)?,
                Some(("store_misses", "write")) => store_misses = StoreMisses::Write,
                Some(("store_misses", "fetch")) => store_misses = StoreMisses::Fetch,
                _ => {
                    return Err(format!(
                        "{argument}: not one of out=FILE, records=N, warmup=N, l1_kib=N, \
                         l1_ways=N, store_misses=write|fetch"
                    ));
                }
            }
        }
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let shape =
            CacheShape { lines: size(kib.saturating_mul(1024 / LINE_BYTES)), ways: size(ways) };
        Ok(Self {
            output: output.ok_or("out=FILE is missing: name the file for the records")?,
            records_max,
            first_level: FirstLevelSpec { shape, store_misses, warm_up },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_as_in_table_one() {
        let Arguments { output, records_max, first_level } =
            Arguments::parse(["out=a=b,c"].into_iter()).unwrap();
        assert_eq!((output, records_max), (PathBuf::from("a=b,c"), 2_000_000));
        assert_eq!(first_level.shape, CacheShape { lines: 4096, ways: 2 });
        assert_eq!((first_level.store_misses, first_level.warm_up), (StoreMisses::Write, 0));
        let given =
            ["out=x", "records=5", "warmup=7", "l1_kib=1", "l1_ways=4", "store_misses=fetch"];
        let Arguments { records_max, first_level, .. } =
            Arguments::parse(given.into_iter()).unwrap();
        assert_eq!((records_max, first_level.warm_up), (5, 7));
        assert_eq!(first_level.shape, CacheShape { lines: 16, ways: 4 });
        assert_eq!(first_level.store_misses, StoreMisses::Fetch);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (arguments, part) in [
            (vec![], "out=FILE is missing"),
            (vec!["out=x", "warmup=-1"], "warmup=-1"),
            (vec!["out=x", "store_misses=no"], "store_misses=no"),
            (vec!["out=x", "colour=on"], "colour=on"),
            (vec!["out"], "out: not one of"),
        ] {
            let message = Arguments::parse(arguments.iter().copied()).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
