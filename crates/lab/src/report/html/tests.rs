//! Pages: what is in them, and that no text changes their structure.

use proptest::prelude::*;

use super::*;
use crate::report::Axis;
use crate::report::plot::{Chart, Series, Shape, Xy};

fn report(text: &str) -> Report {
    let xy = Xy::new(Axis::linear(text), Axis::linear(text));
    let xy = xy.series(Series::new(text, Shape::Line, [(0.0, 1.0), (1.0, 2.0)]));
    let table = Table::new([(text, Align::Left), ("n", Align::Right)])
        .caption(text)
        .row([Cell::from(text), Cell::from(Verdict::Fail)])
        .row([text, "2"]);
    Report {
        title: text.into(),
        subtitle: text.into(),
        banner: Some(Banner {
            verdict: Verdict::Undecided,
            text: text.into(),
        }),
        sections: vec![
            Section::new(text)
                .paragraph(text)
                .values([(text, text)])
                .files([(text, text)])
                .verbatim(text),
            Section::new("b").table(table),
            Section::new("c").figure(Figure::new(text, Chart::Xy(xy)).how_to_read(text)),
        ],
        footer: text.into(),
    }
}

/// The page is XML too, but for the void elements of the head and the doctype.
fn tags(html: &str) -> Vec<String> {
    let xml = html.replace("<!DOCTYPE html>\n", "");
    let metas = xml.matches("<meta ").count();
    let xml: String = xml
        .lines()
        .filter(|l| !l.starts_with("<meta "))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(metas, 3);
    let document = roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{e}\n{xml}"));
    document
        .descendants()
        .filter(|n| n.is_element())
        .map(|n| n.tag_name().name().to_string())
        .collect()
}

#[test]
fn everything_is_there_and_nothing_is_fetched() {
    let html = report("hello").html();
    for part in [
        "<title>hello</title>",
        "banner undecided",
        "? UNDECIDED",
        "<a href=\"#s2\">b</a>",
        "<td class=\"right fail\">FAIL</td>",
        "<th class=\"right\">n</th>",
        "<b>Figure 1.</b> hello",
        "<li><a href=\"./hello\">hello</a> hello</li>",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for forbidden in ["src=", "url(", "@import", "<script", "<link", "<img"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let addresses = html.matches("http").count();
    // the policy and the name space of svg
    assert_eq!(
        (
            addresses,
            html.matches("http-equiv").count(),
            html.matches("http://www.w3.org/2000/svg").count()
        ),
        (2, 1, 1)
    );
    assert_eq!(html, report("hello").html());
}

#[test]
fn an_empty_report_is_a_page() {
    assert!(tags(&Report::default().html()).contains(&"h1".to_string()));
}

#[test]
#[should_panic(expected = "one cell for each column")]
fn rows_fit_their_table() {
    let _ = Table::new([("a", Align::Left)]).row(["1", "2"]);
}

#[test]
fn file_names_are_addresses() {
    assert_eq!(address("run-n=1_seed=2.json"), "run-n%3D1_seed%3D2.json");
    assert_eq!(address("a\"b/ü"), "a%22b%2F%C3%BC");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No text, wherever it stands, changes the structure of the page.
    #[test]
    fn texts_are_only_texts(text in any::<String>()) {
        prop_assert_eq!(tags(&report(&format!("x{text}")).html()), tags(&report("x").html()));
    }
}
