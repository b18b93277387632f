//! The life of one server: started beside everything else, asked what it offers, and started again when it is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::catalog::{self, Tool};
use super::definition::{Definition, Way};
use super::era::{self, Era, Hello, Negotiation};
use super::http::Http;
use super::inbound::Inbound;
use super::outside;
use super::peer::{Fault, Limits, Link, Peer};
use super::servers::Surroundings;
use super::stdio::Stdio;

/// How often a program that ends is started again within this time.
const RESTARTS: (usize, Duration) = (3, Duration::from_secs(60));
/// Tries to reach a server again that was there, and one that was not.
const TRIES: (u32, u32) = (5, 3);
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
    /// The end of what it wrote to its error stream.
    pub tail: String,
    pub tools: Arc<[Arc<Tool>]>,
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
    pub(super) tools: Arc<[Arc<Tool>]>,
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
            tools: Arc::new([]),
            peer: None,
            inbound: None,
        });
        let task = tokio::spawn(live(definition.clone(), around, publish));
        Server { definition, current, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn status(&self) -> Status {
        let Current { state, hello, handshake, error, tools, inbound, .. } = self.current.borrow().clone();
        let count = |count: fn(&Inbound) -> u64| inbound.as_deref().map(count).unwrap_or_default();
        Status {
            definition: self.definition.clone(),
            state,
            era: hello.map(|hello| (hello.era.clone(), hello.cause.clone())),
            handshake,
            error: error.or_else(|| inbound.as_ref()?.last_odd()),
            tail: inbound.as_ref().map(|inbound| inbound.tail()).unwrap_or_default(),
            tools,
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
        heard: &mut (dyn FnMut(String) + Send),
    ) -> Result<Value, Fault> {
        let (peer, hello) = {
            let current = self.current.borrow();
            (current.peer.clone(), current.hello.clone())
        };
        let (Some(peer), Some(hello)) = (peer, hello) else {
            return Err(Fault::Closed("the server does not run".to_owned()));
        };
        let mirrored = if hello.era.is_modern() { tool.mirrored(&arguments) } else { Vec::new() };
        let params = Map::from_iter([
            ("name".to_owned(), Value::from(tool.own.as_str())),
            ("arguments".to_owned(), Value::Object(arguments)),
        ]);
        let result = peer.request(("tools/call", params), (Some(&hello.era), &mirrored), limits, heard).await?;
        if result["resultType"] == "input_required" {
            return Err(Fault::Broken("the server asks for input, which cocode cannot give yet".to_owned()));
        }
        Ok(result)
    }
}

/// A server that has just said what it offers.
struct Begun {
    peer: Arc<Peer>,
    hello: Arc<Hello>,
    tools: Arc<[Arc<Tool>]>,
}

async fn live(definition: Definition, around: Arc<Surroundings>, publish: watch::Sender<Current>) {
    let (mut lost, mut failures, mut known) = (VecDeque::new(), 0, false);
    loop {
        let inbound = Arc::new(Inbound::new(around.project.clone()));
        publish.send_modify(|current| {
            (current.state, current.peer, current.inbound) = (State::Starting, None, Some(inbound.clone()));
        });
        let started = Instant::now();
        let begun = timeout(around.start, begin(&definition, &around, &inbound)).await;
        let fault = match begun {
            Ok(Ok(Begun { peer, hello, tools })) => {
                (failures, known) = (0, true);
                publish.send_modify(|current| {
                    current.state = State::Ready;
                    current.handshake = Some(started.elapsed());
                    current.error = None;
                    (current.peer, current.hello, current.tools) = (Some(peer.clone()), Some(hello.clone()), tools);
                });
                Fault::Closed(tend(&definition, (&peer, &hello), &publish).await)
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
            current.error = Some(fault.to_string());
            if wait.is_none() {
                current.tools = Arc::new([]);
            }
        });
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
    let tools = list(definition, &peer, &hello).await?;
    Ok(Begun { peer, hello: Arc::new(hello), tools })
}

/// Everything that a server offers, page by page.
async fn list(definition: &Definition, peer: &Peer, hello: &Hello) -> Result<Arc<[Arc<Tool>]>, Fault> {
    if hello.capabilities.get("tools").is_none_or(Value::is_null) {
        return Ok(Arc::new([]));
    }
    let (mut listed, mut cursor, mut bytes) = (Vec::new(), None::<String>, 0);
    for _ in 0..PAGES {
        let params = cursor.iter().map(|cursor| ("cursor".to_owned(), Value::from(cursor.as_str()))).collect();
        let limits = Limits::all(Duration::from_secs(60));
        let mut page = peer.request(("tools/list", params), (Some(&hello.era), &[]), limits, &mut |_| ()).await?;
        let Value::Array(tools) = page["tools"].take() else {
            return Err(Fault::Broken("its answer to tools/list has no list of tools".to_owned()));
        };
        for tool in tools {
            let length = tool.to_string().len();
            let name = || super::inbound::short(tool["name"].as_str().unwrap_or_default());
            if length > LONGEST {
                peer.inbound.odd(&format!("describes the tool {:?} in more than {} kB", name(), LONGEST >> 10));
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
        peer.inbound.odd(&format!("describes its tools in more than {} MB: the others are left out", ALL >> 20));
    }
    if listed.len() > TOOLS {
        listed.truncate(TOOLS);
        peer.inbound.odd(&format!("lists more than {TOOLS} tools: the others are left out"));
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
    publish: &watch::Sender<Current>,
) -> String {
    let watch = async {
        loop {
            peer.inbound.changed.notified().await;
            match list(definition, peer, hello).await {
                Ok(tools) => publish.send_modify(|current| current.tools = tools),
                // What was known stays.
                Err(fault) => peer.inbound.odd(&format!("its tools cannot be listed again: {fault}")),
            }
            // However often it says so.
            sleep(CALM).await;
        }
    };
    tokio::select! {
        why = peer.closed() => why,
        () = watch => String::new(),
    }
}
