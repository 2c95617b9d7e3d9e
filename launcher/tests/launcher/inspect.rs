//! The questions that `oflow` answers, asked of the real binary.

use std::process::{Command, Output, Stdio};

use crate::common::{code, stderr, stdout};
use crate::cpp::cpp as has_cpp;

fn oflow(args: &[&str]) -> Output {
    // Whoever runs the tests may have calibrated.
    let mut command = Command::new(env!("CARGO_BIN_EXE_oflow"));
    command.args(args).stdin(Stdio::null()).env("OFLOW_MODEL", "default").output().unwrap()
}

fn answer(args: &[&str]) -> String {
    let output = oflow(args);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{args:?}");
    stdout(&output)
}

#[test]
fn every_op_is_listed_with_dtypes_and_sharding() {
    let list = answer(&["ops"]);
    let shown: Vec<&str> = list.lines().filter(|l| !l.starts_with(' ') && !l.is_empty()).collect();
    let declared: Vec<String> =
        oflow::ops::all().into_iter().filter(|op| !op.traits.hidden).map(|op| op.sig.to_string()).collect();
    assert_eq!(shown, declared);
    assert!(declared.len() > 100, "{}", declared.len());
    for block in list.split("\n\n") {
        let lines: Vec<&str> = block.lines().collect();
        assert_eq!(lines.len(), 3, "{block}");
        assert!(lines[1].starts_with("    dtypes  ") && lines[2].starts_with("    sbp     "), "{block}");
    }
    let relu = list.split("\n\n").find(|b| b.starts_with("relu(")).unwrap();
    assert_eq!(
        relu,
        "relu(x) -> y
    dtypes  x real; result promoted from the inputs
    sbp     B -> B | S(0) -> S(0) | S(1) -> S(1) | P(max) -> P(max) | P(min) -> P(min)    (for f32[3, 5])"
    );
}

