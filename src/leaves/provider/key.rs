//! Keys: where they come from, and that they are never shown.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use toml_edit::DocumentMut;

use super::Error;
use super::failure::clip;
use super::settings::ProviderSettings;
use crate::stdx::fs::replace_private;
use crate::stdx::process::{Unconfined, command_without, run_captured};
use crate::stdx::programs;

/// Name of the credentials file, in the folder of the user's configuration.
pub const FILE: &str = "credentials.toml";

/// Longest run of a command that prints a key.
const COMMAND: Duration = Duration::from_secs(30);

/// Most bytes that the command may print.
const OUTPUT: usize = 64 * 1024;

/// How long a key counts that a command printed or a file held: gateways give keys that expire.
const FRESH: Duration = Duration::from_mins(5);

/// Bytes that a key has at least.
const SHORTEST: usize = 6;

/// A secret text. Shows itself to nobody; only an op that brings a key in carries it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// White space around it is not part of it. None: nothing is left.
    pub fn new(text: &str) -> Option<Secret> {
        let text = text.trim();
        (!text.is_empty()).then(|| Secret(text.to_string()))
    }

    /// The text itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every copy of the secret replaced, also one that a clipped text ends in. What is too short to be secret
    /// is left: it would hit common words.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < SHORTEST {
            return text.to_string();
        }
        let text = text.replace(&self.0, "[key]");
        let Some(clipped) = text.strip_suffix('…') else { return text };
        let begun =
            (SHORTEST..self.0.len()).rev().filter_map(|end| self.0.get(..end)).find(|part| clipped.ends_with(part));
        match begun {
            Some(part) => format!("{}[key]…", &clipped[..clipped.len() - part.len()]),
            None => text,
        }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The key of one provider: from the environment, else a command, else the credentials file. Read when first needed, again
/// when some minutes have passed, and when it was refused.
#[derive(Debug, Default)]
pub struct Key {
    provider: String,
    variable: Option<String>,
    value: Option<Secret>,
    command: Option<String>,
    /// Variables that the command does not see.
    hidden: Vec<String>,
    /// TOML file of `provider = "key"`, readable by its owner alone.
    credentials: Option<PathBuf>,
    read: Mutex<Option<(Instant, Option<Secret>)>>,
}

impl Key {
    /// The key of `provider`. `value` is what the variable `settings.api_key_env` holds.
    pub fn new(provider: &str, settings: &ProviderSettings, value: Option<&str>, credentials: Option<PathBuf>) -> Key {
        Key {
            provider: provider.to_string(),
            variable: settings.api_key_env.clone(),
            value: value.and_then(Secret::new),
            command: settings.api_key_command.clone(),
            hidden: Vec::new(),
            credentials,
            read: Mutex::default(),
        }
    }

    /// The command is a project's: it sees none of these variables.
    pub fn hiding(self, hidden: Vec<String>) -> Key {
        Key { hidden, ..self }
    }

    /// Reads the key, running the command if needed. `None` if no key is configured.
    ///
    /// # Errors
    /// `NoKey` when the command fails or the credentials file is unusable; it is tried again at the next call.
    pub async fn get(&self) -> Result<Option<Secret>, Error> {
        if let Some(value) = &self.value {
            return Ok(Some(value.clone()));
        }
        let mut read = self.read.lock().await;
        if let Some((at, secret)) = &*read
            && at.elapsed() < FRESH
        {
            return Ok(secret.clone());
        }
        let secret = match (&self.command, &self.credentials) {
            (Some(command), _) => run(command, &self.hidden).await.map(Some),
            (None, Some(path)) => from_file(path, &self.provider),
            (None, None) => Ok(None),
        };
        let secret = secret.map_err(|hint| Error::NoKey { provider: self.provider.clone(), hint })?;
        *read = Some((Instant::now(), secret.clone()));
        Ok(secret)
    }

