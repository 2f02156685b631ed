//! Requests of the client, and their answers.

use super::{Phase, Server};
use crate::capabilities::capabilities;
use crate::documents::Document;
use crate::lens::lenses;
use crate::questions::Asked;
use crate::settings::Settings;
use crate::values::CellTexts;
use crate::{edits, names};
use lsp_server::{ErrorCode, Request, RequestId, Response};
use lsp_types::request::{
    CodeActionRequest, CodeLensRequest, DocumentSymbolRequest, ExecuteCommand, Formatting, GotoDefinition,
    HoverRequest, Initialize, PrepareRenameRequest, References, Rename, Request as _, Shutdown,
};
use lsp_types::{
    CodeActionParams, CodeLensParams, DocumentFormattingParams, DocumentSymbolParams, GotoDefinitionParams,
    Hover, HoverContents, MarkupContent, MarkupKind, MessageType, Range, ReferenceParams,
    TextDocumentPositionParams, Uri,
};
use palisade::syntax::names::{Symbol, SymbolKind};
use palisade::{InputLanguage, Language};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The answer to a request, or why there is none.
type Answered = Result<Value, (ErrorCode, String)>;

impl Server {
    pub(super) fn request(&mut self, request: Request) {
        let id = request.id.clone();
        match self.handle(request) {
            Some(Ok(value)) => self.client.respond(Response::new_ok(id, value)),
            Some(Err((code, message))) => self.client.respond(Response::new_err(id, code as i32, message)),
            None => {}
        }
    }

    /// The answer to a request. `None` if a question has to be answered first.
    fn handle(&mut self, request: Request) -> Option<Answered> {
        let params = request.params;
        match (self.phase, request.method.as_str()) {
            (Phase::Starting, Initialize::METHOD) => return Some(self.initialize(&params)),
            (Phase::Starting, _) => {
                return Some(Err((
                    ErrorCode::ServerNotInitialized,
                    "the first request is `initialize`".into(),
                )));
            }
            (Phase::ShutDown, _) => {
                return Some(Err((ErrorCode::InvalidRequest, "the server was shut down".into())));
            }
            (Phase::Running, _) => {}
        }
        // Requests are about the texts that the client has sent by now.
        self.look_at_changes();
        Some(match request.method.as_str() {
            Shutdown::METHOD => {
                self.phase = Phase::ShutDown;
                self.open.values().for_each(|question| question.stop.stop());
                Ok(Value::Null)
            }
            HoverRequest::METHOD => return self.hover(request.id, params),
            ExecuteCommand::METHOD => return self.command(request.id, params),
            GotoDefinition::METHOD => self.about(
                params,
                |params: &GotoDefinitionParams| &params.text_document_position_params.text_document.uri,
                |document, params| {
                    json!(names::definition(document, params.text_document_position_params.position))
                },
            ),
            References::METHOD => self.about(
                params,
                |params: &ReferenceParams| &params.text_document_position.text_document.uri,
                |document, params| {
                    let at = params.text_document_position.position;
                    json!(names::references(document, at, params.context.include_declaration))
                },
            ),
            PrepareRenameRequest::METHOD => self.about(
                params,
                |params: &TextDocumentPositionParams| &params.text_document.uri,
                |document, params| json!(names::prepare_rename(document, params.position)),
            ),
            DocumentSymbolRequest::METHOD => self.about(
                params,
                |params: &DocumentSymbolParams| &params.text_document.uri,
                |document, _| json!(names::outline(document)),
            ),
            Formatting::METHOD => self.about(
                params,
                |params: &DocumentFormattingParams| &params.text_document.uri,
                |document, _| {
                    let is_pal = document.language.is_some_and(|language| language == Language::Pal);
                    json!(is_pal.then(|| edits::formatting(&document.source)).flatten())
                },
            ),
            CodeLensRequest::METHOD => self.about(
                params,
                |params: &CodeLensParams| &params.text_document.uri,
                |document, _| match document.language {
                    Some(_) => json!(lenses(&document.uri, &document.answers)),
                    None => json!([]),
                },
            ),
            CodeActionRequest::METHOD => self.about(
                params,
                |params: &CodeActionParams| &params.text_document.uri,
                |document, params| {
                    let diagnostics = params.context.diagnostics.clone();
                    json!(edits::actions(&document.uri, document.fix.as_ref(), diagnostics))
                },
            ),
            Rename::METHOD => self.rename(params),
            other => Err((ErrorCode::MethodNotFound, format!("there is no request `{other}`"))),
        })
    }

