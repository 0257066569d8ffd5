//! How Open MPI 4 starts its daemons on other hosts: by an agent, such as ssh.
//!
//! ```text
//! agent ends with 0 ─────────────────────────────► Open MPI goes on
//! not with 0, before all processes have called ──► the daemon never began: Open MPI ends the job
//! not with 0, later ──────────────────────────────► the host is lost: Open MPI is told 0
//! ```
//!
//! ssh does not end with 0 when its host is lost, which Open MPI takes for a daemon that never
//! began.  So a script stands before the agent, which knows how far the job is by its folder.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::folder::{Folder, LOCALS};
use super::launcher::Launcher;
use super::program::find;
use super::{MpirunError, MpirunOptions, io_error};

/// How a parameter of Open MPI's is named before it and its value.
const PARAMETER: [&str; 4] = ["--mca", "-mca", "--gmca", "-gmca"];

/// What the agent's is called; the last two are what it was called before.
const NAMES: [&str; 3] = ["plm_rsh_agent", "orte_rsh_agent", "pls_rsh_agent"];

/// What begins the name of a parameter in the environment.
const IN_ENVIRONMENT: &str = "OMPI_MCA_";

/// Files where it may stand: a person's and the machine's.
const OF_PERSON: &str = ".openmpi/mca-params.conf";
const OF_MACHINE: [&str; 2] =
    ["etc/openmpi-mca-params.conf", "/etc/openmpi/openmpi-mca-params.conf"];

/// Agents of its own that Open MPI takes where they are, by what says so in its environment.
const OTHERS: [&str; 2] = ["PE_HOSTFILE", "LOADL_STEP_ID"];

/// What Open MPI takes if nobody says anything.
const USUAL: &str = "ssh : rsh";

/// Where an agent is named.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Where {
    /// In the launcher's arguments, at this place.
    Arg(usize),
    Elsewhere,
}

/// What of a launcher's arguments is to be replaced, and what is to be added to them.
#[derive(Debug, Default)]
pub(super) struct Agent {
    /// Its place among the arguments, and what stands there.
    replaced: Vec<(usize, OsString)>,
    added: Vec<OsString>,
}

impl Agent {
    /// Puts a script before the agent of a launcher that has one, if processes may run elsewhere.
    pub(super) fn guard(
        options: &MpirunOptions,
        launcher: &Launcher,
        folder: &Folder,
    ) -> Result<Self, MpirunError> {
        let nothing = Self::default();
        let is_another = || OTHERS.iter().any(|it| std::env::var_os(it).is_some());
        if !launcher.is_open_mpi_4 || !launcher.may_leave_host(options) || is_another() {
            return Ok(nothing);
        }
        let variables = std::env::vars_os().collect();
        let files = files(&launcher.path);
        let (said, at) = said(&options.launcher_args, &variables, &files);
        let Some(words) = first_there(&said) else { return Ok(nothing) };
        let mut value = write(folder, &words)?.into_os_string();
        // Daemons, which may start others, have no such script, and take the next that is there.
        said.split(':').for_each(|it| value.push(format!(":{}", it.trim())));
        Ok(match at {
            Where::Arg(idx) => Self { replaced: vec![(idx, value)], ..nothing },
            Where::Elsewhere => {
                let added = ["--mca".into(), NAMES[0].into(), value];
                Self { added: added.into(), ..nothing }
            }
        })
    }

    /// The launcher's arguments with it.
    pub(super) fn args(&self, given: &[OsString]) -> Vec<OsString> {
        let mut args = given.to_vec();
        for (idx, value) in &self.replaced {
            args[*idx].clone_from(value);
        }
        args.extend(self.added.iter().cloned());
        args
    }
}

/// The texts of the files that may name an agent.
fn files(launcher: &Path) -> Vec<String> {
    let home = find(launcher).and_then(|it| Some(it.parent()?.parent()?.to_owned()));
    let of_person = std::env::var_os("HOME").map(|it| PathBuf::from(it).join(OF_PERSON));
    let of_machine = OF_MACHINE.map(|it| home.clone().unwrap_or_default().join(it));
    let paths = of_person.into_iter().chain(of_machine);
    paths.filter_map(|it| fs::read_to_string(it).ok()).collect()
}

