//! What holds for every kind of plot: well-formed, inside the drawing, the same each time, for any data.

use proptest::prelude::*;

use super::*;
use crate::stats::Sorted;

/// Checks an `svg` element: XML, all text and lines inside the drawing, no NaN. Returns all of its text.
fn check(svg: &str) -> String {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|e| panic!("{e}\n{svg}"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let root = document.root_element();
    let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (size("width"), size("height"));
    for node in document.descendants().filter(|n| n.is_element()) {
        // curves are clipped by the inner svg
        for (name, limit) in [
            ("x", width),
            ("x1", width),
            ("x2", width),
            ("cx", width),
            ("y", height),
            ("y1", height),
            ("y2", height),
            ("cy", height),
        ] {
            if let Some(value) = node.attribute(name) {
                let value: f64 = value.parse().unwrap();
                assert!(
                    (-1.0..=limit + 1.0).contains(&value),
                    "{name} {value} of {limit} in {node:?}\n{svg}"
                );
            }
        }
    }
    let texts = document.descendants().filter(|n| n.has_tag_name("text"));
    texts.filter_map(|n| n.text()).collect::<Vec<_>>().join("|")
}

fn curve(points: &[(f64, f64)], log: bool) -> Figure {
    let axis = |label| {
        if log {
            Axis::log(label)
        } else {
            Axis::linear(label)
        }
    };
    let series = |shape| Series::new("s", shape, points.iter().copied());
    let xy = Xy::new(axis("latency (µs)"), axis("P"))
        .series(series(Shape::Step))
        .series(series(Shape::LinePoints))
        .mark(Mark::x(4000.0, "deadline 4 ms"))
        .mark(Mark::y(1e-4, "target"));
    Figure::new("a curve", Chart::Xy(xy))
}

#[test]
fn a_small_plot_is_the_same_each_time() {
    let xy = Xy::new(Axis::linear("load"), Axis::linear("throughput (Mb/s)")).series(Series::new(
        "<EDCA & co>",
        Shape::Line,
        [(0.0, 0.0), (1.0, 2.0)],
    ));
    insta::assert_snapshot!(Figure::new("A \"plot\"", Chart::Xy(xy)).svg());
}

#[test]
fn nothing_to_show_is_said() {
    let none = Sorted::<u64>::new(vec![]);
    let charts = [
        Chart::Xy(Xy::new(Axis::log("x"), Axis::log("y")).series(Series::new("s", Shape::Step, []))),
        Chart::Histogram(Histogram::new(Axis::linear("x (µs)"), &[("a", &none)], 1.0)),
        Chart::Bars(Bars::new(Axis::linear("y"), ["g"; 0])),
        Chart::Stack(Stack::new(Axis::linear("x"), ["t1 to t2"])),
    ];
    for chart in charts {
        assert!(check(&Figure::new("", chart).svg()).contains("no data"));
    }
}

#[test]
fn what_has_no_place_is_counted() {
    let text = check(
        &curve(
            &[(1.0, 0.1), (f64::NAN, 1.0), (-3.0, 0.2), (2.0, f64::INFINITY)],
            true,
        )
        .svg(),
    );
    assert!(text.contains("6 points have no place"), "{text}");
}

#[test]
fn no_miss_shows_its_upper_bound() {
    let points = vec![
        Point::with_bar(1.0, 0.0, 0.0, 3e-4),
        Point::with_bar(2.0, 0.01, 0.002, 0.02),
    ];
    let series = Series {
        name: "EDF".into(),
        shape: Shape::Points,
        points,
    };
    let svg = Figure::new(
        "t",
        Chart::Xy(Xy::new(Axis::linear("n"), Axis::log("P")).series(series)),
    )
    .svg();
    check(&svg);
    assert_eq!(
        (
            svg.matches("class=\"ring\"").count(),
            svg.matches("class=\"dot\"").count()
        ),
        (1, 2)
    );
}

#[test]
fn labels_of_marks_keep_apart() {
    let mut xy = Xy::new(Axis::linear("x"), Axis::linear("y")).series(Series::new(
        "s",
        Shape::Line,
        [(0.0, 0.0), (10.0, 1.0)],
    ));
    for i in 0..6 {
        xy = xy.mark(Mark::x(9.0 + f64::from(i) / 10.0, format!("mark number {i}")));
    }
    let svg = Figure::new("t", Chart::Xy(xy)).svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let marks = document
        .descendants()
        .filter(|n| n.has_tag_name("text") && n.attribute("class").is_some_and(|c| c.starts_with("mark")));
    let mut lines: Vec<_> = marks.map(|n| n.attribute("y").unwrap().to_string()).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), 6);
}

#[test]
fn a_file_of_its_own_has_its_style() {
    let svg = curve(&[(1.0, 1.0)], false).standalone();
    check(svg.split_once('\n').unwrap().1);
    assert!(svg.contains("--c0") && svg.starts_with("<?xml"));
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        2.6..4.1f64,
        1e-6..1.0f64,
        Just(0.0),
        Just(1e6),
        Just(f64::NAN)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_curve(points in proptest::collection::vec((value(), value()), 0..12), log: bool, title in any::<String>()) {
        let mut figure = curve(&points, log);
        figure.title = title;
        check(&figure.svg());
        prop_assert_eq!(figure.svg(), figure.svg());
    }

    #[test]
    fn any_histogram(a in proptest::collection::vec(any::<u64>(), 0..40), b in proptest::collection::vec(0u64..9000, 0..40)) {
        let (a, b) = (Sorted::new(a), Sorted::new(b));
        let chart = Histogram::new(Axis::linear("t (µs)"), &[("one", &a), ("two", &b)], 1000.0).mark(Mark::x(4.0, "m"));
        check(&Figure::new("h", Chart::Histogram(chart)).svg());
    }

    #[test]
    fn any_bars(rows in proptest::collection::vec((any::<String>(), value(), value(), value()), 0..9), log: bool) {
        let axis = if log { Axis::log("P (%)") } else { Axis::linear("P (%)") };
        let bars = Bars::new(axis, rows.iter().map(|r| r.0.clone()))
            .series("plain", rows.iter().map(|r| Bar::new(r.1)))
            .series("uncertain", rows.iter().map(|r| Bar { value: r.1, bar: Some((r.2, r.3)) }))
            .mark(Mark::y(1e-4, "target"));
        check(&Figure::new("b", Chart::Bars(bars)).svg());
        let mut stack = Stack::new(Axis::linear("time (µs)"), ["a", "b", "c"]).mark(Mark::x(5.0, "deadline"));
        for r in &rows {
            stack = stack.row(r.0.clone(), [r.1, r.2, r.3]);
        }
        check(&Figure::new("s", Chart::Stack(stack)).svg());
    }
}
