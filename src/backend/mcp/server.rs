//! The life of one server: started beside everything else, asked what it offers, and started again when it is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::catalog::{self, Prompt, Resource, Tool};
use super::definition::{Definition, Way};
use super::era::{self, Era, Hello, Negotiation};
use super::http::Http;
use super::inbound::{Inbound, short};
use super::outside;
use super::peer::{Caller, Fault, Limits, Link, Peer, Plain};
use super::servers::Surroundings;
use super::stdio::Stdio;

/// How often a program that ends is started again within this time.
const RESTARTS: (usize, Duration) = (3, Duration::from_secs(60));
/// Tries to reach a server again that was there, and one that was not.
const TRIES: (u32, u32) = (5, 3);
/// How often a server is asked to tell of changes, how long it may tell, and after how long it is asked again.
const SUBSCRIPTIONS: (u32, Duration, Duration) = (100, Duration::from_secs(24 * 3600), Duration::from_secs(5));
/// How often a server may ask for input in the course of one call.
const ROUNDS: usize = 8;
/// Its error when a page has to be opened first.
const URL_FIRST: i64 = -32042;
/// Shortest time between two looks at what a server offers.
const CALM: Duration = Duration::from_secs(1);
/// Most pages of a list, and most tools in all.
const PAGES: usize = 100;
const TOOLS: usize = 5_000;
/// Longest description of a tool with its schema, and most of all together, in bytes of JSON.
const LONGEST: usize = 128 << 10;
const ALL: usize = 8 << 20;
/// Most oddities that are told of one list.
const TOLD: usize = 5;

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Starting,
    Ready,
    /// It wants a login.
    Login,
    Failed,
    /// It may not run.
    Off,
}

/// What is known of a server at one moment.
#[derive(Debug, Clone)]
pub struct Status {
    pub definition: Definition,
    pub state: State,
    /// The revision of the protocol, and why this one.
    pub era: Option<(Era, String)>,
    /// From the start until it listed what it offers.
    pub handshake: Option<Duration>,
    /// Why it failed, or what was last wrong with it.
    pub error: Option<String>,
    /// What to do about it.
    pub fix: Option<String>,
    /// The end of what it wrote to its error stream.
    pub tail: String,
    pub tools: Arc<[Arc<Tool>]>,
    /// How many of these it offers.
    pub prompts: usize,
    pub resources: usize,
    pub sent: u64,
    pub received: u64,
}

/// A server that runs, or should.
pub(super) struct Server {
    pub(super) definition: Definition,
    pub(super) current: watch::Receiver<Current>,
    _task: AbortOnDropHandle<()>,
}

/// What the task of a server tells the others.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) state: State,
    hello: Option<Arc<Hello>>,
    handshake: Option<Duration>,
    error: Option<String>,
    fix: Option<String>,
    pub(super) offer: Offer,
    peer: Option<Arc<Peer>>,
    inbound: Option<Arc<Inbound>>,
}

