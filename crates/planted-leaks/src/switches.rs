//! Many leaks in one build, each behind a switch that an environment variable turns on.
//!
//! A function with leaks gets one body for each leak, and the sound body last:
//!
//! ```text
//! { match crate::planted_leak() { 3 => { leaky } 8 => { leaky } _ => { sound } } }
//! ```
//!
//! A leak that changes anything outside function bodies has no switch and is built alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::leaks::{Edit, Leak, edited};

/// Name of the environment variable that contains the number of the active leak.
pub(crate) const VARIABLE: &str = "OBLIVIO_PLANTED_LEAK";

/// Returns the code that is appended to the root of each crate with switches.
fn reader() -> String {
    format!(
        "
pub(crate) fn planted_leak() -> usize {{
    static LEAK: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *LEAK.get_or_init(|| {{
        let number = std::env::var({VARIABLE:?});
        number.ok().and_then(|number| number.parse().ok()).unwrap_or(0)
    }})
}}

std::thread_local! {{
    /// A number that one function of a leak passes to another.
    pub(crate) static PLANTED_NOTE: std::cell::Cell<usize> = const {{ std::cell::Cell::new(0) }};
}}
"
    )
}

/// Leaks that are built together, in one copy of the workspace.
pub(crate) struct Batch<'l> {
    /// Leaks with a switch, and their numbers. The number 0 activates no leak.
    pub(crate) switched: Vec<(usize, &'l Leak)>,
    /// Leaks without a switch.
    pub(crate) alone: Vec<&'l Leak>,
    /// New texts of files, by their path below `crates/`.
    pub(crate) files: BTreeMap<String, String>,
    arms: Vec<Arm>,
}

/// A leaky body in a file with switches.
struct Arm {
    file: String,
    lines: Range<usize>,
    leak: usize,
}

impl<'l> Batch<'l> {
    /// Gives a switch to each of `leaks` that can have one, except the leaks named in `alone`.
    ///
    /// # Errors
    /// If a file in `crates` cannot be read or parsed.
    pub(crate) fn new(
        crates: &'l Path,
        leaks: &[&'l Leak],
        alone: &BTreeSet<&str>,
    ) -> Result<Self, String> {
        let mut sources = Sources { crates, sources: BTreeMap::new() };
        let mut batch =
            Self { switched: vec![], alone: vec![], files: BTreeMap::new(), arms: vec![] };
        let mut bodies: BTreeMap<(&str, usize), Vec<(usize, String)>> = BTreeMap::new();
        for (leak, number) in leaks.iter().zip(1..) {
            let leaky = match alone.contains(&*leak.name) {
                true => None,
                false => sources.leaky_bodies(leak)?,
            };
            match leaky {
                Some(leaky) => {
                    batch.switched.push((number, leak));
                    for (place, body) in leaky {
                        bodies.entry(place).or_default().push((number, body));
                    }
                }
                None => batch.alone.push(leak),
            }
        }
        let files: BTreeSet<_> = bodies.keys().map(|(file, _)| *file).collect();
        for file in &files {
            batch.put_switches(file, sources.get(file)?, &bodies);
        }
        let files = files.into_iter();
        batch.files = with_readers(crates, files, batch.files)?;
        Ok(batch)
    }

    pub(crate) fn switched_leaks(&self) -> impl Iterator<Item = &'l Leak> {
        self.switched.iter().map(|(_, leak)| *leak)
    }

    fn put_switches(
        &mut self,
        file: &str,
        source: &Source,
        bodies: &BTreeMap<(&str, usize), Vec<(usize, String)>>,
    ) {
        let mut text = String::new();
        let mut copied = 0;
        for body in &source.bodies {
            let Some(leaky) = bodies.get(&(file, body.start)) else {
                continue;
            };
            text += &source.text[copied..body.start];
            text += "{ match crate::planted_leak() {\n";
            for (leak, body) in leaky {
                let first = text.lines().count() + 1;
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{leak} => {body}");
                let lines = first..text.lines().count() + 1;
                self.arms.push(Arm { file: file.to_owned(), lines, leak: *leak });
            }
            text += "_ => ";
            text += &source.text[body.clone()];
            text += "\n} }";
            copied = body.end;
        }
        text += &source.text[copied..];
        self.files.insert(file.to_owned(), text);
    }

