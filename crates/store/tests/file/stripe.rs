//! A striped store keeps the contract of every store, and accepts only its own members.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_core::store::{
    BucketStore, Capabilities, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::view::Operation;
use oblivio_core::{BucketId, LayoutKind, MemoryStore, StoreError, StoreErrorKind};
use oblivio_store::striping::{
    MEMBERS_MAX, StripeName, distribute_levels, gather, mark_of, member_of,
};
use oblivio_store::{
    BoxedStore, Location, Members, OpenErrorKind, OpenedStore, StoreOptions, StripedStore,
};
use oblivio_testkit::{Call, Faulty, whole_buckets};
use proptest::prelude::*;
use tempfile::TempDir;

fn level(buckets: u64) -> LevelShape {
    LevelShape {
        buckets,
        slots: 2,
        header_bytes: 16,
        slots_offset: 24,
        slot_bytes: 40,
        bucket_bytes: 104,
    }
}

/// The shapes of two trees: one without buckets on its first level, and one with a single bucket.
fn shapes() -> Vec<TreeShape> {
    vec![
        TreeShape::new(vec![level(0), level(2), level(4), level(8), level(16)]),
        TreeShape::new(vec![level(1)]),
    ]
}

fn whole(tree: u16, level: u8, index: u64) -> Piece {
    Piece { tree: TreeId(tree), bucket: BucketId::new(level, index), part: Part::Whole }
}

/// The pieces of a path: one bucket on each level of the first tree.
fn path() -> Vec<Piece> {
    (1..5).map(|level| whole(0, level, 0)).collect()
}

fn put(store: &mut dyn BucketStore, pieces: &[Piece], byte: u8) -> Result<(), StoreError> {
    let bytes = [byte; 104];
    let spans = vec![Span { start: 0, bytes: bytes.len() }; pieces.len()];
    store.write(pieces, &mut |blanks| blanks.relay(Frames::new(&bytes, &spans)))
}

fn holds(store: &mut dyn BucketStore, pieces: &[Piece], byte: u8) -> bool {
    let frames = store.read(pieces).unwrap();
    (0..pieces.len()).all(|i| frames.get(i) == [byte; 104])
}

/// The name of a stripe that has no member in any test folder.
const NAME: StripeName = StripeName::from_number(12_345_678_901);

/// A folder with the files of the members, named `a`, `b` and so on.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> Location {
        Location::File(self.0.path().join(name))
    }

    fn stripe(&self, names: &str) -> Location {
        let members = names.split(' ').map(|name| self.file(name)).collect();
        Location::Stripe(Members::new(members).unwrap())
    }

    fn create(&self, names: &str) -> BoxedStore {
        self.stripe(names).create(&shapes(), &StoreOptions::default()).unwrap()
    }

    fn refused(&self, location: &Location) -> (OpenErrorKind, String) {
        let error = location.open(&StoreOptions::default()).err().unwrap();
        let folder = self.0.path().display();
        (error.kind(), error.to_string().replace(&format!("{folder}/"), ""))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn conforms_over_files() {
    let folder = Folder::new();
    let made = Cell::new(0);
    for options in [StoreOptions::default(), StoreOptions::default().with_direct(true)] {
        for members in [2, 3, 4] {
            let stripe = || {
                let file = |member| folder.file(&format!("{}-{member}", made.get()));
                Location::Stripe(Members::new((0..members).map(file).collect()).unwrap())
            };
            let create = |shapes: &[TreeShape]| {
                made.set(made.get() + 1);
                stripe().create(shapes, &options).unwrap()
            };
            let reopen = |store| {
                drop(store);
                stripe().open(&options).unwrap().store
            };
            match members {
                3 => check_durable_store(create, reopen),
                _ => check_store(create),
            }
        }
    }
}

/// A stripe has only the capabilities that all members have. If a trip needs another capability, no
/// member executes any part of it.
#[test]
fn has_the_capabilities_of_all_members() {
    for (limited, expected) in [
        ([false, false], Capabilities::PARTS),
        ([true, false], Capabilities::NONE),
        ([false, true], Capabilities::NONE),
    ] {
        check_store(|shapes| {
            let members =
                distribute_levels(shapes, limited.len(), NAME).unwrap().into_iter().zip(limited);
            let members = members.map(|(shapes, is_limited)| {
                let memory = MemoryStore::new(&shapes, LayoutKind::Heap).unwrap();
                let store: BoxedStore = match is_limited {
                    true => Box::new(whole_buckets(memory)),
                    false => Box::new(memory),
                };
                ("a member".to_owned(), store)
            });
            let stripe = StripedStore::new(members.collect(), false).unwrap();
            assert_eq!(stripe.capabilities(), expected);
            stripe
        });
    }
}

#[test]
fn flushed_writes_survive_reopening_and_other_writers_are_locked_out() {
    let folder = Folder::new();
    let location = folder.stripe("a b c");
    let mut store = folder.create("a b c");
    put(&mut *store, &path(), 7).unwrap();
    store.flush().unwrap();
    let second = location.open(&StoreOptions::default()).err().unwrap();
    assert_eq!(second.kind(), OpenErrorKind::Locked);
    // Each member is locked.
    assert_eq!(folder.refused(&folder.file("c")).0, OpenErrorKind::Locked);
    drop(store);

    let to_read = StoreOptions::default().with_read_only(true);
    let mut readers = [0, 1].map(|_| location.open(&to_read).unwrap().store);
    for reader in &mut readers {
        assert!(holds(&mut **reader, &path(), 7));
        let refused = reader.write(&path(), &mut |_| panic!("a refused write must not be filled"));
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Refused);
        reader.flush().unwrap();
        assert!(holds(&mut **reader, &path(), 7));
    }
    drop(readers);

    let OpenedStore { mut store, condition } = location.open(&StoreOptions::default()).unwrap();
    assert_eq!(
        (store.shape(TreeId(0)), store.shape(TreeId(1))),
        (shapes().first(), shapes().last())
    );
    assert_eq!(store.shape(TreeId(2)), None, "the mark is visible as a tree");
    assert!(condition.damage.is_empty() && condition.mended.is_empty() && !condition.is_cut_off);
    assert!(condition.allocated_bytes > 0);
    assert!(holds(&mut *store, &path(), 7));
}

