//! All programs of the kernels as data, to compile them without a GPU: the files of `kernels/cuda` with their macros. Generated
//! programs (elementwise) come from the expressions.

use super::Source;
use super::compile::{Unit, compile};
use crate::Result;

/// A source and the macros that it is compiled with, `NAME=value` each.
#[derive(Clone, Debug)]
pub struct Program {
    /// Text of the program.
    pub source: Source,
    /// Macros that the program is compiled with.
    pub defines: Vec<String>,
}

impl Program {
    /// Compiles the program for an architecture such as `sm_90`, without the cache. Needs NVRTC and no GPU.
    ///
    /// # Errors
    /// Errors of the compiler, with lines.
    pub fn compile(&self, arch: &str) -> Result<Vec<u8>> {
        compile(&Unit {
            name: self.source.name(),
            text: self.source.text(),
            defines: self.defines.clone(),
            arch: arch.to_string(),
            gpu: "",
        })
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.source.name())?;
        self.defines.iter().try_for_each(|d| write!(f, " {d}"))
    }
}

/// A file and what it is compiled with: lines of macros. `{a,b}` stands for either; all combinations of a line are meant.
struct Listed {
    source: Source,
    lines: &'static [&'static str],
}

macro_rules! listed {
    ($($name:literal: [$($line:literal),* $(,)?]),* $(,)?) => {
        &[$(Listed {
            source: Source::file($name, include_str!(concat!("../../cuda/", $name, ".cu"))),
            lines: &[$($line),*],
        }),*]
    };
}

