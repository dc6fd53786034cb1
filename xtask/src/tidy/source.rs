//! Rust text as tokens, so that a rule about code never trips over a comment or a string.

use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The tokens of one file.
pub(super) struct Source {
    /// Lines of the file.
    pub(super) lines: usize,
    /// Lines of its `#[cfg(test)] mod ... { ... }` blocks.
    pub(super) test_lines: usize,
    /// In the order of the text. Doc comments appear as `#[doc = "..."]`.
    pub(super) tokens: Vec<Token>,
}

/// One word, punctuation mark, literal or bracket.
pub(super) struct Token {
    /// As written: `unsafe`, `:`, `{`, `"text"`.
    pub(super) text: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// The file is not made of Rust tokens.
#[derive(Debug)]
pub(super) struct Broken {
    /// Where, counted from 1.
    pub(super) line: usize,
}

impl Source {
    /// Takes the text apart; fails on unbalanced brackets and on things that are no tokens.
    pub(super) fn parse(text: &str) -> Result<Source, Broken> {
        let stream = TokenStream::from_str(text).map_err(|error| Broken {
            line: error.span().start().line,
        })?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut source = Source {
            lines: text.lines().count(),
            test_lines: 0,
            tokens,
        };
        source.test_lines = source.count_test_lines();
        Ok(source)
    }

    /// Lines at which `pattern` begins; the pattern is tokens with spaces between, for example `std : : time`.
    pub(super) fn find<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
        let length = pattern.split(' ').count();
        let matches = move |window: &&[Token]| {
            window
                .iter()
                .zip(pattern.split(' '))
                .all(|(token, want)| token.text == want)
        };
        self.tokens
            .windows(length)
            .filter(matches)
            .map(|window| window[0].line)
    }

    /// Lines of the tokens with this text.
    pub(super) fn words<'a>(
        &'a self,
        is_it: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Token> + 'a {
        self.tokens.iter().filter(move |token| is_it(&token.text))
    }

    fn count_test_lines(&self) -> usize {
        let mut lines = 0;
        let mut at = 0;
        while let Some(found) = self.find_test_module(at) {
            let open = (found..self.tokens.len())
                .find(|&i| self.tokens[i].text == "{" || self.tokens[i].text == ";");
            let Some(open) = open.filter(|&i| self.tokens[i].text == "{") else {
                at = found + 1;
                continue;
            };
            let close = self.closing(open);
            lines += self.tokens[close].line - self.tokens[found].line + 1;
            at = close;
        }
        lines
    }

    /// Where `#[cfg(test)] mod` starts, at or after token `from`.
    fn find_test_module(&self, from: usize) -> Option<usize> {
        const HEAD: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
        let tokens = self.tokens.get(from..)?;
        tokens
            .windows(HEAD.len())
            .position(|w| w.iter().zip(HEAD).all(|(t, want)| t.text == want))
            .map(|i| i + from)
    }

    /// The bracket that closes the `{` at `open`.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return index;
            }
        }
        unreachable!("a token stream has balanced brackets")
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token {
                    text: open.to_owned(),
                    line,
                });
                flatten(group.stream(), tokens);
                tokens.push(Token {
                    text: close.to_owned(),
                    line: group.span_close().end().line,
                });
            }
            other => tokens.push(Token {
                text: other.to_string(),
                line,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let source = Source::parse(
            "// unsafe\n/* unsafe */ fn f() { g(\"unsafe\", 'u', r#\"unsafe\"#) }\nunsafe fn h() {}",
        )
        .unwrap();
        assert_eq!(source.find("unsafe").collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn patterns_match_across_spaces_and_lines() {
        let source =
            Source::parse("use std::time::Duration;\nlet t = std\n  ::  time::Instant::now();").unwrap();
        assert_eq!(source.find("std : : time").collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn test_modules_are_counted() {
        let text = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() { if a { b } }\n}\nfn h() {}\n";
        let source = Source::parse(text).unwrap();
        assert_eq!((source.lines, source.test_lines), (7, 4));
        assert_eq!(
            Source::parse("#[cfg(test)]\nmod tests;\nfn f() {}\n")
                .unwrap()
                .test_lines,
            0
        );
    }

    #[test]
    fn unbalanced_text_is_broken() {
        assert!(Source::parse("fn f() {\n").is_err());
    }
}
