use std::fs;
use std::path::Path;
use std::time::Instant;

use super::curve::{Point, parts, smoothed};
use super::{arguments, run};
use crate::picture::axis::Axis;
use clap::Command;

/// Runs `oflow plot` on files of a folder; the picture, or the error.
fn plot(folder: &Path, args: &str, out: &str) -> Result<Vec<u8>, String> {
    let words = args
        .split_whitespace()
        .map(|a| if a.ends_with(".jsonl") { folder.join(a).display().to_string() } else { a.into() });
    let all =
        ["plot".to_string()].into_iter().chain(words).chain(["-o".into(), folder.join(out).display().to_string()]);
    let matches = arguments(Command::new("plot")).try_get_matches_from(all).map_err(|e| e.to_string())?;
    run(&matches).map_err(|e| e.message)?;
    fs::read(folder.join(out)).map_err(|e| e.to_string())
}

fn log(folder: &Path, name: &str, values: impl Iterator<Item = String>) {
    let lines: String = values.enumerate().map(|(i, v)| format!("{{\"step\":{i},\"time\":1.5,{v}}}\n")).collect();
    fs::write(folder.join(name), lines).unwrap();
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_picture_has_a_chart_for_each_metric_and_a_curve_for_each_run() {
    let tmp = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "b.jsonl"] {
        log(tmp.path(), name, (0..100).map(|i| format!("\"loss\":{},\"lr\":0.1", 1.0 / f64::from(i + 1))));
    }
    let svg = String::from_utf8(plot(tmp.path(), "a.jsonl b.jsonl", "out.svg").unwrap()).unwrap();
    assert_eq!((count(&svg, ">loss<"), count(&svg, ">lr<"), count(&svg, ">step<")), (1, 1, 2));
    // Two curves in each of two charts, and two in the legend.
    assert_eq!(count(&svg, "class=\"curve c"), 6);
    assert!(svg.contains(">0.2<") && svg.contains(">1.0<") && svg.contains(">20<"), "{svg}");
    assert!(svg.contains("prefers-color-scheme: dark"));
    let svg = String::from_utf8(
        plot(tmp.path(), "a.jsonl --keys lr --smooth 0.9 --width 400 --height 300", "out.svg").unwrap(),
    )
    .unwrap();
    assert!(svg.contains("viewBox=\"0 0 400 300\"") && !svg.contains(">loss<"), "{svg}");
    assert_eq!((count(&svg, "class=\"curve c"), count(&svg, "class=\"faint c")), (1, 1));
    let error = plot(tmp.path(), "a.jsonl --keys lr,los", "out.svg").unwrap_err();
    assert!(error.contains("no metric is named los\n  help: there are loss, lr"), "{error}");
    assert!(plot(tmp.path(), "a.jsonl", "out.pdf").unwrap_err().contains("ends in .svg or .png"));
    assert!(plot(tmp.path(), "c.jsonl", "out.svg").unwrap_err().contains("c.jsonl"));
    assert!(plot(tmp.path(), "a.jsonl --smooth 1", "out.svg").unwrap_err().contains("from 0 to below 1"));
}

#[test]
fn what_is_not_finite_is_a_gap() {
    let tmp = tempfile::tempdir().unwrap();
    let values = ["1", "2", "\"NaN\"", "3", "null", "\"Infinity\"", "4", "5"];
    log(tmp.path(), "a.jsonl", values.iter().map(|v| format!("\"x\":{v},\"note\":\"text\",\"deep\":[1]")));
    let svg = String::from_utf8(plot(tmp.path(), "a.jsonl", "out.svg").unwrap()).unwrap();
    assert_eq!((count(&svg, "class=\"curve c"), count(&svg, ">note<")), (3, 0));
    // On a logarithmic axis zero and less are gaps too.
    log(tmp.path(), "b.jsonl", [1.0, 0.0, 1e4, -1.0].iter().map(|v| format!("\"x\":{v}")));
    let svg = String::from_utf8(plot(tmp.path(), "b.jsonl --log-y", "out.svg").unwrap()).unwrap();
    assert_eq!((count(&svg, "class=\"curve c"), count(&svg, ">1e2<")), (2, 1));
    log(tmp.path(), "c.jsonl", [0.0, -1.0].iter().map(|v| format!("\"x\":{v}")));
    let svg = String::from_utf8(plot(tmp.path(), "c.jsonl --log-y", "out.svg").unwrap()).unwrap();
    assert!(svg.contains("no positive value"), "{svg}");
}

#[test]
fn a_picture_in_png_is_read_by_others() {
    let tmp = tempfile::tempdir().unwrap();
    log(tmp.path(), "a.jsonl", (0..1000).map(|i| format!("\"loss\":{},\"é~\":{i}", f64::from(i).sin())));
    let bytes = plot(tmp.path(), "a.jsonl --width 500", "out.png").unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height, info.color_type), (1000, 2 * (8 + 2 * 260), png::ColorType::Indexed));
    // Background, grid, labels, titles and a curve.
    let mut seen: Vec<u8> = pixels.clone();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert!(bytes.len() < pixels.len() / 5, "{} of {}", bytes.len(), pixels.len());
}

