//! The contract of every engine of objects.

use std::ops::Range;

use bytes::Bytes;
use oblivio_store::objects::{Answer, ObjectName, Objects, Prefix, Synced};

/// More objects than a service lists or deletes with one request.
const MANY: u64 = 1_050;

/// Rounds of racing creations.
const RACES: u16 = 5;

/// Checks that an engine keeps its contract. `open` returns a new client of one service, which
/// holds no objects at first.
pub(crate) fn check<O: Objects>(open: impl FnMut() -> O) {
    check_with_races(open, RACES);
}

/// As [`check`], with fewer rounds of racing creations for a service that takes seconds for one.
pub(crate) fn check_with_races<O: Objects>(mut open: impl FnMut() -> O, races: u16) {
    let (mut one, mut other) = (open(), open());
    objects_are_created_once(&mut one, &mut other);
    ranges_end_where_the_object_ends(&mut one);
    exactly_one_of_racing_creations_succeeds(&mut one, &mut other, races);
    answers_arrive_for_their_tickets(&mut one);
    listings_are_complete_and_in_order(&mut one, &mut other, races);
    deleted_objects_are_absent(&mut one, &mut other);
    assert_eq!(one.sync().unwrap(), Synced::Durable);
    assert_eq!(other.sync().unwrap(), Synced::Durable, "a client that created nothing new");
}

fn chunk(stream: u16, number: u64) -> ObjectName {
    ObjectName::Chunk { session: 7, stream, number }
}

pub(crate) fn create(objects: &mut impl Objects, name: ObjectName, parts: &[&[u8]]) -> Answer {
    let parts = parts.iter().map(|part| Bytes::copy_from_slice(part)).collect();
    let ticket = objects.begin_create(name, parts);
    objects.wait(ticket).unwrap()
}

pub(crate) fn get(objects: &mut impl Objects, name: ObjectName, range: Range<u64>) -> Answer {
    let ticket = objects.begin_get(name, range);
    objects.wait(ticket).unwrap()
}

pub(crate) fn list(
    objects: &mut impl Objects,
    prefix: Prefix,
    mut after: Option<ObjectName>,
) -> Vec<(ObjectName, u64)> {
    let mut found = Vec::new();
    loop {
        let page = objects.list(prefix, after).unwrap();
        let Some(last) = page.last() else { return found };
        after = Some(last.name);
        found.extend(page.iter().map(|listed| (listed.name, listed.bytes)));
    }
}

fn bytes(bytes: &[u8]) -> Answer {
    Answer::Bytes(Bytes::copy_from_slice(bytes))
}

fn objects_are_created_once(one: &mut impl Objects, other: &mut impl Objects) {
    let names = [
        ObjectName::Head(1),
        chunk(0, 0),
        ObjectName::Tail { session: 7, number: 0 },
        ObjectName::Probe { nonce: 3, number: 1 },
    ];
    for name in names {
        assert_eq!(get(one, name, 0..3), Answer::Absent, "{name}");
        assert_eq!(create(one, name, &[b"ab", b"", b"c"]), Answer::Created, "{name}");
        assert_eq!(create(one, name, &[b"xyz"]), Answer::Exists, "{name}");
        assert_eq!(create(other, name, &[b"xyz"]), Answer::Exists, "{name}");
        for client in [&mut *one as &mut dyn Objects, other] {
            let ticket = client.begin_get(name, 0..3);
            assert_eq!(client.wait(ticket).unwrap(), bytes(b"abc"), "{name}");
        }
    }
    let empty = chunk(1, 0);
    assert_eq!(create(one, empty, &[]), Answer::Created);
    assert_eq!(get(other, empty, 0..3), bytes(b""));
    assert_eq!(create(other, empty, &[b"xyz"]), Answer::Exists);
    let long: Vec<_> = (0..(1u32 << 20)).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let parts: Vec<_> = long.chunks(20_566).collect();
    assert_eq!(create(one, chunk(1, 1), &parts), Answer::Created);
    assert_eq!(get(other, chunk(1, 1), 0..2 << 20), bytes(&long));
}

fn ranges_end_where_the_object_ends(one: &mut impl Objects) {
    let name = chunk(2, 0);
    create(one, name, &[b"0123456789"]);
    for (range, expected) in [
        (0..10, "0123456789"),
        (0..1, "0"),
        (9..10, "9"),
        (3..7, "3456"),
        (7..12, "789"),
        (10..11, ""),
        (11..20, ""),
        (4..4, ""),
    ] {
        assert_eq!(get(one, name, range.clone()), bytes(expected.as_bytes()), "{range:?}");
    }
}

