//! Notifications of the client: files that are opened, edited, saved and closed, and questions that are stopped.

use super::requests::read;
use super::{Phase, Server};
use crate::client::token;
use crate::documents::Document;
use crate::position::apply;
use crate::questions::Asked;
use lsp_server::{ErrorCode, Notification, RequestId};
use lsp_types::notification::{
    Cancel, DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument,
    Notification as _, WorkDoneProgressCancel,
};
use lsp_types::{CancelParams, Diagnostic, NumberOrString, Uri};
use serde_json::Value;

impl Server {
    pub(super) fn notification(&mut self, message: Notification) {
        if self.phase != Phase::Running {
            return;
        }
        let method = message.method.clone();
        let handled = match method.as_str() {
            DidOpenTextDocument::METHOD => self.opened(message.params),
            DidChangeTextDocument::METHOD => self.edited(message.params),
            DidSaveTextDocument::METHOD => self.saved(message.params),
            DidCloseTextDocument::METHOD => self.closed(message.params),
            Cancel::METHOD => self.cancelled(message.params),
            WorkDoneProgressCancel::METHOD => self.progress_cancelled(message.params),
            _ => Ok(()),
        };
        if let Err((_, why)) = handled {
            self.client.log(format!("{method}: {why}"));
        }
    }

    fn opened(&mut self, params: Value) -> Result<(), (ErrorCode, String)> {
        let item = read::<lsp_types::DidOpenTextDocumentParams>(params)?.text_document;
        let key = item.uri.as_str().to_owned();
        let document = Document::new(item.uri, &item.language_id, item.text, item.version);
        self.changed.insert(key.clone());
        self.documents.insert(key, document);
        Ok(())
    }

    fn edited(&mut self, params: Value) -> Result<(), (ErrorCode, String)> {
        let params: lsp_types::DidChangeTextDocumentParams = read(params)?;
        let key = params.text_document.uri.as_str().to_owned();
        let Some(document) = self.documents.get_mut(&key) else { return Ok(()) };
        let mut text = document.text.clone();
        params.content_changes.into_iter().for_each(|change| apply(&mut text, change));
        document.set_text(text, params.text_document.version);
        self.changed.insert(key);
        // An answer that is no longer awaited is about a text that is gone.
        self.stop_where(|open| open.uri == params.text_document.uri && open.request.is_none());
        Ok(())
    }

    /// A saved program is checked. C is checked on command only.
    fn saved(&mut self, params: Value) -> Result<(), (ErrorCode, String)> {
        let params: lsp_types::DidSaveTextDocumentParams = read(params)?;
        let key = params.text_document.uri.as_str().to_owned();
        let Some(document) = self.documents.get_mut(&key) else { return Ok(()) };
        document.is_changed = false;
        let is_text = document.language.is_some_and(|language| language.text().is_some());
        // Files that it imports may have changed on disk.
        self.changed.insert(key.clone());
        self.look_at_changes();
        let is_wrong = |(_, found): &(Uri, Diagnostic)| {
            let is_error = found.severity == Some(lsp_types::DiagnosticSeverity::ERROR);
            is_error || found.code == Some(NumberOrString::String("no-process".to_owned()))
        };
        let has_errors =
            self.documents.get(&key).is_some_and(|document| document.problems.iter().any(is_wrong));
        if is_text && self.settings.check_on_save && !has_errors {
            self.ask(&key, Asked::Check, None, None);
        }
        Ok(())
    }

    fn closed(&mut self, params: Value) -> Result<(), (ErrorCode, String)> {
        let uri = read::<lsp_types::DidCloseTextDocumentParams>(params)?.text_document.uri;
        self.stop_where(|open| open.uri == uri);
        self.documents.remove(uri.as_str());
        self.changed.remove(uri.as_str());
        for other in self.elsewhere.remove(uri.as_str()).unwrap_or_default() {
            self.publish_for(&other);
        }
        self.client.publish(uri, Vec::new(), None);
        Ok(())
    }

    fn cancelled(&mut self, params: Value) -> Result<(), (ErrorCode, String)> {
        let id = match read::<CancelParams>(params)?.id {
            NumberOrString::Number(number) => RequestId::from(number),
            NumberOrString::String(text) => RequestId::from(text),
        };
        self.stop_where(|open| open.request.as_ref() == Some(&id));
        Ok(())
    }

    fn progress_cancelled(&mut self, params: Value) -> Result<(), (ErrorCode, String)> {
        let cancelled = read::<lsp_types::WorkDoneProgressCancelParams>(params)?.token;
        let numbers: Vec<u64> =
            self.open.keys().copied().filter(|number| token(*number) == cancelled).collect();
        self.stop_numbers(&numbers);
        Ok(())
    }
}
