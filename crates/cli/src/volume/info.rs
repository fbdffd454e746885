//! `oblivio info`: shows the parameters and the state of a volume.

use oblivio::Location;
use oblivio::opening::{UnlockedStore, read_public};
use oblivio_store::{StoreKind, StoreOptions};
use oblivio_volume::keys::{Cost, SecretKind, SlotInfo};
use oblivio_volume::superblock::{VolumeId, VolumeParams};
use oblivio_volume::unlock::NewerCopies;
use oblivio_volume::volume::{explain_rollback, needs_recovery};
use oblivio_volume::{VolumeError, tampering, wrong_servers};
use serde_json::{Value, json};

use super::machine::Machine;
use super::plan::{VolumePlan, opening_line, size};
use super::{opening, secret};
use crate::advice::with_cli_advice;
use crate::args::{InfoArgs, OpenArgs};
use crate::error::CliError;
use crate::output;

/// `oblivio info`.
pub(crate) fn info(args: &InfoArgs) -> Result<(), CliError> {
    let location = &args.at.volume.volume;
    let facts = match if args.public { public(location) } else { known(args) } {
        // Only the process that has the volume open knows whether it is clean.
        Err(CliError::Locked(message)) if !args.require_clean && is_on_files(location) => {
            let facts = in_use(args)?;
            output::print_remark(&format!(
                "{message}. Facts that need the key and the client's directory are left out"
            ));
            facts
        }
        other => other?,
    };
    output::print(&if args.json { format!("{:#}", facts.json()?) } else { facts.text()? })?;
    if args.require_clean
        && facts.known_to_client.as_ref().is_some_and(|known| known.needs_recovery)
    {
        return Err(CliError::NeedsRecovery(
            "the volume was not closed: the next opening recovers it".into(),
        ));
    }
    Ok(())
}

/// The facts about a volume that anyone can read without a key. Not authenticated.
fn public(location: &Location) -> Result<Facts, CliError> {
    let (superblock, condition) = read_public(location)?;
    Ok(Facts {
        kind: location.kind(),
        id: superblock.unauthenticated_volume_id(),
        params: superblock.unauthenticated_params().clone(),
        slots: superblock.unauthenticated_slots(),
        allocated_bytes: condition.allocated_bytes,
        known_to_client: None,
    })
}

/// The facts about a volume that its owner can read with the key.
fn known(args: &InfoArgs) -> Result<Facts, CliError> {
    let options = StoreOptions::default().with_read_only(true);
    // The store stays open, and so locked, while the client's directory is read.
    let UnlockedStore { store, condition, owner, dir, .. } =
        opening::unlock(&args.at, &options, NewerCopies::Refuse)?;
    let needs_recovery = match needs_recovery(&dir, &owner) {
        Err(error) => return Err(explain_rollback(store, &dir, &owner, error).into()),
        Ok(needs_recovery) => needs_recovery,
    };
    Ok(Facts {
        kind: args.at.volume.volume.kind(),
        id: owner.superblock.volume_id(),
        params: owner.superblock.params().clone(),
        slots: owner.superblock.slots(),
        allocated_bytes: condition.allocated_bytes,
        known_to_client: Some(KnownToClient {
            needs_recovery,
            tampering_found: tampering::is_recorded(&dir)?,
            what_was_found: tampering::found(&dir)?,
            wrong_servers: wrong_servers::recorded(&dir).map_err(VolumeError::from)?,
        }),
    })
}

/// The facts in the superblock of a volume that another process has open.
fn in_use(args: &InfoArgs) -> Result<Facts, CliError> {
    let OpenArgs { volume, .. } = &args.at;
    let request = opening::unlock_request(&args.at, NewerCopies::Refuse);
    let (owner, condition) =
        secret::with(&volume.secret, |secret| request.owner_while_in_use(secret))?;
    Ok(Facts {
        kind: volume.volume.kind(),
        id: owner.superblock.volume_id(),
        params: owner.superblock.params().clone(),
        slots: owner.superblock.slots(),
        allocated_bytes: condition.allocated_bytes,
        known_to_client: None,
    })
}

/// Whether the volume is on local files. A server has its own rules about reading a volume in use.
fn is_on_files(location: &Location) -> bool {
    matches!(location.kind(), StoreKind::File | StoreKind::Stripe { .. })
}

struct Facts {
    kind: StoreKind,
    id: VolumeId,
    params: VolumeParams,
    slots: Vec<SlotInfo>,
    allocated_bytes: u64,
    /// Facts from the client's directory. `None` if it was not read: without a key, or while
    /// another process has the volume open.
    known_to_client: Option<KnownToClient>,
}

/// Facts from the client's directory.
struct KnownToClient {
    needs_recovery: bool,
    tampering_found: bool,
    what_was_found: Option<String>,
    /// Indices, from 0, of the servers that have answered wrong.
    wrong_servers: Vec<usize>,
}

impl Facts {
    fn id(&self) -> String {
        self.id.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn text(&self) -> Result<String, CliError> {
        let plan = VolumePlan::of(self.params.clone(), self.kind)?;
        let mut lines = vec![format!("volume            {}", self.id()), plan.text()];
        let passphrases = self.slots.iter().filter(|slot| slot.kind == SecretKind::Passphrase);
        let dearest = passphrases.filter_map(|slot| slot.cost).max_by_key(Cost::memory_kib);
        lines.extend(opening_line(dearest));
        lines.extend([
            format!("in use            {} of storage", size(self.allocated_bytes as f64)),
            match self.known_to_client.as_ref().map(|known| known.needs_recovery) {
                None => "not authenticated: name a key to have this checked".into(),
                Some(true) => "closed            no: it will be recovered when it is opened".into(),
                Some(false) => "closed            yes, according to the client's directory".into(),
            },
        ]);
        let known = self.known_to_client.as_ref();
        if known.is_some_and(|known| known.tampering_found) {
            lines.push(
                "tampering         storage was found to be changed: restore it as it was, and open \
                 it with --after-tampering; or save what is left with `oblivio rescue`"
                    .into(),
            );
        }
        if let Some(found) = known.and_then(|known| known.what_was_found.as_ref()) {
            lines.push(format!("found             {}", with_cli_advice(found)));
        }
        for server in known.iter().flat_map(|known| &known.wrong_servers) {
            let warning = wrong_servers::warning(*server, &format!("server {}", server + 1));
            lines.push(format!("wrong shares      {}", with_cli_advice(&warning)));
        }
        lines.extend(Machine::here().remarks());
        lines.extend([String::new(), slots_text(&self.slots)]);
        Ok(lines.join("\n"))
    }

    fn json(&self) -> Result<Value, CliError> {
        let mut json = VolumePlan::of(self.params.clone(), self.kind)?.json();
        json["id"] = json!(self.id());
        json["allocated_bytes"] = json!(self.allocated_bytes);
        let known = self.known_to_client.as_ref();
        json["needs_recovery"] = json!(known.map(|known| known.needs_recovery));
        json["tampering_found"] = json!(known.map(|known| known.tampering_found));
        let wrong = known.map(|known| &known.wrong_servers);
        let numbers = |wrong: &Vec<usize>| wrong.iter().map(|it| it + 1).collect::<Vec<_>>();
        json["wrong_servers"] = json!(wrong.map(numbers));
        json["authenticated"] = json!(known.is_some());
        json["machine"] = Machine::here().json();
        json["key_slots"] = slots_json(&self.slots);
        Ok(json)
    }
}

/// The key slots as text, one per line.
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

/// The key slots as JSON.
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
