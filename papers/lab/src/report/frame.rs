//! The frame of a plot: its size, its axes, and words that stay inside.

use super::axis::Axis;
use super::escape::Escaped;
use super::number::short;
use super::placing::Placed;
use super::verdicts;

/// The room of a plot, in pixels, and the margins around what is drawn.
pub(super) struct Frame {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Room for the numbers of the vertical axis.
pub(super) const NUMBERS_WIDTH: f64 = 76.0;

/// Of a line of text.
pub(super) const LINE_HEIGHT: f64 = 16.0;

impl Frame {
    /// Where a part of the horizontal axis is.
    pub(super) fn x(&self, part: f64) -> f64 {
        self.left + part * (self.width - self.left - self.right)
    }

    /// Where a part of the vertical axis is.
    pub(super) fn y(&self, part: f64) -> f64 {
        self.height - self.bottom - part * (self.height - self.top - self.bottom)
    }

    /// The whole picture. `name` is unique in the page.
    pub(super) fn svg(&self, name: &str, title: &str, description: &str, inside: &str) -> String {
        let Self { width, height, .. } = self;
        format!(
            "<svg class=\"chart\" role=\"img\" aria-labelledby=\"{name}-title {name}-desc\" \
             width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
             <title id=\"{name}-title\">{}</title>\n<desc id=\"{name}-desc\">{}</desc>\n{inside}</svg>\n",
            Escaped(title),
            Escaped(description),
        )
    }

    /// The vertical axis: a rule and a number for each tick, and what it is on top.
    pub(super) fn vertical(&self, axis: &Axis, what: &str) -> String {
        let (left, right) = (self.x(0.0), self.x(1.0));
        let ticks = axis.ticks.iter().filter_map(|tick| Some((*tick, self.y(axis.part(*tick)?))));
        let rules = ticks.map(|(tick, y)| {
            format!(
                "<line class=\"rule\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                left - 8.0,
                y + 4.0,
                short(tick)
            )
        });
        let rules: String = rules.collect();
        let start = left - NUMBERS_WIDTH;
        let what = shortened(what, ((self.width - start) / CHARACTER_WIDTH) as usize);
        format!(
            "{rules}<text class=\"axis\" x=\"{start:.1}\" y=\"{LINE_HEIGHT}\">{}</text>\n",
            Escaped(&what)
        )
    }

    /// The horizontal axis with numbers on it, and what it is below.
    pub(super) fn horizontal(&self, axis: &Axis, what: &str) -> String {
        let bottom = self.y(0.0);
        let ticks = axis.ticks.iter().filter_map(|tick| Some((*tick, self.x(axis.part(*tick)?))));
        let ticks: String = ticks
            .map(|(tick, x)| {
                format!(
                    "<line class=\"base\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom:.1}\" y2=\"{:.1}\"/>\
                     <text class=\"tick\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>\n",
                    bottom + 5.0,
                    bottom + 5.0 + LINE_HEIGHT,
                    short(tick)
                )
            })
            .collect();
        let what = shortened(what, (self.width / CHARACTER_WIDTH) as usize - 2);
        format!(
            "{}{ticks}<text class=\"axis\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            self.base(bottom),
            self.x(0.5),
            self.height - 6.0,
            Escaped(&what)
        )
    }

    /// A line from side to side that values stand on.
    pub(super) fn base(&self, y: f64) -> String {
        format!(
            "<line class=\"base\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n",
            self.x(0.0),
            self.x(1.0)
        )
    }

    /// A stated number from `x` on: a line at its height, the band around it.
    pub(super) fn stated(&self, placed: &Placed<'_>, axis: &Axis, [x, width]: [f64; 2]) -> String {
        let stated = placed.stated;
        let Some(y) = axis.part(stated.paper).map(|part| self.y(part)) else {
            return String::new();
        };
        let band = stated.band.abs();
        // What lies below a logarithmic axis begins at its end.
        let top = axis.part(stated.paper + band).map_or(y, |part| self.y(part));
        let below = axis.part(stated.paper - band).map_or(self.y(0.0), |part| self.y(part));
        let below = if band.is_finite() { below } else { y };
        let verdict = verdicts::shown(stated.verdict());
        let text = format!(
            "{}\npaper {} ± {}, ours {}: {}",
            stated.what,
            short(stated.paper),
            short(stated.band),
            stated.ours.map_or("not measured".to_owned(), short),
            verdict.words
        );
        let across = if placed.label.is_none() { " across" } else { "" };
        let group = match placed.series {
            Some(series) => {
                let colour = colour(series);
                format!("<g class=\"paper series {colour}{across}\" data-series=\"{series}\">")
            }
            None => "<g class=\"paper\">".to_owned(),
        };
        format!(
            "{group}<g class=\"mark\"><title>{}</title>\
             <rect class=\"band\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <path class=\"stated\" d=\"M{x:.1} {y:.1}h{width:.1}\"/></g></g>\n",
            Escaped(&text),
            (below - top).max(1.0),
        )
    }
}

/// The classes of a series: a colour, and how often all colours were used before.
pub(super) fn colour(series: usize) -> String {
    format!("c{} round{}", series % COLOURS, (series / COLOURS).min(2))
}

/// The colours of style.css.
const COLOURS: usize = 8;

/// Of a letter at the size of the style, about.
const CHARACTER_WIDTH: f64 = 6.8;

/// How wide a text is, about.
pub(super) fn text_width(text: &str) -> f64 {
    let widths = text.chars().map(|character| if character.is_ascii() { 1.0 } else { 1.8 });
    CHARACTER_WIDTH * widths.sum::<f64>()
}

/// A text of so many characters at most.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
