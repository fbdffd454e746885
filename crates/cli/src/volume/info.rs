//! `oblivio info`: what a volume is.

use oblivio_store::{FileOptions, FileStore};
use oblivio_volume::keys::{Cost, SecretKind, SlotInfo};
use oblivio_volume::superblock::copies::read_copies;
use oblivio_volume::superblock::{VolumeId, VolumeParams};
use oblivio_volume::volume::needs_recovery;
use serde_json::{Value, json};

use super::opening::{self, Unlocking};
use super::plan::{Plan, opening_line, size};
use super::state_home;
use crate::args::InfoArgs;
use crate::error::CliError;
use crate::output;

/// `oblivio info`.
pub(crate) fn info(args: &InfoArgs) -> Result<(), CliError> {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let facts = if args.public {
        let mut store = FileStore::open(&args.at.place.volume, &options)?;
        let copies = read_copies(&mut store);
        let superblock = opening::newest(&copies)?;
        Facts {
            id: superblock.unauthenticated_volume_id(),
            params: superblock.unauthenticated_params().clone(),
            slots: superblock.unauthenticated_slots(),
            allocated_bytes: allocated(&store)?,
            needs_recovery: None,
        }
    } else {
        let Unlocking { store, owner, state } = opening::unlock(&args.at, &options)?;
        let dir = state_home::open(&state)?;
        Facts {
            id: owner.superblock.volume_id(),
            params: owner.superblock.params().clone(),
            slots: owner.superblock.slots(),
            allocated_bytes: allocated(&store)?,
            needs_recovery: Some(needs_recovery(&dir, &owner)?),
        }
    };
    output::print(&if args.json { format!("{:#}", facts.json()?) } else { facts.text()? })?;
    if args.require_clean && facts.needs_recovery == Some(true) {
        return Err(CliError::NeedsRecovery(
            "the volume was not closed: whatever opens it next recovers it".into(),
        ));
    }
    Ok(())
}

fn allocated(store: &FileStore) -> Result<u64, CliError> {
    store.allocated_bytes().map_err(|error| CliError::Engine(error.to_string()))
}

struct Facts {
    id: VolumeId,
    params: VolumeParams,
    slots: Vec<SlotInfo>,
    allocated_bytes: u64,
    needs_recovery: Option<bool>,
}

impl Facts {
    fn id(&self) -> String {
        self.id.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn text(&self) -> Result<String, CliError> {
        let plan = Plan::of(self.params.clone())?;
        let mut lines = vec![format!("volume            {}", self.id()), plan.text()];
        let passphrases = self.slots.iter().filter(|slot| slot.kind == SecretKind::Passphrase);
        let dearest = passphrases.filter_map(|slot| slot.cost).max_by_key(Cost::memory_kib);
        lines.extend(opening_line(dearest));
        lines.extend([
            format!("in use            {} of storage", size(self.allocated_bytes as f64)),
            match self.needs_recovery {
                None => "nothing of this is vouched for: name a key to have it checked".into(),
                Some(true) => "closed            no: it will be recovered when it is opened".into(),
                Some(false) => "closed            yes".into(),
            },
            String::new(),
            slots_text(&self.slots),
        ]);
        Ok(lines.join("\n"))
    }

    fn json(&self) -> Result<Value, CliError> {
        let mut json = Plan::of(self.params.clone())?.json();
        json["id"] = json!(self.id());
        json["allocated_bytes"] = json!(self.allocated_bytes);
        json["needs_recovery"] = json!(self.needs_recovery);
        json["authenticated"] = json!(self.needs_recovery.is_some());
        json["key_slots"] = slots_json(&self.slots);
        Ok(json)
    }
}

/// The key slots, one a line.
pub(super) fn slots_text(slots: &[SlotInfo]) -> String {
    let line = |slot: &SlotInfo| {
        let (kind, cost) = match (slot.kind, slot.cost) {
            (SecretKind::Passphrase, Some(cost)) => (
                "passphrase",
                format!(
                    "Argon2id: {} MiB, passes {}, lanes {}",
                    cost.memory_kib() >> 10,
                    cost.passes(),
                    cost.lanes()
                ),
            ),
            (SecretKind::Passphrase, None) => ("passphrase", String::new()),
            (SecretKind::KeyFile, _) => ("key file", String::new()),
        };
        format!("key slot {}        {kind:<12}{:<34}{cost}", slot.number, slot.label)
    };
    slots.iter().map(|slot| line(slot).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The key slots.
pub(super) fn slots_json(slots: &[SlotInfo]) -> Value {
    let slot = |slot: &SlotInfo| {
        json!({
            "slot": slot.number,
            "kind": match slot.kind {
                SecretKind::Passphrase => "passphrase",
                SecretKind::KeyFile => "key file",
            },
            "label": slot.label,
            "argon2id": slot.cost.map(|cost| json!({
                "memory_kib": cost.memory_kib(),
                "passes": cost.passes(),
                "lanes": cost.lanes(),
            })),
        })
    };
    slots.iter().map(slot).collect()
}
