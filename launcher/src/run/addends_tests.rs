use super::*;
use crate::run::numbers::rounded;
use oflow::kernels::cpu::accumulate::reduce_slices;
use oflow::placement::Device;

/// Numbers of a dtype that are hard to add up: ends of the range, subnormals, few and many digits.
fn hard_floats(dtype: Builtin, random: &mut Random) -> Vec<f64> {
    let f = format_of(dtype);
    let mut all =
        vec![0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 1e-3, f.largest, -f.largest, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    all.extend([
        power(f.lowest),
        -3.0 * power(f.lowest),
        power(exponent(f.largest)),
        f.largest / 2.0,
        2.0 - power(1 - f.digits),
    ]);
    for _ in 0..400 {
        let e = f.lowest + random.below((exponent(f.largest) - f.lowest) as u128) as i32;
        let digits = 1 + random.below(f.digits as u128) as i32;
        let m = random.below(1 << digits) as f64;
        let x = times_power(m, (e - digits).max(f.lowest));
        all.push(if random.bits() & 1 == 0 { x } else { -x });
    }
    all.into_iter()
        .map(|x| rounded(dtype, x).clamp(-f.largest, f.largest))
        .chain([f64::INFINITY, f64::NEG_INFINITY])
        .collect()
}

fn hard_ints(dtype: Builtin, random: &mut Random) -> Vec<i64> {
    let (low, high) = range_of(dtype);
    let mut all = vec![low, high, 0, low + 1, high - 1, 1];
    all.extend((0..400).map(|_| low + random.below((high - low + 1) as u128) as i128));
    all.into_iter().map(|x| x as i64).collect()
}

fn hard(dtype: Builtin, random: &mut Random) -> Numbers {
    match dtype.is_float() {
        true => Numbers::Floats(dtype, hard_floats(dtype, random)),
        false => Numbers::Ints(dtype, hard_ints(dtype, random)),
    }
}

fn reduced(dtype: Builtin, op: ReduceOp, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0; parts[0].len()];
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    reduce_slices(&mut out, &parts, dtype.dtype(), op).unwrap();
    out
}

/// Bit for bit, also under oflow's own reduction, for each dtype, reduction, number of members and size of addends. And sums
/// have these bits in every order.
#[test]
fn members_reduce_to_the_tensor_bit_for_bit() {
    let mut random = Random::new(3, "members");
    let (mut checked, mut split_elements, mut can) = (0, 0usize, 0usize);
    for dtype in Builtin::ALL.into_iter().filter(|d| d.dtype().is_real()) {
        for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
            if dtype == Builtin::Bool && op == ReduceOp::Sum {
                continue;
            }
            for members in [1, 2, 3, 4, 7] {
                for how in [Addends::Like, Addends::Large] {
                    let whole = hard(dtype, &mut random);
                    let parts = split(&whole, op, members, how, &mut random);
                    assert_eq!(parts.len(), members);
                    let mut bytes: Vec<Vec<u8>> = parts.iter().map(Numbers::to_bytes).collect();
                    let want = whole.to_bytes();
                    assert!(reduced(dtype, op, &bytes) == want, "{dtype} {op} of {members}, {how:?}");
                    bytes.reverse();
                    assert!(reduced(dtype, op, &bytes) == want, "{dtype} {op} of {members} in falling order, {how:?}");
                    bytes.rotate_left(members / 2);
                    assert!(reduced(dtype, op, &bytes) == want, "{dtype} {op} of {members} rotated, {how:?}");
                    checked += whole.len();
                    if let (Numbers::Floats(_, v), ReduceOp::Sum, 2..) = (&whole, op, members) {
                        let numbers = |p: &Numbers| match p {
                            Numbers::Floats(_, v) => v.clone(),
                            Numbers::Ints(..) => vec![],
                        };
                        let parts: Vec<Vec<f64>> = parts.iter().map(numbers).collect();
                        for (i, v) in v.iter().enumerate() {
                            // Trivial is: one member has the element, the others zero.
                            let of: Vec<f64> = parts.iter().map(|p| p[i]).collect();
                            let trivial = of.iter().filter(|x| **x != 0.0).count() <= 1;
                            let must_be = v.is_finite() && (*v != 0.0 || v.is_sign_positive());
                            can += usize::from(must_be);
                            split_elements += usize::from(must_be && !trivial);
                        }
                    }
                }
            }
        }
    }
    println!("{checked} elements; {split_elements} of {can} finite float elements are sums of several addends");
    // Where an element is the smallest number there is, or random cuts leave one addend, nothing else can be.
    assert!(split_elements * 100 > can * 97, "{split_elements} of {can}");
}

