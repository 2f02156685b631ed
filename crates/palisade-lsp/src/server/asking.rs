//! Questions: asking and stopping them, and what becomes of their answers.

use super::requests::hover;
use super::{Open, Server};
use crate::answers::not_answered;
use crate::documents::path;
use crate::questions::{Asked, Question, Reply, Stop, start};
use lsp_server::{ErrorCode, RequestId, Response};
use lsp_types::{DiagnosticSeverity, MessageType, Range};
use palisade::Model;
use palisade::syntax::names::Symbol;
use serde_json::json;
use std::time::Duration;

/// The most time for the values that a hover shows.
const HOVER_BUDGET: Duration = Duration::from_secs(2);

impl Server {
    /// Stops questions. Their requests are answered at once; what is still found is ignored.
    pub(super) fn stop_where(&mut self, is_meant: impl Fn(&Open) -> bool) {
        let meant = self.open.iter().filter(|(_, open)| is_meant(open)).map(|(number, _)| *number);
        self.stop_numbers(&meant.collect::<Vec<_>>());
    }

    pub(super) fn stop_numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            let Some(open) = self.open.remove(number) else { continue };
            open.stop.stop();
            self.client.end(*number, Some("stopped".to_owned()));
            if let Some(id) = open.request {
                let code = ErrorCode::RequestCanceled as i32;
                self.client.respond(Response::new_err(id, code, "stopped".to_owned()));
            }
        }
    }

    /// Asks a question about the text of a file.
    pub(super) fn ask(
        &mut self,
        key: &str,
        asked: Asked,
        request: Option<RequestId>,
        hover: Option<(Symbol, Range)>,
    ) {
        let Some(document) = self.documents.get(key) else { return };
        let Some(language) = document.language else { return };
        let (uri, revision) = (document.uri.clone(), document.revision);
        let model = match self.settings.model() {
            Ok(model) => model,
            // The values hold under all models.
            Err(_) if asked == Asked::Values => Model::Tso,
            Err(why) => {
                let why = format!("not answered: {why}");
                self.refuse(key, asked, request, why);
                return;
            }
        };
        self.questions += 1;
        let number = self.questions;
        let budget = self.settings.budget(self.config.budget);
        let question = Question {
            number,
            asked,
            uri: uri.clone(),
            language,
            source: document.source.clone(),
            lines: document.lines.clone(),
            places: document.places.clone(),
            model,
            budget: if asked == Asked::Values { budget.min(HOVER_BUDGET) } else { budget },
            memory: self.config.memory,
            jobs: self.config.jobs,
            command: self.config.command.clone(),
            path: path(&uri),
            maker: self.config.version.clone(),
        };
        let title = format!("{} {}", asked.name(), document.name());
        let stop = Stop::default();
        if asked != Asked::Values {
            self.stop_where(|open| open.uri == uri && open.asked != Asked::Values);
            self.client.begin(number, title);
        }
        self.open.insert(number, Open { asked, uri, revision, stop: stop.clone(), request, hover });
        start(question, stop, self.client.clone(), self.events.clone());
    }

    /// Says why a question is not answered: to who asked, or in the text.
    fn refuse(&mut self, key: &str, asked: Asked, request: Option<RequestId>, why: String) {
        match request {
            Some(id) => {
                self.client.show(MessageType::ERROR, why.clone());
                self.client.respond(Response::new_err(id, ErrorCode::RequestFailed as i32, why));
            }
            None => {
                let Some(document) = self.documents.get_mut(key) else { return };
                document
                    .findings
                    .insert(asked, vec![not_answered(&document.uri, DiagnosticSeverity::ERROR, why)]);
                self.publish(key);
            }
        }
    }

    /// A question was answered. Nobody waits for the answer if the question was stopped.
    pub(super) fn answered(&mut self, number: u64, found: Result<Reply, String>) {
        let Some(open) = self.open.remove(&number) else { return };
        let key = open.uri.as_str().to_owned();
        if open.asked == Asked::Values {
            let values = found.ok().and_then(|found| found.values);
            if let (Some(id), Some((symbol, range))) = (open.request, open.hover) {
                let hover = hover(&symbol, range, &[], values.as_ref());
                self.client.respond(Response::new_ok(id, hover));
            }
            return;
        }
        let ended = match &found {
            Ok(found) => found.headline.clone(),
            Err(why) => why.clone(),
        };
        self.client.end(number, Some(ended));
        let asked_for = open.request.is_some();
        let result = match found {
            Err(why) => {
                if asked_for {
                    self.client.show(MessageType::ERROR, why.clone());
                }
                Err(why)
            }
            Ok(found) => {
                let record = json!({ "word": found.word, "headline": found.headline, "html": found.html });
                if asked_for && open.asked != Asked::Html {
                    self.client.show(MessageType::INFO, found.headline.clone());
                }
                let is_unsafe = found.word == "unsafe";
                if self.keep(&key, &open, found) && open.asked == Asked::Check && is_unsafe && !asked_for {
                    // So that the quick fix is ready when it is wanted.
                    self.ask(&key, Asked::Fences, None, None);
                }
                Ok(record)
            }
        };
        if let Some(id) = open.request {
            let code = ErrorCode::RequestFailed as i32;
            self.client.respond(match result {
                Ok(record) => Response::new_ok(id, record),
                Err(why) => Response::new_err(id, code, why),
            });
        }
    }

    /// Keeps what was found, if it is about the text that is open now.
    fn keep(&mut self, key: &str, open: &Open, found: Reply) -> bool {
        let Some(document) =
            self.documents.get_mut(key).filter(|document| document.revision == open.revision)
        else {
            return false;
        };
        if open.asked == Asked::Html {
            return true;
        }
        if open.asked == Asked::Fences {
            document.fix = found.fix;
        }
        document.answers.insert(open.asked, found.brief);
        document.findings.insert(open.asked, found.findings);
        self.publish(key);
        self.client.refresh_lenses(self.questions);
        true
    }
}
