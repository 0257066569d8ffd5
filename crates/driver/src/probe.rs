//! What Linux says about a machine's PCI tree, NUMA nodes and InfiniBand devices: files below
//! `/sys`, read once, as paths with their contents.  What they mean is not known here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::limits;

/// Paths below the folder that stands for `/sys`, and contents; links as the paths they lead to.
pub type Files = BTreeMap<String, String>;

/// Why a tree cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file or folder.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is a copy without links.
    #[error(
        "{} is a folder and no link into the tree of buses; record /sys with its links kept, as \
         `cp -a` and `tar` do", path.display()
    )]
    NoLinks {
        /// Such a device.
        path: PathBuf,
    },
    /// More than any server has.
    #[error("more than {limit} entries in {}", path.display())]
    TooMany {
        /// Where.
        path: PathBuf,
        /// How many are read.
        limit: usize,
    },
}

/// What a PCI device is asked.
const DEVICE: [&str; 8] = [
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "numa_node",
    "max_link_speed",
    "max_link_width",
];

/// What is below `root`, which is `/sys` or a recorded copy of it.
///
/// # Errors
/// If there is no PCI tree, or it is a copy that lost its links.  Single files that cannot be read
/// are left out: a machine answers for what it has.
pub fn sysfs(root: &Path) -> Result<Files, ProbeError> {
    let root = fs::canonicalize(root)
        .map_err(|source| ProbeError::Read { path: root.to_owned(), source })?;
    let mut files = Files::new();
    for link in entries(&root.join("bus/pci/devices"))? {
        let real = real(&root, &link)?;
        if real.starts_with("bus/") {
            return Err(ProbeError::NoLinks { path: link });
        }
        for name in DEVICE {
            take(&link.join(name), format!("{real}/{name}"), &mut files);
        }
    }
    for device in entries(&root.join("class/infiniband")).unwrap_or_default() {
        infiniband(&root, &device, &mut files)?;
    }
    for node in entries(&root.join("devices/system/node")).unwrap_or_default() {
        let name = name(&node);
        take(&node.join("cpumap"), format!("devices/system/node/{name}/cpumap"), &mut files);
    }
    for module in ["nvidia_peermem", "nv_peer_mem"] {
        if root.join("module").join(module).is_dir() {
            files.insert(format!("module/{module}/"), String::new());
        }
    }
    Ok(files)
}

fn infiniband(root: &Path, device: &Path, files: &mut Files) -> Result<(), ProbeError> {
    let own = format!("class/infiniband/{}", name(device));
    for attr in ["node_guid", "sys_image_guid"] {
        take(&device.join(attr), format!("{own}/{attr}"), files);
    }
    let card = device.join("device");
    if card.exists() {
        files.insert(format!("{own}/device"), real(root, &card)?);
    }
    for port in entries(&device.join("ports")).unwrap_or_default() {
        for attr in ["state", "rate"] {
            take(&port.join(attr), format!("{own}/ports/{}/{attr}", name(&port)), files);
        }
    }
    Ok(())
}

/// A link's end, below the root.
fn real(root: &Path, link: &Path) -> Result<String, ProbeError> {
    let real = fs::canonicalize(link)
        .map_err(|source| ProbeError::Read { path: link.to_owned(), source })?;
    let below = real.strip_prefix(root).unwrap_or(&real);
    Ok(below.to_string_lossy().into_owned())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ProbeError> {
    let error = |source| ProbeError::Read { path: folder.to_owned(), source };
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        if out.len() == limits::PROBE_ENTRIES {
            let limit = limits::PROBE_ENTRIES;
            return Err(ProbeError::TooMany { path: folder.to_owned(), limit });
        }
        out.push(entry.map_err(error)?.path());
    }
    out.sort();
    Ok(out)
}

fn take(path: &Path, key: String, files: &mut Files) {
    let Ok(file) = fs::File::open(path) else { return };
    let mut text = String::new();
    if file.take(limits::PROBE_BYTES).read_to_string(&mut text).is_ok() {
        files.insert(key, text.trim().to_owned());
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |it| it.to_string_lossy().into_owned())
}

