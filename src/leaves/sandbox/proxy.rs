//! The one way from a confined command to the network: a listener on loopback that speaks HTTP CONNECT, plain HTTP and
//! SOCKS5. It decides nothing about hosts: each connection knocks, and the holder of the command's pass answers. What
//! it enforces by itself is that a name leads to the public internet, or to an address that was allowed.

pub mod client;
mod door;
pub mod env;
mod head;
mod http;
mod socks;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

pub use self::door::{Addresses, Resolve, System};
use crate::stdx::host::Host;

/// The user name in the proxy's URL; the password is the pass.
const USER: &str = "cocode";

/// Where a command connects to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Contact {
    pub host: Host,
    pub port: u16,
    /// The name that led to the host, which is a private address.
    pub address_of: Option<String>,
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)?;
        self.address_of.as_ref().map_or(Ok(()), |name| write!(f, " (the address of {name})"))
    }
}

/// A connection that waits to be let through.
#[derive(Debug)]
pub struct Knock {
    pub contact: Contact,
    pub answer: oneshot::Sender<Verdict>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Open,
    /// Why not, in a few words for the program and the one who reads its output.
    Closed(String),
}

/// What a connection may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a client may take to say what it wants.
    pub head: Duration,
    /// How long a connection waits for an answer about its host.
    pub answer: Duration,
    /// How long connecting to one host may take, looking it up included.
    pub connect: Duration,
    /// Most connections that have not said what they want.
    pub unknown: usize,
    /// Most connections that were let in.
    pub known: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Duration::from_secs(10),
            answer: Duration::from_secs(120),
            connect: Duration::from_secs(30),
            unknown: 64,
            known: 256,
        }
    }
}

/// The way out for the commands of a session. Its clones share one listener, which is started with the first command that may
/// use it.
#[derive(Debug, Clone, Default)]
pub struct Gateway(Arc<(OnceCell<Proxy>, Surroundings)>);

/// What a session brings along.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The variables that name its own proxy.
    pub proxies: HashMap<String, String>,
    /// How its git calls ssh.
    pub ssh: Option<String>,
    /// What answers to `__connect`.
    pub program: PathBuf,
}

/// The variables that name a proxy, each in capitals; all are known in small letters, too.
pub const PROXIES: [&str; 4] = ["HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY", "NO_PROXY"];

impl Gateway {
    pub fn new(surroundings: Surroundings) -> Gateway {
        Gateway(Arc::new((OnceCell::new(), surroundings)))
    }

    /// A pass for one command.
    ///
    /// # Errors
    /// As `Proxy::start`.
    pub async fn pass(&self) -> io::Result<Pass> {
        let (proxy, Surroundings { proxies, .. }) = &*self.0;
        let start = || Proxy::start(Limits::default(), Box::new(System), |name| proxies.get(name).cloned());
        Ok(proxy.get_or_try_init(start).await?.pass())
    }

    /// The variables of a command with this pass.
    pub fn variables(&self, pass: &Pass, loopback: env::Loopback) -> Vec<(String, String)> {
        let (_, Surroundings { program, ssh, .. }) = &*self.0;
        env::variables(&pass.url(), loopback, program, ssh.as_deref())
    }
}

/// The listener of a session. Ends with all its connections when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What every connection looks at.
struct Shared {
    passes: Mutex<HashMap<String, Holder>>,
    limits: Limits,
    resolver: Box<dyn Resolve>,
    upstream: Option<door::Upstream>,
    /// Where it listens, which no connection through it may reach.
    own: SocketAddr,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passes are secrets.
        f.debug_struct("Shared").field("limits", &self.limits).field("own", &self.own).finish_non_exhaustive()
    }
}

/// The holder of a pass, as connections see it.
#[derive(Clone)]
struct Holder {
    knocks: mpsc::UnboundedSender<Knock>,
    /// Ends with the pass.
    alive: watch::Receiver<()>,
}

