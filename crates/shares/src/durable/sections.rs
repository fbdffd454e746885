//! The sections of saved states. The head has the number of accesses. Only the first state of a log
//! has further sections; later states follow from the first state and the plans since.
//! `docs/format.md` in the repository describes the sections.

use std::ops::Range;

use oblivio_core::Error;
use oblivio_core::durable::section::{Fields, bytes_of, foreign_section, in_sections, put_count};
use oblivio_core::durable::{Save, SectionSize};
use oblivio_core::wiped::WipedBytes;

use super::invalid;

/// The tags of sections in a state.
pub(super) mod tag {
    pub(in crate::durable) const HEAD: u8 = 1;
    pub(in crate::durable) const MAP: u8 = 2;
}

/// A map entry: two numbers, zero for a block without a position. Secret.
pub(super) type Entry = [u64; 2];

/// The number of entries in one map section.
const SECTION_ENTRIES: u64 = 4096;

/// The sizes of the sections: the head, and a map with `entries` entries.
pub(super) fn sizes(entries: u64) -> Vec<SectionSize> {
    let head = SectionSize { sections: 1, bytes: bytes_of(|out| put_head(out, 0)) };
    let map = in_sections(entries, SECTION_ENTRIES, |entries| {
        bytes_of(|out| put_map(out, 0..entries, &|_| [0; 2]))
    });
    [&[head], &map[..]].concat()
}

fn put_head(out: &mut WipedBytes, accesses: u64) {
    out.push(tag::HEAD);
    out.extend_from_slice(&accesses.to_le_bytes());
}

fn put_map(out: &mut WipedBytes, range: Range<u64>, entry: &dyn Fn(u64) -> Entry) {
    out.push(tag::MAP);
    out.extend_from_slice(&range.start.to_le_bytes());
    put_count(out, (range.end - range.start) as usize);
    range.flat_map(entry).for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// Divides `0..end` into ranges of at most `in_each` numbers.
pub(super) fn ranges(end: u64, in_each: u64) -> impl Iterator<Item = Range<u64>> {
    (0..end).step_by(in_each as usize).map(move |start| start..(start + in_each).min(end))
}

/// Saves a state, section by section.
pub(super) struct StateWriter<'o> {
    what: Save,
    /// The buffer for a section; wiped when dropped.
    section: WipedBytes,
    out: &'o mut dyn FnMut(&[u8]),
}

impl<'o> StateWriter<'o> {
    /// Saves the head. Returns a writer for further sections; `None` if only the head is saved.
    pub(super) fn begin(accesses: u64, what: Save, out: &'o mut dyn FnMut(&[u8])) -> Option<Self> {
        let mut writer = Self { what, section: WipedBytes::default(), out };
        writer.emit(|section| put_head(section, accesses));
        (what != Save::Changes).then_some(writer)
    }

    /// Saves a section. An empty section (`is_dummy`) is omitted, unless the state is padded to its
    /// full length.
    pub(super) fn section(&mut self, is_dummy: bool, put: impl FnOnce(&mut WipedBytes)) {
        if self.what == Save::WholePadded || !is_dummy {
            self.emit(put);
        }
    }

    /// Saves a map with `entries` entries, in sections.
    pub(super) fn map(&mut self, entries: u64, entry: &dyn Fn(u64) -> Entry) {
        for range in ranges(entries, SECTION_ENTRIES) {
            let is_dummy = range.clone().all(|block| entry(block) == [0; 2]);
            self.section(is_dummy, |section| put_map(section, range, entry));
        }
    }

    fn emit(&mut self, put: impl FnOnce(&mut WipedBytes)) {
        self.section.clear();
        put(&mut self.section);
        (self.out)(&self.section);
    }
}

/// Restores the states of a log, which are read in their order.
#[derive(Default)]
pub(super) struct StateReader {
    states: u64,
    has_head: bool,
}

