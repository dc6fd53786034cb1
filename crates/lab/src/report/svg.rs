//! SVG as text: elements with escaped content, numbers with fixed decimals, so that equal input gives equal bytes.

use std::fmt::Write;

/// An SVG fragment in the making.
#[derive(Debug, Default)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// A self-closing element, or one with a tooltip if `title` is not empty.
    pub(super) fn element(&mut self, name: &str, attributes: &[(&str, &str)], title: &str) {
        self.start(name, attributes);
        if title.is_empty() {
            self.text.pop();
            self.text.push_str("/>");
        } else {
            self.text.push_str("<title>");
            escape(&mut self.text, title);
            self.text.push_str("</title>");
            self.end(name);
        }
    }

    /// Opens an element.
    pub(super) fn start(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"");
            escape(&mut self.text, value);
            self.text.push('"');
        }
        self.text.push('>');
    }

    /// Closes an element.
    pub(super) fn end(&mut self, name: &str) {
        let _ = writeln!(self.text, "</{name}>");
    }

    /// A line of text; `class` holds its look and anchor.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, content: &str) {
        self.start("text", &[("x", &num(x)), ("y", &num(y)), ("class", class)]);
        escape(&mut self.text, content);
        self.end("text");
    }

    /// A line of text that runs upwards around its middle.
    pub(super) fn text_upwards(&mut self, x: f64, y: f64, class: &str, content: &str) {
        let turn = format!("rotate(-90 {} {})", num(x), num(y));
        self.start(
            "text",
            &[
                ("x", &num(x)),
                ("y", &num(y)),
                ("class", class),
                ("transform", &turn),
            ],
        );
        escape(&mut self.text, content);
        self.end("text");
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let (x1, y1, x2, y2) = (num(from.0), num(from.1), num(to.0), num(to.1));
        self.element(
            "line",
            &[
                ("x1", &x1),
                ("y1", &y1),
                ("x2", &x2),
                ("y2", &y2),
                ("class", class),
            ],
            "",
        );
        self.text.push('\n');
    }

    /// A rectangle; with a tooltip if `title` is not empty.
    pub(super) fn rect(&mut self, at: (f64, f64), size: (f64, f64), class: &str, title: &str) {
        let (x, y, w, h) = (num(at.0), num(at.1), num(size.0.max(0.0)), num(size.1.max(0.0)));
        let attributes = [
            ("x", &*x),
            ("y", &*y),
            ("width", &*w),
            ("height", &*h),
            ("class", class),
        ];
        self.element("rect", &attributes, title);
    }

    /// A circle; with a tooltip if `title` is not empty.
    pub(super) fn circle(&mut self, at: (f64, f64), radius: f64, class: &str, title: &str) {
        let (x, y, r) = (num(at.0), num(at.1), num(radius));
        self.element(
            "circle",
            &[("cx", &x), ("cy", &y), ("r", &r), ("class", class)],
            title,
        );
    }

    /// A path from its data.
    pub(super) fn path(&mut self, data: &str, class: &str, title: &str) {
        self.element("path", &[("d", data), ("class", class)], title);
    }

    /// The fragment.
    pub(super) fn into_string(self) -> String {
        self.text
    }
}

/// Appends `text` with the characters escaped that mean something in XML and HTML. Control characters, which XML
/// does not allow at all, become U+FFFD.
pub(super) fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// A coordinate with at most two decimals. Coordinates far outside every drawing are cut.
pub(super) fn num(x: f64) -> String {
    let text = format!("{:.2}", x.clamp(-1e5, 1e5));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Width of a line of text in a sans-serif font of this size, estimated on the wide side.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.28,
            'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' => 0.34,
            '\u{2009}' => 0.2,
            '⁰'..='⁹' | '⁻' | '²' | '³' | '¹' => 0.37,
            'm' | 'M' | 'w' | 'W' | '%' | '@' => 0.86,
            'A'..='Z' | '×' | '…' | '≤' | '≥' | '±' | '→' => 0.7,
            '\u{1100}'.. => 1.0,
            _ => 0.56,
        })
        .sum();
    1.12 * em * size
}

/// Cuts a text so that it is not wider than `width`, with an ellipsis.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.into();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if text_width(&cut, size) + text_width(&format!("{c}…"), size) > width {
            break;
        }
        cut.push(c);
    }
    format!("{}…", cut.trim_end())
}

/// Breaks a text at its spaces into at most `lines` lines of `width`; the last one is cut.
pub(super) fn wrap(text: &str, size: f64, width: f64, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let last = out.len() - 1;
        let longer = if out[last].is_empty() {
            word.to_string()
        } else {
            format!("{} {word}", out[last])
        };
        if out[last].is_empty() || text_width(&longer, size) <= width || out.len() == lines {
            out[last] = longer;
        } else {
            out.push(word.into());
        }
    }
    out.iter().map(|line| fit(line, size, width)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_short_and_fixed() {
        for (x, text) in [
            (1.0, "1"),
            (-0.001, "0"),
            (2.5, "2.5"),
            (1.0 / 3.0, "0.33"),
            (1e300, "100000"),
        ] {
            assert_eq!(num(x), text);
        }
    }

    #[test]
    fn texts_fit() {
        assert_eq!(fit("EDCA", 12.0, 100.0), "EDCA");
        let cut = fit("a very long label of a series", 12.0, 60.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 60.0, "{cut}");
        assert_eq!(wrap("one shot with EDF", 12.0, 70.0, 3), ["one shot", "with EDF"]);
        assert_eq!(wrap("", 12.0, 60.0, 3), [""]);
        assert_eq!(wrap("a b c d", 12.0, 1.0, 2).len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_stays_text(text in any::<String>(), size in 0usize..40) {
            let mut svg = Svg::default();
            svg.start("g", &[("class", &text)]);
            svg.text(0.0, 0.0, "t", &text);
            svg.circle((1.0, 2.0), 3.0, "p", &text);
            svg.end("g");
            let xml = svg.into_string();
            let document = roxmltree::Document::parse(&xml).unwrap();
            let mut tags: Vec<_> = document.descendants().filter(|n| n.is_element()).map(|n| n.tag_name().name()).collect();
            tags.retain(|&t| t != "title");
            prop_assert_eq!(tags, ["g", "text", "circle"]);
            let plain: String = text.chars().filter(|c| !c.is_control() && *c < '\u{fffe}').collect();
            let shown = document.descendants().find(|n| n.has_tag_name("text")).unwrap().text().unwrap_or("");
            let shown: String = shown.chars().filter(|c| !c.is_control() && *c != '\u{fffd}').collect();
            let expected: String = plain.chars().filter(|c| *c != '\u{fffd}').collect();
            if text.chars().all(|c| c < '\u{fffe}') {
                prop_assert_eq!(shown, expected);
            }
            wrap(&text, 12.0, size as f64, 3);
        }
    }
}