/// Every file of `kernels/cuda` (a test sees to it), with the macros of the kernels' usual forms: dtypes that a program is
/// written differently for, the widest vectors, and single elements where that is other code.
static LISTED: &[Listed] = listed! {
    "accumulate": [
        "T={f32,i64} OP={0,1,2} MOST=16 VECTOR=1",
        "T=f32 OP=0 MOST={16,480} VECTOR=4",
        "T=bf16 OP=0 MOST=16 VECTOR=8",
    ],
    "attention": [
        "T=bf16 D={64,128} DV={64,128} CAUSAL={0,1} ALIGNED=1 GRAD={0,1}",
        "T=bf16 D={32,96} DV={32,96} CAUSAL=1 ALIGNED=1 GRAD={0,1}",
        "T=f16 D=64 DV=64 CAUSAL=1 ALIGNED=0 GRAD={0,1}",
    ],
    "attention_plain": ["T={f32,f64,bf16} TILE=32 GRAD={0,1}"],
    "batch_norm": ["T={f32,f64} W=T B=T", "T=bf16 W={bf16,f32} B=bf16"],
    "conv": ["T={f32,f64,bf16} FORM={0,1,2}", "T=f16 FORM=0"],
    "copy": ["OF_BYTES={1,2,4,8,16} OF_V=1 OF_U=4 OF_MODES={0,1} OF_OUTER=2 OF_STRIDED=1"],
    "count": [
        "KIND=0 T={f32,bf16,i64,u8} O=i64 RIGHT={0,1}",
        "KIND=0 T=f32 O=i32 RIGHT=0",
        "KIND=1 I={i32,i64}",
        "KIND=2 T={f32,f64}",
    ],
    "embedding": [
        "I={i32,i64} GRAD=0 OF_BYTES={2,16}",
        "I=i64 GRAD=1 T={f32,f64} OF_V=1",
        "I=i64 GRAD=1 T=f32 OF_V=4",
        "I=i64 GRAD=1 T=bf16 OF_V=8",
    ],
    "fill": [""],
    "gather": [
        "GATHER=1 M={u8,f16,i32,i64} I=i64",
        "GATHER=1 M=i32 I=i32",
        "GATHER=0 WHOLE=0 T={f32,f64,i32,i64} I=i64",
        "GATHER=0 WHOLE=1 T=bf16 I={i32,i64}",
    ],
    "grouped_norm": ["T={f32,f64} W=T B=T", "T=bf16 W={bf16,f32} B=bf16"],
    "index": ["T={f32,bf16,i64} I=i64", "T=f32 I=i32"],
    "loss": [
        "T={f32,bf16,f64} L=f32 D=f32 PACKED=1 VEC={1,2} ROW={32,512}",
        "T=f32 L=f32 D=f32 PACKED=1 VEC=4 ROW=512",
        "T=bf16 L=f32 D=f32 PACKED=1 VEC=8 ROW={8,512}",
        "T=f32 L=f32 D=f32 PACKED=0 VEC=1 ROW=32",
    ],
    "matmul": ["T=f32 O=f32", "T=f64 O=f64", "T=bf16 O={bf16,f32}", "T=i32 O=i32", "T=i64 O=i64"],
    "norm": [
        "T=f32 W=f32 B=f32 G=f32 CENTERED={0,1} WEIGHT=1 BIAS=1 HAS_WEIGHT=1 PACKED=1 VEC=4 ROW={32,128} PER={2,4}",
        "T=f32 W=f32 B=f32 G=f32 CENTERED=1 WEIGHT=1 BIAS=1 HAS_WEIGHT=1 PACKED=1 VEC=4 ROW=512 PER={0,4}",
        "T=bf16 W={bf16,f32} B=bf16 G=bf16 CENTERED=1 WEIGHT=1 BIAS=1 HAS_WEIGHT=1 PACKED=1 VEC=8 ROW={32,128} PER={1,2}",
        "T=f64 W=f64 B=f64 G=f64 CENTERED=1 WEIGHT=1 BIAS=1 HAS_WEIGHT={0,1} PACKED={0,1} VEC=1 ROW=512 PER=0",
    ],
    "optim": ["P={f32,f64} G=P M=P V=P MOMENTUM={0,1}", "P=bf16 G={bf16,f32} M={bf16,f32} V=f32 MOMENTUM=1"],
    "pool": ["T={f32,f64,bf16} FORM={0,1,2,3}"],
    "random": ["T={f32,f64,bf16} DIST={0,1,3} RUNS={0,1}", "T={i32,i64} DIST=4 RUNS=0", "T=b8 DIST=2 RUNS=0"],
    "reduce": [
        "T=f32 O=f32 TRUTH=0 OP={0,1,3} VEC={1,4} ROW={32,256} WIDE={0,1}",
        "T=bf16 O=bf16 TRUTH=0 OP={0,2} VEC={1,4,8} ROW={32,256} WIDE=0",
        "T={u8,i32,i64,b8} O=i64 TRUTH=0 OP={0,3} VEC=2 ROW=256 WIDE=0",
        "T={f32,bf16,b8} O=b8 TRUTH=1 OP={1,2} VEC=1 ROW=256 WIDE=0",
        "T={f32,bf16,b8} O=i64 TRUTH=1 OP=0 VEC={1,4} ROW=256 WIDE=0",
        "T=i64 O=i64 TRUTH=1 OP=0 VEC={1,2} ROW=256 WIDE=0",
        "T={f32,f64,bf16,i64} O=i64 TRUTH=0 OP={4,5} VEC=2 ROW=256 WIDE=0",
    ],
    "resample": [
        "FORM=0 M={u8,f16,i32} S=f32",
        "FORM=0 M=i64 S={f32,f64}",
        "FORM={1,2} T={f32,bf16} S=f32",
        "FORM={1,2} T=f64 S=f64",
    ],
    "rotary": ["T={f32,f64,bf16}"],
    "run": [
        "KIND=0 T=f32 O=f32 REVERSE=0",
        "KIND=0 T=i32 O=i64 REVERSE=0",
        "KIND={1,2} T=f32 O=f32 REVERSE=0",
        "KIND={1,2} T=i64 O=i64 REVERSE=0",
        "KIND=3 T=bf16 O=bf16 REVERSE=0",
        "KIND=4 T=f32 O=f32 REVERSE={0,1}",
    ],
    "scan": ["T={f32,f64,bf16} O=f32 ROW={32,256} REVERSE={0,1}", "T={b8,u8,i64} O=i64 ROW={32,256} REVERSE=0"],
    "select": ["T={b8,u8,i64,f16,f32,f64} M=u8", "T=b8 M={f16,i32,i64}"],
    "softmax": [
        "T=f32 LOG={0,1} VEC=4 ROW=32 PER={1,8}",
        "T=f32 LOG={0,1} VEC={1,4} ROW=512 PER=0",
        "T=f32 LOG=0 VEC=4 ROW=1024 PER=4",
        "T=bf16 LOG={0,1} VEC=8 ROW={32,256} PER=2",
        "T=f64 LOG={0,1} VEC=2 ROW={32,256} PER={0,4}",
    ],
    "sort": ["T={b8,u8,i8,i32,f16,bf16,f32} WIDE=0", "T={i64,f64,f32} WIDE=1"],
    "steps": [
        "P={f32,f64} G=P S=P V=P W=P RULE=0 STATES={2,3}",
        "P=bf16 G=bf16 S=f32 V=f32 W=f32 RULE=0 STATES=2",
        "P=f32 G=f32 S=f32 V=f32 W=f32 RULE={1,5,7} STATES=1",
        "P=f32 G=f32 S=f32 V=f32 W=f32 RULE={2,3,6} STATES=2",
        "P=f32 G=f32 S=f32 V=f32 W=f32 RULE={4,8} STATES=3",
        "P={f32,bf16} G=P S=P V=P W=P RULE=9 STATES=0",
    ],
    "take": ["M={u8,f16,i32,i64} I=i64", "M=i32 I=i32"],
    "transpose": ["OF_BYTES={1,2,4,8}"],
    "triangle": ["OF_BYTES=2 OF_V={1,8} LOWER={0,1}", "OF_BYTES=4 OF_V=4 LOWER=1"],
};

