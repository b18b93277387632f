//! Scripts within arguments that are known to only print: sed's and awk's.

/// Whether a sed script only prints: addresses, and commands that neither write, read a file, execute nor jump.
pub(in crate::permission) fn sed_only_prints(script: &str) -> bool {
    let mut rest = Rest(script);
    let mut depth = 0usize;
    loop {
        rest.skip(|c| c.is_whitespace() || c == ';');
        if rest.0.is_empty() {
            return depth == 0;
        }
        if rest.0.starts_with('}') {
            let Some(less) = depth.checked_sub(1) else { return false };
            depth = less;
            rest.next();
            continue;
        }
        if !addresses(&mut rest) {
            return false;
        }
        match rest.next() {
            Some('{') => {
                depth += 1;
                continue;
            }
            Some('s') if !(rest.delimited(2) && rest.skip(|c| "gpiImM0123456789".contains(c))) => return false,
            Some('y') if !rest.delimited(2) => return false,
            Some('q' | 'Q' | 'l') => {
                rest.skip(|c| c == ' ');
                rest.skip(|c| c.is_ascii_digit());
            }
            Some('s' | 'y' | 'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=') => {}
            _ => return false,
        }
        rest.skip(|c| c == ' ' || c == '\t');
        if !(rest.0.is_empty() || rest.0.starts_with([';', '\n', '}'])) {
            return false;
        }
    }
}

/// What of a script is still to be read.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.0.chars().next()?;
        self.0 = &self.0[c.len_utf8()..];
        Some(c)
    }

    /// Always true, to stand in a condition.
    fn skip(&mut self, fits: impl Fn(char) -> bool) -> bool {
        self.0 = self.0.trim_start_matches(fits);
        true
    }

    /// Reads a delimiter and as many parts that end with it. False where seds could disagree about the end.
    fn delimited(&mut self, parts: usize) -> bool {
        let Some(delimiter) = self.next().filter(|c| "/|#,:@!%~+_".contains(*c)) else { return false };
        for part in 0..parts {
            let start = self.0;
            loop {
                match self.next() {
                    None | Some('\n') => return false,
                    Some('\\') if matches!(self.next(), None | Some('\n')) => return false,
                    Some(c) if c == delimiter => break,
                    Some(_) => {}
                }
            }
            let text = &start[..start.len() - self.0.len() - 1];
            // A bracket may hold a delimiter for some seds and not for others.
            if part == 0 && !brackets_close(text) {
                return false;
            }
        }
        true
    }
}

/// Whether every `[…]` of a pattern ends within it.
fn brackets_close(pattern: &str) -> bool {
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => {
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
                loop {
                    match chars.next() {
                        // `[[:space:]]` and its like hold a bracket of their own.
                        Some('[') if matches!(chars.peek(), Some(':' | '.' | '=')) => {
                            while chars.next_if(|c| *c != ']').is_some() {}
                            if chars.next().is_none() {
                                return false;
                            }
                        }
                        // A backslash is itself for one sed and escapes for another.
                        Some('\\') if chars.peek() == Some(&']') => return false,
                        Some(']') => break,
                        Some(_) => {}
                        None => return false,
                    }
                }
            }
            _ => {}
        }
    }
    true
}

/// Reads up to two addresses and their negation; false when there is something odd.
fn addresses(rest: &mut Rest) -> bool {
    if address(rest) != Some(true) {
        return !rest.0.starts_with('\\');
    }
    rest.skip(|c| c == ' ');
    if rest.0.starts_with(',') {
        rest.next();
        rest.skip(|c| c == ' ');
        if rest.0.starts_with(['+', '~']) {
            rest.next();
        }
        if address(rest) != Some(true) {
            return false;
        }
    }
    rest.skip(|c| c == ' ' || c == '!');
    true
}

/// Some(true) after an address, Some(false) if it is missing, None when it does not end.
fn address(rest: &mut Rest) -> Option<bool> {
    match rest.0.chars().next() {
        Some('$') => {
            rest.next();
        }
        Some('/') => {
            if !rest.delimited(1) {
                return None;
            }
            rest.skip(|c| c == 'I');
        }
        Some(c) if c.is_ascii_digit() => {
            rest.skip(|c| c.is_ascii_digit());
            if rest.0.starts_with('~') {
                rest.next();
                rest.skip(|c| c.is_ascii_digit());
            }
        }
        _ => return Some(false),
    }
    Some(true)
}

/// Whether an awk program only prints what it computes from its input: no command, no other file, no environment.
pub(super) fn awk_only_prints(program: &str) -> bool {
    // What compares or joins conditions is neither a redirection nor a pipe; anything else with these letters may be one.
    let mut rest = program.replace(">=", " ").replace("||", " ");
    // Only what prints is redirected.
    if !program.contains("print") {
        rest = rest.replace('>', " ");
    } else if !program.contains(['"', '/', '#', '\\']) {
        rest = without_comparisons(&rest);
    }
    calls_known(program)
        && !rest.contains(['|', '>', '@', '`'])
        && !program.contains("\\\n")
        && ![
            "system",
            "getline",
            "close",
            "ENVIRON",
            "PROCINFO",
            "ARGV",
            "ARGC",
            "SYMTAB",
            "FUNCTAB",
            "asort",
            "func",
            "load",
            "include",
            "FILENAME=",
            "FILENAME =",
        ]
        .iter()
        .any(|word| program.contains(word))
}

