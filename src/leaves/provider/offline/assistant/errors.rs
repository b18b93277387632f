//! What common errors mean, and where in this project they come from.

use super::{Recipe, Situation, bash, look, suspects, tail, tell};

/// What an error says, what it means, and what usually helps.
const KNOWN: &str = r#"ModuleNotFoundError | Python found no module of that name | Install it (`python3 -m pip install <name>`, in the environment the program runs in), or start the program from the folder that contains the module.
ImportError | the module was found, but not the name in it | Check the spelling, and whether two modules import each other.
IndexError | a list was read behind its end | Check for an empty list and for an index that is one too high.
index out of range | a list was read behind its end | The last index is the length minus one: check for an empty list and for a loop that runs one step too far.
index out of bounds | a list was read behind its end | The last index is the length minus one: check for an empty list and for a loop that runs one step too far.
KeyError | a dictionary has no entry with that key | Use `.get(key)` for keys that may be missing.
NameError | a name is used that nothing defined before | Check its spelling, and whether an import is missing.
ZeroDivisionError | something was divided by zero | Handle the empty or zero case before the division.
'NoneType' object | a value is `None` where an object was expected | A function without a `return`, or a lookup that found nothing, gives `None`.
AttributeError | the object has no attribute or method of that name | Check the spelling and the type of the value.
IndentationError | the lines of a block are not indented alike | Use the same number of spaces, and no tabs, for all lines of a block.
UnicodeDecodeError | bytes were read as text of another encoding | Name the encoding when you open the file, such as `encoding="utf-8"`.
RecursionError | a function calls itself without an end | Check the condition that should stop it.
SyntaxError | the code could not be read as code | Look at the line it names and at the one before: a missing parenthesis, quote, colon or comma.
of undefined | something is `undefined` where an object was expected | Check what the call before it returns: a missing `return` or `await` gives `undefined`.
of null | something is `null` where an object was expected | Check what the call before it returns, and handle the empty case.
is not a function | something that is not a function was called | Check its spelling and how it is exported and imported.
is not defined | a name is used that nothing declared | Check its spelling, and whether an import is missing.
Cannot find module | Node found no module or file of that name | Run `npm install`, or check the path: paths of your own files begin with `./`.
EADDRINUSE | another program is listening on that port | Stop it, or use another port.
ECONNREFUSED | nothing is listening at that address | Start the server first, or check host and port.
nil pointer dereference | a pointer is `nil` where a value was expected | Check errors before you use what a call returned, and initialize maps and pointers.
Segmentation fault | the program used memory that is not its own | Build with `-g -fsanitize=address` and run it again: that names the line.
undefined reference | the linker found no definition of that name | Add the source file or library that defines it to the command that links.
borrow of moved value | the value was given away before this line | Borrow it where it was given away (`&value`), or clone it there.
cannot borrow | the value is borrowed elsewhere in a way that excludes this | End the other borrow earlier, for example in a block of its own.
mismatched types | one type was expected and another one found | The message names both: convert the value, or change the signature.
Permission denied | the operating system did not allow it | Check the owner and mode of the file (`ls -l`).
No such file or directory | there is no file at that path | Check the path and the folder that the program runs in.
TypeError | a value has a type that this does not work with | Check what is passed: a number in place of a text, or too few arguments."#;

/// The row for an error that a text has in it.
pub(super) fn known(text: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let mut rows = KNOWN.lines().filter_map(|row| {
        let (mark, rest) = row.split_once(" | ")?;
        rest.split_once(" | ").map(|(means, helps)| (mark, means, helps))
    });
    rows.find(|(mark, ..)| text.contains(mark))
}

/// Explains a pasted error: its meaning, what the compiler says of its code, and the places of this project in it.
pub(super) fn explain(situation: &Situation) -> Recipe {
    let text = &situation.prompt;
    let mut told = Vec::new();
    if let Some((mark, means, helps)) = known(text) {
        told.push(format!("`{mark}`: {means}. {helps}"));
    }
    let code = text
        .split(|c: char| !c.is_alphanumeric())
        .find(|word| word.len() == 5 && word.starts_with('E') && word[1..].chars().all(|c| c.is_ascii_digit()));
    if let Some(code) = code {
        let [said] =
            situation.need("Asking the compiler.", [bash(&format!("rustc --explain {code}"), "Explain the error")])?;
        let said_text = said.text();
        let lines = said_text.lines().take(40).collect::<Vec<_>>().join("\n");
        told.push(if said.ok() {
            format!("`rustc --explain {code}` says:\n\n> {}", lines.replace('\n', "\n> "))
        } else {
            format!("`rustc --explain {code}` does not run here.")
        });
    }
    let places = suspects::places(text, &situation.cwd);
    if !places.is_empty() {
        let all: Vec<String> = places.iter().take(5).map(|place| format!("`{}:{}`", place.path, place.line)).collect();
        told.push(format!("It names {}.", all.join(", ")));
    }
    // What it quotes may be a name of this project.
    let quoted = ['\'', '`', '"'].iter().find_map(|mark| text.split(*mark).nth(1)).map(str::to_owned);
    let name = quoted.filter(|name| super::code::words(name).next() == Some(name.as_str()) && name.len() > 2);
    if let Some(name) = name {
        let hits: Vec<String> =
            look::mentions(situation, std::slice::from_ref(&name))?.iter().map(look::Hit::shown).collect();
        told.push(match hits.is_empty() {
            true => format!("Nothing in this folder mentions `{name}`."),
            false => format!("`{name}` appears here:\n\n{}", super::rows(&hits, 8)),
        });
    }
    if told.is_empty() {
        let text = "I do not know that error. `run the tests` and `fix the failing test` work from one that a test shows; explaining others takes a real model.";
        return tell(format!("{text}\n\n{}", tail(&situation.prompt, 5)));
    }
    told.push("If a test shows it, `fix the failing test` tries small changes.".into());
    tell(told.join("\n\n"))
}
