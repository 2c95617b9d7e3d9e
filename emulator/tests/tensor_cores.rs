//! mma.sync and ldmatrix against a plain product. What is used is only the text of the PTX ISA: the fragments are filled
//! and read by its own formulas (matrix fragments for mma.m16n8k16), written here for single elements and by lane and
//! register, not as the emulator has them.

mod common;
use common::*;
use half::{bf16, f16};

/// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", A: for element ai of lane,
/// row = groupID for ai where 0 <= i < 2 || 4 <= i < 6, else groupID + 8;
/// col = threadID_in_group * 2 + (i & 1) for ai where i < 4, else + 8.
fn place_a(lane: usize, i: usize) -> (usize, usize) {
    let (group, within) = (lane >> 2, lane % 4);
    let row = if (0..2).contains(&i) || (4..6).contains(&i) { group } else { group + 8 };
    (row, within * 2 + (i & 1) + if i < 4 { 0 } else { 8 })
}
/// B: row = threadID_in_group * 2 + (i & 1) for i < 2, else + 8; col = groupID.
fn place_b(lane: usize, i: usize) -> (usize, usize) {
    (lane % 4 * 2 + (i & 1) + if i < 2 { 0 } else { 8 }, lane >> 2)
}
/// C and D: row = groupID for i < 2, groupID + 8 otherwise; col = threadID_in_group * 2 + (i & 1).
fn place_c(lane: usize, i: usize) -> (usize, usize) {
    (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))
}

fn product_through(instruction: &str, bits: impl Fn(f32) -> u16) {
    let source = format!(
        r#"extern "C" __global__ void f(float* d, const unsigned* a, const unsigned* b, const float* c) {{
            int lane = threadIdx.x;
            {instruction}(d + 4 * lane, a + 4 * lane, b + 2 * lane, c + 4 * lane);
        }}"#
    );
    let a = |i: usize, k: usize| ((i * 31 + k * 7) % 17) as f32 - 8.0;
    let b = |k: usize, j: usize| ((k * 5 + j * 11) % 13) as f32 - 6.0;
    let c = |i: usize, j: usize| (i * 8 + j) as f32 * 0.5;
    let pack = |count: usize, at: &dyn Fn(usize, usize) -> f32| -> Vec<u16> {
        (0..32).flat_map(|lane| (0..count).map(move |i| (lane, i))).map(|(lane, i)| bits(at(lane, i))).collect()
    };
    let fragments_a = pack(8, &|lane, i| {
        let (row, col) = place_a(lane, i);
        a(row, col)
    });
    let fragments_b = pack(4, &|lane, i| {
        let (row, col) = place_b(lane, i);
        b(row, col)
    });
    let fragments_c: Vec<f32> = (0..128)
        .map(|at| {
            let (row, col) = place_c(at / 4, at % 4);
            c(row, col)
        })
        .collect();
    let (mut d, mut fa, mut fb, mut fc) =
        (alloc(512), upload(&fragments_a), upload(&fragments_b), upload(&fragments_c));
    let mut params = [arg(&mut d), arg(&mut fa), arg(&mut fb), arg(&mut fc)];
    assert_eq!(launch(kernel(&source, "f"), 1, 32, 0, std::ptr::null_mut(), &mut params), OK);
    for (at, &got) in download::<f32>(d, 128).iter().enumerate() {
        let (row, col) = place_c(at / 4, at % 4);
        let want: f32 = (0..16).map(|k| a(row, k) * b(k, col)).sum::<f32>() + c(row, col);
        assert_eq!(got, want, "{instruction} row {row} column {col}");
    }
}

#[test]
fn mma_is_a_product() {
    if !emulated() {
        return;
    }
    enter(0);
    product_through("of_emu_mma_m16n8k16_f32_bf16", |x| bf16::from_f32(x).to_bits());
    product_through("of_emu_mma_m16n8k16_f32_f16", |x| f16::from_f32(x).to_bits());
}

