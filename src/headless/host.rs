//! The program at the other end of the lines: what it was asked, and what it asked for, each by its id.

use std::collections::HashMap;
use std::io;

use serde_json::{Value, json};

use super::control::Shape;
use super::{Run, Talk, answers, lines, permits};
use crate::commands::ListKind;
use crate::engine::Handle;
use crate::protocol::report::Report;
use crate::protocol::{Answer, Ask, AskId, Event, Item, Listed, Op, Question};
use crate::stdx::outside::{self, Call};

/// See the module.
#[derive(Default)]
pub(super) struct Host {
    pub(super) talk: Talk,
    /// What it was asked and has not answered, by the id of the request.
    open: HashMap<String, Open>,
    asked: u64,
    /// What it asked for and the engine has not done.
    served: Vec<Served>,
    /// What was found for the next of them that is done.
    found: Vec<Found>,
    /// No more answers come in.
    gone: bool,
}

enum Open {
    /// With the call that it is about.
    Ask(AskId, Box<Question>, String),
    Call(AskId),
}

/// What a request waits for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    Done(Op),
    Listed(ListKind),
}

/// A request under way.
struct Served {
    id: String,
    body: Value,
    /// The next one first.
    wanted: Vec<Wanted>,
    shape: Shape,
    found: Vec<Found>,
}

/// What the engine told for a request.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Report(Box<Report>),
    Listed(Box<Listed>),
    Restored(Box<Item>),
    Failed(String),
}

impl Host {
    pub(super) fn new(talk: Talk) -> Host {
        Host { talk, ..Host::default() }
    }

    /// Whether a request waits for the engine.
    pub(super) fn serves(&self) -> bool {
        !self.served.is_empty()
    }

    fn open(&mut self, open: Open, request: Value) -> Value {
        self.asked += 1;
        let id = format!("cocode_{}", self.asked);
        let line = json!({ "type": "control_request", "request_id": id, "request": request });
        self.open.insert(id, open);
        line
    }

    /// The line that asks about a call, or what to answer without it.
    pub(super) fn ask(&mut self, ask: Ask, call: impl FnOnce(&Question) -> String) -> Result<Value, Box<Ask>> {
        if self.gone || !self.talk.permits {
            return Err(Box::new(ask));
        }
        let Some(request) = permits::request(&ask, call) else { return Err(Box::new(ask)) };
        let call = request["tool_use_id"].as_str().unwrap_or_default().to_owned();
        Ok(self.open(Open::Ask(ask.id, Box::new(ask.question), call), request))
    }

    fn call(&mut self, id: AskId, call: Call) -> Result<Value, Box<Op>> {
        if self.gone {
            let answer = Err("standard input was closed".to_owned());
            return Err(Box::new(Op::Return { id, answer }));
        }
        let request = match call {
            Call::Hook { hook, input, call } => {
                let mut request = json!({ "subtype": "hook_callback", "callback_id": hook, "input": input });
                if let Some(call) = call {
                    request["tool_use_id"] = call.into();
                }
                request
            }
            Call::Message { server, message } => {
                json!({ "subtype": "mcp_message", "server_name": server, "message": message })
            }
        };
        Ok(self.open(Open::Call(id), request))
    }

    /// The line that withdraws what was asked.
    fn closed(&mut self, id: AskId) -> Option<Value> {
        let is = |open: &Open| matches!(open, Open::Ask(of, ..) | Open::Call(of) if *of == id);
        let request = self.open.iter().find(|(_, open)| is(open)).map(|(request, _)| request.clone())?;
        self.open.remove(&request);
        Some(json!({ "type": "control_cancel_request", "request_id": request }))
    }

    /// What becomes of an answer; a second one, or one to nothing, is passed over.
    pub(super) fn answered(&mut self, request: &str, answer: outside::Answer) -> Vec<(Op, Option<Value>)> {
        match self.open.remove(request) {
            None => Vec::new(),
            Some(Open::Call(id)) => vec![(Op::Return { id, answer }, None)],
            Some(Open::Ask(id, question, call)) => permits::answered(id, (&question, &call), answer),
        }
    }

    /// Nothing more comes in: who waits for the program is told.
    pub(super) fn left(&mut self) -> Vec<Op> {
        self.gone = true;
        let told = "standard input was closed".to_owned();
        let settle = |(_, open): (String, Open)| match open {
            Open::Ask(id, ..) => Op::Answer { id, answer: Answer::Nobody { told: told.clone() } },
            Open::Call(id) => Op::Return { id, answer: Err(told.clone()) },
        };
        self.open.drain().map(settle).collect()
    }

    /// Waits for what a request needs before it is answered.
    pub(super) fn serve(&mut self, id: &str, body: &Value, wanted: Vec<Wanted>, shape: Shape) {
        self.served.push(Served { id: id.to_owned(), body: body.clone(), wanted, shape, found: Vec::new() });
    }

