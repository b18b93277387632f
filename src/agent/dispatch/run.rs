//! Runs calls that may run, side by side, and shows what they write meanwhile.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Done, Ready};
use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::message::ToolResult;
use crate::permission::{Access, Disk, QUIET_GIT, Query, Sight};
use crate::protocol::{Delta, Event, Item};
use crate::session;
use crate::tools;

impl Agent {
    /// What a search may show: the files that the rules keep back stay out of its results.
    fn sight(&self, ready: &Ready) -> Sight {
        let places = self.places();
        let query = Query {
            tool: &ready.call.name,
            access: &ready.access,
            mode: self.mode(),
            rules: &self.policy.rules,
            places: &places,
        };
        Sight::of(&query, &Disk)
    }

    /// Settings for a line that only reads, or in which git passed because it does: git must not run what a repository
    /// names. None for any other call, so that hooks and filters work where the user allowed a change.
    fn quiet(&self, ready: &Ready) -> Option<tools::Settings> {
        let reads = ready.reads && matches!(ready.access, Access::Shell { .. });
        (ready.quiet_git || reads).then_some(())?;
        let mut settings = (*self.settings.tools).clone();
        settings.env.extend(QUIET_GIT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Some(settings)
    }

    pub(super) async fn run_all(
        &mut self,
        ready: Vec<Ready>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Vec<Done>, session::Error> {
        // The runs own what they look at, so that the session can be written while they continue.
        let context = self.conversation.context();
        let (dirs, seen, todos) = (self.dirs(), context.seen().clone(), context.todos().to_vec());
        let plan = self.open_plan();
        let (words, mut heard) = mpsc::unbounded_channel();
        let (store, settings, mut host, user_home) = (
            self.conversation.session.store().clone(),
            self.settings.tools.clone(),
            self.host(mailbox, cancel),
            self.settings.user_home.clone(),
        );
        host.words = Some(self.family.above.as_ref().map_or_else(|| words.clone(), |above| above.words.clone()));
        host.launcher = self.launcher(words);
        let ready: Vec<_> = ready
            .into_iter()
            .map(|ready| {
                let sight = self.sight(&ready);
                let quiet = self.quiet(&ready);
                (ready, sight, quiet)
            })
            .collect();
        let runs = ready.into_iter().map(|(Ready { call, tool, target, .. }, sight, quiet)| {
            let (dirs, seen, todos, store, settings, host, user_home) =
                (&dirs, &seen, todos.as_slice(), &store, &*settings, &host, user_home.as_deref());
            let plan = plan.as_deref();
            async move {
                let settings = quiet.as_ref().unwrap_or(settings);
                let title = tool.title(&call.input);
                mailbox
                    .emit(Event::Item(Item::CallStarted { call: call.id.clone(), tool: call.name.clone(), title }))
                    .await;
                let (live, mut output) = mpsc::unbounded_channel();
                let context = tools::Context {
                    call: call.id.as_str(),
                    dirs,
                    target: target.as_deref(),
                    sight: &sight,
                    home: user_home,
                    seen,
                    todos,
                    plan,
                    settings,
                    store,
                    host,
                    live,
                    cancel,
                };
                let running = AssertUnwindSafe(tool.run(call.input.clone(), &context)).catch_unwind();
                tokio::pin!(running);
                let finished = loop {
                    tokio::select! {
                        finished = &mut running => break finished,
                        Some(text) = output.recv() => {
                            mailbox.emit(Event::Delta(Delta::ToolOutput { call: call.id.clone(), text })).await;
                        }
                    }
                };
                let output = finished.unwrap_or_else(|_| {
                    tools::Output::error("The tool crashed. This is a bug in cocode. Try another approach.")
                });
                let output = tools::limit::apply(output, settings, store, call.id.as_str());
                let result = ToolResult {
                    id: call.id.clone(),
                    outcome: output.outcome,
                    content: output.content,
                    display: output.display,
                    effects: output.effects,
                };
                Done { result, after: output.after }
            }
        });
        let all = join_all(runs);
        tokio::pin!(all);
        loop {
            tokio::select! {
                biased;
                results = &mut all => {
                    while let Ok(word) = heard.try_recv() {
                        self.take_word(word, mailbox).await?;
                    }
                    self.record_searches(&host)?;
                    return Ok(results);
                }
                () = mailbox.changed() => self.take_mode(mailbox).await?,
                Some(word) = heard.recv() => self.take_word(word, mailbox).await?,
            }
        }
    }
}
