//! The loop: one event at a time, from the client or from a question that was answered.
//!
//! *Invariants.*
//! 1. Nothing in the loop takes longer than reading the texts of one program.
//! 2. At most one question per file is open, besides those of hovers: a newer one stops the older one.
//! 3. An answer is shown only if it is about the text that is open now.
//! 4. Every request gets exactly one response.

mod asking;
mod notifications;
mod requests;

use crate::client::Client;
use crate::documents::Document;
use crate::places::{open_texts, program};
use crate::problems::problems;
use crate::questions::{Asked, Reply, Stop};
use crate::settings::Settings;
use crate::transport::{Received, receive, send};
use lsp_server::{Message, RequestId};
use lsp_types::notification::{Exit, Notification as _};
use lsp_types::{Range, Uri};
use palisade::syntax::names::Symbol;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::time::Duration;

/// The most time for writing the last messages.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// How the server works.
#[derive(Clone, Debug)]
pub struct Config {
    /// The time for one question.
    pub budget: Duration,
    /// The memory for one question, in bytes.
    pub memory: u64,
    /// Threads for one question.
    pub jobs: usize,
    /// The command that checks C programs: `palisade` itself.
    pub command: Option<PathBuf>,
    /// What this is, with its version.
    pub version: String,
}

/// How the connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The client asked the server to shut down first.
    Properly,
    /// The client just left.
    Abruptly,
}

/// Something that happens.
pub(crate) enum Event {
    /// The client sent something, or left.
    Received(Received),
    /// The question with this number was answered.
    Answered(u64, Box<Result<Reply, String>>),
}

/// Serves a client until it leaves.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write + Send + 'static,
    config: Config,
) -> Ended {
    let (events, incoming) = channel();
    let (outgoing, messages) = channel();
    let received = events.clone();
    std::thread::spawn(move || {
        loop {
            // A stream that cannot be read has ended.
            let next = receive(&mut input).unwrap_or(Received::End);
            let is_end = matches!(next, Received::End);
            if received.send(Event::Received(next)).is_err() || is_end {
                break;
            }
        }
    });
    let (written, last) = channel::<()>();
    std::thread::spawn(move || {
        let mut messages = messages.iter().map_while(|message: Option<Message>| message);
        // If the client does not read, it will leave, which the other thread notices.
        let _ = messages.try_for_each(|message| send(&mut output, &message));
        drop(written);
    });
    let mut server = Server::new(config, Client::new(outgoing), events);
    server.run(&incoming);
    server.open.values().for_each(|question| question.stop.stop());
    server.client.finish();
    if server.phase != Phase::ShutDown {
        return Ended::Abruptly;
    }
    // The last messages are still written, unless the client does not read them.
    let _ = last.recv_timeout(LAST_MESSAGES);
    Ended::Properly
}

/// How far the connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Starting,
    Running,
    ShutDown,
}

/// A question that is being answered.
struct Open {
    asked: Asked,
    uri: Uri,
    /// The revision of the program that it is about.
    revision: u64,
    stop: Stop,
    /// The request that waits for the answer.
    request: Option<RequestId>,
    /// The name that a hover is about.
    hover: Option<(Symbol, Range)>,
}

struct Server {
    config: Config,
    client: Client,
    events: Sender<Event>,
    settings: Settings,
    phase: Phase,
    documents: BTreeMap<String, Document>,
    open: BTreeMap<u64, Open>,
    /// Files whose text has changed since it was last looked at.
    changed: BTreeSet<String>,
    /// Files for which diagnostics have been published because of another file.
    elsewhere: BTreeMap<String, Vec<Uri>>,
    questions: u64,
}

impl Server {
    fn new(config: Config, client: Client, events: Sender<Event>) -> Server {
        Server {
            config,
            client,
            events,
            settings: Settings::default(),
            phase: Phase::Starting,
            documents: BTreeMap::new(),
            open: BTreeMap::new(),
            changed: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
            questions: 0,
        }
    }

    /// Handles events until the client leaves. Texts are looked at once nothing else has come in.
    fn run(&mut self, incoming: &Receiver<Event>) {
        loop {
            let event = match incoming.try_recv() {
                Ok(event) => event,
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    self.look_at_changes();
                    match incoming.recv() {
                        Ok(event) => event,
                        Err(RecvError) => return,
                    }
                }
            };
            match event {
                Event::Received(Received::Message(Message::Request(request))) => self.request(request),
                Event::Received(Received::Message(Message::Notification(message))) => {
                    if message.method == Exit::METHOD {
                        return;
                    }
                    self.notification(message);
                }
                // Answers to requests of ours do not matter.
                Event::Received(Received::Message(Message::Response(_))) => {}
                Event::Received(Received::Malformed(why)) => self.client.log(why),
                Event::Received(Received::End) => return,
                Event::Answered(number, found) => self.answered(number, *found),
            }
        }
    }

    /// Finds what is wrong with texts that have changed, and with programs that import them.
    fn look_at_changes(&mut self) {
        if self.changed.is_empty() {
            return;
        }
        let importing = self.documents.iter().filter(|(_, document)| document.text.contains("import"));
        self.changed.extend(importing.map(|(key, _)| key.clone()).collect::<Vec<_>>());
        let open = open_texts(self.documents.values());
        for key in std::mem::take(&mut self.changed) {
            let Some(document) = self.documents.get_mut(&key) else { continue };
            let (source, places) = program(document, &open, &self.settings.constants);
            let others_changed = document.set_program(source, places);
            document.problems = problems(document);
            let uri = document.uri.clone();
            if others_changed {
                self.stop_where(|open| open.uri == uri && open.request.is_none());
            }
            self.publish(&key);
        }
    }

    /// Publishes what is known about a file, and about others because of it.
    fn publish(&mut self, key: &str) {
        let Some(document) = self.documents.get(key) else { return };
        let main = document.uri.clone();
        let found = document.problems.iter().chain(document.findings.values().flatten());
        let places = found.map(|(uri, _)| uri);
        let mut now: Vec<Uri> = places.filter(|uri| **uri != main).cloned().collect();
        now.sort_unstable();
        now.dedup();
        let before = self.elsewhere.insert(key.to_owned(), now.clone()).unwrap_or_default();
        let gone = before.iter().filter(|uri| !now.contains(uri));
        for other in now.iter().chain(gone) {
            self.publish_for(other);
        }
        self.publish_for(&main);
    }

    /// Publishes everything that is known about one file.
    fn publish_for(&self, uri: &Uri) {
        let document = self.documents.get(uri.as_str());
        let mut shown = Vec::new();
        for document in self.documents.values() {
            let found = document.problems.iter().chain(document.findings.values().flatten());
            for (_, found) in found.filter(|(place, _)| place == uri) {
                // Several programs may import a file that is wrong.
                if !shown.contains(found) {
                    shown.push(found.clone());
                }
            }
        }
        let version = document.map(|document| document.version);
        self.client.publish(uri.clone(), shown, version);
    }
}
