//! The same for programs that run the project's own code, look or administer, and the row for those that nobody described: a
//! rule for such a one covers plain words, and of its options those alone that say how much is told.

use super::table::{Covered, Operands, covered};

const fn words(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::Words }
}

const fn script(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::Script }
}

/// One that runs what comes in, or what its operands say.
const fn statements(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::First("") }
}

/// What is covered of any program.
const REST: Covered = words("", "help version verbose quiet silent dry-run no-color");

/// Names under which a program is known as well.
const ALSO: [(&str, &str); 10] = [
    ("python3", "python"),
    ("pip3", "pip"),
    ("podman", "docker"),
    ("nerdctl", "docker"),
    ("gradlew", "gradle"),
    ("mvnw", "mvn"),
    ("tofu", "terraform"),
    ("oc", "kubectl"),
    ("mariadb", "mysql"),
    ("ts-node", "tsx"),
];

/// What is covered of the program, and of the subcommand where it has a row of its own.
pub(super) fn of(name: &str, arguments: &[String]) -> &'static Covered {
    let name = ALSO.iter().find(|(also, _)| *also == name).map_or(name, |(_, name)| name);
    let speaks = |covered: &&Covered| {
        let mut words = covered.command.split(' ');
        words.next() == Some(name) && words.next().is_none_or(|sub| arguments.first().is_some_and(|word| word == sub))
    };
    TABLE.iter().find(speaks).unwrap_or(&REST)
}

/// Whether there is a row for it.
pub(super) fn describes(name: &str) -> bool {
    !of(name, &[]).command.is_empty()
}