#[test]
fn what_strangers_write_is_text_and_no_markup() {
    let tmp = tempfile::tempdir().unwrap();
    let name = "<script>alert(1)</script>\\u001b[31m&\\\"";
    let mut content = format!("{{\"step\":0,\"{name}\":1}}\n{{\"step\":1,\"{name}\":2}}\n");
    content += "{\"step\": 2, \"x\"\nnot json\n[1]\n{\"x\": 1}\n{\"step\":\"a\"}\n\n";
    content += &format!("{{\"step\":3,\"{}\":1}}\n", "y".repeat(2 << 20));
    content += &"[".repeat(100_000);
    fs::write(tmp.path().join("<b>.jsonl"), content).unwrap();
    log(tmp.path(), "a.jsonl", ["1e308", "-1e308"].iter().map(|v| format!("\"x\":{v}")));
    let svg = String::from_utf8(plot(tmp.path(), "<b>.jsonl a.jsonl", "out.svg").unwrap()).unwrap();
    assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    assert!(svg.contains("&lt;script&gt;"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    fs::write(tmp.path().join("empty.jsonl"), "").unwrap();
    assert!(plot(tmp.path(), "empty.jsonl", "out.svg").unwrap_err().contains("no number is logged"));
    log(tmp.path(), "many.jsonl", (0..100).map(|i| format!("\"k{i}\":1")));
    assert!(plot(tmp.path(), "many.jsonl", "out.svg").unwrap_err().contains("name some with --keys"));
    assert!(plot(tmp.path(), "many.jsonl --keys k1,k2,k3", "out.svg").is_ok());
}

#[test]
fn a_million_points_are_few_in_a_picture_and_none_of_the_peaks_is_lost() {
    let points: Vec<Point> = (0..1_000_000)
        .map(|i| Point { step: f64::from(i), value: if i == 123_456 { 9.0 } else { f64::from(i % 7) / 7.0 } })
        .collect();
    let began = Instant::now();
    let drawn = parts(&points, |p| Some((p.step / 1000.0, p.value)));
    assert!(began.elapsed().as_secs() < 20);
    assert_eq!(drawn.len(), 1);
    assert!(drawn[0].len() <= 4000 && drawn[0].iter().any(|p| p.1 == 9.0), "{}", drawn[0].len());
    assert!(drawn[0].windows(2).all(|w| w[0].0 < w[1].0));
}

#[test]
fn an_average_begins_with_the_first_value() {
    let of = |values: &[f64]| -> Vec<Point> { values.iter().map(|v| Point { step: 0.0, value: *v }).collect() };
    let averages: Vec<f64> = smoothed(&of(&[4.0, 4.0, f64::NAN, 8.0]), 0.5).iter().map(|p| p.value).collect();
    assert_eq!(averages[..2], [4.0, 4.0]);
    assert!(averages[2].is_nan());
    assert!((averages[3] - (8.0 * 0.5 + 4.0 * 0.25 + 4.0 * 0.125) / 0.875).abs() < 1e-12);
}

#[test]
fn ticks_are_round() {
    let ticks = |low: f64, high: f64, log| -> Vec<String> {
        let axis = Axis::of([low, high].into_iter(), log, 0.0).unwrap();
        axis.ticks(5, false).into_iter().map(|(_, text)| text).collect()
    };
    assert_eq!(ticks(0.0, 1.0, false), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(
        ticks(0.00013, 0.00019, false),
        ["1.4e-4", "1.6e-4", "1.8e-4"]
            .map(|t| t.replace("1.4e-4", "0.00014").replace("1.6e-4", "0.00016").replace("1.8e-4", "0.00018"))
    );
    assert_eq!(ticks(-30.0, 1200.0, false), ["0", "500", "1000"]);
    assert_eq!(ticks(1e-5, 1e3, true), ["1e-4", "1e-2", "1e0", "1e2"]);
    assert_eq!(ticks(2.0, 6.0, true), ["2", "3", "4", "5", "6"]);
    assert_eq!(ticks(3.0, 3.0, false), ["2.8", "3.0", "3.2"]);
    for (low, high) in
        [(-f64::MAX, f64::MAX), (0.0, f64::MIN_POSITIVE), (f64::MAX, f64::MAX), (0.0, 0.0), (1e300, 1e300)]
    {
        assert!(ticks(low, high, false).len() <= 11);
    }
}

#[test]
fn lines_of_a_terminal_fit_into_it() {
    let tmp = tempfile::tempdir().unwrap();
    log(
        tmp.path(),
        "a-run-with-a-long-name.jsonl",
        (0..50).map(|i| format!("\"loss\":{}", if i == 20 { "null".into() } else { i.to_string() })),
    );
    let run = super::read::run(&tmp.path().join("a-run-with-a-long-name.jsonl")).unwrap();
    let style = super::Style { smooth: None, log: false, width: None, height: None };
    let text = super::text::draw(&[run], &["loss"], &style, 80);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "loss, steps 0 to 49");
    assert!(lines[1].contains("run-with-a-long-name ▁") && lines[1].ends_with("█ 0 -> 49, least 0"), "{text}");
    assert!(lines[1].chars().count() == 80, "{text}");
}