    /// Reads the key again after it was refused. `None` if it is the same one still.
    pub async fn instead_of(&self, refused: Option<&Secret>) -> Option<Secret> {
        if self.value.is_some() {
            return None;
        }
        // Another request may have read it meanwhile.
        let mut read = self.read.lock().await;
        if read.as_ref().is_some_and(|(_, secret)| secret.as_ref() == refused) {
            *read = None;
        }
        drop(read);
        self.get().await.ok()?.filter(|secret| Some(secret) != refused)
    }

    /// Whether the credentials file holds a key for this provider.
    pub fn stored(&self) -> bool {
        self.credentials.as_ref().is_some_and(|path| matches!(from_file(path, &self.provider), Ok(Some(_))))
    }

    /// Whether the settings say that this provider has a key.
    pub fn expected(&self) -> bool {
        self.variable.is_some() || self.command.is_some()
    }

    /// What to do about a missing or refused key. Names places, never the key.
    pub fn hint(&self) -> String {
        match (&self.variable, &self.command) {
            (Some(variable), _) if self.value.is_some() => format!("check the value of {variable}"),
            (_, Some(_)) => format!("check providers.{}.api_key_command", self.provider),
            (Some(variable), None) => match &self.credentials {
                Some(path) => format!("set {variable}, or put `{} = \"…\"` into {}", self.provider, path.display()),
                None => format!("set {variable}"),
            },
            (None, None) if self.provider.is_empty() => "check the key".to_string(),
            (None, None) => format!("set providers.{}.api_key_env to the name of a variable", self.provider),
        }
    }
}

/// Keeps a key in the credentials file, which only its owner may read from then on.
///
/// # Errors
/// The text cannot be a key, or the file is not TOML or cannot be written. Never names the key.
pub fn store(file: &Path, provider: &str, key: &Secret) -> Result<(), String> {
    if key.expose().chars().any(|c| !c.is_ascii_graphic()) {
        return Err("this is not a key: it contains spaces or characters that no key has".into());
    }
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    // The parser's own message would quote a line, and with it a key.
    let mut document: DocumentMut =
        before.parse().map_err(|_| format!("{} is not valid TOML: fix it first", file.display()))?;
    document[provider] = toml_edit::value(key.expose());
    replace_private(file, document.to_string().as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

async fn run(command: &str, hidden: &[String]) -> Result<Secret, String> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut line = command_without(shell, hidden);
    // It runs before anybody trusts the folder.
    line.args([flag, command]).env("PATH", programs::own_path());
    let ran = run_captured(line, Unconfined::Settings, &[], COMMAND, OUTPUT).await;
    let ran = ran.map_err(|error| format!("api_key_command cannot be run: {error}"))?;
    if ran.timed_out {
        return Err(format!("api_key_command did not finish within {} seconds", COMMAND.as_secs()));
    }
    if ran.code != Some(0) {
        let how = ran.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit status {code}"));
        let said = match String::from_utf8_lossy(&ran.stderr).trim() {
            "" => "it printed no error".to_owned(),
            said => clip(said),
        };
        return Err(format!(
            "the command that prints the key (`api_key_command`, or Claude Code's `apiKeyHelper`) failed with {how}: {said}"
        ));
    }
    if ran.truncated {
        return Err(format!("api_key_command printed more than {OUTPUT} bytes: print only the key"));
    }
    Secret::new(&String::from_utf8_lossy(&ran.stdout)).ok_or_else(|| "api_key_command printed nothing".to_string())
}

fn from_file(path: &Path, provider: &str) -> Result<Option<Secret>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    if others_may_read(path) {
        return Err(format!("{} is readable by others: run chmod 600 {}", path.display(), path.display()));
    }
    // The parser's own message would quote the line, and with it the key.
    let table: toml::Table = text.parse().map_err(|_| format!("{} is not valid TOML", path.display()))?;
    Ok(table.get(provider).and_then(toml::Value::as_str).and_then(Secret::new))
}

