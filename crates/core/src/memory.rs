//! Memory that may not be there.

/// `vec![0; entries]`, but `None` where that would abort the process.
///
/// The probe reserves without touching, so that the lazily zeroed pages of the system still serve
/// the vector itself.
pub(crate) fn zeros<T: Clone + Default>(entries: u64) -> Option<Vec<T>> {
    let entries = usize::try_from(entries).ok()?;
    Vec::<T>::new().try_reserve_exact(entries).ok()?;
    Some(vec![T::default(); entries])
}
