use oflow_kernels::cpu::past_cache::*;

#[test]
fn copies_are_exact_at_any_address_and_length() {
    let src: Vec<u8> = (0..700u32).map(|i| (i * 31 % 251) as u8).collect();
    for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 63), (63, 17)] {
        for len in [0, 1, 15, 16, 63, 64, 65, 127, 128, 300, 512] {
            let mut dst = vec![255u8; 700];
            copy_past_cache(&src[from..from + len], &mut dst[to..to + len], &src[..from]);
            assert_eq!(dst[to..to + len], src[from..from + len]);
            assert!(dst[..to].iter().chain(&dst[to + len..]).all(|b| *b == 255), "{from} {to} {len}");
        }
    }
}
