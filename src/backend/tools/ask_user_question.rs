//! AskUserQuestion: one to four questions with options, answered by the user.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::{Display, Outcome, Said};
use crate::permission::Access;
use crate::protocol::{Answer, ChoiceOption, Choices, Question};

use super::call::Typed;
use super::{Call, Context, Dirs, Manners, Offered, Output, file};

pub(super) struct AskUserQuestion;

/// Most questions at once.
const QUESTIONS: usize = 4;
/// Least and most options of a question.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=4;
/// Most characters of a header: it is in a row beside three others.
const HEADER: usize = 16;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// 1 to 4
    questions: Vec<Asked>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Asked {
    question: String,
    /// One or two words, at most 16 characters
    header: String,
    /// 2 to 4; free text is always offered
    options: Vec<ChoiceOption>,
    #[serde(default)]
    multi_select: bool,
}

impl Typed for AskUserQuestion {
    type Input = Input;

    const NAME: &'static str = "AskUserQuestion";
    const ABOUT: &'static str = include_str!("../../../assets/tools/ask_user_question.md");
    const MANNERS: Manners = Manners { offered: Offered::Named, needs_room: true, ..Manners::ASKS };

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        let questions = choices(input)?;
        let headers: Vec<String> = questions.iter().map(|question| file::one_line(&question.header)).collect();
        Ok(Call::new(Access::Free, headers.join(", "), |context| async move { ask(questions, &context).await }))
    }
}

/// Checks what is to be asked.
fn choices(Input { questions }: Input) -> Result<Vec<Choices>, String> {
    if questions.is_empty() || questions.len() > QUESTIONS {
        return Err(format!("Parameter `questions` must have 1 to {QUESTIONS} items, but has {}.", questions.len()));
    }
    let check = |(at, asked): (usize, Asked)| {
        let place = |rest: &str| format!("Parameter `questions[{at}].{rest}`");
        let text = |name: &str, text: &str| {
            // A line of its own would be read as an answer.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if text.is_empty() { Err(format!("{} is empty.", place(name))) } else { Ok(text) }
        };
        let (question, header) = (text("question", &asked.question)?, text("header", &asked.header)?);
        if header.chars().count() > HEADER {
            return Err(format!("{} is longer than {HEADER} characters: {header:?}.", place("header")));
        }
        if !OPTIONS.contains(&asked.options.len()) {
            return Err(format!(
                "{} must have {} to {} items, but has {}. Leave out \"other\": free text is always offered.",
                place("options"),
                OPTIONS.start(),
                OPTIONS.end(),
                asked.options.len()
            ));
        }
        let mut options = Vec::new();
        for (index, option) in asked.options.into_iter().enumerate() {
            let label = text(&format!("options[{index}].label"), &option.label)?;
            if options.iter().any(|other: &ChoiceOption| other.label == label) {
                return Err(format!("{} offers {label:?} twice.", place("options")));
            }
            options.push(ChoiceOption { label, description: option.description.trim().to_owned() });
        }
        Ok(Choices { header, question, multi: asked.multi_select, options })
    };
    questions.into_iter().enumerate().map(check).collect()
}