/// Addends as large as this file says.
#[test]
fn addends_are_as_large_as_asked_for() {
    let mut random = Random::new(9, "large");
    let largest = |how: Addends, v: f64, random: &mut Random| {
        let whole = Numbers::Floats(Builtin::F32, vec![v]);
        let all = (0..50).flat_map(|_| split(&whole, ReduceOp::Sum, 2, how, random)).collect::<Vec<_>>();
        let size = |p: &Numbers| match p {
            Numbers::Floats(_, v) => v[0].abs(),
            Numbers::Ints(..) => 0.0,
        };
        all.iter().map(size).fold(0.0, f64::max)
    };
    assert!(largest(Addends::Large, 1.0, &mut random) > 8e6);
    assert!(largest(Addends::Like, 1.0, &mut random) <= 2.0);
    assert!(largest(Addends::Large, 0.0, &mut random) > 1e37);
    assert!(largest(Addends::Like, 0.0, &mut random) <= 2.0);
}

/// Shards of every layout of two axes, put together again by hand: parts along the partial axes are reduced, inner axis first.
#[test]
fn shards_are_the_boxes_of_members() {
    let (mut random, shape) = (Random::new(5, "shards"), [5, 3]);
    let mesh = Placement::new(Device::Cpu, &[0, 1, 2, 3, 4, 5], &[2, 3]).unwrap();
    let words = ["S(0)", "S(1)", "B", "P", "P(max)", "P(min)"];
    for dtype in [Builtin::F32, Builtin::BF16, Builtin::I64, Builtin::U8] {
        for (outer, inner) in words.iter().flat_map(|a| words.iter().map(move |b| (a, b))) {
            let sbp: NdSbp = format!("[{outer}, {inner}]").parse().unwrap();
            let whole = hard(dtype, &mut random).cut(&[400], &[0], &[15]);
            let made = shards(&whole, &shape, &mesh, &sbp, Addends::Like, &mut random);
            let place = |a: usize, b: usize| &made[a * 3 + b];
            for (a, b) in (0..2).flat_map(|a| (0..3).map(move |b| (a, b))) {
                let shard = shard_box(&shape, &mesh, &sbp, a * 3 + b);
                assert_eq!(place(a, b).0, shard.size.to_vec());
                let along = |axis: usize, at: usize| {
                    sbp[axis].partial_op().map_or(vec![at], |_| (0..mesh.dims()[axis]).collect())
                };
                let outer_parts: Vec<Vec<u8>> = along(0, a)
                    .into_iter()
                    .map(|a| {
                        let parts: Vec<Vec<u8>> = along(1, b).into_iter().map(|b| place(a, b).1.to_bytes()).collect();
                        sbp[1].partial_op().map_or(parts[0].clone(), |op| reduced(dtype, op, &parts))
                    })
                    .collect();
                let got = sbp[0].partial_op().map_or(outer_parts[0].clone(), |op| reduced(dtype, op, &outer_parts));
                assert!(got == whole.cut(&shape, &shard.offset, &shard.size).to_bytes(), "{dtype} {sbp} at ({a}, {b})");
            }
        }
    }
}
