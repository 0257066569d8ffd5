//! What must hold of any text at all that is taken for a topology file.  The mutations of
//! `mutations.rs` and the targets in `fuzz/` both ask it.

use selvedge_family::host::change::Question;
use selvedge_family::host::decision::{Decisions, port_keys};
use selvedge_family::host::explain::{Lab, Pair};
use selvedge_family::host::inside::inside;
use selvedge_family::host::lint::lint;
use selvedge_family::host::log;
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::dump::dump;
use selvedge_family::host::nccl::graph::NodeKind;
use selvedge_family::host::nccl::graph_xml;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::search::graphs;
use selvedge_family::host::nccl::view::View;
use selvedge_family::host::nccl::xml::{Document, Element, Place, Strictness, read, write};
use selvedge_family::host::picture::{Picture, svg, svg_of_log};
use selvedge_family::host::widest::Widest;

/// The reader alone: strict and lenient readings agree, places are places of the text, and what is
/// written is read as the same again.
///
/// # Panics
/// Where one of these does not hold.
pub(crate) fn read_both_ways(text: &str) {
    read_as_log(text);
    for single_quotes in [true, false] {
        let strict = read(text, Strictness::AsNccl { single_quotes });
        let lenient = read(text, Strictness::Lenient { single_quotes });
        match (&strict, &lenient) {
            (Ok(strict), Ok(lenient)) => {
                assert_eq!(strict.tolerated, []);
                let refused = lenient.tolerated.iter().find(|it| it.quirk.is_refused());
                assert_eq!(refused, None, "refused by a strict reader");
                assert!(has_all(&lenient.root, &strict.root), "{strict:?} of {lenient:?}");
            }
            (Err(_), Ok(lenient)) => {
                let refused = lenient.tolerated.iter().find(|it| it.quirk.is_refused());
                assert_ne!(refused, None, "taken by a strict reader");
            }
            (Err(_), Err(_)) => {}
            (strict, lenient) => panic!("{strict:?} where leniently {lenient:?}"),
        }
        for error in [strict.err(), lenient.as_ref().err().cloned()].into_iter().flatten() {
            assert_is_in(text, error.place());
        }
        let Ok(lenient) = lenient else { continue };
        lenient.tolerated.iter().for_each(|it| assert_is_in(text, it.place));
        let written = write(&lenient.root);
        // Older versions have room for two bytes more in a value, and names are any bytes to all.
        let readings = [true, single_quotes]
            .map(|single_quotes| read(&written, Strictness::Lenient { single_quotes }));
        let same = |it: &Document| is_same(&it.root, &lenient.root);
        let again = readings.into_iter().flatten().find(same);
        let again = again.unwrap_or_else(|| panic!("read as another: {written}"));
        let form = again.tolerated.iter().find(|it| it.quirk.is_form());
        assert_eq!(form, None, "written in another form than NCCL's: {written}");
    }
}

fn assert_is_in(text: &str, place: Place) {
    let line = text.split('\n').nth(place.line as usize - 1).expect("a line of the text");
    let column = place.column as usize - 1;
    assert!(column <= line.len(), "{place} is behind the end of line {line:?}");
}

/// A log of the same text: whatever it tells is shown and drawn.
fn read_as_log(text: &str) {
    let Ok(logged) = log::read(text, None) else { return };
    let _ = logged.matrix.text();
    let way = logged.graph.as_ref().and_then(|graph| {
        let gpus = graph.kind(NodeKind::Gpu).iter();
        let ends: Vec<_> = gpus.chain(graph.kind(NodeKind::Net)).copied().collect();
        logged.way(*ends.first()?, *ends.last()?).ok()
    });
    let _ = svg_of_log(&logged, "log", way.as_ref());
}

/// Whether a tree is another one and perhaps elements that NCCL does not know.
fn has_all(tree: &Element, known: &Element) -> bool {
    let mut children = tree.children.iter();
    let has = |it: &Element| children.any(|child| has_all(child, it));
    tree.name == known.name && tree.attrs == known.attrs && known.children.iter().all(has)
}

/// Whether two trees differ in nothing but their places.
fn is_same(a: &Element, b: &Element) -> bool {
    let children = || a.children.iter().zip(&b.children).all(|(a, b)| is_same(a, b));
    a.name == b.name && a.attrs == b.attrs && a.children.len() == b.children.len() && children()
}

/// What is written about a server, of one that is searched at once: JSON is JSON, and a graph file
/// is read again.
fn write_all(view: &View) {
    const FEW: usize = 4;
    if FEW < view.gpus().len() || FEW < view.nets().len() {
        return;
    }
    if let Ok(text) = dump(view, "any.xml") {
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    }
    if let Ok(found) = graphs(view)
        && let Ok(root) = graph_xml::to_xml(view, &found.found)
    {
        read(&write(&root), Strictness::Lenient { single_quotes: true }).expect("a graph file");
        let _ = graph_xml::check(view, &root);
    }
    let _ = Decisions::of(view);
}

/// Everything that looks at a server, at this one.
///
/// # Panics
/// Where something does not hold.
pub(crate) fn ask_everything(text: &str) {
    let Ok(document) = read(text, Strictness::Lenient { single_quotes: true }) else { return };
    for profile in Profile::ALL {
        let question = Question::new(document.root.clone(), profile);
        let Ok(view) = question.view() else { continue };
        let _ = Matrix::of(&view).map(|it| it.text());
        let way = view.gpus().first().copied().zip(view.nets().first().copied());
        let _ = svg(&view, &Picture { title: String::new(), way });
        write_all(&view);
        let widest = Widest::of(&view);
        let ranks: Vec<i32> = view.gpus().iter().map(|it| view.graph.gpu(*it).rank).collect();
        if let [a, b, ..] = view.gpus() {
            let _ = widest.between(*a, *b);
        }
        let lab = Lab::new(question);
        if let [a, b, ..] = ranks[..] {
            let _ = lab.explain(Pair::P2p { a, b });
        }
        if let (Some(gpu), Some((_, net))) = (ranks.first(), port_keys(&view).first()) {
            let _ = lab.explain(Pair::Gdr { gpu: *gpu, net: *net, send: true });
        }
    }
    if let Ok(host) = inside("any.xml", text) {
        // Ports that lead out stand before those of PCIe: preflight measures them.
        let template = host.template;
        let is_out = |port: usize| template.link_from(port).is_none();
        let n_out = (0..template.ports().len()).filter(|it| is_out(*it)).count();
        assert!((0..n_out).all(is_out), "{template:?}");
    }
    // A mended file is mended: what `--fix` does leaves nothing for it to do.
    let newest = Profile::ALL[Profile::ALL.len() - 1];
    let Ok(report) = lint(text, newest) else { return };
    let mended = lint(&report.fixed, newest).expect("a mended file is read");
    let left = mended.findings.iter().find(|it| it.is_fixed);
    assert_eq!(left, None, "after mending to {}", report.fixed);
}
