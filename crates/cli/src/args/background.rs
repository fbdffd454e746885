//! Arguments of commands that can run in the background.

use std::env;
use std::path::PathBuf;

use clap::Args;

#[derive(Args, Clone, Default)]
pub(crate) struct BackgroundArgs {
    /// Return once the disk can be used, and continue in the background. The passphrase prompt and
    /// any errors still come first.
    #[arg(long)]
    pub(crate) background: bool,
    /// With `--background`: the log file for messages after the command has returned [default:
    /// `background.log` in the client's directory]. It must not lie below the directory of a mount.
    #[arg(long, value_name = "FILE", requires = "background")]
    pub(crate) log: Option<PathBuf>,
    /// Whether this process is the one in the background. Not an option.
    #[arg(skip = is_in_background())]
    pub(crate) in_background: bool,
}

/// The `argv[0]` of a process that was started to run in the background. The process recognizes by
/// this name that it runs there.
pub(crate) const NAME_IN_BACKGROUND: &str = "oblivio-in-background";

fn is_in_background() -> bool {
    env::args_os().next().is_some_and(|name| name == NAME_IN_BACKGROUND)
}
