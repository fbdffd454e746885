//! Breaks the product on purpose, one leak at a time, and demands that tests notice.
//!
//! A test that has never failed proves nothing. This tool copies the workspace and plants the leaks of
//! [`leaks`] in the copy: as many as can behind [`switches`], in one build; the others one by one. Each must
//! compile, and each must make the tests fail that are there to find it, which pass without it. The
//! workspace itself is never changed.
//!
//! Exit status: 0 when every leak was found, 1 when one survived, no longer applies or does not
//! compile, 2 when the tool itself could not work.

mod copy;
mod leaks;
mod report;
mod switches;
mod targets;
mod test_runs;
mod verdict;
mod workers;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use copy::Copy;
use leaks::Leak;
use report::Report;
use switches::Batch;
use targets::{Finders, TestTarget, full_name};
use test_runs::TestRuns;
use verdict::Verdict;

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
    match work(&arguments, &Report::new(arguments.json)) {
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
fn work(arguments: &Arguments, report: &Report) -> Result<bool, String> {
    let chosen = choose(&arguments.only)?;
    if arguments.list {
        chosen.into_iter().try_for_each(|leak| report.print(&report::listing(leak)))?;
        return Ok(true);
    }
    let room = room();
    let copy = room.join("workspace");
    let tests = TestRuns::new(&copy, room.join("target"));
    let batch = build_together(&chosen, &copy, &tests)?;
    must_pass(finders(batch.switched_leaks()), &tests)?;
    let found_together = throw_switches(&batch, &tests, report)?;
    let found_alone = plant_alone(&batch.alone, &copy, &tests, report)?;
    Ok(found_together && found_alone)
}

/// Builds the tests with all leaks that can be built together.
fn build_together(
    leaks: &[&'static Leak],
    copy: &Path,
    tests: &TestRuns<'_>,
) -> Result<Batch, String> {
    let mut alone = BTreeSet::new();
    loop {
        let batch = Batch::new(&workspace().join("crates"), leaks, &alone)?;
        Copy::take(&workspace(), copy, &batch.files)?;
        let mut blamed = BTreeSet::new();
        // Those of the others too: they must pass before anything is planted.
        let targets = finders(leaks.iter().copied()).into_iter().map(|(target, _)| target);
        if let Err(wrong) = tests.build(targets)? {
            blamed = batch.blamed(&wrong.errors);
            if blamed.is_empty() {
                return Err(format!("the tests do not compile with the switches:\n{wrong}"));
            }
        }
        if blamed.is_empty() {
            return Ok(batch);
        }
        alone.extend(blamed);
    }
}

/// Proves that tests pass while no leak is planted, under the load under which they are to find one: what fails
/// from load alone finds nothing.
fn must_pass(finders: Vec<(TestTarget, Vec<&str>)>, tests: &TestRuns<'_>) -> Result<(), String> {
    let each = finders.iter().flat_map(|(target, names)| names.iter().map(move |it| (target, *it)));
    let failed = workers::at_once(each, |(target, name)| {
        let failed = tests.run(target, &[name], None)?.0;
        Ok((!failed.is_empty()).then(|| full_name(target, name)))
    })?;
    let failed: Vec<_> = failed.into_iter().flatten().collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("tests must pass before a leak is planted; these fail: {}", failed.join(", ")))
}

/// Tries the leaks that have a switch. Whether all were found.
fn throw_switches(batch: &Batch, tests: &TestRuns<'_>, report: &Report) -> Result<bool, String> {
    let found = workers::at_once(batch.switched.iter(), |(number, leak)| {
        let verdict = Verdict::of(leak, tests, Some(*number))?;
        report.print(&verdict.line(leak))?;
        Ok(verdict.is_found())
    })?;
    Ok(found.into_iter().all(|found| found))
}

/// Tries the leaks that have none, each in a build of its own.
fn plant_alone(
    leaks: &[&'static Leak],
    root: &Path,
    tests: &TestRuns<'_>,
    report: &Report,
) -> Result<bool, String> {
    if leaks.is_empty() {
        return Ok(true);
    }
    let files = leaks.iter().flat_map(|leak| leak.edits).map(|edit| edit.file);
    let readers = switches::with_readers(&workspace().join("crates"), files, Default::default())?;
    let copy = Copy::take(&workspace(), root, &readers)?;
    must_pass(finders(leaks.iter().copied()), tests)?;
    let mut all_found = true;
    for leak in leaks {
        let verdict = plant(leak, &copy, tests)?;
        all_found &= verdict.is_found();
        report.print(&verdict.line(leak))?;
    }
    Ok(all_found)
}

fn plant(leak: &Leak, copy: &Copy, tests: &TestRuns<'_>) -> Result<Verdict, String> {
    let planted = match copy.plant(leak) {
        Ok(planted) => planted,
        Err(reason) => return Ok(Verdict::NoLongerApplies(reason)),
    };
    let built = tests.build(leak.found_by.iter().map(|finders| finders.target));
    let verdict = built.and_then(|built| match built {
        Err(wrong) => Ok(Verdict::DoesNotCompile(wrong)),
        Ok(()) => Verdict::of(leak, tests, None),
    });
    planted.restore()?;
    verdict
}

/// The tests that are to find leaks, each once, by their targets.
fn finders(leaks: impl Iterator<Item = &'static Leak>) -> Vec<(TestTarget, Vec<&'static str>)> {
    let mut targets: Vec<(TestTarget, BTreeSet<&str>)> = Vec::new();
    for Finders { target, names } in leaks.flat_map(|leak| leak.found_by) {
        match targets.iter_mut().find(|(known, _)| known == target) {
            Some((_, known)) => known.extend(names.iter()),
            None => targets.push((*target, names.iter().copied().collect())),
        }
    }
    targets.into_iter().map(|(target, names)| (target, names.into_iter().collect())).collect()
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