#[test]
fn levels_are_distributed_round_robin() {
    let folder = Folder::new();
    drop(folder.create("a b c"));
    let dealt = distribute_levels(&shapes(), 3, NAME).unwrap();
    for (tree, shape) in shapes().iter().enumerate() {
        for (level, levels) in shape.levels().iter().enumerate() {
            for (member, dealt) in dealt.iter().enumerate() {
                let here = dealt[tree].levels()[level].buckets;
                let is_here = member == (tree + level) % 3;
                assert_eq!(here, if is_here { levels.buckets } else { 0 });
            }
            assert_eq!(member_of(tree, level, 3), (tree + level) % 3);
        }
    }
    let sizes: u64 = ["a", "b", "c"]
        .map(|name| folder.0.path().join(name).metadata().unwrap().len())
        .iter()
        .sum();
    let location = folder.stripe("a b c");
    assert_eq!(location.kind().bytes_needed(&shapes()).unwrap(), sizes);
    let files = location.files_needed(&shapes()).unwrap();
    for (path, bytes) in files {
        assert_eq!(path.metadata().unwrap().len(), bytes);
    }
}

#[test]
fn a_stripe_has_at_most_one_member_per_level() {
    let folder = Folder::new();
    // With five members, levels 1 to 4 of the first tree go to members 1 to 4, and level 0 of the
    // second tree goes to member 1. So member 0 would hold nothing.
    for (members, kind) in [("a b c d", None), ("a b c d e", Some(OpenErrorKind::InvalidShapes))] {
        let location = folder.stripe(members);
        let made = location.create(&shapes(), &StoreOptions::default());
        assert_eq!(made.as_ref().err().map(|error| error.kind()), kind);
        match made {
            Ok(_) => location.remove().unwrap(),
            Err(error) => assert!(error.to_string().contains("levels; name 4"), "{error}"),
        }
        assert_eq!(location.kind().bytes_needed(&shapes()).err().map(|error| error.kind()), kind);
    }
    let one_level = [TreeShape::new(vec![level(1)])];
    let refused = folder.stripe("a b").create(&one_level, &StoreOptions::default()).err().unwrap();
    assert!(refused.to_string().contains("one location"), "{refused}");
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn wrong_members_are_refused_with_advice() {
    let folder = Folder::new();
    drop(folder.create("a b c"));
    drop(folder.create("x y"));
    drop(folder.file("plain").create(&shapes(), &StoreOptions::default()).unwrap());
    // This stripe differs from `a b c` only in its name.
    drop(folder.create("d e f"));
    let mut others = shapes();
    others[1] = TreeShape::new(vec![LevelShape { header_bytes: 8, ..level(1) }]);
    drop(folder.stripe("p q r").create(&others, &StoreOptions::default()).unwrap());
    fs::copy(folder.0.path().join("a"), folder.0.path().join("copy")).unwrap();
    for (names, expected) in [
        ("a b", "the stripe has 3 members, but only 2 are named; name member 3 as well"),
        ("b c", "name member 1 as well"),
        ("a b c x", "a is a member of a stripe of 3, but x of a stripe of 2"),
        ("a x", "a is a member of a stripe of 3, but x of a stripe of 2"),
        ("b a c", "use stripe:a,b,c"),
        ("c a b", "use stripe:a,b,c"),
        ("y x", "use stripe:x,y"),
        ("a b plain", "plain is not a member of a stripe"),
        ("plain a", "plain is not a member of a stripe"),
        ("a b copy", "a and copy are both member 1"),
        ("a q c", "q is a member of another stripe than a; name the members of one"),
        ("p b c", "b is a member of another stripe than p; name the members of one"),
        ("a e c", "e is a member of another stripe than a; name the members of one"),
    ] {
        let (kind, message) = folder.refused(&folder.stripe(names));
        assert_eq!(kind, OpenErrorKind::WrongMembers, "{names}");
        assert!(message.contains(expected), "{names}: {message}");
    }
    let (kind, message) = folder.refused(&folder.file("b"));
    assert_eq!(kind, OpenErrorKind::WrongMembers);
    assert!(message.contains("member 2 of a stripe of 3"), "{message}");
    let (kind, message) = folder.refused(&folder.stripe("a b none"));
    assert_eq!(kind, OpenErrorKind::Missing);
    assert!(message.contains("none") && message.contains("create it again"), "{message}");
    let taken = folder.stripe("new b c").check_vacant().unwrap_err().to_string();
    assert!(taken.contains("b, ") && taken.contains("c exist; "), "{taken}");
    std::os::unix::fs::symlink("a", folder.0.path().join("link")).unwrap();
    let (kind, message) = folder.refused(&folder.stripe("a link c"));
    assert_eq!(kind, OpenErrorKind::WrongMembers);
    assert!(message.contains("a and link are the same file"), "{message}");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.0.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let (kind, message) = folder.refused(&folder.stripe("a pipe c"));
    assert_eq!(kind, OpenErrorKind::NotAStore);
    assert!(message.contains("pipe is not a file"), "{message}");
    // After all these attempts, the stripe still opens.
    folder.stripe("a b c").open(&StoreOptions::default()).unwrap();
}

#[test]
fn one_file_cannot_be_two_members() {
    let folder = Folder::new();
    fs::create_dir(folder.0.path().join("below")).unwrap();
    let [one, same] = ["new", "below/../new"].map(|name| folder.file(name));
    let twice = Location::Stripe(Members::new(vec![one, same]).unwrap());
    let refused = twice.create(&shapes(), &StoreOptions::default()).err().unwrap();
    assert_eq!(refused.kind(), OpenErrorKind::WrongMembers);
    assert_eq!(folder.names(), ["below"]);
    for (written, expected) in
        [("stripe:a,,c", "member 2"), ("stripe:", "member 1"), ("stripe:a%00,b", "zero byte")]
    {
        let refused = written.parse::<Location>().unwrap_err().to_string();
        assert!(refused.contains(expected), "{written}: {refused}");
    }
    // A path that is not UTF-8 is shown in a form that parses to the same location.
    let strange = std::ffi::OsStr::from_bytes(b"\xff:,%");
    let members = [Location::File(strange.into()), folder.file("b")];
    let location = Location::Stripe(Members::new(members.into()).unwrap());
    assert_eq!(location.to_string().parse(), Ok(location));
}

#[test]
fn a_creation_that_fails_leaves_nothing() {
    let folder = Folder::new();
    let there = folder.0.path().join("c");
    fs::write(&there, "something else").unwrap();
    let location = folder.stripe("a b c");
    let options = StoreOptions::default();
    for refused in [location.check_vacant().err(), location.create(&shapes(), &options).err()] {
        assert_eq!(refused.unwrap().kind(), OpenErrorKind::Exists);
        assert_eq!(folder.names(), ["c"]);
    }
    assert_eq!(fs::read(&there).unwrap(), b"something else");
    fs::remove_file(there).unwrap();
    location.check_vacant().unwrap();
    drop(location.create(&shapes(), &options).unwrap());
    location.remove().unwrap();
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn opening_reports_the_damaged_member_and_the_rest_is_readable() {
    let folder = Folder::new();
    let location = folder.stripe("a b c");
    let mut store = folder.create("a b c");
    put(&mut *store, &path(), 7).unwrap();
    store.flush().unwrap();
    drop(store);
    let b = folder.0.path().join("b");
    let mut bytes = fs::read(&b).unwrap();
    bytes[50] ^= 1;
    fs::write(&b, &bytes).unwrap();
    let to_read = StoreOptions::default().with_read_only(true).with_allow_incomplete(true);
    let condition = location.open(&to_read).unwrap().condition;
    assert!(condition.damage[0].contains("b: 1 of 3 copies"), "{condition:?}");
    let condition = location.open(&StoreOptions::default()).unwrap().condition;
    assert!(condition.mended[0].contains("b: damaged copies"), "{condition:?}");

    // In `b`, this cuts level 4, which follows level 1, and the last header.
    OpenOptions::new()
        .write(true)
        .open(&b)
        .unwrap()
        .set_len(bytes.len() as u64 / 2 + 1000)
        .unwrap();
    let (kind, message) = folder.refused(&location);
    assert_eq!(kind, OpenErrorKind::Truncated);
    assert!(message.starts_with("b: "), "{message}");
    let OpenedStore { mut store, condition } = location.open(&to_read).unwrap();
    assert!(condition.is_cut_off && condition.damage[0].contains("b: "), "{condition:?}");
    let read = path().into_iter().map(|piece| store.read(&[piece]).map(|_| ())).collect::<Vec<_>>();
    assert!(read[1].is_ok() && read[2].is_ok(), "pieces of other members cannot be read");
    for (piece, read) in path().iter().zip(read) {
        match read {
            Ok(()) => assert!(holds(&mut *store, &[*piece], 7)),
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Damaged),
        }
    }
}

#[test]
fn written_stripes_round_trip() {
    for (written, members) in [
        ("stripe:a,b", &["a", "b"][..]),
        ("stripe:./a,file:b,file:///c", &["./a", "b", "/c"]),
        ("stripe:file:///a%2Cb,file:///a%25b", &["/a,b", "/a%b"]),
        ("stripe:a%2cb,file:100%25,s3:x", &["a,b", "100%", "s3:x"]),
        ("stripe:file:s3://x,file:file:///y,file:stripe:z", &["s3://x", "file:///y", "stripe:z"]),
        ("stripe:my disk,b", &["my disk", "b"]),
    ] {
        let members = members.iter().map(|path| Location::File(path.into())).collect();
        let expected = Location::Stripe(Members::new(members).unwrap());
        assert_eq!(written.parse(), Ok(expected.clone()), "{written}");
        assert_eq!(expected.to_string().parse(), Ok(expected), "{written}");
    }
    let too_many = format!(
        "stripe:{}",
        (0..=MEMBERS_MAX).map(|i| i.to_string()).collect::<Vec<_>>().join(",")
    );
    for (refused, expected) in [
        ("stripe:", "name a file"),
        ("stripe:a", "2 to 16 locations"),
        ("stripe:a,", "name a file"),
        ("stripe:a,,b", "name a file"),
        (&too_many, "2 to 16 locations"),
        ("stripe:a,b,a", "names a location twice"),
        ("stripe:/a,file:///a", "names a location twice"),
        ("stripe:a,stripe:b,c", "cannot contain a stripe"),
        ("stripe:stripe:a,b", "cannot contain a stripe"),
        ("stripe:shares://a:1,b:1,c:1/disk?server=K,K,K&key=k,d", "cannot contain share servers"),
        ("stripe:d,Shares://a,b,c/disk", "cannot contain share servers"),
        ("stripe:a,ftp://user:password@host/disk", "ftp:// is unknown"),
        ("stripe://a,b", "stripe:// is unknown"),
        ("stripe:a,file://host/b", "an absolute path"),
    ] {
        let message = refused.parse::<Location>().unwrap_err().to_string();
        assert!(message.contains(expected), "{refused}: {message}");
        assert!(!message.contains("password"), "{message}");
    }
    // Text that is not a stripe can still name a file.
    assert_eq!("./stripe:a,b".parse(), Ok(Location::File("./stripe:a,b".into())));
    assert_eq!("Stripe:a,b".parse(), Ok(Location::File("Stripe:a,b".into())));
}

fn any_path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("://".to_owned()),
        Just("file".to_owned()),
        Just("stripe:".to_owned()),
        Just(":".to_owned()),
        Just(",".to_owned()),
        Just("%".to_owned()),
        Just("%2C".to_owned()),
        Just("/".to_owned()),
        "[^\0]{1,4}",
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn shown_stripes_round_trip(paths in prop::collection::vec(any_path(), 2..6)) {
        let members = paths.into_iter().map(|path| Location::File(path.into())).collect();
        let Ok(members) = Members::new(members) else { return Ok(()) };
        let location = Location::Stripe(members);
        prop_assert_eq!(location.to_string().parse(), Ok(location));
    }
}

