//! `tests/data/choice.txt`, row by row.

use super::question::{Question, answer};
use expect_test::expect_file;

/// A row is `question -> inputs -> outputs`; other lines tell why.
fn answered(line: &str) -> String {
    if line.is_empty() || line.starts_with('#') {
        return format!("{line}\n");
    }
    let question = line.split(" => ").next().unwrap_or(line);
    format!("{question} => {}\n", answer(&Question::parse(question).choose()))
}

#[test]
fn every_row_of_the_table_is_chosen_as_it_says() {
    let text = include_str!("../../data/choice.txt");
    let rows = || text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut questions: Vec<&str> = rows().map(|l| l.split(" => ").next().unwrap_or(l)).collect();
    println!("{} rows", questions.len());
    assert!(questions.len() >= 150, "{} rows", questions.len());
    questions.sort_unstable();
    assert!(questions.windows(2).all(|w| w[0] != w[1]), "a question stands twice");
    let chosen: String = text.lines().map(answered).collect();
    expect_file!["../../data/choice.txt"].assert_eq(&chosen);
}
