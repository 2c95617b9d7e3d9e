//! A rank of the bench `boxings`: `boxings.rs P|S LATE_US BYTES:TIMES...` prints for each size a line `BYTES ns ns ...`, the time of each
//! boxing to B, and from 1 MiB on a line `copy BYTES ns ...`, the time of a copy of as many bytes on all ranks at once.

use oflow::prelude::*;
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let world = oflow::init()?;
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (from, late) = (if word() == "P" { sbp![P] } else { sbp![S(0)] }, word().parse().unwrap_or(0));
    let teller = if late > 0 { world.size() - 1 } else { 0 };
    let mesh = Placement::all(Device::Cpu)?;
    let _quiet = no_grad();
    for size in words {
        let (bytes, times) = size.split_once(':').unwrap_or_default();
        let (bytes, times): (usize, usize) = (bytes.parse().unwrap_or(0), times.parse().unwrap_or(0));
        let x = ones([bytes / 4], (&mesh, &from))?;
        let mut took = Vec::with_capacity(times);
        for i in 0..times + 3 {
            if late > 0 && world.rank() == teller {
                let end = Instant::now() + Duration::from_micros(late);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            let start = Instant::now();
            let y = x.to_global(&sbp![B])?;
            oflow::synchronize(Device::Cpu)?;
            let ns = start.elapsed().as_nanos();
            drop(y);
            if i >= 3 {
                took.push(ns);
            }
        }
        let tell = |name: &str, ns: &[u128]| {
            if world.rank() == teller {
                let ns: Vec<String> = ns.iter().map(u128::to_string).collect();
                println!("{name}{bytes} {}", ns.join(" "));
            }
        };
        tell("", &took);
        if bytes >= 1 << 20 {
            let (from, mut to) = (vec![1u8; bytes], vec![2u8; bytes]);
            let mut copies = vec![];
            for _ in 0..times.min(10) {
                world.barrier()?;
                let start = Instant::now();
                std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
                copies.push(start.elapsed().as_nanos());
            }
            tell("copy ", &copies);
        }
    }
    Ok(())
}