#[cfg(unix)]
fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::settings::WireName;

    fn settings(variable: Option<&str>, command: Option<&str>) -> ProviderSettings {
        ProviderSettings {
            wire: WireName::Anthropic,
            base_url: "https://api.example.com".into(),
            api_key_env: variable.map(String::from),
            api_key_command: command.map(String::from),
            key_header: Default::default(),
            headers: Default::default(),
            ca_file: None,
            models: Default::default(),
            default_model: None,
        }
    }

    async fn get(key: &Key) -> Result<Option<String>, String> {
        match key.get().await {
            Ok(secret) => Ok(secret.map(|secret| secret.expose().to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    #[tokio::test]
    async fn sources_in_order() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("credentials.toml");
        std::fs::write(&file, "p = \"filed\"\n").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let check = async |variable, command, value, file: Option<&Path>, want: Option<&str>| {
            let key = Key::new("p", &settings(variable, command), value, file.map(Path::to_path_buf));
            assert_eq!(get(&key).await, Ok(want.map(String::from)));
        };
        check(Some("V"), Some("echo printed"), Some(" given\n"), Some(&file), Some("given")).await;
        check(Some("V"), Some("echo printed"), Some("  "), Some(&file), Some("printed")).await;
        check(Some("V"), None, None, Some(&file), Some("filed")).await;
        check(Some("V"), None, None, None, None).await;
        check(Some("V"), None, None, Some(&home.path().join("none")), None).await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_stored_key_joins_the_others_and_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("new/credentials.toml");
        let secret = |text: &str| Secret::new(text).unwrap();
        store(&file, "p", &secret("sk-one")).unwrap();
        std::fs::write(&file, "# mine\nother = \"kept\"\np = \"sk-one\" # old\n").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        store(&file, "p", &secret("sk-two")).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# mine\nother = \"kept\"\np = \"sk-two\""), "{text}");
        let key = Key::new("p", &settings(None, None), None, Some(file.clone()));
        assert_eq!(get(&key).await, Ok(Some("sk-two".to_string())));
        for (text, content) in [("two words", "a = 'b'"), ("sk-é", "a = 'b'"), ("sk-three", "a = sk-old")] {
            std::fs::write(&file, content).unwrap();
            let error = store(&file, "p", &secret(text)).unwrap_err();
            assert!(!error.contains(text) && !error.contains("sk-old"), "{error}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_others_may_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("credentials.toml");
        std::fs::write(&file, "p = \"sk-secret\"").unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let key = Key::new("p", &settings(Some("V"), None), None, Some(file.clone()));
        let error = get(&key).await.unwrap_err();
        assert!(error.contains("chmod 600") && !error.contains("sk-secret"), "{error}");
        std::fs::write(&file, "p = sk-secret").unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let error = get(&key).await.unwrap_err();
        assert!(error.contains("not valid TOML") && !error.contains("sk-secret"), "{error}");
    }

    #[tokio::test]
    async fn a_command_runs_once_until_its_key_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let count = home.path().join("count");
        let key =
            Key::new("p", &settings(None, Some(&format!("echo x >> {0}; echo key", count.display()))), None, None);
        for _ in 0..3 {
            assert_eq!(get(&key).await, Ok(Some("key".to_string())));
        }
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
        assert_eq!(key.instead_of(Secret::new("key").as_ref()).await, None);
        assert_eq!(key.instead_of(Secret::new("older").as_ref()).await, Secret::new("key"));
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\n");
        let key = Key::new("p", &settings(None, Some("echo locked >&2; exit 3")), None, None);
        assert!(get(&key).await.unwrap_err().contains("locked"));
        let key = Key::new("p", &settings(None, Some("yes | head -c 1000000")), None, None);
        assert!(get(&key).await.unwrap_err().contains("more than 65536 bytes"));
    }

    #[test]
    fn never_shown() {
        let key = Key { value: Secret::new("sk-secret"), ..Key::default() };
        assert!(!format!("{key:?}").contains("sk-secret"));
        let check = |secret: &str, text: &str, want: &str| {
            assert_eq!(Secret::new(secret).unwrap().redact(text), want);
        };
        check("sk-secret", "no sk-secret here", "no [key] here");
        check("sk-secret", "clipped: sk-secr…", "clipped: [key]…");
        check("sk-secret", "clipped: sk-secret…", "clipped: [key]…");
        check("sk-secret", "clipped elsewhere…", "clipped elsewhere…");
        check("x", "exact text", "exact text");
    }
}
