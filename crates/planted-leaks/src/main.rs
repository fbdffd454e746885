//! Breaks the product on purpose, one leak at a time, and demands that tests notice.
//!
//! A test that has never failed proves nothing. This tool copies the workspace, proves that the
//! copy passes, and then plants the leaks of [`leaks`] one by one: each must compile, and each must
//! make the tests fail that are there to find it. The workspace itself is never changed.
//!
//! Exit status: 0 when every leak was found, 1 when one survived, no longer applies or does not
//! compile, 2 when the tool itself could not work.

mod copy;
mod leaks;
mod targets;
mod test_runs;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use copy::Copy;
use leaks::Leak;
use serde_json::json;
use targets::{Finders, TestTarget, full_name};
use test_runs::{Outcome, TestRuns};

/// Plants leaks in a copy of the workspace and checks that the tests find each.
#[derive(Parser)]
struct Arguments {
    /// List the leaks and stop
    #[arg(long)]
    list: bool,

    /// Plant this leak alone; can be given again for more
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// One JSON object a line instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match work(&arguments, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // Nothing is left to do when even this cannot be written.
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether every leak was found.
fn work(arguments: &Arguments, out: &mut impl Write) -> Result<bool, String> {
    let chosen = choose(&arguments.only)?;
    if arguments.list {
        for leak in chosen {
            print(out, arguments.json, &listing(leak))?;
        }
        return Ok(true);
    }
    let room = room();
    let copy = Copy::take(&workspace(), &room.join("workspace")).map_err(|cause| {
        format!("the workspace cannot be copied to {}: {cause}", room.display())
    })?;
    let tests = TestRuns { workspace: copy.root(), target_dir: room.join("target") };

    for (target, names) in finders(&chosen) {
        match tests.run(&target, &names)? {
            Outcome::Ran { failed } if failed.is_empty() => {}
            outcome => {
                return Err(format!("{target} must pass before a leak is planted: {outcome}"));
            }
        }
    }
    let mut all_found = true;
    for leak in chosen {
        let verdict = plant(leak, &copy, &tests)?;
        all_found &= verdict.is_found();
        print(out, arguments.json, &report(leak, &verdict))?;
    }
    Ok(all_found)
}

/// The tests that are to find `leaks`, each once, by their targets.
fn finders(leaks: &[&Leak]) -> Vec<(TestTarget, Vec<&'static str>)> {
    let mut targets: Vec<(TestTarget, BTreeSet<&str>)> = Vec::new();
    for Finders { target, names } in leaks.iter().flat_map(|leak| leak.found_by) {
        match targets.iter_mut().find(|(known, _)| known == target) {
            Some((_, known)) => known.extend(names.iter()),
            None => targets.push((*target, names.iter().copied().collect())),
        }
    }
    targets.into_iter().map(|(target, names)| (target, names.into_iter().collect())).collect()
}

/// What became of a leak.
enum Verdict {
    /// All tests that are there for it failed.
    Found { by: Vec<String> },
    /// Not all of them did.
    Survived { missed_by: Vec<String>, found_by: Vec<String> },
    /// The source has changed: the leak cannot be planted.
    NoLongerApplies(String),
    /// The source has changed: with the leak it is no program.
    DoesNotCompile(String),
}

impl Verdict {
    fn is_found(&self) -> bool {
        matches!(self, Self::Found { .. })
    }
}

fn plant(leak: &Leak, copy: &Copy, tests: &TestRuns<'_>) -> Result<Verdict, String> {
    let planted = match copy.plant(leak) {
        Ok(planted) => planted,
        Err(reason) => return Ok(Verdict::NoLongerApplies(reason)),
    };
    let verdict = judge(leak, tests);
    planted.restore()?;
    verdict
}

/// Runs the tests that are to find the leak which was planted.
fn judge(leak: &Leak, tests: &TestRuns<'_>) -> Result<Verdict, String> {
    let mut found_by = Vec::new();
    for Finders { target, names } in leak.found_by {
        match tests.run(target, names)? {
            Outcome::DoesNotCompile { errors } => return Ok(Verdict::DoesNotCompile(errors)),
            Outcome::Ran { failed } => {
                found_by.extend(failed.iter().map(|test| full_name(target, test)));
            }
        }
    }
    let all = leak.found_by.iter().flat_map(Finders::full_names);
    let missed_by: Vec<_> = all.filter(|test| !found_by.contains(test)).collect();
    Ok(match missed_by.is_empty() {
        true => Verdict::Found { by: found_by },
        false => Verdict::Survived { missed_by, found_by },
    })
}

fn choose(only: &[String]) -> Result<Vec<&'static Leak>, String> {
    if let Some(unknown) = only.iter().find(|name| leaks::all().all(|leak| leak.name != **name)) {
        return Err(format!("there is no leak {unknown:?}: --list names them"));
    }
    let is_chosen = |leak: &&Leak| only.is_empty() || only.iter().any(|name| name == leak.name);
    Ok(leaks::all().filter(is_chosen).collect())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the copy is made and built: in the target directory.
fn room() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| workspace().join("target")).join("planted-leaks")
}

/// A line as JSON and as text.
struct Line {
    json: serde_json::Value,
    text: String,
}

fn print(out: &mut impl Write, as_json: bool, line: &Line) -> Result<(), String> {
    let written =
        if as_json { writeln!(out, "{}", line.json) } else { writeln!(out, "{}", line.text) };
    written.and_then(|()| out.flush()).map_err(|cause| format!("no output: {cause}"))
}

fn listing(leak: &Leak) -> Line {
    let found_by: Vec<_> = leak.found_by.iter().flat_map(Finders::full_names).collect();
    Line {
        json: json!({ "leak": leak.name, "shows": leak.shows, "found_by": found_by }),
        text: format!("{:32} {}", leak.name, leak.shows),
    }
}

fn report(leak: &Leak, verdict: &Verdict) -> Line {
    let name = leak.name;
    match verdict {
        Verdict::Found { by } => Line {
            json: json!({ "leak": name, "verdict": "found", "by": by }),
            text: format!("found     {name}: {}", by.join(", ")),
        },
        Verdict::Survived { missed_by, found_by } => Line {
            json: json!({
                "leak": name, "verdict": "survived", "missed_by": missed_by, "found_by": found_by,
            }),
            text: format!(
                "SURVIVED  {name}: missed by {}; found by: {}",
                missed_by.join(", "),
                if found_by.is_empty() { "none".to_owned() } else { found_by.join(", ") },
            ),
        },
        Verdict::NoLongerApplies(reason) => Line {
            json: json!({ "leak": name, "verdict": "no longer applies", "reason": reason }),
            text: format!("OUTDATED  {name}: {reason}"),
        },
        Verdict::DoesNotCompile(errors) => Line {
            json: json!({ "leak": name, "verdict": "does not compile", "reason": errors }),
            text: format!("OUTDATED  {name}: it does not compile\n{errors}"),
        },
    }
}
