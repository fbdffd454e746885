//! The address map: splits the number of a line into channel, bank and row.

use super::DramSpec;
use crate::SimError;

/// The part of a location that a group of address bits selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressField {
    Row,
    Rank,
    Group,
    Bank,
    Column,
    Channel,
}

impl AddressField {
    const ALL: [(&str, Self); 6] = [
        ("row", Self::Row),
        ("rank", Self::Rank),
        ("group", Self::Group),
        ("bank", Self::Bank),
        ("column", Self::Column),
        ("channel", Self::Channel),
    ];

    /// The number of values of the field: a power of two.
    fn choices(self, spec: &DramSpec, channels: u32) -> u64 {
        match self {
            Self::Row => u64::from(spec.rows),
            Self::Rank => u64::from(spec.ranks),
            Self::Group => u64::from(spec.groups()),
            Self::Bank => u64::from(spec.banks / spec.groups()),
            Self::Column => spec.row_lines(),
            Self::Channel => u64::from(channels),
        }
    }
}

/// The location of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DramAddress {
    pub(super) channel: u32,
    /// The index of the bank in the channel: ranks contain groups, and groups contain banks.
    pub(super) bank: u32,
    pub(super) row: u32,
}

/// A bit field of a number.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    shift: u32,
    mask: u64,
}

impl Bits {
    #[inline]
    fn extract(self, line: u64) -> u64 {
        (line >> self.shift) & self.mask
    }
}

/// Maps the number of a line to its location.
#[derive(Clone, Debug)]
pub(super) struct AddressMap {
    channel: Bits,
    rank: Bits,
    group: Bits,
    bank: Bits,
    row: Bits,
    bits: u32,
    /// The number of neighbouring lines that lie in a single row of each bank they touch, if `row`
    /// precedes `column` in the address order.
    row_span: u64,
}

impl AddressMap {
    pub(super) fn new(spec: &DramSpec, channels: u32) -> Result<Self, SimError> {
        spec.check()?;
        if !channels.is_power_of_two() {
            let message = format!("{channels} channels: must be a power of two");
            return Err(SimError::Spec(message));
        }
        let parts = parse(spec)?;
        let mut bits = 0;
        let mut row_span = 1;
        let mut shares = [Bits::default(); AddressField::ALL.len()];
        for &part in parts.iter().rev() {
            let choices = part.choices(spec, channels);
            shares[part as usize] = Bits { shift: bits, mask: choices - 1 };
            bits += choices.trailing_zeros();
            if bits >= u64::BITS {
                return Err(SimError::Spec("more lines than 64 bits can number".into()));
            }
            if part == AddressField::Column {
                row_span = 1 << bits;
            }
        }
        let [row, rank, group, bank, _, channel] = shares;
        Ok(Self { channel, rank, group, bank, row, bits, row_span })
    }

    /// The number of lines that all channels hold.
    pub(super) fn lines(&self) -> u64 {
        1 << self.bits
    }

    pub(super) fn row_span(&self) -> u64 {
        self.row_span
    }

    #[inline]
    pub(super) fn place(&self, line: u64) -> DramAddress {
        let group = self.rank.extract(line) * (self.group.mask + 1) + self.group.extract(line);
        let bank = group * (self.bank.mask + 1) + self.bank.extract(line);
        DramAddress {
            channel: self.channel.extract(line) as u32,
            bank: bank as u32,
            row: self.row.extract(line) as u32,
        }
    }
}

/// Parses an address order. Each field must occur once, `group` only for parts with bank groups.
fn parse(spec: &DramSpec) -> Result<Vec<AddressField>, SimError> {
    let order = &spec.address_order;
    let wrong = |what: String| SimError::Spec(format!("address_order = \"{order}\": {what}"));
    let mut parts = Vec::new();
    for name in order.split(':') {
        let known = AddressField::ALL.iter().find(|(known, _)| *known == name.trim());
        let Some(&(name, part)) = known else {
            let message = format!("{name:?} is not row, rank, group, bank, column or channel");
            return Err(wrong(message));
        };
        if parts.contains(&part) {
            return Err(wrong(format!("{name} occurs twice")));
        }
        parts.push(part);
    }
    let needed = |part: AddressField| part != AddressField::Group || spec.bank_groups.is_some();
    match AddressField::ALL.iter().find(|(_, part)| needed(*part) != parts.contains(part)) {
        None => Ok(parts),
        Some((name, part)) if needed(*part) => Err(wrong(format!("{name} is missing"))),
        Some(_) => Err(wrong("group is only for parts with bank groups".into())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn lines_go_to_channels_first_and_then_along_a_row() {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let map = AddressMap::new(&spec, 4).unwrap();
        assert_eq!(map.lines() * 64, 32 << 30);
        assert_eq!(map.row_span() * 64, 4 * 8192);
        assert_eq!(map.place(6), DramAddress { channel: 2, bank: 0, row: 0 });
        assert_eq!(map.place(511), DramAddress { channel: 3, bank: 0, row: 0 });
        assert_eq!(map.place(512), DramAddress { channel: 0, bank: 1, row: 0 });
        assert_eq!(map.place(512 * 16), DramAddress { channel: 0, bank: 0, row: 1 });
    }

    #[test]
    fn each_row_holds_the_lines_of_one_place() {
        for order in ["row:rank:bank:column:group:channel", "column:channel:group:rank:bank:row"] {
            let spec = DramSpec {
                rows: 4,
                row_bytes: 256,
                address_order: order.into(),
                ..DramSpec::built_in("DDR4-2400").unwrap()
            };
            let map = AddressMap::new(&spec, 2).unwrap();
            let places: Vec<_> = (0..map.lines()).map(|line| map.place(line)).collect();
            let key = |place: &DramAddress| (place.channel, place.bank, place.row);
            let distinct: HashSet<_> = places.iter().map(key).collect();
            assert_eq!((places.len(), distinct.len()), (2 * 32 * 4 * 4, 2 * 32 * 4));
            assert!(places.iter().all(|place| place.bank < 32));
        }
    }

    #[test]
    fn an_order_names_each_part_once() {
        let ddr3 = DramSpec::built_in("DDR3-1600").unwrap();
        for (order, says) in [
            ("row:rank:bank:column", "channel is missing"),
            ("row:rank:bank:column:channel:row", "row occurs twice"),
            ("row:rank:bank:column:canal", "canal"),
            ("row:rank:bank:column:group:channel", "with bank groups"),
            ("", "is not row"),
        ] {
            let spec = DramSpec { address_order: order.into(), ..ddr3.clone() };
            let error = AddressMap::new(&spec, 1).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(AddressMap::new(&ddr3, 3).is_err());
        let huge = DramSpec { row_bytes: 1 << 63, ..ddr3 };
        assert!(AddressMap::new(&huge, 1 << 31).is_err());
    }
}
