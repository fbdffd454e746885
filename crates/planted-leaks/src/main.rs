//! Plants leaks in the product, one at a time, and checks that tests find each leak.
//!
//! A test that has never failed proves nothing. This tool copies the workspace and plants the
//! [`leaks`] in the copy. Leaks inside function bodies share one build, behind [`switches`]; every
//! other leak gets its own build. Each leak must compile, and each test listed for it must fail
//! with the leak and pass without it. The workspace itself is never changed.
//!
//! Exit status: 0 if every leak was found; 1 if a leak survived, no longer applies or does not
//! compile; 2 if the tool itself failed.

mod copy;
mod leaks;
mod report;
mod switches;
mod test_runs;
mod tests;
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
use test_runs::TestRuns;
use tests::{Test, TestProgram};
use verdict::Verdict;

/// Plants leaks in a copy of the workspace and checks that the tests find each leak.
#[derive(Parser)]
struct Arguments {
    /// List the leaks and stop
    #[arg(long)]
    list: bool,

    /// Plant only this leak; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match work(&arguments, &Report::new(arguments.json)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // If stderr fails too, the exit status is all that remains.
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs the tool. Returns whether every leak was found.
fn work(arguments: &Arguments, report: &Report) -> Result<bool, String> {
    let all = leaks::all()?;
    let chosen = choose(&all, &arguments.only)?;
    if arguments.list {
        chosen.into_iter().try_for_each(|leak| report.print(&report::listing(leak)))?;
        return Ok(true);
    }
    let crates = workspace().join("crates");
    let room = room();
    let copy = room.join("workspace");
    let tests = TestRuns::new(&copy, room.join("target"));
    let batch = build_together(&crates, &chosen, &copy, &tests)?;
    must_pass(batch.switched_leaks(), &tests)?;
    let found_together = throw_switches(&batch, &tests, report)?;
    let found_alone = plant_alone(&batch.alone, &copy, &tests, report)?;
    Ok(found_together && found_alone)
}

/// Builds the tests with all leaks that compile together.
fn build_together<'l>(
    crates: &'l Path,
    leaks: &[&'l Leak],
    copy: &Path,
    tests: &TestRuns<'_>,
) -> Result<Batch<'l>, String> {
    let mut alone = BTreeSet::new();
    loop {
        let batch = Batch::new(crates, leaks, &alone)?;
        Copy::take(&workspace(), copy, &batch.files)?;
        let mut blamed = BTreeSet::new();
        // Includes the tests of leaks that are built alone: they must pass without a leak, too.
        if let Err(wrong) = tests.build(&programs(leaks.iter().copied()))? {
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

/// Checks that the tests pass without a leak, under the same load as with one. A failure because of
/// the load would prove nothing.
fn must_pass<'l>(
    leaks: impl Iterator<Item = &'l Leak>,
    tests: &TestRuns<'_>,
) -> Result<(), String> {
    let each: BTreeSet<_> = leaks.flat_map(|leak| &leak.found_by).collect();
    let failed = workers::at_once(each.into_iter(), |Test { program, name }| {
        tests.run(program, &[name], None)
    })?;
    let failed: Vec<_> = failed.into_iter().flatten().collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("these tests fail without a leak; mend them first: {}", failed.join(", ")))
}

/// Tests the leaks that have a switch. Returns whether all leaks were found.
fn throw_switches(
    batch: &Batch<'_>,
    tests: &TestRuns<'_>,
    report: &Report,
) -> Result<bool, String> {
    let found = workers::at_once(batch.switched.iter(), |(number, leak)| {
        let verdict = Verdict::judge(leak, tests, Some(*number))?;
        report.print(&verdict.line(leak))?;
        Ok(verdict.is_found())
    })?;
    Ok(found.into_iter().all(|found| found))
}

/// Tests the leaks without a switch, each in its own build. Returns whether all leaks were found.
fn plant_alone(
    leaks: &[&Leak],
    root: &Path,
    tests: &TestRuns<'_>,
    report: &Report,
) -> Result<bool, String> {
    if leaks.is_empty() {
        return Ok(true);
    }
    let files = leaks.iter().flat_map(|leak| &leak.patches).map(|patch| &*patch.file);
    let readers = switches::with_readers(&workspace().join("crates"), files, Default::default())?;
    let copy = Copy::take(&workspace(), root, &readers)?;
    must_pass(leaks.iter().copied(), tests)?;
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
    let built = tests.build(&programs([leak].into_iter()));
    let verdict = built.and_then(|built| match built {
        Err(wrong) => Ok(Verdict::DoesNotCompile(wrong)),
        Ok(()) => Verdict::judge(leak, tests, None),
    });
    planted.restore()?;
    verdict
}

/// The test programs that `leaks` need.
fn programs<'l>(leaks: impl Iterator<Item = &'l Leak>) -> BTreeSet<TestProgram> {
    leaks.flat_map(|leak| &leak.found_by).map(|test| test.program.clone()).collect()
}

fn choose<'l>(all: &'l [Leak], only: &[String]) -> Result<Vec<&'l Leak>, String> {
    if let Some(unknown) = only.iter().find(|name| all.iter().all(|leak| leak.name != **name)) {
        return Err(format!("no leak {unknown:?}; --list prints all names"));
    }
    let is_chosen = |leak: &&Leak| only.is_empty() || only.contains(&leak.name);
    Ok(all.iter().filter(is_chosen).collect())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory for the copy and its build, inside the target directory.
fn room() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| workspace().join("target")).join("planted-leaks")
}
