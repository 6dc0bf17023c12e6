//! One style sheet out of `style/`.

use crate::project::files;
use anyhow::{Context as _, Result};
use std::{fs, path::Path};

/// Layers in the order in which they build on each other; any other file comes after them, by name.
const FIRST: [&str; 4] = ["tokens", "base", "layout", "components"];

pub(super) fn bundle(folder: &Path) -> Result<String> {
    let mut sheets = files(folder)?;
    sheets.retain(|path| path.extension().is_some_and(|extension| extension == "css"));
    sheets.sort_by_key(|path| rank(path.strip_prefix(folder).unwrap_or(path)));
    let mut bundle = String::new();
    for sheet in sheets {
        let css = fs::read_to_string(&sheet).with_context(|| format!("cannot read {}", sheet.display()))?;
        bundle.push_str(&minify(&css));
    }
    Ok(bundle)
}

/// `components/button.css` stands where `components.css` does.
fn rank(sheet: &Path) -> usize {
    let top = sheet.iter().next().map(Path::new).and_then(Path::file_stem);
    FIRST
        .iter()
        .position(|first| top.is_some_and(|top| top == *first))
        .unwrap_or(FIRST.len())
}

/// Without comments, and with white space only where it may mean something.
fn minify(css: &str) -> String {
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    let mut space = false;
    let holds_none_after = |out: &str| out.is_empty() || out.ends_with(['{', '}', ';', ',']);
    while let Some(next) = rest.chars().next() {
        let token = if rest.starts_with("/*") {
            space = true;
            rest = rest.split_once("*/").map_or("", |(_, after)| after);
            continue;
        } else if next.is_whitespace() {
            space = true;
            rest = &rest[next.len_utf8()..];
            continue;
        } else if matches!(next, '"' | '\'') {
            &rest[..string_length(rest, next)]
        } else {
            &rest[..next.len_utf8()]
        };
        if std::mem::take(&mut space) && !holds_none_after(&out) && !matches!(next, '{' | '}' | ';' | ',') {
            out.push(' ');
        }
        out.push_str(token);
        rest = &rest[token.len()..];
    }
    out
}

/// A string with its quotes, at the start of `text`.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + char.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{minify, rank};
    use std::path::Path;

    #[track_caller]
    fn check(css: &str, want: &str) {
        assert_eq!(minify(css), want);
    }

    #[test]
    fn comments_and_idle_space_go() {
        check("/* a */\n.a,\n.b {\n  color: red;\n}\n", ".a,.b{color: red;}");
        check(
            "@layer base { a:hover b :focus { width: calc(1px + 2px) } }",
            "@layer base{a:hover b :focus{width: calc(1px + 2px)}}",
        );
    }

    #[test]
    fn a_comment_between_words_still_parts_them() {
        check("margin: 1px/* top */2px", "margin: 1px 2px");
    }

    #[test]
    fn strings_stay() {
        check(
            r#"a::after { content: " /* \" */  ; " }"#,
            r#"a::after{content: " /* \" */  ; "}"#,
        );
        check("a { content: 'ä  '; }", "a{content: 'ä  ';}");
    }

    #[test]
    fn what_is_left_open_ends_with_the_sheet() {
        check("a{} /* open", "a{}");
        check("a{content:'open", "a{content:'open");
    }

    #[test]
    fn layers_come_first() {
        let order =
            ["tokens.css", "base.css", "layout.css", "components.css", "pages.css"].map(|name| rank(Path::new(name)));
        assert_eq!(order, [0, 1, 2, 3, 4]);
        assert_eq!(rank(Path::new("components/button.css")), 3);
    }
}
