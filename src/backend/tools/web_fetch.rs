//! WebFetch: one page of the web as Markdown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use crate::message::Display;
use crate::permission::{Access, Matches, Ruled};
use crate::stdx::ansi;

use super::call::Typed;
use super::web::{self, Fetched, Page, Reach};
use super::{Call, Context, Dirs, Manners, Output, file, html};

/// How long a page is kept.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// Most pages, and most bytes of one, that are kept.
const PAGES: usize = 16;
const KEPT_BYTES: usize = 1024 * 1024;

/// Keeps the pages of the last quarter of an hour: the one tool with a memory, which only saves time.
#[derive(Default, Clone)]
pub(super) struct WebFetch {
    cache: Arc<Mutex<HashMap<String, (Instant, String)>>>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    url: String,
    /// What you are looking for on the page
    #[expect(dead_code, reason = "other agents hand the page to a second model; here the model itself reads it")]
    prompt: Option<String>,
}

impl Typed for WebFetch {
    type Input = Input;

    const NAME: &'static str = "WebFetch";
    const ABOUT: &'static str = include_str!("../../../assets/tools/web_fetch.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Domain, ..Ruled::BY_NAME },
        matched: "url",
        needs_room: true,
        ..Manners::READS
    };

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        let (url, title) = (web::parse(&input.url)?, file::one_line(&input.url));
        let kept = self.clone();
        let access = Access::Fetch { url: url.clone().into() };
        let work = |context: Context| async move {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => file::interrupted(),
                output = kept.fetch(url, &context) => output.unwrap_or_else(Output::error),
            }
        };
        Ok(Call::new(access, title, work))
    }
}

impl WebFetch {
    async fn fetch(&self, url: Url, context: &Context) -> Result<Output, String> {
        if let Some(text) = self.kept(url.as_str()) {
            return Ok(done(text));
        }
        let reach = if context.settings.fetch_private { Reach::Any } else { Reach::Public };
        let page = match web::get(url.clone(), reach).await? {
            Fetched::Page(page) => page,
            Fetched::Elsewhere(to) => {
                return Ok(Output::ok(format!("{url} redirects to another host. Call WebFetch again with: {to}")));
            }
        };
        let (status, address, cut) = (page.status, page.url.clone(), page.cut);
        let text = readable(page).await?;
        if status >= 400 {
            let start: String = text.chars().take(2000).collect();
            return Err(format!("{address} answered with status {status}.\n{start}"));
        }
        let note = if cut { "\n\n[The page is longer than 10 MB; the rest was not fetched.]" } else { "" };
        let text = format!("{address}\n\n{text}{note}");
        self.keep(url.into(), &text);
        Ok(done(text))
    }

    fn kept(&self, url: &str) -> Option<String> {
        let cache = self.cache.lock().ok()?;
        cache.get(url).filter(|(when, _)| when.elapsed() < KEPT).map(|(_, text)| text.clone())
    }

    fn keep(&self, url: String, text: &str) {
        let Ok(mut cache) = self.cache.lock() else { return };
        cache.retain(|_, (when, _)| when.elapsed() < KEPT);
        if cache.len() >= PAGES
            && let Some(oldest) = cache.iter().min_by_key(|(_, (when, _))| *when).map(|(url, _)| url.clone())
        {
            cache.remove(&oldest);
        }
        if text.len() <= KEPT_BYTES {
            cache.insert(url, (Instant::now(), text.to_string()));
        }
    }
}

fn done(text: String) -> Output {
    let line = format!("Fetched {} kB", text.len().div_ceil(1000));
    Output { display: Some(Display::Line { text: line }), ..Output::ok(text) }
}

