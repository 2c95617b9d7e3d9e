//! The programs of `examples/seeds` run, and what they declare conforms. They compare with PyTorch's numbers themselves.

#[path = "../../examples/seeds/add_sub.rs"]
mod add_sub;
#[path = "../../examples/seeds/leaky_relu.rs"]
mod leaky_relu;
#[path = "../../examples/seeds/matmul_scale.rs"]
mod matmul_scale;
#[path = "../../examples/seeds/params.rs"]
mod params;

use oflow::prelude::*;
use oflow_tests::cpp::cpp;

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
    // It finds its sources from the root of the repository; all other tests here name files by their whole paths.
    std::env::set_current_dir(super::root()).unwrap();
    matmul_scale::main().unwrap();
}

#[test]
fn popxls_parameters() {
    params::main().and_then(|()| conforms(&["popxl.leaky_relu", "popxl.leaky_relu_grad"])).unwrap();
}
