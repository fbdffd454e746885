//! Breaks the engine on purpose, one leak at a time, and demands that the privacy tests notice.
//!
//! A test that has never failed proves nothing. This tool copies the workspace, proves that the
//! copy passes, and then plants the leaks of [`leaks`] one by one: each must compile, and each must
//! make the tests fail that are there to find it. The workspace itself is never changed.
//!
//! Exit status: 0 when every leak was found, 1 when one survived, no longer applies or does not
//! compile, 2 when the tool itself could not work.

mod copy;
mod leaks;
mod privacy_tests;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use copy::Copy;
use leaks::{LEAKS, Leak};
use privacy_tests::{Outcome, PrivacyTests};
use serde_json::json;

/// Plants leaks in a copy of the engine and checks that the privacy tests find each.
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
    let tests = PrivacyTests { workspace: copy.root(), target: room.join("target") };

    match tests.run(&[])? {
        Outcome::Ran { failed } if failed.is_empty() => {}
        outcome => return Err(format!("the tests must pass before a leak is planted: {outcome}")),
    }
    let mut all_found = true;
    for leak in chosen {
        let verdict = plant(leak, &copy, &tests)?;
        all_found &= verdict.is_found();
        print(out, arguments.json, &report(leak, &verdict))?;
    }
    Ok(all_found)
}

/// What became of a leak.
enum Verdict {
    /// All tests that are there for it failed.
    Found { by: Vec<String> },
    /// Not all of them did.
    Survived { missed_by: Vec<&'static str>, found_by: Vec<String> },
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

fn plant(leak: &Leak, copy: &Copy, tests: &PrivacyTests<'_>) -> Result<Verdict, String> {
    let planted = match copy.plant(leak) {
        Ok(planted) => planted,
        Err(reason) => return Ok(Verdict::NoLongerApplies(reason)),
    };
    let outcome = tests.run(leak.found_by);
    planted.restore()?;
    Ok(match outcome? {
        Outcome::DoesNotCompile { errors } => Verdict::DoesNotCompile(errors),
        Outcome::Ran { failed } => {
            let missed = |test: &&&str| !failed.iter().any(|failed| failed == **test);
            let missed_by: Vec<_> = leak.found_by.iter().filter(missed).copied().collect();
            if missed_by.is_empty() {
                Verdict::Found { by: failed }
            } else {
                Verdict::Survived { missed_by, found_by: failed }
            }
        }
    })
}

fn choose(only: &[String]) -> Result<Vec<&'static Leak>, String> {
    if let Some(unknown) = only.iter().find(|name| LEAKS.iter().all(|leak| leak.name != **name)) {
        return Err(format!("there is no leak {unknown:?}: --list names them"));
    }
    let is_chosen = |leak: &&Leak| only.is_empty() || only.iter().any(|name| name == leak.name);
    Ok(LEAKS.iter().filter(is_chosen).collect())
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
    Line {
        json: json!({ "leak": leak.name, "shows": leak.shows, "found_by": leak.found_by }),
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
