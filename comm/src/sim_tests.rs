use super::*;
use crate::oracle::{check_all, check_overlapping, check_short, check_world, tag};
use crate::{CollectiveCall, Communicator, DType, Group, ReduceOp};
use oflow_base::ErrorKind;
use oflow_base::Random;
use std::panic::catch_unwind;

fn all(comm: &SimComm) -> Group {
    Group { ranks: (0..comm.world()).collect(), me: comm.rank() }
}

#[test]
fn collectives_agree_with_the_oracle() {
    for n in [1, 2, 3, 4, 5, 8] {
        run_with(SimWorld::with_capacity(n, 1024), |_, comm| check_world(&comm, 1024));
    }
}

#[test]
fn overlapping_groups_in_one_order_agree_with_the_oracle() {
    for n in [2, 5, 8] {
        run_with(SimWorld::with_capacity(n, 512), |_, comm| check_overlapping(&comm, 300, 512));
    }
}

#[test]
fn short_messages_of_large_groups_agree_with_the_oracle() {
    for m in [64, 65, 100, 128] {
        run(m, |rank, comm| {
            check_short(&comm, &all(&comm));
            // Some of them, in another order.
            let ranks: Vec<usize> = (0..m).rev().filter(|r| *r != 3).collect();
            if let Some(me) = ranks.iter().position(|r| *r == rank) {
                check_short(&comm, &Group { ranks, me });
            }
        });
    }
    // On hosts, where larger messages go by these.
    run_with(SimWorld::on_hosts(&[40, 20, 10], 16 << 10), |_, comm| check_short(&comm, &all(&comm)));
}

#[test]
fn short_messages_of_large_groups_go_to_few() {
    let peers = run(100, |rank, comm| {
        let group = all(&comm);
        for i in 0..3 {
            comm.barrier(&group, &tag(3 * i, "barrier")).unwrap();
            comm.all_reduce(&group, &tag(3 * i + 1, "sum"), &[1; 4], &mut [1; 4], DType::I32, ReduceOp::Sum).unwrap();
            comm.all_gather(&group, &tag(3 * i + 2, "all"), &[1], &mut [0; 100], &[1; 100]).unwrap();
        }
        (0..100).filter(|to| comm.sim().link_bytes(rank, *to) > 0).count()
    });
    assert_eq!(peers.iter().max(), Some(&7), "{peers:?}");
    assert_eq!(peers.iter().sum::<usize>(), 2 * 99, "{peers:?}");
}

/// Hosts with so many ranks each: even and uneven, alone and beside others.
const HOSTS: [&[usize]; 8] =
    [&[2, 2], &[2, 1, 1], &[1, 3], &[3, 1, 2], &[2, 2, 2], &[4, 3], &[1, 1, 1, 2], &[1, 2, 1, 2]];

#[test]
fn collectives_over_hosts_agree_with_the_oracle() {
    for (i, hosts) in HOSTS.iter().enumerate() {
        let world: usize = hosts.iter().sum();
        // The smallest buffers that a world may have, and such that some messages take many rounds and some one.
        for (capacity, elements) in [(64 * world, 2_000), ([4096, 256 << 10][i % 2], 40_000)] {
            run_with(SimWorld::on_hosts(hosts, capacity), |_, comm| {
                let how = [
                    (DType::F32, ReduceOp::Sum),
                    (DType::F16, ReduceOp::Sum),
                    (DType::BF16, ReduceOp::Max),
                    (DType::I64, ReduceOp::Sum),
                ];
                let (dtype, op) = how[(i / 2) % 4];
                check_all(&comm, &all(&comm), elements, dtype, op, i as u64);
                check_all(&comm, &all(&comm), elements / 2, DType::BF16, ReduceOp::Sum, 100 + i as u64);
            });
        }
    }
}

