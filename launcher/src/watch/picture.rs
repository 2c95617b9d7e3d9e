//! The layouts of a boxing's tensor, drawn as `oflow show` draws them.

use oflow::placement::{Device, Placement};
use oflow::sbp::picture::{Grid, Look};
use oflow::sbp::{NdSbp, check_layout};
use oflow_proto::control as pb;

/// Ends of a boxing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    From,
    To,
}

/// Whether the boxing is one of a tensor whose mesh is known.
pub(super) fn can_draw(boxing: &pb::SeenBoxing) -> bool {
    !boxing.dtype.is_empty() && boxing.mesh.as_ref().is_some_and(|m| !m.ranks.is_empty())
}

/// The picture as SVG; `None` if what the rank has told is no layout, or one of too many parts.
pub(super) fn draw(boxing: &pb::SeenBoxing, end: End) -> Option<String> {
    let (mesh, sbp) = match end {
        End::From => (boxing.mesh.as_ref(), &boxing.from),
        End::To => (boxing.to_mesh.as_ref().or(boxing.mesh.as_ref()), &boxing.to),
    };
    let (mesh, sbp) = (placement(mesh?)?, sbp.parse::<NdSbp>().ok()?);
    let shape: Vec<usize> = boxing.shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
    let dtype = boxing.dtype.parse().ok()?;
    check_layout(&shape, dtype, &mesh, &sbp).ok()?;
    Grid::new(&shape, &mesh, &sbp).svg(&format!("{dtype}{shape:?} {sbp} on {mesh}"), Look::File)
}

fn placement(mesh: &pb::Mesh) -> Option<Placement> {
    let numbers = |all: &[u32]| -> Vec<usize> { all.iter().map(|n| *n as usize).collect() };
    let (ranks, dims) = (numbers(&mesh.ranks), numbers(&mesh.dims));
    // The device does not matter for the picture but for its title.
    let device = mesh.device.parse().unwrap_or(Device::Cpu);
    let flat = Placement::new(device, &ranks, &dims).ok()?;
    let named = mesh.names.len() == dims.len() && mesh.names.iter().all(|n| !n.is_empty());
    if !named {
        return Some(flat);
    }
    let axes: Vec<(&str, usize)> = mesh.names.iter().map(String::as_str).zip(dims).collect();
    flat.mesh(&axes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxing() -> pb::SeenBoxing {
        let mesh = pb::Mesh {
            device: "cpu".into(),
            dims: vec![2, 2],
            names: vec!["dp".into(), "tp".into()],
            ranks: vec![4, 5, 6, 7],
        };
        pb::SeenBoxing {
            shape: vec![6, 8],
            dtype: "f32".into(),
            from: "[S(0), S(1)]".into(),
            to: "[B, P(sum)]".into(),
            mesh: Some(mesh),
            ..Default::default()
        }
    }

    #[test]
    fn both_ends_are_drawn() {
        let (from, to) = (draw(&boxing(), End::From).unwrap(), draw(&boxing(), End::To).unwrap());
        assert!(can_draw(&boxing()) && from.contains("<title>ranks 7</title>"), "{from}");
        assert!(to.contains("4 + 5") && to.contains("[B, P(sum)] on cpu[dp=2, tp=2]"), "{to}");
    }

    #[test]
    fn what_is_no_layout_is_not_drawn() {
        let wrong: [fn(&mut pb::SeenBoxing); 6] = [
            |b| b.from = "<script>".into(),
            |b| b.dtype = "f31".into(),
            |b| b.shape = vec![6],
            |b| b.shape = vec![u64::MAX, u64::MAX],
            |b| b.mesh = None,
            |b| b.mesh.iter_mut().for_each(|m| m.dims = vec![9; 4]),
        ];
        for change in wrong {
            let mut b = boxing();
            change(&mut b);
            // A huge shape is a layout; what is drawn of it must only be bounded.
            assert!(draw(&b, End::From).is_none_or(|svg| svg.len() < 1 << 20), "{b:?}");
        }
    }
}
