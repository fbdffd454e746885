//! Distributes the levels of trees over the members of a stripe, and checks whether stores form a
//! stripe.
//!
//! **Level `j` of tree `t` is on member `(t + j) mod k`**, as a whole. So consecutive buckets of a
//! path are on consecutive members. A range of paths is one contiguous run on each level, so `k`
//! members seek at once. The distribution depends only on public shapes.
//!
//! A member is an ordinary store. It has all trees, but no buckets on the levels of other members.
//! Its last tree, the *mark*, has no buckets. The mark has one level per member, a slot on the
//! level of this member's number, and the stripe's name in its first two levels. It identifies the
//! stripe, the number of members, and this member.
//!
//! Marks are not trusted: stores form a stripe only if distributing their combined trees gives each
//! member exactly its shapes.

use oblivio_core::store::{LevelShape, TreeShape};
use rand::TryRng;
use rand::rngs::SysRng;

use crate::error::{OpenError, OpenErrorKind};

/// The minimum number of members of a stripe.
pub const MEMBERS_MIN: usize = 2;
/// The maximum number of members of a stripe.
pub const MEMBERS_MAX: usize = 16;

/// A random number that identifies a stripe. Public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StripeName([u32; 2]);

/// The number of bits of each half of a name, limited by the size of a bucket in a file.
const NAME_BITS: u32 = 29;

impl StripeName {
    /// Draws a random name.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn draw() -> Result<Self, OpenError> {
        let number = SysRng.try_next_u64().map_err(|cause| {
            let message = format!("the system provides no random numbers: {cause}");
            OpenError::new(OpenErrorKind::Io, message)
        })?;
        Ok(Self::from_number(number))
    }

    /// Creates the name from the lowest bits of a number.
    pub const fn from_number(number: u64) -> Self {
        let mask = (1 << NAME_BITS) - 1;
        Self([(number & mask) as u32, (number >> NAME_BITS & mask) as u32])
    }

    /// Reads the name of the stripe from a mark; `None` if the mark does not contain a valid name.
    fn from_mark(mark: &TreeShape) -> Option<Self> {
        let half = |level: usize| {
            let half = u32::try_from(mark.levels().get(level)?.header_bytes).ok()?;
            (half >> NAME_BITS == 0).then_some(half)
        };
        Some(Self([half(0)?, half(1)?]))
    }
}

/// The role of a store in a stripe, as the store's mark describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name of the stripe.
    pub name: StripeName,
    /// The number of the member, counted from 0.
    pub member: usize,
    /// The number of members.
    pub members: usize,
}

/// The number of the member that holds a level of a tree.
pub fn member_of(tree: usize, level: usize, members: usize) -> usize {
    (tree + level) % members
}

/// Computes the shapes of each of `members` members of the stripe `name`, including the mark.
///
/// # Errors
/// [`OpenErrorKind::InvalidShapes`] if the number of members is not allowed, or a member would hold
/// no level.
pub fn distribute_levels(
    shapes: &[TreeShape],
    members: usize,
    name: StripeName,
) -> Result<Vec<Vec<TreeShape>>, OpenError> {
    if !(MEMBERS_MIN..=MEMBERS_MAX).contains(&members) {
        return Err(invalid(format!(
            "a stripe has {MEMBERS_MIN} to {MEMBERS_MAX} members, not {members}"
        )));
    }
    if !each_holds_a_level(shapes, members) {
        let possible =
            (MEMBERS_MIN..members).rev().find(|fewer| each_holds_a_level(shapes, *fewer));
        return Err(invalid(match possible {
            Some(possible) => format!(
                "the store has too few levels for {members} members, because each holds whole \
                 levels; name {possible} members"
            ),
            None => "a store with one level cannot be striped; name one location for it".into(),
        }));
    }
    Ok((0..members).map(|member| shapes_of(shapes, Mark { name, member, members })).collect())
}

/// Reads the mark of a store with these shapes; `None` if the store is not a member of a stripe.
pub fn mark_of(shapes: &[TreeShape]) -> Option<Mark> {
    let mark = shapes.last()?;
    let members = mark.level_count();
    let member = mark.levels().iter().position(|level| level.slots > 0)?;
    let found = Mark { name: StripeName::from_mark(mark)?, member, members };
    let is_mark = (MEMBERS_MIN..=MEMBERS_MAX).contains(&members) && *mark == mark_shape(found);
    is_mark.then_some(found)
}

/// Combines the shapes of all members, which are given in order, into the shapes of the striped
/// store. `names` has the members' names for messages. The shapes are untrusted.
///
/// # Errors
/// [`OpenErrorKind::WrongMembers`] if the stores are not all members of one stripe, in order. The
/// message says what to change.
pub fn gather(members: &[Vec<TreeShape>], names: &[String]) -> Result<Vec<TreeShape>, OpenError> {
    let name = check_marks(members, names)?;
    let without_mark = |member: &'_ Vec<TreeShape>| member[..member.len() - 1].to_vec();
    let mut together = without_mark(&members[0]);
    for (member, name) in members.iter().zip(names).skip(1) {
        let are_added = add_levels(&mut together, &without_mark(member));
        are_added.ok_or_else(|| foreign(name, &names[0]))?;
    }
    let dealt = distribute_levels(&together, members.len(), name)
        .map_err(|_| foreign(&names[1], &names[0]))?;
    match dealt.iter().zip(members).position(|(dealt, found)| dealt != found) {
        None => Ok(together),
        Some(0) => Err(foreign(&names[0], &names[1])),
        Some(member) => Err(foreign(&names[member], &names[0])),
    }
}