#[test]
fn long_messages_of_random_groups_on_hosts_agree_with_the_oracle() {
    for (i, hosts) in HOSTS.iter().enumerate() {
        run_with(SimWorld::on_hosts(hosts, 2048), |_, comm| {
            let mut rng = Random::new(i as u64);
            for seed in 0..6 {
                // Members in order, so that hosts count, or shuffled.
                let mut ranks: Vec<usize> = (0..comm.world()).filter(|_| rng.below(4) > 0).collect();
                if rng.below(3) == 0 {
                    ranks.reverse();
                }
                if rng.below(4) == 0 && ranks.len() > 1 {
                    let at = rng.below(ranks.len());
                    ranks.swap(0, at);
                }
                let elements = 5_000 + rng.below(30_000);
                if let Some(me) = ranks.iter().position(|&r| r == comm.rank()) {
                    let dtype = if u64::is_multiple_of(seed, 2) { DType::F32 } else { DType::F16 };
                    check_all(&comm, &Group { ranks, me }, elements, dtype, ReduceOp::Sum, seed);
                }
            }
        });
    }
}

/// Bytes that each collective has put on the links between hosts, of 100,000 elements of every member's or of all together.
fn between_hosts(hosts: &[usize], dtype: DType) -> [u64; 3] {
    let table: Vec<usize> = hosts.iter().enumerate().flat_map(|(h, n)| vec![h; *n]).collect();
    let sent = run_with(SimWorld::on_hosts(hosts, 64 << 10), |rank, comm| {
        let far = || -> u64 {
            (0..table.len()).filter(|to| table[*to] != table[rank]).map(|to| comm.sim().link_bytes(rank, to)).sum()
        };
        let (group, m) = (all(&comm), comm.world());
        let counts = vec![100_000 / m * dtype.size(); m];
        let total = counts.iter().sum();
        let (mut whole, mut part) = (vec![0; total], vec![0; counts[0]]);
        let start = far();
        comm.broadcast(&group, &tag(1, "x"), m - 1, &mut whole).unwrap();
        let broadcast = far();
        comm.all_gather(&group, &tag(2, "x"), &part, &mut whole, &counts).unwrap();
        let gather = far();
        let (send, receive, counts, op) = (&whole[..], &mut part[..], &counts[..], ReduceOp::Sum);
        let scatter = CollectiveCall::ReduceScatter { send, receive, counts, dtype, op };
        comm.run(&group, &tag(3, "x"), scatter).unwrap();
        [broadcast - start, gather - broadcast, far() - gather]
    });
    let total = (100_000 / table.len() * table.len() * dtype.size()) as u64;
    std::array::from_fn(|i| {
        let sum: u64 = sent.iter().map(|s| s[i]).sum();
        assert_eq!(sum * 2 * table.len() as u64 % total, 0, "{sum} of {total}");
        sum * 2 * table.len() as u64 / total
    })
}

#[test]
fn each_byte_crosses_from_one_host_to_another_once() {
    // In halves of a rank's share of the message. A reduce-scatter puts each byte on the chain, and results of all but the
    // last host's ranks on the way to them.
    assert_eq!(between_hosts(&[2, 2], DType::F32), [8, 8, 8 + 4]);
    assert_eq!(between_hosts(&[4, 4], DType::F32), [16, 16, 16 + 8]);
    assert_eq!(between_hosts(&[4, 4], DType::BF16), [16, 16, 32 + 8]);
    assert_eq!(between_hosts(&[2, 2, 2], DType::F32), [24, 24, 24 + 8]);
    // Where partials are wide, or hosts have few members, the direct way puts less there.
    assert_eq!(between_hosts(&[3, 1], DType::F32), [8, 8, 12]);
    assert_eq!(between_hosts(&[2, 2], DType::BF16), [8, 8, 16]);
}

#[test]
fn one_phase_and_two_phases_give_the_bytes_of_the_table() {
    for (elements, m) in [(64, 4), (4096 * 4, 4)] {
        run(m, |rank, comm| {
            let mut buf = vec![1u8; elements * 4];
            comm.all_reduce(&all(&comm), &tag(1, "sum"), &buf.clone(), &mut buf, DType::I32, ReduceOp::Sum).unwrap();
            let n = buf.len() as u64;
            let one_phase = n as usize <= oflow_base::host_hierarchy::one_phase_bytes(m);
            assert_eq!(one_phase, elements == 64);
            let expected = if one_phase { 3 * n } else { 2 * n * 3 / 4 };
            assert_eq!(comm.traffic().bytes_sent, expected);
            comm.barrier(&all(&comm), &tag(2, "barrier")).unwrap();
            let links: u64 = (0..m).map(|to| comm.sim().link_bytes(rank, to)).sum();
            assert_eq!(links, expected);
            assert_eq!(comm.sim().link_bytes(rank, rank), 0);
        });
    }
}

