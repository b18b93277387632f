//! `cocode doctor` and `/doctor`: looks at everything that a start needs. Asks no one outside this machine.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::config::paths::{Env, PathError, Paths};
use crate::config::{self, Config, Loaded, trust};
use crate::permission::Trust;
use crate::plugins::Plugins;
use crate::protocol::report::{Finding, State};
use crate::provider::key::Key;
use crate::sandbox::{self, Level, Sandbox};
use crate::stdx::programs;

/// What is looked at from where.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    pub env: &'a Env,
    pub paths: &'a Paths,
    /// Absolute.
    pub cwd: &'a Path,
}

/// Finds out how far commands are confined here, for who has no session that knows.
pub fn confinement(here: Here<'_>) -> sandbox::Status {
    let loaded = config::load(here.paths, here.env, toml::Table::new());
    let sandbox = Sandbox::of_this_program(loaded.map_or(true, |loaded| loaded.config.sandbox.enabled));
    let probed = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let probed = probed.map(|runtime| runtime.block_on(sandbox.probe()));
    let why = probed.err().map_or_else(String::new, |error| error.to_string());
    sandbox.status().unwrap_or(sandbox::Status { level: Level::None, why })
}

/// Looks at everything.
pub fn examine(here: Here<'_>, sandbox: &sandbox::Status) -> Vec<Finding> {
    let mut findings = vec![Finding {
        area: "version".into(),
        state: State::Good,
        text: format!("cocode {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH),
    }];
    let screen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    findings.extend(terminal(here.env, screen));
    findings.extend(folders(here));
    findings.extend(programs(here));
    findings.push(confined(sandbox));
    match config::load(here.paths, here.env, toml::Table::new()) {
        Ok(own) => {
            let trusted = trust::of(here.paths, here.cwd);
            let loaded = own.with_project(here.cwd, &trusted);
            let state = if loaded.broken.is_empty() { State::Limited } else { State::Bad };
            findings.extend(loaded.diagnostics.iter().map(|problem| Finding {
                area: "settings".into(),
                state,
                text: problem.to_string(),
            }));
            let (_, rules) = super::open::rules(&loaded);
            let clean = loaded.diagnostics.is_empty() && rules.is_empty();
            findings.extend(rules.into_iter().map(|text| Finding {
                area: "settings".into(),
                state: State::Limited,
                text,
            }));
            if clean {
                findings.push(Finding {
                    area: "settings".into(),
                    state: State::Good,
                    text: "all files are valid".into(),
                });
            }
            if !loaded.withheld.is_empty() {
                let text = format!("not trusted yet, so ignored: {}", loaded.withheld.join(", "));
                findings.push(Finding { area: "folder".into(), state: State::Limited, text });
            }
            let (text, errors) = super::skills::summary(here, &loaded);
            let state = if errors { State::Limited } else { State::Good };
            findings.push(Finding { area: "skills".into(), state, text });
            findings.extend(agents(here, &trusted, &loaded));
            findings.extend(plugins(&loaded.plugins));
            findings.extend(super::mcp::findings(&loaded));
            findings.extend(providers(&loaded.config, here));
            if loaded.config.probe_local {
                findings.extend(local_servers(&[11434, 8080, 1234]));
            }
        }
        Err(broken) => {
            findings.extend(broken.0.iter().map(|problem| Finding {
                area: "settings".into(),
                state: State::Bad,
                text: problem.to_string(),
            }));
        }
    }
    for finding in &mut findings {
        finding.text = here.paths.tilde(&finding.text);
    }
    findings
}

/// How far commands are confined, and what would confine them.
fn confined(sandbox::Status { level, why }: &sandbox::Status) -> Finding {
    let (state, text) = match level {
        Level::None => {
            (State::Limited, format!("nothing confines commands, so only plain ones run without asking: {why}"))
        }
        level if why.is_empty() => (State::Good, format!("level {}", level.name())),
        level => (State::Good, format!("level {} (not higher: {why})", level.name())),
    };
    Finding { area: "sandbox".into(), state, text }
}

/// How many sub-agents there are, and what is wrong with their files.
fn agents(here: Here<'_>, trust: &Trust, loaded: &Loaded) -> Vec<Finding> {
    let definitions = super::open::definitions((here.paths, here.cwd), trust, &loaded.plugins, None);
    let finding = |state, text| Finding { area: "agents".into(), state, text };
    let count = finding(State::Good, format!("{} kinds (`/agents` lists them)", definitions.active().count()));
    let problems = definitions.diagnostics().iter().map(|problem| finding(State::Limited, problem.to_string()));
    std::iter::once(count).chain(problems).collect()
}

/// Which plugins there are, and what of them does not work.
fn plugins(plugins: &Plugins) -> Vec<Finding> {
    let finding = |state, text| Finding { area: "plugins".into(), state, text };
    let names: Vec<&str> = plugins.loaded().map(|plugin| plugin.id.as_str()).collect();
    let loaded = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let count = finding(State::Good, format!("loaded: {loaded} (`cocode plugin list` shows all)"));
    let waits = plugins.all.iter().filter(|plugin| !plugin.trusted && !plugin.uses.is_empty());
    let waits = waits.map(|plugin| {
        finding(State::Limited, format!("{} waits for your word: nothing of it runs until you say yes", plugin.id))
    });
    let without = plugins.loaded().flat_map(|plugin| plugin.not_used().into_iter().map(move |what| (plugin, what)));
    let without = without.map(|(plugin, what)| finding(State::Limited, format!("{}: {what}", plugin.id)));
    let errors = plugins.errors().into_iter().map(|(_, error)| finding(State::Limited, error));
    std::iter::once(count).chain(waits).chain(without).chain(errors).collect()
}

/// The findings for programs.
pub fn to_json(findings: &[Finding]) -> serde_json::Value {
    let healthy = findings.iter().all(|finding| finding.state != State::Bad);
    serde_json::json!({ "healthy": healthy, "findings": findings })
}

fn terminal(env: &Env, screen: bool) -> Vec<Finding> {
    let finding = |state, text: String| Finding { area: "terminal".into(), state, text };
    let term = env.get("TERM").unwrap_or("");
    let mut findings = vec![match (screen, term) {
        (false, _) => finding(State::Limited, "stdin and stdout are not a terminal; only -p works here".into()),
        (true, "" | "dumb") => finding(State::Limited, format!("TERM is `{term}`: plain lines, no redrawing")),
        (true, term) => finding(State::Good, format!("TERM is {term}")),
    }];
    let colours = match (env.get("NO_COLOR"), env.get("COLORTERM")) {
        (Some(_), _) => "none (NO_COLOR is set)",
        (None, Some("truecolor" | "24bit")) => "true color",
        (None, _) if term.contains("256") || term.contains("direct") => "256",
        (None, _) if matches!(term, "" | "dumb") => "none",
        (None, _) => "16; set COLORTERM=truecolor if the terminal supports more",
    };
    findings.push(finding(State::Good, format!("colors: {colours}")));
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env.get(name));
    let utf8 = locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    findings.push(match (utf8, locale) {
        (true, Some(locale)) => finding(State::Good, format!("locale {locale}")),
        (_, locale) => {
            let name = locale.unwrap_or("unset");
            finding(
                State::Limited,
                format!("locale is {name}, not UTF-8: set LANG=C.UTF-8, or wide characters may be misplaced"),
            )
        }
    });
    findings
}

