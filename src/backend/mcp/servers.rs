//! All servers of a session.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use super::catalog::{self, Found, Prompt, Resource, Tool};
use super::definition::{Definition, Way};
use super::era::Negotiation;
use super::known::Known;
use super::outside::Program;
use super::peer::{Caller, Fault, Limits, Plain};
use super::server::{Server, State, Status};
use crate::provider::http::Client;
use crate::sandbox::Sandbox;
use crate::stdx::nearest::nearest;

/// How long a server may take to start where nobody says.
const START: Duration = Duration::from_secs(30);
/// How long a call may take in all where nobody says.
const CALL: Duration = Duration::from_secs(28 * 3600);
/// Most resources that one prompt attaches.
const MENTIONS: usize = 16;
/// How long a prompt or a resource may take that the user waits for.
const FETCH: Duration = Duration::from_secs(60);
/// How long a server may be silent while a call is open: one on this machine, and one elsewhere.
const IDLE: (Duration, Duration) = (Duration::from_secs(30 * 60), Duration::from_secs(5 * 60));

/// What servers run with.
pub struct Surroundings {
    /// Where programs start.
    pub project: PathBuf,
    /// Further variables of programs.
    pub env: BTreeMap<String, String>,
    /// Variables that no program inherits.
    pub secret_env: Vec<String>,
    pub sandbox: Sandbox,
    pub client: Client,
    /// The program that runs us, where it has servers of its own.
    pub(super) program: Option<Program>,
    /// How long a start may take.
    pub(super) start: Duration,
    /// How long a call may take.
    call: Duration,
    pub(super) negotiation: Negotiation,
    /// Where is kept what tools were when they ran.
    known: Option<PathBuf>,
    /// What some server offers may have changed.
    pub(super) offers: Notify,
    /// The folders that servers are told of.
    pub(super) roots: watch::Sender<Vec<PathBuf>>,
}

impl Surroundings {
    /// With a file in which is kept what tools were when they ran.
    #[must_use]
    pub fn remembering(self, file: PathBuf) -> Surroundings {
        Surroundings { known: Some(file), ..self }
    }

    /// With the limits that variables set.
    pub fn new(
        project: PathBuf,
        (env, secret_env): (BTreeMap<String, String>, Vec<String>),
        sandbox: Sandbox,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Surroundings {
        let time = |name: &str| {
            let ms = variable(name)?.trim().parse().ok().filter(|ms| *ms > 0)?;
            Some(Duration::from_millis(ms))
        };
        let root = project.clone();
        let auto = variable("MCP_PROTOCOL_NEGOTIATION").is_some_and(|value| value == "auto");
        Surroundings {
            project,
            env,
            secret_env,
            sandbox,
            client: Client::default(),
            program: None,
            start: time("MCP_TIMEOUT").unwrap_or(START),
            call: time("MCP_TOOL_TIMEOUT").unwrap_or(CALL),
            negotiation: if auto { Negotiation::Auto } else { Negotiation::Legacy },
            known: None,
            offers: Notify::new(),
            roots: watch::channel(vec![root]).0,
        }
    }
}

impl Surroundings {
    /// With the program that runs us, which answers for servers of its own.
    #[must_use]
    pub fn with(self, program: Option<Program>) -> Surroundings {
        Surroundings { program, ..self }
    }
}

/// See the module. Dropping it ends them.
pub struct Servers {
    around: Arc<Surroundings>,
    all: Mutex<All>,
    known: Known,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running: Vec<String> = self.running().iter().map(|server| server.definition.name.clone()).collect();
        f.debug_struct("Servers").field("running", &running).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct All {
    running: Vec<Arc<Server>>,
    /// Those that may not run, and why.
    off: Vec<(Definition, String)>,
    /// What the files say.
    said: (Vec<Definition>, Vec<(Definition, String)>),
    /// What was given in the course of the session; it counts before what the files say.
    given: Vec<Definition>,
    /// What was switched off in this session.
    switched: BTreeSet<String>,
}

/// What a name of a tool stands for.
pub enum Named {
    Tool(Arc<Tool>),
    /// Its server is still starting, so that nobody can tell.
    Later,
}

impl All {
    fn knows(&self, name: &str) -> bool {
        let running = self.running.iter().map(|server| &server.definition);
        running.chain(self.off.iter().map(|(definition, _)| definition)).any(|definition| definition.name == name)
    }
}

impl Servers {
    pub fn new(around: Surroundings) -> Servers {
        Servers { known: Known::new(around.known.clone()), around: Arc::new(around), all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> Vec<Arc<Server>> {
        self.all().running.clone()
    }

    /// Starts those that are new, and ends those that are not wanted any longer. Waits for none of them.
    pub fn keep(&self, wanted: Vec<Definition>, off: Vec<(Definition, String)>) {
        let mut all = self.all();
        all.said = (wanted, off);
        self.follow(&mut all);
    }

    /// Adds servers for this session in the place of those that were added before. Returns the names that are new, and
    /// those that are gone.
    pub fn give(&self, given: Vec<Definition>) -> (Vec<String>, Vec<String>) {
        let mut all = self.all();
        let names = |of: &[Definition]| of.iter().map(|one| one.name.clone()).collect::<BTreeSet<String>>();
        let before = names(&std::mem::replace(&mut all.given, given));
        let now = names(&all.given);
        self.follow(&mut all);
        (now.difference(&before).cloned().collect(), before.difference(&now).cloned().collect())
    }

    /// Switches a server on or off for this session.
    ///
    /// # Errors
    /// There is no such server.
    pub fn switch(&self, name: &str, on: bool) -> Result<(), String> {
        let mut all = self.all();
        if !all.knows(name) {
            return Err(format!("there is no MCP server {name:?}"));
        }
        match on {
            true => all.switched.remove(name),
            false => all.switched.insert(name.to_owned()),
        };
        self.follow(&mut all);
        Ok(())
    }

    /// Ends a connection, and begins another one. Returns once it is there, or is not going to be.
    ///
    /// # Errors
    /// There is no such server, or it does not run.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = {
            let mut all = self.all();
            if !all.knows(name) {
                return Err(format!("there is no MCP server {name:?}"));
            }
            all.switched.remove(name);
            all.running.retain(|server| server.definition.name != name);
            self.follow(&mut all);
            all.running.iter().find(|server| server.definition.name == name).cloned()
        };
        let Some(server) = server else { return Err(format!("the MCP server {name} may not run")) };
        match server.settled().await {
            State::Ready => Ok(()),
            _ => Err(format!("the MCP server {name} is not there: {}", why(&server.status()))),
        }
    }