#[test]
fn a_wrong_order_is_a_deadlock_and_the_graph_names_it() {
    let errors = run(3, |rank, comm| {
        let mut buf = [0u8; 4];
        // 0 and 1 send first and receive later: works only with buffering. 2 waits for 0.
        let peer = 1 - rank.min(1);
        if rank == 2 {
            return comm.exchange(&tag(9, "third"), &[], &mut [(0, &mut buf)]).unwrap_err();
        }
        comm.exchange(&tag(7, if rank == 0 { "left" } else { "right" }), &[(peer, &[1, 2, 3, 4])], &mut []).unwrap_err()
    });
    for e in &errors {
        let text = e.to_string();
        assert_eq!(e.kind(), ErrorKind::Comm, "{text}");
        assert!(text.contains("rank 0 waits for rank 1 to read, in exchange of 'left' #7 (oracle.rs:8)"), "{text}");
        assert!(text.contains("rank 1 waits for rank 0 to read, in exchange of 'right' #7 (oracle.rs:8)"), "{text}");
    }
}

#[test]
fn groups_in_different_orders_deadlock() {
    let errors = run(3, |rank, comm| {
        let pairs = [[0, 1], [1, 2], [2, 0]];
        // Each rank starts with the pair of which it is the first member.
        for i in 0..3 {
            let ranks = pairs[(rank + i) % 3].to_vec();
            if let Some(me) = ranks.iter().position(|&r| r == rank) {
                comm.barrier(&Group { ranks, me }, &tag(1, "ring"))?;
            }
        }
        Ok(())
    });
    assert!(errors.iter().all(|e: &Result<()>| e.as_ref().is_err_and(|e| e.kind() == ErrorKind::Comm)), "{errors:?}");
}

#[test]
fn a_rank_that_ends_is_named() {
    let results = run(3, |rank, comm| {
        if rank == 1 {
            return None;
        }
        let ranks = vec![rank, 1];
        comm.barrier(&Group { ranks, me: 0 }, &tag(3, "gone")).err()
    });
    for rank in [0, 2] {
        let e = results[rank].as_ref().unwrap();
        assert_eq!(e.kind(), ErrorKind::Peer);
        assert!(e.to_string().contains(&format!("rank 1 has ended while rank {rank} waits for rank 1")), "{e}");
        assert!(e.to_string().contains("'gone' #3"), "{e}");
    }
}

#[test]
fn a_panic_names_its_rank_and_frees_the_others() {
    let panic = catch_unwind(|| {
        run(4, |rank, comm| {
            assert!(rank != 2, "boom");
            comm.barrier(&all(&comm), &tag(1, "b")).unwrap();
        })
    });
    assert_eq!(panic.unwrap_err().downcast_ref::<String>().unwrap(), "rank 2 panicked: boom");
}

#[test]
fn different_ops_are_told_on_both_sides() {
    let errors = run(2, |rank, comm| {
        let mut buf = [0u8; 4];
        let t = if rank == 0 { tag(4, "add") } else { tag(5, "mul") };
        comm.all_reduce(&all(&comm), &t, &buf.clone(), &mut buf, DType::F32, ReduceOp::Sum).unwrap_err()
    });
    // The root of a broadcast reads nothing; the reader tells it.
    let broadcast = run(2, |rank, comm| {
        let t = if rank == 0 { tag(4, "add") } else { tag(5, "mul") };
        comm.broadcast(&all(&comm), &t, 0, &mut [0u8; 4]).unwrap_err()
    });
    for (errors, kind) in [(errors, "all_reduce"), (broadcast, "broadcast")] {
        for e in errors {
            assert_eq!(e.kind(), ErrorKind::Diverged, "{e}");
            let expected = format!(
                "ranks 0 and 1 issued different ops: rank 0 is in {kind} of 'add' #4 (oracle.rs:5), rank 1 in {kind} of 'mul' #5 (oracle.rs:6)"
            );
            assert_eq!(e.message(), expected);
        }
    }
}