impl Server {
    pub(super) fn start(definition: Definition, around: Arc<Surroundings>) -> Server {
        let (publish, current) = watch::channel(Current {
            state: State::Starting,
            hello: None,
            handshake: None,
            error: None,
            fix: None,
            offer: Offer::default(),
            peer: None,
            inbound: None,
        });
        let task = tokio::spawn(live(definition.clone(), around, publish));
        Server { definition, current, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn status(&self) -> Status {
        let Current { state, hello, handshake, error, fix, offer, inbound, .. } = self.current.borrow().clone();
        let count = |count: fn(&Inbound) -> u64| inbound.as_deref().map(count).unwrap_or_default();
        Status {
            definition: self.definition.clone(),
            state,
            era: hello.map(|hello| (hello.era.clone(), hello.cause.clone())),
            handshake,
            error: error.or_else(|| inbound.as_ref()?.last_odd()),
            tail: inbound.as_ref().map(|inbound| inbound.tail()).unwrap_or_default(),
            fix,
            prompts: offer.prompts.len(),
            resources: offer.resources.len(),
            tools: offer.tools,
            sent: count(|inbound| inbound.sent.load(Ordering::Relaxed)),
            received: count(|inbound| inbound.received.load(Ordering::Relaxed)),
        }
    }

    /// Waits until it is there, or is not going to be.
    pub(super) async fn settled(&self) -> State {
        let mut current = self.current.clone();
        let settled = current.wait_for(|current| current.state != State::Starting).await.map(|current| current.state);
        settled.unwrap_or(State::Failed)
    }

    pub(super) fn instructions(&self) -> String {
        self.current.borrow().hello.as_ref().map(|hello| hello.instructions.clone()).unwrap_or_default()
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        limits: Limits,
        caller: &dyn Caller,
    ) -> Result<Value, Fault> {
        let mirrored = tool.mirrored(&arguments);
        let params = Map::from_iter([
            ("name".to_owned(), Value::from(tool.own.as_str())),
            ("arguments".to_owned(), Value::Object(arguments)),
        ]);
        self.request(("tools/call", params), &mirrored, limits, caller).await
    }

    /// Asks it something. `mirrored` are headers of the newer era.
    pub(super) async fn request(
        &self,
        request: (&str, Map<String, Value>),
        mirrored: &[(String, String)],
        limits: Limits,
        caller: &dyn Caller,
    ) -> Result<Value, Fault> {
        let (peer, hello) = {
            let current = self.current.borrow();
            (current.peer.clone(), current.hello.clone())
        };
        let (Some(peer), Some(hello)) = (peer, hello) else {
            return Err(Fault::Closed("the server does not run".to_owned()));
        };
        let mirrored = if hello.era.is_modern() { mirrored } else { &[] };
        let ((method, mut params), mut opened) = (request, false);
        for _ in 0..ROUNDS {
            let asked = (method, params.clone());
            match peer.request(asked, (Some(&hello.era), mirrored), limits, caller).await {
                // The newer era asks by its answer, and is answered by the same request again.
                Ok(mut result) if result["resultType"] == "input_required" => {
                    let mut responses = Map::new();
                    for (key, asked) in result["inputRequests"].as_object().into_iter().flatten() {
                        let response = match asked["method"].as_str() {
                            Some("elicitation/create") => caller.asked(&asked["params"]).await,
                            Some("roots/list") => peer.inbound.roots(),
                            other => {
                                let what = short(other.unwrap_or("something without a name"));
                                return Err(Fault::Broken(format!(
                                    "the server asks for {what}, which cocode does not give"
                                )));
                            }
                        };
                        responses.insert(key.clone(), response);
                    }
                    params.insert("inputResponses".to_owned(), Value::Object(responses));
                    match result["requestState"].take() {
                        Value::Null => params.remove("requestState"),
                        state => params.insert("requestState".to_owned(), state),
                    };
                }
                // A page is to be opened first.
                Err(Fault::Rpc { code: URL_FIRST, message, data: Some(data) }) if !opened => {
                    opened = true;
                    for asked in data["elicitations"].as_array().into_iter().flatten() {
                        if caller.asked(asked).await["action"] != "accept" {
                            return Err(Fault::Rpc { code: URL_FIRST, message, data: None });
                        }
                    }
                }
                other => return other,
            }
        }
        Err(Fault::Broken(format!("the server asked for input {ROUNDS} times")))
    }
}

/// A server that has just said what it offers.
struct Begun {
    peer: Arc<Peer>,
    hello: Arc<Hello>,
    offer: Offer,
}

/// What a server offers.
#[derive(Clone, Default)]
pub(super) struct Offer {
    pub(super) tools: Arc<[Arc<Tool>]>,
    pub(super) prompts: Arc<[Prompt]>,
    pub(super) resources: Arc<[Resource]>,
}

async fn live(definition: Definition, around: Arc<Surroundings>, publish: watch::Sender<Current>) {
    let (mut lost, mut failures, mut known) = (VecDeque::new(), 0, false);
    loop {
        let inbound = Arc::new(Inbound::new(around.roots.subscribe()));
        publish.send_modify(|current| {
            (current.state, current.peer, current.inbound) = (State::Starting, None, Some(inbound.clone()));
        });
        let started = Instant::now();
        let begun = timeout(around.start, begin(&definition, &around, &inbound)).await;
        let fault = match begun {
            Ok(Ok(Begun { peer, hello, offer })) => {
                (failures, known) = (0, true);
                publish.send_modify(|current| {
                    current.state = State::Ready;
                    current.handshake = Some(started.elapsed());
                    (current.error, current.fix) = (None, None);
                    (current.peer, current.hello) = (Some(peer.clone()), Some(hello.clone()));
                    current.offer = offer;
                });
                around.offers.notify_one();
                Fault::Closed(tend(&definition, (&peer, &hello), &around, &publish).await)
            }
            Ok(Err(fault)) => {
                failures += 1;
                fault
            }
            Err(_) => {
                failures += 1;
                Fault::Silent(around.start)
            }
        };
        tracing::info!(server = definition.name, %fault, "an MCP server is not there");
        let wait = match &definition.way {
            Way::Program { .. } => again(&mut lost, known && failures == 0),
            _ if !fault.is_passing() => None,
            _ => {
                let most = if known { TRIES.0 } else { TRIES.1 };
                (failures < most).then(|| Duration::from_secs(1 << failures.min(4)))
            }
        };
        let state = match (&fault, wait) {
            (Fault::Login { .. }, _) => State::Login,
            (_, Some(_)) => State::Starting,
            (_, None) => State::Failed,
        };
        publish.send_modify(|current| {
            (current.state, current.peer) = (state, None);
            (current.error, current.fix) = (Some(fault.to_string()), fault.fix(&definition.way));
            if wait.is_none() {
                current.offer = Offer::default();
            }
        });
        around.offers.notify_one();
        match wait {
            Some(time) => sleep(time).await,
            None => return,
        }
    }
}

/// After how long a program that has ended is started again. One that never got so far would end again.
fn again(lost: &mut VecDeque<Instant>, was_there: bool) -> Option<Duration> {
    let (most, within) = RESTARTS;
    let now = Instant::now();
    while lost.front().is_some_and(|then| now - *then > within) {
        lost.pop_front();
    }
    if !was_there || lost.len() >= most {
        return None;
    }
    lost.push_back(now);
    Some(Duration::from_millis(100 << (2 * lost.len())))
}

async fn begin(definition: &Definition, around: &Surroundings, inbound: &Arc<Inbound>) -> Result<Begun, Fault> {
    if let Some(path) = definition.runs.broken() {
        let path = path.strip_prefix(&around.project).unwrap_or(path).display();
        return Err(Fault::Broken(format!("{path} has changed since you approved it: start cocode again to be asked")));
    }
    let (link, negotiation) = match &definition.way {
        way @ Way::Program { .. } => (Link::Stdio(Stdio::start(way, around, inbound).await?), around.negotiation),
        Way::Http { url, headers } => {
            let client = around.client.reach(url, None).map_err(|error| Fault::Closed(error.to_string()))?;
            (Link::Http(Http::new(client, url, headers, inbound)), Negotiation::Auto)
        }
        Way::Sse { url, headers } => {
            let client = around.client.reach(url, None).map_err(|error| Fault::Closed(error.to_string()))?;
            (Link::Http(Http::older(client, url, headers, inbound).await?), Negotiation::Legacy)
        }
        Way::Outside => {
            let program = around.program.as_ref();
            let program =
                program.ok_or_else(|| Fault::Broken("no program runs cocode that could answer".to_owned()))?;
            (Link::Outside(outside::Link::new(&definition.name, program, inbound)), Negotiation::Legacy)
        }
    };
    let peer = Arc::new(Peer::new(link, inbound.clone()));
    let hello = era::greet(&peer, negotiation, around.start).await?;
    peer.listen(&hello.era);
    let offer = offer(definition, &peer, &hello).await?;
    Ok(Begun { peer, hello: Arc::new(hello), offer })
}

/// Everything that a server offers. It is of use for its tools alone, too.
async fn offer(definition: &Definition, peer: &Peer, hello: &Hello) -> Result<Offer, Fault> {
    let tools = list(definition, peer, hello).await?;
    let further = async |kind: &str| {
        let listed = pages(peer, hello, kind).await;
        listed.unwrap_or_else(|fault| {
            peer.inbound.odd(&format!("its {kind} cannot be listed: {fault}"));
            Vec::new()
        })
    };
    let prompts = catalog::prompts(&definition.name, &further("prompts").await);
    let resources = catalog::resources(&further("resources").await);
    Ok(Offer { tools, prompts: prompts.into(), resources: resources.into() })
}

/// All that a server lists of a kind, page by page; nothing where it says that it has none.
async fn pages(peer: &Peer, hello: &Hello, kind: &str) -> Result<Vec<Value>, Fault> {
    if hello.capabilities.get(kind).is_none_or(Value::is_null) {
        return Ok(Vec::new());
    }
    let method = format!("{kind}/list");
    let (mut listed, mut cursor, mut bytes) = (Vec::new(), None::<String>, 0);
    for _ in 0..PAGES {
        let params = cursor.iter().map(|cursor| ("cursor".to_owned(), Value::from(cursor.as_str()))).collect();
        let limits = Limits::all(Duration::from_secs(60));
        let mut page = peer.request((&method, params), (Some(&hello.era), &[]), limits, &Plain).await?;
        let Value::Array(all) = page[kind].take() else {
            return Err(Fault::Broken(format!("its answer to {method} has no list of {kind}")));
        };
        for tool in all {
            let length = tool.to_string().len();
            let name = || short(tool["name"].as_str().unwrap_or_default());
            if length > LONGEST {
                let what = kind.trim_end_matches('s');
                peer.inbound.odd(&format!("describes the {what} {:?} in more than {} kB", name(), LONGEST >> 10));
                continue;
            }
            bytes += length;
            if bytes <= ALL {
                listed.push(tool);
            }
        }
        let next = page["nextCursor"].as_str().map(str::to_owned);
        if next.is_none() || next == cursor || listed.len() > TOOLS || bytes > ALL {
            break;
        }
        cursor = next;
    }
    if bytes > ALL {
        peer.inbound.odd(&format!("describes its {kind} in more than {} MB: the others are left out", ALL >> 20));
    }
    if listed.len() > TOOLS {
        listed.truncate(TOOLS);
        peer.inbound.odd(&format!("lists more than {TOOLS} {kind}: the others are left out"));
    }
    Ok(listed)
}

/// Its tools; none where it says that it has none.
async fn list(definition: &Definition, peer: &Peer, hello: &Hello) -> Result<Arc<[Arc<Tool>]>, Fault> {
    let mut listed = pages(peer, hello, "tools").await?;
    if hello.era.is_modern() && matches!(definition.way, Way::Http { .. }) {
        listed.retain(|tool| {
            let fault = catalog::misheaded(&tool["inputSchema"]);
            if let Some(fault) = &fault {
                let name = short(tool["name"].as_str().unwrap_or_default());
                peer.inbound.odd(&format!("describes the tool {name:?} so that it cannot be called: {fault}"));
            }
            fault.is_none()
        });
    }
    let mut told = 0;
    let tools = catalog::tools(&definition.name, &listed, &mut |odd| {
        told += 1;
        if told <= TOLD {
            peer.inbound.odd(&odd);
        }
    });
    Ok(tools.into_iter().map(Arc::new).collect())
}

/// Looks after a server that is there, until it is lost; returns why.
async fn tend(
    definition: &Definition,
    (peer, hello): (&Arc<Peer>, &Arc<Hello>),
    around: &Surroundings,
    publish: &watch::Sender<Current>,
) -> String {
    let watch = async {
        loop {
            peer.inbound.changed.notified().await;
            match offer(definition, peer, hello).await {
                Ok(offer) => {
                    publish.send_modify(|current| current.offer = offer);
                    around.offers.notify_one();
                }
                // What was known stays.
                Err(fault) => peer.inbound.odd(&format!("its tools cannot be listed again: {fault}")),
            }
            // However often it says so.
            sleep(CALM).await;
        }
    };
    let mut roots = around.roots.subscribe();
    let tell = async {
        // Nobody changes them any more where this ends.
        while roots.changed().await.is_ok() {
            if !hello.era.is_modern() {
                peer.notify("notifications/roots/list_changed", json!({}), Some(&hello.era)).await;
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        why = peer.closed() => why,
        () = watch => String::new(),
        () = tell => String::new(),
        () = subscribe(peer, hello) => String::new(),
    }
}

/// Asks a server of the newer era to tell of changes, for as long as it is there: it tells nobody else.
async fn subscribe(peer: &Peer, hello: &Hello) {
    let tells = |kind: &&str| hello.capabilities[*kind]["listChanged"] == true;
    let kinds = ["tools", "prompts", "resources"].into_iter().filter(tells);
    let wanted: Map<String, Value> = kinds.map(|kind| (format!("{kind}ListChanged"), true.into())).collect();
    let mut times = if hello.era.is_modern() && !wanted.is_empty() { SUBSCRIPTIONS.0 } else { 0 };
    while times > 0 {
        times -= 1;
        let params = Map::from_iter([("notifications".to_owned(), Value::Object(wanted.clone()))]);
        let asked = ("subscriptions/listen", params);
        let ended = peer.request(asked, (Some(&hello.era), &[]), Limits::all(SUBSCRIPTIONS.1), &Plain).await;
        if matches!(ended, Err(Fault::Rpc { .. } | Fault::Status { status: ..500, .. })) {
            break;
        }
        sleep(SUBSCRIPTIONS.2).await;
        // Meanwhile it told nobody.
        peer.inbound.changed.notify_one();
    }
    std::future::pending().await
}