    /// Takes what the engine says if it is for a request; `busy` says that it may be for what runs.
    fn take(&mut self, event: Event, busy: Busy) -> Result<Option<Served>, Box<Event>> {
        if self.served.is_empty() {
            return Err(Box::new(event));
        }
        let (found, wanted) = match event {
            Event::Report(report) if busy != Busy::Reporting => (Found::Report(Box::new(report)), None),
            Event::Error { text, restore } => {
                let of = |op: &Op| match op {
                    Op::Command { name, args } => restore.as_deref() == Some(format!("/{name} {args}").trim_end()),
                    _ => false,
                };
                let meant =
                    self.served.iter().any(|served| matches!(served.wanted.first(), Some(Wanted::Done(op)) if of(op)));
                if busy != Busy::Not && !meant {
                    return Err(Box::new(Event::Error { text, restore }));
                }
                (Found::Failed(text), None)
            }
            Event::Item(item @ Item::FilesRestored { .. }) if busy == Busy::Not => {
                (Found::Restored(Box::new(item)), None)
            }
            // What a command says to people while it does what was asked.
            Event::Notice { .. } if busy == Busy::Not => return Ok(None),
            Event::Listed(listed) => {
                let kind = match &listed {
                    Listed::Prompts(_) => ListKind::Prompts,
                    Listed::Changes(_) => ListKind::Changes,
                    _ => return Err(Box::new(Event::Listed(listed))),
                };
                (Found::Listed(Box::new(listed)), Some(Wanted::Listed(kind)))
            }
            Event::Done { op } => {
                let wanted = Wanted::Done(op);
                let Some(at) = self.at(&wanted) else {
                    let Wanted::Done(op) = wanted else { return Ok(None) };
                    return Err(Box::new(Event::Done { op }));
                };
                let found = std::mem::take(&mut self.found);
                self.served[at].found.extend(found);
                return Ok(self.step(at));
            }
            event => return Err(Box::new(event)),
        };
        match wanted {
            None => {
                self.found.push(found);
                Ok(None)
            }
            Some(wanted) => match self.at(&wanted) {
                Some(at) => {
                    self.served[at].found.push(found);
                    Ok(self.step(at))
                }
                None => Ok(None),
            },
        }
    }

    fn at(&self, wanted: &Wanted) -> Option<usize> {
        self.served.iter().position(|served| served.wanted.first() == Some(wanted))
    }

    /// The request once it has all that it wants.
    fn step(&mut self, at: usize) -> Option<Served> {
        self.served[at].wanted.remove(0);
        self.served[at].wanted.is_empty().then(|| self.served.remove(at))
    }
}

/// What runs, as far as events may be about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    Not,
    Turn,
    /// A command that tells something.
    Reporting,
}

/// Lets the program at the other end hear what is for it; what is left is for the run.
pub(super) async fn hear(run: &mut Run<'_>, handle: &Handle, event: Event) -> io::Result<Option<Event>> {
    match event {
        Event::Ask(ask) => {
            let tools = &run.tools;
            let told = run.host.ask(ask, |question| permits::call_of(question, tools));
            match told {
                Ok(line) => {
                    run.state("requires_action")?;
                    run.line(&line)?;
                }
                Err(ask) => return Ok(Some(Event::Ask(*ask))),
            }
        }
        Event::Call { id, call } => match run.host.call(id, call) {
            Ok(line) => run.line(&line)?,
            // An engine that is gone tells so itself.
            Err(op) => drop(handle.ops.send(*op).await),
        },
        Event::AskClosed { id } => {
            if let Some(line) = run.host.closed(id) {
                run.line(&line)?;
            }
        }
        event => {
            let busy = run.busy;
            match run.host.take(event, busy) {
                Err(event) => return Ok(Some(*event)),
                Ok(None) => {}
                Ok(Some(Served { id, body, shape, found, .. })) => match answers::answer(run, shape, &body, &found) {
                    answers::Answered::Now(answer) => {
                        if let (Ok(_), Some("rename_session"), Some(title)) =
                            (&answer, body["subtype"].as_str(), body["title"].as_str())
                        {
                            run.mirrored(|mirror| mirror.rename(title))?;
                        }
                        run.line(&lines::control(&id, answer))?;
                    }
                    answers::Answered::After(op, shape) => {
                        let wanted = match &op {
                            Op::List { what } => Wanted::Listed(*what),
                            op => Wanted::Done(op.clone()),
                        };
                        run.host.served.push(Served { id, body, wanted: vec![wanted], shape, found });
                        let _ = handle.ops.send(op).await;
                    }
                },
            }
        }
    }
    Ok(None)
}