proptest! {
    /// Members with arbitrary shapes, with or without marks, are accepted only if distributing
    /// their combined trees gives each member exactly its shapes.
    #[test]
    fn members_are_accepted_only_if_dealing_gives_their_shapes(
        members in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any_level(), 0..5), 0..4), 1..5,
        ),
        marked: bool,
    ) {
        let count = members.len();
        let mut members: Vec<Vec<_>> =
            members.into_iter()
                .map(|trees| trees.into_iter().map(TreeShape::new).collect())
                .collect();
        if marked && count > 1 {
            let marks = distribute_levels(&shapes(), 4, NAME).unwrap();
            for (member, mark) in members.iter_mut().zip(marks) {
                member.push(mark.last().unwrap().clone());
            }
        }
        let names: Vec<_> = (0..count).map(|name| name.to_string()).collect();
        if let Ok(together) = gather(&members, &names) {
            prop_assert_eq!(distribute_levels(&together, count, NAME).unwrap(), members);
        }
    }

    #[test]
    fn dealt_shapes_are_gathered_again(
        trees in prop::collection::vec(prop::collection::vec(any_level(), 0..6), 0..5),
        count in 2usize..=MEMBERS_MAX,
    ) {
        let shapes: Vec<_> = trees.into_iter().map(TreeShape::new).collect();
        let Ok(dealt) = distribute_levels(&shapes, count, NAME) else { return Ok(()) };
        let names: Vec<_> = (0..count).map(|name| name.to_string()).collect();
        prop_assert_eq!(gather(&dealt, &names).unwrap(), shapes);
        for (member, shapes) in dealt.iter().enumerate() {
            let mark = mark_of(shapes).unwrap();
            prop_assert_eq!((mark.name, mark.member, mark.members), (NAME, member, count));
        }
    }
}