async fn ask(questions: Vec<Choices>, context: &Context) -> Output {
    match context.host.ask(Question::Choices { questions: questions.clone() }).await {
        Some(Answer::Chosen { answers }) => {
            let none = Vec::new();
            let mut told = String::from("The user answered:");
            let mut shown = Vec::new();
            for (at, question) in questions.iter().enumerate() {
                let chosen = answers.get(at).unwrap_or(&none);
                let chosen = if chosen.is_empty() { "(nothing chosen)".to_owned() } else { chosen.join("; ") };
                told.push_str(&format!("\n- {} → {chosen}", question.question));
                shown.push(Said {
                    words: chosen,
                    header: question.header.clone(),
                    question: question.question.clone(),
                });
            }
            Output { display: Some(Display::Said { answers: shown }), ..Output::ok(told) }
        }
        Some(Answer::Nobody { told }) => Output { outcome: Outcome::Denied, ..Output::ok(told) },
        Some(Answer::No { feedback: Some(words) }) if !words.trim().is_empty() => {
            Output::denied(&format!("The user did not answer the questions: {}", words.trim()), words.trim())
        }
        Some(_) => Output::denied(
            "The user declined to answer. Do not ask this again: decide yourself and say what you assumed.",
            "",
        ),
        None => Output { outcome: Outcome::Interrupted, ..Output::ok("Interrupted before the user answered.") },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tools::fixture::Fixture;

    fn question(multi: bool) -> Value {
        json!({"question": "Which store?", "header": "Store", "multiSelect": multi, "options": [
            {"label": "SQLite", "description": "one file"}, {"label": "Files", "description": "no database"}]})
    }

    #[tokio::test]
    async fn answers_reach_the_model() {
        let mut fixture = Fixture::new();
        let input = json!({"questions": [question(false), question(true)]});
        let mut check = async |answer: Option<Answer>, outcome: Outcome, want: &str| {
            fixture.answer = answer;
            let output = fixture.run(&AskUserQuestion, input.clone()).await;
            assert_eq!((output.outcome, fixture.text(&output).as_str()), (outcome, want));
            assert!(matches!(fixture.asked(), Some(Question::Choices { questions }) if questions.len() == 2));
        };
        let chosen = vec![vec!["Files".into()], vec!["SQLite".into(), "a cloud".into()]];
        let told = "The user answered:\n- Which store? → Files\n- Which store? → SQLite; a cloud";
        check(Some(Answer::Chosen { answers: chosen }), Outcome::Ok, told).await;
        let told = "The user answered:\n- Which store? → SQLite\n- Which store? → (nothing chosen)";
        check(Some(Answer::Chosen { answers: vec![vec!["SQLite".into()]] }), Outcome::Ok, told).await;
        let told = "The user declined to answer. Do not ask this again: decide yourself and say what you assumed.";
        check(Some(Answer::No { feedback: None }), Outcome::Denied, told).await;
        let words = Answer::No { feedback: Some("later".into()) };
        check(Some(words), Outcome::Denied, "The user did not answer the questions: later").await;
        check(None, Outcome::Interrupted, "Interrupted before the user answered.").await;
    }

    #[test]
    fn what_is_asked_is_checked() {
        let fixture = Fixture::new();
        let with = |key: &str, value: Value| {
            let mut question = question(false);
            question[key] = value;
            json!({"questions": [question]})
        };
        let option = |label: &str| json!({"label": label, "description": "x"});
        for (input, want) in [
            (json!({"questions": []}), "Parameter `questions` must have 1 to 4 items, but has 0."),
            (
                json!({"questions": vec![question(false); 5]}),
                "Parameter `questions` must have 1 to 4 items, but has 5.",
            ),
            (with("question", json!(" ")), "Parameter `questions[0].question` is empty."),
            (with("header", json!("")), "Parameter `questions[0].header` is empty."),
            (
                with("header", json!("a header of many words")),
                "Parameter `questions[0].header` is longer than 16 characters: \"a header of many words\".",
            ),
            (
                with("options", json!([option("a")])),
                "Parameter `questions[0].options` must have 2 to 4 items, but has 1. Leave out \"other\": free text is always offered.",
            ),
            (
                with("options", json!([option("a"), option(" a")])),
                "Parameter `questions[0].options` offers \"a\" twice.",
            ),
            (with("options", json!([option("a"), option("")])), "Parameter `questions[0].options[1].label` is empty."),
            (
                with("multiSelect", json!("yes")),
                "Parameter `questions[0].multiSelect` must be a boolean, but is the string \"yes\".",
            ),
        ] {
            assert_eq!(fixture.call(&AskUserQuestion, input).unwrap_err(), want);
        }
        let call = fixture.call(&AskUserQuestion, with("multiSelect", json!("true"))).unwrap();
        assert_eq!(call.title(), "Store");
    }
}
