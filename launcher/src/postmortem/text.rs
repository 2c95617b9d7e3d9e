//! The page as text.

use std::fmt::Write;

use super::Story;

/// Returns the page as text.
pub fn page(story: &Story) -> String {
    let mut out = String::new();
    let mut section = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _infallible = writeln!(out, "{title}");
            lines.iter().for_each(|line| out.extend(["  ", line.replace('\n', "\n  ").as_str(), "\n"]));
            out.push('\n');
        }
    };
    story.sections().iter().for_each(|(title, lines)| section(title, lines));
    let begin = story.timeline.first().map_or(0.0, |m| m.time);
    let lines: Vec<String> = story
        .timeline
        .iter()
        .map(|m| {
            let who = m.rank.map_or("oflaunch".to_string(), |r| format!("rank {r}"));
            format!("{:>10.3} s  {who:<9} {}", m.time - begin, m.text)
        })
        .collect();
    section("Timeline", &lines);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::super::story::tests::flights;
    use super::*;

    #[test]
    fn reads_well() {
        let text = page(&Story::of(flights(), &[], 1));
        assert_eq!(
            text,
            "First divergence
  the ranks agree up to op #1; then
    ranks 0 and 2 issued relu(f32[4] [B]) #2 (train.rs:4)
    rank 1 issued relu(f32[8] [B]) #2 (train.rs:8)

Who waits for whom
  rank 0 waits for rank 1 in all_reduce of 'sum' #2 (train.rs:9)
  rank 2 waits for rank 1 in all_reduce of 'sum' #2 (train.rs:9)

Who never arrived
  rank 1

The 4 ranks
  rank 0 (pid 7) issued 2 ops, the last one relu(f32[4] [B]) #2 (train.rs:4); in all_reduce of 'sum' #2 (train.rs:9), 20.0 KiB, and not out of it
  rank 1 (pid 7) issued 2 ops, the last one relu(f32[8] [B]) #2 (train.rs:8); no collective
  rank 2 (pid 7) issued 2 ops, the last one relu(f32[4] [B]) #2 (train.rs:4); in all_reduce of 'sum' #2 (train.rs:9), 20.0 KiB, and not out of it
  rank 3 left no record

Timeline
       0.000 s  rank 0    issues relu(f32[4] [B]) #2 (train.rs:4)
       0.000 s  rank 0    comes to all_reduce of 'sum' #2 (train.rs:9), 20.0 KiB: never out of it
       0.000 s  rank 2    issues relu(f32[4] [B]) #2 (train.rs:4)
       0.100 s  rank 1    issues relu(f32[8] [B]) #2 (train.rs:8)
       0.500 s  rank 2    comes to all_reduce of 'sum' #2 (train.rs:9), 20.0 KiB: never out of it
"
        );
    }
}