/// ldmatrix: "each thread loads a fragment of a row: thread 4 r + c has elements 2 c and 2 c + 1 of row r"; with .trans
/// the matrix is loaded in column-major format. The addresses of rows of matrix m come from threads 8 m to 8 m + 7.
#[test]
fn ldmatrix_spreads_rows_over_lanes() {
    if !emulated() {
        return;
    }
    enter(0);
    for count in [1usize, 2, 4] {
        for trans in [false, true] {
            let name = format!("of_emu_ldmatrix_x{count}{}", if trans { "_trans" } else { "" });
            let source = format!(
                r#"extern "C" __global__ void f(unsigned* out) {{
                    __shared__ __align__(16) unsigned short room[32][24];
                    for (int j = 0; j < 24; j++) room[threadIdx.x][j] = threadIdx.x * 100 + j;
                    __syncthreads();
                    // The matrices lie from column 8 on, their rows from the last to the first.
                    {name}(out + {count} * threadIdx.x, &room[31 - threadIdx.x][8]);
                }}"#
            );
            let mut out = alloc(4 * 32 * count);
            assert_eq!(launch(kernel(&source, "f"), 1, 32, 0, std::ptr::null_mut(), &mut [arg(&mut out)]), OK);
            let element = |m: usize, r: usize, c: usize| ((31 - (8 * m + r)) * 100 + 8 + c) as u32;
            for (at, &got) in download::<u32>(out, 32 * count).iter().enumerate() {
                let (lane, m) = (at / count, at % count);
                let (r, c) = (lane / 4, lane % 4 * 2);
                let pair = if trans {
                    [element(m, c, r), element(m, c + 1, r)]
                } else {
                    [element(m, r, c), element(m, r, c + 1)]
                };
                assert_eq!(got, pair[0] | pair[1] << 16, "{name} lane {lane} matrix {m}");
            }
        }
    }
}

#[test]
fn a_tile_through_shared_memory_ldmatrix_and_mma_is_a_product() {
    if !emulated() {
        return;
    }
    enter(0);
    // A 16 x 16 row-major, B 16 x 8 row-major (so .trans), as a kernel would do it.
    let source = r#"
        extern "C" __global__ void f(float* d, const unsigned short* a, const unsigned short* b) {
            __shared__ __align__(16) unsigned short sa[16][16], sb[16][8];
            int lane = threadIdx.x;
            of_emu_copy16(&sa[lane / 2][lane % 2 * 8], a + lane * 8, true);
            if (lane < 16) of_emu_copy16(&sb[lane][0], b + lane * 8, true);
            __syncthreads();
            unsigned fa[4], fb[2];
            float sum[4] = {0, 0, 0, 0};
            of_emu_ldmatrix_x4(fa, &sa[lane % 16][lane / 16 * 8]);
            of_emu_ldmatrix_x2_trans(fb, &sb[lane % 16][0]);
            of_emu_mma_m16n8k16_f32_bf16(sum, fa, fb, sum);
            for (int i = 0; i < 4; i++) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
        }"#;
    let a: Vec<f32> = (0..256).map(|i| ((i * 37) % 19) as f32 - 9.0).collect();
    let b: Vec<f32> = (0..128).map(|i| ((i * 23) % 15) as f32 - 7.0).collect();
    let bits = |v: &[f32]| v.iter().map(|&x| bf16::from_f32(x).to_bits()).collect::<Vec<u16>>();
    let (mut d, mut da, mut db) = (alloc(512), upload(&bits(&a)), upload(&bits(&b)));
    let mut params = [arg(&mut d), arg(&mut da), arg(&mut db)];
    assert_eq!(launch(kernel(source, "f"), 1, 32, 0, std::ptr::null_mut(), &mut params), OK);
    let want: Vec<f32> = (0..128).map(|at| (0..16).map(|k| a[at / 8 * 16 + k] * b[k * 8 + at % 8]).sum()).collect();
    assert_eq!(download::<f32>(d, 128), want);
}