    /// Returns the names of leaks whose bodies the compiler rejected.
    pub(crate) fn blamed(&self, errors: &str) -> BTreeSet<&'l str> {
        let places = errors.lines().filter_map(|line| {
            let (file, place) = line.split_once("--> crates/")?.1.split_once(':')?;
            let line: usize = place.split(':').next()?.parse().ok()?;
            Some((file, line))
        });
        let arms = places.flat_map(|(file, line)| {
            self.arms.iter().filter(move |arm| arm.file == file && arm.lines.contains(&line))
        });
        let blamed: BTreeSet<_> = arms.map(|arm| arm.leak).collect();
        let is_blamed =
            |(number, leak): &(usize, &'l Leak)| blamed.contains(number).then_some(&*leak.name);
        self.switched.iter().filter_map(is_blamed).collect()
    }
}

/// Adds the code of [`reader`] to the root of each crate that has one of `files`. `changed`
/// contains the files that have already changed.
///
/// # Errors
/// If the root of a crate cannot be read.
pub(crate) fn with_readers<'f>(
    crates: &Path,
    files: impl Iterator<Item = &'f str>,
    mut changed: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let roots: BTreeSet<_> = files.map(|file| root_of(crates, file)).collect();
    for root in roots {
        let known = changed.remove(&root);
        let text = known.map_or_else(|| read(crates, &root), Ok)?;
        changed.insert(root, text + &reader());
    }
    Ok(changed)
}

/// The root module of the crate that `file` belongs to.
fn root_of(crates: &Path, file: &str) -> String {
    let name = file.split('/').next().unwrap_or(file);
    let library = format!("{name}/src/lib.rs");
    if crates.join(&library).exists() { library } else { format!("{name}/src/main.rs") }
}

fn read(crates: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(crates.join(file)).map_err(|cause| format!("cannot read {file}: {cause}"))
}

/// The unchanged files that leaks are planted in.
struct Sources<'l> {
    crates: &'l Path,
    sources: BTreeMap<&'l str, Source>,
}

struct Source {
    text: String,
    /// Byte ranges of the bodies of functions that can have switches, in order and not nested.
    bodies: Vec<Range<usize>>,
}

/// New function bodies with a leak, by file and start of the sound body.
type LeakyBodies<'l> = BTreeMap<(&'l str, usize), String>;

impl<'l> Sources<'l> {
    fn get(&mut self, file: &'l str) -> Result<&Source, String> {
        if !self.sources.contains_key(file) {
            let source = Source::new(read(self.crates, file)?)
                .map_err(|cause| format!("cannot parse {file}: {cause}"))?;
            self.sources.insert(file, source);
        }
        Ok(&self.sources[file])
    }

