//! What the next sync has to prove.

use std::collections::{BTreeMap, HashSet};

use super::node_info::Incarnation;
use super::slots::SlotSet;
use super::topology::Address;

/// The maximum number of incarnations that are remembered. If an old one is forgotten, a sync does
/// more than it has to.
const SYNCED_MAX: usize = 4096;

/// The incarnations of masters that may hold objects that no sync has covered.
#[derive(Default)]
pub(super) struct Unsynced {
    masters: BTreeMap<Incarnation, UnsyncedMaster>,
    synced: HashSet<Incarnation>,
}

/// A master that may hold objects that no sync has covered.
#[derive(Clone, Debug)]
pub(super) struct UnsyncedMaster {
    pub(super) address: Address,
    /// The slots of these objects.
    pub(super) slots: SlotSet,
}

impl Unsynced {
    /// Records a link to a master. If no sync has covered this incarnation, an earlier session may
    /// have created objects on it, in any of its `slots`.
    pub(super) fn connected(
        &mut self,
        incarnation: &Incarnation,
        address: &Address,
        slots: SlotSet,
    ) {
        if !self.synced.contains(incarnation) && !self.masters.contains_key(incarnation) {
            let master = UnsyncedMaster { address: address.clone(), slots };
            self.masters.insert(incarnation.clone(), master);
        }
    }

    /// Records that a master may have created an object, or reported that it exists.
    pub(super) fn may_have_created(
        &mut self,
        incarnation: &Incarnation,
        address: &Address,
        slot: u16,
    ) {
        let new = || UnsyncedMaster { address: address.clone(), slots: SlotSet::default() };
        self.masters.entry(incarnation.clone()).or_insert_with(new).slots.insert(slot);
    }

    /// Records that all objects on this incarnation are durable.
    pub(super) fn is_durable(&mut self, incarnation: &Incarnation) {
        self.masters.remove(incarnation);
        if self.synced.len() >= SYNCED_MAX {
            self.synced.clear();
        }
        self.synced.insert(incarnation.clone());
    }

    /// Forgets an incarnation whose objects may be lost. The caller of the engine creates them
    /// again.
    pub(super) fn is_lost(&mut self, incarnation: &Incarnation) {
        self.masters.remove(incarnation);
        self.synced.remove(incarnation);
    }

    pub(super) fn masters(&self) -> Vec<(Incarnation, UnsyncedMaster)> {
        self.masters.iter().map(|(it, master)| (it.clone(), master.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_makes_a_synced_incarnation_unsynced_again() {
        let mut unsynced = Unsynced::default();
        let incarnation = Incarnation { run: "a".into(), replication: "b".into() };
        let address = Address::new("h", 1);
        let slots = |unsynced: &Unsynced| {
            let masters = unsynced.masters();
            masters.iter().map(|(_, it)| it.slots.iter().collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let mut all = SlotSet::default();
        all.insert(7);
        unsynced.connected(&incarnation, &address, all.clone());
        unsynced.may_have_created(&incarnation, &address, 9);
        assert_eq!(slots(&unsynced), [[7, 9]]);
        unsynced.is_durable(&incarnation);
        unsynced.connected(&incarnation, &address, all.clone());
        assert!(slots(&unsynced).is_empty());
        unsynced.may_have_created(&incarnation, &address, 9);
        assert_eq!(slots(&unsynced), [[9]]);
        unsynced.is_lost(&incarnation);
        assert!(slots(&unsynced).is_empty());
        unsynced.connected(&incarnation, &address, all);
        assert_eq!(slots(&unsynced), [[7]]);
    }
}