    /// Runs what is wanted now, and nothing else.
    fn follow(&self, all: &mut All) {
        let (mut wanted, mut off) = all.said.clone();
        let given = |name: &str| all.given.iter().any(|given| given.name == name);
        wanted.retain(|definition| !given(&definition.name));
        off.retain(|(definition, _)| !given(&definition.name));
        wanted.splice(0..0, all.given.iter().cloned());
        let (kept, switched): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|definition| !all.switched.contains(&definition.name));
        off.extend(switched.into_iter().map(|definition| (definition, "it was switched off".to_owned())));
        let mut before = std::mem::take(&mut all.running);
        let wanted = kept;
        for definition in wanted {
            let same = before.iter().position(|server| server.definition == definition);
            let server = match same {
                Some(at) => before.swap_remove(at),
                None => Arc::new(Server::start(definition, self.around.clone())),
            };
            all.running.push(server);
        }
        all.off = off;
        if !before.is_empty() {
            self.around.offers.notify_one();
        }
    }

    pub fn statuses(&self) -> Vec<Status> {
        let all = self.all();
        let off = all.off.iter().map(|(definition, why)| Status {
            definition: definition.clone(),
            state: State::Off,
            era: None,
            handshake: None,
            error: Some(why.clone()),
            fix: None,
            tail: String::new(),
            tools: Arc::new([]),
            prompts: 0,
            resources: 0,
            sent: 0,
            received: 0,
        });
        all.running.iter().map(|server| server.status()).chain(off).collect()
    }

    /// Waits until each is there, or is not going to be.
    pub async fn settled(&self) {
        let running = self.running();
        join_all(running.iter().map(|server| server.settled())).await;
    }

    /// The tools that fit the words best.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Found> {
        let running = self.running();
        let tools: Vec<Arc<Tool>> =
            running.iter().flat_map(|server| server.current.borrow().offer.tools.to_vec()).collect();
        catalog::search(&tools, query, limit)
    }

    /// What servers say of how to use them: name and text of those that offer one of the tools.
    pub fn instructions(&self, found: &[Found]) -> Vec<(String, String)> {
        let offers = |server: &Arc<Server>| {
            let current = server.current.borrow();
            found.iter().any(|found| current.offer.tools.iter().any(|tool| Arc::ptr_eq(tool, &found.tool)))
        };
        let running = self.running().into_iter().filter(offers);
        let said = running.map(|server| (server.definition.name.clone(), server.instructions()));
        said.filter(|(_, text)| !text.trim().is_empty()).collect()
    }

