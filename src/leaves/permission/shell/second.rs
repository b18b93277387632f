//! A second reading of a line, by bash's own rules and without the grammar: where its words begin and end, which of them
//! starts a command, and what joins the commands. Only a line that both readings agree about is judged.
//!
//! It goes over the text once, before the grammar sees it, so its limits bound what the grammar is given. What it does not
//! know is an error: it is strict on purpose, and knows less of bash than the grammar does.

mod word;

/// Deepest nesting of groups, loops and substitutions.
const MAX_DEPTH: usize = 40;
/// Most words, redirections and operators.
const MAX_TOKENS: usize = 4_000;

/// What a stretch of the line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// `A=1` before a command, or alone.
    Assignment,
    /// The first word of a command.
    Name,
    /// Any other word of a command.
    Argument,
    /// Where a redirection leads, or a here-document's delimiter.
    Target,
    /// A word of `for`, `case` or a function's head.
    Item,
    /// `&&`, `||`, `|`, `|&`, `&`.
    Join,
}

/// Where a token starts and ends, in bytes, and what it is.
pub(super) type Token = (usize, usize, Kind);

/// Words that end a list of commands where a command could start.
const CLOSERS: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];

/// Every token of the line, in the order in which they start.
///
/// # Errors
/// What in the line is not read, or is too much.
pub(super) fn read(text: &str) -> Result<Vec<Token>, String> {
    let mut second = Second { text, at: 0, depth: 0, tokens: Vec::new(), pending: Vec::new() };
    second.list()?;
    if second.at < text.len() {
        return Err(format!("{:?} where a command was expected", second.word_ahead()));
    }
    if !second.pending.is_empty() {
        return Err("a here-document without an end".into());
    }
    second.tokens.sort_unstable();
    Ok(second.tokens)
}

struct Second<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    tokens: Vec<Token>,
    /// Here-documents whose bodies start after this line: delimiter, whether tabs are stripped, whether it is quoted.
    pending: Vec<(&'a str, bool, bool)>,
}

type Done = Result<(), String>;

fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

fn name_length(text: &str) -> usize {
    let end = text.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { 0 } else { end }
}

