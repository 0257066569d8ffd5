//! What `lspci -Dnnvv` prints: the devices that a guest sees.

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its bus id with domain, such as `0000:05:00.0`.
    pub bus: String,
    /// Class, four hexadecimal digits.
    pub class: String,
    /// Vendor, four hexadecimal digits.
    pub vendor: String,
    /// Device, four hexadecimal digits.
    pub device: String,
    /// The card's serial number, sixteen hexadecimal digits; of a NIC its GUID or made from its
    /// MAC.
    pub serial: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// `Speed 16GT/s` of the link's state.
    pub speed: Option<String>,
    /// `Width x16` of the link's state.
    pub width: Option<u32>,
}

/// A text that lspci did not print so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LspciError {
    /// Nothing in it looks like a device.
    #[error("no device in it; run `lspci -Dnnvv` in the guest, as root")]
    Empty,
    /// Options are missing.
    #[error("line {line}: {found:?} has no numbers of class and device; add -nn to lspci")]
    NoNumbers {
        /// Which line.
        line: usize,
        /// Its beginning.
        found: String,
    },
}

/// The devices in order.
///
/// # Errors
/// If there is none, or they are printed without numbers.
pub fn read(text: &str) -> Result<Vec<Device>, LspciError> {
    let mut devices: Vec<Device> = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        if !line.starts_with([' ', '\t']) {
            let Some(bus) = line.split_whitespace().next().and_then(bus_id) else { continue };
            let numbers = numbers(line).ok_or_else(|| LspciError::NoNumbers {
                line: idx + 1,
                found: line.chars().take(60).collect(),
            })?;
            let [class, vendor, device] = numbers;
            devices.push(Device { bus, class, vendor, device, ..Device::default() });
            continue;
        }
        let (Some(device), line) = (devices.last_mut(), line.trim()) else { continue };
        if let Some(numa) = line.strip_prefix("NUMA node:") {
            device.numa = numa.trim().parse().ok();
        } else if let Some(state) = line.strip_prefix("LnkSta:") {
            let mut words = state.split([' ', ',', '\t']).filter(|it| !it.is_empty());
            while let Some(word) = words.next() {
                match word {
                    "Speed" => device.speed = words.next().map(str::to_owned),
                    "Width" => {
                        device.width =
                            words.next().and_then(|it| it.trim_start_matches('x').parse().ok());
                    }
                    _ => {}
                }
            }
        } else if let Some(at) = line.find("Device Serial Number ") {
            let digits: String = line[at + 21..].chars().filter(char::is_ascii_hexdigit).collect();
            device.serial = (digits.len() == 16).then(|| digits.to_ascii_lowercase());
        }
    }
    if devices.is_empty() { Err(LspciError::Empty) } else { Ok(devices) }
}

/// `05:00.0` or `0000:05:00.0`, with its domain.
fn bus_id(text: &str) -> Option<String> {
    let (rest, function) = text.rsplit_once('.')?;
    let parts: Vec<&str> = rest.split(':').collect();
    let hex = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_hexdigit());
    if !hex(function) || !parts.iter().all(|it| hex(it)) {
        return None;
    }
    let text = text.to_ascii_lowercase();
    match parts.len() {
        2 => Some(format!("0000:{text}")),
        3 => Some(text),
        _ => None,
    }
}

/// `3D controller [0302]: NVIDIA Corporation Device [10de:2330]`.
fn numbers(line: &str) -> Option<[String; 3]> {
    let brackets = line.split('[').skip(1).filter_map(|it| it.split_once(']').map(|it| it.0));
    let is_hex = |it: &str| it.len() == 4 && it.chars().all(|it| it.is_ascii_hexdigit());
    let mut class = None;
    for it in brackets {
        match it.split_once(':') {
            Some((vendor, device)) if is_hex(vendor) && is_hex(device) => {
                return Some([class?, vendor, device].map(str::to_ascii_lowercase));
            }
            None if class.is_none() && is_hex(it) => class = Some(it),
            _ => {}
        }
    }
    None
}