    fn owner(&self, name: &str) -> Option<(Arc<Server>, Option<Arc<Tool>>)> {
        let running = self.running();
        for server in &running {
            let tool = server.current.borrow().offer.tools.iter().find(|tool| tool.name == name).cloned();
            if let Some(tool) = tool {
                return Some((server.clone(), Some(tool)));
            }
        }
        let of = |server: &&Arc<Server>| name.starts_with(&format!("mcp__{}__", server.definition.name));
        running.iter().filter(of).max_by_key(|server| server.definition.name.len()).map(|server| (server.clone(), None))
    }

    /// The tool of a name.
    ///
    /// # Errors
    /// No server has it; for the model, with what there is.
    pub fn find(&self, name: &str) -> Result<Named, String> {
        match self.owner(name) {
            Some((_, Some(tool))) => Ok(Named::Tool(tool)),
            Some((server, None)) => {
                let status = server.status();
                match status.state {
                    State::Starting => Ok(Named::Later),
                    State::Ready => {
                        let names: Vec<&str> = status.tools.iter().map(|tool| tool.name.as_str()).collect();
                        let near = nearest(name, names).map(|near| format!(" Did you mean `{near}`?"));
                        Err(format!("Unknown tool `{name}`.{} ToolSearch finds all tools.", near.unwrap_or_default()))
                    }
                    _ => Err(format!("The MCP server {} is not there: {}.", status.definition.name, why(&status))),
                }
            }
            None => {
                let all = self.all();
                let of =
                    |(definition, _): &&(Definition, String)| name.starts_with(&format!("mcp__{}__", definition.name));
                if let Some((definition, why)) = all.off.iter().find(of) {
                    return Err(format!("The MCP server {} does not run: {why}.", definition.name));
                }
                Err(format!("There is no MCP tool `{name}`. ToolSearch finds what there is."))
            }
        }
    }

    /// Whether a name is that of a tool of a server that is still starting.
    pub fn is_starting(&self, name: &str) -> bool {
        catalog::is_tool(name) && matches!(self.find(name), Ok(Named::Later))
    }

    /// Waits for the server of a tool to be there: it may be starting, for the first time or again.
    pub async fn reached(&self, name: &str) {
        if let Some((server, _)) = self.owner(name) {
            server.settled().await;
        }
    }

    /// How a tool describes itself in another way than when it last ran; None where it does not.
    pub fn change(&self, tool: &Tool) -> Option<String> {
        let (server, _) = self.owner(&tool.name)?;
        self.known.change(&server.definition, tool)
    }

    /// Calls a tool. The user let it run as it describes itself now.
    ///
    /// # Errors
    /// See `Fault`. A failure of the tool itself is in the answer.
    pub async fn call(&self, tool: &Tool, arguments: Map<String, Value>, caller: &dyn Caller) -> Result<Value, Fault> {
        let Some((server, _)) = self.owner(&tool.name) else {
            return Err(Fault::Closed("its server does not run any longer".to_owned()));
        };
        self.known.keep(&server.definition, tool);
        let idle = if matches!(server.definition.way, Way::Program { .. }) { IDLE.0 } else { IDLE.1 };
        let total = server.definition.timeout.unwrap_or(self.around.call);
        server.call(tool, arguments, Limits { idle: idle.min(total), total }, caller).await
    }

    /// Tells servers which folders the session works in.
    pub fn tell_roots(&self, roots: Vec<PathBuf>) {
        self.around.roots.send_if_modified(|told| {
            let differs = *told != roots;
            *told = roots;
            differs
        });
    }

    /// The name of the server that has a tool.
    pub fn server_of(&self, tool: &Tool) -> String {
        self.owner(&tool.name).map(|(server, _)| server.definition.name.clone()).unwrap_or_default()
    }

    /// Waits until what some server offers may be another.
    pub async fn changed(&self) {
        self.around.offers.notified().await;
    }

    /// All prompts, each with the name of its server.
    pub fn prompts(&self) -> Vec<(String, Prompt)> {
        let of = |server: &Arc<Server>| {
            let name = server.definition.name.clone();
            let prompts = server.current.borrow().offer.prompts.to_vec();
            prompts.into_iter().map(move |prompt| (name.clone(), prompt))
        };
        self.running().iter().flat_map(of).collect()
    }

    fn prompt_of(&self, name: &str) -> Option<(Arc<Server>, Prompt)> {
        self.running().into_iter().find_map(|server| {
            let prompt = server.current.borrow().offer.prompts.iter().find(|prompt| prompt.name == name).cloned();
            Some((server, prompt?))
        })
    }

    /// Why a prompt does not take these words; none where it does, or nobody has it.
    pub fn refuses(&self, name: &str, words: &str) -> Option<String> {
        self.prompt_of(name)?.1.filled(words).err()
    }

