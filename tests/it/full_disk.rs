//! A disk that is full costs no file: also where a file cannot be replaced by a new one and has to be written in place.

use std::process::Command;

use super::support::program::Program;

/// Grows the file past what the disk has left, then takes most of it away.
const GROW: &str = "- reply: [tool: {name: Bash, input: {command: cat sub/a.txt >/dev/null}}]
- reply: [tool: {name: Read, input: {file_path: sub/a.txt, limit: 1}}]
- reply: [tool: {name: Write, input: {file_path: sub/a.txt, content: CONTENT}}]
- reply: [text: Done.]
";

/// One disk of 64 KiB with a file of 12 KiB, in a mount namespace of its own. Each line says what held.
const SCRIPT: &str = r#"
set -u
cocode=$1 way=$2 scripts=$3 project=$PWD
as=()
mount -t tmpfs -o size=64k tmpfs "$project" && cd "$project" || exit 77
mkdir sub && yes old | head -c 12288 >sub/a.txt
case $way in
    other-name) ln sub/a.txt b.txt ;;
    mounted) mv sub/a.txt real && touch sub/a.txt && mount --bind real sub/a.txt || exit 77 ;;
    closed-folder)
        chmod 555 sub
        as=(setpriv --bounding-set=-all --inh-caps=-all)
        "${as[@]}" touch sub/x 2>/dev/null && exit 77 ;;
esac
before=$(sha256sum <sub/a.txt)
inode=$(stat -c %i:%h sub/a.txt)
fill() { cat /dev/zero >fill 2>/dev/null; }
run() { "${as[@]}" "$cocode" "$@" --dangerously-skip-permissions 2>&1 </dev/null >>"$scripts/out"; }
is() { test "$(sha256sum <sub/a.txt)" = "$2" && echo "$1" || echo "NOT $1 ($(stat -c %s sub/a.txt) bytes)"; }
fill
run -p go --offline-script "$scripts/grow"
is "whole when it could not grow" "$before"
rm fill
run -p go --offline-script "$scripts/grow"
grown=$(sha256sum <sub/a.txt)
test "$grown" != "$before" && echo grown
fill
run --continue -p /undo
is "undone on a full disk" "$before"
fill
run --continue -p /redo
is "whole when it could not be redone" "$before"
rm fill
run --continue -p /redo
is redone "$grown"
run -p go --offline-script "$scripts/shrink"
fill
run --continue -p /undo
echo "shrunk: $(stat -c %s sub/a.txt)"
rm fill
run --continue -p /undo
is "undone once there was room" "$grown"
test "$(stat -c %i:%h sub/a.txt)" = "$inode" && echo "the same file"
ls -A sub | grep -v '^a.txt$'
exit 0
"#;

/// None: this machine lets nobody mount.
fn run(way: &str) -> Option<String> {
    let program = Program::new();
    let json = |text: &str, times: usize| format!("{:?}", format!("{text}\n").repeat(times));
    let script = program.script("grow", &GROW.replace("CONTENT", &json("new line", 3_000)));
    program.script("shrink", &GROW.replace("CONTENT", "tiny"));
    let scripts = std::path::Path::new(&script).parent().unwrap().to_str().unwrap();
    let args = ["-rm", "bash", "-c", SCRIPT, "full-disk", Program::binary(), way, scripts];
    let mut command: Command = program.command("unshare", &args);
    command.env("COCODE_SANDBOXED", "1");
    let done = program.wait(command);
    if done.code != Some(0) {
        return None;
    }
    let out = std::fs::read_to_string(format!("{scripts}/out")).unwrap_or_default();
    Some(format!("{}{}", done.out, if done.out.contains("NOT") { out } else { String::new() }))
}

#[test]
fn a_full_disk_costs_no_file() {
    let want = "whole when it could not grow\ngrown\nundone on a full disk\nwhole when it could not be redone\nredone\n\
                 shrunk: 4\nundone once there was room\nthe same file\n";
    for way in ["other-name", "mounted", "closed-folder"] {
        let Some(found) = run(way) else { continue };
        assert_eq!(found, want, "{way}");
    }
}
