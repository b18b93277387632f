//! Which files hold secrets by their names: environment files, credentials and keys, with their copies.

use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use super::super::commands::covered::is_device;
use super::super::files::Files;
use super::folded;

/// Endings of what people write all day: sources and prose about secrets are not secrets.
const SOURCES: &str = "rs py pyi go c h cc hh cpp hpp cxx m mm cs fs vb java kt kts scala groovy clj ex exs erl hs ml mli js mjs cjs \
    jsx ts mts cts tsx vue svelte rb php pl pm lua r jl dart swift zig nim d v sv vhd sh bash zsh fish ps1 bat cmd sql graphql \
    proto thrift html htm css scss sass less md mdx rst adoc tex org svg png jpg jpeg gif webp ico snap lock wasm nix cmake mk \
    gradle patch diff po";
/// Endings of data, which may be a secret's.
const DATA: &str = "json json5 jsonc yml yaml toml ini cfg conf config properties xml csv tsv txt plist hcl";
/// Endings of key material and of files that are made of secrets.
const KEYS: &str = "env pem key p8 p12 pfx pk8 pkcs8 pkcs12 ppk kdb kdbx jks bks keystore truststore keytab jwk ovpn tfstate tfvars \
    kubeconfig secret secrets credential credentials agekey";
/// Names that say nothing more.
const NAMES: &str = ".npmrc .yarnrc .yarnrc.yml .netrc _netrc .git-credentials .pypirc .pgpass .my.cnf .mylogin.cnf .htpasswd \
    .dockercfg .dockerconfigjson .dev.vars .s3cfg .boto .terraformrc .smbcredentials .erlang.cookie .vault-token .vault_token \
    .vault_pass .vault-pass auth.json kubeconfig local.settings.json wp-config.php secring.gpg .bash_history .zsh_history \
    .python_history .psql_history .mysql_history .node_repl_history .irb_history .rediscli_history .token token token.txt";
/// Parts of a name that say which copy it is, or for what it counts.
const COPIES: &str = "bak backup old orig save saved copy swp swo tmp prod production dev development stage staging test testing \
    local live ci qa preview release debug main master default enc dec auto";
/// How many of them are backups.
const BACKUPS: usize = 9;
/// Parts with which a file shows what belongs into another.
const EXAMPLES: [&str; 8] = ["example", "sample", "template", "tmpl", "tpl", "dist", "defaults", "schema"];
/// Last words of a name that says what is in the file.
const TOLD: [&[&str]; 24] = [
    &["secret"],
    &["secrets"],
    &["credential"],
    &["credentials"],
    &["creds"],
    &["password"],
    &["passwords"],
    &["service", "account"],
    &["service", "account", "key"],
    &["serviceaccount"],
    &["serviceaccountkey"],
    &["private", "key"],
    &["privatekey"],
    &["vault", "pass"],
    &["privkey"],
    &["kubeconfig"],
    &["api", "key"],
    &["apikey"],
    &["api", "keys"],
    &["access", "key"],
    &["access", "token"],
    &["api", "token"],
    &["auth", "token"],
    &["oauth", "token"],
];