    /// What a prompt comes to with these words behind its name.
    ///
    /// # Errors
    /// Why it cannot be had, for people.
    pub async fn prompt(&self, name: &str, words: &str) -> Result<Value, String> {
        self.reached(name).await;
        let Some((server, prompt)) = self.prompt_of(name) else {
            return Err(format!("no MCP server has the prompt `{name}` now"));
        };
        let params = Map::from_iter([
            ("name".to_owned(), Value::from(prompt.own.as_str())),
            ("arguments".to_owned(), Value::Object(prompt.filled(words)?)),
        ]);
        let got = server.request(("prompts/get", params), &[], Limits::all(FETCH), &Plain).await;
        got.map_err(|fault| fault.to_string())
    }

    /// The resources that a text names as `@server:uri` or `@"server:uri"`, each once: the server and the address.
    pub fn mentioned(&self, text: &str) -> Vec<(String, String)> {
        let running = self.running();
        let is_server = |name: &str| running.iter().any(|server| server.definition.name == name);
        let mut found = Vec::new();
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let begins = c == '@' && (before.is_whitespace() || before == '(');
            before = c;
            if !begins {
                continue;
            }
            let rest = &text[at + 1..];
            let word = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => {
                    let word = rest.split(char::is_whitespace).next().unwrap_or_default();
                    word.trim_end_matches(['.', ',', ':', ';', '!', '?', ')'])
                }
            };
            let Some((server, uri)) = word.split_once(':').filter(|(server, uri)| is_server(server) && !uri.is_empty())
            else {
                continue;
            };
            let named = (server.to_owned(), uri.to_owned());
            if found.len() < MENTIONS && !found.contains(&named) {
                found.push(named);
            }
        }
        found
    }

    /// All resources, each with the name of its server.
    pub fn resources(&self) -> Vec<(String, Resource)> {
        let of = |server: &Arc<Server>| {
            let name = server.definition.name.clone();
            let resources = server.current.borrow().offer.resources.to_vec();
            resources.into_iter().map(move |resource| (name.clone(), resource))
        };
        self.running().iter().flat_map(of).collect()
    }

    /// Reads a resource of a server.
    ///
    /// # Errors
    /// Why it cannot be read, for people.
    pub async fn read(&self, server: &str, uri: &str) -> Result<Value, String> {
        let running = self.running();
        let Some(server) = running.iter().find(|running| running.definition.name == server) else {
            return Err(format!("the MCP server {server} does not run"));
        };
        server.settled().await;
        let params = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
        let got = server.request(("resources/read", params), &[], Limits::all(FETCH), &Plain).await;
        got.map_err(|fault| fault.to_string())
    }

    /// Servers that offer nothing now, each with the reason.
    pub fn missing(&self) -> Vec<String> {
        let statuses = self.statuses().into_iter().filter(|status| status.state != State::Ready);
        statuses.map(|status| format!("{}: {}", status.definition.name, why(&status))).collect()
    }
}

fn why(status: &Status) -> String {
    let state = match status.state {
        State::Starting => "it is still starting",
        State::Ready => "it runs",
        State::Login | State::Failed | State::Off => "",
    };
    match &status.error {
        Some(error) => error.clone(),
        None => state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::definition::Scope;
    use super::*;

    /// Tells of a change with each call, and lists another tool from then on.
    const SERVER: &str = r#"
        tool=before
        say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
        while IFS= read -r line; do
          id=0; [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
          case $line in
            *'"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
            *'"tools/list"'*) say "{\"tools\":[{\"name\":\"$tool\"}]}" ;;
            *'"tools/call"'*) tool=after; say '{"content":[]}'
              echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}' ;;
          esac
        done"#;

    #[tokio::test]
    async fn a_list_that_changed_takes_the_place_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let around = Surroundings::new(folder.path().to_owned(), Default::default(), Sandbox::off(), |_| None);
        let servers = Servers::new(around);
        let entry = json!({"command": "bash", "args": ["-c", SERVER]});
        let read = Definition::read("srv", &entry, (Scope::User, "f"), &|_| None, &mut |_| ());
        servers.keep(vec![read.unwrap().unwrap()], Vec::new());
        servers.settled().await;
        let Named::Tool(tool) = servers.find("mcp__srv__before").unwrap() else { panic!("it has settled") };
        servers.call(&tool, Map::new(), &Plain).await.unwrap();
        let mut current = servers.running()[0].current.clone();
        let changed = current.wait_for(|current| current.offer.tools.iter().any(|tool| tool.own == "after"));
        let patience = Duration::from_secs(60);
        tokio::time::timeout(patience, changed).await.expect("the new list is never seen").unwrap();
        assert!(servers.find("mcp__srv__before").is_err());
        // What is no longer wanted is gone at once.
        servers.keep(Vec::new(), Vec::new());
        assert!(servers.statuses().is_empty());
    }
}
