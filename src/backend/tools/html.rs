//! Web pages as Markdown, whatever they are made of.

use htmd::HtmlToMarkdown;

/// Parts of a page that are not content.
const SKIPPED: [&str; 13] = [
    "script", "style", "noscript", "template", "nav", "footer", "aside", "iframe", "svg", "canvas", "form", "button",
    "head",
];

/// Deepest nesting that is converted; the converter recurses.
const DEPTH: usize = 2000;

/// Stack of the converting thread: enough for `DEPTH` even in a debug build.
const STACK: usize = 64 * 1024 * 1024;

/// Converts a page. One that is nested absurdly deep, or that the converter fails on, loses its tags and nothing else.
pub(super) async fn to_markdown(html: String) -> String {
    let (done, result) = tokio::sync::oneshot::channel();
    let convert = move || {
        let markdown = if depth(&html) <= DEPTH { convert(&html) } else { None };
        let _ = done.send(markdown.unwrap_or_else(|| strip(&html)));
    };
    // Its own thread for its stack; it ends by itself, as its work is bounded by the size of the page.
    let thread = std::thread::Builder::new().name("html".into()).stack_size(STACK).spawn(convert);
    match thread {
        Ok(_) => result.await.unwrap_or_else(|_| "[Could not convert the page.]".into()),
        Err(error) => format!("[Could not convert the page: {error}.]"),
    }
}

fn convert(html: &str) -> Option<String> {
    let markdown = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build().convert(html).ok()?;
    Some(squeeze(&markdown))
}

/// Makes runs of empty lines one.
fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim().to_string()
}

/// The deepest that elements could nest: never less than they do.
fn depth(html: &str) -> usize {
    let (mut open, mut deepest) = (0usize, 0);
    for part in html.split('<').skip(1) {
        let name: String = part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').take(12).collect();
        match name.to_ascii_lowercase().as_str() {
            "" | "/" => {}
            "br" | "img" | "hr" | "input" | "meta" | "link" | "p" | "li" | "td" | "th" | "tr" | "option" | "source" => {
            }
            "/p" | "/li" | "/td" | "/th" | "/tr" | "/option" => {}
            name if name.starts_with('/') => open = open.saturating_sub(1),
            _ => open += 1,
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Drops every tag.
fn strip(html: &str) -> String {
    let mut out = String::new();
    for part in html.split('<') {
        out.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    squeeze(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(html: &str, want: &str) {
        assert_eq!(to_markdown(html.into()).await, want, "{html:.100}");
    }

    #[tokio::test]
    async fn pages() {
        check(
            "<html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav><h1>Head</h1><script>evil()</script>\
             <p>Text <a href='/x'>link</a> &amp; <code>code</code></p><ul><li>one</li></ul></body>",
            "# Head\n\nText [link](/x) & `code`\n\n*   one",
        )
        .await;
        check("plain", "plain").await;
        check("", "").await;
        check(&format!("{}deep", "<div>".repeat(300_000)), "deep").await;
        check(&format!("{}deep", "<b>".repeat(300_000)), "deep").await;
    }
}
