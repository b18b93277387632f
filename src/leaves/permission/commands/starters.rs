//! Programs that start the one that their words name: the one table of them. The inner command is found behind options that are
//! listed; behind another one nobody knows where it begins.

use super::super::shell::MANY;
use super::commit::Subcommand;

/// What a rule for such a program says of the one that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::permission) enum Kind {
    /// It is a tool of the project's or a package: the rule covers it as far as one for itself would, were it named.
    Tool,
    /// The same, and it is fetched where it is not there.
    Package,
    /// It is a script of the package's, or in a container with files of its own: the rule covers it unless it starts more.
    Inside,
    /// It is any program: the rule has to name it.
    Any,
}

/// Where the inner command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::permission) enum Inner {
    /// At this place among the arguments.
    At(usize),
    /// It is missing.
    Missing,
    /// It comes behind this word, of which nobody knows whether it has a value, or it is in it.
    Behind(String),
}

struct Starter {
    /// The program and its subcommand.
    command: &'static str,
    kind: Kind,
    /// Options before the inner command, in the form of `commit::Subcommand`, those before the subcommand among them.
    options: &'static str,
    /// Operands before it.
    operands: usize,
}

const fn tool(command: &'static str, options: &'static str) -> Starter {
    Starter { command, kind: Kind::Tool, options, operands: 0 }
}

const fn package(command: &'static str, options: &'static str) -> Starter {
    Starter { command, kind: Kind::Package, options, operands: 0 }
}

const fn script(command: &'static str, operands: usize, options: &'static str) -> Starter {
    Starter { command, kind: Kind::Inside, options, operands }
}

const fn inside(command: &'static str, options: &'static str) -> Starter {
    Starter { command, kind: Kind::Inside, options, operands: 1 }
}

const fn any(command: &'static str, operands: usize, options: &'static str) -> Starter {
    Starter { command, kind: Kind::Any, options, operands }
}

const UV: &str = "quiet/q verbose/v no-sync frozen locked active offline isolated exact dev no-dev only-dev group= no-group= \
    only-group= extra= no-extra= all-extras all-groups all-packages no-cache/n no-progress color= package= upgrade/U \
    module/m python-preference=";
const NPM: &str = "silent/s quiet/q yes/y no no-install offline prefer-offline workspaces workspace=/w include-workspace-root \
    loglevel= if-present";
const PNPM: &str = "silent/s recursive/r parallel filter=/F workspace-root/w offline stream aggregate-output no-bail no-sort \
    no-reporter-hide-prefix loglevel= reporter= color no-color version/v help/h";
const YARN: &str = "silent/s quiet/q verbose/v non-interactive all/A recursive/R parallel/p topological/t include= exclude= \
    interlaced/i worktree/W";
const DOCKER: &str = "interactive/i tty/t detach/d T/T no-TTY env=/e user=/u workdir=/w privileged index= quiet-pull \
    detach-keys= namespace=/n context= container=/c stdin quiet/q file=/f project-name=/p profile= ansi= progress= no-deps rm \
    log-level=";

const TABLE: &[Starter] = &[
    tool("python -m", ""),
    tool("uv run", UV),
    package("uv tool run", UV),
    package("uvx", UV),
    tool("poetry run", "quiet/q verbose/v no-interaction/n no-ansi ansi"),
    tool("pipenv run", "quiet/q verbose/v"),
    tool("pdm run", "quiet/q verbose/v site-packages/s"),
    tool("rye run", "quiet/q verbose/v list/l"),
    tool("hatch run", "quiet/q verbose/v no-color"),
    package("pipx run", "quiet/q verbose/v"),
    tool("bundle exec", "verbose/V no-color quiet keep-file-descriptors gemfile="),
    package("npx", NPM),
    package("npm exec", NPM),
    package("npm x", NPM),
    tool("pnpm exec", PNPM),
    package("pnpm dlx", PNPM),
    tool("yarn exec", YARN),
    package("yarn dlx", YARN),
    script("yarn workspaces foreach", 0, YARN),
    package("bunx", "silent verbose bun b/b"),
    package("bun x", "silent verbose bun b/b"),
    script("bun run", 0, "silent verbose bun b/b if-present"),
    script("yarn workspace", 1, YARN),
    script("pnpm", 0, PNPM),
    tool("rbenv exec", ""),
    tool("pyenv exec", ""),
    tool("asdf exec", ""),
    tool("composer exec", "quiet/q verbose/v no-interaction/n no-plugins no-scripts"),
    tool("coverage run", "append/a branch parallel-mode/p module/m"),
    tool("pixi run", "quiet/q verbose/v frozen locked"),
    tool("nx exec", ""),
    tool("lerna exec", "stream parallel no-bail no-sort no-private concurrency= scope= ignore="),
    tool("conda run", "no-capture-output live-stream verbose/v name=/n"),
    tool("micromamba run", "name=/n"),
    inside("docker exec", DOCKER),
    inside("docker run", DOCKER_RUN),
    inside("docker compose exec", DOCKER),
    inside("docker compose run", DOCKER_RUN),
    inside("kubectl exec", DOCKER),
    any("direnv exec", 1, ""),
    any("mise exec", 0, ""),
    any("mise x", 0, ""),
    any("op run", 0, "no-masking"),
    any("doppler run", 0, ""),
    any("dotenv", 0, ""),
    any("dotenvx run", 0, ""),
    any("opam exec", 0, ""),
    any("stack exec", 0, ""),
    any("cabal exec", 0, "verbose?/v"),
    any("tox exec", 0, "e=/e quiet/q"),
    any("devbox run", 0, "quiet/q"),
    any("nix run", 0, ""),
    any("nix shell", 0, ""),
    any("nix develop", 0, ""),
    any("nix-shell", 0, ""),
    any("cross-env", 0, ""),
    any("cross-env-shell", 0, ""),
    any("concurrently", 0, ""),
    any("nodemon", 0, "quiet/q"),
    any("watchexec", 0, "quiet/q clear/c restart/r"),
    any("cargo watch", 0, "quiet/q clear/c"),
    any("hyperfine", 0, "warmup=/w runs=/r"),
    any("entr", 0, "c/c r/r d/d n/n p/p z/z"),
    any("valgrind", 0, "quiet/q verbose/v tool= leak-check? error-exitcode= track-origins? num-callers="),
    any("perf stat", 0, "all-cpus/a detailed/d event=/e repeat=/r"),
    any("perf record", 0, "g/g all-cpus/a freq=/F event=/e call-graph="),
    any("perf trace", 0, ""),
    any("gdb", 0, "args batch quiet/q nx/n"),
    any("lldb", 0, "batch/b"),
    any("rr record", 0, ""),
    any("rr", 0, ""),
    any("heaptrack", 0, ""),
    any("catchsegv", 0, ""),
    any("systemd-run", 0, "user quiet/q wait pipe/P pty/t scope collect/G"),
    any("systemd-inhibit", 0, ""),
    any("dbus-run-session", 0, ""),
    any("dbus-launch", 0, ""),
    any("xvfb-run", 0, "auto-servernum/a auto-display/d server-num=/n"),
    any("caffeinate", 0, "d/d i/i m/m s/s u/u"),
    any("faketime", 1, ""),
    any("fakeroot", 0, ""),
    any("proot", 0, ""),
    any("bwrap", 0, ""),
    any("firejail", 0, "quiet"),
    any("chronic", 0, "v/v e/e"),
    any("rlwrap", 0, ""),
    any("proxychains", 0, "q/q"),
    any("proxychains4", 0, "q/q"),
    any("torsocks", 0, ""),
    any("tsocks", 0, ""),
    any("numactl", 0, ""),
    any("runuser", 0, ""),
    any("pkexec", 0, ""),
    any("gosu", 1, ""),
    any("su-exec", 1, ""),
    any("dtach", 1, ""),
    any("toybox", 0, ""),
    any("unbuffer", 0, ""),
];

