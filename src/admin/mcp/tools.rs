//! The tools: a call in, a text out.
//!
//! Whatever goes wrong inside a call is told in words to the model that made it.
//! What is not there, or no longer, is an ordinary answer that says what to do
//! instead; only a call that cannot be understood, or a store that fails, counts
//! as an error.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::Trusted;
use super::arguments::{Arguments, Wrong};
use super::offered::{
    COMPACT, EXPAND, INSTRUCTIONS, MOST_PAGES, MOST_RESULTS, RECALL, RESULTS, STATUS, all,
};
use crate::admin::compact::INSTRUCTIONS as LONGEST_INSTRUCTIONS;
use crate::admin::state::Admin;
use crate::config::{Choice as _, Mode};
use crate::engine::ids::LineageId;
use crate::engine::recall::reference;
use crate::recall::{Trouble, Who};

/// The longest reference that is looked at, in bytes: all of a stub may be given.
const LONGEST_REFERENCE: usize = 4 << 10;
/// The longest query, in bytes.
const LONGEST_QUERY: usize = 4 << 10;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Wrong(#[from] Wrong),
    #[error(
        "\"ref\" must be one reference as a notice or summary shows it: lh- and 20 digits or letters from a to f"
    )]
    NoReference,
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

/// What the calls need.
#[derive(Clone)]
pub struct Tools {
    admin: Arc<Admin>,
}

impl Tools {
    /// The tools of a process.
    pub fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        trusted: bool,
    ) -> Option<Result<String, Failed>> {
        let given = request.arguments;
        Some(match &*request.name {
            RECALL => {
                let given = Arguments::new(given, &["ref", "query", "limit"]);
                self.recall(given, trusted).await
            }
            EXPAND => {
                let given = Arguments::new(given, &["ref", "page"]);
                self.expand(given, trusted).await
            }
            STATUS => {
                let given = Arguments::new(given, &["ref"]);
                self.status(given, trusted).await
            }
            COMPACT => {
                let given = Arguments::new(given, &["ref", "instructions"]);
                self.compact(given, trusted).await
            }
            _ => return None,
        })
    }

    async fn recall(
        &self,
        given: Result<Arguments, Wrong>,
        trusted: bool,
    ) -> Result<String, Failed> {
        let given = given?;
        let who = who(&given, trusted)?;
        let query = given.text("query", LONGEST_QUERY)?;
        let limit = given.number("limit", RESULTS, 1..=MOST_RESULTS)?;
        let found = self.admin.recall.recall(who, query, limit).await?;
        Ok(found.text())
    }

    async fn expand(
        &self,
        given: Result<Arguments, Wrong>,
        trusted: bool,
    ) -> Result<String, Failed> {
        let given = given?;
        let who = who(&given, trusted)?;
        let page = given.number("page", 1, 1..=MOST_PAGES)?;
        Ok(self.admin.recall.expand(who, page).await?.text)
    }

    async fn status(
        &self,
        given: Result<Arguments, Wrong>,
        trusted: bool,
    ) -> Result<String, Failed> {
        let who = who(&given?, trusted)?;
        Ok(self.admin.recall.status(who).await?.text())
    }

    async fn compact(
        &self,
        given: Result<Arguments, Wrong>,
        trusted: bool,
    ) -> Result<String, Failed> {
        let given = given?;
        let who = who(&given, trusted)?;
        let instructions = given.maybe_text("instructions", LONGEST_INSTRUCTIONS)?;
        let views = &self.admin.shared.views;
        let mode = views.config().policy.mode;
        if mode != Mode::On {
            let mode = mode.word();
            return Ok(format!(
                "Nothing is made smaller here: policy.mode is {mode:?}."
            ));
        }
        let mut noted = 0;
        for session in self.admin.recall.containing(who).await? {
            if views.wish(session, instructions.map(str::to_owned)).await {
                tracing::info!(%session, "a pass is wished for at the next request, by a tool");
                noted += 1;
            }
        }
        Ok(match noted {
            0 => "No session with this reference has sent a request to this process since it \
                  started, so there is nothing to make smaller yet. Go on; views are made smaller by \
                  themselves when that is needed."
                .to_owned(),
            1 => "Noted: the view of this conversation is made smaller with its next request, if \
                  there is anything to leave out."
                .to_owned(),
            several => format!(
                "Noted for {several} conversations that share this reference: each one's view is made \
                 smaller with its next request, if there is anything to leave out."
            ),
        })
    }
}

/// Whose things are asked for. With the admin token that may be a session too.
fn who(given: &Arguments, trusted: bool) -> Result<Who, Failed> {
    let text = given.text("ref", LONGEST_REFERENCE)?;
    let session = LineageId::from_text(text).filter(|_| trusted);
    let reference = || reference::read(text).map(Who::Reference);
    let who = session.map(Who::Session).or_else(reference);
    who.ok_or(Failed::NoReference)
}

/// What a model reads.
fn told(answer: Result<String, Failed>) -> CallToolResult {
    let text = |text: String| vec![ContentBlock::text(text)];
    match answer {
        Ok(answer) => CallToolResult::success(text(answer)),
        Err(Failed::Trouble(trouble)) if trouble.is_ordinary() => {
            CallToolResult::success(text(trouble.to_string()))
        }
        Err(failed) => {
            if let Failed::Trouble(trouble) = &failed {
                tracing::warn!(error = %trouble, "a tool call failed");
            }
            CallToolResult::error(text(failed.to_string()))
        }
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let own = Implementation::new("longhaul", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let trusted = parts.and_then(|parts| parts.extensions.get::<Trusted>());
        let trusted = trusted.is_some_and(|Trusted(trusted)| *trusted);
        match self.call(request, trusted).await {
            Some(answer) => Ok(told(answer).into()),
            None => Err(ErrorData::invalid_params(
                "no such tool: there are recall, expand, session_status and compact_now",
                None,
            )),
        }
    }
}
