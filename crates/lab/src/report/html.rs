//! The page of a run: one HTML file that needs nothing else, on a screen, in the dark and on paper.

use super::plot::{Figure, STYLE};
use super::svg::escape;
use crate::stats::Verdict;

/// A page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The question that was asked.
    pub title: String,
    /// One line below it: when, which version, which seed; empty for none.
    pub subtitle: String,
    /// The answer, if there is one.
    pub banner: Option<Banner>,
    /// Everything else.
    pub sections: Vec<Section>,
    /// Small print at the end; empty for none.
    pub footer: String,
}

/// The answer in one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Banner {
    /// Yes, no, or not known.
    pub verdict: Verdict,
    /// Why.
    pub text: String,
}

/// A part of the page under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    heading: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq)]
enum Block {
    Paragraph(String),
    Values(Vec<(String, String)>),
    Verbatim(String),
    Links(Vec<Link>),
    Table(Table),
    Figure(Box<Figure>),
}

/// A file in the folder of the page.
#[derive(Clone, Debug, PartialEq)]
struct Link {
    file: String,
    about: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    caption: String,
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
}

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Marks.
    Centre,
    /// Numbers.
    Right,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    text: String,
    verdict: Option<Verdict>,
}

impl Cell {
    /// A cell coloured by a verdict.
    pub fn judged(text: impl Into<String>, verdict: Verdict) -> Self {
        Cell {
            text: text.into(),
            verdict: Some(verdict),
        }
    }
}

impl From<Verdict> for Cell {
    fn from(verdict: Verdict) -> Self {
        Cell::judged(verdict.word(), verdict)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::from(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell { text, verdict: None }
    }
}

impl Table {
    /// A table without rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        Table {
            columns: columns
                .into_iter()
                .map(|(title, align)| (title.into(), align))
                .collect(),
            ..Table::default()
        }
    }

    /// Adds a caption above.
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not one cell for each column.
    pub fn row<C: Into<Cell>>(mut self, cells: impl IntoIterator<Item = C>) -> Self {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        self.rows.push(cells);
        self
    }
}

impl Section {
    /// A section without content.
    pub fn new(heading: impl Into<String>) -> Self {
        Section {
            heading: heading.into(),
            blocks: Vec::new(),
        }
    }

    /// Adds a paragraph.
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        self.block(Block::Paragraph(text.into()))
    }

    /// Adds a list of names with their values.
    pub fn values<K: Into<String>, V: Into<String>>(self, pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        self.block(Block::Values(
            pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
        ))
    }

    /// Adds text as it stands, line by line: a command, a scenario.
    pub fn verbatim(self, text: impl Into<String>) -> Self {
        self.block(Block::Verbatim(text.into()))
    }

    /// Adds a list of files that lie beside the page, each with what it is.
    pub fn files<F: Into<String>, A: Into<String>>(self, files: impl IntoIterator<Item = (F, A)>) -> Self {
        let link = |(file, about): (F, A)| Link {
            file: file.into(),
            about: about.into(),
        };
        self.block(Block::Links(files.into_iter().map(link).collect()))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// Adds a plot.
    pub fn figure(self, figure: Figure) -> Self {
        self.block(Block::Figure(Box::new(figure)))
    }

    fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

impl Report {
    /// The whole page.
    pub fn html(&self) -> String {
        let mut page = Page {
            out: String::new(),
            figures: 0,
        };
        page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        // No browser may fetch anything for this page, whatever a text in it says.
        page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
        page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        page.element("title", "", &self.title);
        page.raw("<style>\n");
        page.raw(include_str!("page.css"));
        page.raw(STYLE);
        page.raw("</style>\n</head>\n<body>\n<header>\n");
        page.element("h1", "", &self.title);
        if !self.subtitle.is_empty() {
            page.element("p", "subtitle", &self.subtitle);
        }
        if let Some(banner) = &self.banner {
            page.raw(&format!(
                "<div class=\"banner {}\" role=\"status\">",
                class(banner.verdict)
            ));
            page.element(
                "strong",
                "",
                &format!("{} {}", symbol(banner.verdict), banner.verdict),
            );
            page.element("span", "", &banner.text);
            page.raw("</div>\n");
        }
        page.raw("</header>\n");
        page.contents(&self.sections);
        for (i, section) in self.sections.iter().enumerate() {
            page.section(i, section);
        }
        if !self.footer.is_empty() {
            page.element("footer", "", &self.footer);
        }
        page.raw("</body>\n</html>\n");
        page.out
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Undecided => "undecided",
    }
}

/// A sign beside the word, so that the colour is not needed.
fn symbol(verdict: Verdict) -> char {
    match verdict {
        Verdict::Pass => '✓',
        Verdict::Fail => '✗',
        Verdict::Undecided => '?',
    }
}

/// A file name as a relative address (RFC 3986, section 2.3: everything but the unreserved characters in percent).
fn address(file: &str) -> String {
    let mut out = String::new();
    for octet in file.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(octet.into()),
            _ => out.push_str(&format!("%{octet:02X}")),
        }
    }
    out
}

