//! The result of a search, in the form that a volume uses. Reads it from a results file, which is
//! untrusted.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{BySlots, FORMAT_VERSION, Judge, NAME, Profile, Run, Search, SearchPlan, VolumeTree};
use crate::Error;

/// The profile that a search found, with the measurements that a volume needs to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation<J = BySlots> {
    /// The parameters of the search.
    pub plan: SearchPlan<J>,
    /// The profile found for the searched tree.
    pub profile: Profile,
    /// The run of `profile` on the last tree of the search, on which the profile must keep to the
    /// limits, too.
    pub endurance: Run,
}

impl<J: Judge> Allocation<J> {
    /// Converts the result of `search`.
    pub fn from_search(search: &Search<J>) -> Self {
        Self {
            plan: search.plan.clone(),
            profile: search.found().profile.clone(),
            endurance: search.endurance.clone(),
        }
    }

    /// Parses the results file of a search.
    ///
    /// # Errors
    /// [`Error::Allocation`] that names the invalid field.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let file: Value = serde_json::from_str(text)
            .map_err(|error| Error::Allocation(format!("the file is not JSON: {error}")))?;
        let experiment: String = field(&file, "experiment")?;
        if experiment != NAME {
            return refuse("experiment", &format!("expected {NAME:?}, found {experiment:?}"));
        }
        let version: u64 = field(&file, "version")?;
        if version != FORMAT_VERSION {
            let message =
                format!("version {version} is unknown; this program reads {FORMAT_VERSION}");
            return refuse("version", &message);
        }
        let found = Self {
            plan: field(&file, "plan")?,
            profile: field(&file, "profile")?,
            endurance: field(&file, "endurance")?,
        };
        found.check()?;
        Ok(found)
    }

    fn check(&self) -> Result<(), Error> {
        let Self { plan, profile, endurance } = self;
        plan.check().or_else(|error| refuse("plan", &error.to_string()))?;
        let (levels, slots) = (usize::from(plan.leaf_level) + 1, profile.slots());
        if slots.len() != levels {
            let message =
                format!("it has {} levels, but the plan's tree has {levels}", slots.len());
            return refuse("profile", &message);
        }
        if let Some(level) = slots.iter().position(|z| !(1..=plan.slots).contains(z)) {
            let message = format!(
                "level {level} has {} slots, not 1 to the {} of the uniform tree",
                slots[level], plan.slots
            );
            return refuse("profile", &message);
        }
        if !endurance.ran_away && endurance.evictions_per_access().is_none() {
            return refuse("endurance.accesses", "a run must make at least one access");
        }
        Ok(())
    }

    /// Background evictions per access, measured on the last tree. `None` if the run stopped
    /// because of too many evictions.
    pub fn evictions_per_access(&self) -> Option<f64> {
        self.endurance.evictions_per_access()
    }

    /// Returns the profile for a volume with tree `tree`.
    ///
    /// # Errors
    /// [`Error::Allocation`] if the search was for a different kind of volume, or if its
    /// last run stopped because of too many background evictions. The message says what to do.
    pub fn profile_for(&self, tree: &VolumeTree) -> Result<Profile, Error> {
        let Self { plan, .. } = self;
        let differs =
            |what: &str, searched: &dyn std::fmt::Display, here: &dyn std::fmt::Display| {
                Err(Error::Allocation(format!(
                    "the search was for {what} {searched}, but this volume has {here}: run oblivio \
                 plan --alloc --alloc-output for this volume, or change the volume to match"
                )))
            };
        if plan.scheme != tree.scheme() {
            return differs("the scheme", &plan.scheme, &tree.scheme());
        }
        if plan.slots != tree.slots {
            return differs("Z =", &plan.slots, &tree.slots);
        }
        if plan.stash_blocks_max > tree.stash_blocks_max {
            return differs("a stash of C =", &plan.stash_blocks_max, &tree.stash_blocks_max);
        }
        if plan.blocks_per_leaf() < tree.blocks_per_leaf_max() {
            let (searched, here) = (plan.blocks_per_leaf(), tree.blocks_per_leaf_max());
            return differs("blocks per leaf:", &searched, &format!("up to {here}"));
        }
        if self.evictions_per_access().is_none() {
            let message = "the last run stopped because of too many background evictions: search \
                           again with a larger Z or stash";
            return refuse("endurance", message);
        }
        Ok(tree.carry(&self.profile, plan))
    }
}

/// Parses the field `name` of a results file.
fn field<T: DeserializeOwned>(file: &Value, name: &str) -> Result<T, Error> {
    let Some(value) = file.get(name) else { return refuse(name, "it is missing") };
    T::deserialize(value).or_else(|error| refuse(name, &error.to_string()))
}