fn exactly_one_of_racing_creations_succeeds(
    one: &mut impl Objects,
    other: &mut impl Objects,
    races: u16,
) {
    for round in 0..races {
        let name = ObjectName::Probe { nonce: 3, number: 100 + round };
        let contents = |client: u8, i: u8| vec![Bytes::from(vec![client, i])];
        let ours: Vec<_> = (0..8).map(|i| one.begin_create(name, contents(1, i))).collect();
        let theirs: Vec<_> = (0..8).map(|i| other.begin_create(name, contents(2, i))).collect();
        let mut created = Vec::new();
        for (i, ticket) in (0..).zip(ours) {
            match one.wait(ticket).unwrap() {
                Answer::Created => created.push([1, i]),
                answer => assert_eq!(answer, Answer::Exists),
            }
        }
        for (i, ticket) in (0..).zip(theirs) {
            match other.wait(ticket).unwrap() {
                Answer::Created => created.push([2, i]),
                answer => assert_eq!(answer, Answer::Exists),
            }
        }
        assert_eq!(created.len(), 1, "{created:?}");
        assert_eq!(get(one, name, 0..9), bytes(&created[0]));
    }
}

fn answers_arrive_for_their_tickets(one: &mut impl Objects) {
    let name = chunk(3, 0);
    create(one, name, &[&(0..=255).collect::<Vec<u8>>()]);
    let tickets: Vec<_> = (0..200).map(|i| one.begin_get(name, i..i + 1)).collect();
    for (i, ticket) in tickets.iter().enumerate().rev() {
        match i % 3 {
            0 => one.forget(*ticket),
            _ => assert_eq!(one.wait(*ticket).unwrap(), bytes(&[i as u8])),
        }
    }
}

fn listings_are_complete_and_in_order(
    one: &mut impl Objects,
    other: &mut impl Objects,
    races: u16,
) {
    let tickets: Vec<_> = (0..MANY)
        .map(|number| one.begin_create(chunk(4, number), vec![Bytes::from_static(b"many")]))
        .collect();
    for ticket in tickets {
        assert_eq!(one.wait(ticket).unwrap(), Answer::Created);
    }
    let stream = Prefix::Stream { session: 7, stream: 4 };
    let all: Vec<_> = (0..MANY).map(|number| (chunk(4, number), 4)).collect();
    assert_eq!(list(other, stream, None), all);
    assert_eq!(list(other, stream, Some(chunk(4, 9))), all[10..]);
    assert_eq!(list(other, stream, Some(chunk(4, MANY))), []);
    assert_eq!(list(other, Prefix::Stream { session: 7, stream: 5 }, None), []);
    assert_eq!(list(other, Prefix::Heads, None), [(ObjectName::Head(1), 3)]);
    create(one, ObjectName::Head(300), &[b"head"]);
    let heads = [(ObjectName::Head(1), 3), (ObjectName::Head(300), 4)];
    assert_eq!(list(other, Prefix::Heads, None), heads);
    assert_eq!(list(other, Prefix::Heads, Some(ObjectName::Head(1))), heads[1..]);
    create(one, ObjectName::Chunk { session: 8, stream: 4, number: 0 }, &[b"x"]);
    let session = list(other, Prefix::Session(7), None);
    assert!(session.is_sorted());
    assert!(session.contains(&(ObjectName::Tail { session: 7, number: 0 }, 3)));
    assert!(session.iter().all(|(name, _)| Prefix::Session(7).contains(*name)));
    let everything = list(one, Prefix::All, None);
    // Each race left a probe, and session 8 has one chunk.
    let others = [Prefix::Heads, Prefix::Session(7), Prefix::Session(8)];
    let counted: usize = others.map(|prefix| list(one, prefix, None).len()).iter().sum();
    assert!(everything.is_sorted());
    assert_eq!(everything.len(), counted + 1 + usize::from(races), "and the probes");
}

fn deleted_objects_are_absent(one: &mut impl Objects, other: &mut impl Objects) {
    let names: Vec<_> = (0..MANY + 3).map(|number| chunk(4, number)).collect();
    one.delete(&names).unwrap();
    one.delete(&names[..2]).unwrap();
    one.delete(&[]).unwrap();
    assert_eq!(get(other, names[0], 0..1), Answer::Absent);
    assert_eq!(list(other, Prefix::Stream { session: 7, stream: 4 }, None), []);
    one.delete(&[ObjectName::Head(300)]).unwrap();
    assert_eq!(list(other, Prefix::Heads, None), [(ObjectName::Head(1), 3)]);
    let rest: Vec<_> = list(one, Prefix::All, None).into_iter().map(|(name, _)| name).collect();
    other.delete(&rest).unwrap();
    assert_eq!(list(one, Prefix::All, None), []);
}