    fn initialize(&mut self, params: &Value) -> Answered {
        if !params.is_object() {
            return Err((
                ErrorCode::InvalidParams,
                "the parameters of `initialize` are an object".to_owned(),
            ));
        }
        // Only what is used is read: clients send much more, some of it not as the protocol says.
        let is_true = |pointer: &str| params.pointer(pointer) == Some(&Value::Bool(true));
        self.client.shows_progress = is_true("/capabilities/window/workDoneProgress");
        self.client.refreshes_lenses = is_true("/capabilities/workspace/codeLens/refreshSupport");
        let options = params.get("initializationOptions").filter(|options| !options.is_null());
        if let Some(options) = options {
            let (settings, wrong) = Settings::read(options);
            self.settings = settings;
            wrong
                .into_iter()
                .for_each(|why| self.client.show(MessageType::ERROR, format!("Palisade: {why}")));
        }
        self.phase = Phase::Running;
        let name = json!({ "name": "palisade", "version": self.config.version });
        Ok(json!({ "capabilities": capabilities(), "serverInfo": name }))
    }

    /// The answer to a request about an open file; `null` about other files.
    fn about<P: DeserializeOwned>(
        &self,
        params: Value,
        uri: impl Fn(&P) -> &Uri,
        answer: impl FnOnce(&Document, &P) -> Value,
    ) -> Answered {
        let params: P = read(params)?;
        let document = self.documents.get(uri(&params).as_str());
        Ok(document.map_or(Value::Null, |document| answer(document, &params)))
    }

    fn rename(&mut self, params: Value) -> Answered {
        let params: lsp_types::RenameParams = read(params)?;
        let at = params.text_document_position;
        let document = self.documents.get(at.text_document.uri.as_str());
        let document = document.ok_or((ErrorCode::RequestFailed, "the file is not open".to_owned()))?;
        let renamed = names::renamed(document, at.position, &params.new_name);
        renamed.map(|edit| json!(edit)).map_err(|why| (ErrorCode::RequestFailed, why))
    }

    /// A hover: at once, unless the values of a shared variable have to be found.
    fn hover(&mut self, id: RequestId, params: Value) -> Option<Answered> {
        let at = match read::<lsp_types::HoverParams>(params) {
            Ok(params) => params.text_document_position_params,
            Err(error) => return Some(Err(error)),
        };
        let Some(document) = self.documents.get(at.text_document.uri.as_str()) else {
            return Some(Ok(Value::Null));
        };
        let Some((symbol, range)) = names::named(document, at.position) else { return Some(Ok(Value::Null)) };
        if symbol.kind != SymbolKind::Shared {
            return Some(Ok(json!(hover(&symbol, range, document.source.constants(), None))));
        }
        let key = at.text_document.uri.as_str().to_owned();
        self.ask(&key, Asked::Values, Some(id), Some((symbol, range)));
        None
    }

    /// A command of the code lens, about a file.
    fn command(&mut self, id: RequestId, params: Value) -> Option<Answered> {
        let params: lsp_types::ExecuteCommandParams = match read(params) {
            Ok(params) => params,
            Err(error) => return Some(Err(error)),
        };
        let wrong = |why: &str| Some(Err((ErrorCode::InvalidParams, why.to_owned())));
        let name = params.command.strip_prefix("palisade.");
        let asked = Asked::COMMANDS.into_iter().find(|asked| Some(asked.name()) == name);
        let Some(asked) = asked else { return wrong("there is no such command") };
        let Some(uri) = params.arguments.first().and_then(Value::as_str) else {
            return wrong("the command takes the address of a file");
        };
        let Some(document) = self.documents.get(uri) else { return wrong("the file is not open") };
        let Some(language) = document.language else {
            return wrong("Palisade does not read this kind of file");
        };
        if language == InputLanguage::C && document.is_changed {
            let why = "save the file first: the compiler reads it from there".to_owned();
            self.client.show(MessageType::WARNING, why.clone());
            return Some(Err((ErrorCode::RequestFailed, why)));
        }
        self.ask(uri, asked, Some(id), None);
        None
    }
}

/// The parameters of a request or a notification.
pub(super) fn read<P: DeserializeOwned>(params: Value) -> Result<P, (ErrorCode, String)> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

/// A hover, in the words of the protocol.
pub(super) fn hover(
    symbol: &Symbol,
    range: Range,
    given: &[(String, i64)],
    values: Option<&CellTexts>,
) -> Hover {
    let value = names::hover(symbol, given, values);
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Hover { contents, range: Some(range) }
}