/// A program without strings and patterns, without each `>` that no print can take for its own: in parentheses, and outside
/// of braces.
fn without_comparisons(program: &str) -> String {
    let (mut braces, mut parentheses) = (0usize, 0usize);
    let keeps = |c: &char| {
        match c {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '(' => parentheses += 1,
            ')' => parentheses = parentheses.saturating_sub(1),
            _ => {}
        }
        *c != '>' || braces > 0 && parentheses == 0
    };
    program.chars().filter(keeps).collect()
}

/// Whether every name before a parenthesis is a word or a function of awk's that computes: what awks add is not known.
fn calls_known(program: &str) -> bool {
    const KNOWN: &str = "if while for in print printf return exit delete length substr index split sub gsub match sprintf tolower \
        toupper int sqrt exp log sin cos atan2 rand srand gensub strftime systime mktime";
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    program.match_indices('(').all(|(at, _)| {
        let before = program[..at].trim_end_matches([' ', '\t']);
        let name = &before[before.trim_end_matches(part).len()..];
        name.is_empty()
            || name.bytes().all(|b| b.is_ascii_digit())
            || KNOWN.split_whitespace().any(|known| known == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts() {
        for (script, want) in [
            ("1,10p", true),
            ("$p", true),
            ("$!d", true),
            ("/foo/p", true),
            ("/foo/,/bar/p", true),
            ("/fn main/,/^}/p", true),
            ("/a\\/b/p", true),
            ("0~3p", true),
            ("2,+3p", true),
            ("5q", true),
            ("q5", true),
            ("1p;3p", true),
            ("1!G;h;$!d", true),
            ("/^$/d", true),
            ("/x/{s/a/b/;p}", true),
            ("s/a/b/g", true),
            ("s|a|b|", true),
            ("s/a/b/;s/c/d/2g", true),
            ("s/[0-9]\\+//", true),
            ("s/^[ \\t]*//", true),
            ("s/[[:space:]]*$//", true),
            ("s/[^]]//", true),
            ("y/abc/xyz/", true),
            ("s/a/b/w out", false),
            ("s/a/id/e", false),
            ("s/a/b/ge", false),
            ("s/a/b/;w out", false),
            ("s/a/b/\nw out", false),
            ("s/[/]/x/w y/", false),
            ("s/[\\]/x/w y/]/z/", false),
            ("s/a/b\\\nw x/", false),
            ("y/a/b/w x", false),
            ("w out", false),
            ("1e id", false),
            ("r /etc/passwd", false),
            ("R x", false),
            ("W x", false),
            ("F", false),
            ("1,2w x;p", false),
            ("p;e", false),
            ("e", false),
            ("/a/w x/p", false),
            ("\\xax w y", false),
            ("/a/{p", false),
            ("}p", false),
            ("a\\", false),
            ("a text", false),
            ("b x", false),
            (":a", false),
            ("p # w x", false),
            ("1,w x", false),
            ("", true),
        ] {
            assert_eq!(sed_only_prints(script), want, "{script:?}");
        }
    }

    #[test]
    fn awk_programs() {
        for (program, want) in [
            ("{print $1}", true),
            ("NR>=10 && NR<=20", true),
            ("$1 == \"a\" || $2 ~ /b/ {n++} END {print n}", true),
            ("!seen[$0]++", true),
            ("{printf \"%s\\n\", $2}", true),
            ("{print length($0), substr($1, 2)}", true),
            ("{gsub(/a/, \"b\"); print toupper($0)}", true),
            ("{if ($1 == 2) print; for (i = 0; i < NF; i++) n++}", true),
            ("{print (1 + 2) * 3}", true),
            ("{print writea(\"x\")}", false),
            ("{stat (\"x\", data)}", false),
            ("{print > \"x\"}", false),
            ("{print >> \"x\"}", false),
            ("{print >>= \"x\"}", false),
            ("{print | \"sh\"}", false),
            ("{print ||| \"sh\"}", false),
            ("{print |& \"sh\"}", false),
            ("BEGIN{system(\"id\")}", false),
            ("BEGIN{\"id\" | getline x}", false),
            ("BEGIN{while((getline l < \"/etc/passwd\") == 1) print l}", false),
            ("BEGIN{print ENVIRON[\"KEY\"]}", false),
            ("BEGIN{ARGV[1]=\"/etc/passwd\"; ARGC=2} {print}", false),
            ("BEGIN{f=\"sys\" \"tem\"; @f(\"id\")}", false),
            ("@load \"x\"", false),
            ("$1 > 5", true),
            ("$1 > 5 {print}", true),
            ("$3 > 100 {print $1} END {print n}", true),
            ("{if ($3 > 100) print $1}", true),
            ("{print ($1 > 2)}", true),
            ("{print ($1) > x}", false),
            ("{print > (x)}", false),
            ("{x = \"}\"; print > x}", false),
            ("{x = \"(\"; print > x}", false),
            ("/}/ {print > x}", false),
            ("{print #(\n> x}", false),
        ] {
            assert_eq!(awk_only_prints(program), want, "{program:?}");
        }
    }
}
