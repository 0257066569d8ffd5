//! The program `selvedge`: one file per verb in [`cmd`], what people see in [`render`], and how
//! a running server is found and asked in `client`.
//!
//! Exit status: 0 done, 1 answered no, 2 error.  What was asked for goes to standard output,
//! everything else to standard error.
#![allow(clippy::print_stdout, reason = "printing is what a command line is for")]

mod failure;

mod log;

mod client;

mod render;

mod cmd;

use std::num::ParseIntError;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// The self-finished edge that keeps a fabric from unravelling: one control plane for
/// accelerator clusters.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, arg_required_else_help = true)]
pub(crate) struct Selvedge {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: cmd::Verb,
}

const EVERYWHERE: &str = "Everywhere";

/// What every verb takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Globals {
    /// The server to ask, such as http://127.0.0.1:7070; without it $SELVEDGE_SERVER, or the one
    /// that runs on this machine.
    #[arg(long, global = true, value_name = "URL", help_heading = EVERYWHERE)]
    server: Option<String>,
    /// The file with your token for a server of somebody else; without it $SELVEDGE_TOKEN_FILE.
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    token_file: Option<PathBuf>,
    /// Whom to believe about a server's certificate, as PEM; without it $SELVEDGE_CA, or whom this
    /// machine believes.
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    ca: Option<PathBuf>,
    /// Why you change something, for the audit trail.
    #[arg(long, global = true, value_name = "TEXT", help_heading = EVERYWHERE)]
    reason: Option<String>,
    /// Print JSON for programs.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
}

