//! How much of everything a version has room for.  From 2.21 on it refuses what is more; before, it
//! writes beyond its tables, which is not reproduced.

use crate::host::nccl::build::TopoError;
use crate::host::nccl::graph::{Graph, NodeIdx};
use crate::host::nccl::limits;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::Element;

/// Children of one element.
fn children(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 => usize::MAX,
        Profile::V2_21_5 | Profile::V2_27_7 => 128,
        Profile::V2_29_7 | Profile::V2_30_7 => limits::NCCL_CHILDREN,
    }
}

/// Links of one node.
fn links(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 => usize::MAX,
        Profile::V2_21_5 => 128,
        Profile::V2_27_7 | Profile::V2_29_7 | Profile::V2_30_7 => 576,
    }
}

/// Nodes of one kind.
pub(super) fn nodes(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 => limits::NODES,
        Profile::V2_21_5 => 256,
        Profile::V2_27_7 => 576,
        Profile::V2_29_7 | Profile::V2_30_7 => 640,
    }
}

/// # Errors
/// Names the first element that has too many children.
pub(super) fn check_children(root: &Element, profile: Profile) -> Result<(), TopoError> {
    let limit = children(profile);
    let mut todo = vec![root];
    while let Some(element) = todo.pop() {
        if let Some(child) = element.children.get(limit) {
            let element = element.name.clone();
            return Err(TopoError::Children { place: child.place, element, limit, profile });
        }
        todo.extend(element.children.iter().rev());
    }
    Ok(())
}

/// # Errors
/// Names the first node that has too many links.
pub(super) fn check_links(graph: &Graph) -> Result<(), TopoError> {
    let limit = links(graph.profile);
    for at in 0..graph.n_nodes() {
        let node = graph.node(NodeIdx(at as u32));
        if limit < node.links.len() {
            let (kind, id, profile) = (node.kind.name(), node.id, graph.profile);
            return Err(TopoError::Links { kind, id, limit, profile });
        }
    }
    Ok(())
}