/// What lets one command through. Its connections end when it is dropped.
#[derive(Debug)]
pub struct Pass {
    word: String,
    port: u16,
    shared: Arc<Shared>,
    knocks: mpsc::UnboundedReceiver<Knock>,
    _alive: watch::Sender<()>,
}

impl Proxy {
    /// Begins to listen on a port that nobody chose. `variables` is the session's environment, whose own proxy is used.
    ///
    /// # Errors
    /// Loopback has no port left, or none is allowed.
    pub async fn start(
        limits: Limits,
        resolver: Box<dyn Resolve>,
        variables: impl Fn(&str) -> Option<String>,
    ) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let own = listener.local_addr()?;
        let upstream = door::Upstream::of(variables);
        let shared = Arc::new(Shared { passes: Mutex::default(), limits, resolver, upstream, own });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Ok(Proxy { port: own.port(), shared, task })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A pass for one command.
    pub fn pass(&self) -> Pass {
        let word = uuid::Uuid::new_v4().simple().to_string();
        let (send, knocks) = mpsc::unbounded_channel();
        let (keep, alive) = watch::channel(());
        self.shared.passes().insert(word.clone(), Holder { knocks: send, alive });
        Pass { word, port: self.port, shared: self.shared.clone(), knocks, _alive: keep }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pass {
    /// The next connection that waits for an answer.
    pub async fn knock(&mut self) -> Option<Knock> {
        self.knocks.recv().await
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The proxy's address with the pass in it, as variables of the environment hold it.
    pub fn url(&self) -> String {
        format!("http://{USER}:{}@127.0.0.1:{}", self.word, self.port)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.shared.passes().remove(&self.word);
    }
}

impl Shared {
    fn passes(&self) -> MutexGuard<'_, HashMap<String, Holder>> {
        // Every change is one insertion or removal.
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose pass this is. Every one is compared in full: how long it takes tells nothing about any of them.
    fn holder(&self, user: &str, word: &str) -> Option<Holder> {
        let same = |own: &str| {
            own.len() == word.len() && own.bytes().zip(word.bytes()).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
        };
        let passes = self.passes();
        let found = passes.iter().fold(None, |found, (own, holder)| if same(own) { Some(holder) } else { found });
        found.filter(|_| user == USER).cloned()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let unknown = Arc::new(Semaphore::new(shared.limits.unknown));
    let known = Arc::new(Semaphore::new(shared.limits.known));
    // Dropped, and with it every connection, when this task is aborted.
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = listener.accept() => stream,
            Some(_) = connections.join_next() => continue,
        };
        match stream {
            Ok((stream, from)) if from.ip().is_loopback() => {
                // Too many that say nothing: the next one is closed at once.
                if let Ok(seat) = unknown.clone().try_acquire_owned() {
                    let room = Room { seat, known: known.clone() };
                    connections.spawn(Box::pin(serve(stream, shared.clone(), room)));
                }
            }
            Ok(_) => {}
            // No descriptors left, for one: others have to end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// A connection's place among those that have not said who they are, until it has one among those that have.
struct Room {
    seat: OwnedSemaphorePermit,
    known: Arc<Semaphore>,
}

impl Room {
    /// None when all places are taken.
    fn enter(self) -> Option<OwnedSemaphorePermit> {
        let known = self.known.try_acquire_owned().ok();
        drop(self.seat);
        known
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, room: Room) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(first)) = timeout(shared.limits.head, stream.read_u8()).await else { return };
    // A client that breaks off, or a server that does, is nobody's error.
    let _ = match first {
        socks::VERSION => socks::serve(stream, &shared, room).await,
        first => http::serve(stream, first, &shared, room).await,
    };
}

/// Passes bytes both ways until both sides are done, or the pass ends.
async fn relay(mut client: TcpStream, mut server: TcpStream, mut holder: Holder) -> io::Result<()> {
    tokio::select! {
        done = tokio::io::copy_bidirectional(&mut client, &mut server) => done.map(drop),
        // Nothing is ever sent: it changes when the other end is gone.
        _ = holder.alive.changed() => Ok(()),
    }
}

#[cfg(test)]
mod tests;
