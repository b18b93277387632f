//! The servers of the Model Context Protocol of a session. Whether there are any is settled when it opens, so that what its
//! requests begin with never changes; which of them run follows the settings.

use std::path::Path;
use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::doctor::Here;
use super::reports::Look;
use super::{Setup, skills};
use crate::agent::mailbox::Mailbox;
use crate::commands::{Catalog, Skill};
use crate::config::paths::Paths;
use crate::config::{self, Loaded};
use crate::mcp::{self, Prompt, Resource, Servers, State, Status, Surroundings};
use crate::message::tokens;
use crate::protocol::report::{Finding, Report, ServerRow, ServerState, ServersChanged, State as Mark};
use crate::protocol::{Event, Listed, ResourceRow, ServerChange};
use crate::sandbox::Sandbox;
use crate::tools::Toolbox;

/// What tools were when they ran, in our own folder.
const KNOWN: &str = "mcp-tools";

/// The servers of a session, none started yet; None where none is set up.
pub(super) fn open(setup: &Setup, loaded: &Loaded) -> Option<Arc<Servers>> {
    let here = Here { env: &setup.env, paths: &setup.paths, cwd: &setup.project };
    let program = setup.host.as_ref().map(|host| host.program.clone());
    let around = || surroundings(here, loaded, setup.commands.clone()).with(program);
    (!loaded.servers.is_empty()).then(|| Arc::new(Servers::new(around())))
}

fn surroundings(here: Here<'_>, loaded: &Loaded, sandbox: Sandbox) -> Surroundings {
    let config = &loaded.config;
    let variable = |name: &str| config.env.get(name).cloned().or_else(|| here.env.get(name).map(str::to_owned));
    let variables = (config.env.clone(), config.secret_env());
    let around = Surroundings::new(here.cwd.to_path_buf(), variables, sandbox, variable);
    around.remembering(here.paths.own_state().join(KNOWN))
}

/// Starts what may run and does not yet, and ends what may not. Waits for nothing.
pub(super) fn follow(servers: Option<&Arc<Servers>>, project: &Path, loaded: &Loaded) {
    if let Some(servers) = servers {
        let added = loaded.config.permissions.additional_directories.iter();
        let roots = std::iter::once(project.to_path_buf()).chain(added.map(|folder| project.join(folder))).collect();
        let config::Servers { wanted, off, .. } = loaded.servers.clone();
        servers.tell_roots(roots);
        servers.keep(wanted, off);
    }
}

/// The prompts of servers as commands.
pub(super) fn prompts(servers: &Servers) -> Vec<Skill> {
    let skill =
        |(server, prompt): &(String, Prompt)| Skill::served(&prompt.name, &prompt.description, prompt.hint(), server);
    servers.prompts().iter().map(skill).collect()
}

/// The resources of servers as they are mentioned.
fn resources(servers: &Servers) -> Vec<ResourceRow> {
    let row = |(server, Resource { uri, about }): (String, Resource)| ResourceRow {
        mention: format!("{server}:{uri}"),
        about,
    };
    servers.resources().into_iter().map(row).collect()
}

/// Offers prompts of servers as commands, and tells of their resources, as they come and go.
pub(super) fn offer(
    servers: Option<&Arc<Servers>>,
    catalog: &Arc<Catalog>,
    mailbox: &Arc<Mailbox>,
) -> Option<AbortOnDropHandle<()>> {
    let (servers, catalog, mailbox) = (servers?.clone(), catalog.clone(), mailbox.clone());
    let task = tokio::spawn(async move {
        let mut told = Vec::new();
        loop {
            servers.changed().await;
            if catalog.take_served(prompts(&servers)) {
                skills::publish(&catalog, &mailbox).await;
            }
            let now = resources(&servers);
            if now != told {
                told.clone_from(&now);
                mailbox.emit(Event::Listed(Listed::Resources(now))).await;
            }
        }
    });
    Some(AbortOnDropHandle::new(task))
}

/// With the pair of tools that reaches the servers.
pub(super) fn reaching(toolbox: Toolbox, servers: Option<&Arc<Servers>>, loaded: &Loaded) -> Toolbox {
    let Some(servers) = servers else { return toolbox };
    let mut names: Vec<&str> = loaded.servers.all().map(|definition| definition.name.as_str()).collect();
    names.sort_unstable();
    toolbox.with_servers(servers, &names)
}