fn folders(here: Here<'_>) -> Vec<Finding> {
    let home = match here.paths.prepare_home() {
        Ok(()) => {
            let sessions = std::fs::read_dir(&here.paths.home).map_or(0, |entries| {
                entries.flatten().filter(|entry| entry.path().join("transcript.jsonl").is_file()).count()
            });
            Finding {
                area: "home".into(),
                state: State::Good,
                text: format!("{}, {sessions} sessions", here.paths.home.display()),
            }
        }
        Err(
            error @ (PathError::NoHome
            | PathError::Relative { .. }
            | PathError::HomeIsFile(_)
            | PathError::HomeNotWritable { .. }),
        ) => Finding { area: "home".into(), state: State::Bad, text: error.to_string() },
    };
    let config = here.paths.user_config();
    let exists = if config.exists() { "" } else { " (does not exist yet; `cocode config set` creates it)" };
    let logs = &here.paths.state_dir;
    let (state, note) = match nearest_folder(logs).map(|folder| tempfile::tempfile_in(folder).is_ok()) {
        Some(true) => (State::Good, ""),
        Some(false) | None => (State::Limited, " is not writable, so nothing is logged; set COCODE_STATE_DIR"),
    };
    vec![
        home,
        Finding { area: "config".into(), state: State::Good, text: format!("{}{exists}", config.display()) },
        Finding { area: "logs".into(), state, text: format!("{}{note}", logs.display()) },
    ]
}

/// The folder itself, or the one above it in which it would be made.
fn nearest_folder(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.is_dir())
}

fn programs(here: Here<'_>) -> Vec<Finding> {
    programs::keep_out([here.cwd], here.paths.user_home.as_deref());
    let path = here.env.vars.get("PATH").map(OsString::as_os_str);
    let program = |name: &'static str, without: &str, missing| match programs::find(name, path) {
        Ok(path) => {
            Finding { area: "programs".into(), state: State::Good, text: format!("{name}: {}", path.display()) }
        }
        Err(error) if error.get_ref().is_some() => {
            Finding { area: "programs".into(), state: missing, text: format!("{error}: {without}") }
        }
        Err(_) => {
            Finding { area: "programs".into(), state: missing, text: format!("{name} is not in PATH: {without}") }
        }
    };
    vec![
        program("bash", "the Bash tool cannot run; install bash", State::Bad),
        program("git", "branch and status are unknown to the agent", State::Limited),
    ]
}

