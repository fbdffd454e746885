//! Arguments of `oblivio-lab relay`.

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

The first line of output says where the relay listens. SIGTERM or Ctrl-C ends the relay, which then
prints how much it carried.";

#[derive(Args)]
pub(crate) struct RelayArgs {
    /// Loopback address for clients. Port 0 chooses a free port.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: SocketAddr,
    /// Loopback address of the server.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) to: SocketAddr,
    // Its help comes from the table of links.
    #[arg(long, value_name = "LINK", help = format!("The link to imitate. {}", link_help()))]
    pub(crate) link: Link,
    /// Cut the first connection that has carried this many bytes, in both directions together.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) cut_after: Option<u64>,
    /// Cut every connection that has carried --cut-after bytes, not just the first.
    #[arg(long, requires = "cut_after")]
    pub(crate) cut_each: bool,
    /// Print JSON: one line with the address, and one with the bytes carried.
    #[arg(long)]
    pub(crate) json: bool,
}
