//! Plans under other models than the default: several hosts, limits of memory; and broadcasts to other meshes.

use super::oracle::{make, mesh, mesh_of, nd_sbps, value};
use oflow::boxing::{Layout, LinkKind, Model, Planner, RankStep, StepOp};
use oflow::kernels::DType;
use oflow::sbp::NdSbp;
use oflow::vm::replay;

fn at(p: &oflow::placement::Placement, s: &str) -> Layout {
    Layout::new(p, s.parse::<NdSbp>().unwrap())
}

fn check(planner: &Planner, shape: &[usize], src: &Layout, dst: &Layout) -> u64 {
    let plan = planner.plan(shape, DType::I32, src, dst).unwrap();
    let shards = make(shape, DType::I32, src, 3);
    let after = value(shape, DType::I32, dst, &replay(&plan, &shards).unwrap()).unwrap();
    assert_eq!(value(shape, DType::I32, src, &shards).unwrap(), after, "{plan}");
    let by_rank: u64 = (0..64).map(|r| plan.bytes_sent_by(r)).sum();
    assert_eq!(plan.bytes_sent(), by_rank, "{plan}");
    by_rank
}

#[test]
fn a_replica_of_the_same_host_is_taken() {
    let hosts = Planner::new(Model { hosts: 2.into(), ..Model::default() });
    let (src, dst) = (mesh(&[0, 2], &[2]), mesh(&[3, 1], &[2]));
    let plan = hosts.plan(&[64, 64], DType::F32, &at(&src, "B"), &at(&dst, "B")).unwrap();
    // By place alone each would be served from the other host.
    let one = Planner::default().plan(&[64, 64], DType::F32, &at(&src, "B"), &at(&dst, "B")).unwrap();
    for (plan, reader) in [(&plan, 1), (&one, 3)] {
        let program = plan.program(0);
        let RankStep::Exchange(x) = &program.steps[0] else { panic!("{plan}") };
        assert_eq!(x.sends.iter().map(|t| t.rank).collect::<Vec<_>>(), [reader], "{plan}");
    }
    let model = hosts.model();
    assert_eq!(model.between(dst.device(), 0, 1), LinkKind::SameHost);
    assert_eq!(model.between(dst.device(), 1, 2), LinkKind::Network);
}

#[test]
fn values_and_bytes_with_several_hosts() {
    let mut count = 0;
    for ranks_per_host in [1, 2, 3] {
        let planner = Planner::new(Model { hosts: ranks_per_host.into(), ..Model::default() });
        let placements = [mesh_of(&[2, 2]), mesh(&[3, 1, 0, 2], &[4]), mesh(&[4, 1, 5], &[3]), mesh(&[2], &[1])];
        let all: Vec<Layout> = placements
            .iter()
            .flat_map(|p| nd_sbps(p.axes(), 2, DType::I32).into_iter().map(|s| Layout::new(p, s)))
            .collect();
        for (i, (src, dst)) in all.iter().flat_map(|s| all.iter().map(move |d| (s, d))).enumerate() {
            if i % 3 == 0 {
                check(&planner, &[5, 6], src, dst);
                count += 1;
            }
        }
    }
    println!("{count} conversions on several hosts");
}

#[test]
fn a_small_tensor_is_broadcast_and_a_large_one_scattered_and_gathered() {
    let planner = Planner::default();
    let (one, line) = (mesh(&[0], &[1]), mesh_of(&[16]));
    let small = planner.plan(&[8], DType::F32, &at(&one, "B"), &at(&line, "B")).unwrap();
    assert!(matches!(small.steps[..], [ref s] if matches!(s.op, StepOp::Broadcast { .. })), "{small}");
    assert_eq!(small.bytes_sent(), 15 * 32);
    // The root sends to four, not to fifteen.
    assert_eq!(small.bytes_sent_by(0), 4 * 32);
    let large = planner.plan(&[1 << 22], DType::F32, &at(&one, "B"), &at(&line, "B")).unwrap();
    assert!(large.to_string().contains("all-gather"), "{large}");
    // From elsewhere: to one rank of the mesh, and from there.
    let far = planner.plan(&[8], DType::F32, &at(&mesh(&[20], &[1]), "B"), &at(&line, "B")).unwrap();
    assert_eq!(far.steps.len(), 2, "{far}");
    for (src, dst) in [(&one, &line), (&mesh(&[20], &[1]), &line), (&mesh(&[20], &[1]), &mesh_of(&[2, 4]))] {
        for (s, d) in nd_sbps(1, 1, DType::I32)
            .iter()
            .flat_map(|s| nd_sbps(dst.axes(), 1, DType::I32).into_iter().map(move |d| (s.clone(), d)))
        {
            check(&planner, &[9], &Layout::new(src, s), &Layout::new(dst, d));
        }
    }
}

