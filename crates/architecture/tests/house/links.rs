//! Links between documents resolve, and the book lists all pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::workspace;

/// The anchors and links of a page, as Markdown renderers show them.
struct Page {
    /// The anchors of the page, which a link may give after `#`.
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

#[test]
fn every_link_leads_somewhere() {
    let root = workspace::root();
    let pages = pages(&root);
    assert!(pages.len() > 30, "{} pages", pages.len());
    let mut dead = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if !leads_somewhere(&root, &pages, path, link) {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn every_page_is_in_the_book_once() {
    let root = workspace::root();
    let pages = pages(&root);
    let summary = &pages[Path::new("docs/SUMMARY.md")];
    let mut listed: Vec<_> =
        summary.links.iter().map(|link| Path::new("docs").join(link)).collect();
    listed.sort();
    let in_docs =
        pages.keys().filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md"));
    assert_eq!(listed, in_docs.cloned().collect::<Vec<_>>());
}

#[test]
fn headings_get_the_anchors_of_renderers() {
    let page = read(
        "# A `--rate`: what, and when?\n\n## Over x\n\n## Over x\n\n\
         <a id=\"here\"></a> [a](b.md#c), ![d](e.svg)",
    );
    let anchors = ["a---rate-what-and-when", "here", "over-x", "over-x-1"];
    assert_eq!(page.anchors.iter().map(String::as_str).collect::<Vec<_>>(), anchors);
    assert_eq!(page.links, ["b.md#c", "e.svg"]);
}

/// Returns the documents at the root and below `docs`, by path from the root.
fn pages(root: &Path) -> BTreeMap<PathBuf, Page> {
    let mut folders = vec![root.join("docs")];
    let mut paths = files(root);
    while let Some(folder) = folders.pop() {
        paths.extend(files(&folder));
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
    }
    let of = |path: PathBuf| {
        let page = read(&fs::read_to_string(&path).unwrap());
        (path.strip_prefix(root).unwrap().to_owned(), page)
    };
    paths.into_iter().map(of).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn read(text: &str) -> Page {
    let mut page = Page { anchors: BTreeSet::new(), links: Vec::new() };
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap());
                let again = (1..).map(|number| format!("{name}-{number}"));
                let mut names = [name.clone()].into_iter().chain(again);
                let new = names.find(|name| !page.anchors.contains(name)).unwrap();
                page.anchors.insert(new);
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let named = html.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
                page.anchors.extend(named.map(str::to_owned));
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading: the heading in lower case, with `-` for each space. Only letters,
/// digits, `-` and `_` are kept.
fn anchor(heading: &str) -> String {
    let small = heading.to_lowercase();
    let remaining = small.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    remaining.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn leads_somewhere(root: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> bool {
    if link.starts_with("https://") {
        return true;
    }
    let (file, name) = link.split_once('#').map_or((link, None), |(file, name)| (file, Some(name)));
    let to = match file {
        "" => from.to_owned(),
        _ => plain(&from.parent().unwrap().join(file)),
    };
    match name {
        None => root.join(to).exists(),
        Some(name) => pages.get(&to).is_some_and(|page| page.anchors.contains(name)),
    }
}

/// Returns `path` with each `..` resolved.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                assert!(plain.pop(), "{} leaves the repository", path.display())
            }
            _ => plain.push(part),
        }
    }
    plain
}
