//! Disables core dumps of processes that have the key of a volume in memory.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

use crate::error::CliError;

/// Disables core dumps of this process. Call this before any key is read. Child processes inherit
/// the limit of 0 bytes for core files, but may raise it, and debuggers can attach to them.
pub(crate) fn forbid() -> Result<(), CliError> {
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    // The limit does not apply if the system pipes dumps to a program. The second call covers that
    // case, and also keeps debuggers of the same user out.
    setrlimit(Resource::Core, limit)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable))
        .map_err(|error| {
            CliError::Engine(format!(
                "cannot disable core dumps (they would contain keys): {error}"
            ))
        })
}