/// Which agents are to be tried, and where that is said.
fn said(
    args: &[OsString],
    variables: &BTreeMap<OsString, OsString>,
    files: &[String],
) -> (String, Where) {
    let is_one_of = |it: &OsStr, words: &[&str]| words.iter().any(|word| it == *word);
    let given = args
        .windows(3)
        .enumerate()
        .rev()
        .find(|(_, it)| is_one_of(&it[0], &PARAMETER) && is_one_of(&it[1], &NAMES));
    if let Some((idx, it)) = given {
        return (it[2].to_string_lossy().into_owned(), Where::Arg(idx + 2));
    }
    let variable = |name: &&str| variables.get(OsStr::new(&format!("{IN_ENVIRONMENT}{name}")));
    if let Some(it) = NAMES.iter().find_map(variable) {
        return (it.to_string_lossy().into_owned(), Where::Elsewhere);
    }
    let row = |line: &str| {
        let (name, value) = line.split_once('=')?;
        NAMES.contains(&name.trim()).then(|| value.trim().to_owned())
    };
    let found = files.iter().find_map(|it| it.lines().find_map(row));
    (found.unwrap_or_else(|| USUAL.to_owned()), Where::Elsewhere)
}

/// The words of the first of them that is here, as Open MPI looks for it.
fn first_there(said: &str) -> Option<Vec<String>> {
    let words = |it: &str| it.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    said.split(':').map(words).find(|it| it.first().is_some_and(|it| find(Path::new(it)).is_some()))
}

/// Writes the script.  It is called as the agent is, since Open MPI tells ssh more than others.
fn write(folder: &Folder, agent: &[String]) -> Result<PathBuf, MpirunError> {
    let name = Path::new(&agent[0]).file_name().unwrap_or_default();
    let path = folder.path().join("agent").join(name);
    let failed = || io_error(format!("write {}", path.display()));
    let text = script(agent, &folder.path().join(LOCALS));
    fs::create_dir_all(folder.path().join("agent")).map_err(failed())?;
    fs::write(&path, text).map_err(failed())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed())?;
    Ok(path)
}

/// Runs the agent, passes the launcher's signals on, and ends with 0 once a file is there.  Open
/// MPI gives its agents nothing to read, and neither does the shell what it has in the background.
fn script(agent: &[String], begun: &Path) -> String {
    let quote = |it: &str| format!("'{}'", it.replace('\'', "'\\''"));
    let words: Vec<String> = agent.iter().map(|it| quote(it)).collect();
    let (words, begun) = (words.join(" "), quote(&begun.to_string_lossy()));
    format!(
        "#!/bin/sh\n{words} \"$@\" &\nagent=$!\ntrap 'kill -TERM $agent' TERM INT HUP\n\
         wait $agent\ncode=$?\n[ -e {begun} ] && exit 0\nexit $code\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_what_open_mpi_would_take() {
        let args = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        let check = |text: &str, variable: &str, file: &str, wanted: &str, at: Where| {
            let name = OsString::from("OMPI_MCA_plm_rsh_agent");
            let variables = (!variable.is_empty()).then(|| (name, variable.into()));
            let found = said(&args(text), &variables.into_iter().collect(), &[file.to_owned()]);
            assert_eq!(found, (wanted.to_owned(), at), "{text:?} {variable:?} {file:?}");
        };
        check("--host a:4", "", "", USUAL, Where::Elsewhere);
        let given = "--mca plm_rsh_agent a --host b -mca orte_rsh_agent c";
        check(given, "d", "plm_rsh_agent=e", "c", Where::Arg(7));
        check("--mca btl tcp", "ssh -p 22", "plm_rsh_agent=e", "ssh -p 22", Where::Elsewhere);
        check("", "", "# no\n plm_rsh_agent = e -q\n", "e -q", Where::Elsewhere);
        assert_eq!(
            first_there("/nowhere/ssh -x : sh -c : true"),
            Some(vec!["sh".into(), "-c".into()])
        );
        assert_eq!(first_there("/nowhere/ssh"), None);
    }

    #[test]
    fn an_agent_that_fails_later_has_not_failed() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("it's begun");
        let agent = ["sh", "-c", "echo \"$@\"; exit 255", "a b"].map(str::to_owned);
        let text = script(&agent, &begun);
        let run = || {
            let mut command = std::process::Command::new("sh");
            let out = command.args(["-c", &text, "agent", "c d", "e"]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), "c d e\n");
            out.status.code()
        };
        assert_eq!(run(), Some(255));
        fs::write(&begun, "").unwrap();
        assert_eq!(run(), Some(0));
    }
}