#[test]
fn a_limit_of_memory_is_kept_where_it_can_be() {
    let square = mesh_of(&[2, 2]);
    let shape = [64, 64];
    let (mut kept, mut over, mut dearer) = (0, 0, 0);
    let all: Vec<Layout> = nd_sbps(2, 2, DType::I32).into_iter().map(|s| Layout::new(&square, s)).collect();
    for (src, dst) in all.iter().flat_map(|s| all.iter().map(move |d| (s, d))) {
        let free = Planner::default().plan(&shape, DType::I32, src, dst).unwrap();
        assert!(!free.over_memory && free.peak_bytes() >= free.extra_bytes());
        if free.extra_bytes() == 0 {
            continue;
        }
        let limited = Planner::new(Model { extra_memory: Some(free.extra_bytes() - 1), ..Model::default() });
        check(&limited, &shape, src, dst);
        let plan = limited.plan(&shape, DType::I32, src, dst).unwrap();
        assert!(plan.cost_ps >= free.cost_ps, "{plan}");
        match plan.over_memory {
            // Then nothing takes less than the cheapest does.
            true => assert_eq!(plan.extra_bytes(), free.extra_bytes(), "{plan}{free}"),
            false => assert!(plan.extra_bytes() < free.extra_bytes(), "{plan}{free}"),
        }
        *(if plan.over_memory { &mut over } else { &mut kept }) += 1;
        dearer += usize::from(plan.cost_ps > free.cost_ps);
    }
    println!("{kept} plans keep a limit, {dearer} cost more for it, {over} cannot");
    assert!(kept > 100 && over > 100 && dearer > 100);
}

/// A file of measured constants may hold anything: prices saturate, and each boxing keeps the value.
#[test]
fn constants_as_large_as_numbers_get_do_not_overflow() {
    use serde_json::Value;
    fn enlarge(v: &mut Value, which: &mut dyn FnMut() -> bool) {
        match v {
            Value::Number(_) if which() => *v = u64::MAX.into(),
            Value::Array(all) => all.iter_mut().for_each(|v| enlarge(v, which)),
            Value::Object(all) => all.values_mut().for_each(|v| enlarge(v, which)),
            _ => {}
        }
    }
    let whole = serde_json::to_value(Model::default()).unwrap();
    let (mut models, mut one) = (vec![], 0);
    loop {
        let (mut json, mut n) = (whole.clone(), 0);
        for (name, part) in json.as_object_mut().unwrap() {
            if name != "ranks_per_host" && name != "extra_memory" {
                enlarge(part, &mut || {
                    n += 1;
                    n - 1 == one
                });
            }
        }
        if one >= n {
            break;
        }
        models.push(json);
        one += 1;
    }
    let mut all = whole.clone();
    for (name, part) in all.as_object_mut().unwrap() {
        if name != "ranks_per_host" && name != "extra_memory" {
            enlarge(part, &mut || true);
        }
    }
    models.push(all);
    let (square, line) = (mesh_of(&[2, 2]), mesh(&[1, 5, 2], &[3]));
    for json in models {
        let planner = Planner::new(serde_json::from_value(json).unwrap());
        for (src, dst) in [("S(0), S(1)", "S(1), S(0)"), ("P(sum), S(0)", "S(0), B"), ("B, P(max)", "S(1), S(1)")] {
            check(&planner, &[5, 7], &at(&square, src), &at(&square, dst));
            check(&planner, &[5, 7], &at(&square, src), &at(&line, "S(1)"));
        }
    }
}