impl<'a> Second<'a> {
    fn rest(&self) -> &'a str {
        // Words may end behind a backslash and the first byte of what it escapes.
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next_is(&self, text: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes())
    }

    fn token(&mut self, start: usize, kind: Kind) -> Done {
        if self.tokens.len() == MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} words"));
        }
        self.tokens.push((start, self.at, kind));
        Ok(())
    }

    /// The raw text up to where a word ends, whatever is quoted in it: for keywords, which are never quoted.
    fn word_ahead(&self) -> &'a str {
        let bytes = &self.text.as_bytes()[self.at..];
        let end = bytes.iter().take(16).position(|b| ends_word(*b)).unwrap_or(bytes.len().min(16));
        self.text.get(self.at..self.at + end).unwrap_or_default()
    }

    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Done) -> Done {
        if self.depth == MAX_DEPTH {
            return Err("it is nested too deeply".into());
        }
        self.depth += 1;
        inner(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Blanks, continued lines, and a comment up to its newline.
    fn blanks(&mut self) {
        loop {
            let before = self.at.checked_sub(1).map(|at| self.text.as_bytes()[at]);
            match self.byte() {
                Some(b' ' | b'\t') => self.at += 1,
                // Next to a word or an operator it would join what is on both sides.
                Some(b'\\') if self.next_is("\\\n") && matches!(before, None | Some(b' ' | b'\t' | b'\n')) => {
                    self.at += 2;
                }
                Some(b'#') => {
                    self.at += self.text.as_bytes()[self.at..]
                        .iter()
                        .position(|b| *b == b'\n')
                        .unwrap_or(self.text.len() - self.at);
                }
                _ => return,
            }
        }
    }

    fn newlines(&mut self) -> Done {
        loop {
            self.blanks();
            if self.byte() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            for (name, tabs, quoted) in std::mem::take(&mut self.pending) {
                self.body(name, tabs, quoted)?;
            }
        }
    }

    /// A here-document from its first line to behind its last.
    fn body(&mut self, name: &str, tabs: bool, quoted: bool) -> Done {
        loop {
            let line = self.rest();
            if line.is_empty() {
                return Err("a here-document without an end".into());
            }
            let (line, ended) = line.split_once('\n').map_or((line, false), |(line, _)| (line, true));
            let bare = if tabs { line.trim_start_matches('\t') } else { line };
            // The newline behind the last line is left: it separates commands.
            if bare == name {
                self.at += line.len();
                return Ok(());
            }
            if !quoted && line.contains(['$', '`', '\\']) {
                return Err("a here-document with expansions: quote its delimiter".into());
            }
            self.at += line.len() + usize::from(ended);
        }
    }

    /// Commands up to what only an outer construct can read.
    fn list(&mut self) -> Result<bool, String> {
        let mut any = false;
        loop {
            self.newlines()?;
            let Some(byte) = self.byte() else { return Ok(any) };
            if byte == b')' || self.next_is(";;") || self.next_is(";&") || CLOSERS.contains(&self.word_ahead()) {
                return Ok(any);
            }
            self.and_or()?;
            any = true;
            self.blanks();
            match self.byte() {
                None | Some(b'\n' | b')') => {}
                Some(b';') if self.next_is(";;") || self.next_is(";&") => {}
                Some(b';') => self.at += 1,
                Some(b'&') if !self.next_is("&&") && !self.next_is("&>") => {
                    self.at += 1;
                    self.token(self.at - 1, Kind::Join)?;
                }
                // Behind a group or a loop they need no separator.
                Some(_) if CLOSERS.contains(&self.word_ahead()) => {}
                Some(_) => return Err("two commands without a separator".into()),
            }
        }
    }

    fn and_or(&mut self) -> Done {
        self.pipeline()?;
        loop {
            self.blanks();
            if !self.next_is("&&") && !self.next_is("||") {
                return Ok(());
            }
            self.at += 2;
            self.token(self.at - 2, Kind::Join)?;
            self.newlines()?;
            self.pipeline()?;
        }
    }

    fn pipeline(&mut self) -> Done {
        if self.word_ahead() == "!" {
            self.at += 1;
            self.blanks();
        }
        self.command()?;
        loop {
            self.blanks();
            if !self.next_is("|") || self.next_is("||") {
                return Ok(());
            }
            let length = if self.next_is("|&") { 2 } else { 1 };
            self.at += length;
            self.token(self.at - length, Kind::Join)?;
            self.newlines()?;
            self.command()?;
        }
    }

    fn command(&mut self) -> Done {
        match self.word_ahead() {
            _ if self.next_is("((") => Err("arithmetic".into()),
            _ if self.next_is("(") => self.deeper(|line| {
                line.at += 1;
                line.some_list()?;
                line.expect(")")?;
                line.redirects()
            }),
            "{" => self.deeper(|line| {
                line.at += 1;
                line.some_list()?;
                line.expect("}")?;
                line.redirects()
            }),
            "if" => self.deeper(Second::choice),
            "while" | "until" => self.deeper(|line| {
                line.at += 5;
                line.some_list()?;
                line.body_of_loop()
            }),
            "for" => self.deeper(Second::for_loop),
            "case" => self.deeper(Second::case),
            "[[" => self.test(),
            word @ ("select" | "function" | "coproc" | "!") => Err(format!("{word} is not judged")),
            word if CLOSERS.contains(&word) => Err(format!("{word} where a command was expected")),
            _ => self.simple(),
        }
    }

    fn some_list(&mut self) -> Done {
        if self.list()? { Ok(()) } else { Err("a command is missing".into()) }
    }

    fn expect(&mut self, want: &str) -> Done {
        let found = if want == ")" { self.next_is(want) } else { self.word_ahead() == want };
        if !found {
            return Err(format!("{want} is missing"));
        }
        self.at += want.len();
        Ok(())
    }

    fn choice(&mut self) -> Done {
        self.at += 2;
        loop {
            self.some_list()?;
            self.expect("then")?;
            self.some_list()?;
            match self.word_ahead() {
                "elif" => self.at += 4,
                "else" => {
                    self.at += 4;
                    self.some_list()?;
                    break;
                }
                _ => break,
            }
        }
        self.expect("fi")?;
        self.redirects()
    }

    fn body_of_loop(&mut self) -> Done {
        self.expect("do")?;
        self.some_list()?;
        self.expect("done")?;
        self.redirects()
    }

    fn for_loop(&mut self) -> Done {
        self.at += 3;
        self.blanks();
        self.word(Kind::Item)?;
        self.blanks();
        if self.word_ahead() == "in" {
            self.at += 2;
            loop {
                self.blanks();
                if matches!(self.byte(), Some(b';' | b'\n')) {
                    break;
                }
                self.word(Kind::Item)?;
            }
        }
        self.blanks();
        if self.next_is(";") {
            self.at += 1;
        }
        self.newlines()?;
        self.body_of_loop()
    }

    fn case(&mut self) -> Done {
        self.at += 4;
        self.blanks();
        self.word(Kind::Item)?;
        self.blanks();
        self.expect("in")?;
        loop {
            self.newlines()?;
            if self.word_ahead() == "esac" {
                break;
            }
            if self.next_is("(") {
                self.at += 1;
            }
            loop {
                self.blanks();
                self.word(Kind::Item)?;
                self.blanks();
                if !self.next_is("|") {
                    break;
                }
                self.at += 1;
            }
            self.expect(")")?;
            self.list()?;
            match [";;&", ";;", ";&"].into_iter().find(|end| self.next_is(end)) {
                Some(end) => self.at += end.len(),
                None => break,
            }
        }
        self.expect("esac")?;
        self.redirects()
    }

    /// `[[ … ]]` of words alone: no groups, no comparison by `<`, all on one line.
    fn test(&mut self) -> Done {
        self.at += 2;
        self.token(self.at - 2, Kind::Name)?;
        loop {
            self.blanks();
            if self.next_is("&&") || self.next_is("||") {
                self.at += 2;
                self.token(self.at - 2, Kind::Argument)?;
                continue;
            }
            let start = self.at;
            self.word(Kind::Argument)?;
            if &self.text[start..self.at] == "]]" {
                return self.redirects();
            }
        }
    }

    fn simple(&mut self) -> Done {
        let (mut named, start) = (false, self.at);
        loop {
            self.blanks();
            if self.redirect()? {
                continue;
            }
            let word = self.at;
            match self.byte() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') if word > start => return Ok(()),
                Some(b'(') if named => return self.function(),
                _ => {}
            }
            if named {
                self.word(Kind::Argument)?;
                continue;
            }
            let length = name_length(self.rest());
            let behind = &self.rest()[length..];
            if length > 0 && behind.starts_with('[') && behind.contains("]=") | behind.contains("]+=") {
                return Err("an array".into());
            }
            named = length == 0 || !(behind.starts_with('=') || behind.starts_with("+="));
            self.word(if named { Kind::Name } else { Kind::Assignment })?;
        }
    }

    /// `( ) { …; }` behind a name, which then names no command.
    fn function(&mut self) -> Done {
        self.at += 1;
        self.blanks();
        self.expect(")")?;
        match self.tokens.last_mut() {
            Some(name) if name.2 == Kind::Name => name.2 = Kind::Item,
            _ => return Err("a parenthesis where a word was expected".into()),
        }
        self.blanks();
        if self.word_ahead() != "{" && !self.next_is("(") {
            return Err("a function without a body".into());
        }
        self.command()
    }

    fn redirects(&mut self) -> Done {
        loop {
            self.blanks();
            if !self.redirect()? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens as `kind:text`, by the first letter of the kind.
    fn show(line: &str) -> Result<String, String> {
        let show = |(start, end, kind): Token| format!("{}:{}", &format!("{kind:?}")[..1], &line[start..end]);
        Ok(read(line)?.into_iter().map(show).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn tokens_of_a_line() {
        for (line, want) in [
            ("A=1 ls -l >x 2>&1 # no", "A:A=1 N:ls A:-l T:x T:1"),
            ("ls\n\npwd;true &", "N:ls N:pwd N:true J:&"),
            ("a && b || c |& d", "N:a J:&& N:b J:|| N:c J:|& N:d"),
            ("[ a\nb ]", "N:[ A:a N:b A:]"),
            ("echo \"a $(b \"c d\") e\"", "N:echo A:\"a $(b \"c d\") e\" N:b A:\"c d\""),
            ("a \\\n b", "N:a A:b"),
            ("for i in a b; do c; done <d", "I:i I:a I:b N:c T:d"),
            ("case a in (b|c) d;; esac", "I:a I:b I:c N:d"),
            ("f() { a; }; f", "I:f N:a N:f"),
            ("[[ -f a && b ]]", "N:[[ A:-f A:a A:&& A:b A:]]"),
            ("cat <<A <<'B'; c\n$\nA\nB\nd", ""),
            ("cat <<A <<'B'; c\na\nA\n$\nB\nd", "N:cat T:A T:'B' N:c N:d"),
            ("cat <(a) >b", "N:cat A:<(a) N:a T:b"),
        ] {
            assert_eq!(show(line).unwrap_or_default(), want, "{line:?}");
        }
    }

    #[test]
    fn what_is_not_read() {
        for line in [
            "a\\\nb",
            "a `b`",
            "$'a'",
            "a=(b)",
            "a[0]=b",
            "((a))",
            "[[ a\n]]",
            "[[ ( a ) ]]",
            "a >\nb",
            "a)",
            "(a",
            "{ a",
            "a }; }",
            "if a; fi",
            "for a in b\nc; do d; done",
            "case a\nin b) c;; esac",
            "cat <<A\nb",
            "cat <<A; \"\n\"\nA",
            "! ! a",
            "a ;; b",
            "echo $((a))",
            "echo ${a:-$(b)}",
            "a <<\"A B\"\nA B",
            "{fd}>a",
            "a<b>c>d<(e)f",
            "coproc a",
            "f()\n{ a; }",
            ">1>2",
        ] {
            assert!(read(line).is_err(), "{line:?} {:?}", show(line));
        }
        assert!(read(&"( ".repeat(MAX_DEPTH + 1)).is_err_and(|error| error.contains("deeply")));
        assert!(read(&"a ".repeat(MAX_TOKENS + 1)).is_err_and(|error| error.contains("words")));
    }
}
