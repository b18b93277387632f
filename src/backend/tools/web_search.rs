//! WebSearch: the provider's own search, else a configured endpoint, else a word of how to get one.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::permission::Access;
use crate::stdx::ansi;

use super::call::Typed;
use super::web::{self, Fetched, Page, Reach};
use super::{Call, Context, Dirs, Manners, Output, file, html};

/// Most results that are told.
const RESULTS: usize = 20;

pub(super) struct WebSearch;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    query: String,
    #[serde(default)]
    allowed_domains: Vec<String>,
    #[serde(default)]
    blocked_domains: Vec<String>,
}

impl Typed for WebSearch {
    type Input = Input;

    const NAME: &'static str = "WebSearch";
    const ABOUT: &'static str = include_str!("../../../assets/tools/web_search.md");
    const MANNERS: Manners = Manners { needs_room: true, ..Manners::READS };

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        if input.query.trim().is_empty() {
            return Err("The query is empty.".into());
        }
        if !input.allowed_domains.is_empty() && !input.blocked_domains.is_empty() {
            return Err("Give allowed_domains or blocked_domains, not both.".into());
        }
        let title = file::one_line(&input.query);
        let work = |context: Context| async move {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => file::interrupted(),
                output = search(&input, &context) => output.unwrap_or_else(Output::error),
            }
        };
        Ok(Call::new(Access::WebSearch, title, work))
    }
}

async fn search(input: &Input, context: &Context) -> Result<Output, String> {
    let own = context.host.web_search(&input.query, &input.allowed_domains, &input.blocked_domains).await;
    let refused = match own {
        Ok(text) => return Ok(Output::ok(ansi::clean(&text))),
        Err(refused) => refused,
    };
    let Some(template) = &context.settings.search_url else {
        return Err(format!(
            "No web search is available: {}. The user can set tools.search_url to a search endpoint, with {{query}} in the place of the query. Known pages can be read with WebFetch.",
            refused.trim_end_matches('.')
        ));
    };
    let query: String = byte_serialize(input.query.as_bytes()).collect();
    let url = Url::parse(&template.replace("{query}", &query))
        .map_err(|error| format!("The setting tools.search_url is not a valid URL: {error}."))?;
    // The user named this address, so it may be on this machine.
    match web::get(url, Reach::Any).await? {
        Fetched::Page(page) if page.status >= 400 => {
            Err(format!("The search endpoint (tools.search_url) answered with status {}.", page.status))
        }
        Fetched::Page(page) => Ok(Output::ok(ansi::clean(&told(page, input).await))),
        Fetched::Elsewhere(to) => Err(format!("The search endpoint (tools.search_url) redirects to {to}.")),
    }
}

async fn told(page: Page, input: &Input) -> String {
    let text = page.text();
    let Ok(json) = serde_json::from_str::<Value>(&text) else {
        return if page.media_type.contains("html") { html::to_markdown(text).await } else { text };
    };
    let results: Vec<Found> = found(&json).into_iter().filter(|result| wanted(result, input)).take(RESULTS).collect();
    if results.is_empty() {
        return "The search found nothing.".into();
    }
    let mut told = String::new();
    for result in results {
        let _ = writeln!(told, "- [{}]({})\n  {}", result.title, result.url, result.snippet);
    }
    told
}

/// One result, in whatever words its engine has for it.
struct Found<'a> {
    title: &'a str,
    url: &'a str,
    snippet: &'a str,
}

/// The results of an answer: the first list of objects with addresses, however deep.
fn found(json: &Value) -> Vec<Found<'_>> {
    match json {
        Value::Array(items) => {
            let results: Vec<Found<'_>> = items.iter().filter_map(one).collect();
            if results.is_empty() {
                items.iter().map(found).find(|found| !found.is_empty()).unwrap_or_default()
            } else {
                results
            }
        }
        Value::Object(object) => object.values().map(found).find(|found| !found.is_empty()).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn one(item: &Value) -> Option<Found<'_>> {
    let first = |names: &[&str]| names.iter().find_map(|name| item.get(*name)?.as_str());
    let url = first(&["url", "link", "href"])?;
    let title = first(&["title", "name"]).unwrap_or(url);
    Some(Found { title, url, snippet: first(&["content", "snippet", "description", "text"]).unwrap_or_default() })
}

/// Whether the domain filters let a result through.
fn wanted(result: &Found<'_>, input: &Input) -> bool {
    let url = Url::parse(result.url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let within = |domain: &String| {
        let domain = domain.trim_start_matches("*.").trim_start_matches('.');
        host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    };
    (input.allowed_domains.is_empty() || input.allowed_domains.iter().any(within))
        && !input.blocked_domains.iter().any(within)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::Query;
    use axum::response::Html;
    use axum::routing::get;
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[derive(Deserialize)]
    struct Asked {
        q: String,
    }

    async fn serve() -> String {
        let json = get(|Query(asked): Query<Asked>| async move {
            let results = json!([
                {"title": asked.q, "url": "https://docs.example.org/a", "content": "first"},
                {"title": "Other", "url": "https://example.com/b", "content": "second"},
            ]);
            axum::Json(json!({"query": "x", "infobox": [], "web": {"results": results}}))
        });
        let router = Router::new().route("/json", json).route("/html", get(|| async { Html("<h1>Results</h1>") }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        base
    }

    #[tokio::test]
    async fn endpoints() {
        let base = serve().await;
        let mut fixture = Fixture::new();
        let mut check = async |path: &str, input: Value, want: &str| {
            fixture.settings.search_url = Some(format!("{base}{path}"));
            assert_eq!(fixture.ok(&WebSearch, input).await, want);
        };
        let (first, second) =
            ("- [a&b c](https://docs.example.org/a)\n  first\n", "- [Other](https://example.com/b)\n  second\n");
        check("/json?q={query}", json!({"query": "a&b c"}), &format!("{first}{second}")).await;
        check("/json?q={query}", json!({"query": "a&b c", "allowed_domains": ["example.org"]}), first).await;
        check("/json?q={query}", json!({"query": "a", "blocked_domains": ["example.org"]}), second).await;
        check("/json?q={query}", json!({"query": "a", "allowed_domains": ["ample.org"]}), "The search found nothing.")
            .await;
        check("/html?q={query}", json!({"query": "a"}), "# Results").await;
    }

    #[tokio::test]
    async fn without_a_search_it_says_so() {
        let mut fixture = Fixture::new();
        let got = fixture.error(&WebSearch, json!({"query": "x"})).await;
        assert!(got.starts_with("No web search is available: none. The user can set tools.search_url"), "{got}");
        assert_eq!(fixture.error(&WebSearch, json!({"query": " "})).await, "The query is empty.");
    }
}
