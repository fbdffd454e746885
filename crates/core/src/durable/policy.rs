//! The ranges that a disk requests.

/// The ranges that a disk requests, if the scheme has classes of more than one block. Storage sees
/// the class of each access, so the policy determines what storage learns about requests in
/// addition to their number. `C` is the type that names a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangePolicy<C = u8> {
    /// Requests are cut into aligned ranges. Each range begins where the previous one ends, and is
    /// the longest that begins at this address and fits into the rest of the request. Storage
    /// learns which parts of requests were long, and how they are aligned to ranges.
    Classes,
    /// A request is one access of rORAM (`Access`), which reads two ranges: the range in which the
    /// request begins, and the next one. Both are of the smallest class whose ranges are at least
    /// as long as the request, or else of the largest class. After the array's last range comes its
    /// first. A request for one block reads only one range. Storage learns the class of each
    /// request, but not its location within the ranges.
    Exact,
    /// Every access is to a range of this class. Storage learns only the number of accesses.
    Fixed(C),
}

impl RangePolicy {
    /// The class of the ranges that [`Exact`](Self::Exact) reads for a request of `blocks` blocks:
    /// the smallest of `classes` whose ranges are at least as long, or else the largest. `classes`
    /// must ascend.
    pub fn exact_class(classes: &[u8], blocks: u64) -> u8 {
        let is_as_long = |class: &&u8| blocks <= 1 << **class;
        classes.iter().find(is_as_long).or(classes.last()).copied().unwrap_or(0)
    }
}
