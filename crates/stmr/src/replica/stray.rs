//! Who makes other calls than its siblings: it is found out, and goes.
//!
//! ```text
//! an event of another call ──► Accuse ──► a second finds the same ──► its sender has strayed
//!                                    └──► the others agree without me ──► I have
//! waits where nothing comes ──► Here ──► nothing that comes can mend it ──► ended by its siblings
//! ```

use std::cmp::Ordering;

use super::{Note, Replica, Sibling, Step};
use crate::message::{Event, EventKind, Message, Place};
use crate::verdict::{Double, Offer, SetId};

impl Replica {
    /// Whether a sibling that said that it waits at this place, or at none, makes other calls than
    /// this replica, which is at a compare, or waits at `own` itself.  It is so for good: nothing
    /// that comes can mend it.
    #[must_use]
    pub fn is_elsewhere(&self, set: SetId, place: Option<&Place>, own: Option<&Place>) -> bool {
        if let Some(offer) = self.cluster[set.idx()].offers.at(self.call) {
            // It came to the compare, and had not taken what comes before that here.  What it said
            // comes behind its offer, and may be of what follows.
            return own.is_some_and(|it| offer.event <= it.event);
        }
        let Some(&Place { event, kind, shape }) = place else { return false };
        // What several wait for may have come to each in another order.
        let is_taken = |it: &Event| (it.kind, it.shape) == (kind, shape);
        if kind == EventKind::Data && self.log.iter().any(is_taken) {
            return false;
        }
        match event.cmp(&self.event) {
            Ordering::Less => {
                let taken = self.log.iter().find(|it| it.number == event);
                taken.is_some_and(|it| (it.kind, it.shape) != (kind, shape))
            }
            Ordering::Equal => match own {
                Some(own) => Some(own) != place,
                None => self.offered.is_some(),
            },
            // It has come past this event without a word, of which it was to say what it is; or
            // past the compare before it without an offer.
            Ordering::Greater => match own {
                Some(own) => {
                    let is_known = |it: &Sibling| it.events.contains_key(&own.event);
                    own.kind == EventKind::Decision
                        && self.meta == Some(set)
                        && !self.cluster.iter().any(is_known)
                }
                None => self.offered.is_some(),
            },
        }
    }

    /// Whether this replica, at a compare, is elsewhere than all its siblings, which wait at one
    /// place: then it is this one that errs.
    #[must_use]
    pub fn is_alone(&self, places: &[Option<Place>]) -> bool {
        let others = self.others();
        let there = |it: &SetId| places[it.idx()];
        self.offered.is_some()
            && 1 < others.len()
            && others.windows(2).all(|it| there(&it[0]) == there(&it[1]))
            && others.iter().all(|it| self.is_elsewhere(*it, there(it).as_ref(), None))
    }

    /// Whether each of three replicas is elsewhere than both others, for good; they wait at these
    /// places, and this one at `own` or at a compare.
    #[must_use]
    pub fn is_split(&self, places: &[Option<Place>], own: Option<&Place>) -> bool {
        let [one, other] = self.others()[..] else { return false };
        let has_offered = |it: &SetId| self.has_offered(*it);
        if self.offered.is_some() && [one, other].iter().all(has_offered) {
            // Then the compare says what comes of it: some contents may differ.
            return false;
        }
        let place = |it: SetId| places[it.idx()];
        let offer = |it: SetId| self.cluster[it.idx()].offers.at(self.call);
        let differs = |it: SetId| {
            let offers = self.offered.as_ref().zip(offer(it));
            offers.is_some_and(|(own, it)| !own.agrees(it))
                || self.is_elsewhere(it, place(it).as_ref(), own)
        };
        // Who waits for what the other had before its compare may come to the same.
        let comes_no_more =
            |waits: Option<Place>, offer: &Offer| waits.is_some_and(|it| offer.event <= it.event);
        let is_apart = match (offer(one), offer(other)) {
            (Some(one), Some(other)) => !one.agrees(other),
            (Some(it), None) => comes_no_more(place(other), it),
            (None, Some(it)) => comes_no_more(place(one), it),
            (None, None) => place(one)
                .zip(place(other))
                .is_some_and(|(one, other)| one.event == other.event && one != other),
        };
        is_apart && differs(one) && differs(other)
    }

