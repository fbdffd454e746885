#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::path::PathBuf;

use oblivio_testkit::statistics::{
    Verdicts, histogram, homogeneity, repeats, returns, uniformity, uniformity_of_pairs,
};
use roxmltree::{Document, Node};

use super::*;

/// Maximum size of a picture in bytes. A browser loads the pictures with their page.
const BYTES_MAX: usize = 60_000;

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/img")
}

#[test]
fn committed_pictures_are_up_to_date() {
    for (name, draw) in PICTURES {
        let drawn = draw().unwrap();
        let there = fs::read_to_string(committed().join(name)).unwrap_or_default();
        assert!(there == drawn, "{name} is out of date: run make pictures");
        assert!(drawn.len() < BYTES_MAX, "{name} has {} bytes", drawn.len());
    }
}

/// The estimated area of a text in a font of usual width, in pixels.
struct Words<'a> {
    words: &'a str,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl<'a> Words<'a> {
    fn from_node(text: Node<'a, '_>) -> Self {
        const CHARACTER_EMS: f64 = 0.58;
        let number = |name| text.attribute(name).unwrap().parse::<f64>().unwrap();
        let words = text.text().unwrap().trim();
        let (x, y, size) = (number("x"), number("y"), number("font-size"));
        let width = words.chars().count() as f64 * size * CHARACTER_EMS;
        let left = match text.attribute("text-anchor") {
            None => x,
            Some("middle") => x - width / 2.0,
            Some(end) => x - width * f64::from(u8::from(end == "end")),
        };
        Self { words, left, right: left + width, top: y - 0.75 * size, bottom: y + 0.2 * size }
    }

    fn overlap(&self, other: &Self) -> bool {
        let beside = self.left >= other.right || other.left >= self.right;
        let below = self.top >= other.bottom || other.top >= self.bottom;
        !beside && !below
    }
}

#[test]
fn texts_are_legible_inside_the_picture_and_do_not_overlap() {
    for (name, draw) in PICTURES {
        let drawn = draw().unwrap();
        let picture = Document::parse(&drawn).unwrap();
        let size = |side| picture.root_element().attribute(side).unwrap().parse::<f64>().unwrap();
        assert!(size("width") <= sheet::WIDTH, "{name}");
        let texts = picture.descendants().filter(|node| node.has_tag_name("text"));
        let texts: Vec<_> = texts
            .inspect(|text| {
                assert!(text.attribute("font-size").unwrap().parse::<f64>().unwrap() >= 12.0)
            })
            .map(Words::from_node)
            .collect();
        assert!(texts.len() > 10, "{name}");
        for (i, words) in texts.iter().enumerate() {
            let is_inside = words.left >= 0.0
                && words.right <= size("width")
                && words.top >= 0.0
                && words.bottom <= size("height");
            assert!(is_inside, "{name}: {:?} leaves the picture", words.words);
            for other in &texts[..i] {
                let [one, another] = [words, other].map(|it| it.words);
                assert!(!words.overlap(other), "{name}: {one:?} overlaps {another:?}");
            }
        }
    }
}

/// Checks statistically what the page claims for every workload: the leaves that storage sees are
/// uniform and independent, and the next leaf of a block does not depend on its previous leaf.
#[test]
fn the_view_of_storage_does_not_reveal_the_workload() {
    let mut verdicts = Verdicts::new(1e-3);
    let watched = workloads::record().unwrap();
    let binned: Vec<_> = watched
        .iter()
        .map(|watching| {
            let name = watching.workload.name;
            let accesses = watching.view.iter().filter(|visit| !visit.is_eviction);
            let leaves: Vec<_> = accesses.map(|visit| visit.leaf.0).collect();
            assert_eq!(leaves.len(), watching.workload.requests.len(), "{name}: an access each");
            let bins = histogram(leaves.iter().copied(), watching.leaves, 16);
            verdicts.add(format!("{name}: uniform"), uniformity(&bins));
            let pairs = leaves.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            let independent = uniformity_of_pairs(pairs, watching.leaves, 4);
            verdicts.add(format!("{name}: independent"), independent);
            let blocks = watching.workload.requests.iter().map(|(block, _)| *block);
            let again = returns(blocks.zip(leaves.iter().copied()));
            verdicts.add(format!("{name}: fresh"), repeats(&again, watching.leaves));
            bins
        })
        .collect();
    for (bins, watching) in binned[1..].iter().zip(&watched[1..]) {
        let name = format!("{}: like the first", watching.workload.name);
        verdicts.add(name, homogeneity(&binned[0], bins));
    }
    verdicts.conclude();

    // Under all workloads, evictions use the same paths at the same times.
    let evictions = |watching: &workloads::Watching| -> Vec<_> {
        watching
            .view
            .iter()
            .enumerate()
            .filter(|(_, it)| it.is_eviction)
            .map(|(i, it)| (i, it.leaf))
            .collect()
    };
    assert!(watched.iter().all(|watching| evictions(watching) == evictions(&watched[0])));
    assert!(evictions(&watched[0]).len() > 100);
}
