//! `oblivio key client` and `oblivio key server`: the keys that identify clients and servers.

use std::path::Path;

use oblivio_wire::keys::{KeyError, PublicKey, SecretKey};
use serde_json::json;

use crate::args::{ClientKeyArgs, ServerKeyArgs};
use crate::error::CliError;
use crate::{files, output};

/// `oblivio key client`: prints a line of a server's allow file.
pub(crate) fn client(args: &ClientKeyArgs) -> Result<(), CliError> {
    let key = read_or_make(&args.file)?;
    let line = format!("{key} {}", args.name);
    if args.json {
        let json = json!({ "key": key.to_string(), "name": args.name, "line": line });
        return output::print(&format!("{json:#}"));
    }
    output::print_remark("a line for the server's allow file:");
    output::print(&line)
}

/// `oblivio key server`: prints the server's public key as a part of a volume's URL, or as a line
/// of another server's peers file.
pub(crate) fn server(args: &ServerKeyArgs) -> Result<(), CliError> {
    let key = read_or_make(&args.file)?;
    let shown = key.to_string();
    let query = format!("server={}", shown.split_whitespace().last().unwrap_or_default());
    let peer = args.address.as_ref().map(|address| format!("{shown} {address}"));
    if args.json {
        let json = json!({ "key": shown, "query": query, "line": peer });
        return output::print(&format!("{json:#}"));
    }
    if let Some(line) = peer {
        output::print_remark("a line for the peers files of other share servers:");
        return output::print(&line);
    }
    output::print_remark("for the URLs of its volumes, after a question mark:");
    output::print(&query)
}

/// Reads the public key of a key file, which is created if it does not exist.
fn read_or_make(path: &Path) -> Result<PublicKey, CliError> {
    let unusable = |error: KeyError| CliError::Input(error.to_string());
    if path.symlink_metadata().is_ok() {
        return Ok(SecretKey::read(path).map_err(unusable)?.public());
    }
    let key = SecretKey::generate().map_err(unusable)?;
    key.write(path).map_err(|error| files::cannot_write(path, &error))?;
    output::print_remark(&format!("a new key is in {}: keep it secret", path.display()));
    Ok(key.public())
}
