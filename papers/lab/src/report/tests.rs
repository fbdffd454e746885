use oblivio_pen::PALETTE;
use plotters::style::RGBColor;
use roxmltree::{Document, Node};

use super::chart::{LEGEND_WIDTH, SIGNS_OF_MANY};
use super::*;

mod opening;

const EVIL: &str = "<script>&\"'`|";

fn bars(labels: &[&str], series: Vec<(&str, Vec<Option<f64>>)>) -> Plot {
    Plot::Bars(Bars {
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        value: "speed over Baseline".into(),
        stacked: false,
        series: series
            .into_iter()
            .map(|(name, values)| Series { name: name.to_owned(), values })
            .collect(),
    })
}

fn curves(is_log: bool, series: Vec<Vec<[f64; 2]>>) -> Plot {
    let series = series.into_iter().zip(["first", "second", "third"]);
    Plot::Curves(Curves {
        axes: ["stash blocks".into(), "probability".into()],
        is_log,
        series: series.map(|(values, name)| Series { name: name.to_owned(), values }).collect(),
    })
}

fn figure(plot: Plot) -> Figure {
    Figure {
        id: "fig10".into(),
        title: "Speed of all programs".into(),
        paper: "IR-ORAM, Fig. 10".into(),
        plot,
        stated: vec![],
        remarks: vec!["Small trees.".into()],
        origin: "run 7".into(),
    }
}

fn stated(what: &str, paper: f64, ours: Option<f64>) -> Stated {
    Stated::new(what, paper, 0.1, ours)
}

fn about() -> About {
    About { title: "All figures".into(), version: "1.2".into(), ..About::default() }
}

/// Parses each chart of a page as a document.
fn charts(page: &str) -> Vec<Document<'_>> {
    let parts = page.split("<svg ").skip(1).map(|part| {
        let at = part.as_ptr() as usize - page.as_ptr() as usize - "<svg ".len();
        &page[at..at + "<svg ".len() + part.find("</svg>").unwrap() + "</svg>".len()]
    });
    let documents =
        parts.map(|svg| Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}")));
    documents.filter(|svg| svg.root_element().attribute("class").is_none()).collect()
}

/// The bars of a series, without its square in the legend.
fn bars_of<'a>(chart: &'a Document<'_>, series: usize) -> Vec<Node<'a, 'a>> {
    let RGBColor(red, green, blue) = PALETTE[series];
    let colour = format!("#{red:02X}{green:02X}{blue:02X}");
    let legend = number(&chart.root_element(), "width") - f64::from(LEGEND_WIDTH);
    let is_it = |node: &Node<'_, '_>| {
        node.attribute("fill") == Some(&*colour) && number(node, "x") < legend
    };
    chart.descendants().filter(|node| node.has_tag_name("rect")).filter(is_it).collect()
}

/// The rectangles that show bands of stated numbers.
fn bands<'a>(chart: &'a Document<'_>) -> Vec<Node<'a, 'a>> {
    let is_it = |node: &Node<'_, '_>| {
        node.has_tag_name("rect") && node.attribute("opacity") == Some("0.16")
    };
    chart.descendants().filter(is_it).collect()
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// Makes a page. Checks that all numbers of its charts are finite and all rectangles are inside
/// their charts.
fn checked(figures: &[Figure]) -> String {
    let page = html(figures, &about());
    for wrong in ["NaN", "inf\"", "inf ", "-inf", "None", "No chart"] {
        assert!(!page.contains(wrong), "{wrong} in {page}");
    }
    for chart in charts(&page) {
        let [width, height] = ["width", "height"].map(|name| number(&chart.root_element(), name));
        for node in chart.descendants().filter(|node| node.has_tag_name("rect")) {
            let [x, y, w, h] = ["x", "y", "width", "height"].map(|name| number(&node, name));
            assert!(x >= 0.0 && y >= 0.0 && x + w <= width && y + h <= height, "{node:?}");
        }
    }
    page
}