impl StateReader {
    /// Begins reading another state.
    pub(super) fn begin(&mut self) {
        self.states += 1;
        self.has_head = false;
    }

    /// Whether the current state is the first one, which is complete.
    pub(super) fn is_first(&self) -> bool {
        self.states == 1
    }

    /// Reads the number of accesses from a head. In a later state the number must equal `follows`,
    /// which follows from the first state and the plans since. Fails for a second head in a state.
    pub(super) fn head(&mut self, mut fields: Fields<'_>, follows: u64) -> Result<u64, Error> {
        let accesses = fields.count()?;
        fields.end()?;
        if self.has_head || !self.is_first() && accesses != follows {
            return Err(foreign_section());
        }
        self.has_head = true;
        Ok(accesses)
    }

    /// Passes each entry of a map section to `set`. Fails if `set` returns `false`, because there
    /// is no such block or position.
    pub(super) fn map(
        &self,
        mut fields: Fields<'_>,
        mut set: impl FnMut(u64, Entry) -> bool,
    ) -> Result<(), Error> {
        let start = fields.count()?;
        let entries =
            fields.list(size_of::<Entry>(), |fields| Ok([fields.u64()?, fields.u64()?]))?;
        fields.end()?;
        let fits = (start..).zip(entries).all(|(block, entry)| set(block, entry));
        if fits { Ok(()) } else { Err(foreign_section()) }
    }

    /// Ends reading. Fails if there was no state, or the last state has no head.
    pub(super) fn end(&self) -> Result<(), Error> {
        self.has_head.then_some(()).ok_or_else(|| invalid("the state has no head"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Saves a state whose map has two sections, of which the first is empty.
    fn saved(accesses: u64, what: Save) -> Vec<Vec<u8>> {
        let mut sections = Vec::new();
        let mut out = |section: &[u8]| sections.push(section.to_vec());
        if let Some(mut writer) = StateWriter::begin(accesses, what, &mut out) {
            let entry = |block| if block < SECTION_ENTRIES { [0; 2] } else { [block, 7] };
            writer.map(SECTION_ENTRIES + 3, &entry);
        }
        sections
    }

    #[test]
    fn a_state_is_its_head_and_the_requested_part_of_the_map() {
        let bytes = |of: &[Vec<u8>]| of.iter().map(|it| it.len() as u64).collect::<Vec<_>>();
        let [padded, whole, changes] =
            [Save::WholePadded, Save::Whole, Save::Changes].map(|what| saved(9, what));
        let expected: Vec<_> =
            sizes(SECTION_ENTRIES + 3).iter().map(|it| it.bytes * it.sections).collect();
        assert_eq!(bytes(&padded), expected);
        // `assert!` instead of `assert_eq!`, because the sections are too long to print.
        assert!(whole == [&padded[..1], &padded[2..]].concat());
        assert!(changes == padded[..1]);
    }

    #[test]
    fn each_state_of_a_log_has_a_matching_head_and_the_first_a_map() {
        let sections = saved(9, Save::Whole);
        let behind_tag = |section: usize| Fields::new(&sections[section][1..]);
        let mut reader = StateReader::default();
        reader.begin();
        assert!(reader.end().is_err() && reader.is_first());
        assert_eq!(reader.head(behind_tag(0), 0).unwrap(), 9);
        assert!(reader.head(behind_tag(0), 9).is_err());
        let mut passed = Vec::new();
        let mut set = |block, entry| {
            passed.push((block, entry));
            block < SECTION_ENTRIES + 2
        };
        assert!(reader.map(behind_tag(1), &mut set).is_err());
        let first = SECTION_ENTRIES;
        assert_eq!(passed, [0, 1, 2].map(|it| (first + it, [first + it, 7])));
        reader.begin();
        assert!(reader.end().is_err() && !reader.is_first());
        assert!(reader.head(behind_tag(0), 8).is_err());
        assert_eq!(reader.head(behind_tag(0), 9).unwrap(), 9);
        reader.end().unwrap();
    }
}
