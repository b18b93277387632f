//! What well-known programs need: the hosts of their registries, offered as one grant, and the folders of their caches.

use std::path::{Path, PathBuf};

use crate::stdx::host::{Host, Pattern};

/// A program that fetches what others have published.
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    programs: &'static [&'static str],
    pub hosts: &'static [&'static str],
    caches: &'static [Cache],
}

/// Where a program keeps what it has fetched.
#[derive(Debug, PartialEq, Eq)]
struct Cache {
    /// Names another folder.
    variable: &'static str,
    /// Below the user's home folder.
    folder: &'static str,
    /// What of it is a cache: the rest may hold programs, settings and keys. Empty: all of it.
    parts: &'static [&'static str],
}

const PRESETS: [Preset; 5] = [
    Preset {
        name: "cargo",
        programs: &["cargo", "rustup"],
        hosts: &["crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"],
        caches: &[Cache {
            variable: "CARGO_HOME",
            folder: ".cargo",
            parts: &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"],
        }],
    },
    Preset {
        name: "npm",
        programs: &["npm", "npx", "pnpm", "yarn", "corepack"],
        hosts: &["registry.npmjs.org", "registry.yarnpkg.com"],
        caches: &[
            Cache { variable: "npm_config_cache", folder: ".npm", parts: &["_cacache", "_logs"] },
            Cache { variable: "PNPM_HOME", folder: ".local/share/pnpm", parts: &["store"] },
            Cache { variable: "XDG_CACHE_HOME", folder: ".cache", parts: &["pnpm", "yarn"] },
        ],
    },
    Preset {
        name: "pip",
        programs: &["pip", "pip3", "uv", "uvx", "pipx", "poetry", "python", "python3"],
        hosts: &["pypi.org", "files.pythonhosted.org"],
        caches: &[
            Cache { variable: "PIP_CACHE_DIR", folder: ".cache/pip", parts: &[] },
            Cache { variable: "UV_CACHE_DIR", folder: ".cache/uv", parts: &[] },
            Cache { variable: "XDG_CACHE_HOME", folder: ".cache", parts: &["pip", "uv", "pypoetry"] },
        ],
    },
    Preset {
        name: "go",
        programs: &["go"],
        hosts: &["proxy.golang.org", "sum.golang.org", "storage.googleapis.com"],
        caches: &[
            Cache { variable: "GOPATH", folder: "go", parts: &["pkg"] },
            Cache { variable: "GOMODCACHE", folder: "go/pkg/mod", parts: &[] },
            Cache { variable: "GOCACHE", folder: ".cache/go-build", parts: &[] },
        ],
    },
    Preset {
        name: "git",
        programs: &["git", "gh", "ssh"],
        hosts: &["github.com", "*.githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org"],
        caches: &[],
    },
];

impl Preset {
    /// Those of the programs of a command line.
    pub fn of(programs: &[String]) -> impl Iterator<Item = &'static Preset> {
        PRESETS.iter().filter(|preset| programs.iter().any(|program| preset.programs.contains(&program.as_str())))
    }

    /// The variables that put a cache elsewhere.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().flat_map(|preset| preset.caches).map(|cache| cache.variable)
    }

    /// Whether a host is one of its own.
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.hosts.iter().filter_map(|host| Pattern::parse(host)).any(|pattern| pattern.covers(host, port))
    }

    /// The folders and files of all caches.
    pub fn all_caches(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
        PRESETS.iter().flat_map(|preset| preset.caches(home, &variable)).collect()
    }

    /// The folders and files of its caches.
    pub fn caches(&self, home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for Cache { variable: name, folder, parts } in self.caches {
            let base = variable(name).filter(|base| base.is_absolute()).unwrap_or_else(|| home.join(folder));
            match parts.is_empty() {
                true => all.push(base),
                false => all.extend(parts.iter().map(|part| base.join(part))),
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_not_where_programs_or_keys_are() {
        let of = |programs: &[&str], set: Option<(&str, &str)>| {
            let programs: Vec<String> = programs.iter().map(|program| (*program).to_owned()).collect();
            let variable = |name: &str| set.filter(|(own, _)| *own == name).map(|(_, value)| PathBuf::from(value));
            let caches = Preset::of(&programs).flat_map(|preset| preset.caches(Path::new("/h"), variable));
            caches.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(&["ls", "make"], None), "");
        let cargo = "registry /h/.cargo/git".replace("registry", "/h/.cargo/registry");
        assert!(of(&["cd", "cargo"], None).contains("/h/.cargo/registry"), "{cargo}");
        for part in ["/h/.cargo/bin", "/h/.cargo/config.toml", "/h/.npm/_npx", "/h/go/bin"] {
            let all = of(&["cargo", "npm", "go", "uv"], None);
            assert!(!all.split(' ').any(|cache| Path::new(part).starts_with(cache)), "{part}: {all}");
        }
        assert!(of(&["go"], Some(("GOCACHE", "/x/y"))).contains("/x/y"));
        assert!(!of(&["go"], Some(("GOCACHE", "relative"))).contains("relative"));
    }

    #[test]
    fn hosts_are_patterns() {
        for preset in &PRESETS {
            assert!(preset.hosts.iter().all(|host| Pattern::parse(host).is_some()), "{}", preset.name);
        }
        let host = |text: &str| Host::parse(text).unwrap();
        let git = Preset::of(&["git".to_owned()]).next().unwrap();
        assert!(git.covers(&host("raw.githubusercontent.com"), 443) && !git.covers(&host("evil.com"), 443));
    }
}
