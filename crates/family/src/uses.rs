//! Which of the cables that leave its parts a placed job uses: the one answer for whoever wires,
//! tests, evicts, swaps and plans.
//!
//! | the cable leads to | used by a job that holds the part whole |
//! |---|---|
//! | a circuit switch | if the part is a cube: a torus, also of one cube, closes through it |
//! | another part | if the job has that too, and its place was not made without the cable |
//! | a packet switch | if the job has another part, which it reaches so |
//!
//! A job that holds only some seats of a part stays within it and uses none.  So does one host
//! alone, and a partition at its own border: what fails beyond is another's.

use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::id::{PartId, PortId};
use selvedge_model::job::Place;

use crate::torus;

/// Whether jobs on `part` are joined through circuit switches, whose mirrors are turned for them.
pub fn is_switched(fabric: &Fabric, part: PartId) -> bool {
    fabric.template_of(part).name == torus::hardware::TEMPLATE
}

/// Whether a job on `place` holds all of `part`.
pub fn holds_whole(fabric: &Fabric, place: &Place, part: PartId) -> bool {
    let all = fabric.template_of(part).all_seats();
    place.holds.iter().any(|it| it.part == part && it.seats == all)
}

/// Whether a job on `place` uses the cable at `port`, an end on one of its parts; never where there
/// is none.
pub fn uses_cable(fabric: &Fabric, place: &Place, port: PortId) -> bool {
    let part = fabric.part_of_port(port);
    let Some(far) = fabric.cable_at(port).and_then(|_| fabric.peer_of(port)) else { return false };
    if !holds_whole(fabric, place, part) {
        return false;
    }
    let to = fabric.part_of_port(far);
    match fabric.template_of(to).role {
        Role::CircuitSwitch => is_switched(fabric, part),
        Role::Compute => holds_whole(fabric, place, to) && !place.is_without(port),
        Role::PacketSwitch => 1 < place.holds.len(),
    }
}

#[cfg(test)]
mod tests {
    use selvedge_model::fault::Target;
    use selvedge_model::id::PoolId;
    use selvedge_model::job::Hold;
    use selvedge_model::spec::Plant;

    use super::*;

    const HOSTS: &str = r#"format = 1
name = "t"
[[pod]]
family = "hosts"
hosts = 3
[[template]]
name = "tor"
role = "packet-switch"
nodes = [{ name = "s", kind = "switch" }]
ports = [{ name = "p0", node = "s" }, { name = "p1", node = "s" }]
[[part]]
name = "tor0"
template = "tor"
[[cable]]
a = "host0/nic0/port"
b = "host1/nic0/port"
gbps = 400
[[cable]]
a = "host0/nic1/port"
b = "tor0/p0"
gbps = 400
"#;

    /// The ends of `parts` at which a job on all seats of them uses a cable.
    fn used(plant: &str, parts: &[&str], without: &[&str]) -> Vec<String> {
        let plant = Plant::parse("t.toml", plant).unwrap_or_else(|it| panic!("{it:?}"));
        let fabric = crate::build(&plant).unwrap();
        let port = |path: &&str| match fabric.find(path) {
            Some(Target::Port(port)) => port,
            other => panic!("{path} is {other:?}"),
        };
        let parts: Vec<PartId> = parts.iter().map(|it| fabric.part_named(it).unwrap()).collect();
        let hold = |&part: &PartId| Hold { part, seats: fabric.template_of(part).all_seats() };
        let mut place = Place::of(PoolId::new(0), parts.iter().map(hold).collect());
        place.without = without.iter().map(port).collect();
        place.without.sort_unstable();
        let ports = parts.iter().flat_map(|&it| fabric.ports_of(it));
        let used = ports.filter(|&it| uses_cable(&fabric, &place, it));
        used.map(|it| fabric.port_path(it)).collect()
    }

    #[test]
    fn one_host_alone_uses_no_cable_and_two_use_what_joins_them() {
        assert_eq!(used(HOSTS, &["host0"], &[]), [""; 0]);
        assert_eq!(used(HOSTS, &["host2"], &[]), [""; 0]);
        let both = ["host0/nic0/port", "host0/nic1/port", "host1/nic0/port"];
        assert_eq!(used(HOSTS, &["host0", "host1"], &[]), both);
        // Over the switch alone, to whoever is there.
        assert_eq!(used(HOSTS, &["host0", "host2"], &[]), ["host0/nic1/port"]);
    }

    #[test]
    fn a_cube_alone_closes_through_its_switches_and_a_board_has_a_border() {
        let cubes = "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 2\n";
        assert_eq!(used(cubes, &["cube1"], &[]).len(), 96);
        let boards =
            "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"1x3\"\n";
        assert_eq!(used(boards, &["board0.0"], &[]), [""; 0]);
        let joined = used(boards, &["board0.0", "board0.1"], &[]);
        assert!(!joined.is_empty(), "neighbours are joined");
        let ends: Vec<&str> = joined.iter().map(String::as_str).collect();
        assert_eq!(used(boards, &["board0.0", "board0.1"], &ends), [""; 0]);
        assert_eq!(used(boards, &["board0.0", "board0.2"], &[]), [""; 0]);
    }
}
