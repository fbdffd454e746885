//! `oblivio create`: a new volume.

use std::fs;
use std::path::Path;

use oblivio_store::{Location, StoreOptions};
use oblivio_volume::keys::{NewSlot, Secret, VolumeKey};
use oblivio_volume::superblock::{Superblock, Unlocked};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Coins, Volume, VolumeError, VolumeOptions};
use serde_json::json;

use super::plan::{Plan, opening_line};
use super::signals::EndAsked;
use super::{opening, room, secret, state_home};
use crate::args::CreateArgs;
use crate::error::CliError;
use crate::output;

/// `oblivio create`.
pub(crate) fn create(args: &CreateArgs) -> Result<(), CliError> {
    let location = &args.at.volume;
    let plan = Plan::new(args.size, &args.wish, location.kind())?;
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
    if let Err(error) = make(location, &state, &owner, coins) {
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
fn make(location: &Location, state: &Path, owner: &Unlocked, coins: Coins) -> Result<(), CliError> {
    let end = EndAsked::listen()?;
    let dir = state_home::create(state)?;
    let shapes = shapes(owner.superblock.params())?;
    let store = location.create(&shapes, &StoreOptions::default())?;
    let made = Volume::create(store, Box::new(dir), owner, VolumeOptions::default(), coins)
        .and_then(Volume::close)
        .map(drop);
    let made = match made {
        Ok(()) if end.is_asked() => {
            Err(CliError::Engine("interrupted: the volume was removed again".into()))
        }
        made => made.map_err(CliError::from),
    };
    if made.is_err() {
        let _ = location.remove();
    }
    made
}