fn is_one_of(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Whether the file is the configuration of a repository, whose addresses and headers may hold tokens.
pub(in crate::permission) fn configures_git(path: &Path) -> bool {
    let mut parts = path.components().rev().map(folded);
    parts.next().is_some_and(|name| matches!(&*name, "config" | "config.worktree")) && parts.any(|part| part == ".git")
}

/// Whether the file's name says that it holds secrets: an environment file with values, credentials, key material, or a copy
/// of one. What shows what belongs into such a file holds none, and neither do sources.
pub(in crate::permission) fn holds_keys(path: &Path) -> bool {
    let mut parts = path.components().rev().map(folded);
    let Some(name) = parts.next() else { return false };
    // Nearly every name: a search looks at thousands.
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let dotenv = name.trim_start_matches(['.', '#']).starts_with("env");
    if !dotenv && is_one_of(SOURCES, extension) && !is_one_of(NAMES, &name) {
        return false;
    }
    is_secret(&name) || parts.any(|folder| matches!(&*folder, ".envs" | ".secrets"))
}

/// Whether the name of a secret is, in a repository, more often that of something made to be kept there: what is encrypted or
/// public, values for tests, texts by language, templates.
pub(in crate::permission) fn may_be_kept(path: &Path) -> bool {
    let mut parts = path.components().rev().map(folded);
    let Some(name) = parts.next() else { return false };
    let folder = parts.next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let mut words = stem.split(|c: char| !c.is_alphanumeric());
    match extension {
        "enc" => true,
        "pem" => {
            words.any(|word| is_one_of("public pub cert certs certificate ca chain fullchain", word))
                && !stem.contains("key")
        }
        "key" => is_one_of("locale locales lang langs i18n l10n translations", &folder),
        "yml" | "yaml" => folder == "templates",
        _ => is_one_of(".env.test .env.testing .env.ci", &name),
    }
}

/// Folders of a home that hold packages and tools, and no settings: those are where keys are. Of a folder with both only the
/// parts are here.
pub(in crate::permission) const TOOLS: &str = ".cargo/registry .cargo/git .cargo/bin .rustup .npm/_cacache .npm/_logs .npm/_npx .node-gyp \
    .pnpm-store .yarn/berry .yarn/cache .bun .deno .nvm .fnm .volta .nodenv .pyenv .rye .pixi .conda/pkgs .rbenv .rvm .gem/ruby .asdf \
    .sdkman .jenv .goenv .m2/repository .m2/wrapper .gradle/caches .gradle/wrapper .ivy2/cache .ivy2/local .sbt/boot .sbt/launchers \
    .coursier/cache .nuget/packages .dotnet/sdk .dotnet/shared .dotnet/host .dotnet/packs .dotnet/tools .ghcup .cabal/packages \
    .cabal/store .cabal/bin .stack/programs .stack/snapshots .elan .opam .juliaup .julia/packages .julia/artifacts .julia/compiled \
    .julia/registries .pub-cache/hosted .pub-cache/bin .platformio/packages .wasmtime .foundry/bin .nix-profile .local/lib .local/bin \
    .local/pipx .local/share/pipx .local/share/uv .local/share/mise .local/share/pnpm .local/share/fnm .local/share/virtualenv \
    .local/share/virtualenvs .vscode/extensions .oh-my-zsh .cache/pip .cache/uv .cache/pypoetry .cache/pre-commit .cache/go-build \
    .cache/golangci-lint .cache/pnpm .cache/yarn .cache/node .cache/node-gyp .cache/esbuild .cache/deno .cache/electron \
    .cache/ms-playwright .cache/puppeteer .cache/Cypress .cache/typescript .cache/ccache .cache/sccache .cache/bazel .cache/bazelisk \
    .cache/zig .cache/dune .cache/coursier .cache/composer/files .cache/fontconfig .cache/mesa_shader_cache .cache/huggingface/hub \
    .cache/torch .cache/ruff .cache/mypy .cache/black .cache/hatch";

/// Whether a path outside of the workspace lies among the settings and states of programs, where any may keep a token: below
/// a hidden folder of a home, in a device, or in a file that not everybody may read.
pub(in crate::permission) fn is_set_apart(path: &Path, home: Option<&Path>, files: &dyn Files) -> bool {
    if path.starts_with("/dev") {
        return path.to_str().is_none_or(|text| !is_device(text));
    }
    let Some(rest) = home.and_then(|home| path.strip_prefix(files.resolve(home)).ok().map(Path::to_owned)) else {
        return !files.others_read(path);
    };
    let hidden = rest.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
    hidden && !TOOLS.split_ascii_whitespace().any(|tool| rest.starts_with(tool))
}

fn is_secret(name: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    // `#x#` and `.#x` are an editor's copies.
    let name = name.trim_matches('#').trim_start_matches(".#").trim_end_matches('~');
    if words(name).last().is_some_and(|last| EXAMPLES.contains(&last.as_str())) {
        return false;
    }
    // `.env`, and what continues with anything but a longer word.
    if let Some(rest) = name.strip_prefix(".env") {
        return rest == "rc" || rest == "s" || !rest.starts_with(|c: char| c.is_alphabetic());
    }
    let copied = original(name);
    let (stem, extension) = copied.rsplit_once('.').unwrap_or((copied, ""));
    if is_one_of(NAMES, name) || is_one_of(NAMES, copied) || copied == "env" && copied != name {
        return true;
    }
    let private = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"].iter().any(|key| name.starts_with(key));
    if private && extension != "pub" || !stem.is_empty() && is_one_of(KEYS, extension) {
        return true;
    }
    // A name that begins with a dot alone has no extension.
    let (stem, extension) = if stem.is_empty() { (extension, "") } else { (stem, extension) };
    if !extension.is_empty() && !is_one_of(DATA, extension) {
        return false;
    }
    let inner = stem.rsplit_once('.').map_or("", |(_, inner)| inner);
    let mut told = words(stem);
    while told.len() > 1 && told.last().is_some_and(|last| is_copy(last)) {
        told.pop();
    }
    is_one_of(KEYS, inner) && inner != "key"
        || stem.starts_with("client_secret")
        || told.iter().any(|word| word == "adminsdk")
        || TOLD.iter().any(|ending| told.ends_with(&ending.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()))
}

fn is_copy(word: &str) -> bool {
    is_one_of(COPIES, word) || word.bytes().all(|b| b.is_ascii_digit())
}

/// The name without what says that it is a copy.
fn original(mut name: &str) -> &str {
    while let Some(at) = name.rfind(['.', '-', '_', '~']).filter(|at| *at > 0) {
        if !is_copy(&name[at + 1..]) {
            break;
        }
        name = &name[..at];
    }
    name
}

/// Attributes under which git tells of a secret no more than that it differs: what it shows of old commits, other branches and
/// stashes is in no list of files that could be looked at before. As near to `holds_keys` as patterns get; of several that fit
/// git takes the last.
pub static WITHHELD: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    let mut say = |pattern: &str, attribute: &str| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{pattern} {attribute}");
    };
    let words = |list: &'static str| list.split_ascii_whitespace();
    for name in [
        ".env",
        ".env.*",
        ".env-*",
        ".env_*",
        ".envrc",
        ".envs/**",
        ".secrets/**",
        "id_rsa*",
        "id_dsa*",
        "id_ecdsa*",
        "id_ed25519*",
    ] {
        say(name, "-diff");
    }
    for name in words(NAMES) {
        say(name, "-diff");
    }
    for extension in words(KEYS) {
        say(&format!("*.{extension}"), "-diff");
        words(COPIES).take(BACKUPS).for_each(|copy| say(&format!("*.{extension}.{copy}"), "-diff"));
    }
    for told in TOLD {
        for name in ["-", "_", ""].map(|between| told.join(between)) {
            say(&name, "-diff");
            words(DATA).for_each(|extension| say(&format!("*{name}.{extension}"), "-diff"));
        }
    }
    for name in EXAMPLES {
        say(&format!("*.{name}"), "!diff");
        say(&format!(".env.{name}.*"), "!diff");
    }
    for kept in [
        "*.pub",
        "*.enc",
        "*public*.pem",
        "*pub.pem",
        "*cert*.pem",
        "*chain*.pem",
        "ca.pem",
        ".env.test",
        ".env.testing",
        ".env.ci",
    ] {
        say(kept, "!diff");
    }
    text
});

