//! A diagram: shapes and text on white. It needs tenths of pixels, round corners and paths of
//! thousands of dots, which plotters (the library for charts) cannot write.

use oblivio_pen::{FONT, INK};
use plotters::style::{RGBColor, WHITE};
use svg::Document;
use svg::node::Node;
use svg::node::element::{Line, Path, Rectangle, Text, Title};

/// Width of every picture, in pixels.
pub(crate) const WIDTH: f64 = 900.0;

/// The colour of edges that are not highlighted.
pub(crate) const FAINT: RGBColor = RGBColor(0xc4, 0xca, 0xd2);

/// The background of a group.
pub(crate) const PAPER: RGBColor = RGBColor(0xf4, 0xf6, 0xf8);

/// A point: the distances from the left edge and from the top edge, in pixels.
pub(crate) type Point = (f64, f64);

/// The style of text.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    size: f64,
    colour: RGBColor,
    anchor: &'static str,
    weight: &'static str,
}

impl Style {
    /// The style of headings.
    pub(crate) const HEADING: Self =
        Self { size: 17.0, colour: INK, anchor: "start", weight: "bold" };
    /// The style of explanations.
    pub(crate) const LABEL: Self =
        Self { size: 14.0, colour: INK, anchor: "start", weight: "normal" };
    /// The style of labels for small shapes.
    pub(crate) const SMALL: Self = Self { size: 12.0, ..Self::LABEL };

    /// Centres the text at its point.
    pub(crate) fn middle(self) -> Self {
        Self { anchor: "middle", ..self }
    }

    /// Ends the text at its point.
    pub(crate) fn end(self) -> Self {
        Self { anchor: "end", ..self }
    }

    pub(crate) fn bold(self) -> Self {
        Self { weight: "bold", ..self }
    }

    pub(crate) fn in_colour(self, colour: RGBColor) -> Self {
        Self { colour, ..self }
    }
}

/// The style of an area.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) fill: RGBColor,
    pub(crate) edge: RGBColor,
    /// The width of the edge.
    pub(crate) width: f64,
}

impl Area {
    /// The style of an empty area.
    pub(crate) const EMPTY: Self = Self { fill: WHITE, edge: FAINT, width: 1.0 };

    pub(crate) fn filled(fill: RGBColor) -> Self {
        Self { fill, edge: fill, width: 1.0 }
    }
}

/// Mixes a colour with white. `share` is the share of the colour, from 0 to 1.
pub(crate) fn tint(colour: RGBColor, share: f64) -> RGBColor {
    let part = |c: u8| (255.0 - (255.0 - f64::from(c)) * share).round() as u8;
    RGBColor(part(colour.0), part(colour.1), part(colour.2))
}

pub(crate) struct Sheet(Document);

impl Sheet {
    /// Creates a white sheet. `title` is for screen readers.
    pub(crate) fn new(height: f64, title: &str) -> Self {
        let paper = Rectangle::new().set("width", WIDTH).set("height", height).set("fill", "#fff");
        let document = Document::new()
            .set("viewBox", (0.0, 0.0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .set("font-family", FONT)
            .add(Title::new(title))
            .add(paper);
        Self(document)
    }

    /// Draws text with its baseline at `at`, anchored as in the style.
    pub(crate) fn words(&mut self, at: Point, words: &str, style: Style) {
        let mut text = Text::new(words)
            .set("x", tenth(at.0))
            .set("y", tenth(at.1))
            .set("font-size", style.size)
            .set("fill", hex(style.colour));
        if style.anchor != "start" {
            text = text.set("text-anchor", style.anchor);
        }
        if style.weight != "normal" {
            text = text.set("font-weight", style.weight);
        }
        self.0.append(text);
    }

    /// Draws a rectangle with round corners. `at` is its top left corner.
    pub(crate) fn area(&mut self, at: Point, (width, height): (f64, f64), area: Area) {
        let rectangle = Rectangle::new()
            .set("x", tenth(at.0))
            .set("y", tenth(at.1))
            .set("width", tenth(width))
            .set("height", tenth(height))
            .set("rx", 3)
            .set("fill", hex(area.fill))
            .set("stroke", hex(area.edge))
            .set("stroke-width", area.width);
        self.0.append(rectangle);
    }

    /// Draws a rectangle centred at a point.
    pub(crate) fn area_around(&mut self, centre: Point, size: (f64, f64), area: Area) {
        self.area((centre.0 - size.0 / 2.0, centre.1 - size.1 / 2.0), size, area);
    }

    pub(crate) fn line(&mut self, from: Point, to: Point, colour: RGBColor, width: f64) {
        let line = Line::new()
            .set("x1", tenth(from.0))
            .set("y1", tenth(from.1))
            .set("x2", tenth(to.0))
            .set("y2", tenth(to.1))
            .set("stroke", hex(colour))
            .set("stroke-width", width);
        self.0.append(line);
    }

    /// Draws a line with an arrowhead at its end.
    pub(crate) fn arrow(&mut self, from: Point, to: Point, colour: RGBColor) {
        const HEAD: f64 = 7.0;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = (dx * dx + dy * dy).sqrt();
        let (ux, uy) = (dx / length * HEAD, dy / length * HEAD);
        let back = (to.0 - ux, to.1 - uy);
        self.line(from, back, colour, 1.8);
        let corner = |side: f64| (back.0 - uy * side, back.1 + ux * side);
        self.triangle([to, corner(0.55), corner(-0.55)], colour);
    }

    fn triangle(&mut self, [first, second, third]: [Point; 3], colour: RGBColor) {
        let at = |(x, y): Point| format!("{} {}", tenth(x), tenth(y));
        let outline = format!("M{}L{}L{}Z", at(first), at(second), at(third));
        self.0.append(Path::new().set("d", outline).set("fill", hex(colour)));
    }

    /// Draws round dots of one size and colour as a single path. Each dot is a line of zero length
    /// with round ends.
    pub(crate) fn dots(
        &mut self,
        points: impl IntoIterator<Item = Point>,
        diameter: f64,
        colour: RGBColor,
    ) {
        let mut dots = String::new();
        let mut last = (0, 0);
        for (x, y) in points {
            // Steps between dots are whole pixels, which keeps files with thousands of dots short.
            let (x, y) = (x.round() as i32, y.round() as i32);
            let (dx, dy) = (x - last.0, y - last.1);
            dots += &format!("m{dx} {dy}h0");
            last = (x, y);
        }
        let path = Path::new()
            .set("d", dots)
            .set("fill", "none")
            .set("stroke", hex(colour))
            .set("stroke-width", diameter)
            .set("stroke-linecap", "round");
        self.0.append(path);
    }

    /// Finishes the picture, and returns it as SVG text.
    pub(crate) fn finish(self) -> String {
        format!("{}\n", self.0)
    }
}

/// Rounds to tenths of pixels: finer steps are invisible and make files longer.
fn tenth(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
