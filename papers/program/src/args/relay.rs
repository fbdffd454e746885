//! What can be typed after `oblivio-lab relay`.

use std::net::SocketAddr;

use clap::Args;
use oblivio_cli::link_help;
use oblivio_models::link::Link;
use oblivio_wire::size::parse_size;

pub(crate) const RELAY_EXAMPLES: &str = "\
Examples:
  oblivio-lab relay --listen 127.0.0.1:0 --to 127.0.0.1:10809 --link home
  oblivio-lab relay --listen 127.0.0.1:7000 --to 127.0.0.1:10809 --link 50/10/30 --json
  oblivio-lab relay --listen 127.0.0.1:7000 --to 127.0.0.1:10809 --link lan --cut-after 10M

What it prints first says where it listens; SIGTERM or Ctrl-C ends it, and it prints what it carried.";

#[derive(Args)]
pub(crate) struct RelayArgs {
    /// Where clients connect to: a loopback address. Port 0 chooses one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: SocketAddr,
    /// Where the server listens: a loopback address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) to: SocketAddr,
    // Its help comes from the table of links.
    #[arg(long, value_name = "LINK", help = format!("As slow as which link. {}", link_help()))]
    pub(crate) link: Link,
    /// Cut a connection that has carried so many bytes, in both directions together: the first one that does.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) cut_after: Option<u64>,
    /// Cut every connection that does, and not just the first.
    #[arg(long, requires = "cut_after")]
    pub(crate) cut_each: bool,
    /// Print JSON: a line with the address, and one with what was carried.
    #[arg(long)]
    pub(crate) json: bool,
}
