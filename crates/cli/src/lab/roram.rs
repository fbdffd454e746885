//! `oblivio lab run roram`.

use oblivio_lab::report;
use oblivio_lab::roram::{self, Form, PAPER_ELL, PAPER_LEVEL, Plan, Results, figures};

use super::made::Made;
use crate::args::RoramArgs;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::{output, progress};

/// With `--quick`.
const QUICK_LEVEL: u8 = 14;
const QUICK_ELL: u8 = 10;
const QUICK_MIX_REQUESTS: usize = 50;

/// `oblivio lab run roram`.
pub(crate) fn run_roram(args: &RoramArgs) -> Result<(), CliError> {
    let [level, ell] = if args.quick { [QUICK_LEVEL, QUICK_ELL] } else { [PAPER_LEVEL, PAPER_ELL] };
    let level = args.level.unwrap_or(level);
    let ell = args.ell.unwrap_or(ell.min(level));
    if ell > level {
        return Err(CliError::Input(format!(
            "ranges of 2^{ell} blocks are longer than 2^{level} blocks: choose a smaller --ell"
        )));
    }
    let mix_requests_max = if args.quick { QUICK_MIX_REQUESTS } else { usize::MAX };
    let plan = Plan { level, ell, mix_requests_max, seed: args.seed };
    let output_dir = OutputDir::prepare(&args.output)?;
    let bar = progress::bar_of(Form::ALL.len() as u64, "ORAMs");
    let measured = roram::run(&plan, &|| bar.inc(1));
    bar.finish_and_clear();
    let results = measured.to_json()?;
    let path = output_dir.write("results.json", &results)?;
    let done = format!("results  {}", path.display());
    let made = Made::keep(figures(&measured), &output_dir, &done)?;
    if args.json { output::print(&results) } else { made.print(false) }
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), CliError> {
    let results = Results::from_json(file)?;
    output::print(&figures(&results).iter().map(report::section).collect::<Vec<_>>().join("\n"))
}
