//! No core dumps of processes that have the key of a volume in memory.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

use crate::error::CliError;

/// Forbids them to this process: to be called before any key is read. Programs that it starts inherit the
/// limit, which they may raise again, and are as open to debuggers as ever.
pub(crate) fn forbid() -> Result<(), CliError> {
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    // The limit does not hold where dumps go to a program; the other does, and keeps debuggers of the same
    // user out as well.
    setrlimit(Resource::Core, limit)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable))
        .map_err(|error| {
            CliError::Engine(format!(
                "core dumps, in which keys would be, cannot be turned off: {error}"
            ))
        })
}
