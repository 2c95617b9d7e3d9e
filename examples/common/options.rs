//! Command-line options, and the mesh that `--parallel` asks for.

use oflow::prelude::*;
use std::fmt::Display;
use std::str::FromStr;

/// How the work is divided over ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parallel {
    /// Every rank computes the whole batch with all weights.
    Single,
    /// Each rank takes a slice of the batch.
    Dp,
    /// Each rank holds a slice of the weights.
    Tp,
    /// Both, on a mesh [dp, tp].
    TwoD,
}

impl FromStr for Parallel {
    type Err = String;
    fn from_str(s: &str) -> std::result::Result<Parallel, String> {
        match s {
            "single" => Ok(Parallel::Single),
            "dp" => Ok(Parallel::Dp),
            "tp" => Ok(Parallel::Tp),
            "2d" => Ok(Parallel::TwoD),
            _ => Err("single, dp, tp or 2d".into()),
        }
    }
}

impl Parallel {
    /// `asked`, or the default: dp on several ranks, single on one.
    pub fn or_default(asked: Option<Parallel>, world: usize) -> Parallel {
        asked.unwrap_or(if world > 1 { Parallel::Dp } else { Parallel::Single })
    }
    /// All ranks of a world as a mesh [dp, tp]. `2d` takes the divisors of `world` that are closest to its square root, the
    /// larger one for dp; a prime number of ranks is [world, 1].
    pub fn mesh(self, world: usize, device: Device) -> Result<Placement> {
        let (dp, tp) = match self {
            Parallel::Dp => (world, 1),
            Parallel::Tp | Parallel::Single => (1, world),
            Parallel::TwoD => {
                let tp = (1..=world).rev().find(|t| world.is_multiple_of(*t) && t * t <= world).unwrap_or(1);
                (world / tp, tp)
            }
        };
        Placement::all(device)?.mesh(&[("dp", dp), ("tp", tp)])
    }
    /// Whether weights are split over mesh axis "tp".
    pub fn splits_weights(self) -> bool {
        matches!(self, Parallel::Tp | Parallel::TwoD)
    }
}

/// The options of the command line, `--name value` and flags. Each method removes what it reads; [`Options::done`] fails if
/// an option is left.
pub struct Options {
    rest: Vec<String>,
    usage: String,
}

impl Options {
    /// Reads the command line. With `--help` it prints the help on rank 0 and exits. Call it before `oflow::init`: a rank that
    /// exits after `init` without leaving the job counts as lost.
    pub fn from_args(usage: impl Into<String>) -> Options {
        let usage = usage.into();
        let rest: Vec<String> = std::env::args().skip(1).collect();
        if rest.iter().any(|a| a == "--help" || a == "-h") {
            if std::env::var("RANK").is_ok_and(|r| r != "0") {
                std::process::exit(0);
            }
            println!("{usage}");
            std::process::exit(0);
        }
        Options { rest, usage }
    }
    /// The value of an option, if given.
    pub fn get<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(at) = self.rest.iter().position(|a| a == name) else { return Ok(None) };
        if at + 1 >= self.rest.len() {
            return Err(Error::argument(format!("{name} needs a value")).help(self.usage.clone()));
        }
        let value = self.rest.remove(at + 1);
        self.rest.remove(at);
        match value.parse() {
            Ok(v) => Ok(Some(v)),
            Err(e) => Err(Error::argument(format!("{name} {value}: {e}")).help(self.usage.clone())),
        }
    }
    /// The value of an option, or a default.
    pub fn or<T: FromStr<Err: Display>>(&mut self, name: &str, default: T) -> Result<T> {
        Ok(self.get(name)?.unwrap_or(default))
    }
    /// A number of at least 1.
    pub fn count(&mut self, name: &str, default: usize) -> Result<usize> {
        match self.or(name, default)? {
            0 => Err(Error::argument(format!("{name} must be at least 1")).help(self.usage.clone())),
            n => Ok(n),
        }
    }
    /// Whether a flag is given.
    pub fn flag(&mut self, name: &str) -> bool {
        let at = self.rest.iter().position(|a| a == name);
        at.map(|i| self.rest.remove(i)).is_some()
    }
    /// `--dtype`: f32 or f64.
    pub fn dtype(&mut self) -> Result<DType> {
        match self.or("--dtype", "f32".to_string())?.as_str() {
            "f32" => Ok(DType::F32),
            "f64" => Ok(DType::F64),
            other => Err(Error::argument(format!("--dtype {other}: f32 or f64")).help(self.usage.clone())),
        }
    }
    /// `--device`: cpu or cuda.
    ///
    /// # Errors
    /// If there is no usable GPU for cuda; the message says what is missing.
    pub fn device(&mut self, default: Device) -> Result<Device> {
        let device = self.or("--device", default)?;
        match oflow::memory_stats(device) {
            Ok(_) => Ok(device),
            Err(e) if device == Device::Cuda => Err(Error::unsupported(format!("--device cuda: {}", e.message()))
                .help("`oflow doctor` says what was found and what is missing; --device cpu runs without a GPU")),
            Err(e) => Err(e),
        }
    }
    /// `--autocast`: bf16, f16 or off.
    pub fn autocast(&mut self) -> Result<Autocast> {
        self.or("--autocast", Autocast::Off)
    }
    /// Fails if an option is left that nothing has read.
    pub fn done(self) -> Result<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(a) => Err(Error::argument(format!("unknown option '{a}'")).help(self.usage.clone())),
        }
    }
}
