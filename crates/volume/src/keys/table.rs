//! The table of key slots of a volume.

use rand_core::CryptoRng;

use super::cost::Cost;
use super::error::{KeyError, KeyErrorKind};
use super::fields::{FieldReader, FieldWriter};
use super::secret::{Secret, SecretKind};
use super::slot::{KeySlot, NewSlot, OutOfRange, SlotLocation};
use super::unlock_limits::Budget;
use super::volume_key::VolumeKey;

/// The number of slots of a volume.
pub const SLOTS_MAX: usize = 8;

/// The public description of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// The number of the slot, below [`SLOTS_MAX`].
    pub number: u8,
    /// The kind of secret that opens the slot.
    pub kind: SecretKind,
    /// The owner's label.
    pub label: String,
    /// The cost of a guess. `None` for a key file, which is not stretched.
    pub cost: Option<Cost>,
}

/// The key slots of a volume. The index is the number of the slot.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct KeySlots {
    slots: [Option<KeySlot>; SLOTS_MAX],
}

impl KeySlots {
    /// Tries `secret` on the slots of its kind until one opens, or only on the slot that the limits
    /// name. The duration reveals how many slots were tried.
    pub(crate) fn open(
        &self,
        volume_id: &[u8; 16],
        secret: &Secret,
        budget: &mut Budget,
    ) -> Result<(VolumeKey, u8), KeyError> {
        secret.check()?;
        if let Some(wanted) = budget.limits.slot
            && !self.taken().any(|(number, _)| number == wanted)
        {
            return Err(no_such_slot(wanted));
        }
        let mut too_costly = None;
        for (number, slot) in self.taken() {
            if !budget.tries(number) {
                continue;
            }
            match slot.unwrap(&SlotLocation { volume_id, number }, secret, budget) {
                Ok(Some(volume_key)) => return Ok((volume_key, number)),
                Ok(None) => {}
                // Another slot may still open.
                Err(error) => too_costly = Some(error),
            }
        }
        Err(too_costly.unwrap_or_else(|| {
            KeyError::new(KeyErrorKind::WrongKey, "no key slot of this volume opens with it")
        }))
    }

    /// Fills the first free slot, and returns its number.
    pub(crate) fn add(
        &mut self,
        volume_id: &[u8; 16],
        volume_key: &VolumeKey,
        new: &NewSlot<'_>,
        coins: &mut impl CryptoRng,
    ) -> Result<u8, KeyError> {
        let free = (0u8..).zip(&mut self.slots).find(|(_, slot)| slot.is_none());
        let (number, slot) = free.ok_or_else(|| {
            KeyError::new(
                KeyErrorKind::NoFreeSlot,
                format!("all {SLOTS_MAX} key slots are taken: remove one first"),
            )
        })?;
        let place = SlotLocation { volume_id, number };
        *slot = Some(KeySlot::wrap(volume_key, &place, new, coins)?);
        Ok(number)
    }

    /// Empties a slot, so that its secret no longer opens the volume.
    pub(crate) fn remove(&mut self, number: u8) -> Result<(), KeyError> {
        let taken = self.taken().count();
        let slot = self.slots.get_mut(usize::from(number)).filter(|slot| slot.is_some());
        let slot = slot.ok_or_else(|| no_such_slot(number))?;
        if taken == 1 {
            return Err(KeyError::new(
                KeyErrorKind::LastSlot,
                "this is the last key slot, without which the volume is lost: add another first",
            ));
        }
        *slot = None;
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<SlotInfo> {
        let info = |(number, slot): (u8, &KeySlot)| SlotInfo {
            number,
            kind: slot.kind(),
            label: slot.label().to_owned(),
            cost: slot.cost(),
        };
        self.taken().map(info).collect()
    }

    pub(crate) fn encode(&self, fields: &mut FieldWriter) {
        self.slots.iter().for_each(|slot| fields.put(&KeySlot::encode(slot.as_ref())));
    }

    pub(crate) fn decode(fields: &mut FieldReader<'_>) -> Result<Self, OutOfRange> {
        let mut table = Self::default();
        for slot in &mut table.slots {
            *slot = KeySlot::decode(&fields.take())?;
        }
        Ok(table)
    }

    fn taken(&self) -> impl Iterator<Item = (u8, &KeySlot)> {
        (0u8..).zip(&self.slots).filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }
}

fn no_such_slot(number: u8) -> KeyError {
    KeyError::invalid(format!("there is no key slot {number}"))
}
