//! Pages that are looked at, drawn again as things change: once for all who look.
//!
//! ```text
//!   viewer ─┐                         ┌─ once a second, while anybody looks:
//!   viewer ─┼─ watch(page) ◄── drawer ┤  see ─► draw ─► what differs ─► one message
//!   viewer ─┘                         └─ with the last viewer it ends
//! ```
//! A message holds the parts of the page that have changed, as markup, and the order of all parts.
//! Whoever comes anew, or was too slow for a message, is sent the whole page instead, so nobody
//! is waited for.  As long as the journal has no new row, nothing but the line of state is drawn.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::api::error::ApiError;
use crate::house::House;
use crate::limits;
use crate::page::sheet::Part;
use crate::page::state::Standing;
use crate::page::{Page, trouble_parts};
use crate::share::Share;
use crate::users::Who;

/// All pages that are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Hub(Arc<Mutex<BTreeMap<Page, watch::Sender<Frame>>>>);

/// A page as it was last drawn.
#[derive(Clone, Debug, Default)]
struct Frame {
    /// Counts the drawings that differed.
    number: u64,
    parts: Arc<Vec<Part>>,
    /// What leads here from the frame before.
    step: Bytes,
}

impl Hub {
    fn pages(&self) -> MutexGuard<'_, BTreeMap<Page, watch::Sender<Frame>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who look at `page`; the first of them has it drawn.
    fn join(&self, house: &House, page: Page) -> Result<watch::Receiver<Frame>, ApiError> {
        let mut pages = self.pages();
        if let Some(sender) = pages.get(&page) {
            return Ok(sender.subscribe());
        }
        if limits::PAGES_LIVE_MAX <= pages.len() {
            return Err(ApiError::busy());
        }
        let (sender, receiver) = watch::channel(Frame::default());
        pages.insert(page.clone(), sender.clone());
        let drawer = Drawer { house: house.clone(), page, sender, seen: None };
        tokio::spawn(drawer.run(self.clone()));
        Ok(receiver)
    }

    /// Whether nobody looks at `page` any longer; it is then forgotten.
    fn is_left(&self, page: &Page, sender: &watch::Sender<Frame>) -> bool {
        let mut pages = self.pages();
        let is_left = sender.receiver_count() == 0;
        if is_left {
            pages.remove(page);
        }
        is_left
    }
}

/// Who draws one page.
struct Drawer {
    house: House,
    page: Page,
    sender: watch::Sender<Frame>,
    /// The row of the journal that it was drawn at, and when.
    seen: Option<(u64, Instant)>,
}

impl Drawer {
    async fn run(mut self, hub: Hub) {
        let mut ticks = tokio::time::interval(limits::PAGE_DRAW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if hub.is_left(&self.page, &self.sender) {
                return;
            }
            // A loop that is too busy may have time for the next drawing; one that stops has none,
            // and its viewers are told so.
            if let Ok(parts) = self.draw().await {
                self.tell(parts);
            }
        }
    }

    /// The parts of the page as they are, or the line of state alone if nothing else can differ.
    async fn draw(&mut self) -> Result<Vec<Part>, ApiError> {
        let (page, seen) = (self.page.clone(), self.seen);
        let (row, standing, seen) = self
            .house
            .look(move |shell| {
                let row = shell.saved();
                let is_new = |(at, when): (u64, Instant)| {
                    at != row || limits::PAGE_DRAW_AFTER <= when.elapsed()
                };
                let seen = seen.is_none_or(is_new).then(|| page.look(shell));
                (row, Standing::of(shell), seen)
            })
            .await?;
        let Some(seen) = seen else {
            let mut parts = self.sender.borrow().parts.to_vec();
            if let Some(first) = parts.first_mut() {
                *first = standing.draw();
            }
            return Ok(parts);
        };
        let (standing, drawing) = seen.whole(&self.house, self.page.clone()).await?;
        let parts = match drawing {
            Ok(drawing) => drawing().parts,
            Err(error) => trouble_parts(&error),
        };
        self.seen = Some((row, Instant::now()));
        Ok(std::iter::once(standing.draw()).chain(parts).collect())
    }

    /// Tells all who look what differs, if anything does.
    fn tell(&self, parts: Vec<Part>) {
        self.sender.send_if_modified(|frame| {
            if *frame.parts == parts {
                return false;
            }
            let known = |it: &&Part| !frame.parts.contains(it);
            let step = message(&parts, parts.iter().filter(known));
            *frame = Frame { number: frame.number + 1, parts: Arc::new(parts), step };
            true
        });
    }
}

/// One server-sent event: the order of all parts, and those that are sent.
fn message<'a>(all: &[Part], sent: impl Iterator<Item = &'a Part>) -> Bytes {
    let order: Vec<&str> = all.iter().map(|it| it.id).collect();
    let sent: BTreeMap<&str, &str> = sent.map(|it| (it.id, it.html.as_str())).collect();
    let text = serde_json::json!({ "order": order, "parts": sent });
    Bytes::from(format!("data: {text}\n\n"))
}

/// One who looks.
struct Viewer {
    frames: watch::Receiver<Frame>,
    stop: watch::Receiver<bool>,
    /// The number of the frame that it was sent.
    at: u64,
    share: Share,
}

impl Viewer {
    /// What to send next; none once the server stops.
    async fn next(&mut self) -> Option<Bytes> {
        let changed = tokio::time::timeout(STILL_EVERY, self.frames.changed());
        tokio::select! {
            () = crate::listen::stopped(&mut self.stop) => return None,
            () = self.share.ended() => return None,
            changed = changed => match changed {
                // A line that says nothing finds out whether anybody still listens.
                Err(_) => return Some(Bytes::from_static(b": still here\n\n")),
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {}
            },
        }
        let frame = self.frames.borrow_and_update().clone();
        let is_next = self.at != 0 && frame.number == self.at + 1;
        self.at = frame.number;
        Some(if is_next { frame.step } else { message(&frame.parts, frame.parts.iter()) })
    }
}

/// How often a viewer of a page that does not change hears that the server is there.
const STILL_EVERY: Duration = Duration::from_secs(15);

/// The changes of the page at the address after `/live`.
pub(super) async fn live(
    State(house): State<House>,
    Extension(hub): Extension<Hub>,
    Extension(who): Extension<Who>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let path = uri.path().strip_prefix("/live").unwrap_or_default();
    let page = Page::of(path, uri.query()).ok_or_else(|| ApiError::no_such("page", path))?;
    let share = house.shares().take(&who)?;
    let mut frames = hub.join(&house, page)?;
    // The newest frame counts as not seen, unless none has been drawn yet.
    if frames.borrow().number != 0 {
        frames.mark_changed();
    }
    let viewer = Viewer { frames, stop: house.stopping(), at: 0, share };
    let messages = stream::unfold(viewer, |mut viewer| async move {
        let bytes = viewer.next().await?;
        Some((Ok::<_, Infallible>(bytes), viewer))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(messages)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &'static str, html: &str) -> Part {
        Part { id, html: html.to_owned() }
    }

    #[test]
    fn a_message_says_the_order_and_stays_on_its_line() {
        let all = [part("a", "<p>1\n2</p>"), part("b", "<p>\"</p>")];
        let text = message(&all, all[..1].iter());
        let want = "data: {\"order\":[\"a\",\"b\"],\"parts\":{\"a\":\"<p>1\\n2</p>\"}}\n\n";
        assert_eq!(std::str::from_utf8(&text).unwrap(), want);
    }
}
