//! Tests whether a service keeps the contract of [`Objects`].
//!
//! Servers that only look like S3 break it: s3s-fs checks whether an object exists and writes it
//! afterwards, so several of sixteen racing creations succeed. A store on such a server could be
//! written by two clients at once. Nothing is emulated: creation refuses such a server.

use bytes::Bytes;
use oblivio_core::StoreError;

use super::creation::get;
use super::opening::open_error;
use crate::error::{OpenError, OpenErrorKind};
use crate::objects::{Answer, ObjectName, Objects, Prefix};

/// The number of creations of one name that race.
const RACING: u8 = 16;

/// The number of races. More would show little more: s3s-fs failed each of five. `SeaweedFS` takes
/// a second for each creation of a race.
const RACES: u16 = 1;

/// The number of the first object that does not race, and how many names are tried for it.
const FIRST: u16 = RACES;
const TRIES: u16 = 5;

/// Checks that the service creates objects once, reads ranges, lists and deletes.
///
/// # Errors
/// [`OpenErrorKind::Unsuitable`] with the reason, or the errors of the engine.
pub fn probe(objects: &mut dyn Objects, nonce: u64) -> Result<(), OpenError> {
    let outcome = run(objects, nonce);
    let names: Vec<_> =
        (0..FIRST + TRIES).map(|number| ObjectName::Probe { nonce, number }).collect();
    let deleted = objects.delete(&names).map_err(|error| open_error("delete an object", error));
    outcome.and(deleted)?;
    for name in names {
        let found =
            get(objects, name, 0..1).map_err(|error| open_error("read an object", error))?;
        if found.is_some() {
            return Err(unsuitable("a deleted object still exists"));
        }
    }
    Ok(())
}

fn run(objects: &mut dyn Objects, nonce: u64) -> Result<(), OpenError> {
    let reading = |error| open_error("read an object", error);
    let creating = |error| open_error("create an object", error);
    let contents = b"an object to test this service";
    let mut names = (FIRST..FIRST + TRIES).map(|number| ObjectName::Probe { nonce, number });
    // After a lost answer, another name: this one may still be created.
    let name = loop {
        let Some(name) = names.next() else {
            return Err(unsuitable("it does not answer when objects are created"));
        };
        match creation(objects, name, contents).map_err(creating)? {
            Answer::Created => break name,
            Answer::Unknown => {}
            _ => return Err(unsuitable("an object with a new random name exists already")),
        }
    };
    if creation(objects, name, b"other bytes").map_err(creating)? == Answer::Created {
        return Err(unsuitable("an object can be overwritten: it ignores If-None-Match"));
    }
    let range = get(objects, name, 3..9).map_err(reading)?;
    if range.as_deref() != Some(&contents[3..9]) {
        return Err(unsuitable("a read of a range does not return that range"));
    }
    for number in 0..RACES {
        let name = ObjectName::Probe { nonce, number };
        let tickets: Vec<_> = (0..RACING)
            .map(|i| objects.begin_create(name, vec![Bytes::copy_from_slice(&[i; 64])]))
            .collect();
        let mut created = 0;
        for ticket in tickets {
            let answer = objects.wait(ticket).map_err(creating)?;
            created += u8::from(answer == Answer::Created);
        }
        if created > 1 {
            return Err(unsuitable(&format!(
                "{created} of {RACING} simultaneous creations of one object succeeded, so two \
                 clients could overwrite each other"
            )));
        }
    }
    let listed =
        objects.list(Prefix::All, None).map_err(|error| open_error("list objects", error))?;
    if !listed.iter().any(|listed| listed.name == name && listed.bytes == contents.len() as u64) {
        return Err(unsuitable("a new object is missing from a listing"));
    }
    Ok(())
}

fn creation(
    objects: &mut dyn Objects,
    name: ObjectName,
    contents: &'static [u8],
) -> Result<Answer, StoreError> {
    let ticket = objects.begin_create(name, vec![Bytes::from_static(contents)]);
    objects.wait(ticket)
}

fn unsuitable(why: &str) -> OpenError {
    OpenError::new(
        OpenErrorKind::Unsuitable,
        format!("this service cannot hold a volume: {why}; use another service or bucket server"),
    )
}