fn any_level() -> impl Strategy<Value = LevelShape> {
    prop_oneof![Just(level(0)), Just(level(1)), Just(LevelShape { slots: 1, ..level(2) })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A striped store behaves like a store in memory for any sequence of operations, before and
    /// after reopening.
    #[test]
    fn a_stripe_behaves_like_a_memory_store(
        members in 2usize..5,
        steps in prop::collection::vec(
            (0u8..10, prop::collection::vec(any::<prop::sample::Index>(), 1..8)), 1..40,
        ),
    ) {
        let folder = Folder::new();
        let location = folder.stripe(["a b", "a b c", "a b c d"][members - 2]);
        let options = StoreOptions::default();
        let mut store = location.create(&shapes(), &options).unwrap();
        let mut memory = MemoryStore::new(&shapes(), LayoutKind::Heap).unwrap();
        let all: Vec<_> = (1..5).flat_map(|level| (0..1 << level).map(move |i| whole(0, level, i)))
            .chain([whole(1, 0, 0)])
            .collect();
        for (byte, (step, indices)) in (1..).zip(steps) {
            let some: Vec<_> = indices.iter().map(|index| *index.get(&all)).collect();
            match step {
                0 => store.flush().unwrap(),
                1 => store.prefetch(&some),
                2 => {
                    store.flush().unwrap();
                    drop(store);
                    store = location.open(&options).unwrap().store;
                }
                3..6 => {
                    put(&mut *store, &some, byte).unwrap();
                    put(&mut memory, &some, byte).unwrap();
                }
                _ => {
                    let (frames, expected) =
                        (store.read(&some).unwrap(), memory.read(&some).unwrap());
                    (0..some.len()).for_each(|i| assert_eq!(frames.get(i), expected.get(i)));
                }
            }
        }
    }
}

/// A meeting point at which members wait for each other, to test that they work at the same time.
#[derive(Default)]
struct Meeting {
    state: Mutex<MeetingState>,
    changed: Condvar,
}

#[derive(Default)]
struct MeetingState {
    /// The number of calls that have begun to wait at the meeting point.
    inside: usize,
    met: usize,
    /// For each member, the pieces of each of its calls.
    calls: HashMap<usize, Vec<Vec<Piece>>>,
}

impl Meeting {
    /// Waits until `expected` calls are waiting. Gives up after five seconds.
    fn wait(&self, expected: usize) {
        let mut state = self.state.lock().unwrap();
        state.inside += 1;
        if state.inside == expected {
            state.met += expected;
        }
        self.changed.notify_all();
        let patience = Duration::from_secs(5);
        let is_alone = |state: &mut MeetingState| state.met < expected;
        drop(self.changed.wait_timeout_while(state, patience, is_alone).unwrap());
    }

    fn begin(&self) {
        *self.state.lock().unwrap() = MeetingState::default();
    }

    fn met(&self) -> usize {
        self.state.lock().unwrap().met
    }
}

/// What a member does on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberBehaviour {
    Works,
    /// Waits until this number of calls wait at the same time.
    Meets(usize),
    FailsToRead,
    FailsToWrite,
    FailsToFlush,
    Panics,
}

