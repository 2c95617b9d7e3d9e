//! The programs of `examples/seeds` run, and what they declare conforms. They compare with PyTorch's numbers themselves.

#[path = "../examples/seeds/add_sub.rs"]
mod add_sub;
#[path = "common/cpp.rs"]
mod cpp;
#[path = "../examples/seeds/leaky_relu.rs"]
mod leaky_relu;
#[path = "../examples/seeds/matmul_scale.rs"]
mod matmul_scale;
#[path = "../examples/seeds/params.rs"]
mod params;

use cpp::cpp;
use oflow::prelude::*;

fn conforms(names: &[&str]) -> Result<()> {
    names.iter().try_for_each(|name| oflow::testing::conformance(oflow::ops::find(name)?).map(|r| println!("{r}")))
}

#[test]
fn oneflows_user_op() {
    leaky_relu::main().and_then(|()| conforms(&["user.leaky_relu", "user.leaky_relu_grad"])).unwrap();
}

#[test]
fn oneflows_functions() {
    add_sub::main().unwrap();
}

#[test]
fn megengines_op() {
    if !cpp() {
        return;
    }
    matmul_scale::main().unwrap();
}

#[test]
fn popxls_parameters() {
    params::main().and_then(|()| conforms(&["popxl.leaky_relu", "popxl.leaky_relu_grad"])).unwrap();
}
