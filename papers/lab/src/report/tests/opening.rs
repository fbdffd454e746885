//! Tests of the top of a report, and of the bars of its stated numbers.

use super::*;

#[test]
fn a_report_opens_with_all_verdicts_and_links_to_reasons() {
    let number = |ours| stated("IR-Alloc, mean", 1.41, Some(ours));
    let reading = Reading { name: "one `channel`".into(), ours: Some(1.4) };
    let first = Figure {
        stated: vec![
            number(1.4),
            Stated {
                taken: Some("arithmetic mean".into()),
                readings: vec![reading],
                limits: Some("A young tree.".into()),
                ..number(0.7)
            },
            Stated {
                why: Some("see `settings`".into()),
                shown_by: Some("settings".into()),
                ..number(0.7)
            },
            Stated { fitted: true, shown_by: Some("elsewhere".into()), ..number(1.4) },
        ],
        ..figure(bars(&["gcc"], vec![("IR-Alloc", vec![Some(1.4)])]))
    };
    let second = Figure { id: "settings".into(), ..figure(bars(&["gcc"], vec![])) };
    let figures = [first, second];

    let page = checked(&figures);
    let opening = page.split("<nav").next().unwrap();
    for part in [
        "1 of 4 stated numbers agree (under a reading: 1, fitted: 1, differ: 1).</p>",
        "<section id=\"verdicts\"",
        "<th scope=\"row\"><a href=\"#figure-1\">IR-Alloc, mean</a></th><td>IR-ORAM, Fig. 10</td>",
        "<span class=\"verdict reading\">≈ agrees under a reading</span></td>\
         <td>one <code>channel</code>: 1.4, 0.09 inside the band; one of 2 listed; \
         limits below its figure</td><td></td>",
        "<span class=\"verdict differs\">≠ differs</span></td>\
         <td>see <code>settings</code></td><td><a href=\"#figure-2\">settings</a></td>",
        "<span class=\"verdict fitted\">⊙ fitted</span></td><td></td><td>elsewhere</td>",
    ] {
        assert!(opening.contains(part), "no {part} in {opening}");
    }
    let alone = opening.split("How many agree under one reading alone").nth(2).unwrap();
    let row = |name: &str, agree: u32, of: u32| {
        let number = |count| format!("<td class=\"number\">{count}</td>");
        format!("<tr><th scope=\"row\">{name}</th>{}{}</tr>", number(agree), number(of))
    };
    for row in [row("arithmetic mean", 0, 1), row("one `channel`", 1, 1)] {
        assert!(alone.contains(&row), "no {row} in {alone}");
    }
    for class in ["agrees", "reading", "fitted", "differs"] {
        let rect = format!("<rect class=\"{class}\"");
        assert!(
            opening.contains(&rect) && page.contains(&format!(".meter .{class} {{")),
            "{class}"
        );
    }

    let text = markdown(&figures, &about());
    let opening = text.split("## Figures").next().unwrap();
    for part in [
        "## Verdicts",
        "| [IR-Alloc, mean](#figure-1) | IR-ORAM, Fig. 10 |",
        "| ≈ agrees under a reading | one `channel`: 1.4, 0.09 inside the band; one of 2 listed; \
         limits below its figure |",
        "| ≠ differs                | see `settings` ",
        "| [settings](#figure-2) |",
        "| elsewhere             |",
    ] {
        assert!(opening.contains(part), "no {part} in {opening}");
    }
    assert!(text.contains("<a id=\"figure-2\"></a>\n\n## Speed of all programs"), "{text}");
}

#[test]
fn a_number_without_a_reason_shows_the_reason_of_its_figure() {
    let opening = |reasons: &[&str], why: Option<&str>, ours| {
        let number = Stated { why: why.map(str::to_owned), ..stated("mean", 1.4, ours) };
        let plot = bars(&["gcc"], vec![]);
        let figure = Figure { stated: vec![number], ..figure(plot) }.explained(reasons);
        let page = checked(&[figure]);
        page.split("<nav").next().unwrap().to_owned()
    };
    let cell = |text: &str| format!("<td>{text}</td><td></td></tr>");
    assert!(opening(&["it is small"], None, Some(9.0)).contains(&cell("it is small")));
    assert!(opening(&["a", "b"], None, Some(9.0)).contains(&cell("its figure says why")));
    assert!(opening(&["a"], Some("own"), Some(9.0)).contains(&cell("own")));
    assert!(opening(&["a"], None, Some(1.4)).contains(&cell("")));
    assert!(opening(&["a"], None, None).contains(&cell("")));
}

#[test]
fn an_older_figure_is_still_read() {
    let old = r#"[{"id": "fig10", "title": "t", "paper": "p", "remarks": [], "origin": "o",
        "plot": {"bars": {"labels": ["a"], "value": "v", "stacked": false, "series": []}},
        "stated": [{"what": "mean", "paper": 1.5, "band": 0.1, "ours": null}]}]"#;
    assert_eq!(read(old).unwrap()[0].stated, [stated("mean", 1.5, None)]);
}

#[test]
fn an_unknown_place_is_ignored() {
    let plot = || bars(&["gcc"], vec![("IR-Alloc", vec![Some(1.25)])]);
    let of = |number: Stated| {
        let page = checked(&[Figure { stated: vec![number], ..figure(plot()) }]);
        bands(&charts(&page)[0]).len()
    };
    assert_eq!(of(stated("IR-Alloc, gcc", 1.5, Some(1.25)).at("IR-Alloc", "gcc")), 1);
    assert_eq!(of(stated("IR-Alloc, gcc", 1.5, Some(1.25)).at("IR-Alloc", EVIL)), 0);
    assert_eq!(
        of(stated("IR-Alloc, gcc", 1.5, Some(1.25))),
        0,
        "only a place is drawn, not a description"
    );
}