/// Whether nothing that the glob stands for holds secrets by its name.
pub(in crate::permission) fn only_sources(glob: &str) -> bool {
    let plain = |extension: &str| extension != "env" && is_one_of(SOURCES, extension);
    glob.rsplit_once('.')
        .is_some_and(|(before, extension)| plain(extension) && before.starts_with('*') && !before.contains(".env"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By git itself.
    #[test]
    fn git_withholds_what_holds_keys() {
        let folder = tempfile::tempdir().unwrap();
        let attributes = folder.path().join("attributes");
        std::fs::write(&attributes, &*WITHHELD).unwrap();
        let names = ".env .env.local .envrc deploy/.env.production prod.env server.key ca/tls.pem key.pem.bak .npmrc .netrc auth.json \
                     id_rsa id_ed25519.old secrets.yml my-secrets.json credentials.toml db_password.txt service-account.json \
                     .secrets/a x.tfvars .env.example .env.sample public.pem id_rsa.pub cert.pem .env.test credentials.yml.enc \
                     src/main.rs secrets.rs environment.ts README.md package.json password.py";
        let git = |words: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.arg("-C").arg(folder.path()).arg("-c").arg(format!("core.attributesFile={}", attributes.display()));
            String::from_utf8(git.args(words).output().unwrap().stdout).unwrap()
        };
        git(&["init", "-q"]);
        for name in names.split_ascii_whitespace() {
            let told = git(&["check-attr", "diff", "--", name]);
            let withheld = told.trim().ends_with(": unset");
            let path = Path::new(name);
            assert_eq!(withheld, holds_keys(path) && !may_be_kept(path), "{told}");
        }
    }

    #[test]
    fn what_a_repository_may_keep() {
        let kept = "public.pem jwt-public.pem fixtures/cert.pem ca.pem .env.test .env.ci config/credentials.yml.enc locale/de.key \
            charts/templates/secret.yaml";
        let secrets = ".env .env.local .env.test.local private.pem public-key-private.pem key.pem privkey.pem cert-key.pem de.key \
            certs/server.key secret.yaml id_rsa credentials.yml";
        for (names, want) in [(kept, true), (secrets, false)] {
            for name in names.split_whitespace() {
                assert_eq!(may_be_kept(&Path::new("/p").join(name)), want, "{name}");
            }
        }
    }

    #[test]
    fn names_say_what_is_in_a_file() {
        let secrets = ".env .env~ .env.bak .env.local .env.prod .env-prod .env_local .env2 .envrc #.env# .#.env prod.env secrets.env \
            env.local env.production .envs/x .envs/.local/.django .dev.vars .dev.vars.prod terraform.tfvars prod.auto.tfvars \
            terraform.tfvars.json terraform.tfstate.backup kubeconfig kubeconfig.yaml dev.kubeconfig service-account.json \
            service_account_key.json my-service-account-prod.json serviceAccountKey.json firebase-adminsdk.json \
            x-firebase-adminsdk-1a2b.json client_secret_123.apps.json server.key server.key~ server.key.old key.pem key.pem.bak \
            .git-credentials .git-credentials~ .pgpass~ .dockercfg auth.json secret.yaml secrets.yml secrets-prod.yaml \
            secrets.production.json my-secret.yaml .secrets .secrets.toml credentials credentials.json credentials.csv .credentials.json \
            .vault_pass vault-pass.txt vault_pass passwords.txt AuthKey_1.p8 putty.ppk office.ovpn app.jks app.keystore x.kdbx \
            .yarnrc.yml .npmrc .npmrc.bak id_rsa id_rsa.old id_ed25519_work .netrc _netrc .htpasswd private-key.txt tls.keytab";
        let ordinary = ".env.example .env.sample .env.template .env.local.example .environment env.d.ts env.ts env.py environment.ts \
            environment.yml secrets.rs secrets.py credentials.rs credentials.md secret_service.go keyboard.key.md id_rsa.pub key.rs \
            keys.json key.txt monkey.txt tokens.json tokenizer.json package.json package-lock.json tsconfig.json Cargo.toml \
            config.yml docker-compose.prod.yml Makefile README README.md main.rs test.txt secretary.txt passwd password_reset.html \
            secrets.example.yaml secrets.yaml.example auth.ts auth.yml environment.json master default env credentials-form.tsx .gitignore \
            .prettierrc .editorconfig vault.md settings.local.json private.txt";
        for (names, want) in [(secrets, true), (ordinary, false)] {
            for name in names.split_whitespace() {
                assert_eq!(holds_keys(&Path::new("/p").join(name)), want, "{name}");
            }
        }
        for (glob, want) in
            [("*.rs", true), ("*.ts", true), ("*.json", false), ("*", false), ("*.env", false), (".env.*", false)]
        {
            assert_eq!(only_sources(glob), want, "{glob}");
        }
    }
}