#[test]
fn a_different_op_in_a_large_group_is_told() {
    let errors = run(70, |rank, comm| {
        let t = if rank == 37 { tag(5, "mul") } else { tag(4, "add") };
        comm.all_reduce(&all(&comm), &t, &[0; 4], &mut [0; 4], DType::F32, ReduceOp::Sum).unwrap_err()
    });
    let told = |r: usize| {
        errors[r].kind() == ErrorKind::Diverged && errors[r].message().contains("rank 37 in all_reduce of 'mul' #5")
    };
    assert!(told(36) && told(37), "{errors:?}");
    assert!(errors.iter().all(|e| [ErrorKind::Diverged, ErrorKind::Peer].contains(&e.kind())), "{errors:?}");
}

#[test]
fn different_sizes_and_collectives_are_told() {
    let errors = run(2, |rank, comm| {
        let mut buf = vec![0u8; 4 + 4 * rank];
        comm.all_reduce(&all(&comm), &tag(1, "x"), &buf.clone(), &mut buf, DType::F32, ReduceOp::Sum).unwrap_err()
    });
    assert!(errors.iter().all(|e| e.kind() == ErrorKind::Diverged), "{errors:?}");
    let errors = run(2, |rank, comm| match rank {
        0 => comm.barrier(&all(&comm), &tag(1, "x")).unwrap_err(),
        _ => comm.broadcast(&all(&comm), &tag(1, "x"), 1, &mut []).unwrap_err(),
    });
    assert!(errors.iter().all(|e| e.kind() == ErrorKind::Diverged), "{errors:?}");
}

#[test]
fn wrong_arguments_are_errors_before_any_byte_moves() {
    use oflow_kernels::{Builtin, Registered};
    let registered = DType::register(Registered::new("q_sim", Builtin::U8)).unwrap();
    run(2, |rank, comm| {
        let (g, t) = (all(&comm), tag(1, "x"));
        let mut buf = [0u8; 6];
        assert_eq!(
            comm.all_reduce(&g, &t, &buf.clone(), &mut buf, DType::F32, ReduceOp::Sum).unwrap_err().kind(),
            ErrorKind::Argument
        );
        assert_eq!(
            comm.all_reduce(&g, &t, &buf.clone(), &mut buf, DType::Bool, ReduceOp::Sum).unwrap_err().kind(),
            ErrorKind::DType
        );
        let e = comm.all_reduce(&g, &t, &buf.clone(), &mut buf, registered, ReduceOp::Max).unwrap_err();
        assert!(
            e.kind() == ErrorKind::DType && e.message().contains("q_sim is a registered dtype, which has no max"),
            "{e}"
        );
        assert!(comm.all_gather(&g, &t, &[1], &mut buf, &[1, 2]).unwrap_err().is_logical());
        assert!(comm.broadcast(&g, &t, 2, &mut buf).unwrap_err().is_logical());
        assert!(comm.exchange(&t, &[(rank, &[])], &mut []).unwrap_err().is_logical());
        assert!(comm.exchange(&t, &[(1 - rank, &[]), (1 - rank, &[])], &mut []).unwrap_err().is_logical());
        assert!(comm.barrier(&Group { ranks: vec![1 - rank], me: 0 }, &t).unwrap_err().is_logical());
        comm.barrier(&g, &t).unwrap();
        assert_eq!(comm.traffic().calls, 1);
    });
}

#[test]
fn a_hundred_thousand_tiny_collectives_are_cheap() {
    run(2, |_, comm| {
        let g = all(&comm);
        for i in 0..50_000 {
            let mut x = 1i32.to_ne_bytes();
            comm.all_reduce(&g, &tag(i, "tiny"), &x.clone(), &mut x, DType::I32, ReduceOp::Sum).unwrap();
            assert_eq!(x, 2i32.to_ne_bytes());
        }
    });
}
