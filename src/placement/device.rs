//! Kinds of devices, by name.
//!
//! A table of names only: what a device is and does, its backend says.

use crate::error::{Error, Result};
use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

/// A kind of device. Each rank drives one device of its kind. The set is open: a backend of another crate adds its own with
/// `oflow::backend::register`.
///
/// ```
/// use oflow::placement::Device;
/// assert_eq!("cuda".parse::<Device>()?, Device::Cuda);
/// assert_eq!(Device::Cpu.to_string(), "cpu");
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device(u16);

/// Names in order of their numbers.
static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());
const BUILT_IN: [&str; 3] = ["cpu", "cuda", "async"];

// Written and matched like the variants of an enum.
#[allow(non_upper_case_globals)]
impl Device {
    /// The CPUs of the host.
    pub const Cpu: Device = Device(0);
    /// An NVIDIA GPU, through CUDA.
    pub const Cuda: Device = Device(1);
    /// Host memory driven through streams that are threads with random delays, and poisoned on free: proves the waits
    /// of the vm without a GPU. For tests.
    pub const Async: Device = Device(2);
}

impl Device {
    /// Adds a kind of device.
    ///
    /// # Errors
    /// The name is taken, or no name: letters, digits and `_`, a letter first.
    pub(crate) fn add(name: &str) -> Result<Device> {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !letters || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(Error::argument(format!("'{name}' cannot be the name of a device"))
                .help("use letters, digits and '_', a letter first"));
        }
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        if BUILT_IN.iter().chain(names.iter()).any(|n| *n == name) || name == "gpu" {
            return Err(Error::registry(format!("there is a device named '{name}' already"))
                .help("choose another name; a device is never replaced"));
        }
        let number = u16::try_from(BUILT_IN.len() + names.len()).map_err(|_| {
            Error::registry(format!("all numbers of devices are in use: the device '{name}' cannot be added"))
        })?;
        names.push(Box::leak(name.into()));
        Ok(Device(number))
    }

    /// Returns the number of the device in this process. Ranks may number registered devices differently; they compare names.
    pub fn number(self) -> u16 {
        self.0
    }

    /// A hash of the name: the same on every rank.
    pub fn key(self) -> u64 {
        let mut h = crate::intern::FixedHasher::default();
        h.write(self.name().as_bytes());
        h.finish()
    }

    /// Name of the device's kind, as in texts: `cpu`.
    pub fn name(self) -> &'static str {
        let at = usize::from(self.0);
        BUILT_IN.get(at).copied().unwrap_or_else(|| {
            // Only `add` makes numbers beyond the built-in ones.
            NAMES.read().unwrap_or_else(PoisonError::into_inner)[at - BUILT_IN.len()]
        })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Device {
    type Err = Error;
    fn from_str(s: &str) -> Result<Device> {
        let name = if s == "gpu" { "cuda" } else { s };
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        let all = || BUILT_IN.iter().chain(names.iter());
        if let Some(number) = all().position(|n| *n == name) {
            // There are no more names than numbers.
            return Ok(Device(number as u16));
        }
        // The test device is for tests of oflow itself.
        let known: Vec<&str> = all().copied().filter(|n| *n != "async").collect();
        Err(Error::parse(format!("unknown device '{s}'; known: {}", known.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_and_a_second_of_a_name_is_refused() {
        let npu = Device::add("npu0").unwrap();
        assert_eq!((npu.to_string().as_str(), "npu0".parse::<Device>().unwrap()), ("npu0", npu));
        for d in [Device::Cpu, Device::Cuda, Device::Async] {
            assert_ne!(npu, d);
            assert_eq!(d.name().parse::<Device>().unwrap(), d);
        }
        for taken in ["npu0", "cpu", "gpu", "async"] {
            let e = Device::add(taken).unwrap_err().to_string();
            assert!(e.contains(&format!("there is a device named '{taken}' already")), "{e}");
        }
        for bad in ["", "0", "a b", "a[2]"] {
            assert!(Device::add(bad).unwrap_err().to_string().contains("cannot be the name of a device"));
        }
        let e = "tpu".parse::<Device>().unwrap_err().to_string();
        assert!(e.contains("unknown device 'tpu'; known: cpu, cuda, npu0"), "{e}");
    }
}
