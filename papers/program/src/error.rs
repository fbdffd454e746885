//! The program's error, which determines its exit code.

use oblivio_cli::error::CliError;
use oblivio_lab::LabError;
use oblivio_sim::SimError;

/// An error that ends the program, with the exit codes of `oblivio`.
#[derive(Debug)]
pub(crate) struct ProgramError(pub(crate) CliError);

impl From<CliError> for ProgramError {
    fn from(error: CliError) -> Self {
        Self(error)
    }
}

impl From<oblivio_models::Error> for ProgramError {
    fn from(error: oblivio_models::Error) -> Self {
        Self(error.into())
    }
}

impl From<LabError> for ProgramError {
    fn from(error: LabError) -> Self {
        Self(match error {
            LabError::Plan(_) | LabError::Results(_) | LabError::Input(_) => {
                CliError::Input(error.to_string())
            }
            LabError::Output(_) => CliError::Output(error.to_string()),
            LabError::Simulation(error) => return error.into(),
            LabError::Engine(_) | LabError::Plot(_) => CliError::Engine(error.to_string()),
        })
    }
}

impl From<SimError> for ProgramError {
    fn from(error: SimError) -> Self {
        Self(match error {
            SimError::Trace(_) | SimError::Spec(_) | SimError::Saved(_) => {
                CliError::Input(error.to_string())
            }
            SimError::Engine(refused) => refused.into(),
            SimError::Command(_) => CliError::Engine(error.to_string()),
            SimError::Output(_) => CliError::Output(error.to_string()),
        })
    }
}

impl From<oblivio_core::Error> for ProgramError {
    fn from(error: oblivio_core::Error) -> Self {
        Self(error.into())
    }
}