struct Page {
    out: String,
    figures: usize,
}

impl Page {
    fn raw(&mut self, html: &str) {
        self.out.push_str(html);
    }

    /// An element that holds text.
    fn element(&mut self, name: &str, class: &str, text: &str) {
        match class {
            "" => self.raw(&format!("<{name}>")),
            class => self.raw(&format!("<{name} class=\"{class}\">")),
        }
        escape(&mut self.out, text);
        self.raw(&format!("</{name}>\n"));
    }

    fn contents(&mut self, sections: &[Section]) {
        if sections.len() < 3 {
            return;
        }
        self.raw("<nav>\n");
        for (i, section) in sections.iter().enumerate() {
            self.raw(&format!("<a href=\"#s{}\">", i + 1));
            escape(&mut self.out, &section.heading);
            self.raw("</a>\n");
        }
        self.raw("</nav>\n");
    }

    fn section(&mut self, index: usize, section: &Section) {
        self.raw(&format!("<section id=\"s{}\">\n", index + 1));
        self.element("h2", "", &section.heading);
        for block in &section.blocks {
            match block {
                Block::Paragraph(text) => self.element("p", "", text),
                Block::Verbatim(text) => self.element("pre", "", text),
                Block::Values(pairs) => {
                    self.raw("<dl>\n");
                    for (key, value) in pairs {
                        self.element("dt", "", key);
                        self.element("dd", "", value);
                    }
                    self.raw("</dl>\n");
                }
                Block::Links(links) => self.links(links),
                Block::Table(table) => self.table(table),
                Block::Figure(figure) => self.figure(figure),
            }
        }
        self.raw("</section>\n");
    }

    fn links(&mut self, links: &[Link]) {
        self.raw("<ul>\n");
        for link in links {
            self.raw(&format!("<li><a href=\"./{}\">", address(&link.file)));
            escape(&mut self.out, &link.file);
            self.raw("</a> ");
            escape(&mut self.out, &link.about);
            self.raw("</li>\n");
        }
        self.raw("</ul>\n");
    }

    fn table(&mut self, table: &Table) {
        let align = |align: Align| match align {
            Align::Left => "",
            Align::Centre => "centre",
            Align::Right => "right",
        };
        self.raw("<div class=\"wide\"><table>\n");
        if !table.caption.is_empty() {
            self.element("caption", "", &table.caption);
        }
        self.raw("<thead><tr>\n");
        for (title, at) in &table.columns {
            self.element("th", align(*at), title);
        }
        self.raw("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            self.raw("<tr>\n");
            for (cell, (_, at)) in row.iter().zip(&table.columns) {
                let judged = cell.verdict.map_or("", class);
                let classes = format!("{} {judged}", align(*at));
                self.element("td", classes.trim(), &cell.text);
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n");
    }

    fn figure(&mut self, figure: &Figure) {
        self.figures += 1;
        self.raw("<figure>\n");
        self.raw(&figure.svg());
        self.raw(&format!("<figcaption><b>Figure {}.</b> ", self.figures));
        escape(&mut self.out, &figure.how_to_read);
        self.raw("</figcaption>\n</figure>\n");
    }
}

#[cfg(test)]
mod tests;
