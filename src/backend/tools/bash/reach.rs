//! What a command may reach: its policy, and the way to the network that it gets with it.

use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Duration, Instant};

use crate::sandbox::proxy::env::Loopback;
use crate::sandbox::proxy::{Contact, Knock, Pass, Verdict};
use crate::sandbox::{Network, Policy};
use crate::tools::{Context, Host, VerdictFuture};

/// What one command runs with.
pub(super) struct Reach<'a> {
    pub(super) policy: Policy,
    pub(super) variables: Vec<(String, String)>,
    command: &'a str,
    context: &'a Context,
    /// Who decides about connections.
    pub(super) host: Arc<dyn Host>,
    pass: Option<Pass>,
    /// Connections that wait for an answer, and since when there are any.
    open: FuturesUnordered<Answering<'a>>,
    since: Option<Instant>,
    /// How long people were waited for.
    pub(super) waited: Duration,
    pub(super) denied: Vec<Contact>,
}

type Answering<'a> = std::pin::Pin<Box<dyn Future<Output = Option<Contact>> + Send + 'a>>;

impl<'a> Reach<'a> {
    /// # Errors
    /// There is no proxy for a command that has no other way to the network.
    pub(super) async fn of(command: &'a str, context: &'a Context) -> io::Result<Reach<'a>> {
        let mut policy = context.permit.policy().cloned().unwrap_or_else(Policy::free);
        let (mut pass, mut variables) = (None, Vec::new());
        if let Network::Proxy { port } = &mut policy.network {
            let own = context.gateway.pass().await?;
            *port = own.port();
            variables = context.gateway.variables(&own, Loopback::Shared);
            pass = Some(own);
        }
        let (open, waited) = (FuturesUnordered::new(), Duration::ZERO);
        let host = context.host.clone();
        Ok(Reach { policy, variables, command, context, host, pass, open, since: None, waited, denied: Vec::new() })
    }

    /// Whether somebody is waited for.
    pub(super) fn asks(&self) -> bool {
        !self.open.is_empty()
    }

    /// Deals with the next connection, or the next answer about one. May be dropped while it waits.
    pub(super) async fn next(&mut self) {
        let knock = async {
            match &mut self.pass {
                Some(pass) => pass.knock().await,
                None => None,
            }
        };
        tokio::select! {
            Some(denied) = self.open.next() => {
                self.denied.extend(denied.filter(|contact| !self.denied.contains(contact)));
                if self.open.is_empty() {
                    self.waited += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
                }
            }
            Some(Knock { contact, answer }) = knock => {
                let verdict: VerdictFuture =
                    self.host.connects(&self.context.call, self.command, contact.clone());
                self.since.get_or_insert_with(Instant::now);
                self.open.push(Box::pin(async move {
                    let verdict = verdict.await;
                    let denied = (verdict != Verdict::Open).then_some(contact);
                    // The program may have given up.
                    let _ = answer.send(verdict);
                    denied
                }));
            }
            else => std::future::pending().await,
        }
    }
}