/// Macros that are the same in the combinations that occur: a value's size differs from the query's only rarely.
const SAME: [&[&str]; 3] = [&["D=", "DV="], &["P=", "G=", "M=", "V="], &["T=", "O="]];

/// Returns the programs of files.
pub fn programs() -> Vec<Program> {
    let mut all = vec![];
    for Listed { source, lines } in LISTED {
        for line in *lines {
            for text in alternatives(line) {
                let defines: Vec<String> = text.split_whitespace().map(str::to_string).collect();
                if !diagonal(line, &defines) {
                    continue;
                }
                all.push(Program { source: source.clone(), defines });
            }
        }
    }
    all
}

/// Whether macros that a line gives the same choices have the same value.
fn diagonal(line: &str, defines: &[String]) -> bool {
    let choices =
        |name: &str| line.split_whitespace().find_map(|d| d.strip_prefix(name)).filter(|v| v.starts_with('{'));
    let value = |name: &str| defines.iter().find_map(|d| d.strip_prefix(name));
    SAME.iter().all(|names| {
        let mut pairs = names.windows(2);
        pairs.all(|p| choices(p[0]).is_none() || choices(p[0]) != choices(p[1]) || value(p[0]) == value(p[1]))
    })
}

/// A text with `{a,b}` as all the texts it stands for.
fn alternatives(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_string()] };
    let (choices, after) = rest.split_once('}').unwrap_or((rest, ""));
    let after = alternatives(after);
    choices.split(',').flat_map(|c| after.iter().map(move |a| format!("{before}{c}{a}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cuda");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|f| Some(f.unwrap().file_name().to_str()?.strip_suffix(".cu")?.to_string()))
            .collect();
        files.sort();
        let listed: Vec<&str> = LISTED.iter().map(|l| l.source.name()).collect();
        assert_eq!(files, listed, "kernels/src/cuda/programs.rs lists what kernels/cuda has, in order");
    }

    #[test]
    fn braces_are_choices() {
        assert_eq!(alternatives("A={1,2} B={x}"), ["A=1 B=x", "A=2 B=x"]);
        assert_eq!(alternatives(""), [""]);
    }
}
