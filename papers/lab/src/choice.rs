//! Chooses figures by their ids.

use crate::LabError;

/// The elements of `all` whose ids are in `ids`, or all of them if `ids` is empty.
///
/// # Errors
/// [`LabError::Plan`] for an unknown id.
pub fn chosen<F>(all: Vec<F>, id: fn(&F) -> &str, ids: &[String]) -> Result<Vec<F>, LabError> {
    let is_known = |wanted: &&String| all.iter().any(|figure| id(figure) == **wanted);
    if let Some(unknown) = ids.iter().find(|wanted| !is_known(wanted)) {
        let known: Vec<_> = all.iter().map(id).collect();
        return Err(LabError::Plan(format!(
            "there is no figure {unknown}: choose from {}",
            known.join(", ")
        )));
    }
    let is_chosen = |figure: &F| ids.is_empty() || ids.iter().any(|wanted| wanted == id(figure));
    Ok(all.into_iter().filter(is_chosen).collect())
}
