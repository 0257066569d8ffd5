//! A page of a core that nobody serves, for benches.

use std::path::PathBuf;

use selvedge_control::core::Core;
use selvedge_driver::store::Store;

use crate::clock::{Clock, Speed};
use crate::feed::Feed;
use crate::meter::Meter;
use crate::page::sheet::Sheet;
use crate::page::state::Standing;
use crate::page::{Page, framed, trouble_parts};
use crate::shell::{Parts, Shell};

/// The first page of a server whose core is `core`, as it is before it is compressed; nothing is
/// written to its journal.
pub fn first_page(core: Core, journal: Store) -> String {
    let shell = Shell::new(Parts {
        clock: Clock::from(core.state().now, Speed::REAL),
        core,
        journal: Box::new(journal),
        feed: Feed::after(0, Vec::new()),
        meter: Meter::new(),
        data: PathBuf::new(),
        saved: 0,
        snapshot_at: 0,
    });
    let mut sheet = match Page::Home.see(&shell, None) {
        Ok(drawing) => drawing(),
        Err(error) => Sheet { title: String::new(), layout: "one", parts: trouble_parts(&error) },
    };
    sheet.parts.insert(0, Standing::of(&shell).draw());
    framed(&sheet, Page::Home.place()).into_string()
}
