//! Positions of texts in a picture.

use roxmltree::{Document, Node};

/// Width of a character in ems: an upper bound on the average of common sans-serif fonts.
const CHARACTER_EMS: f64 = 0.6;

/// The rectangle that a text covers in a picture, in pixels.
#[derive(Clone, Copy, Debug)]
struct TextBox {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl TextBox {
    fn of(text: Node<'_, '_>) -> Self {
        let number = |name| text.attribute(name).unwrap().parse::<f64>().unwrap();
        let (x, y, height) = (number("x"), number("y"), number("font-size"));
        let characters = text.text().unwrap().trim().chars().count();
        let width = characters as f64 * height * CHARACTER_EMS;
        let before = |name, ways: [(&str, f64); 3]| {
            let way = text.attribute(name).unwrap();
            ways.into_iter().find(|(known, _)| *known == way).unwrap().1
        };
        let left = -width * before("text-anchor", [("start", 0.0), ("middle", 0.5), ("end", 1.0)]);
        let top = -height * before("dy", [("0.76em", 0.0), ("0.5ex", 0.5), ("-0.5ex", 1.0)]);
        let flat = Self { left, right: left + width, top, bottom: top + height };
        let turned = match text.attribute("transform") {
            None => flat,
            Some(turn) => {
                assert!(turn.starts_with("rotate(270"), "{turn}");
                let Self { left, right, top, bottom } = flat;
                Self { left: top, right: bottom, top: -right, bottom: -left }
            }
        };
        let Self { left, right, top, bottom } = turned;
        Self { left: left + x, right: right + x, top: top + y, bottom: bottom + y }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_within(&self, (width, height): (u32, u32)) -> bool {
        self.left >= 0.0
            && self.right <= f64::from(width)
            && self.top >= 0.0
            && self.bottom <= f64::from(height)
    }
}

/// Returns the texts of a picture. Panics if two texts overlap, or a text reaches out of the
/// picture.
pub(crate) fn texts_apart(svg: &str, size: (u32, u32)) -> Vec<String> {
    let picture = Document::parse(svg).unwrap();
    let texts: Vec<_> = picture
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .map(|node| (node.text().unwrap().trim(), TextBox::of(node)))
        .collect();
    for (i, (text, place)) in texts.iter().enumerate() {
        assert!(place.is_within(size), "{text} at {place:?}");
        for (other, other_place) in &texts[..i] {
            assert!(!place.overlaps(other_place), "{text:?} overlaps {other:?}");
        }
    }
    texts.into_iter().map(|(text, _)| text.to_owned()).collect()
}