/// A page as text without control characters.
///
/// # Errors
/// A sentence for the model when it is neither a web page nor text.
async fn readable(page: Page) -> Result<String, String> {
    let kind = page.media_type.as_str();
    let markup = matches!(kind, "text/html" | "application/xhtml+xml");
    let named = kind.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml"].iter().any(|word| kind.contains(word))
        || (kind.is_empty() && file::is_text(&page.body[..page.body.len().min(8192)]));
    let text = page.text();
    let unnamed_markup =
        kind.is_empty() && text.trim_start().get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype"));
    if markup || unnamed_markup {
        return Ok(html::to_markdown(ansi::clean(&text)).await);
    }
    if named {
        return Ok(ansi::clean(&text));
    }
    Err(format!(
        "{} is {} ({} bytes), not text. Download it in Bash with curl -o and use Read if it is an image or PDF.",
        page.url,
        if kind.is_empty() { "of unknown type" } else { kind },
        page.body.len()
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::response::{Html, Redirect};
    use axum::routing::get;
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    async fn serve() -> (String, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let page = get(move || {
            count.fetch_add(1, Ordering::Relaxed);
            async { Html("<h1>Hello</h1><script>x</script><p>\x1b[31mworld</p>") }
        });
        let router = Router::new()
            .route("/page", page)
            .route(
                "/text",
                get(|| async { ([("content-type", "text/plain; charset=ISO-8859-1")], b"caf\xe9\x07".to_vec()) }),
            )
            .route("/json", get(|| async { ([("content-type", "application/json")], "{\"a\":1}") }))
            .route("/near", get(|| async { Redirect::temporary("/json") }))
            .route("/far", get(|| async { Redirect::temporary("http://other.example/x") }))
            .route("/loop", get(|| async { Redirect::temporary("/loop") }))
            .route("/image", get(|| async { ([("content-type", "image/png")], vec![0u8; 9]) }))
            .route("/gone", get(|| async { (StatusCode::GONE, "was here") }))
            .route("/big", get(|| async { "x".repeat(11 * 1024 * 1024) }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (base, asked)
    }

    #[tokio::test]
    async fn pages() {
        let (base, asked) = serve().await;
        let (mut fixture, tool) = (Fixture::new(), WebFetch::default());
        fixture.settings.fetch_private = true;
        for (path, want) in [
            ("/page", Ok("BASE/page\n\n# Hello\n\nworld")),
            ("/page", Ok("BASE/page\n\n# Hello\n\nworld")),
            ("/text", Ok("BASE/text\n\ncafé")),
            ("/near", Ok("BASE/json\n\n{\"a\":1}")),
            ("/far", Ok("BASE/far redirects to another host. Call WebFetch again with: http://other.example/x")),
            ("/loop", Err("BASE/loop redirects endlessly.")),
            (
                "/image",
                Err(
                    "BASE/image is image/png (9 bytes), not text. Download it in Bash with curl -o and use Read if it is an image or PDF.",
                ),
            ),
            ("/gone", Err("BASE/gone answered with status 410.\nwas here")),
        ] {
            let input = json!({"url": format!("{base}{path}"), "prompt": "what is it"});
            let got = match want {
                Ok(_) => fixture.ok(&tool, input).await,
                Err(_) => fixture.error(&tool, input).await,
            };
            assert_eq!(got.replace(&base, "BASE"), want.unwrap_or_else(|error| error), "{path}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1, "the second time it was kept");
        let big = fixture.ok(&tool, json!({"url": format!("{base}/big")})).await;
        assert!(big.ends_with("[The page is longer than 10 MB; the rest was not fetched.]"));
    }

    #[tokio::test]
    async fn private_addresses_are_refused() {
        let (base, asked) = serve().await;
        let port = base.rsplit(':').next().unwrap().to_string();
        let mut fixture = Fixture::new();
        for host in
            ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "a.localhost"]
        {
            let input = json!({"url": format!("http://{host}:{port}/page")});
            let got = fixture.error(&WebFetch::default(), input).await;
            assert!(got.contains("which WebFetch does not access"), "{host}: {got}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for (url, want) in [
            ("file:///etc/passwd", "Only http and https"),
            ("https://me:pw@example.com/", "Leave the user name"),
            ("example.com", "Use the full URL, with https://."),
        ] {
            let got = fixture.error(&WebFetch::default(), json!({"url": url})).await;
            assert!(got.contains(want), "{got}");
        }
    }
}
