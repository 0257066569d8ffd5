//! What `pod show --svg` draws, gathered from a running server.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::{Client, path_text};
use crate::cmd::cube::{CubePage, Cubes};
use crate::cmd::job::Jobs;
use crate::cmd::pod::no_pod;
use crate::failure::Outcome;
use crate::render::number;
use crate::render::pod_map::{MapJob, PodMap, Seat, Tile, svg};

#[derive(Debug, Deserialize)]
struct Plant {
    name: String,
}

/// The picture of the pod called `name`, or of the first.
pub(crate) fn draw(client: &Client, name: Option<&str>) -> Outcome<String> {
    let Cubes { mut cubes } = client.get("/v1/cubes")?;
    let first = cubes.first().map(|it| it.pod.clone()).unwrap_or_default();
    let pod = name.map_or(first, str::to_owned);
    cubes.retain(|it| it.pod == pod);
    if cubes.is_empty() {
        return Err(no_pod(&pod));
    }
    let mut tiles = Vec::with_capacity(cubes.len());
    for cube in &cubes {
        tiles.push(tile(client, &cube.name)?);
    }
    let Jobs { jobs } = client.get("/v1/jobs?state=starting,running,stopping")?;
    let on_map = |id: u32| tiles.iter().any(|it| it.chips.iter().any(|seat| seat.job == Some(id)));
    let jobs: BTreeMap<u32, MapJob> = jobs
        .into_iter()
        .filter(|it| on_map(it.id))
        .map(|it| (it.id, MapJob { name: it.name, shape: it.shape, chips: it.chips }))
        .collect();
    let seats = || tiles.iter().flat_map(|it| &it.chips);
    let n_all = seats().count() as u64;
    let n_used = seats().filter(|it| it.job.is_some()).count() as u64;
    let n_out = seats().filter(|it| it.is_out).count() as u64;
    let subtitle = format!(
        "{} of {} chips in use ({}), {} out of use",
        number::grouped(n_used),
        number::grouped(n_all),
        number::share(n_used as f64 / n_all as f64),
        number::grouped(n_out)
    );
    let Plant { name } = client.get("/v1/status")?;
    Ok(svg(&PodMap { title: format!("{name}, {pod}"), subtitle, cubes: tiles, jobs }))
}

fn tile(client: &Client, cube: &str) -> Outcome<Tile> {
    let page: CubePage = client.get(&format!("/v1/cubes/{}", path_text(cube)))?;
    let chips = page.machines.iter().flat_map(|it| &it.chips);
    let chips = chips.map(|it| Seat { job: it.job, is_out: it.out }).collect();
    Ok(Tile { name: cube.to_owned(), chips })
}