#[test]
fn layouts_are_drawn() {
    assert_eq!(
        answer(&["show", "--shape", "7x8", "--sbp", "[P(sum), S(0), S(1)]", "--mesh", "pp=2,dp=2,tp=2"]),
        "f32[7, 8] [P(sum), S(0), S(1)] on cpu[pp=2, dp=2, tp=2]

    dim 1
    0                        4                        8
  0 +------------------------+------------------------+
    |         0 + 4          |         1 + 5          |
  4 +------------------------+------------------------+
    |         2 + 6          |         3 + 7          |
  7 +------------------------+------------------------+
  dim 0

  a + b: the values are the sum of what these ranks hold

  rank  pp  dp  tp  dim 0  dim 1  bytes
     0   0   0   0   0..4   0..4     64
     1   0   0   1   0..4   4..8     64
     2   0   1   0   4..7   0..4     48
     3   0   1   1   4..7   4..8     48
     4   1   0   0   0..4   0..4     64
     5   1   0   1   0..4   4..8     64
     6   1   1   0   4..7   0..4     48
     7   1   1   1   4..7   4..8     48

  the tensor has 224 B; a rank holds 48 B to 64 B, all together 448 B
"
    );
    // More ranks than elements; more parts than fit; all as JSON; a picture.
    let few = answer(&["show", "--shape", "3", "--sbp", "S(0)", "--mesh", "4"]);
    assert!(few.contains("rank 3: nothing, there are fewer elements along a dim than parts"), "{few}");
    let many = ["show", "--shape", "4096", "--sbp", "S(0)", "--mesh", "256"];
    let text = answer(&many);
    assert!(
        text.contains("1 by 256 parts do not fit into 80 columns") && text.contains("and 224 more ranks"),
        "{text}"
    );
    let all: serde_json::Value = serde_json::from_str(&answer(&[&many[..], &["--json"]].concat())).unwrap();
    assert_eq!((all["bytes"].as_u64(), all["ranks"].as_array().map(Vec::len)), (Some(16384), Some(256)));
    assert_eq!(
        all["ranks"][255],
        serde_json::json!({ "rank": 255, "coord": [255], "offset": [4080], "size": [16], "bytes": 64 })
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layout.svg");
    answer(&[&many[..], &["--svg", file.to_str().unwrap()]].concat());
    assert_eq!(std::fs::read_to_string(&file).unwrap().matches("<rect").count(), 256);

    // A plan before and after each step.
    let drawn = answer(&["box", "--shape", "6", "--from", "[P(sum)]", "--to", "[S(0)]", "--mesh", "2", "--draw"]);
    let (_, pictures) = drawn.split_once("\n\n").unwrap();
    assert_eq!(
        pictures,
        "[P(sum)] on cpu[2]

  dim 0
  0                                                6
  +------------------------------------------------+
  |                     0 + 1                      |
  +------------------------------------------------+

1. reduce-scatter(sum, dim 0) along axis 0: [P(sum)] -> [S(0)]

  dim 0
  0                        3                        6
  +------------------------+------------------------+
  |           0            |           1            |
  +------------------------+------------------------+
"
    );

    for (args, why) in [
        (vec!["show", "--shape", "4x4", "--sbp", "[S(2)]", "--mesh", "2"], "dim"),
        (vec!["show", "--shape", "4x4", "--sbp", "[S(0), B]", "--mesh", "2"], "mesh"),
        (vec!["show", "--shape", "70000", "--sbp", "S(0)", "--mesh", "65536", "--svg", "no.svg"], "65536 parts"),
        (
            vec!["show", "--shape", "4", "--sbp", "S(0)", "--mesh", "2", "--svg", "/no/such/folder/x.svg"],
            "cannot write",
        ),
    ] {
        let output = oflow(&args);
        assert!(code(&output) != 0 && stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn one_op_in_full() {
    assert_eq!(
        answer(&["ops", "layer_norm"]),
        "layer_norm(x: float, weight?: float, bias?: float; axes: int = 1, eps: runtime float = 1e-5) -> (y, mean, rstd)
oflow.layer_norm@1

  Normalises the last `axes` dims to mean 0 and variance 1, then scales and shifts.

Inputs
  x       float: f16, bf16, f32, f64
  weight  float: f16, bf16, f32, f64; may be absent
  bias    float: f16, bf16, f32, f64; may be absent

Attributes
  axes    int, default 1
  eps     float, default 1e-5; runtime: may change without a new plan

Outputs
  y, mean, rstd: depends on inputs and attributes

Functions
  layer_norm(Tensor x, Tensor? weight, Tensor? bias, Float eps=1e-5, *, Int? axes) -> Tensor

Sharding
  rule: depends on shapes and attributes; and one lowering
  for f32[4, 3, 6], f32[6], f32[6], along one mesh axis:
    B, B, B -> B, B, B
    S(0), B, B -> S(0), S(0), S(0)
    S(1), B, B -> S(1), S(1), S(1)
    S(2), S(0), S(0) -> S(2), B, B (lowered)

Gradient
  a rule that keeps x, weight, mean, rstd

Kernels
  layer_norm_cpu on cpu, default, always
  layer_norm_cuda on cuda, default, always

Traits
  takes inputs of any strides
"
    );
    let output = oflow(&["ops", "layer_nrom"]);
    assert_eq!(code(&output), 1);
    assert_eq!(
        stderr(&output),
        "oflow: unknown op 'layer_nrom'\n  help: did you mean 'layer_norm'? `oflow ops` lists all\n"
    );
}

#[test]
fn the_choice_of_a_signature_is_explained() {
    let inputs = ["--in", "f32[1024,512] [S(0),B]", "--in", "f32[512,256] [B,S(1)]", "--mesh", "dp=2,tp=4"];
    let text = answer(&[&["sbp", "matmul"], &inputs[..]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "matmul(f32[1024, 512] [S(0), B], f32[512, 256] [B, S(1)]) on cpu[dp=2, tp=4]");
    assert_eq!(lines[1], "  gives f32[1024, 256] [S(0), S(1)]");
    assert!(lines[4].starts_with("* [S(0), B], [B, S(1)] -> [S(0), S(1)] "), "{text}");
    assert_eq!(lines.iter().filter(|l| l.starts_with("* [")).count(), 1, "{text}");
    assert!(text.ends_with("  and 6 more; --all shows them\n* is taken: no input has to move\n"), "{text}");
    let all = answer(&[&["sbp", "matmul", "--all"], &inputs[..]].concat());
    assert_eq!(all.lines().filter(|l| l.contains(" -> ")).count(), 10 + 6 + 1, "the title and 16 candidates");

    // Where something has to move, the price decides; a gradient makes it dearer.
    let moved = ["--in", "f32[1024,512] [S(1),B]", "--in", "f32[512,256] [B,S(1)]", "--mesh", "dp=2,tp=4", "--json"];
    let plain: serde_json::Value = serde_json::from_str(&answer(&[&["sbp", "matmul"], &moved[..]].concat())).unwrap();
    let grad: serde_json::Value =
        serde_json::from_str(&answer(&[&["sbp", "matmul", "--grad"], &moved[..]].concat())).unwrap();
    for answer in [&plain, &grad] {
        let first = &answer["candidates"][0];
        assert_eq!(first["chosen"], true);
        let totals: Vec<u64> =
            answer["candidates"].as_array().unwrap().iter().map(|c| c["cost_ps"]["total"].as_u64().unwrap()).collect();
        assert!(totals.iter().all(|t| totals[0] <= *t), "{totals:?}");
    }
    assert_eq!(plain["candidates"][0]["cost_ps"]["adjoint"], 0);
    assert!(grad["candidates"][0]["cost_ps"]["adjoint"].as_u64().unwrap() > 0);
}

#[test]
fn a_wrong_call_is_told_as_in_a_program() {
    let output = oflow(&["sbp", "matmul", "--in", "f32[4,3] B", "--in", "f32[2,5] B", "--mesh", "2"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output)
            .starts_with("oflow: matmul(f32[4, 3] [B], f32[2, 5] [B]) on cpu[2]: inner dims differ: 3 and 2\n"),
        "{}",
        stderr(&output)
    );
    for (args, message) in [
        (
            &["sbp", "softmax", "--in", "f32[4] [S(0)]", "--mesh", "dp=2", "--attr", "axis=0"][..],
            "softmax has no attribute 'axis'",
        ),
        (&["sbp", "relu", "--in", "f32[4] [S(1)]", "--mesh", "2"], "S(1) splits dim 1"),
        (&["sbp", "relu", "--in", "f32[4] [B, B]", "--mesh", "2"], "2 entries"),
    ] {
        let output = oflow(args);
        assert_eq!(code(&output), 1, "{args:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    for args in [
        &["sbp", "relu", "--in", "f32[4]", "--mesh", "2"][..],
        &["box", "--shape", "4", "--from", "Q", "--to", "B", "--mesh", "2"],
        &["bax"],
        &[],
    ] {
        assert_eq!(code(&oflow(args)), 2, "{args:?}");
    }
}

#[test]
fn a_boxing_is_shown_with_bytes_and_time() {
    let wide = [
        "--shape",
        "1024x4096",
        "--dtype",
        "bf16",
        "--from",
        "[S(0),P(sum)]",
        "--to",
        "[B,S(1)]",
        "--mesh",
        "dp=4,tp=8",
    ];
    assert_eq!(
        answer(&[&["box"], &wide[..]].concat()),
        "bf16[1024, 4096]: [S(0), P(sum)] on cpu[dp=4, tp=8] -> [B, S(1)] on cpu[dp=4, tp=8]
  1. reduce-scatter(sum, dim 1) along tp: [S(0), P(sum)] -> [S(0), S(1)]  (192.0 us)
  2. all-gather(dim 0) along dp: [S(0), S(1)] -> [B, S(1)]  (85.1 us)
  sends 80.0 MiB in all, at most 2560.0 KiB from one rank (rank 0); predicted 277.1 us
  takes 5376.0 KiB on a rank at its peak, source and result included
  constants: default constants (OFLOW_MODEL=default)
"
    );
    let json: serde_json::Value = serde_json::from_str(&answer(&[&["box", "--json"], &wide[..]].concat())).unwrap();
    assert_eq!(json["bytes_sent"], 80u64 << 20);
    let by_rank: u64 = json["bytes_sent_by_rank"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(by_rank, 80 << 20);
    assert_eq!(json["steps"].as_array().unwrap().len(), 2);
    let moved =
        ["box", "--shape", "512x512", "--from", "[S(0)]", "--to", "[S(1)]", "--mesh", "tp=4", "--to-mesh", "tp=4@4"];
    assert!(answer(&moved).contains("-> [S(1)] on cpu[tp=4] of ranks [4, 5, 6, 7]\n  1. exchange"));
    let same = answer(&["box", "--shape", "8", "--from", "B", "--to", "B", "--mesh", "4"]);
    assert!(same.contains("  nothing to do: every rank has its shard already\n"), "{same}");
}

#[test]
fn all_layouts_of_a_mesh_are_listed() {
    let line = answer(&["box", "--all", "--shape", "6x5", "--mesh", "tp=3"]);
    assert_eq!(
        line,
        "\
f32[6, 5] on cpu[tp=3]
  from      to        bytes   us  steps
  [B]       [P(sum)]    0 B  0.2  keep-first along tp
  [B]       [P(max)]    0 B  0.2  keep-all along tp
  [B]       [S(0)]      0 B  0.2  slice(dim 0) along tp
  [B]       [S(1)]      0 B  0.2  slice(dim 1) along tp
  [P(sum)]  [B]       720 B  6.0  all-reduce(sum) along tp
  [P(sum)]  [P(max)]  240 B  6.1  exchange
  [P(sum)]  [S(0)]    240 B  6.0  reduce-scatter(sum, dim 0) along tp
  [P(sum)]  [S(1)]    240 B  6.0  reduce-scatter(sum, dim 1) along tp
  [P(max)]  [B]       720 B  6.0  all-reduce(max) along tp
  [P(max)]  [P(sum)]  240 B  6.1  exchange
  [P(max)]  [S(0)]    240 B  6.0  reduce-scatter(max, dim 0) along tp
  [P(max)]  [S(1)]    240 B  6.0  reduce-scatter(max, dim 1) along tp
  [S(0)]    [B]       240 B  6.0  all-gather(dim 0) along tp
  [S(0)]    [P(sum)]    0 B  0.2  pad(dim 0, sum) along tp
  [S(0)]    [P(max)]    0 B  0.2  pad(dim 0, max) along tp
  [S(0)]    [S(1)]     80 B  6.0  all-to-all(dim 0 to 1) along tp
  [S(1)]    [B]       240 B  6.0  all-gather(dim 1) along tp
  [S(1)]    [P(sum)]    0 B  0.2  pad(dim 1, sum) along tp
  [S(1)]    [P(max)]    0 B  0.2  pad(dim 1, max) along tp
  [S(1)]    [S(0)]     80 B  6.0  all-to-all(dim 1 to 0) along tp
  constants: default constants (OFLOW_MODEL=default)
"
    );
    // Every pair of the 16 layouts of B, P(sum), S(0) and S(1) on two axes.
    let plane = ["box", "--all", "--shape", "64x64", "--mesh", "2,2"];
    let rows = answer(&plane).lines().filter(|l| l.starts_with("  [")).count();
    assert_eq!(rows, 16 * 15);
    let json: serde_json::Value = serde_json::from_str(&answer(&[&plane[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["plans"].as_array().unwrap().len(), 16 * 15);
    assert_eq!(json["constants"], "default constants (OFLOW_MODEL=default)");
    // bool has no sums; to another mesh equal layouts are a pair too.
    let args = ["box", "--all", "--shape", "4", "--dtype", "bool", "--mesh", "2", "--to-mesh", "2@2"];
    let moved = answer(&args);
    assert!(moved.starts_with("bool[4] on cpu[2] to cpu[2] of ranks [2, 3]\n") && !moved.contains("P(sum)"), "{moved}");
    assert_eq!(moved.lines().filter(|l| l.starts_with("  [")).count(), 9);
    for (args, message) in [
        (
            &["--shape", "4x4", "--mesh", "2,2,2"][..],
            "--all lists meshes of up to 2 axes, this one has 3\n  help: ask for",
        ),
        (&["--shape", "2x2x2x2x2x2x2", "--mesh", "2,2"], "there are 6561 pairs of layouts, more than 4096\n  help: "),
    ] {
        let output = oflow(&[&["box", "--all"], args].concat());
        assert_eq!(code(&output), 1, "{args:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    assert_eq!(code(&oflow(&["box", "--all", "--shape", "4", "--from", "B", "--to", "B", "--mesh", "2"])), 2);
    assert_eq!(code(&oflow(&["box", "--shape", "4", "--from", "B", "--mesh", "2"])), 2);
}

#[test]
fn inputs_that_move_are_shown_with_their_plans() {
    let call = ["sbp", "matmul", "--in", "f32[64,32] [S(1)]", "--in", "f32[32,16] [S(1)]", "--mesh", "tp=4"];
    let text = answer(&call);
    let (_, moves) = text.split_once("* is taken: the cheapest\n").unwrap();
    assert_eq!(
        moves,
        "
  input 0: f32[64, 32] [S(1)] -> [B]
    1. all-gather(dim 1) along tp: [S(1)] -> [B]  (7.1 us)
    sends 24.0 KiB; predicted 7.1 us
  constants of these plans: default constants (OFLOW_MODEL=default)
"
    );
    let json: serde_json::Value = serde_json::from_str(&answer(&[&call[..], &["--json"]].concat())).unwrap();
    let moved = json["moves"].as_array().unwrap();
    assert!(!moved.is_empty());
    for m in moved {
        let i = m["input"].as_u64().unwrap() as usize;
        assert_eq!(m["plan"]["to"]["sbp"], json["candidates"][0]["inputs"][i]);
        let steps = m["plan"]["steps"].as_array().unwrap();
        let sum: u64 = steps.iter().map(|s| s["predicted_ps"].as_u64().unwrap()).sum();
        assert_eq!(m["plan"]["predicted_ps"], sum);
    }
}

#[test]
fn hosts_and_constants_can_be_said() {
    let args = ["box", "--shape", "1024x1024", "--from", "P", "--to", "B", "--mesh", "4", "--json"];
    let price = |more: &[&str]| -> u64 {
        let json: serde_json::Value = serde_json::from_str(&answer(&[&args[..], more].concat())).unwrap();
        json["predicted_ps"].as_u64().unwrap()
    };
    let one_host = price(&[]);
    assert_eq!(price(&["--ranks-per-host", "4"]), one_host);
    assert_eq!(price(&["--model", "default"]), one_host);
    assert_ne!(price(&["--ranks-per-host", "2"]), one_host);
    let output = oflow(&[&args[..], &["--model", "no-such-file"]].concat());
    assert_eq!(code(&output), 1);
    assert_eq!(
        stderr(&output),
        "oflow: the cost model no-such-file cannot be read: No such file or directory (os error 2)\n  help: `oflow calibrate --out no-such-file` makes it anew; OFLOW_MODEL=default runs with the fixed constants\n"
    );
    assert_eq!(code(&oflow(&[&args[..], &["--ranks-per-host", "0"]].concat())), 2);
}

#[test]
fn the_help_texts_read_like_finished_ones() {
    let help = answer(&["--help"]);
    for command in ["ops", "sbp", "box", "run", "calibrate", "doctor"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let own = answer(&[command, "--help"]);
        assert!(own.contains("Usage: oflow ") && own.lines().all(|l| l.len() <= 130), "{own}");
    }
    // The examples of the help text are commands that work.
    for line in help.lines().filter_map(|l| l.trim().strip_prefix("oflow ")).filter(|l| !l.contains('<')) {
        let output = Command::new("sh")
            .args(["-c", &format!("exec '{}' {line}", env!("CARGO_BIN_EXE_oflow"))])
            .output()
            .unwrap();
        assert_eq!(code(&output), 0, "{line}: {}", stderr(&output));
    }
    let help = stdout(&Command::new(env!("CARGO_BIN_EXE_oflaunch")).arg("--help").output().unwrap());
    for part in ["Usage: oflaunch", "Examples:", "Exit codes:", "Environment that each rank gets:", "--nproc <N>"] {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
}

#[test]
fn the_doctor_says_what_is_missing_for_a_gpu() {
    let text = answer(&["doctor"]);
    let of = |name: &str| {
        let line = text.lines().find(|l| l.get(6..).is_some_and(|l| l.starts_with(name)));
        line.unwrap_or_else(|| panic!("no line of {name} in\n{text}")).to_string()
    };
    for name in ["CUDA driver", "GPUs", "NVRTC", "cuBLASLt", "NCCL", "kernel cache", "Device::Cuda"] {
        assert!(of(name).len() > 20, "{text}");
    }
    if text.contains("libcuda.so is not on the library search path") {
        assert!(of("CUDA driver").starts_with("note  CUDA driver"), "{text}");
        assert!(of("CUDA driver").ends_with("tensors live on the CPU"), "{text}");
        assert!(of("GPUs").ends_with("none: the driver is missing"), "{text}");
        let end = "asking for it is an error: no CUDA driver: libcuda.so is not on the library search path";
        assert!(of("Device::Cuda").ends_with(end), "{text}");
    } else {
        println!("skipped: this machine has a CUDA driver");
    }
}

#[test]
fn a_reader_that_has_enough_ends_the_answer_without_a_panic() {
    use std::os::unix::process::ExitStatusExt;
    for what in ["ops", "doctor"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut oflow = Command::new(env!("CARGO_BIN_EXE_oflow"));
        let child = oflow.arg(what).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.signal(), stderr(&output).as_str()), (Some(13), ""), "{what}");
    }
}

#[test]
fn ops_of_libraries_are_listed_and_checked() {
    let cache = tempfile::tempdir().unwrap();
    let oflow = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oflow"));
        command.env("OFLOW_OP_CACHE", cache.path()).args(args).output().unwrap()
    };
    let example = |name: &str| format!("{}/../examples/ops/{name}", env!("CARGO_MANIFEST_DIR"));
    let (rust, cpp, cuda) = (example("softsign.rs"), example("matmul_scale.cc"), example("matmul_scale.cu"));
    let list = oflow(&["ops", "--load", &rust]);
    assert_eq!(code(&list), 0, "{}", stderr(&list));
    assert_eq!(stdout(&list).matches("demo.").count(), 1, "hidden ops are not listed: {}", stdout(&list));
    assert!(stdout(&list).starts_with("demo.softsign: softsign(x: f32|f64) -> y\n"), "{}", stdout(&list));
    let full = stdout(&oflow(&["ops", "demo.softsign", "--load", &rust]));
    for part in ["demo.softsign(Tensor x) -> Tensor", "Library\n  demo (", "softsign_cpu on cpu"] {
        assert!(full.contains(part), "{full}");
    }
    if has_cpp() {
        let checked = oflow(&["ops", "check", &cpp, &cuda, "--op", "matmul_scale"]);
        assert_eq!(code(&checked), 0, "{}{}", stdout(&checked), stderr(&checked));
        assert!(stdout(&checked).starts_with("demo.matmul_scale: conforms on 2 samples\n"), "{}", stdout(&checked));
    }
    let none = oflow(&["ops", "check", &rust, "--op", "other"]);
    assert_eq!((code(&none), stderr(&none).contains("has no op 'other'")), (1, true));
    assert_eq!(code(&oflow(&["ops", "check"])), 2);
    // A planted fault: the rule says that the negative of a split is a sum.
    let wrong = cache.path().join("wrong.rs");
    let text = std::fs::read_to_string(&rust).unwrap().replace("\"S(1) -> S(1)\"]", "\"S(1) -> P\"]");
    std::fs::write(&wrong, text).unwrap();
    let found = oflow(&["ops", "check", wrong.to_str().unwrap()]);
    assert_eq!(code(&found), 1);
    assert!(stdout(&found).contains("demo.softsign does not conform"), "{}", stdout(&found));
}

/// A C++ file that calls a launcher of the CUDA file beside it.
const CALLS_A_LAUNCHER: &str = r#"#include "oflow_op.hpp"
void twice(const float *x, float *y, size_t n);
static void run(const oflow::Call &call) {
    twice(call.input(0).data<float>(), call.output(0).data<float>(), call.output(0).size());
}
OFLOW_LIBRARY(launched) {
    library.op("twice(x: f32) -> y").signatures({"S(0) -> S(0)", "P -> P"}).gradient("x = launched.twice(grad y)").samples({"f32[5]"})
        .cpu(run).cuda(run);
}
"#;
const LAUNCHER: &str = "__global__ void k(const float *x, float *y, size_t n) {\n    for (size_t i = 0; i < n; ++i) y[i] = 2 * x[i];\n}\n\
    void twice(const float *x, float *y, size_t n) { k<<<1, 1>>>(x, y, n); }\n";
/// Stands in for nvcc where there is no toolkit: a launch is a call.
const NVCC: &str = r#"#!/bin/sh
set -e
for a in "$@"; do
    shift
    case $a in
    -Xcompiler) ;;
    *.cu)
        { echo '#include <stddef.h>'; sed 's/__global__/static/; s/<<<[^>]*>>>//' "$a"; } >"$a.cc"
        set -- "$@" "$a.cc"
        ;;
    *) set -- "$@" "$a" ;;
    esac
done
exec c++ "$@"
"#;

#[test]
fn a_launcher_in_a_cuda_file_is_compiled_by_nvcc() {
    if !has_cpp() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (cc, cu) = (write("launched.cc", CALLS_A_LAUNCHER), write("launched.cu", LAUNCHER));
    let nvcc = write("nvcc", NVCC);
    std::fs::set_permissions(&nvcc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let check = |nvcc: Option<&std::path::Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oflow"));
        let cache = folder.path().join("cache");
        command.env("OFLOW_OP_CACHE", cache).env_remove("NVCC").env("CUDA_HOME", folder.path().join("none"));
        command.envs(nvcc.map(|nvcc| ("NVCC", nvcc)));
        command.args(["ops", "check"]).args([&cc, &cu]).output().unwrap()
    };
    let built = check(Some(&nvcc));
    assert_eq!(code(&built), 0, "{}{}", stdout(&built), stderr(&built));
    assert!(stdout(&built).starts_with("launched.twice: conforms on 1 "), "{}", stdout(&built));
    let has_nvcc =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|f| f.join("nvcc").is_file());
    if !has_nvcc {
        let none = check(None);
        assert_eq!(code(&none), 1);
        assert!(
            stderr(&none).contains("launched.cu cannot be built: it launches kernels from host code"),
            "{}",
            stderr(&none)
        );
    }
}
