//! `oblivio key`: manages the key slots of a volume.

use oblivio::opening::{UnlockedStore, read_public};
use oblivio_store::StoreOptions;
use oblivio_volume::VolumeError;
use oblivio_volume::key_change::change_slots;
use oblivio_volume::keys::{NewSlot, VolumeKey};
use oblivio_volume::superblock::Superblock;
use oblivio_volume::unlock::NewerCopies;
use serde_json::json;

use super::info::{slots_json, slots_text};
use super::opening;
use super::secret;
use crate::args::{KeyAddArgs, KeyListArgs, KeyRemoveArgs, OpenArgs, SecretArgs};
use crate::error::CliError;
use crate::output;

/// `oblivio key list`.
pub(crate) fn list(args: &KeyListArgs) -> Result<(), CliError> {
    let (superblock, _) = read_public(&args.volume)?;
    let slots = superblock.unauthenticated_slots();
    output::print(&if args.json { format!("{:#}", slots_json(&slots)) } else { slots_text(&slots) })
}

/// `oblivio key add`.
pub(crate) fn add(args: &KeyAddArgs) -> Result<(), CliError> {
    let number = change(&args.at, |superblock, volume_key| {
        let new = SecretArgs {
            key_file: args.new_key_file.clone(),
            passphrase_file: args.new_passphrase_file.clone(),
            passphrase_command: args.new_passphrase_command.clone(),
        };
        let secret = secret::choose(&new)?;
        let cost = secret::cost(&secret, args.unlock_millis)?;
        let slot = NewSlot { secret: &secret, cost, label: &args.label };
        let added = superblock.add_slot(volume_key, &slot, &mut opening::coins()?);
        Ok(added.map_err(VolumeError::from)?)
    })?;
    if args.json {
        return output::print(&format!("{:#}", json!({ "slot": number })));
    }
    output::print(&format!("the new key is in slot {number}"))
}

/// `oblivio key remove`.
pub(crate) fn remove(args: &KeyRemoveArgs) -> Result<(), CliError> {
    change(&args.at, |superblock, volume_key| {
        Ok(superblock.remove_slot(volume_key, args.slot).map_err(VolumeError::from)?)
    })?;
    if args.json {
        return output::print(&format!("{:#}", json!({ "slot": args.slot })));
    }
    output::print(&format!(
        "slot {} is empty. Anyone who kept an old copy of the superblock can still use that key: \
         if it may be known to others, move the data to a new volume",
        args.slot
    ))
}

/// Changes the key slots of a volume that no other process uses.
fn change<T>(
    at: &OpenArgs,
    change: impl FnOnce(&mut Superblock, &VolumeKey) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let UnlockedStore { store, mut owner, mut dir, .. } =
        opening::unlock(at, &StoreOptions::default(), NewerCopies::Refuse)?;
    change_slots(store, &mut dir, &mut owner, change)
}
