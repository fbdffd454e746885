//! `oblivio create`: a new volume.

use std::fs;
use std::path::Path;

use oblivio_core::durable::Contents;
use oblivio_store::{Location, StoreOptions};
use oblivio_volume::keys::{NewSlot, Secret, VolumeKey};
use oblivio_volume::superblock::{Superblock, Unlocked};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Coins, Volume, VolumeError, VolumeOptions};
use serde_json::json;

use super::image::{Image, interrupted};
use super::plan::{Plan, opening_line};
use super::signals::EndAsked;
use super::{opening, room, secret, state_home};
use crate::args::CreateArgs;
use crate::error::CliError;
use crate::output;

/// `oblivio create`.
pub(crate) fn create(args: &CreateArgs) -> Result<(), CliError> {
    let location = &args.at.volume;
    let image = args.from.as_deref().map(Image::open).transpose()?;
    let bytes = match &image {
        Some(image) => image.disk_bytes(args.size)?,
        // The command line does without one of them alone.
        None => args.size.unwrap_or_default(),
    };
    let plan = Plan::new(bytes, &args.wish, location.kind())?;
    // Not to be asked for a passphrase in vain. The store will refuse what exists again.
    location.check_vacant()?;
    room::check_store(&plan, location)?;
    let secret = secret::choose(&args.at.secret)?;
    let cost = secret::cost(&secret, args.unlock_millis)?;
    let mut coins = opening::coins()?;
    let volume_key = VolumeKey::draw(&mut coins);
    let slot = NewSlot { secret: &secret, cost, label: &args.label };
    let superblock = Superblock::create(plan.params.clone(), &volume_key, &slot, &mut coins)
        .map_err(VolumeError::from)?;
    let owner = Unlocked { superblock, volume_key, slot: 0 };
    let state = state_home::directory(args.at.state.as_deref(), owner.superblock.volume_id())?;

    room::check_state(&plan, &state);
    let had_state = state.exists();
    if let Err(error) = make(location, &state, &owner, coins, image.as_ref()) {
        // What is no volume is in the way of the next attempt.
        if !had_state {
            let _ = fs::remove_dir_all(&state);
        }
        return Err(error);
    }
    if args.json {
        let mut json = plan.json();
        json["volume"] = json!(location.to_string());
        json["state"] = json!(state);
        output::print(&format!("{json:#}"))
    } else {
        let passphrase = matches!(secret, Secret::Passphrase(_)).then_some(cost);
        let lines = [plan.text()].into_iter().chain(opening_line(passphrase));
        output::print(&format!(
            "{}\n\ncreated           {location}\nstate             {}\n\nKeep the state as you keep the \
             volume: without it the data cannot be found.",
            lines.collect::<Vec<_>>().join("\n"),
            state.display()
        ))
    }
}

/// Makes store and directory. A store that does not become a volume is removed, also when a signal asked for it.
fn make(
    location: &Location,
    state: &Path,
    owner: &Unlocked,
    coins: Coins,
    image: Option<&Image>,
) -> Result<(), CliError> {
    let end = EndAsked::listen()?;
    let dir = Box::new(state_home::create(state)?);
    let params = owner.superblock.params();
    let store = location.create(&shapes(params)?, &StoreOptions::default())?;
    let mut blocks = image.map(|image| image.blocks(params.blocks, &end));
    let contents = blocks.as_mut().map(|blocks| blocks as &mut dyn Contents);
    let options = VolumeOptions::default();
    let made = Volume::create_with(store, dir, owner, options, coins, contents);
    let made = match made.and_then(Volume::close) {
        Ok(_) if end.is_asked() => Err(interrupted()),
        Ok(_) => Ok(()),
        Err(error) => Err(blocks.and_then(|it| it.failure).unwrap_or_else(|| error.into())),
    };
    if made.is_err() {
        let _ = location.remove();
    }
    made
}
