//! `oblivio create`: creates a volume.

use std::path::Path;

use oblivio::Location;
use oblivio::creation::{self, Creation};
use oblivio::opening::state_of;
use oblivio_core::durable::Contents;
use oblivio_store::{StoreOptions, path_text};
use oblivio_volume::keys::{Cost, Secret};
use oblivio_volume::superblock::Unlocked;
use oblivio_volume::{Coins, VolumeOptions};
use rustix::process::geteuid;
use serde_json::json;

use super::image::{Image, interrupted};
use super::plan::{VolumePlan, opening_line};
use super::{opening, room, secret};
use crate::args::{CreateArgs, VolumeArgs};
use crate::error::CliError;
use crate::output::{self, shell_word};
use crate::signals::StopFlag;

/// `oblivio create`.
pub(crate) fn create(args: &CreateArgs) -> Result<(), CliError> {
    let location = &args.at.volume;
    let image = args.from.as_deref().map(Image::open).transpose()?;
    let bytes = match &image {
        Some(image) => image.disk_bytes(args.size)?,
        // Without an image, the command line requires a size.
        None => args.size.unwrap_or_default(),
    };
    let plan = VolumePlan::new(bytes, &args.requirements, location.kind())?;
    // Before the passphrase prompt. The store refuses an existing volume again.
    location.check_vacant()?;
    room::check_store(&plan, location)?;
    let secret = secret::choose(&args.at.secret)?;
    let cost = secret::cost(&secret, args.unlock_millis)?;
    let mut coins = opening::coins()?;
    let owner = creation::owner(plan.params.clone(), &secret, cost, &args.label, &mut coins)?;
    let state = state_of(args.at.state.as_deref(), owner.superblock.volume_id())?;

    room::check_state(&plan, &state);
    make(location, &state, &owner, coins, image.as_ref())?;
    if args.json {
        let mut json = plan.json();
        json["volume"] = json!(output::location_text(location));
        json["state"] = json!(path_text(&state));
        return output::print(&format!("{json:#}"));
    }
    let passphrase = matches!(secret, Secret::Passphrase(_)).then_some(cost);
    output::print(&made(&plan, &args.at, &state, passphrase))
}

/// The summary of a new volume: its location, the files to keep, and the next steps.
fn made(plan: &VolumePlan, args: &VolumeArgs, state: &Path, passphrase: Option<Cost>) -> String {
    let with = args.options().iter().map(|option| format!(" {option}")).collect::<String>();
    let volume = shell_word(output::location_text(&args.volume));
    // Root has another home directory.
    let for_root = match args.state {
        None if !geteuid().is_root() => {
            format!(" --state {}", shell_word(state.display().to_string()))
        }
        _ => String::new(),
    };
    let mut lines =
        vec![format!("created           {}", args.volume), plan.disk_line(), plan.storage_line()];
    lines.extend(opening_line(passphrase));
    lines.extend([
        format!("state             the client's directory: {}", state.display()),
        "                  Back it up with the volume, but do not keep it where the volume is. \
         Without it the"
            .into(),
        "                  data is lost.".into(),
        format!(
            "next              oblivio mount {volume} DIR{with}{for_root}      (as root: makes a \
             file system on it, the first time)"
        ),
        format!("                  oblivio serve nbd {volume}{with}      (for any NBD client)"),
    ]);
    lines.join("\n")
}

/// Creates the store and the client's directory, and copies `image`, if there is one, to the disk.
/// If this fails or a signal interrupts it, removes both.
fn make(
    location: &Location,
    state: &Path,
    owner: &Unlocked,
    coins: Coins,
    image: Option<&Image>,
) -> Result<(), CliError> {
    let end = StopFlag::listen()?;
    let blocks = owner.superblock.params().blocks;
    let mut blocks = image.map(|image| image.blocks(blocks, &end));
    let contents = blocks.as_mut().map(|blocks| blocks as &mut dyn Contents);
    let options = VolumeOptions::default();
    let storage = &StoreOptions::default();
    let made = Creation { location, storage, state, owner, options, contents };
    let made = made.make(coins, |volume| {
        volume.close()?;
        if end.is_requested() { Err(interrupted()) } else { Ok(()) }
    });
    // If the image failed, its own error says why.
    made.map_err(|error| blocks.and_then(|it| it.failure).unwrap_or_else(|| error.into()))
}
