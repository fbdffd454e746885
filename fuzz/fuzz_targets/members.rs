//! Fuzzes the check of a stripe's members. If [`gather`] accepts the members' tree shapes, then
//! distributing the combined shapes must give each member its shapes again.
//!
//! ```text
//! input = setup, member, …
//! member = number of trees, tree, …
//! tree = number of levels, level, …
//! ```
//!
//! `setup` holds the number of members, and whether they get valid marks. A valid mark is a
//! member's last tree and encodes the name of the stripe. It lets the fuzzer get past the check of
//! marks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::store::{LevelShape, TreeShape};
use oblivio_store::striping::{MEMBERS_MAX, StripeName, distribute_levels, gather, mark_of};

fuzz_target!(|input: &[u8]| {
    let Some((setup, mut input)) = input.split_first() else { return };
    let count = usize::from(setup >> 1) % (MEMBERS_MAX + 2);
    let mut members: Vec<_> = (0..count).map(|_| trees(&mut input)).collect();
    if setup & 1 == 1 {
        let sound = [TreeShape::new(vec![level(1); MEMBERS_MAX])];
        for (member, marked) in members
            .iter_mut()
            .zip(distribute_levels(&sound, count, StripeName::default()).unwrap_or_default())
        {
            member.extend(marked.last().cloned());
        }
    }
    let names: Vec<_> = (0..count).map(|member| member.to_string()).collect();
    if let Ok(together) = gather(&members, &names) {
        let name = mark_of(&members[0]).unwrap().name;
        assert_eq!(distribute_levels(&together, count, name).unwrap(), members);
    }
});

fn trees(input: &mut &[u8]) -> Vec<TreeShape> {
    let trees = byte(input) % 4;
    let mut tree = || {
        let levels = byte(input) % 18;
        TreeShape::new((0..levels).map(|_| level(byte(input))).collect())
    };
    (0..trees).map(|_| tree()).collect()
}

/// Returns a shape from few values, so that levels of members are often equal.
fn level(byte: u8) -> LevelShape {
    let of = |shift: u8, count: u8| u64::from(byte >> shift) % u64::from(count);
    LevelShape {
        buckets: [0, 1, 2, u64::MAX][of(0, 4) as usize],
        slots: of(2, 2) as u16,
        header_bytes: of(3, 2),
        slots_offset: of(4, 2),
        slot_bytes: of(5, 2),
        bucket_bytes: of(6, 4),
    }
}

fn byte(input: &mut &[u8]) -> u8 {
    let Some((first, rest)) = input.split_first() else { return 0 };
    *input = rest;
    *first
}
