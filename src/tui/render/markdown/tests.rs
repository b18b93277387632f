//! Markdown at two widths, streamed in any pieces, and hostile.

use proptest::prelude::*;

use super::*;
use crate::tui::render::highlight::beside::Painter;
use crate::tui::render::wrap::{shown, spans_width};

const EVERYTHING: &str = "\
# Heading with `code`
Text right after it with *emphasis*, **strong**, ~~gone~~ and `inline code` in one paragraph that is long enough to wrap.
A soft break, then a hard one  \nhere. A [link](https://example.com/a) and [a file](src/main.rs) and ![a cat](cat.png).

Tight list:
- one
- two with a long text that has to be wrapped under its own text and not under the bullet
  - nested
    1. deep
    2. deeper

      with a paragraph
- [ ] open
- [x] done

Ordered and loose:

9. nine

10. ten
    ```sh
    cargo test --all
    ```

> A quote that runs on
> over two lines
>
> - with a list

| Name | Count | What it is |
|:-----|------:|:----------:|
| apple | 1 | a fruit |
| 中文 | 22 | wide characters in a cell that is rather long and needs to be wrapped somewhere |

```rust
fn main() {
    println!(\"hello, this line is longer than forty columns\");

}
```
***
Setext
------
<details>html as text</details> &amp; an &#x1b;[31m entity

[ref]: https://example.com/definition
中文字符和emoji👩‍👩‍👧一起换行，组合字符e\u{301}也一样。中文字符和emoji一起换行。

    indented code

1) other delimiter
";

fn check_width(rows: &[Row], width: usize) {
    for row in rows {
        assert!(spans_width(&row.line.spans) <= width, "wider than {width}: {row:?}");
    }
}

#[test]
fn every_construct_at_80_and_40_columns() {
    for width in [80, 40] {
        let rows = render(EVERYTHING, width, &Theme::dark());
        check_width(&rows, width);
        insta::assert_snapshot!(format!("everything_{width}"), shown(&rows));
    }
    let mono = Theme::load("mono").expect("ships");
    insta::assert_snapshot!("everything_mono", shown(&render(EVERYTHING, 60, &mono)));
}

#[test]
fn links_open_only_what_is_safe() {
    let check = |source: &str, text: &str, links: &[&str]| {
        let rows = render(source, 80, &Theme::dark());
        assert_eq!(shown(&rows), text);
        let got: Vec<&str> = rows.iter().flat_map(|row| row.links.iter().map(|(_, link)| link.as_ref())).collect();
        assert_eq!(got, links);
    };
    check("[a](https://b.c/d)", "a", &["https://b.c/d"]);
    check("[a](javascript:alert(1))", "a (javascript:alert(1))", &[]);
    check("<https://b.c>", "https://b.c", &["https://b.c"]);
    check("[**a** b](file:///x)", "a b", &["file:///x", "file:///x"]);
}

