//! Which colour and sign is which series: buttons that hide one and show it again.

use super::Plot;
use super::curves;
use super::escape::Escaped;
use super::frame::colour;

/// The legend of a plot. `with_stated`: numbers of the paper are drawn in it.
pub(super) fn html(plot: &Plot, with_stated: bool) -> String {
    let (names, is_curves): (Vec<&str>, bool) = match plot {
        Plot::Bars(bars) => {
            (bars.series.iter().map(|series| series.name.as_str()).collect(), false)
        }
        Plot::Curves(curves) => {
            (curves.series.iter().map(|series| series.name.as_str()).collect(), true)
        }
    };
    let entries = names.iter().enumerate().map(|(number, name)| {
        let sample = if is_curves {
            format!(
                "<path class=\"line\" d=\"M0 8h24\"/><path class=\"sign\" transform=\"translate(12 8)\" d=\"{}\"/>",
                curves::sign(number)
            )
        } else {
            "<rect class=\"bar\" x=\"4\" y=\"2\" width=\"16\" height=\"12\"/>".to_owned()
        };
        format!(
            "<li><button type=\"button\" class=\"entry\" aria-pressed=\"true\" data-series=\"{number}\">\
             {}{}</button></li>\n",
            sample_svg(&colour(number), &sample),
            Escaped(name)
        )
    });
    let stated = if with_stated {
        let sample = "<rect class=\"band\" x=\"2\" y=\"2\" width=\"20\" height=\"12\"/>\
                      <path class=\"stated\" d=\"M2 8h20\"/>";
        format!(
            "<li class=\"entry\">{}stated in the paper, ± band</li>\n",
            sample_svg("paper", sample)
        )
    } else {
        String::new()
    };
    format!("<ul class=\"legend\">\n{}{stated}</ul>\n", entries.collect::<String>())
}

fn sample_svg(class: &str, inside: &str) -> String {
    format!(
        "<svg class=\"sample {class}\" aria-hidden=\"true\" width=\"24\" height=\"16\" \
         viewBox=\"0 0 24 16\">{inside}</svg>"
    )
}
