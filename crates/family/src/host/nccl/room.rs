//! How much of everything a version has room for.
//!
//! From 2.21 on it refuses what is more.  Until 2.18 it refuses nodes and elements, and writes
//! beyond its tables of links and children, which ends it with a fault: that is refused here.

use crate::host::nccl::build::TopoError;
use crate::host::nccl::graph::{Graph, NodeIdx};
use crate::host::nccl::limits;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::Element;

/// Elements of a file.  Later versions bound a rank's own file, and a rack is merged from many.
fn elements(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 => 1023,
        _ => usize::MAX,
    }
}

/// Children of one element.
fn children(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 => 32,
        Profile::V2_21_5 | Profile::V2_27_7 => 128,
        Profile::V2_29_7 | Profile::V2_30_7 => limits::NCCL_CHILDREN,
    }
}

/// Links of one node.
fn links(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 => 32,
        Profile::V2_21_5 => 128,
        Profile::V2_27_7 | Profile::V2_29_7 | Profile::V2_30_7 => 576,
    }
}

/// Nodes of one kind.
pub(super) fn nodes(profile: Profile) -> usize {
    match profile {
        Profile::V2_7_8 | Profile::V2_18_5 | Profile::V2_21_5 => 256,
        Profile::V2_27_7 => 576,
        Profile::V2_29_7 | Profile::V2_30_7 => 640,
    }
}

/// Whether the version keeps an element of that name in the other; what it does not know it skips.
fn keeps(profile: Profile, element: &str, child: &str) -> bool {
    match element {
        "system" => child == "cpu",
        "cpu" => matches!(child, "pci" | "nic"),
        "pci" => {
            matches!(child, "pci" | "gpu" | "nic") || (child == "pcilink" && profile.has_c2c())
        }
        "gpu" => child == "nvlink" || (child == "c2c" && profile.has_hosts()),
        "nic" => matches!(child, "net" | "gin" | "rma"),
        _ => false,
    }
}

/// # Errors
/// Names the first element that has too many children, or that is one too many itself.
pub(super) fn check_elements(root: &Element, profile: Profile) -> Result<(), TopoError> {
    let limit = children(profile);
    let mut todo = vec![root];
    let mut count = 0;
    while let Some(element) = todo.pop() {
        count += 1;
        if count > elements(profile) {
            let (place, limit) = (element.place, elements(profile));
            return Err(TopoError::Elements { place, limit, profile });
        }
        let kept = || element.children.iter().filter(|it| keeps(profile, &element.name, &it.name));
        if let Some(child) = kept().nth(limit) {
            let element = element.name.clone();
            return Err(TopoError::Children { place: child.place, element, limit, profile });
        }
        let after = todo.len();
        todo.extend(kept());
        todo[after..].reverse();
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
