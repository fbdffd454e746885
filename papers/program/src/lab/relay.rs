//! `oblivio-lab relay`: relays connections to a server as slowly as a given link.

use std::thread;
use std::time::Duration;

use oblivio_cli::clock::Stopwatch;
use oblivio_cli::output;
use oblivio_cli::signals::StopFlag;
use oblivio_lab::relay::{Counts, Cuts, DirectionCounts, Relay};
use serde_json::json;

use crate::args::RelayArgs;
use crate::error::ProgramError;

/// The interval at which the main thread checks whether a signal has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Runs `oblivio-lab relay`.
pub(crate) fn relay(args: &RelayArgs) -> Result<(), ProgramError> {
    let cuts = args.cut_after.map(match args.cut_each {
        true => Cuts::each_after,
        false => Cuts::once_after,
    });
    let relay = Relay::bind(args.listen, args.to, args.link, cuts)?;
    let end = StopFlag::listen()?;
    output::print(&match args.json {
        true => json!({ "listens": relay.address().to_string(), "link": relay.link() }).to_string(),
        false => format!("listens  {}, to {}, on {}", relay.address(), args.to, relay.link()),
    })?;

    let stopwatch = Stopwatch::start();
    thread::scope(|scope| {
        scope.spawn(|| relay.run(&|| stopwatch.elapsed()));
        while !end.is_requested() {
            thread::sleep(LOOK_EVERY);
        }
        relay.stop();
    });

    let counts = relay.counts();
    Ok(output::print(&match args.json {
        true => json!(counts).to_string(),
        false => text(&counts),
    })?)
}

fn text(counts: &Counts) -> String {
    let Counts { connections, refused, cuts, down, up } = counts;
    let way = |DirectionCounts { bytes, turns }: &DirectionCounts| {
        format!("{bytes} bytes, {turns} turns")
    };
    format!(
        "down     {}\nup       {}\n\
         made     {connections} connections, {cuts} of them cut, {refused} turned away",
        way(down),
        way(up)
    )
}
