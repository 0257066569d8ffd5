//! Channels that are only a head: NVLS over the NVSwitches, and direct channels to a reducing
//! network.

use crate::host::nccl::graph::NodeKind;
use crate::host::nccl::path::PathKind;
use crate::host::nccl::search::RefusedSearch;
use crate::host::nccl::search::routes::{RouteIdx, Toll};
use crate::host::nccl::search::state::Search;
use crate::host::nccl::search::walk::Task;

impl Search<'_> {
    /// All GPUs read from the switches and write to them, the head twice as much.
    pub(super) fn try_switch(&mut self, head: u16) {
        let mut down = 0;
        while down < self.gpus && self.cross(head, down, false) {
            down += 1;
        }
        let mut up = 0;
        if down == self.gpus {
            while up < self.gpus && self.cross(head, up, true) {
                up += 1;
            }
        }
        self.tasks.push(Task::LeaveSwitch { head, down: down as u32, up: up as u32 });
        if up == self.gpus {
            self.visit_end(head);
        }
    }

    pub(super) fn leave_switch(&mut self, head: u16, down: u32, up: u32) {
        for (count, up) in [(up, true), (down, false)] {
            for gpu in (0..count as usize).rev() {
                let (route, toll, times) = self.crossing(head, gpu, up);
                self.routes.unfollow(&mut self.ledger, route, &toll);
                self.draft.hops -= times * self.routes.get(route).hops;
            }
        }
    }

    fn crossing(&self, head: u16, gpu: usize, up: bool) -> (RouteIdx, Toll, i32) {
        let route =
            if up { self.routes.gpu_to_switch(gpu) } else { self.routes.switch_to_gpu(gpu) };
        if gpu == usize::from(head) {
            (route, self.tolls.twice, 2)
        } else {
            (route, self.tolls.intra, 1)
        }
    }

    fn cross(&mut self, head: u16, gpu: usize, up: bool) -> bool {
        let (route, toll, times) = self.crossing(head, gpu, up);
        let kind = self.routes.get(route).kind;
        // How far is asked of the others, not of the head.
        let far = times == 1 && kind > self.draft.kind_intra;
        if !self.profile.has_c2c() {
            let end = self.view.gpus()[gpu];
            if up && !self.view.paths.knows(end, NodeKind::Nvs) {
                // Where a channel begins at a port, NCCL passes over its own error.
                if !self.by_port {
                    let rank = self.view.graph.gpu(end).rank;
                    self.refused = Some(RefusedSearch::NoSwitch { rank });
                }
                return false;
            }
            // No way at all is passed over, from 2.19 on for the head alone.
            if self.routes.get(route).hops == 0 && !(far && self.profile.has_hosts()) {
                return true;
            }
        }
        if kind >= PathKind::Dis || far {
            return false;
        }
        let followed = self.routes.follow(&mut self.ledger, route, &toll);
        if followed {
            self.draft.hops += times * self.routes.get(route).hops;
        }
        followed
    }

    /// The head talks to each other GPU, each way with its share.
    pub(super) fn try_direct(&mut self, head: u16) {
        let mut forth = 0;
        while forth < self.gpus && self.talk(head, forth, true) {
            forth += 1;
        }
        let mut back = 0;
        if forth == self.gpus {
            while back < self.gpus && self.talk(head, back, false) {
                back += 1;
            }
        }
        self.tasks.push(Task::LeaveDirect { head, forth: forth as u32, back: back as u32 });
        if back == self.gpus {
            let place = self.draft.channels * self.gpus;
            let others = (0..self.gpus as u16).filter(|it| *it != head);
            for (step, gpu) in others.enumerate() {
                self.draft.gpus[place + 1 + step] = gpu;
            }
            self.visit_end(head);
        }
    }

    pub(super) fn leave_direct(&mut self, head: u16, forth: u32, back: u32) {
        for (count, forth) in [(back, false), (forth, true)] {
            for gpu in (0..count as usize).rev() {
                let route = self.talking(head, gpu, forth);
                self.routes.unfollow(&mut self.ledger, route, &self.tolls.share);
                self.add_share(route, -1.0);
            }
        }
    }

    fn talking(&self, head: u16, gpu: usize, forth: bool) -> RouteIdx {
        let head = usize::from(head);
        if forth { self.routes.gpu_to_gpu(head, gpu) } else { self.routes.gpu_to_gpu(gpu, head) }
    }

    fn talk(&mut self, head: u16, gpu: usize, forth: bool) -> bool {
        let route = self.talking(head, gpu, forth);
        // Of two GPUs the share is all, and only then NCCL asks how far they are apart.
        let kind = self.routes.get(route).kind;
        let far = self.gpus == 2 && kind > self.draft.kind_intra;
        if kind >= PathKind::Dis || far {
            return false;
        }
        let followed = self.routes.follow(&mut self.ledger, route, &self.tolls.share);
        if followed {
            self.add_share(route, 1.0);
        }
        followed
    }

    /// NCCL counts a share of the hops, and cuts the sum to a whole number each time.
    fn add_share(&mut self, route: RouteIdx, sign: f32) {
        let share = (1.0 / f64::from(self.gpus.saturating_sub(1).max(1) as f32)) as f32;
        let hops = self.draft.hops as f32 + sign * share * self.routes.get(route).hops as f32;
        self.draft.hops = hops as i32;
    }
}