/// Creates a member in memory with the given behaviour. It records its calls in `meeting`.
fn observed(
    inner: MemoryStore,
    number: usize,
    behaviour: Arc<Mutex<MemberBehaviour>>,
    meeting: Arc<Meeting>,
) -> impl BucketStore + Send {
    let meet = move |inner: &mut MemoryStore, call: &mut Call<'_>| {
        let calls = |state: &mut MeetingState| {
            state.calls.entry(number).or_default().push(call.pieces.clone());
        };
        calls(&mut meeting.state.lock().unwrap());
        let behaviour = *behaviour.lock().unwrap();
        match (behaviour, call.operation) {
            (MemberBehaviour::Meets(expected), _) => meeting.wait(expected),
            (MemberBehaviour::Panics, _) => std::panic::resume_unwind(Box::new("planned")),
            (MemberBehaviour::FailsToRead, Operation::Read)
            | (MemberBehaviour::FailsToWrite, Operation::Write)
            | (MemberBehaviour::FailsToFlush, Operation::Flush) => {
                return Err(StoreError::new(StoreErrorKind::Full, "planned to fail"));
            }
            _ => {}
        }
        call.forward(inner)
    };
    Faulty::new(inner, meet)
}

struct Bench {
    store: StripedStore,
    behaviours: Vec<Arc<Mutex<MemberBehaviour>>>,
    meeting: Arc<Meeting>,
}