    /// Whether a sibling has offered the same at the compare that this replica is at.
    #[must_use]
    pub fn is_agreed_with(&self, set: SetId) -> bool {
        let offer = self.cluster[set.idx()].offers.at(self.call);
        self.offered.zip(offer).is_some_and(|(own, it)| own.agrees(it))
    }

    pub(super) fn expel(&mut self, set: SetId) {
        let it = &mut self.cluster[set.idx()];
        if !it.strayed {
            it.strayed = true;
            it.events.clear();
            it.echoes.clear();
            self.unhear_looks(set);
            self.notes.push_back(Note::Strayed(set));
        }
    }

    /// Whether all siblings found an event of this replica's to be of another call.
    pub(super) fn is_expelled(&self) -> bool {
        let accusers =
            self.siblings().filter(|it| self.accused_by(*it).is_some_and(|of| of == self.own));
        1 < accusers.count()
    }

    fn accused_by(&self, set: SetId) -> Option<SetId> {
        self.cluster[set.idx()].accuses.map(|(of, _)| of)
    }

    pub(super) fn accuse(&mut self, set: SetId) -> Step {
        let event = self.event;
        self.cluster[self.own.idx()].accuses = Some((set, event));
        self.tell_all(Message::Accuse { set, event });
        self.settle();
        self.accused().unwrap_or(Step::Wait)
    }

    /// Whether whoever should settle the event to come is at the compare that comes after it here,
    /// and did not: it has not come to it, or past it without a word.  What comes in it tells only
    /// to those that it knows to have left.
    pub(super) fn has_skipped(&self, set: SetId, kind: EventKind) -> bool {
        let offer = self.cluster[set.idx()].offers.at(self.call);
        offer.is_some_and(|it| kind == EventKind::Decision || it.event <= self.event)
    }

    /// An event that two find to be of another call than their own was its sender's error.
    pub(super) fn expel_accused(&mut self) {
        let Some(accused) = self.cluster[self.own.idx()].accuses else { return };
        let it = &self.cluster[accused.0.idx()];
        if it.dead && !it.events.contains_key(&accused.1) {
            // It settled nothing; whoever is the meta after it does.
            self.cluster[self.own.idx()].accuses = None;
            return;
        }
        let agrees = |it: &SetId| self.cluster[it.idx()].accuses == Some(accused);
        if self.siblings().any(|it| agrees(&it)) {
            self.expel(accused.0);
            self.cluster[self.own.idx()].accuses = None;
        }
    }

