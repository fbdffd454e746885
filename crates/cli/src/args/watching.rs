//! Whether a page shows what goes on.

use std::net::SocketAddr;

use clap::Args;

use super::values::parse_address;

#[derive(Args, Clone, Copy, Default)]
pub(crate) struct WatchArgs {
    /// Serve a page that draws what storage sees as it happens, for browsers of this machine [default address:
    /// 127.0.0.1, any free port]. Its URL is printed, and is good for once: the first who opens it sees the page.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        value_parser = parse_address
    )]
    pub(crate) watch: Option<SocketAddr>,
    /// Show on that page what the owner does, too: where on the disk requests are, and what goes on inside of the client.
    /// All of that is secret.
    #[arg(long, requires = "watch")]
    pub(crate) watch_secrets: bool,
}
