//! Errors, their exit codes, and advice about them.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use oblivio::{Error, ErrorKind};
use oblivio_bucket_server::BucketServerError;
use oblivio_mount::fuse::MountError;
use oblivio_nbd::ServeError;
use oblivio_store::OpenError;
use oblivio_volume::VolumeError;
use oblivio_volume::device::DiskErrorKind;
use oblivio_watch::WatchError;

/// Number that shells add to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

/// An error that ends the program. Other programs rely on the exit codes, which the help text
/// lists.
#[derive(Debug)]
pub enum CliError {
    /// The command line is invalid in a way that the parser cannot detect.
    Usage(String),
    /// A disk, the system or the engine failed.
    Engine(String),
    /// The input is invalid.
    Input(String),
    /// The output cannot be written.
    Output(String),
    /// The data read back is not the data written.
    Different(String),
    /// The secret opens no key slot.
    WrongKey(String),
    /// A server does not admit this client.
    NotAdmitted(String),
    /// Storage does not hold the data that was written.
    Tampered(String),
    /// Storage is older than the state that the client recorded.
    StoreRolledBack(String),
    /// Another process has the volume open.
    Locked(String),
    /// There is no space left.
    NoSpace(String),
    /// The client's directory is missing, damaged, or of another volume.
    State(String),
    /// The client's directory is older than storage.
    StateRolledBack(String),
    /// The volume or file was written by another version of this program.
    UnknownVersion(String),
    /// The volume was not closed and needs recovery.
    NeedsRecovery(String),
    /// Storage does not answer.
    Unreachable(String),
    /// A command that was run for the user ended with this status.
    Command(ExitStatus),
    /// This program, run again as a child, ended with this status and has reported why.
    ChildReported(ExitStatus),
}

impl CliError {
    /// The exit code of the process.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The exit code as a number.
    pub fn code(&self) -> u8 {
        match self {
            Self::Engine(_) => 1,
            // Also clap's exit code for an invalid command line.
            Self::Usage(_) => 2,
            Self::Input(_) => 3,
            Self::Output(_) => 4,
            Self::Different(_) => 5,
            Self::WrongKey(_) | Self::NotAdmitted(_) => 6,
            Self::Tampered(_) => 7,
            Self::StoreRolledBack(_) => 8,
            Self::Locked(_) => 9,
            Self::NoSpace(_) => 10,
            Self::State(_) => 11,
            Self::StateRolledBack(_) => 12,
            Self::UnknownVersion(_) => 13,
            Self::NeedsRecovery(_) => 14,
            Self::Unreachable(_) => 15,
            Self::Command(status) | Self::ChildReported(status) => {
                let as_shells_say = status.signal().map(|signal| SIGNALLED + signal);
                let code = status.code().or(as_shells_say);
                code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
            }
        }
    }
}

impl CliError {
    /// Whether the user has already seen the error. A child process reports its own error, unless a
    /// signal ended it.
    pub fn is_reported(&self) -> bool {
        matches!(self, Self::ChildReported(status) if status.code().is_some())
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Engine(message)
            | Self::Input(message)
            | Self::Output(message)
            | Self::Different(message)
            | Self::WrongKey(message)
            | Self::NotAdmitted(message)
            | Self::Tampered(message)
            | Self::StoreRolledBack(message)
            | Self::Locked(message)
            | Self::NoSpace(message)
            | Self::State(message)
            | Self::StateRolledBack(message)
            | Self::UnknownVersion(message)
            | Self::NeedsRecovery(message)
            | Self::Unreachable(message) => f.write_str(message),
            Self::Command(status) | Self::ChildReported(status) => {
                match (status.code(), status.signal()) {
                    (None, Some(signal)) => write!(f, "signal {signal} ended the command"),
                    (code, _) => {
                        write!(f, "the command ended with exit code {}", code.unwrap_or(1))
                    }
                }
            }
        }
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error.kind() {
            ErrorKind::Input => Self::Input(message),
            ErrorKind::WrongKey => Self::WrongKey(message),
            ErrorKind::NotAdmitted => Self::NotAdmitted(message),
            ErrorKind::Tampered => Self::Tampered(message),
            ErrorKind::StoreRolledBack => Self::StoreRolledBack(message),
            ErrorKind::Locked => Self::Locked(message),
            ErrorKind::NoSpace => Self::NoSpace(message),
            ErrorKind::State => Self::State(message),
            ErrorKind::StateRolledBack => Self::StateRolledBack(message),
            ErrorKind::UnknownVersion => Self::UnknownVersion(message),
            ErrorKind::Unreachable => Self::Unreachable(message),
            _ => Self::Engine(message),
        }
    }
}

impl From<VolumeError> for CliError {
    fn from(error: VolumeError) -> Self {
        Error::from(error).into()
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        Error::from(error).into()
    }
}

impl From<BucketServerError> for CliError {
    fn from(error: BucketServerError) -> Self {
        let message = error.to_string();
        match error {
            BucketServerError::Folder(..) => Self::Output(message),
            BucketServerError::InUse(_) => Self::Locked(message),
            BucketServerError::Client(_)
            | BucketServerError::Peer(_)
            | BucketServerError::Key(_)
            | BucketServerError::Limits(_) => Self::Input(message),
            _ => Self::Engine(message),
        }
    }
}

impl From<MountError> for CliError {
    fn from(error: MountError) -> Self {
        let message = error.to_string();
        match error {
            MountError::NotADirectory(_)
            | MountError::Empty
            | MountError::MayHoldData
            | MountError::TooSmall(_)
            | MountError::NotThisFilesystem(_)
            | MountError::UnfitDisk(_)
            | MountError::NotServed(_)
            | MountError::Hides { .. }
            | MountError::File { .. } => Self::Input(message),
            MountError::Busy(_)
            | MountError::AlreadyServed { .. }
            | MountError::NotMountedYet { .. } => Self::Locked(message),
            MountError::Disk(error) if error.kind == DiskErrorKind::NoSpace => {
                Self::NoSpace(message)
            }
            _ => Self::Engine(message),
        }
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        let message = error.to_string();
        match error {
            ServeError::NotASocket(_)
            | ServeError::NotLoopback(_)
            | ServeError::AnyClient(_)
            | ServeError::PathTooLong(_)
            | ServeError::NoFolder(_)
            | ServeError::ForeignLock(_)
            | ServeError::TooLong(_)
            | ServeError::Tls(..) => Self::Input(message),
            ServeError::InUse(_) => Self::Locked(message),
            _ => Self::Engine(message),
        }
    }
}

impl From<WatchError> for CliError {
    fn from(error: WatchError) -> Self {
        let message = error.to_string();
        match error {
            WatchError::NotLoopback(_) => Self::Input(message),
            _ => Self::Engine(message),
        }
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

impl From<oblivio_models::Error> for CliError {
    fn from(error: oblivio_models::Error) -> Self {
        match error {
            oblivio_models::Error::Engine(_) => Self::Engine(error.to_string()),
            _ => Self::Input(error.to_string()),
        }
    }
}