fn refuse<T>(field: &str, message: &str) -> Result<T, Error> {
    Err(Error::Allocation(format!("field {field:?} is invalid: {message}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::counting::Counting;
    use super::*;

    const TREE: VolumeTree = VolumeTree {
        slots: 5,
        evict_period: 5,
        stash_blocks_max: 64,
        leaf_level: 8,
        tree_top_levels: 1,
    };

    fn file() -> Value {
        let plan = SearchPlan { accesses: 2000, endurance_accesses: 1000, ..TREE.search(8) };
        let search = Counting::default().search(&plan, 1).unwrap();
        serde_json::from_str(&search.to_json().unwrap()).unwrap()
    }

    fn read(file: &Value) -> Result<Allocation, Error> {
        Allocation::from_json(&file.to_string())
    }

    #[test]
    fn a_volume_takes_what_was_found() {
        let found = read(&file()).unwrap();
        assert_eq!(found.profile_for(&TREE).unwrap(), found.profile);
        let slots = found.profile.slots();
        assert!(slots[1] < 5 && slots[0] == 5, "{slots:?}");
        assert_eq!(found.evictions_per_access(), Some(0.0));
        let deeper = found.profile_for(&VolumeTree { leaf_level: 10, ..TREE }).unwrap();
        assert_eq!(deeper.slots(), [&[5, 5, 5], &slots[1..]].concat());
    }

    #[test]
    fn a_file_that_cannot_be_is_refused_and_the_field_is_named() {
        let good = file();
        let with = |pointer: &str, value: Value| {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            bad
        };
        let without = |name: &str| {
            let mut bad = good.clone();
            bad.as_object_mut().unwrap().remove(name);
            bad
        };
        let cases = [
            (json!(7), "\"experiment\""),
            (with("/experiment", json!("stash-study")), "stash-study"),
            (with("/version", json!(2)), "\"version\""),
            (with("/version", json!(-1)), "\"version\""),
            (without("plan"), "\"plan\" is invalid: it is missing"),
            (with("/plan/slots", json!("five")), "\"plan\""),
            (with("/plan/slots", json!(1)), "2 to 16"),
            (with("/plan/slots", json!(70_000)), "\"plan\""),
            (with("/plan/leaf_level", json!(255)), "must be 1 to 24"),
            (with("/plan/leaf_level", json!(7)), "it has 9 levels, but the plan's tree has 8"),
            (with("/plan/capacity", json!(u64::MAX)), "\"plan\""),
            (with("/plan/scheme", json!("Ring")), "\"plan\""),
            (with("/plan/scheme", json!({"Raw": {"evict_period": 0}})), "the eviction period"),
            (with("/plan/tree_top_levels", json!(200)), "the client can keep"),
            (with("/plan/endurance_leaf_level", json!(200)), "the last tree"),
            (without("profile"), "\"profile\""),
            (with("/profile", json!([])), "it has 0 levels, but the plan's tree has 9"),
            (with("/profile", json!(vec![5; 42])), "it has 42 levels"),
            (with("/profile/3", json!(0)), "level 3 has 0 slots"),
            (with("/profile/3", json!(6)), "level 3 has 6 slots"),
            (with("/profile/3", json!(-1)), "\"profile\""),
            (without("endurance"), "\"endurance\""),
            (with("/endurance/accesses", json!(0)), "\"endurance.accesses\""),
        ];
        for (bad, named) in cases {
            let error = read(&bad).unwrap_err().to_string();
            assert!(error.contains(named), "{named}: {error}");
        }
        for text in ["", "{", "\0", "[1, 2"] {
            let error = Allocation::<BySlots>::from_json(text).unwrap_err().to_string();
            assert!(error.contains("not JSON"), "{error}");
        }
    }

    #[test]
    fn a_search_for_other_volumes_is_refused_with_the_next_step() {
        let found = read(&file()).unwrap();
        let cases = [
            (VolumeTree { slots: 4, ..TREE }, "Z = 5, but this volume has 4"),
            (VolumeTree { evict_period: 4, ..TREE }, "A = 5, but this volume has RAW ORAM, A = 4"),
            (VolumeTree { stash_blocks_max: 63, ..TREE }, "C = 64, but this volume has 63"),
        ];
        for (tree, reason) in cases {
            let error = found.profile_for(&tree).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("plan --alloc"), "{error}");
        }
        assert!(found.profile_for(&VolumeTree { stash_blocks_max: 65, ..TREE }).is_ok());
        let mut lighter = found.clone();
        lighter.plan = lighter.plan.with_load(2.0);
        let error = lighter.profile_for(&TREE).unwrap_err().to_string();
        assert!(error.contains("blocks per leaf: 2, but this volume has up to 2.5"), "{error}");
        let mut run_away = found;
        run_away.endurance.ran_away = true;
        assert!(run_away.profile_for(&TREE).unwrap_err().to_string().contains("\"endurance\""));
    }
}
