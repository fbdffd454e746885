//! The report as one HTML page with all plots, tables and verdicts.
//!
//! A content security policy in the page's head forbids loading resources and running scripts.

use super::escape::Escaped;
use super::prose::Prose;
use super::table::Table;
use super::{About, Figure, Plot, Verdict, summary};
use super::{chart, placing, policy, verdict_table, verdicts};

const STYLE: &str = include_str!("style.css");

/// Writes the report as a complete page.
pub fn html(figures: &[Figure], about: &About) -> String {
    let title = Escaped(&about.title);
    let facts = about
        .facts()
        .map(|(name, text)| format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", Escaped(text)));
    let facts: String = facts.collect();
    let facts =
        if facts.is_empty() { facts } else { format!("<dl class=\"facts\">\n{facts}</dl>\n") };
    let sections = figures.iter().zip(1..).map(|(figure, number)| section(figure, number));
    let policy = policy::for_style(STYLE);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{facts}\
         <p class=\"summary\">{}.</p>\n{}</header>\n{}{}<main>\n{}</main>\n\
         </body>\n</html>\n",
        summary(figures),
        meter(figures),
        all_verdicts(figures),
        contents(figures),
        sections.collect::<String>(),
    )
}

/// A table of all stated numbers with their verdicts, and a table of the agreement under each
/// reading. Empty if no numbers are stated.
fn all_verdicts(figures: &[Figure]) -> String {
    let table = verdict_table::table_of(figures);
    if table.rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"verdicts\" aria-labelledby=\"verdicts-head\">\n\
         <h2 id=\"verdicts-head\">Verdicts</h2>\n\
         {}{}</section>\n",
        table.html("Every number that a paper states, with ours"),
        verdict_table::by_reading(figures).html("How many agree under one reading alone")
    )
}

/// Draws one bar that is divided into the shares of the verdicts. The bar is hidden from screen
/// readers, since the text above says the same.
fn meter(figures: &[Figure]) -> String {
    let verdicts: Vec<_> =
        figures.iter().flat_map(|figure| &figure.stated).map(|stated| stated.verdict()).collect();
    if verdicts.is_empty() {
        return String::new();
    }
    let mut x = 0;
    let parts = Verdict::ALL.map(|wanted| {
        let width = verdicts.iter().filter(|verdict| **verdict == wanted).count();
        let part = format!(
            "<rect class=\"{}\" x=\"{x}\" width=\"{width}\" height=\"1\"/>",
            verdicts::shown(wanted).class
        );
        x += width;
        part
    });
    format!(
        "<svg class=\"meter\" aria-hidden=\"true\" viewBox=\"0 0 {x} 1\" \
         preserveAspectRatio=\"none\">{}</svg>\n",
        parts.concat()
    )
}

fn contents(figures: &[Figure]) -> String {
    if figures.is_empty() {
        return "<p>There are no figures.</p>\n".to_owned();
    }
    let entries = figures.iter().zip(1..).map(|(figure, number)| {
        format!(
            "<li><a href=\"#figure-{number}\">{}</a> <span class=\"of\">{}</span> {}</li>\n",
            Escaped(&figure.title),
            Escaped(&figure.paper),
            badge(figure)
        )
    });
    let entries: String = entries.collect();
    format!("<nav aria-label=\"Figures\">\n<h2>Figures</h2>\n<ol>\n{entries}</ol>\n</nav>\n")
}

fn section(figure: &Figure, number: usize) -> String {
    let name = format!("figure-{number}");
    let (svg, left_out) = plot(figure);
    let left_out =
        left_out.map(|text| format!("<p class=\"note\">{text}</p>\n")).unwrap_or_default();
    let stated = if figure.stated.is_empty() {
        "<p class=\"note\">The paper states no numbers for this figure.</p>\n".to_owned()
    } else {
        let table = Table::of_stated(&figure.stated).html(&verdicts::sentence(&figure.stated));
        let notes = verdicts::longer_notes(&figure.stated)
            .map(|(what, note)| format!("<p><b>{}</b>: {}</p>\n", Escaped(what), Prose(&note)));
        format!("{table}{}", notes.collect::<String>())
    };
    let remarks = figure.remarks.iter().map(|remark| format!("<p>{}</p>\n", Prose(remark)));
    format!(
        "<section class=\"figure\" id=\"{name}\" aria-labelledby=\"{name}-head\">\n\
         <h2 id=\"{name}-head\">{}</h2>\n<p class=\"of\">{} <code>{}</code> {}</p>\n\
         <div class=\"scroll\" role=\"img\" tabindex=\"0\" \
         aria-label=\"Chart; the table below has all values\">\n\
         {svg}</div>\n{left_out}<div class=\"data\">\n{}</div>\n{stated}{}\
         <p class=\"origin\">Origin: {}</p>\n</section>\n",
        Escaped(&figure.title),
        Escaped(&figure.paper),
        Escaped(&figure.id),
        badge(figure),
        Table::of_plot(figure).html(&format!("All values: {}", plot_noun(&figure.plot))),
        remarks.collect::<String>(),
        Prose(&figure.origin),
    )
}

/// Draws the chart. Returns it with a sentence about points that cannot be drawn.
fn plot(figure: &Figure) -> (String, Option<String>) {
    match &figure.plot {
        Plot::Bars(bars) => (chart::bars(bars, &placing::on_bars(bars, &figure.stated)), None),
        Plot::Curves(curves) => {
            let placed = placing::on_curves(curves, &figure.stated);
            (chart::curves(curves, &placed), chart::left_out(curves))
        }
    }
}

/// The name of the plotted values: of the bars, or of the vertical axis of curves.
fn plot_noun(plot: &Plot) -> &str {
    match plot {
        Plot::Bars(bars) => &bars.value,
        Plot::Curves(curves) => &curves.axes[1],
    }
}

fn badge(figure: &Figure) -> String {
    let shown = verdicts::of_figure(figure);
    format!("<span class=\"verdict {}\">{} {}</span>", shown.class, shown.sign, shown.words)
}