    /// What follows from having found an event to be of another call than one's own.
    pub(super) fn accused(&mut self) -> Option<Step> {
        if self.is_expelled() {
            return Some(Step::Leave);
        }
        let (accused, number) = self.cluster[self.own.idx()].accuses?;
        let offer = |it: SetId| self.cluster[it.idx()].offers.at(self.call);
        let offers: Vec<&Offer> = self.siblings().filter_map(offer).collect();
        if let [one, other] = offers[..] {
            // Neither comes to this event any more.
            let why = Step::Restart(Double::NoMajority);
            return Some(if one.agrees(other) { Step::Leave } else { why });
        }
        let third = self.siblings().find(|it| *it != accused && self.is_there(*it));
        let Some(third) = third else { return Some(Step::Restart(Double::NoMajority)) };
        let went_on = offer(third).is_some_and(|it| number < it.event);
        if went_on && !self.is_there(accused) {
            return Some(Step::Restart(Double::NoMajority));
        }
        Some(Step::Wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digest, Shape};
    use crate::message::EventKind;
    use crate::replica::{Input, Passed, ReplicaOptions};

    #[test]
    fn who_waits_for_what_was_not_taken_here_is_elsewhere() {
        let options = ReplicaOptions { own: SetId::new(0), replicas: 3, trust_after: 2 };
        let (mut replica, sibling) = (Replica::new(options), SetId::new(1));
        let place = |event, shape| Place { event, kind: EventKind::Data, shape: Shape(shape) };
        // It has taken event 0 at the call of shape 1, and is at one of shape 2.
        assert_eq!(replica.begin(EventKind::Data, Shape(1)), Step::Do);
        replica.finish(EventKind::Data, Shape(1), Vec::new().into());
        let own = place(1, 2);
        for (other, is_elsewhere) in
            [(place(0, 1), false), (place(0, 9), true), (own, false), (place(1, 9), true)]
        {
            assert_eq!(
                replica.is_elsewhere(sibling, Some(&other), Some(&own)),
                is_elsewhere,
                "{other:?}"
            );
        }
        assert!(
            !replica.is_elsewhere(sibling, Some(&place(5, 9)), Some(&own)),
            "who is ahead is not judged"
        );
        let decision = Place { kind: EventKind::Decision, ..place(0, 1) };
        assert!(replica.is_elsewhere(sibling, Some(&decision), Some(&own)));
        // At a compare nothing more comes in before it.
        assert!(!replica.is_elsewhere(sibling, Some(&place(1, 2)), None), "it is at nothing yet");
        replica.offer(Shape(3), Digest::of(b"x"), 1);
        assert!(replica.is_elsewhere(sibling, Some(&place(1, 2)), None));
        assert!(!replica.is_elsewhere(sibling, Some(&place(0, 1)), None));
        // Whoever has offered the same may wait for what follows.
        let mut offer = *replica.cluster[0].offers.at(0).expect("it was offered above");
        offer.yields = true;
        replica.handle(Input::Message(sibling, Message::Offer(offer)));
        assert!(!replica.is_elsewhere(sibling, Some(&place(1, 2)), None));
    }

    #[test]
    fn who_comes_to_a_compare_without_what_comes_before_it_is_elsewhere_and_finds_it_itself() {
        let sets: Vec<SetId> = SetId::all(3).collect();
        let options = |own| ReplicaOptions { own, replicas: 3, trust_after: 2 };
        let mut replicas: Vec<Replica> = sets.iter().map(|it| Replica::new(options(*it))).collect();
        let own = Place { event: 0, kind: EventKind::Data, shape: Shape(1) };
        assert_eq!(replicas[0].begin(own.kind, own.shape), Step::Do);
        assert!(!replicas[0].is_elsewhere(sets[2], None, Some(&own)), "it may compute");
        replicas[2].offer(Shape(1), Digest::of(b"x"), 1);
        let offer = *replicas[2].cluster[2].offers.at(0).expect("it was offered above");
        replicas[0].handle(Input::Message(sets[2], Message::Offer(offer)));
        assert!(replicas[0].is_elsewhere(sets[2], None, Some(&own)));
        assert!(!replicas[0].is_alone(&[None, Some(own), None]), "it is at no compare");
        assert!(replicas[2].is_alone(&[Some(own), Some(own), None]));
        assert!(!replicas[2].is_alone(&[Some(own), None, None]), "one may compute");
    }

    #[test]
    fn three_contents_of_one_compare_are_left_to_its_verdict() {
        let sets: Vec<SetId> = SetId::all(3).collect();
        let options = ReplicaOptions { own: sets[0], replicas: 3, trust_after: 2 };
        let mut replica = Replica::new(options);
        let offer = |set: SetId, shape| {
            let mut it = Replica::new(ReplicaOptions { own: set, ..options });
            it.offer(Shape(shape), Digest::of(&[set.idx() as u8]), 1);
            Message::Offer(*it.cluster[set.idx()].offers.at(0).expect("it was offered above"))
        };
        let places = [None; 3];
        replica.handle(Input::Message(sets[1], offer(sets[1], 1)));
        replica.handle(Input::Message(sets[2], offer(sets[2], 1)));
        let own = Place { event: 0, kind: EventKind::Data, shape: Shape(1) };
        assert!(replica.is_split(&places, Some(&own)), "this one is at an event that no other has");
        replica.offer(Shape(1), Digest::of(&[0]), 1);
        assert!(!replica.is_split(&places, None));
        let verdict = Some(Passed::Restart(Double::NotDeterministic));
        assert_eq!(replica.passed(), verdict);
    }
}