/// What the driver says of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its bus id, such as `0000:1a:00.0`.
    pub bus: String,
    /// NVML's number.
    pub index: u32,
    /// Compute capability: 90 for 9.0.
    pub sm: u32,
    /// The bus id at the far end of each NVLink that is up, with its PCI class.
    pub links: Vec<(String, String)>,
}

/// What the NVIDIA driver says, where there is one; its library is loaded at run time.
pub fn nvml() -> Option<Vec<Gpu>> {
    /// Links of one GPU that NVML numbers.
    const LINKS: u32 = 18;
    let nvml = nvml_wrapper::Nvml::init().ok()?;
    let mut gpus = Vec::new();
    for index in 0..nvml.device_count().ok()? {
        let Ok(device) = nvml.device_by_index(index) else { continue };
        let (Ok(pci), Ok(sm)) = (device.pci_info(), device.cuda_compute_capability()) else {
            continue;
        };
        let far = |link| {
            let link = device.link_wrapper_for(link);
            if !link.is_active().unwrap_or(false) {
                return None;
            }
            let bus = bus_id(&link.remote_pci_info().ok()?.bus_id);
            // As NCCL: what sysfs does not show is a switch.
            let class = fs::read_to_string(format!("/sys/bus/pci/devices/{bus}/class"));
            let class = class.map_or_else(|_| "0x068000".to_owned(), |it| it.trim().to_owned());
            Some((bus, class))
        };
        let links = (0..LINKS).filter_map(far).collect();
        let sm = (sm.major * 10 + sm.minor).unsigned_abs();
        gpus.push(Gpu { bus: bus_id(&pci.bus_id), index, sm, links });
    }
    Some(gpus)
}

/// NVML writes domains with eight digits, Linux with four.
fn bus_id(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    match text.split_once(':') {
        Some((domain, rest)) if domain.len() > 4 => {
            format!("{}:{rest}", &domain[domain.len() - 4..])
        }
        _ => text,
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{ProbeError, bus_id, sysfs};

    #[test]
    fn a_tree_is_read_by_its_links() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        let device = root.join("devices/pci0000:00/0000:00:01.0/0000:01:00.0");
        fs::create_dir_all(&device).expect("a folder");
        fs::write(device.join("class"), "0x030200\n").expect("a file");
        fs::create_dir_all(root.join("bus/pci/devices")).expect("a folder");
        symlink(&device, root.join("bus/pci/devices/0000:01:00.0")).expect("a link");
        fs::create_dir_all(root.join("class/infiniband/mlx5_0/ports/1")).expect("a folder");
        fs::write(root.join("class/infiniband/mlx5_0/ports/1/state"), "4: ACTIVE\n")
            .expect("a file");
        symlink(&device, root.join("class/infiniband/mlx5_0/device")).expect("a link");
        fs::create_dir_all(root.join("module/nvidia_peermem")).expect("a folder");
        let files = sysfs(root).expect("a tree");
        let lines: Vec<String> = files.iter().map(|(key, it)| format!("{key}={it}")).collect();
        let path = "devices/pci0000:00/0000:00:01.0/0000:01:00.0";
        let expected = [
            format!("class/infiniband/mlx5_0/device={path}"),
            "class/infiniband/mlx5_0/ports/1/state=4: ACTIVE".to_owned(),
            format!("{path}/class=0x030200"),
            "module/nvidia_peermem/=".to_owned(),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn bus_ids_are_linux_s() {
        assert_eq!(bus_id("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(bus_id("0001:3b:00.0"), "0001:3b:00.0");
    }

    #[test]
    fn a_copy_without_links_and_no_tree_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        assert!(matches!(sysfs(root), Err(ProbeError::Read { .. })));
        fs::create_dir_all(root.join("bus/pci/devices/0000:01:00.0")).expect("a folder");
        assert!(matches!(sysfs(root), Err(ProbeError::NoLinks { .. })));
    }
}