impl Bench {
    fn new(members: usize) -> Self {
        let meeting = Arc::new(Meeting::default());
        let behaviours: Vec<_> =
            (0..members).map(|_| Arc::new(Mutex::new(MemberBehaviour::Works))).collect();
        let stores =
            distribute_levels(&shapes(), members, NAME).unwrap().into_iter().enumerate().map(
                |(number, shapes)| {
                    let inner = MemoryStore::new(&shapes, LayoutKind::Heap).unwrap();
                    let (behaviour, meeting) = (behaviours[number].clone(), meeting.clone());
                    let store: BoxedStore = Box::new(observed(inner, number, behaviour, meeting));
                    (format!("store {number}"), store)
                },
            );
        let store = StripedStore::new(stores.collect(), false).unwrap();
        Self { store, behaviours, meeting }
    }

    fn all(&self, behaviour: MemberBehaviour) {
        self.behaviours.iter().for_each(|it| *it.lock().unwrap() = behaviour);
    }

    fn one(&self, member: usize, behaviour: MemberBehaviour) {
        *self.behaviours[member].lock().unwrap() = behaviour;
    }
}

#[test]
fn all_members_work_at_the_same_time() {
    for members in [2, 4] {
        let mut bench = Bench::new(members);
        bench.all(MemberBehaviour::Meets(members));
        let mut meet = |act: &dyn Fn(&mut StripedStore)| {
            bench.meeting.begin();
            act(&mut bench.store);
            assert_eq!(bench.meeting.met(), members);
        };
        meet(&|store| put(store, &path(), 3).unwrap());
        meet(&|store| assert!(holds(store, &path(), 3)));
        meet(&|store| store.flush().unwrap());
    }
}

