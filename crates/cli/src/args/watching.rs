//! Arguments of the page that shows a volume in use.

use std::net::SocketAddr;

use clap::Args;

use super::values::parse_address;

#[derive(Args, Clone, Copy, Default)]
pub(crate) struct WatchArgs {
    /// Serve a page that draws what storage sees as it happens, for browsers on this machine
    /// [default address: 127.0.0.1, any free port]. The URL is printed, and works once: for the
    /// first browser that opens it.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        value_parser = parse_address
    )]
    pub(crate) watch: Option<SocketAddr>,
    /// Also show the owner's side on that page: which parts of the disk are requested, and what
    /// happens inside the client. All of this is secret.
    #[arg(long, requires = "watch")]
    pub(crate) watch_secrets: bool,
}
