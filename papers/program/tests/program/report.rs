//! Tests of `oblivio-lab report` from the command line.

use std::fs;

use oblivio_lab::report::{Bars, Figure, Plot, Series, Stated};
use tempfile::TempDir;

use crate::common::{fails_with, succeeds};

fn figure(title: &str, ours: f64) -> Figure {
    Figure {
        id: "fig10".into(),
        title: title.into(),
        paper: "IR-ORAM, Fig. 10".into(),
        plot: Plot::Bars(Bars {
            labels: vec!["mean".into()],
            value: "speed".into(),
            stacked: false,
            series: vec![Series { name: "IR-Alloc".into(), values: vec![Some(ours)] }],
        }),
        stated: vec![Stated::new("mean", 1.4, 0.1, Some(ours))],
        remarks: vec![],
        origin: "a test".into(),
    }
}

fn dir_with_figures() -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, figure) in [("a.json", figure("Good <b>", 1.4)), ("b.json", figure("Bad", 2.0))] {
        fs::write(dir.path().join(name), serde_json::to_string(&[figure]).unwrap()).unwrap();
    }
    dir
}

#[test]
fn figures_of_all_files_come_on_one_page() {
    let dir = dir_with_figures();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let output =
        succeeds(&dir, "report b.json a.json --output out.html --markdown out.md --when 'May <1>'");
    assert_eq!(
        output,
        "1 of 2 stated numbers agree (differ: 1)\nreport   out.html\nmarkdown out.md\n"
    );
    let page = read("out.html");
    let places =
        ["<h2 id=\"figure-1-head\">Bad</h2>", "<h2 id=\"figure-2-head\">Good &lt;b&gt;</h2>"];
    assert!(places.iter().all(|place| page.contains(place)), "{page}");
    assert!(page.contains("<dt>When</dt><dd>May &lt;1&gt;</dd>") && page.ends_with("</html>\n"));
    assert!(read("out.md").contains("## Good &lt;b&gt;\n"));

    // The second time the page is replaced by the same page, and no temporary file remains.
    succeeds(&dir, "report b.json a.json --output out.html --when 'May <1>'");
    assert_eq!(read("out.html"), page);
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a.json", "b.json", "out.html", "out.md"]);
}

/// Checks that a report replaces only another report, and never a volume or a key.
#[test]
fn a_report_replaces_no_file_of_another_kind() {
    let dir = dir_with_figures();
    fs::write(dir.path().join("key"), [7; 32]).unwrap();
    std::os::unix::fs::symlink("key", dir.path().join("link")).unwrap();
    for target in ["key", "./link"] {
        for options in ["--output", "--output report.html --markdown"] {
            let message = fails_with(&dir, &format!("report a.json {options} {target}"), 4);
            assert!(message.contains("choose another name"), "{message}");
        }
    }
    assert_eq!(fs::read(dir.path().join("key")).unwrap(), [7; 32]);
}

#[test]
fn files_without_figures_are_refused_and_no_page_is_written() {
    let dir = dir_with_figures();
    fs::write(dir.path().join("broken"), "[{\"id\": 1}]").unwrap();
    fs::write(dir.path().join("bytes"), [0xff, 0xfe]).unwrap();
    fs::File::create(dir.path().join("huge")).unwrap().set_len((16 << 20) + 1).unwrap();
    for (arguments, code, advice) in [
        ("nowhere.json", 3, "nowhere.json cannot be read: there is no such file"),
        ("a.json broken", 3, "broken cannot be used: it is no list of figures: invalid type"),
        ("broken", 3, "line 1 column 9"),
        ("bytes", 3, "bytes cannot be read: it is not text"),
        ("huge", 3, "huge has more than 16777216 bytes"),
        ("a.json --output a.json", 3, "a.json holds figures, and the report would replace it"),
        ("a.json --markdown report.html", 3, "cannot both be report.html"),
        ("a.json --output nowhere/page.html", 4, "choose another place"),
        ("a.json --markdown nowhere/page.md", 4, "choose another place"),
        ("", 2, "FIGURES"),
    ] {
        let message = fails_with(&dir, &format!("report {arguments}"), code);
        assert!(message.contains(advice), "{arguments}: {message}");
        assert!(!dir.path().join("report.html").exists(), "{arguments}");
    }
    assert_eq!(
        serde_json::from_slice::<Vec<Figure>>(&fs::read(dir.path().join("a.json")).unwrap())
            .unwrap()
            .len(),
        1
    );
}