#[test]
fn prefetching_does_not_wait() {
    let mut bench = Bench::new(2);
    // Both members wait for a third call, which the test makes.
    bench.all(MemberBehaviour::Meets(3));
    bench.meeting.begin();
    bench.store.prefetch(&path());
    let prefetched = bench.meeting.clone();
    prefetched.wait(3);
    assert_eq!(bench.meeting.met(), 3);
}

/// A member's calls depend only on the requested pieces: it receives the pieces on its levels, in
/// order.
#[test]
fn a_member_sees_only_pieces_on_its_levels() {
    let mut bench = Bench::new(3);
    let trip = [whole(0, 4, 5), whole(0, 1, 1), whole(1, 0, 0), whole(0, 2, 3), whole(0, 4, 0)];
    bench.meeting.begin();
    put(&mut bench.store, &trip, 1).unwrap();
    assert!(holds(&mut bench.store, &trip, 1));
    bench.store.prefetch(&trip);
    assert!(holds(&mut bench.store, &[whole(0, 3, 1)], 0));
    drop(bench.store);
    let calls = std::mem::take(&mut bench.meeting.state.lock().unwrap().calls);
    // (0 + 4), (0 + 1) and (1 + 0) are 1 mod 3, (0 + 2) is 2, and (0 + 3) is 0.
    let first = [trip[0], trip[1], trip[2], trip[4]].to_vec();
    assert_eq!(calls[&1], [first.clone(), first.clone(), first]);
    assert_eq!(calls[&2], vec![vec![trip[3]]; 3]);
    assert_eq!(calls[&0], [[whole(0, 3, 1)]]);
}

#[test]
fn errors_name_the_member_and_failed_writes_are_final() {
    for behaviour in
        [MemberBehaviour::FailsToRead, MemberBehaviour::FailsToWrite, MemberBehaviour::FailsToFlush]
    {
        let mut bench = Bench::new(3);
        put(&mut bench.store, &path(), 1).unwrap();
        bench.one(2, behaviour);
        let error = match behaviour {
            MemberBehaviour::FailsToRead => bench.store.read(&path()).map(|_| ()).unwrap_err(),
            MemberBehaviour::FailsToWrite => put(&mut bench.store, &path(), 2).unwrap_err(),
            _ => bench.store.flush().unwrap_err(),
        };
        assert_eq!(
            (error.kind(), &*error.to_string()),
            (StoreErrorKind::Full, "store 2: planned to fail")
        );
        bench.all(MemberBehaviour::Works);
        let (read, flushed) = (bench.store.read(&path()).map(|_| ()), bench.store.flush());
        assert_eq!(read.is_ok(), behaviour == MemberBehaviour::FailsToRead, "{behaviour:?}");
        assert_eq!(flushed.is_ok(), behaviour == MemberBehaviour::FailsToRead, "{behaviour:?}");
        if behaviour != MemberBehaviour::FailsToRead {
            let message = flushed.unwrap_err().to_string();
            assert!(message.contains("refuses all calls after an error: store 2"), "{message}");
            assert!(put(&mut bench.store, &path(), 2).is_err());
        }
    }
}

#[test]
fn a_member_whose_thread_has_ended_is_an_error() {
    for act in 0..4 {
        let mut bench = Bench::new(3);
        bench.one(1, MemberBehaviour::Panics);
        let failed = match act {
            0 => bench.store.read(&path()).map(|_| ()),
            1 => put(&mut bench.store, &path(), 2),
            2 => bench.store.flush(),
            _ => {
                bench.store.prefetch(&path());
                bench.store.read(&path()).map(|_| ())
            }
        };
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("store 1: its thread has ended"), "{message}");
        assert!(bench.store.flush().is_err());
        assert!(put(&mut bench.store, &path(), 2).is_err());
    }
}

/// Each file of a stripe is an ordinary container file that can be read on its own.
#[test]
fn a_member_is_an_ordinary_file() {
    let folder = Folder::new();
    drop(folder.create("a b"));
    let path: &Path = &folder.0.path().join("b");
    let options = oblivio_store::FileOptions::default();
    let store = oblivio_store::FileStore::open(path, &options).unwrap();
    let name = mark_of(store.shapes()).unwrap().name;
    assert_eq!(store.shapes(), distribute_levels(&shapes(), 2, name).unwrap()[1]);
}
