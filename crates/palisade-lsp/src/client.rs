//! What the server sends of its own accord: diagnostics, messages, progress, requests to the client.

use lsp_server::{Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{LogMessage, Notification as _, Progress, PublishDiagnostics, ShowMessage};
use lsp_types::request::{CodeLensRefresh, Request as _, WorkDoneProgressCreate};
use lsp_types::{
    Diagnostic, LogMessageParams, MessageType, NumberOrString, ProgressParams, ProgressParamsValue,
    PublishDiagnosticsParams, ShowMessageParams, Uri, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport,
};
use serde::Serialize;
use std::sync::mpsc::Sender;

/// The client, as far as the server talks to it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// What is written. `None` is the end.
    outgoing: Sender<Option<Message>>,
    /// Whether it shows progress.
    pub(crate) shows_progress: bool,
    /// Whether it can be asked to fetch code lenses again.
    pub(crate) refreshes_lenses: bool,
}

impl Client {
    pub(crate) fn new(outgoing: Sender<Option<Message>>) -> Client {
        Client { outgoing, shows_progress: false, refreshes_lenses: false }
    }

    /// Sends a message. If the client is gone, nothing needs to be sent.
    fn send(&self, message: impl Into<Message>) {
        let _ = self.outgoing.send(Some(message.into()));
    }

    /// Nothing more is sent.
    pub(crate) fn finish(&self) {
        let _ = self.outgoing.send(None);
    }

    fn notify(&self, method: &str, params: impl Serialize) {
        self.send(Notification::new(method.to_owned(), params));
    }

    /// Sends a request whose answer does not matter. `number` distinguishes requests.
    fn request(&self, method: &str, number: u64, params: impl Serialize) {
        let id = RequestId::from(format!("palisade-{number}-{method}"));
        self.send(Request::new(id, method.to_owned(), params));
    }

    pub(crate) fn respond(&self, response: Response) {
        self.send(response);
    }

    pub(crate) fn publish(&self, uri: Uri, diagnostics: Vec<Diagnostic>, version: Option<i32>) {
        self.notify(PublishDiagnostics::METHOD, PublishDiagnosticsParams { uri, diagnostics, version });
    }

    /// Shows a message to the user.
    pub(crate) fn show(&self, typ: MessageType, message: String) {
        self.notify(ShowMessage::METHOD, ShowMessageParams { typ, message });
    }

    /// Notes that a message could not be handled.
    pub(crate) fn log(&self, message: String) {
        self.notify(LogMessage::METHOD, LogMessageParams { typ: MessageType::ERROR, message });
    }

    /// Asks for the code lenses to be fetched again.
    pub(crate) fn refresh_lenses(&self, number: u64) {
        if self.refreshes_lenses {
            self.request(CodeLensRefresh::METHOD, number, ());
        }
    }

    /// Starts to show progress.
    pub(crate) fn begin(&self, number: u64, title: String) {
        if self.shows_progress {
            let token = token(number);
            self.request(WorkDoneProgressCreate::METHOD, number, WorkDoneProgressCreateParams { token });
            let begin = WorkDoneProgressBegin { title, cancellable: Some(true), ..Default::default() };
            self.progress(number, WorkDoneProgress::Begin(begin));
        }
    }

    /// Shows what is being done.
    pub(crate) fn report(&self, number: u64, message: String) {
        if self.shows_progress {
            let report = WorkDoneProgressReport {
                message: Some(message),
                cancellable: Some(true),
                ..Default::default()
            };
            self.progress(number, WorkDoneProgress::Report(report));
        }
    }

    /// Ends the progress.
    pub(crate) fn end(&self, number: u64, message: Option<String>) {
        if self.shows_progress {
            self.progress(number, WorkDoneProgress::End(WorkDoneProgressEnd { message }));
        }
    }

    fn progress(&self, number: u64, progress: WorkDoneProgress) {
        let value = ProgressParamsValue::WorkDone(progress);
        self.notify(Progress::METHOD, ProgressParams { token: token(number), value });
    }
}

/// The token of a question's progress.
pub(crate) fn token(number: u64) -> NumberOrString {
    NumberOrString::String(format!("palisade-{number}"))
}
