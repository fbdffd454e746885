//! What can go wrong, whose fault it is, and what to do about it.

use std::fmt;
use std::process::ExitCode;

use oblivio_lab::LabError;

/// An error that ends the program. The exit codes are API: the help text lists them.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The engine failed: 1.
    Engine(String),
    /// The input cannot be used: 3.
    Input(String),
    /// The output cannot be written: 4.
    Output(String),
    /// What was read back is not what was written: 5.
    Different(String),
}

impl CliError {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Engine(_) => 1,
            // 2 is a command line that is not understood: clap leaves with it.
            Self::Input(_) => 3,
            Self::Output(_) => 4,
            Self::Different(_) => 5,
        })
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Engine(message)
        | Self::Input(message)
        | Self::Output(message)
        | Self::Different(message)) = self;
        f.write_str(message)
    }
}

impl From<oblivio_core::Error> for CliError {
    fn from(error: oblivio_core::Error) -> Self {
        match error.kind() {
            oblivio_core::ErrorKind::InvalidConfig => Self::Input(error.to_string()),
            _ => Self::Engine(error.to_string()),
        }
    }
}

impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Plan(_) | LabError::Results(_) => Self::Input(error.to_string()),
            LabError::Engine(_) | LabError::Plot(_) => Self::Engine(error.to_string()),
        }
    }
}
