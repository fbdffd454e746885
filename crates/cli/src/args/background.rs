//! What can be typed of commands that can go on in the background.

use std::env;
use std::path::PathBuf;

use clap::Args;

#[derive(Args, Clone, Default)]
pub(crate) struct BackgroundArgs {
    /// Return once the disk can be used, and go on in the background. A passphrase is asked for, and errors are told,
    /// before that.
    #[arg(long)]
    pub(crate) background: bool,
    /// With `--background`: the log file for messages after the command has returned [default:
    /// `background.log` in the client's directory]. It must not lie below the directory of a mount.
    #[arg(long, value_name = "FILE", requires = "background")]
    pub(crate) log: Option<PathBuf>,
    /// This is the one that goes on. Nobody types that.
    #[arg(skip = is_in_background())]
    pub(crate) in_background: bool,
}

/// What a process is called that was started to go on in the background: so it knows.
pub(crate) const NAME_IN_BACKGROUND: &str = "oblivio-in-background";

fn is_in_background() -> bool {
    env::args_os().next().is_some_and(|name| name == NAME_IN_BACKGROUND)
}
