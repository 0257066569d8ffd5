//! Planning beside the loop: what may take longer than the loop may be kept from its inputs.
//!
//! ```text
//!   the loop ── the newest question ──► a thread ── what was planned, as an input ──► the loop
//! ```
//! A question holds all that it reads, so the loop goes on meanwhile; whether what was planned
//! still helps when it comes back is the core's to say.  After each question the thread rests for
//! as long as it took: a plant in which nothing helps does not cost more than half of a core.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

use selvedge_control::input::Input;
use selvedge_control::schedule::defragment::question::Question;

use crate::limits;

/// Whom an answer is said to; false when nobody listens any more.
pub(crate) type Say = Box<dyn Fn(Input) -> bool + Send>;

/// The loop's side of the thread.
#[derive(Debug)]
pub(crate) struct Planner {
    questions: Sender<Arc<Question>>,
}

impl Planner {
    /// A planner; it ends once it is dropped.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn begin(say: Say) -> std::io::Result<Self> {
        let (questions, asked) = mpsc::channel::<Arc<Question>>();
        let work = move || {
            while let Ok(first) = asked.recv() {
                // A later request has taken the place of those before it.
                let question = asked.try_iter().last().unwrap_or(first);
                let begun = Instant::now();
                let answer = question.answer();
                let took = begun.elapsed();
                if !say(answer) {
                    return;
                }
                tracing::debug!(request = question.number(), ?took, "planned moves");
                std::thread::sleep(took.min(limits::PLANNER_REST_MAX));
            }
        };
        std::thread::Builder::new().name("selvedge-plans".to_owned()).spawn(work)?;
        Ok(Self { questions })
    }

    /// Asks.
    pub(crate) fn ask(&self, question: Arc<Question>) {
        if self.questions.send(question).is_err() {
            tracing::error!("the planner's thread is gone; nobody is moved until the next start");
        }
    }
}