#[test]
fn a_page_has_plot_table_and_verdicts() {
    let plot = bars(&["gcc", "mean"], vec![("IR-Alloc", vec![Some(1.25), Some(1.4)])]);
    let stated = vec![
        stated("IR-Alloc, mean", 1.41, Some(1.4)).at("IR-Alloc", "mean"),
        stated("IR-Alloc, gcc", 1.5, Some(1.25)).at("IR-Alloc", "gcc"),
        stated("all, paths", 30.0, None).at("IR-Alloc", "lbm"),
    ];
    let figures = [Figure { stated, ..figure(plot) }];
    let page = checked(&figures);
    for part in [
        "<title>All figures</title>",
        "<dt>Version</dt><dd>1.2</dd>",
        "<p class=\"summary\">1 of 3 stated numbers agree (differ: 1, open: 1).</p>",
        "<a href=\"#figure-1\">Speed of all programs</a> \
         <span class=\"of\">IR-ORAM, Fig. 10</span> \
         <span class=\"verdict differs\">≠ differs</span>",
        "<th scope=\"col\" class=\"number\">IR-Alloc</th>",
        "<tr><th scope=\"row\">mean</th><td class=\"number\">1.4</td></tr>",
        "<tr><th scope=\"row\">all, paths</th><td class=\"number\">30</td>\
         <td class=\"number\">0.1</td><td class=\"number\">–</td>\
         <td><span class=\"verdict open\">? open</span></td></tr>",
        "<p>Small trees.</p>",
        "Origin: run 7",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(!page.contains("<dt>Machine"), "empty facts are omitted");

    let charts = charts(&page);
    let [gcc, mean] = bars_of(&charts[0], 0)[..] else { panic!("two bars") };
    assert!((number(&gcc, "height") / number(&mean, "height") - 1.25 / 1.4).abs() < 0.01);
    let middle = |rect: &Node<'_, '_>| number(rect, "x") + number(rect, "width") / 2.0;
    let [of_mean, of_gcc] = bands(&charts[0])[..] else { panic!("a band at each bar stated") };
    for (bar, band) in [(gcc, of_gcc), (mean, of_mean)] {
        assert!((middle(&bar) - middle(&band)).abs() <= 1.0, "{bar:?} {band:?}");
    }
}

#[test]
fn a_stack_stands_on_what_is_below() {
    let Plot::Bars(bars) = bars(
        &["gcc"],
        vec![
            ("a", vec![Some(1.0)]),
            ("b", vec![None]),
            ("c", vec![Some(3.0)]),
            ("d", vec![Some(-2.0)]),
        ],
    ) else {
        panic!("bars")
    };
    let page = checked(&[figure(Plot::Bars(Bars { stacked: true, ..bars }))]);
    let charts = charts(&page);
    let [a, c] = [0, 2].map(|series| bars_of(&charts[0], series)[0]);
    assert!((number(&a, "y") - number(&c, "y") - number(&c, "height")).abs() <= 1.0);
    assert!((number(&c, "height") / number(&a, "height") - 3.0).abs() < 0.15);
    let below = bars_of(&charts[0], 3)[0];
    assert!((number(&a, "y") + number(&a, "height") - number(&below, "y")).abs() <= 1.0);
}

#[test]
fn texts_of_a_figure_are_escaped() {
    let evil = || EVIL.to_owned();
    let of = |plot| Figure {
        id: evil(),
        title: evil(),
        paper: evil(),
        plot,
        stated: vec![Stated { limits: Some(evil()), ..stated(EVIL, 1.0, Some(1.0)) }],
        remarks: vec![evil()],
        origin: evil(),
    };
    let series = Series { name: evil(), values: vec![Some(1.0)] };
    let bars = Bars { labels: vec![evil()], value: evil(), stacked: false, series: vec![series] };
    let points = Series { name: evil(), values: vec![[1.0, 1.0]] };
    let curves = Curves { axes: [evil(), evil()], is_log: false, series: vec![points] };
    let figures = [of(Plot::Bars(bars)), of(Plot::Curves(curves))];
    let about = About { title: evil(), version: evil(), machine: evil(), when: evil() };

    let page = html(&figures, &about);
    assert!(!page.contains("<script"));
    let [escaped, in_charts] =
        ["&#39;", "&apos;"].map(|it| format!("&lt;script&gt;&amp;&quot;{it}`|"));
    assert!(page.matches(&escaped).count() > 20 && page.matches(&in_charts).count() >= 6);
    assert_eq!(charts(&page).len(), 2);
    let rest = page.replace(&escaped, "").replace(&in_charts, "");
    for part in ["&amp;", "&quot;", "&#39;", "&lt;"] {
        assert!(!rest.contains(part), "escaped twice, or not by us: {part}");
    }

    let text = markdown(&figures, &about);
    assert!(!text.contains("<script") && text.contains("&lt;script&gt;&amp;\"'\\`\\|"), "{text}");
    let widths = |line: &str| line.replace("\\|", "").matches('|').count();
    let tables = text.split("\n\n").filter(|part| part.starts_with('|'));
    for table in tables {
        let all: Vec<_> = table.lines().map(widths).collect();
        assert!(all.iter().all(|width| *width == all[0]), "{table}");
    }
}

#[test]
fn a_page_loads_no_other_resource() {
    let page =
        checked(&[figure(curves(false, vec![vec![[0.0, 1.0]]])), figure(bars(&["a"], vec![]))]);
    let lower = page.to_lowercase().replace("http-equiv", "");
    for part in
        ["http", "url(", "@import", "src=", "<link", "<iframe", "fetch(", "font-face", "xlink"]
    {
        assert!(!lower.contains(part), "{part}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains(" style=") && !page.contains(" onclick="));
}

#[test]
fn strange_numbers_are_missing_or_drawn_inside() {
    let strange =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324, -0.0, -1e-9, 1e15];
    let labels = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let values = || strange.iter().map(|value| Some(*value)).chain([None]).collect::<Vec<_>>();
    for stacked in [false, true] {
        let Plot::Bars(bars) = bars(&labels, vec![("x", values()), ("y", values()), ("z", vec![])])
        else {
            panic!("bars")
        };
        let stated = strange
            .iter()
            .flat_map(|value| {
                let number = stated("x, a", *value, Some(*value)).at("x", "a");
                let number = Stated { band: *value, ..number };
                [Stated { ours: None, ..number.clone() }, Stated { band: 0.0, ..number }]
            })
            .collect();
        let page = checked(&[Figure { stated, ..figure(Plot::Bars(Bars { stacked, ..bars })) }]);
        let charts = charts(&page);
        // -0, -1e-9, 5e-324 and 1e15 have bars; all but 1e15 have zero height.
        assert_eq!([0, 1].map(|series| bars_of(&charts[0], series).len()), [4, 4]);
        assert!(page.contains(">1.798e308<"), "the table shows it");
    }
    for is_log in [false, true] {
        let points: Vec<_> =
            strange.iter().flat_map(|x| strange.iter().map(|y| [*x, *y])).collect();
        let page = checked(&[figure(curves(is_log, vec![points, vec![], vec![[0.0, 1.0]]]))]);
        assert!(page.contains("(no number, or too large)"), "{page}");
    }
}

#[test]
fn zero_is_not_drawn_on_a_logarithmic_axis_and_that_is_reported() {
    let points = vec![[0.0, 1.0], [1.0, 0.1], [2.0, 0.0], [3.0, 0.01], [4.0, 0.001]];
    let page = checked(&[figure(curves(true, vec![points]))]);
    let charts = charts(&page);
    let of = |tag: &str| {
        charts[0].descendants().filter(|node| node.has_tag_name(tag)).collect::<Vec<_>>()
    };
    let lines =
        of("polyline").into_iter().filter(|line| line.attribute("stroke-width") == Some("2"));
    assert_eq!(lines.count(), 2, "the line is interrupted");
    assert_eq!(of("circle").len(), 4 + 1, "the points, and the legend");
    assert!(page.contains("Points that cannot be drawn: 1 (zero or less, on a logarithmic axis)."));
    assert!(page.contains("<td class=\"number\">0<"), "the table shows it");
}

#[test]
fn many_labels_and_series_do_not_overlap() {
    let labels: Vec<_> =
        (0..30).map(|number| format!("4{number:02}.workload of a long name")).collect();
    let labels: Vec<_> = labels.iter().map(String::as_str).collect();
    let names: Vec<_> = (0..10).map(|number| format!("technique {number}")).collect();
    let series = names.iter().map(|name| (name.as_str(), vec![Some(1.0); 30])).collect();
    let page = checked(&[figure(bars(&labels, series))]);
    let charts = charts(&page);
    let is_bar = |node: &Node<'_, '_>| node.has_tag_name("rect") && number(node, "height") > 50.0;
    let all: Vec<_> = charts[0].descendants().filter(is_bar).skip(1).collect();
    let mut ends: Vec<_> =
        all.iter().map(|bar| (number(bar, "x"), number(bar, "x") + number(bar, "width"))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(ends.len(), 300);
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1.0), "{ends:?}");
    let colours: std::collections::HashSet<_> =
        all.iter().map(|bar| ["fill", "opacity"].map(|name| bar.attribute(name))).collect();
    assert_eq!(colours.len(), 10, "each series looks different");
    assert_eq!(page.matches("rotate(270").count(), 30 + 1, "labels, and the axis");
}

#[test]
fn a_long_curve_is_drawn_completely_with_few_markers() {
    let points = (0..10_000).map(|number| [f64::from(number), 1.0]).collect();
    let page = checked(&[figure(curves(false, vec![points]))]);
    let charts = charts(&page);
    let of = |tag: &'static str| charts[0].descendants().filter(move |node| node.has_tag_name(tag));
    let longest = of("polyline").map(|line| line.attribute("points").unwrap().matches(',').count());
    assert_eq!(longest.max(), Some(10_000));
    assert_eq!(of("circle").count(), SIGNS_OF_MANY + 1, "with the legend");
}

#[test]
fn an_empty_report_is_valid() {
    let page = checked(&[]);
    assert!(page.contains("No numbers are stated.") && page.contains("There are no figures."));
    assert!(markdown(&[], &about()).contains("No figures."));
    let page = checked(&[figure(bars(&[], vec![])), figure(curves(true, vec![]))]);
    assert_eq!(charts(&page).len(), 2);
    assert!(page.contains("nothing stated"));
}

#[test]
fn curves_with_equal_x_values_share_a_column() {
    let shared =
        figure(curves(false, vec![vec![[1.0, 5.0], [2.0, 6.0]], vec![[1.0, 7.0], [2.0, 8.0]]]));
    let own = figure(curves(false, vec![vec![[1.0, 5.0]], vec![[3.0, 7.0]]]));
    let text = markdown(&[shared, own], &about());
    assert!(text.contains(
        "| stash blocks | first | second |\n\
         | -----------: | ----: | -----: |\n\
         |            1 |     5 |      7 |\n\
         |            2 |     6 |      8 |\n"
    ));
    assert!(text.contains(
        "| series | stash blocks | probability |\n\
         | ------ | -----------: | ----------: |\n\
         | first  |            1 |           5 |\n\
         | second |            3 |           7 |\n"
    ));
}

#[test]
fn markdown_has_the_same_tables() {
    let plot = bars(&["gcc", "mean"], vec![("IR-Alloc", vec![None, Some(1.4)])]);
    let stated = vec![stated("IR-Alloc, mean", 1.41, Some(1.4))];
    let text = markdown(&[Figure { stated, ..figure(plot) }], &about());
    assert_eq!(
        text,
        "# All figures\n\n- Version: 1.2\n\n1 of 1 stated numbers agree.\n\n\
         ## Verdicts\n\n\
         | stated                      | of               | paper | band ± | ours | verdict  \
         | under which reading, or why | shown by |\n\
         | --------------------------- | ---------------- | ----: | -----: | ---: | -------- \
         | --------------------------- | -------- |\n\
         | [IR-Alloc, mean](#figure-1) | IR-ORAM, Fig. 10 |  1.41 |    0.1 |  1.4 | ✓ agrees \
         |                             |          |\n\n\
         How many agree under one reading alone:\n\n\
         | reading              | numbers that agree under it |   of |\n\
         | -------------------- | --------------------------: | ---: |\n\
         | as the figure has it |                           1 |    1 |\n\n\
         ## Figures\n\n\
         | figure | of | verdict | stated numbers |\n| --- | --- | --- | --- |\n\
         | Speed of all programs | IR-ORAM, Fig. 10 | ✓ agrees | 1 of 1 stated numbers agree |\n\n\
         <a id=\"figure-1\"></a>\n\n## Speed of all programs\n\n\
         IR-ORAM, Fig. 10 (fig10): ✓ agrees.\n\n\
         |      | IR-Alloc |\n\
         | ---- | -------: |\n\
         | gcc  |        – |\n\
         | mean |      1.4 |\n\n\
         | stated         | paper | band ± | ours | verdict  |\n\
         | -------------- | ----: | -----: | ---: | -------- |\n\
         | IR-Alloc, mean |  1.41 |    0.1 |  1.4 | ✓ agrees |\n\nSmall trees.\n\nOrigin: run 7\n"
    );
}

#[test]
fn invalid_files_are_refused_with_the_position() {
    let good = figure(bars(&["a"], vec![("s", vec![Some(1.0)])]));
    let json = |figure: &Figure| serde_json::to_string(&[figure]).unwrap();
    assert_eq!(read(&json(&good)).unwrap(), [good]);
    let ragged = figure(bars(&["a", "b"], vec![("s", vec![Some(1.0)])]));
    let wide = figure(bars(&["a"; 1001], vec![]));
    let long = figure(curves(false, vec![vec![[0.0, 0.0]; 100_001]]));
    let reading = Reading { name: "r".into(), ours: None };
    let read_often = Stated { readings: vec![reading; 101], ..stated("a", 1.0, None) };
    let read_often = Figure { stated: vec![read_often], ..figure(bars(&["a"], vec![])) };
    for (text, advice) in [
        ("", "line 1"),
        ("{}", "give a file that the lab wrote"),
        ("[\n{\"id\": 7}]", "line 2 column 8"),
        ("[1e999]", "line 1"),
        (
            &json(&ragged),
            "figure 1 (\"fig10\") cannot be drawn: series \"s\" has 1 values for 2 labels",
        ),
        (&json(&wide), "1001 labels, but a page has at most 1000"),
        (&json(&long), "100001 points"),
        (&json(&read_often), "101 readings of a number"),
        (&"[".repeat(100_000), "line 1 column 2"),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains(advice), "{message}");
    }
}
