//! Searches of small servers changed attribute by attribute: each ends, in every version, for jobs
//! of one, two and four servers.

use selvedge_family::host::change::Question;
use selvedge_family::host::nccl::dump::dump;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::search::graphs;
use selvedge_family::host::nccl::xml::{Strictness, read};

const SMALL: &str = include_str!("../../../../fuzz/corpus/server/small.xml");

/// Values that servers have, and that they have not.
const VALUES: [&str; 8] = ["0", "1", "-1", "2147483647", "60", "100", "0xffffffffffffffff", ""];

/// The file with each attribute's value replaced by each of the values.
fn changed() -> Vec<String> {
    let quotes: Vec<usize> = SMALL.match_indices('"').map(|it| it.0).collect();
    let mut out = Vec::new();
    for pair in quotes.chunks_exact(2) {
        for value in VALUES {
            out.push(format!("{}{value}{}", &SMALL[..=pair[0]], &SMALL[pair[1]..]));
        }
    }
    out
}

#[test]
fn every_search_of_a_changed_server_ends_within_its_budget() {
    let mut searched = 0;
    for text in changed() {
        let strictness = Strictness::Lenient { single_quotes: true };
        let Ok(document) = read(&text, strictness) else { continue };
        for profile in Profile::ALL {
            for nodes in [1, 2, 4] {
                let mut question = Question::new(document.root.clone(), profile);
                question.nodes = nodes;
                let Ok(view) = question.view() else { continue };
                let Ok(found) = graphs(&view) else { continue };
                // Three graphs with a budget of 3·2^19 each, and as much for rounds over it.
                assert!(found.calls < 3 * 2 * (3 << 19), "{profile} {nodes}:\n{text}");
                dump(&view, "changed").expect("what is searched is told");
                searched += 1;
            }
        }
    }
    assert!(searched > 1000, "{searched} searches are few");
}