const DOCKER_RUN: &str = "rm interactive/i tty/t detach/d name= env=/e volume=/v publish=/p workdir=/w user=/u network= platform= \
    pull= entrypoint= hostname=/h memory=/m cpus= label=/l init read-only tmpfs= add-host= quiet/q restart= shm-size= T/T no-TTY \
    no-deps service-ports build file=/f project-name=/p profile=";

/// Names under which a program is known as well.
const ALSO: [(&str, &str); 7] = [
    ("python3", "python"),
    ("podman", "docker"),
    ("nerdctl", "docker"),
    ("oc", "kubectl"),
    ("docker-compose", "docker compose"),
    ("podman-compose", "docker compose"),
    ("mamba", "conda"),
];

/// What the program starts; None where it is not one of these.
pub(in crate::permission) fn inner(name: &str, arguments: &[String]) -> Option<(Kind, Inner)> {
    let known = ALSO.iter().find(|(also, _)| *also == name).map_or(name, |(_, known)| known);
    let own = TABLE.iter().filter_map(|row| {
        let mut words = row.command.split(' ');
        known.split(' ').all(|word| words.next() == Some(word)).then(|| (row, words.collect::<Vec<_>>()))
    });
    own.filter_map(|(row, words)| Some((row.kind, row.inner(&words, arguments)?))).next()
}

/// Whether the program starts any other that its words name, without a subcommand.
pub(in crate::permission) fn carries(name: &str) -> bool {
    TABLE.iter().any(|row| row.kind == Kind::Any && row.command == name)
}

impl Starter {
    fn inner(&self, subcommand: &[&str], arguments: &[String]) -> Option<Inner> {
        let options = Subcommand { name: "", options: self.options };
        let mut wanted = subcommand.iter();
        let mut next = wanted.next();
        let mut operands = self.operands;
        // The first word of which nobody knows what it is: it counts once the subcommand is found.
        let mut unclear: Option<&String> = None;
        let mut at = 0;
        let splits = |at: usize| arguments.get(at).is_some_and(|word| word.contains(MANY));
        while let Some(word) = arguments.get(at) {
            let option = word.starts_with(['-', '+']) && word.len() > 1 && Some(&word.as_str()) != next;
            if word == "--" && next.is_none() && unclear.is_none() {
                if operands == 0 {
                    at += 1;
                    break;
                }
                at += 1;
            } else if option {
                match options.step(word) {
                    Some(step) if word != "--" && !(step > 1 && splits(at + 1)) => at += step,
                    _ => {
                        unclear = unclear.or(Some(word));
                        if next.is_none() {
                            break;
                        }
                        at += 1;
                    }
                }
            } else if let Some(want) = next {
                match word == want {
                    true => next = wanted.next(),
                    // Behind an option that is not known it may be the value.
                    false if unclear.is_some() => {}
                    false => return None,
                }
                at += 1;
            } else if unclear.is_some() || operands == 0 {
                break;
            } else {
                unclear = Some(word).filter(|_| splits(at));
                operands -= 1;
                at += 1;
            }
        }
        if next.is_some() {
            return None;
        }
        Some(match unclear {
            Some(word) => Inner::Behind(word.clone()),
            None if at < arguments.len() => Inner::At(at),
            None => Inner::Missing,
        })
    }
}
