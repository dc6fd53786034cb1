//! Text of the other end as it can be shown: a stranger's name or reason may hold orders to the terminal, or letters that make a
//! line read as another one.

/// Whether a letter shows as what it is, on its line and in its place: control characters do not, nor do separators of lines and
/// what turns the direction of writing around (Unicode Standard Annex 9, sections 2.1 to 2.5).
pub(crate) fn is_plain(letter: char) -> bool {
    let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !turns && !matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The text, with `\u{1b}` and the like in place of what is not plain.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_plain(letter) {
            out.push(letter);
        } else {
            out.extend(letter.escape_unicode());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(plain("ein Käse\u{200f} \\ 💾.txt"), "ein Käse\u{200f} \\ 💾.txt");
        assert_eq!(
            plain("\x1b]0;x\x07\r\n\u{9b}2J"),
            r"\u{1b}]0;x\u{7}\u{d}\u{a}\u{9b}2J"
        );
        assert_eq!(
            plain("a\u{202e}gpj.exe\u{2066}\u{2028}"),
            r"a\u{202e}gpj.exe\u{2066}\u{2028}"
        );
    }
}
