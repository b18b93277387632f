//! Programs by what of a project they run, and files by what they are for.

use std::path::Path;

use crate::stdx::regular;

/// Shells whose scripts our parser reads.
pub(super) const READABLE: [&str; 3] = ["sh", "bash", "dash"];
/// Shells that run the file that comes first, or the line behind `-c`.
pub(super) const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
/// Programs that run the file that comes first.
pub(super) const INTERPRETERS: [&str; 9] =
    ["python", "python3", "node", "ruby", "perl", "php", "lua", "tsx", "Rscript"];
/// Programs that run nothing of what they are given.
pub(super) const INERT: [&str; 23] = [
    "echo",
    "printf",
    "true",
    "false",
    "exit",
    "sleep",
    "jq",
    "cat",
    "grep",
    "kill",
    "curl",
    "wget",
    "logger",
    "notify-send",
    "say",
    "afplay",
    "paplay",
    "date",
    ":",
    "set",
    "shift",
    "read",
    "return",
];
/// Those that only write what they name, or take it away.
pub(super) const WRITERS: [&str; 6] = ["touch", "mkdir", "rmdir", "rm", "tee", "truncate"];
/// Programs that run what a file of the folder tells them, which has one of the names below, and whatever that names in turn.
pub(super) const BUILDERS: [&str; 17] = [
    "make", "just", "task", "npm", "npx", "pnpm", "yarn", "bun", "deno", "cargo", "go", "uv", "poetry", "pytest",
    "prettier", "eslint", "mvn",
];
/// Programs whose settings in the folder run nothing else there.
pub(super) const FORMATTERS: [&str; 6] = ["biome", "tsc", "ruff", "black", "gofmt", "rustfmt"];
pub(super) const BUILD_FILES: [&str; 28] = [
    "makefile",
    "gnumakefile",
    "justfile",
    "taskfile.yml",
    "taskfile.yaml",
    "package.json",
    "deno.json",
    "bunfig.toml",
    "cargo.toml",
    "build.rs",
    "go.mod",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "conftest.py",
    "pytest.ini",
    "pom.xml",
    "rakefile",
    "gemfile",
    ".justfile",
    "taskfile.dist.yml",
    "taskfile.dist.yaml",
    "deno.jsonc",
    ".pnpmfile.cjs",
    "go.work",
    ".pytest.ini",
    "noxfile.py",
];
/// Those that name sources and documents rather than what they run.
pub(super) const MANIFESTS: [&str; 4] = ["cargo.toml", "go.mod", "pyproject.toml", "setup.cfg"];
pub(super) const SCRIPT_ENDINGS: [&str; 28] = [
    "sh", "bash", "zsh", "fish", "ksh", "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "pl", "php",
    "lua", "r", "awk", "sed", "ps1", "bat", "cmd", "mk", "just", "cmake", "gradle",
];

/// Folders of what is made out of the rest, beside those that are marked as a cache: making it changes it.
pub(super) const BUILT: [&str; 9] =
    ["target", "build", "dist", "out", "coverage", "node_modules", "venv", ".venv", ".next"];

/// Whether a builder takes what it starts from the file, by its name in lower case.
pub(super) fn is_build_file(name: &str) -> bool {
    let settings = name.starts_with('.') && name.contains("rc") || name.contains(".config.") || name == "config.toml";
    let rules = [".mk", ".just", ".cmake", ".gradle"].iter().any(|ending| name.ends_with(ending));
    settings || rules || BUILD_FILES.contains(&name) || name.starts_with("rust-toolchain")
}

/// Whether a shell, or another interpreter, could be meant to run the file.
pub(super) fn is_script(path: &Path, name: &str) -> bool {
    let lower = name.to_lowercase();
    let ending = lower.rsplit_once('.').map_or("", |(_, ending)| ending);
    #[cfg(unix)]
    let executable =
        path.metadata().is_ok_and(|data| std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0);
    #[cfg(not(unix))]
    let executable = false;
    executable
        || ending.is_empty()
        || SCRIPT_ENDINGS.contains(&ending)
        || is_build_file(&lower)
        || regular::read(path, 2).is_ok_and(|start| start == b"#!")
}

/// The part of a build file that holds command lines.
pub(super) fn commands_of(name: &str, bytes: &[u8]) -> String {
    let package = (name == "package.json").then(|| serde_json::from_slice::<serde_json::Value>(bytes).ok()).flatten();
    match package {
        Some(package) => package["scripts"].to_string(),
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}
