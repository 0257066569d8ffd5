//! `selvedge dashboard`: a link that opens the dashboard once.

use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::failure::{Answer, Outcome};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The link works once, and leaves a cookie behind that lasts as long as the \
                        token. Whoever opens it may do there what the user may whom it is for."
)]
pub(crate) struct Dashboard {
    /// For this user, in place of you; takes an operator.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Link {
    url: String,
}

pub(crate) fn run(args: &Dashboard, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let text = client.post_text("/v1/keys", &json!({"user": args.user}))?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let Link { url } = client.read("/v1/keys", &text)?;
    render::print(&format!("{url}\n"))?;
    Ok(Answer::Yes)
}