/// Checks that the marks belong to the members of one stripe, each once and in order. Returns the
/// stripe's name.
fn check_marks(members: &[Vec<TreeShape>], names: &[String]) -> Result<StripeName, OpenError> {
    let mut marks = Vec::with_capacity(members.len());
    for (shapes, name) in members.iter().zip(names) {
        let unmarked =
            || wrong(format!("{name} is not a member of a stripe; name it without stripe:"));
        marks.push(mark_of(shapes).ok_or_else(unmarked)?);
    }
    let Some(first) = marks.first() else {
        return Err(wrong("the stripe has no members; name them".into()));
    };
    let made = first.members;
    if let Some(other) = marks.iter().position(|mark| mark.members != made) {
        return Err(wrong(format!(
            "{} is a member of a stripe of {made}, but {} of a stripe of {}; name the members of \
             one stripe",
            names[0], names[other], marks[other].members
        )));
    }
    if let Some(other) = marks.iter().position(|mark| mark.name != first.name) {
        return Err(foreign(&names[other], &names[0]));
    }
    let mut names_by_member = vec![None; made];
    for (mark, name) in marks.iter().zip(names) {
        if let Some(earlier) = names_by_member[mark.member].replace(name) {
            return Err(wrong(format!(
                "{earlier} and {name} are both member {} of a stripe; name each member once",
                mark.member + 1
            )));
        }
    }
    let missing: Vec<_> = (1..).zip(&names_by_member).filter(|(_, name)| name.is_none()).collect();
    if !missing.is_empty() {
        let missing: Vec<_> = missing.iter().map(|(number, _)| number.to_string()).collect();
        return Err(wrong(format!(
            "the stripe has {made} members, but only {} are named; name member {} as well, in \
             its position",
            members.len(),
            missing.join(", ")
        )));
    }
    if marks.iter().enumerate().any(|(place, mark)| mark.member != place) {
        let ordered: Vec<_> = names_by_member.into_iter().flatten().map(String::as_str).collect();
        return Err(wrong(format!(
            "the members are not in the order in which the stripe was created; use stripe:{}",
            ordered.join(",")
        )));
    }
    Ok(first.name)
}

/// Adds the levels of another member. Returns `None` if the member does not have the same trees, or
/// has a level that another member has.
fn add_levels(together: &mut [TreeShape], member: &[TreeShape]) -> Option<()> {
    if together.len() != member.len() {
        return None;
    }
    for (tree, added) in together.iter_mut().zip(member) {
        if tree.level_count() != added.level_count() {
            return None;
        }
        let levels = tree.levels().iter().zip(added.levels()).map(|(level, added)| {
            let is_new = level.buckets == 0 || added.buckets == 0;
            is_new.then(|| LevelShape { buckets: level.buckets + added.buckets, ..*level })
        });
        *tree = TreeShape::new(levels.collect::<Option<_>>()?);
    }
    Some(())
}

/// Computes the shapes of a member, including its mark.
fn shapes_of(shapes: &[TreeShape], mark: Mark) -> Vec<TreeShape> {
    let trees = shapes.iter().enumerate().map(|(tree, shape)| {
        let levels = shape.levels().iter().enumerate().map(|(level, shape)| {
            let is_here = member_of(tree, level, mark.members) == mark.member;
            LevelShape { buckets: if is_here { shape.buckets } else { 0 }, ..*shape }
        });
        TreeShape::new(levels.collect())
    });
    trees.chain([mark_shape(mark)]).collect()
}

fn mark_shape(mark: Mark) -> TreeShape {
    let level = |member| {
        let half = mark.name.0.get(member).copied().map_or(0, u64::from);
        LevelShape {
            buckets: 0,
            slots: u16::from(member == mark.member),
            header_bytes: half,
            slots_offset: half,
            slot_bytes: 0,
            bucket_bytes: half,
        }
    };
    TreeShape::new((0..mark.members).map(level).collect())
}

fn each_holds_a_level(shapes: &[TreeShape], members: usize) -> bool {
    let mut holds = vec![false; members];
    for (tree, shape) in shapes.iter().enumerate() {
        let present = shape.levels().iter().enumerate().filter(|(_, level)| level.buckets > 0);
        present.for_each(|(level, _)| holds[member_of(tree, level, members)] = true);
    }
    holds.into_iter().all(|holds| holds)
}

fn foreign(name: &str, first: &str) -> OpenError {
    wrong(format!(
        "{name} is a member of another stripe than {first}; name the members of one stripe"
    ))
}

fn wrong(message: String) -> OpenError {
    OpenError::new(OpenErrorKind::WrongMembers, message)
}

fn invalid(message: String) -> OpenError {
    OpenError::new(OpenErrorKind::InvalidShapes, message)
}