const TABLE: &[Covered] = &[
    script("python", "B/B b/b d/d E/E I/I O/O q/q s/s S/S u/u v/v version/V help/h"),
    script("ruby", "w/w v/v c/c version help/h"),
    script("php", "l/l q/q n/n version/v modules/m help/h"),
    script("lua", "v/v W/W"),
    script("Rscript", "vanilla verbose version help"),
    script("tsx", "version/v help/h"),
    // Statements come from their input, and some of these run programs.
    statements("psql", "list/l version/V help"),
    statements("mysql", "version/V help"),
    statements("sqlite3", "version help"),
    covered(
        "pip",
        "upgrade/U requirement=/r editable=/e constraint=/c quiet/q verbose/v no-deps user pre yes/y dry-run outdated/o \
         format= local/l disable-pip-version-check no-cache-dir no-input prefer-binary force-reinstall files/f not-required \
         break-system-packages version/V help/h",
    ),
    covered(
        "uv",
        "dev group= extra= all-extras all-groups frozen locked quiet/q verbose/v no-dev upgrade/U no-sync active offline \
         no-cache package= all-packages requirement=/r editable=/e version/V help/h",
    ),
    covered(
        "poetry",
        "dev/D group=/G with= without= only= no-root all-extras extras=/E quiet/q verbose/v no-interaction/n dry-run tree/t \
         latest/l outdated/o sync lock no-dev version/V help/h",
    ),
    words("unittest", "verbose/v quiet/q failfast/f catch/c buffer/b k=/k locals"),
    words("venv", "system-site-packages clear upgrade upgrade-deps without-pip prompt="),
    words("json.tool", "sort-keys indent= compact no-ensure-ascii json-lines"),
    words("http.server", "bind=/b"),
    words("build", "wheel/w sdist/s no-isolation/n verbose/v"),
    words(
        "coverage",
        "show-missing/m skip-covered include= omit= precision= sort= fail-under= quiet/q branch append/a",
    ),
    words(
        "mypy",
        "strict ignore-missing-imports show-error-codes pretty no-incremental module=/m package=/p explicit-package-bases \
         namespace-packages warn-unused-ignores disallow-untyped-defs check-untyped-defs python-version= platform= \
         no-error-summary follow-imports= exclude= show-column-numbers no-color-output verbose/v version/V help/h",
    ),
    words(
        "pyright",
        "project=/p outputjson warnings watch/w stats level= pythonversion= pythonplatform= verbose version",
    ),
    words(
        "black",
        "check diff quiet/q verbose/v line-length=/l target-version=/t skip-string-normalization/S \
         skip-magic-trailing-comma/C fast safe color no-color include= exclude= extend-exclude= force-exclude= workers=/W \
         preview pyi version help/h",
    ),
    words(
        "isort",
        "check-only/c check diff/d profile= quiet/q verbose/v line-length=/l atomic skip=/s skip-glob= float-to-top version",
    ),
    words(
        "flake8",
        "max-line-length= ignore= extend-ignore= select= extend-select= count statistics show-source exclude= \
         max-complexity= quiet/q verbose/v per-file-ignores= jobs=/j version help/h",
    ),
    words("pylint", "disable=/d enable=/e errors-only/E jobs=/j score=/s reports=/r recursive= version help/h"),
    words("tox", "env=/e parallel?/p quiet/q verbose/v recreate/r list/l notest version help/h"),
    words("nox", "session=/s sessions= list/l reuse-existing-virtualenvs/r keyword=/k tags=/t verbose/v help/h"),
    words("pre-commit", "all-files/a files= verbose/v show-diff-on-failure hook-stage= color= from-ref= to-ref="),
    words(
        "eslint",
        "fix fix-dry-run ext= quiet max-warnings= cache no-cache no-error-on-unmatched-pattern \
         report-unused-disable-directives ignore-pattern= no-ignore color no-color debug rule= env= global= fix-type= format=/f \
         no-inline-config concurrency= no-warn-ignored version/v help/h",
    ),
    words(
        "prettier",
        "write/w check/c list-different/l loglevel= log-level= cache no-cache ignore-unknown/u no-config parser= tab-width= \
         print-width= single-quote no-semi trailing-comma= use-tabs end-of-line= prose-wrap= no-editorconfig stdin-filepath= \
         no-error-on-unmatched-pattern arrow-parens= quote-props= bracket-same-line with-node-modules color no-color version/v \
         help/h",
    ),
    words(
        "jest",
        "watch watchAll coverage silent verbose testNamePattern=/t testPathPattern= testPathPatterns= runInBand/i bail?/b ci \
         updateSnapshot/u onlyChanged/o passWithNoTests maxWorkers=/w no-cache clearCache detectOpenHandles forceExit listTests \
         json findRelatedTests colors expand/e onlyFailures/f lastCommit changedSince= testTimeout= logHeapUsage randomize \
         seed= shard= selectProjects= showSeed no-coverage version help/h",
    ),
    words(
        "vitest",
        "run watch/w coverage? reporter= testNamePattern=/t update/u silent? changed? globals passWithNoTests no-coverage \
         typecheck retry= maxWorkers= pool= shard= project= hideSkippedTests bail= logHeapUsage no-color color version/v help/h",
    ),
    words(
        "mocha",
        "grep=/g fgrep=/f invert/i bail/b watch/w timeout=/t retries= recursive parallel/p jobs=/j slow=/s exit dry-run \
         color/c no-color forbid-only forbid-pending check-leaves version/V help/h",
    ),
    words(
        "playwright",
        "headed project= grep=/g workers=/j reporter= retries= update-snapshots/u list last-failed max-failures=/x \
         repeat-each= shard= trace= timeout= only-changed? pass-with-no-tests browser= with-deps quiet version/V help/h",
    ),
    words(
        "tsc",
        "noEmit project=/p watch/w build/b strict pretty listFiles incremental skipLibCheck target=/t module=/m jsx= lib= \
         esModuleInterop noErrorTruncation extendedDiagnostics diagnostics traceResolution showConfig force/f dry/d verbose \
         moduleResolution= allowJs checkJs resolveJsonModule noImplicitAny strictNullChecks version/v help/h",
    ),
    words("vite", "mode=/m host? port= open? strictPort watch/w version/v help/h"),
    words("next", "port=/p turbo turbopack hostname=/H version/v help/h"),
    words("turbo", "filter=/F parallel force? no-cache concurrency= dry? continue summarize only version help/h"),
    words(
        "nx",
        "all/a base= head= projects=/p skip-nx-cache verbose parallel= target=/t targets= exclude= configuration=/c",
    ),
    covered(
        "pnpm",
        "save-dev/D save-prod/P save-exact/E save-optional/O frozen-lockfile no-frozen-lockfile recursive/r filter=/F \
         workspace-root/w silent/s if-present prefer-offline offline prod dev no-optional ignore-scripts depth= long json \
         parseable latest/L parallel stream aggregate-output no-sort force reporter= loglevel= lockfile-only no-bail watch \
         coverage ci run fix quiet version/v help/h",
    ),
    covered(
        "yarn",
        "dev/D exact/E frozen-lockfile immutable silent/s production ignore-scripts check-files verbose json network-timeout= \
         pure-lockfile prefer-offline offline force non-interactive ignore-engines ignore-optional watch coverage ci run fix \
         all/A version/v help/h",
    ),
    covered(
        "bun",
        "watch coverage dev exact frozen-lockfile silent production timeout= bail? test-name-pattern=/t only all/a",
    ),
    covered("bundle", "jobs=/j retry= quiet local verbose full-index no-color version/v"),
    words(
        "rspec",
        "format=/f color/c no-color example=/e tag=/t fail-fast? next-failure/n only-failures order= seed= profile?/p \
         backtrace/b dry-run bisect? warnings/w version/v help/h",
    ),
    words(
        "rubocop",
        "autocorrect/a autocorrect-all/A format=/f parallel/P display-cop-names/D only= except= lint/l fail-level= \
         extra-details/E version/v help/h",
    ),
    words(
        "rake",
        "tasks?/T prereqs/P dry-run/n quiet/q silent/s trace? verbose/v all/A jobs?/j multitask/m version/V help/H",
    ),
    covered(
        "composer",
        "dev no-dev no-interaction/n quiet/q verbose/v no-scripts no-plugins optimize-autoloader/o prefer-dist prefer-source \
         dry-run with-all-dependencies/W with-dependencies/w latest/l direct/D ansi no-ansi no-progress ignore-platform-reqs \
         format= tree/t all/a installed/i version/V help/h",
    ),
    words(
        "phpunit",
        "filter= testsuite= group= exclude-group= stop-on-failure stop-on-error testdox colors? verbose/v no-coverage \
         order-by= list-tests version help/h",
    ),
    words(
        "mix",
        "trace only= exclude= include= seed= failed stale max-failures= cover color no-color force warnings-as-errors \
         check-formatted dry-run slowest= all",
    ),
    words(
        "gradle",
        "quiet/q info/i stacktrace/s full-stacktrace/S continue daemon no-daemon parallel rerun-tasks build-cache \
         no-build-cache offline dry-run/m tests= exclude-task=/x console= warn/w debug/d refresh-dependencies \
         configuration-cache no-configuration-cache max-workers= status stop version/v help/h",
    ),
    // As go's, its options have one dash.
    words(
        "mvn",
        "q B e X o U ntp am amd fae ff fn pl= T= P= Dtest= Dit.test= DskipTests? DskipITs? Dmaven.test.skip? DfailIfNoTests? \
         Dstyle.color? Dcheckstyle.skip? v h quiet batch-mode errors offline no-transfer-progress version help",
    ),
    words(
        "dotnet",
        "configuration=/c framework=/f runtime=/r verbosity=/v no-build no-restore nologo filter= list-tests/t project=",
    ),
    words(
        "swift",
        "configuration=/c verbose/v filter= parallel product= target= show-bin-path enable-code-coverage build-tests skip=",
    ),
    words(
        "rustc",
        "edition= crate-type= crate-name= O/O g/g test o=/o W=/W A=/A D=/D explain= color= cfg= verbose/v version/V help/h",
    ),
    words("rustfmt", "edition= check verbose/v quiet/q emit= color= files-with-diff/l version/V help/h"),
    words("gofmt", "l/l w/w d/d s/s e/e"),
    words("golangci-lint", "fix timeout= verbose/v fast enable=/E disable=/D tests? concurrency=/j no-config"),
    words(
        "clang-format",
        "i/i style= n/n dry-run Werror verbose sort-includes lines= assume-filename= fallback-style= version",
    ),
    words(
        "cmake",
        "build= target=/t parallel?/j config= clean-first verbose/v S=/S B=/B G=/G preset= install= D=/D version help",
    ),
    words(
        "ctest",
        "test-dir= output-on-failure parallel?/j verbose/V quiet/Q tests-regex=/R exclude-regex=/E label-regex=/L rerun-failed \
         stop-on-failure timeout= repeat= show-only?/N build-config=/C version",
    ),
    words("ninja", "C=/C j=/j k=/k n/n v/v quiet version"),
    words(
        "meson",
        "wipe reconfigure buildtype= verbose/v C=/C list num-processes= suite= no-rebuild print-errorlogs version",
    ),
    words(
        "just",
        "list/l summary show=/s dry-run/n verbose/v quiet/q color= no-deps unsorted/u evaluate variables groups version/V help/h",
    ),
    words(
        "task",
        "list/l list-all/a dry/n verbose/v silent/s force/f parallel/p status summary watch/w color/c version help/h",
    ),
    words(
        "shellcheck",
        "severity=/S shell=/s exclude=/e include=/i format=/f external-sources/x color? enable=/o check-sourced/a version/V",
    ),
    words(
        "docker run",
        "rm interactive/i tty/t detach/d name= env=/e volume=/v publish=/p workdir=/w user=/u network= platform= pull= \
         entrypoint= hostname=/h memory=/m cpus= label=/l init read-only tmpfs= add-host= quiet/q restart= shm-size=",
    ),
    words("docker exec", "interactive/i tty/t detach/d env=/e user=/u workdir=/w"),
    words(
        "docker build",
        "tag=/t file=/f build-arg= no-cache pull quiet/q target= platform= progress= label= load push rm force-rm network=",
    ),
    words("docker logs", "follow/f tail=/n since= until= timestamps/t details"),
    words("docker ps", "all/a quiet/q filter=/f format= latest/l last=/n no-trunc size/s"),
    words("docker images", "all/a quiet/q filter=/f format= no-trunc digests tree"),
    words("docker inspect", "format=/f size/s type="),
    words(
        "docker compose",
        "file=/f detach/d build project-name=/p profile= env-file= no-deps rm T/T follow tail= timestamps/t volumes/v \
         remove-orphans force-recreate no-recreate quiet/q quiet-pull all/a services status= format= scale= wait no-build \
         no-cache pull= interactive index= workdir=/w user=/u env=/e timeout= since= until= no-color no-log-prefix ansi= \
         progress= no-start renew-anon-volumes/V",
    ),
    words(
        "docker",
        "all/a quiet/q force/f filter= format= volumes/v no-trunc no-stream size/s type= tag=/t archive follow-link/L time= \
         signal=/s file= version help",
    ),
    words(
        "kubectl",
        "namespace=/n all-namespaces/A output=/o selector=/l filename=/f watch/w follow tail= since= since-time= container=/c \
         previous/p timestamps all show-labels recursive/R dry-run? field-selector= sort-by= no-headers wide limit= \
         limit-bytes= all-containers prefix label-columns=/L show-kind ignore-not-found replicas= image= port= target-port= \
         type= name= force grace-period= timeout= wait? stdin/i tty/t local client short for= overwrite api-group= namespaced \
         verbs= containers revision= to-revision= from-literal= server-side request-timeout= field-manager= chunk-size= \
         current-replicas= ignore-daemonsets delete-emptydir-data help/h",
    ),
    words(
        "helm",
        "namespace=/n output=/o values=/f set= set-string= version= dry-run? all-namespaces/A all/a install/i create-namespace \
         wait timeout= atomic debug reuse-values reset-values max= short/q filter= devel revision= strict with-subcharts \
         show-only=/s api-versions= update/u dependency-update kube-version= no-hooks description= help/h",
    ),
    words(
        "terraform",
        "input= no-color json var= target= refresh= lock= lock-timeout= compact-warnings parallelism= upgrade reconfigure check \
         recursive diff write= list= destroy refresh-only detailed-exitcode replace= raw help version",
    ),
    words(
        "aws",
        "region= output= query= recursive human-readable summarize dryrun no-paginate max-items= page-size= no-cli-pager delete \
         exclude= include= quiet only-show-errors no-progress follow filters= instance-ids= bucket= prefix= key= stack-name= \
         function-name= log-group-name= cluster= services= tasks= name= names= table-name= role-name= repository-name= since= \
         format= filter-pattern= start-time= end-time= limit= version",
    ),
    words("gcloud", "format= filter= limit= region= zone= quiet/q help/h version/v"),
    words("systemctl", "no-pager all/a type=/t state= user failed full/l lines=/n quiet/q version help/h"),
    words(
        "journalctl",
        "unit=/u lines=/n follow/f since= until= no-pager priority=/p boot?/b output=/o reverse/r grep=/g user identifier=/t \
         dmesg/k catalog/x version help/h",
    ),
    covered("brew", "quiet/q verbose/v cask formula json? installed version help/h"),
    words("lsof", "i?/i n/n P/P p=/p t/t u=/u"),
    words("ss", "t/t u/u l/l n/n p/p a/a s/s"),
    words("netstat", "t/t u/u l/l n/n p/p a/a r/r"),
    words("ping", "c=/c W=/W i=/i q/q n/n"),
    words("pkill", "full/f exact/x newest/n oldest/o signal= 9/9"),
];