fn main() -> ExitCode {
    let Selvedge { globals, verb } = parse();
    match cmd::run(verb, &globals) {
        Ok(answer) => answer.into(),
        // Whoever read our output has seen enough, as `| head` does.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// What was asked for.  A negative number is a value, not an option: whoever gives one where none
/// can be is told what can.
fn parse() -> Selvedge {
    let mut command = numbers_are_values(Selvedge::command());
    let matches = match command.try_get_matches_from_mut(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => {
            let words: Vec<String> =
                std::env::args_os().map(|it| it.to_string_lossy().into_owned()).collect();
            let error = said_better(error, &words);
            print_for_programs(&error);
            error.exit()
        }
    };
    Selvedge::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// Of `topo`, whose every answer to `--json` is an object, a line that says nothing it can do too.
fn print_for_programs(error: &clap::Error) {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let asked = |word: &str| words.iter().any(|it| it == word);
    if error.use_stderr() && asked("--json") && asked("topo") {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default();
        let text = text.strip_prefix("error: ").unwrap_or(text);
        println!("{}", serde_json::json!({ "error": text }));
    }
}

/// The command with options that take what looks like a negative number for their value.
fn numbers_are_values(command: clap::Command) -> clap::Command {
    let lenient = |arg: clap::Arg| {
        let takes_one = arg.get_action().takes_values() && !arg.is_positional();
        if takes_one { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(lenient).mut_subcommands(numbers_are_values)
}

/// An error about a number, with what would be right in place of how its digits were read; one
/// about an option that another launcher of MPI programs has, with how it is given.
fn said_better(error: clap::Error, words: &[String]) -> clap::Error {
    if let Some(said) = of_launchers(&error, words) {
        return clap::Error::raw(ErrorKind::UnknownArgument, said);
    }
    let is_number = std::error::Error::source(&error).is_some_and(|it| it.is::<ParseIntError>());
    let context = |kind| error.get(kind).map(ToString::to_string);
    let (argument, value) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
    match (argument, value) {
        (Some(argument), Some(value)) if is_number => clap::Error::raw(
            ErrorKind::ValueValidation,
            format!("invalid value '{value}' for '{argument}': write a whole number, 0 or more\n"),
        ),
        _ => error,
    }
}

/// What is said of an option that `mpirun` was given and that is a launcher's own, such as `-np 4`
/// or `-host a,b`: read as short options, the letters of these would be told of.
fn of_launchers(error: &clap::Error, words: &[String]) -> Option<String> {
    // Behind a `--` is a command of the user's own, which may be an mpirun.
    let words = words.iter().take_while(|it| *it != "--");
    let words = words.skip_while(|it| *it != "mpirun").skip(1);
    let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let is_long_of_one_dash = |it: &&String| {
        let mut rest = it.strip_prefix('-').unwrap_or_default().chars();
        rest.next().is_some_and(char::is_alphabetic) && rest.next().is_some_and(char::is_alphabetic)
    };
    let begins = |it: &&String| argument.as_ref().is_some_and(|argument| it.starts_with(argument));
    let mut found: Box<dyn Iterator<Item = &String>> = match error.kind() {
        ErrorKind::UnknownArgument => Box::new(words.filter(begins)),
        ErrorKind::DisplayHelp => {
            Box::new(words.filter(is_long_of_one_dash).filter(|it| it.starts_with("-h")))
        }
        _ if argument.as_deref() == Some("--ranks <P>") => {
            Box::new(words.filter(is_long_of_one_dash).filter(|it| it.starts_with("-n")))
        }
        _ => return None,
    };
    let word = found.next()?;
    Some(match &**word {
        "-np" | "--np" => format!("'{word}' is no option of selvedge mpirun: write -n P\n"),
        _ => format!(
            "'{word}' is no option of selvedge mpirun: if it is the launcher's, write \
             --launcher-arg={word}, and one more --launcher-arg for each value of it\n"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        let mut command = numbers_are_values(Selvedge::command());
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let error = command.try_get_matches_from_mut(&words).unwrap_err();
        said_better(error, &words).to_string()
    }

    #[test]
    fn a_negative_number_is_told_what_would_be_right() {
        let first = |line: &str| refusal(line).lines().next().unwrap().to_owned();
        assert_eq!(
            first("selvedge sim --seed -1"),
            "error: invalid value '-1' for '--seed <N>': write a whole number, 0 or more"
        );
        assert_eq!(
            first("selvedge sim --seed=x"),
            "error: invalid value 'x' for '--seed <N>': write a whole number, 0 or more"
        );
        assert!(first("selvedge sim --load -2").contains("must be a number from 0.01 to 100"));
        for line in ["sim --seed -1", "sim --cubes -3", "study pods --seed -1", "sim --load -2"] {
            let said = refusal(&format!("selvedge {line}"));
            assert!(!said.contains("-- -") && !said.contains("<COMMAND>"), "{said}");
        }
    }

    #[test]
    fn an_option_of_the_launcher_is_told_how_it_is_given() {
        for (line, wanted) in [
            ("-np 2 ./app", "'-np' is no option of selvedge mpirun: write -n P"),
            ("--np 2 ./app", "'--np' is no option of selvedge mpirun: write -n P"),
            ("-n 2 -x HOME ./app", "--launcher-arg=-x, and one more --launcher-arg"),
            ("-n 2 --bind-to none ./app", "--launcher-arg=--bind-to, and one more"),
            ("-n 2 -mca btl self ./app", "--launcher-arg=-mca, and"),
            ("-n 2 --mca=btl=self ./app", "--launcher-arg=--mca=btl=self, and"),
            ("-n 2 -host a,b ./app", "--launcher-arg=-host, and"),
            ("-n 2 -npernode 2 ./app", "--launcher-arg=-npernode, and"),
            ("-n p ./app", "invalid value 'p' for '--ranks <P>': write a whole number"),
            ("-h", "Run an MPI program in replicas"),
        ] {
            let said = refusal(&format!("selvedge mpirun -r 3 {line}"));
            assert!(said.contains(wanted), "{line}: {said}");
        }
        for line in ["sim -x", "job submit -x 1 -- mpirun -x HOME ./app"] {
            let said = refusal(&format!("selvedge {line}"));
            assert!(said.contains("unexpected argument '-x'"), "{said}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        numbers_are_values(Selvedge::command()).debug_assert();
    }
}
