//! `oblivio serve store` and `oblivio serve shares`: store volumes or shares for clients on other
//! machines.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::{BucketLimits, BucketServer, BucketServerError, BucketServerOptions};
use oblivio_shares::remote::SERVERS_MIN;
use oblivio_wire::keys::{
    AllowedClient, KeyError, PeerServer, PublicKey, SecretKey, allowed_clients, peer_servers,
};
use serde_json::json;

use super::clean_end::GracefulStop;
use super::metrics_page::MetricsPage;
use super::recorded_servers::record_to;
use crate::args::{SharesArgs, StoreArgs};
use crate::error::CliError;
use crate::{files, output};

/// The interval at which the command checks whether it must stop.
const LOOK: Duration = Duration::from_millis(50);

/// Maximum bytes of an allow file or a peers file.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// `oblivio serve store`.
pub(crate) fn serve_store(args: &StoreArgs) -> Result<(), CliError> {
    serve(args, None)
}

/// `oblivio serve shares`.
pub(crate) fn serve_shares(args: &SharesArgs) -> Result<(), CliError> {
    serve(&args.store, Some(args))
}

fn unusable(error: KeyError) -> CliError {
    CliError::Input(error.to_string())
}

/// Reads the servers of a peers file, which may include this server (`own`). Fails if the file has
/// fewer than two other servers, because a volume needs at least three servers.
fn read_peers(
    path: &Path,
    clients: &[AllowedClient],
    own: PublicKey,
) -> Result<Vec<PeerServer>, CliError> {
    const OTHERS_MIN: usize = SERVERS_MIN - 1;
    let text = files::read_text(path, LIST_BYTES_MAX)?;
    let peers = peer_servers(&text, clients).map_err(unusable)?;
    let others = peers.iter().filter(|peer| peer.key != own).count();
    if others < OTHERS_MIN {
        return Err(CliError::Input(format!(
            "the peers file {} has {others} other servers, but a volume is on this one and at \
             least {OTHERS_MIN} others: add the line that `oblivio key server --address` prints on \
             each of them",
            path.display()
        )));
    }
    Ok(peers)
}

/// Runs a bucket server, or a share server if `shares` is given.
fn serve(args: &StoreArgs, shares: Option<&SharesArgs>) -> Result<(), CliError> {
    let key = SecretKey::read(&args.key).map_err(unusable)?;
    let clients = files::read_text(&args.allow, LIST_BYTES_MAX)?;
    let clients = allowed_clients(&clients).map_err(unusable)?;
    if clients.is_empty() {
        return Err(CliError::Input(format!(
            "{} permits no client: add a line that `oblivio key client` prints",
            args.allow.display()
        )));
    }
    let peers = shares.map(|shares| read_peers(&shares.peers, &clients, key.public()));
    let peers = peers.transpose()?;
    let views = shares.and_then(|it| Some((it.record_views.as_ref()?, it.record_views_max)));
    let watch = views.map(|(folder, bytes_max)| record_to(folder, bytes_max, &clients));
    let watch = watch.transpose()?;
    if !args.listen.ip().is_loopback() && !args.beyond_loopback {
        return Err(CliError::Input(format!(
            "{} is reachable from other machines: pass --beyond-loopback to allow that (clients \
             must authenticate in any case)",
            args.listen
        )));
    }
    let beyond = args.metrics.filter(|address| !address.ip().is_loopback());
    if let Some(address) = beyond.filter(|_| !args.beyond_loopback) {
        return Err(CliError::Input(format!(
            "{address} is reachable from other machines without authentication: pass \
             --beyond-loopback to publish the metrics there"
        )));
    }
    log_to_stderr();
    files::make_private_folder(&args.folder)?;
    let public = key.public().to_string();
    let limits = BucketLimits {
        connections_max: args.connections_max,
        memory_bytes_max: args.memory_max,
        ..BucketLimits::default()
    };
    let computes = peers.is_some();
    let folder = args.folder.clone();
    let options = BucketServerOptions { folder, key, clients, peers, limits };
    let server = BucketServer::bind(args.listen, options)?;
    watch.into_iter().for_each(|watch| server.watch_volumes(watch));
    let (handle, address) = (server.handle(), server.address());
    let metrics = handle.clone();
    let page = args.metrics.map(|address| MetricsPage::serve(address, move || metrics.metrics()));
    let page = page.transpose()?;
    let end = GracefulStop::listen("requests of clients are being answered")?;
    let public = public.split_whitespace().last().unwrap_or_default();
    let query = format!("server={public}");
    if args.json {
        let metrics = page.as_ref().map(|page| page.address().to_string());
        output::print(&format!(
            "{:#}",
            json!({
                "address": address.to_string(),
                "key": public,
                "query": query,
                "metrics": metrics,
            })
        ))?;
    } else {
        output::print(&if computes {
            format!("shares at {address}, with the key {public}")
        } else {
            format!("storing volumes at oblivio+tls://{address}/NAME?{query}&key=FILE")
        })?;
        if let Some(page) = &page {
            output::print(&format!("metrics at http://{}/metrics", page.address()))?;
        }
    }
    let stopper = thread::Builder::new().name("stopper".into()).spawn(move || {
        while !end.is_requested() {
            thread::sleep(LOOK);
        }
        handle.stop();
    });
    stopper.map_err(BucketServerError::System)?;
    Ok(server.run()?)
}

/// Logs to standard error until the program ends. Requests of clients are not logged.
fn log_to_stderr() {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).with_target(false);
    log.init();
}
