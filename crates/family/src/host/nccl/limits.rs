//! What a topology file may hold: limits of NCCL's own reader (notes §3h) and of ours.

/// NCCL: attributes of one element.
pub(crate) const NCCL_ATTRS: usize = 16;

/// NCCL: bytes of a name or value.
pub(crate) const NCCL_TEXT: usize = 255;

/// NCCL: children of one element.
pub(crate) const NCCL_CHILDREN: usize = 640;

/// Bytes of a file.  The largest real dump is 17 KB; a rack of 72 GPUs is under 200 KB.
pub const XML_BYTES: usize = 8 << 20;

/// Nested elements.  A real PCI tree is under ten deep.
pub(crate) const XML_DEPTH: usize = 64;

/// Elements of a file.
pub(crate) const XML_ELEMENTS: usize = 1 << 16;

/// Attributes of one element.
pub(crate) const XML_ATTRS: usize = 64;
