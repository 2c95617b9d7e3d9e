//! Times single ops on one thread, or on `BENCH_THREADS`, beside PyTorch's where there is one:
//! `PYTHON=path/to/python cargo bench --bench ops [-- FILTER]`.
//!
//! Each case is a forward call, then a forward call with the gradients of all inputs. Ours and PyTorch's
//! (`benches/peers/ops_torch.py`, a process of its own) are measured in turns. Printed is the median, over the turns, of
//! the median processor time of a call, which includes dispatch and the memory of results.

mod peers;

use oflow::DType;
use oflow::functional::InterpolateOptions;
use oflow::prelude::*;
use peers::calls::{Case, case, run};

fn of(dtype: DType, case: Case) -> Case {
    Case { dtype, ..case }
}

fn cases() -> Result<Vec<Case>> {
    let (square, tall, small) = (&[1024, 1024][..], &[4096, 1024][..], &[16, 4, 128, 64][..]);
    let (heads, cube, side) = (&[8, 8, 512, 64][..], &[32, 64, 64][..], &[256, 256][..]);
    let product = |x: &[Tensor]| x[0].matmul(&x[1]);
    let attention = |x: &[Tensor]| x[0].attention(&x[1], &x[2], true);
    let ids = randint(0, 50_000, [64, 512], Device::Cpu)?;
    let back = arange(4096, Device::Cpu)?.rsub(4095)?;
    let reversed = arange(1024, Device::Cpu)?.rsub(1023)?.expand([4096, 1024])?;
    let spread = randint(0, 64, [4096, 1024], Device::Cpu)?;
    let turns = arange(4096, Device::Cpu)?.remainder(64)?;
    let images = &[16, 64, 56, 56][..];
    let conv = |stride: i64, padding: i64, groups: i64| {
        move |x: &[Tensor]| x[0].conv2d(&x[1], None, stride, padding, 1, groups)
    };
    Ok(vec![
        case("gelu exact [1024,1024]", &[square], |x| x[0].gelu()),
        case("exp of a transposed [1024,1024]", &[square], |x| x[0].t()?.exp()),
        case("add of a transposed [1024,1024]", &[square, square], |x| x[0].add(&x[1].t()?)),
        case("copy [16,128,4,64] as [16,4,128,64]", &[&[16, 128, 4, 64]], |x| x[0].transpose(1, 2)?.copy()),
        case("copy of a transposed [1024,1024]", &[square], |x| x[0].t()?.copy()),
        case("amax dim 0 [4096,1024]", &[tall], |x| x[0].amax([0])),
        case("amax dim 0 [1024,1024]", &[square], |x| x[0].amax([0])),
        case("sum dim 0 [4096,1024]", &[tall], |x| x[0].sum([0])),
        case("sum dim 0 [1024,1024]", &[square], |x| x[0].sum([0])),
        case("sum dim 1 [1024,1024]", &[square], |x| x[0].sum([1])),
        case("amax dim 1 [4096,1024]", &[tall], |x| x[0].amax([1])),
        case("var dim 1 [4096,1024]", &[tall], |x| x[0].var([1])),
        case("softmax [4096,1024]", &[tall], |x| x[0].softmax(-1)),
        case("cumsum dim 1 [4096,1024]", &[tall], |x| x[0].cumsum(1)),
        case("index_select rows [4096,1024]", &[tall], {
            let back = back.clone();
            move |x| x[0].index_select(0, &back)
        }),
        case("gather dim 1 [4096,1024]", &[tall], move |x| x[0].gather(1, &reversed)),
        case("scatter_add dim 1 [4096,1024]", &[tall], {
            let ids = spread.clone();
            move |x| zeros([4096, 64], Device::Cpu)?.scatter_add(1, &ids, &x[0])
        }),
        case("scatter dim 1 [4096,1024]", &[tall], move |x| zeros([4096, 64], Device::Cpu)?.scatter(1, &spread, &x[0])),
        case("index_add dim 0 [4096,1024]", &[tall], move |x| {
            zeros([64, 1024], Device::Cpu)?.index_add(0, &turns, &x[0])
        }),
        case("topk 8 of 1024 [4096,1024]", &[tall], |x| Ok(x[0].topk(8, -1, true, true)?.swap_remove(0))),
        case("sort [1024,1024]", &[square], |x| Ok(x[0].sort(-1, false)?.swap_remove(0))),
        case("cumprod dim 1 [4096,1024]", &[tall], |x| x[0].cumprod(1)),
        case("cummax dim 1 [4096,1024]", &[tall], |x| Ok(x[0].cummax(1)?.swap_remove(0))),
        case("embedding 50k x 128, 32k ids", &[&[50_000, 128]], move |x| x[0].embedding(&ids)),
        case("conv2d 3x3 64->64 [16,64,56,56]", &[images, &[64, 64, 3, 3]], conv(1, 1, 1)),
        case("conv2d 1x1 64->256 [16,64,56,56]", &[images, &[256, 64, 1, 1]], conv(1, 0, 1)),
        case("conv2d 7x7 stride 2 3->64 [16,3,224,224]", &[&[16, 3, 224, 224], &[64, 3, 7, 7]], conv(2, 3, 1)),
        case("conv2d 3x3 512->512 [16,512,7,7]", &[&[16, 512, 7, 7], &[512, 512, 3, 3]], conv(1, 1, 1)),
        case("conv2d depthwise 3x3 [16,64,56,56]", &[images, &[64, 1, 3, 3]], conv(1, 1, 64)),
        case("conv1d 3 128->128 [16,128,512]", &[&[16, 128, 512], &[128, 128, 3]], |x| {
            x[0].conv1d(&x[1], None, 1, 1, 1, 1)
        }),
        case("conv_transpose2d 4x4 stride 2 64->32 [16,64,28,28]", &[&[16, 64, 28, 28], &[64, 32, 4, 4]], |x| {
            x[0].conv_transpose2d(&x[1], None, 2, 1, 0, 1, 1)
        }),
        case("max_pool2d 2 [16,64,56,56]", &[images], |x| x[0].max_pool2d(2, 2, 0, 1, false)),
        case("max_pool2d 3 stride 2 [16,64,56,56]", &[images], |x| x[0].max_pool2d(3, 2, 1, 1, false)),
        case("avg_pool2d 2 [16,64,56,56]", &[images], |x| x[0].avg_pool2d(2, 2, 0, false, true, None)),
        case("batch_norm train [16,64,56,56]", &[images, &[64], &[64]], |x| {
            x[0].batch_norm(None, None, Some(&x[1]), Some(&x[2]), true, 0.1, 1e-5)
        }),
        case("group_norm 8 [16,64,56,56]", &[images, &[64], &[64]], |x| {
            x[0].group_norm(8, Some(&x[1]), Some(&x[2]), 1e-5)
        }),
        case("layer_norm [4096,1024]", &[tall, &[1024], &[1024]], |x| x[0].layer_norm(Some(&x[1]), Some(&x[2]), 1e-5)),
        case("interpolate bilinear x2 [16,64,28,28]", &[&[16, 64, 28, 28]], |x| {
            let options = InterpolateOptions { scale_factor: vec![2.0], mode: "bilinear", ..Default::default() };
            x[0].interpolate_with(&[][..] as &[i64], &options)
        }),
        case("bij,bjk,bkl [32,64,64]", &[cube, cube, cube], |x| einsum("bij,bjk,bkl->bil", x)),
        case("matmul [1024,1024]x[1024,1024]", &[square, square], product),
        case("matmul skinny [1024,1024]x[1024,8]", &[square, &[1024, 8]], product),
        case("matmul skinny [8,1024]x[1024,1024]", &[&[8, 1024], square], product),
        of(DType::BF16, case("matmul bf16 [1024,1024]x[1024,1024]", &[square, square], product)),
        of(DType::BF16, case("matmul bf16 [256,256]x[256,256]", &[side, side], product)),
        of(DType::F64, case("matmul f64 [512,512]x[512,512]", &[&[512, 512], &[512, 512]], product)),
        case("attention causal [8,8,512,64]", &[heads, heads, heads], attention),
        case("attention causal [16,4,128,64]", &[small, small, small], attention),
    ])
}

fn main() -> Result<()> {
    run(&cases()?)
}