fn providers(config: &Config, here: Here<'_>) -> Vec<Finding> {
    let credentials = here.paths.config_dir.join("credentials.toml");
    let mut ready = false;
    let mut findings = Vec::new();
    for (name, provider) in &config.providers {
        let (state, key) = match (&provider.api_key_env, &provider.api_key_command) {
            (Some(variable), _) if here.env.get(variable).is_some() => (State::Good, format!("key in {variable}")),
            (_, Some(_)) => (State::Good, "key from api_key_command".to_owned()),
            (Some(_), None) if Key::new(name, provider, None, Some(credentials.clone())).stored() => {
                (State::Good, format!("key in {}", credentials.display()))
            }
            (Some(variable), None) => (State::Limited, format!("no key; set {variable} to use it")),
            (None, None) => (State::Good, "used without a key".to_owned()),
        };
        ready |= state == State::Good;
        // An address may hold a password.
        let address = url::Url::parse(&provider.base_url).ok().filter(|url| url.has_host());
        let (state, address) = match address.map(|url| url.origin().ascii_serialization()) {
            Some(address) => (state, address),
            None => (State::Bad, format!("`providers.{name}.base_url` is not a URL")),
        };
        findings.push(Finding { area: "provider".into(), state, text: format!("{name} ({address}): {key}") });
    }
    let chosen = match (&config.model, ready) {
        (Some(model), _) => format!("{model}, as configured"),
        (None, true) => "the first provider that has a key".to_owned(),
        (None, false) => "a local server if one answers, else the offline model".to_owned(),
    };
    findings.push(Finding { area: "model".into(), state: State::Good, text: chosen });
    findings
}

/// Whether something listens on the usual ports of local servers; loopback answers at once or not at all.
fn local_servers(ports: &[u16]) -> Vec<Finding> {
    let listens = |port: &&u16| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, **port));
        TcpStream::connect_timeout(&address, Duration::from_millis(100)).is_ok()
    };
    let found = ports.iter().filter(listens);
    let text =
        |port: &u16| format!("something listens on 127.0.0.1:{port}; cocode looks there at the start if no key is set");
    found.map(|port| Finding { area: "local".into(), state: State::Good, text: text(port) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vars: &[(&str, &str)], file: &str, want: &[(State, &str)], never: &str) {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::fake(dir.path(), vars);
        let paths = Paths::new(&env).unwrap();
        std::fs::create_dir_all(&paths.config_dir).unwrap();
        std::fs::write(paths.user_config(), file).unwrap();
        let why = "this kernel has no Landlock: it takes Linux 5.13 or newer".to_owned();
        let none = sandbox::Status { level: Level::None, why };
        let findings = examine(Here { env: &env, paths: &paths, cwd: dir.path() }, &none);
        for (state, text) in want {
            assert!(
                findings.iter().any(|finding| finding.state == *state && finding.text.contains(text)),
                "{text}: {findings:#?}"
            );
        }
        let printed = format!("{}{}", crate::report::doctor(&findings), to_json(&findings));
        assert!(!printed.contains(never), "{printed}");
    }

    #[test]
    fn findings_name_the_fix_and_never_a_key() {
        let key = "sk-very-secret";
        check(&[("ANTHROPIC_API_KEY", key)], "", &[(State::Good, "key in ANTHROPIC_API_KEY")], key);
        check(&[], "", &[(State::Limited, "set OPENAI_API_KEY"), (State::Good, "else the offline model")], key);
        check(&[("LANG", "de_DE.ISO-8859-1")], "", &[(State::Limited, "set LANG=C.UTF-8")], key);
        check(&[("PATH", "/nowhere")], "", &[(State::Bad, "install bash")], key);
        check(&[], "tehme = 1", &[(State::Bad, "config.toml:1: unknown key `tehme`")], key);
        check(&[], "permissions.deny = ['Bash(']", &[(State::Limited, "closing parenthesis")], "all files are valid");
        check(&[], "permissions.deny = ['Raed(x)']", &[(State::Limited, "did you mean Read?")], "all files are valid");
        check(
            &[],
            "providers.openai.base_url = 'https://u:sk-very-secret@h/v1'",
            &[(State::Limited, "openai (https://h)")],
            key,
        );
        check(&[("COCODE_STATE_DIR", "/proc/none")], "", &[(State::Limited, "COCODE_STATE_DIR")], key);
        check(&[], "", &[(State::Limited, "Linux 5.13 or newer")], key);
        check(&[("TERM", "x\u{1b}[2J")], "", &[], "\u{1b}");
    }

    #[test]
    fn a_listening_port_is_found() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(local_servers(&[port]).len(), 1);
        drop(listener);
        assert_eq!(local_servers(&[port]), []);
    }
}