#[test]
fn code_is_given_as_written() {
    let source = "a\n\n```rust\nfn f() {\n\n    x\n```\n\nb";
    let rows = render(source, 80, &Theme::dark());
    assert_eq!(shown(&rows), "a\n\nfn f() {\n\n    x\n\nb");
    let long = format!("```\n{}\n```", "abcdefghij".repeat(3));
    let rows = render(&long, 12, &Theme::dark());
    assert_eq!(shown(&rows), "abcdefghijab\ncdefghijabcd\nefghij");
    assert_eq!(rows.iter().map(|row| row.continues).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn blocks_of_code_are_found_with_their_language() {
    let block = |language: &str, code: &str| CodeBlock { language: language.into(), code: code.into() };
    let blocks = code_blocks("x\n```sh\nls\n\techo\n```\n- a\n  ```\n  nested\n  ```\n");
    assert_eq!(blocks, [block("sh", "ls\n\techo\n"), block("", "nested\n")]);
}

/// Streams the pieces; after each, what was given and what is left must be what the text so far looks like at once.
fn check_stream(source: &str, cuts: &[usize], width: usize) {
    let theme = Theme::dark();
    let mut stream = Stream::new();
    let mut given = Vec::new();
    let mut at = 0;
    for cut in cuts {
        at = source.ceil_char_boundary((at + cut).min(source.len()));
        given.extend(stream.push(&source[..at], width, &theme, &mut { Share::ALL }));
        let mut now = given.clone();
        now.extend(stream.tail(width, &theme));
        assert_eq!(shown(&now), shown(&render(&source[..at], width, &theme)), "after {:?}", &source[..at]);
    }
    given.extend(stream.finish(source, width, &theme));
    assert!(given == render(source, width, &theme), "{}", shown(&given));
}

/// The same with colors that come from the thread, now and then.
fn check_beside(source: &str, cuts: &[usize], width: usize) {
    let theme = Theme::dark();
    let (sender, colours) = std::sync::mpsc::channel();
    let painter = Painter::start(move |lines| drop(sender.send(lines))).unwrap();
    let mut stream = Stream::beside(7);
    let bring = |stream: &mut Stream| {
        let Some((id, jobs)) = stream.take_jobs() else { return };
        let mut owed = jobs.iter().filter(|job| !matches!(job, Job::Open(_))).count();
        assert!(painter.ask(id, jobs));
        while owed > 0 {
            let some: Coloured = colours.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
            owed -= some.lines.len() + usize::from(some.peeked.is_some());
            stream.coloured(some);
        }
    };
    let mut given = Vec::new();
    let mut at = 0;
    for (turn, cut) in cuts.iter().enumerate() {
        at = source.ceil_char_boundary((at + cut).min(source.len()));
        given.extend(stream.push(&source[..at], width, &theme, &mut { Share::ALL }));
        let mut now = given.clone();
        now.extend(stream.tail(width, &theme));
        // Where a color ends within a character of many parts, such a line is cut elsewhere.
        let text = |rows: &[Row]| shown(rows).replace('\n', "");
        assert_eq!(text(&now), text(&render(&source[..at], width, &theme)), "after {:?}", &source[..at]);
        if turn % 3 == 0 {
            bring(&mut stream);
        }
    }
    given.extend(stream.finish(source, width, &theme));
    bring(&mut stream);
    // Colors of a stream that was dropped.
    stream.coloured(Coloured { stream: 6, lines: vec![Runs::default(); 9], peeked: None });
    given.extend(stream.finish(source, width, &theme));
    assert!(!stream.waits() && given == render(source, width, &theme), "{}", shown(&given));
}

#[test]
fn colours_may_come_late() {
    check_beside(EVERYTHING, &[EVERYTHING.len()], 40);
    check_beside(EVERYTHING, &[3; 1000], 80);
    let theme = Theme::dark();
    let code = "```rust\nlet a = 1;\nlet b";
    let mut stream = Stream::beside(1);
    assert_eq!(stream.push(code, 80, &theme, &mut { Share::ALL }), []);
    assert_eq!(shown(&stream.tail(80, &theme)), "let a = 1;\nlet b");
    let line = |line: &str| Job::Line(line.into());
    let jobs = vec![Job::Open("rust".into()), line("let a = 1;"), Job::Peek("let b".into())];
    assert_eq!(stream.take_jobs(), Some((1, jobs)));
    // Nobody colors: nothing is lost.
    stream.colour_here();
    assert_eq!(shown(&stream.finish(code, 80, &theme)), "let a = 1;\nlet b");
}

#[test]
fn a_stream_of_single_characters_gives_the_same_rows() {
    let text: String = EVERYTHING.chars().filter(|c| *c != 'q').collect();
    let theme = Theme::dark();
    for width in [80, 40] {
        let (mut stream, mut given) = (Stream::new(), Vec::new());
        for (at, c) in text.char_indices() {
            given.extend(stream.push(&text[..at + c.len_utf8()], width, &theme, &mut { Share::ALL }));
        }
        given.extend(stream.finish(&text, width, &theme));
        assert!(given == render(&text, width, &theme), "{}", shown(&given));
    }
}

#[test]
fn finished_blocks_do_not_wait() {
    let mut stream = Stream::new();
    let theme = Theme::dark();
    let mut check =
        |source: &str, want: &str| assert_eq!(shown(&stream.push(source, 80, &theme, &mut { Share::ALL })), want);
    check("para", "");
    check("para\n", "");
    check("para\n\n- on", "para");
    check("para\n\n- one\n- tw", "");
    check("para\n\n- one\n- two\n", "\n• one");
    check("para\n\n- one\n- two\n```\n", "• two");
    check("para\n\n- one\n- two\n```\ncode\nmo", "\ncode");
    check("para\n\n- one\n- two\n```\ncode\nmore\n```\n# H\n|a|\n|-|\n|b|", "more\n\nH");
}

#[test]
fn rows_already_given_do_not_change_with_the_width() {
    let theme = Theme::dark();
    let mut stream = Stream::new();
    let mut rows = stream.push("one two three\n\nfour", 80, &theme, &mut { Share::ALL });
    rows.extend(stream.finish("one two three\n\nfour five", 5, &theme));
    assert_eq!(shown(&rows), "one two three\n\nfour\nfive");
}

/// Pieces of Markdown that meet in odd ways.
fn fragments() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "word ",
        "中文",
        "\n",
        "\n\n",
        "```",
        "```rust\n",
        "~~~\n",
        "- ",
        "  - ",
        "1. ",
        "   ",
        "    ",
        "> ",
        "# ",
        "---\n",
        "===\n",
        "| a | b |\n",
        "|---|--:|\n",
        "| x | yy |\n",
        "**",
        "*",
        "`",
        "[l](http://x)",
        "<b>",
        "\t",
        "👩‍👩‍👧",
        "e\u{301}",
        "\x1b[31m",
        "\\",
        "[x]: y\n",
        "- [ ] ",
    ]);
    prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_pieces_give_the_same_rows(source in fragments(), cuts in prop::collection::vec(1..12usize, 0..40), width in 1..90usize) {
        check_stream(&source, &cuts, width);
        check_beside(&source, &cuts, width);
    }

    #[test]
    fn no_row_is_too_wide_or_has_control_characters(source in fragments(), width in 4..60usize) {
        let rows = render(&source, width, &Theme::dark());
        check_width(&rows, width);
        prop_assert!(!rows.iter().any(|row| row.line.spans.iter().any(|span| span.content.chars().any(char::is_control))));
    }

    #[test]
    fn every_word_is_kept(words in prop::collection::vec("[a-z]{1,9}", 1..40), joints in prop::collection::vec(0..8usize, 40), width in 12..60usize) {
        let joints = joints.iter().map(|joint| [" ", "\n", "\n\n", "\n- ", "\n> ", "\n# ", "\n1. ", "  \n"][*joint]);
        let source: String = words.iter().zip(joints).flat_map(|(word, joint)| [word.as_str(), joint]).collect();
        let text = shown(&render(&source, width, &Theme::dark()));
        let kept: Vec<&str> = text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty()).collect();
        prop_assert_eq!(kept, words.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn hostile_texts_are_drawn_all_the_same() {
    let rows_of = |source: &str| {
        let rows = render(source, 40, &Theme::dark());
        check_width(&rows, 40);
        rows.len()
    };
    assert_eq!(rows_of("```rust\nlet x"), 1);
    rows_of(&format!("{}x", "> ".repeat(1000)));
    rows_of(&format!("{}x", "- ".repeat(1000)));
    let nested: String = (0..1000).map(|level| format!("{}- x\n", "  ".repeat(level % 200))).collect();
    rows_of(&nested);
    rows_of(&"[".repeat(20_000));
    rows_of(&"*a **b ".repeat(5_000));
    rows_of(&"`".repeat(20_000));
    rows_of(&format!("{}\n{}\n{}", "|a".repeat(2_000), "|-".repeat(2_000), "|\n".repeat(2_000)));
    let table = format!("|a|b|\n|-|-|\n{}", "|some text|more text|\n".repeat(5_000));
    assert!(rows_of(&table) >= 5_000);
    assert!(rows_of(&"x".repeat(1_000_000)) >= 25_000);
}

#[test]
fn prose_stays_narrow_where_there_is_more_room() {
    let words = "word ".repeat(60);
    let widest = |source: &str| render(source, 200, &Theme::dark()).iter().map(|row| row.line.width()).max().unwrap();
    for prose in [words.clone(), format!("- {words}"), format!("> {words}"), format!("# {words}")] {
        assert!((90..=100).contains(&widest(&prose)), "{}: {prose}", widest(&prose));
    }
    assert!(widest(&format!("```\n{}\n```", "x".repeat(150))) > 140);
}
