//! What the server can do, and what the user may set.

use crate::lens::COMMANDS;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, ExecuteCommandOptions,
    HoverProviderCapability, OneOf, PositionEncodingKind, RenameOptions, SaveOptions, ServerCapabilities,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    WorkDoneProgressOptions,
};
use palisade::Model;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The features, in the words of the protocol.
pub(crate) fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(PositionEncodingKind::UTF16),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..CodeActionOptions::default()
        })),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: COMMANDS.map(str::to_owned).to_vec(),
            work_done_progress_options: WorkDoneProgressOptions { work_done_progress: Some(true) },
        }),
        ..ServerCapabilities::default()
    }
}

/// What the user may set: the `initializationOptions` of the client.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Settings {
    /// The memory model: `sc`, `tso` or `pso`.
    model: String,
    /// Whether programs are checked when they are saved.
    pub(crate) check_on_save: bool,
    /// Seconds for each question; by default those of the command line.
    budget: Option<f64>,
    /// Values of constants, as with `-D`. Each program takes those that it has.
    pub(crate) constants: BTreeMap<String, i64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: Model::Tso.name().to_owned(),
            check_on_save: true,
            budget: None,
            constants: BTreeMap::new(),
        }
    }
}

impl Settings {
    pub(crate) fn model(&self) -> Model {
        Model::ALL.into_iter().find(|model| model.name() == self.model).unwrap_or(Model::Tso)
    }

    /// The time for one question.
    pub(crate) fn budget(&self, usual: Duration) -> Duration {
        let seconds = self.budget.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.filter(|time| !time.is_zero()).unwrap_or(usual)
    }
}
