//! Which ranges a disk asks for.

/// Which ranges a disk asks for, where a scheme has more classes of them than blocks. Storage sees the class of each access: what
/// it learns of requests beside their number follows from this. `C` is how a class is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangePolicy<C = u8> {
    /// Requests are cut where aligned ranges of the classes begin and end, and each piece is the longest that fits. Storage learns
    /// which parts of requests were long, and where they lay in between borders.
    Classes,
    /// Every access is to a range of this class. Storage learns their number.
    Fixed(C),
}
