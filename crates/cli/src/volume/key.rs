//! `oblivio key`: who may open a volume.

use oblivio_core::store::BucketStore;
use oblivio_store::{FileOptions, FileStore};
use oblivio_volume::VolumeError;
use oblivio_volume::keys::NewSlot;
use oblivio_volume::superblock::copies::{read_copies, write_copies};
use serde_json::json;

use super::info::{slots_json, slots_text};
use super::opening::{self, Unlocking};
use super::secret;
use crate::args::{KeyAddArgs, KeyListArgs, KeyRemoveArgs, SecretArgs};
use crate::error::CliError;
use crate::output;

/// `oblivio key list`.
pub(crate) fn list(args: &KeyListArgs) -> Result<(), CliError> {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let mut store = FileStore::open(&args.volume, &options)?;
    let copies = read_copies(&mut store);
    let slots = opening::newest(&copies)?.unauthenticated_slots();
    output::print(&if args.json { format!("{:#}", slots_json(&slots)) } else { slots_text(&slots) })
}

/// `oblivio key add`.
pub(crate) fn add(args: &KeyAddArgs) -> Result<(), CliError> {
    let mut unlocking = opening::unlock(&args.at, &FileOptions::default())?;
    let new = SecretArgs {
        key_file: args.new_key_file.clone(),
        passphrase_file: args.new_passphrase_file.clone(),
        passphrase_command: args.new_passphrase_command.clone(),
    };
    let secret = secret::choose(&new)?;
    let cost = secret::cost(&secret, args.unlock_millis)?;
    let slot = NewSlot { secret: &secret, cost, label: &args.label };
    let mut coins = opening::coins()?;
    let Unlocking { owner, .. } = &mut unlocking;
    let number = owner
        .superblock
        .add_slot(&owner.volume_key, &slot, &mut coins)
        .map_err(VolumeError::from)?;
    store_superblock(&mut unlocking)?;
    if args.json {
        return output::print(&format!("{:#}", json!({ "slot": number })));
    }
    output::print(&format!("the new key is in slot {number}"))
}

/// `oblivio key remove`.
pub(crate) fn remove(args: &KeyRemoveArgs) -> Result<(), CliError> {
    let mut unlocking = opening::unlock(&args.at, &FileOptions::default())?;
    let Unlocking { owner, .. } = &mut unlocking;
    owner.superblock.remove_slot(&owner.volume_key, args.slot).map_err(VolumeError::from)?;
    store_superblock(&mut unlocking)?;
    if args.json {
        return output::print(&format!("{:#}", json!({ "slot": args.slot })));
    }
    output::print(&format!(
        "slot {} is empty. Whoever kept an old copy of the superblock can still use that key: if it \
         is known to somebody, move the data to a new volume",
        args.slot
    ))
}

fn store_superblock(unlocking: &mut Unlocking) -> Result<(), CliError> {
    let Unlocking { store, owner, .. } = unlocking;
    write_copies(store, &owner.superblock).map_err(VolumeError::from)?;
    Ok(store.flush().map_err(VolumeError::from)?)
}
