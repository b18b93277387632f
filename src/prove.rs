//! `cocode prove`: what is promised about commands, tried on this machine in a scratch folder. Needs no key and no network.

#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
pub mod escapes;
#[cfg(target_os = "linux")]
pub mod undone;
#[cfg(target_os = "linux")]
pub mod world;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sandbox::Level;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    pub version: String,
    pub system: String,
    pub level: Level,
    /// Why it is not higher, as far as that is known.
    pub why: Option<String>,
    /// Each user as whom the escapes were tried: us, and nobody where we are root.
    pub escapes: Vec<Escapes>,
    pub undo: Option<Undone>,
    pub cost: Option<Cost>,
}

/// How many escapes were tried as one user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escapes {
    pub user: String,
    pub held: usize,
    /// Lines that got out, and what they got.
    pub through: Vec<(String, String)>,
    /// Why lines were not tried, and how many.
    pub untried: Vec<(String, usize)>,
}

/// Programs that changed a folder, and what undo made of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Names of those whose changes were undone and redone exactly.
    pub exact: Vec<String>,
    /// Names of the others, and what was wrong.
    pub wrong: Vec<(String, String)>,
    /// Why programs were not tried, and how many.
    pub untried: Vec<(String, usize)>,
}

/// Time to start `true` and see it end, in milliseconds: the median of some runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// As our own child.
    pub plain: f64,
    /// Below the helper, free.
    pub free: f64,
    pub confined: f64,
    pub recorded: f64,
}

impl Proof {
    /// Tries everything. `program` is this binary; `said` hears of each part as it begins.
    ///
    /// # Errors
    /// The scratch folder cannot be made, or a program that lays it out is missing.
    pub async fn find(program: &Path, mut said: impl FnMut(&str)) -> io::Result<Proof> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut proof = Proof {
            version,
            system: system(),
            level: Level::None,
            why: None,
            escapes: Vec::new(),
            undo: None,
            cost: None,
        };
        #[cfg(target_os = "linux")]
        found(&mut proof, program, &mut said).await?;
        #[cfg(not(target_os = "linux"))]
        {
            said("looking at the sandbox");
            let _ = program;
            proof.why = Some("commands are confined on Linux only".to_owned());
        }
        Ok(proof)
    }

    /// Whether all that is promised was kept.
    pub fn holds(&self) -> bool {
        self.level > Level::None
            && self.escapes.iter().all(|escapes| escapes.through.is_empty() && escapes.held > 0)
            && self.undo.as_ref().is_some_and(|undo| undo.wrong.is_empty() && !undo.exact.is_empty())
    }

    /// The table.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("cocode {} on {}", self.version, self.system), String::new()];
        let mut row = |name: &str, text: String| lines.push(format!("  {name:<18} {text}"));
        let more = |why: &Option<String>| why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        row("sandbox", format!("{}{}", level(self.level), more(&self.why)));
        for escapes in &self.escapes {
            let tried = escapes.held + escapes.through.len();
            let text = format!("{} of {tried} held, as {}{}", escapes.held, escapes.user, untried(&escapes.untried));
            row("escapes", text);
            for (line, what) in &escapes.through {
                row("", format!("GOT OUT: {line}: {}", first_line(what)));
            }
        }
        if let Some(undo) = &self.undo {
            let tried = undo.exact.len() + undo.wrong.len();
            row("undo", format!("{} of {tried} programs restored exactly{}", undo.exact.len(), untried(&undo.untried)));
            for (name, what) in &undo.wrong {
                row("", format!("WRONG: {name}: {}", first_line(what)));
            }
        }
        if let Some(cost) = &self.cost {
            let more = |time: f64| format!("{:+.1} ms", time - cost.plain);
            let (confined, recorded) = (more(cost.confined), more(cost.recorded));
            row("cost per command", format!("{confined} confined, {recorded} with undo; plain {:.1} ms", cost.plain));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(target_os = "linux")]
async fn found(proof: &mut Proof, program: &Path, said: &mut impl FnMut(&str)) -> io::Result<()> {
    said("looking at the sandbox");
    let sandbox = crate::sandbox::Sandbox::new(Some(program.to_owned()));
    proof.level = Box::pin(sandbox.probe()).await;
    proof.why = sandbox.untold();
    if proof.level > Level::None {
        let root = rustix::process::geteuid().is_root();
        for user in [None, Some(world::NOBODY)].into_iter().take(if root { 2 } else { 1 }) {
            said("trying to get out");
            proof.escapes.push(Box::pin(escapes::tried(program, user)).await?);
        }
        said("undoing what programs did");
        proof.undo = Some(Box::pin(undone::tried(&sandbox)).await?);
    }
    said("measuring");
    proof.cost = Some(Box::pin(cost::measured(&sandbox, proof.level)).await?);
    Ok(())
}

fn level(level: Level) -> &'static str {
    match level {
        Level::None => "none",
        Level::Kernel => "kernel (Landlock and seccomp)",
        Level::Mount => "mount (Landlock, seccomp and namespaces)",
    }
}

fn untried(untried: &[(String, usize)]) -> String {
    let reasons: Vec<String> = untried.iter().map(|(why, times)| format!("{times} not tried: {why}")).collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let words = [std::env::consts::OS, release.trim(), std::env::consts::ARCH];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
