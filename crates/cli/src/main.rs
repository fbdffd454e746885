//! `oblivio`: disks on storage that you do not trust.

use std::process::ExitCode;

fn main() -> ExitCode {
    oblivio_cli::main()
}