    /// The function bodies that `leak` changes. `None` if the leak changes anything else or does
    /// not fit.
    fn leaky_bodies(&mut self, leak: &'l Leak) -> Result<Option<LeakyBodies<'l>>, String> {
        let mut leaky = LeakyBodies::new();
        for patch in &leak.patches {
            let source = self.get(&patch.file)?;
            let Ok(edits) = patch.edits(&source.text) else { return Ok(None) };
            let mut of_bodies: BTreeMap<usize, (&Range<usize>, Vec<Edit>)> = BTreeMap::new();
            for edit in edits {
                let encloses = |body: &&Range<usize>| {
                    body.start < edit.range.start && edit.range.end < body.end
                };
                let Some(body) = source.bodies.iter().find(encloses) else { return Ok(None) };
                of_bodies.entry(body.start).or_insert_with(|| (body, Vec::new())).1.push(edit);
            }
            for (start, (body, edits)) in of_bodies {
                let text = edited(&source.text[body.clone()], &edits, start);
                leaky.insert((&*patch.file, start), text);
            }
        }
        Ok(Some(leaky))
    }
}

impl Source {
    fn new(text: String) -> syn::Result<Self> {
        let mut bodies = Bodies::default();
        bodies.visit_file(&syn::parse_file(&text)?);
        Ok(Self { text, bodies: bodies.0 })
    }
}

/// Collects the bodies of functions that can have a switch: all leaky bodies and the sound body
/// must have the same result type.
#[derive(Default)]
struct Bodies(Vec<Range<usize>>);

impl Bodies {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let mut hidden = HiddenTypes::default();
        hidden.visit_return_type(&signature.output);
        if signature.constness.is_none() && !hidden.0 {
            let braces = body.brace_token.span;
            let (open, close) = (braces.open().byte_range(), braces.close().byte_range());
            self.0.push(open.start..close.end);
        }
    }
}

impl<'s> Visit<'s> for Bodies {
    fn visit_item_fn(&mut self, function: &'s syn::ItemFn) {
        self.add(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'s syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'s syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
    }
}

/// Finds `impl Trait`, which would be a different type in each body.
#[derive(Default)]
struct HiddenTypes(bool);

impl<'s> Visit<'s> for HiddenTypes {
    fn visit_type_impl_trait(&mut self, hidden: &'s syn::TypeImplTrait) {
        self.0 = true;
        visit::visit_type_impl_trait(self, hidden);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaks;

    const SOURCE: &str = "const N: u8 = 1; // ä
impl S {
    fn one(&self) -> u8 {
        let two = N + 1;
        two
    }
    fn hidden(&self) -> impl Fn() { || () }
}
";

    #[test]
    fn a_body_includes_the_braces_of_its_function() {
        let source = Source::new(SOURCE.to_owned()).unwrap();
        let bodies: Vec<_> = source.bodies.iter().map(|body| &SOURCE[body.clone()]).collect();
        assert_eq!(bodies, ["{\n        let two = N + 1;\n        two\n    }"]);
    }

    #[test]
    fn errors_are_blamed_on_the_bodies_they_are_in() {
        let all = leaks::all().unwrap();
        let leaks: Vec<_> = all.iter().take(2).collect();
        let mut batch = Batch {
            switched: (1..).zip(leaks.iter().copied()).collect(),
            alone: vec![],
            files: BTreeMap::new(),
            arms: vec![],
        };
        let source = Source::new(SOURCE.to_owned()).unwrap();
        let body = source.bodies[0].clone();
        let leaky = vec![(1, "{\n 1\n}".to_owned()), (2, "{ x }".to_owned())];
        batch.put_switches("s.rs", &source, &BTreeMap::from([(("s.rs", body.start), leaky)]));
        let text = &batch.files["s.rs"];
        assert!(text.contains("2 => { x }\n_ => {\n        let two = N + 1;"), "{text}");
        let wrong = text.lines().position(|line| line == "2 => { x }").unwrap() + 1;
        let errors = format!("error: no x\n  --> crates/s.rs:{wrong}:8\n");
        assert_eq!(batch.blamed(&errors), BTreeSet::from([&*leaks[1].name]));
    }

    /// Ensures that one build is enough for all leaks.
    #[test]
    fn all_leaks_have_a_switch_and_files_with_switches_parse() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let leaks = leaks::all().unwrap();
        let all: Vec<_> = leaks.iter().collect();
        let batch = Batch::new(&crates, &all, &BTreeSet::new()).unwrap();
        assert_eq!(batch.switched.len() + batch.alone.len(), all.len());
        let alone: Vec<_> = batch.alone.iter().map(|leak| &*leak.name).collect();
        assert!(alone.is_empty(), "these leaks need separate builds: {alone:?}");
        for (file, text) in &batch.files {
            assert!(syn::parse_file(text).is_ok(), "{file}");
        }
    }
}
