use oflow::prelude::*;

fn main() -> Result<()> {
    let world = oflow::init()?; // rank and world from oflaunch; alone: world of 1
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
    let x = randn([1024, 512], (&mesh, sbp![S(0), B]))?; // a global tensor; `randn(shape, Device::Cpu)` is a local one
    let w = randn([512, 256], (&mesh, sbp![B, S(1)]))?;
    let y = x.matmul(&w)?.relu()?; // inferred: [S(0), S(1)]
    println!("{:?}", y); // f32[1024, 256] [S(0), S(1)] on cpu[dp=2, tp=2]
    drop(world);
    Ok(())
}
