//! The tables of `docs/boxing.md` are what the planner says. `UPDATE_EXPECT=1` writes them anew.

use super::oracle::mesh_of;
use oflow::boxing::{BoxingPlan, Layout, plan};
use oflow::kernels::DType;
use oflow::sbp::{NdSbp, Sbp};
use oflow_tests::page::compare;

const SBPS: [Sbp; 4] = [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(1)];

fn cell(plan: &BoxingPlan) -> String {
    let codes: Vec<_> = plan.steps.iter().map(|s| s.op.symbol()).collect();
    match (codes.is_empty(), plan.bytes_sent()) {
        (true, _) => "=".into(),
        (false, 0) => codes.join(" "),
        (false, bytes) => format!("{} {:.1}", codes.join(" "), bytes as f64 / f64::from(1 << 20)),
    }
}

fn short(sbp: &NdSbp) -> String {
    let one = |s: &Sbp| match s {
        Sbp::Split(d) => format!("S{d}"),
        other => other.to_string().replace("(sum)", ""),
    };
    sbp.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn table(dims: &[usize], layouts: &[NdSbp]) -> String {
    let mesh = mesh_of(dims);
    let head: Vec<String> = layouts.iter().map(short).collect();
    let mut text = format!("| from \\ to | {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len() + 1));
    for src in layouts {
        let cells = layouts.iter().map(|dst| {
            let at = |s: &NdSbp| Layout::new(&mesh, s.clone());
            cell(&plan(&[1024, 1024], DType::F32, &at(src), &at(dst)).unwrap())
        });
        text += &format!("| **{}** | {} |\n", short(src), cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

#[test]
fn the_tables_of_the_page_are_what_the_planner_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/boxing.md");
    let line: Vec<NdSbp> = SBPS.iter().map(|s| NdSbp::new(&[*s])).collect();
    let plane: Vec<NdSbp> = SBPS.iter().flat_map(|a| SBPS.iter().map(|b| NdSbp::new(&[*a, *b]))).collect();
    let tables = [("[4]", table(&[4], &line)), ("[2, 2]", table(&[2, 2], &plane))];
    compare(path, &tables);
}
