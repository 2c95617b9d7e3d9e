//! Writes through views, local and global, and what shares memory with what.

use oflow::functional::call;
use oflow::prelude::*;
use oflow_tests::world;

fn vec3() -> Tensor {
    from_vec(vec![1.0f64, 2.0, 3.0], [3], Device::Cpu).unwrap()
}

#[test]
fn a_write_through_a_view_is_recorded_on_its_base() -> Result<()> {
    let w = vec3().requires_grad_(true)?;
    let a = w.mul(1.0)?;
    let v = a.slice(0, 0, 1, 1)?;
    v.mul_(3.0)?;
    a.sum(())?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [3.0, 1.0, 1.0]);
    // A view that is read after its base was written has the base's gradient.
    let w = vec3().requires_grad_(true)?;
    let a = w.mul(1.0)?;
    let v = a.slice(0, 0, 2, 1)?;
    a.mul_(2.0)?;
    v.sum(())?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [2.0, 2.0, 0.0]);
    // Nothing of the base required a gradient until something was written into a view of it.
    let (w, a) = (vec3().requires_grad_(true)?, zeros([2, 3], Device::Cpu.dtype(DType::F64))?);
    let other = a.t()?;
    a.select(0, 1)?.copy_(&w)?;
    other.mul(&other)?.sum(())?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [2.0, 4.0, 6.0]);
    Ok(())
}

#[test]
fn a_leaf_is_not_written_under_grad_mode_by_any_way() -> Result<()> {
    let leaf = vec3().requires_grad_(true)?;
    let row = leaf.reshape([1, 3])?.select(0, 0)?;
    let one = vec3();
    for e in [
        leaf.mul_(2.0).unwrap_err(),
        leaf.copy_(&one).unwrap_err(),
        row.mul_(2.0).unwrap_err(),
        row.copy_(&one).unwrap_err(),
        call("assign", &[(&leaf).into(), (&one).into()], &[]).unwrap_err(),
        call("assign", &[(&row).into(), (&one).into()], &[]).unwrap_err(),
    ] {
        assert!(e.to_string().contains("leaf") && e.to_string().contains("no_grad()"), "{e}");
        assert!(e.to_string().contains("faults.rs"), "{e}");
    }
    assert_eq!(leaf.to_vec::<f64>()?, [1.0, 2.0, 3.0]);
    let _quiet = no_grad();
    row.mul_(2.0)?;
    assert_eq!(leaf.to_vec::<f64>()?, [2.0, 4.0, 6.0]);
    Ok(())
}

#[test]
fn what_overlaps_itself_is_not_written() -> Result<()> {
    let x = ones([1], Device::Cpu)?;
    let wide = x.expand([8])?;
    let y = ones([8], Device::Cpu)?;
    for e in [
        wide.add_(1.0).unwrap_err(),
        wide.copy_(&y).unwrap_err(),
        wide.reshape([2, 4])?.slice(1, 0, 2, 1)?.add_(1.0).err().unwrap_or_else(|| wide.zero_().unwrap_err()),
        call("assign", &[(&wide).into(), (&y).into()], &[]).unwrap_err(),
    ] {
        assert!(e.to_string().contains("more than one element") && e.to_string().contains("copy()"), "{e}");
    }
    assert_eq!(x.to_vec::<f32>()?, [1.0]);
    Ok(())
}

#[test]
fn i15_a_write_through_a_view_of_a_global_tensor_is_refused() {
    world(3, |_, mesh| {
        let one = Placement::new(Device::Cpu, &[0, 2], &[2])?;
        for mesh in [mesh.clone(), one] {
            let w = ones([4, 3], (&mesh, sbp![S(0)]))?;
            let part = ones([2, 3], (&mesh, sbp![S(0)]))?;
            for e in [
                w.narrow(0, 1, 2)?.copy_(&part).unwrap_err(),
                w.detach().mul_(2.0).unwrap_err(),
                w.t()?.add_(1.0).unwrap_err(),
                w.reshape([12])?.zero_().unwrap_err(),
                call("assign", &[(&w.narrow(0, 1, 2)?).into(), (&part).into()], &[]).unwrap_err(),
            ] {
                let text = e.to_string();
                assert!(text.contains("clone()") && text.contains("assign") && text.contains("faults.rs"), "{e}");
            }
            w.detach().copy()?.mul_(2.0)?;
            w.mul_(3.0)?;
            assert_eq!(w.to_vec::<f32>()?, [3.0; 12]);
        }
        Ok(())
    });
}

#[test]
fn a_shard_that_was_taken_out_is_read_only() {
    world(2, |w, mesh| {
        let x = ones([2], (&mesh, sbp![B]))?;
        let local = x.to_local()?;
        if w.rank() == 0 {
            for e in [
                local.add_(1.0).unwrap_err(),
                local.detach().add_(1.0).unwrap_err(),
                local.reshape([1, 2])?.select(0, 0)?.copy_(&ones([2], Device::Cpu)?).unwrap_err(),
            ] {
                assert!(e.to_string().contains("write_shard") && e.to_string().contains("copy()"), "{e}");
            }
        }
        assert_eq!(x.to_vec::<f32>()?, [1.0; 2]);
        // The other way round: what was made global keeps its value when the local tensor is written.
        let mine = full([2], w.rank() as f64, Device::Cpu)?;
        let g = mine.to_global((&mesh, sbp![S(0)]))?;
        mine.add_(10.0)?;
        assert_eq!(g.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0]);
        Ok(())
    });
}
