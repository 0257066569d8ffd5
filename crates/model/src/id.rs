//! Names of things.  An id is an index with a type, so a chip is never passed for a port.

/// Declares an id newtype that prints as `prefix` and a number.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(u32);
        impl $name {
            /// The id with index `idx`.
            pub const fn new(idx: u32) -> Self { Self(idx) }
            /// The id with index `idx`.
            ///
            /// # Panics
            /// If `idx` does not fit 32 bits, which `limits` rules out for every table.
            pub fn at(idx: usize) -> Self {
                Self(u32::try_from(idx).expect("limits keep every table below 2^32"))
            }
            /// The place of this thing in its table.
            pub const fn idx(self) -> usize { self.0 as usize }
            /// The bare number, for people and for files.
            pub const fn number(self) -> u32 { self.0 }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
        impl $crate::table::Id for $name {
            fn from_idx(idx: usize) -> Self { Self::at(idx) }
            fn to_idx(self) -> usize { self.idx() }
        }
    )*};
}

ids! {
    /// One instance of a template in the fabric: a cube, a host, a board, a switch.
    PartId = "part";
    /// The inner structure that equal parts share.
    TemplateId = "template";
    /// A thing inside a part: a chip, a machine, a tray, a switch.
    NodeId = "node";
    /// An end of a link.
    PortId = "port";
    /// One direction of a link.
    LinkId = "link";
    /// Things that fail together: a rack, a power feed, a plane.
    DomainId = "domain";
    /// Parts that one set of switches can join: a pod.
    PoolId = "pool";
    /// A job, in the order of acceptance.
    JobId = "job";
    /// One diagnosed fault with its evidence.
    CaseId = "case";
    /// An adopted plan.
    PlanId = "plan";
}
