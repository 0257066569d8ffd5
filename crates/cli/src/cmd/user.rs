//! `selvedge user`: people and programs with tokens of their own.

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::failure::{Answer, Outcome};
use crate::render::table::{Cell, Table};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct UserArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// All users, but whoever holds the data directory's own token.
    List,
    /// Add a user, and print the token, which is told once.
    #[command(after_help = "A user keeps the token in a file that nobody else reads, and says \
        which:\n  selvedge --server https://HOST:PORT --token-file FILE job list\n\
        What a token is used for stands in the audit trail under its user's name.")]
    Add(Add),
    /// Print a new token in place of the old one.
    Token(Name),
    /// Forget a user; the token opens nothing from then on.
    Remove(Name),
}

#[derive(Debug, clap::Args)]
struct Add {
    /// Letters, digits and . _ - @.
    #[arg(value_name = "NAME")]
    name: String,
    /// What it may do.
    #[arg(long, value_enum, value_name = "ROLE")]
    role: Role,
    /// The machine's account that its commands run under; without, the one of `up --task-account`,
    /// else the server's. It takes a server started by root.
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Name {
    /// As `user list` shows it.
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Look at everything.
    Viewer,
    /// Submit jobs, and change one's own.
    User,
    /// Everything.
    Operator,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::User => "user",
            Role::Operator => "operator",
        }
    }
}

#[derive(Debug, Deserialize)]
struct List {
    users: Vec<User>,
}

#[derive(Debug, Deserialize)]
struct User {
    name: String,
    role: String,
    since_unix_s: u64,
    account: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Told {
    name: String,
    role: String,
    token: Option<String>,
}

pub(crate) fn run(args: &UserArgs, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        Verb::List => list(&client, globals),
        Verb::Add(Add { name, role, account }) => {
            let form = json!({"name": name, "role": role.word(), "account": account});
            change("/v1/users", &form, &client, globals)
        }
        Verb::Token(Name { name }) => order(name, "token", &client, globals),
        Verb::Remove(Name { name }) => order(name, "remove", &client, globals),
    }
}

fn list(client: &Client, globals: &Globals) -> Outcome {
    let text = client.get_text("/v1/users")?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let List { users } = client.read("/v1/users", &text)?;
    let mut table = Table::new(&["name", "role", "account", "token made"]);
    for user in users {
        let since = number::utc(user.since_unix_s);
        let account = user.account.unwrap_or_else(|| "-".to_owned());
        table.row([user.name, user.role, account, since].map(Cell::from));
    }
    render::print(&table.to_string())?;
    Ok(Answer::Yes)
}

fn order(name: &str, order: &str, client: &Client, globals: &Globals) -> Outcome {
    // A slash would end the name in the address.
    let name = path_text(name).replace('/', "%2F");
    change(&format!("/v1/users/{name}/{order}"), &json!({}), client, globals)
}

fn change(path: &str, body: &serde_json::Value, client: &Client, globals: &Globals) -> Outcome {
    let text = client.post_text(path, body)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let Told { name, role, token } = client.read(path, &text)?;
    match token {
        Some(token) => {
            // The token alone goes where a file may take it.
            anstream::eprintln!("{name}: {role}; this is the token, told once:");
            render::print(&format!("{token}\n"))?;
        }
        None => render::print(&format!("{name} is no user any more\n"))?,
    }
    Ok(Answer::Yes)
}
