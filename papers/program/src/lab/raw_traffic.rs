//! `oblivio-lab run raw-traffic`.

use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::raw_traffic::{Plan, Results, figures, run};
use oblivio_lab::report;

use super::made::Made;
use super::threads;
use crate::args::RawTrafficArgs;
use crate::error::ProgramError;

/// `oblivio-lab run raw-traffic`.
pub(crate) fn run_raw_traffic(args: &RawTrafficArgs) -> Result<(), ProgramError> {
    let plan = plan(args);
    let output_dir = OutputDir::prepare(&args.output)?;
    let bar = progress::bar_of(plan.steps(), "runs");
    let measured = run(&plan, threads(args.measuring.threads), &|| bar.inc(1))?;
    bar.finish_and_clear();
    let results = measured.to_json()?;
    let path = output_dir.write("results.json", &results)?;
    let done = format!("results  {}", path.display());
    let made = Made::keep(figures(&measured), &output_dir, &done)?;
    if args.json { Ok(output::print(&results)?) } else { made.print(false) }
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    let results = Results::from_json(file)?;
    Ok(output::print(
        &figures(&results).iter().map(report::section).collect::<Vec<_>>().join("\n"),
    )?)
}

fn plan(args: &RawTrafficArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    Plan {
        stash_leaf_level: args.levels.unwrap_or(plan.stash_leaf_level),
        stash_accesses: args.accesses.unwrap_or(plan.stash_accesses),
        runs: args.seeds.unwrap_or(plan.runs),
        seed: args.measuring.seed,
        ..plan
    }
}