/// What is known of each server now.
pub(super) fn rows(servers: Option<&Arc<Servers>>, paths: &Paths) -> Vec<ServerRow> {
    let statuses = servers.map(|servers| servers.statuses()).into_iter().flatten();
    statuses.map(row).map(|row| ServerRow { place: paths.tilde(&row.place), ..row }).collect()
}

fn row(status: Status) -> ServerRow {
    let Status { definition, state, era, handshake, error, fix, tail, tools, prompts, resources, sent, received } =
        status;
    let tokens = tools.iter().map(|tool| tokens::text(&format!("{} {} {}", tool.name, tool.description, tool.schema)));
    ServerRow {
        state: match state {
            State::Starting => ServerState::Pending,
            State::Ready => ServerState::Connected,
            State::Login => ServerState::NeedsAuth,
            State::Failed => ServerState::Failed,
            State::Off => ServerState::Disabled,
        },
        kind: definition.way.kind().to_owned(),
        scope: definition.scope.name().to_owned(),
        place: definition.place,
        line: definition.told,
        name: definition.name,
        version: era.map(|(era, cause)| (era.version().to_owned(), cause)),
        handshake_ms: handshake.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        error,
        fix,
        tail,
        tools: tools.len() as u64,
        prompts: prompts as u64,
        resources: resources as u64,
        offers: tools.iter().map(|tool| tool.own.clone()).collect(),
        tokens: tokens.sum(),
        sent,
        received,
    }
}

/// Starts the servers of a folder, those that may run, and says what became of each.
///
/// # Errors
/// No runtime can be made.
pub fn probe(here: Here<'_>, loaded: &Loaded) -> std::io::Result<Vec<ServerRow>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        let sandbox = Sandbox::of_this_program(loaded.config.sandbox.enabled);
        let servers = Arc::new(Servers::new(surroundings(here, loaded, sandbox)));
        follow(Some(&servers), here.cwd, loaded);
        servers.settled().await;
        rows(Some(&servers), here.paths)
    }))
}

/// What the doctor says of servers: none is started.
pub(super) fn findings(loaded: &Loaded) -> Vec<Finding> {
    let finding = |state, text| Finding { area: "mcp".into(), state, text };
    let config::Servers { wanted, off, .. } = &loaded.servers;
    let mut findings = Vec::new();
    if !wanted.is_empty() {
        let names: Vec<&str> = wanted.iter().map(|definition| definition.name.as_str()).collect();
        let text = format!("servers that start: {} (`cocode mcp list` tries them)", names.join(", "));
        findings.push(finding(Mark::Good, text));
    }
    let off = off.iter().map(|(definition, why)| format!("server {} does not start: {why}", definition.name));
    findings.extend(off.map(|text| finding(Mark::Limited, text)));
    findings
}

impl Look<'_> {
    /// Changes the servers of this session, and tells what came of it.
    pub(super) async fn servers(&self, change: &ServerChange, mailbox: &Mailbox) {
        let servers = self.agent.servers();
        let none = || "this session began without MCP servers, so none can be added".to_owned();
        let mut told = ServersChanged::default();
        let (name, done) = match (change, servers) {
            (ServerChange::Given { servers: given }, servers) => {
                let mut definitions = Vec::new();
                for (name, entry) in given.as_object().into_iter().flatten() {
                    let variable = |name: &str| self.setup.env.get(name).map(str::to_owned);
                    let place = (mcp::Scope::Flag, "the program that runs cocode");
                    match mcp::Definition::read(name, entry, place, &variable, &mut |_| ()) {
                        Ok(_) if servers.is_none() => told.errors.push((name.clone(), none())),
                        Ok(definition) => definitions.extend(definition),
                        Err(why) => told.errors.push((name.clone(), why)),
                    }
                }
                if let Some(servers) = servers {
                    (told.added, told.removed) = servers.give(definitions);
                }
                (None, Ok(()))
            }
            (ServerChange::Reconnect { name } | ServerChange::Switch { name, .. }, None) => {
                (Some(name), Err("this session has no MCP servers".to_owned()))
            }
            (ServerChange::Reconnect { name }, Some(servers)) => (Some(name), servers.reconnect(name).await),
            (ServerChange::Switch { name, on }, Some(servers)) => (Some(name), servers.switch(name, *on)),
        };
        told.errors.extend(name.cloned().zip(done.err()));
        mailbox.emit(Event::Report(Report::ServersChanged(told))).await;
    }
}
