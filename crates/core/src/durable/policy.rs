//! Which ranges a disk asks for.

/// Which ranges a disk asks for, where a scheme has more classes of them than blocks. Storage sees the class of each access: what
/// it learns of requests beside their number follows from this. `C` is how a class is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangePolicy<C = u8> {
    /// Requests are cut where aligned ranges of the classes begin and end, and each piece is the longest that fits. Storage learns
    /// which parts of requests were long, and where they lay in between borders.
    Classes,
    /// A request is one access of rORAM: two ranges of the first class that is as long, the one in which it begins and the next; behind
    /// the last comes the first. A block is one. Storage learns the class of each request, and not where it lay in ranges. (rORAM,
    /// `Access`)
    Exact,
    /// Every access is to a range of this class. Storage learns their number.
    Fixed(C),
}

impl RangePolicy {
    /// Of which class of `classes`, which ascend, the ranges are that [`Exact`](Self::Exact) takes for a request of so many blocks: the
    /// first that is as long, or the last.
    pub fn exact_class(classes: &[u8], blocks: u64) -> u8 {
        let is_as_long = |class: &&u8| blocks <= 1 << **class;
        classes.iter().find(is_as_long).or(classes.last()).copied().unwrap_or(0)
    }
}
