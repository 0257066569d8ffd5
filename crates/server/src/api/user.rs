//! `/v1/users`: people and programs with tokens of their own.

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use selvedge_driver::account::Account;

use crate::api::body::Json;
use crate::api::error::{ApiError, ErrorBody, chain};
use crate::api::job::Empty;
use crate::house::{By, House};
use crate::users::{Role, User, UserError};

/// A user to add.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserForm {
    /// Letters, digits and `. _ - @`.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The machine's account that its commands run under; what `up` was told, or the server's own,
    /// where absent.
    #[serde(default)]
    pub account: Option<String>,
}

/// A user as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserView {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When its token was made, in seconds of the Unix clock.
    pub since_unix_s: u64,
    /// The machine's account that its commands run under, if it has one of its own.
    pub account: Option<String>,
}

/// All users.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserList {
    /// By name.
    pub users: Vec<UserView>,
}

/// What a user's change comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserToken {
    /// Whose.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The new token, which is kept nowhere; none where the user was removed.
    pub token: Option<String>,
}

/// All users but whoever holds the data directory's own token.
#[utoipa::path(get, path = "/v1/users", tag = "users",
    responses((status = 200, body = UserList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(State(house): State<House>) -> Answer<UserList> {
    let view = |it: User| {
        let User { name, role, since, account, .. } = it;
        UserView { name, role, since_unix_s: since, account }
    };
    Answer(UserList { users: house.guard().users().all().into_iter().map(view).collect() })
}

/// Adds a user, and tells the token once.
#[utoipa::path(post, path = "/v1/users", tag = "users", request_body = UserForm,
    responses((status = 201, body = UserToken), (status = "default", body = ErrorBody)))]
pub(crate) async fn add(
    State(house): State<House>,
    by: By,
    Json(form): Json<UserForm>,
) -> Result<(StatusCode, Answer<UserToken>), ApiError> {
    let UserForm { name, role, account } = form;
    let users = house.guard().users();
    users.may_add(&name)?;
    if let Some(account) = &account {
        let found = Account::of(account).and_then(|it| it.reaches(house.data()));
        found.map_err(|error| ApiError::unprocessable(chain(&error)))?;
    }
    let under = account.as_ref().map(|it| format!(", commands under the account {it}"));
    let under = under.unwrap_or_default();
    house.remark(by, format!("user {name} added as {role}{under}")).await?;
    let token = Some(users.add(&name, role, account)?);
    Ok((StatusCode::CREATED, Answer(UserToken { name, role, token })))
}

/// Makes a new token in place of the old one (`token`), or forgets the user (`remove`).
#[utoipa::path(post, path = "/v1/users/{name}/{order}", tag = "users",
    params(("name" = String, Path), ("order" = String, Path)),
    responses((status = 200, body = UserToken), (status = "default", body = ErrorBody)))]
pub(crate) async fn order(
    State(house): State<House>,
    Path((name, order)): Path<(String, String)>,
    by: By,
    Json(_): Json<Empty>,
) -> Result<Answer<UserToken>, ApiError> {
    let users = house.guard().users();
    let known = users.find(|it| it.name == name);
    let known = known.ok_or_else(|| UserError::Unknown { name: name.clone() })?;
    match order.as_str() {
        "token" => {
            house.remark(by, format!("new token for user {name}")).await?;
            let (role, token) = users.renew(&name)?;
            house.shares().end(&name);
            Ok(Answer(UserToken { name, role, token: Some(token) }))
        }
        "remove" => {
            house.remark(by, format!("user {name} removed")).await?;
            users.remove(&name)?;
            house.shares().end(&name);
            Ok(Answer(UserToken { name, role: known.role, token: None }))
        }
        other => Err(ApiError::no_such("order", other).hint("users take `token` and `remove`")),
    }
}

impl From<UserError> for ApiError {
    fn from(error: UserError) -> Self {
        let status = match &error {
            UserError::Name { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            UserError::Known { .. } | UserError::TooMany => StatusCode::CONFLICT,
            UserError::Unknown { .. } => StatusCode::NOT_FOUND,
            UserError::Format { .. } | UserError::Newer { .. } | UserError::File { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        ApiError::new(status, chain(&error))
    }
}
