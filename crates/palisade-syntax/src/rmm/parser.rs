//! Parses sections and declarations. Statements are in [`super::statements`], expressions in [`super::expr`].
//!
//! After an error the parser skips to the next statement, declaration or section, so that one run finds every
//! error.

use super::ast::{Combination, Declaration, File, Process, Word};
use super::messages::Messages;
use super::stream::{Mark, Stream};
use super::token::{Here, Token, TokenKind};
use crate::limits::MAX_SIZE;
use crate::suggest::nearest;
use palisade_base::Diagnostic;
use palisade_program::Value;

/// Parses a file. Parts with errors are reported and left out.
pub(crate) fn parse<'a>(text: &'a str, tokens: Stream<'a>, messages: &mut Messages) -> File<'a> {
    let mut parser =
        Parser { text, tokens, depth: 0, size: 0, labels: Vec::new(), reported_at: None, messages };
    parser.file()
}

/// The state of the parser.
pub(super) struct Parser<'a, 'm> {
    pub(super) text: &'a str,
    tokens: Stream<'a>,
    /// How many statements and expressions are open.
    pub(super) depth: u32,
    /// The size of the program so far, as [`MAX_SIZE`] counts it.
    size: usize,
    /// The labels of the process so far.
    pub(super) labels: Vec<Word<'a>>,
    /// Where the last error was reported. Only the first error at a token is reported.
    reported_at: Option<usize>,
    pub(super) messages: &'m mut Messages,
}

/// There was an error. It has been reported.
pub(super) struct Reported;

/// The result of a parsing function.
pub(super) type Parse<T> = Result<T, Reported>;

/// The maximum number of copies of a process, and of processes in a file.
const MAX_PROCESSES: u32 = 1000;

impl<'a> Parser<'a, '_> {
    fn file(&mut self) -> File<'a> {
        let mut file = File::default();
        if self.peek() == TokenKind::Forbidden {
            self.next();
            file.forbidden = self.combinations();
        } else {
            let help = "a file begins with the forbidden states, such as `forbidden CS CS`";
            self.unexpected("`forbidden`", Some(help));
            self.skip_to_section();
        }
        if self.peek() == TokenKind::Predicates {
            self.next();
            self.predicates();
        }
        if self.peek() == TokenKind::Data {
            self.next();
            file.globals = self.declarations(TokenKind::Name);
        }
        let mut processes = 0u32;
        loop {
            match self.peek() {
                TokenKind::Process => {
                    let process = self.process();
                    processes = processes.saturating_add(process.count);
                    if processes > MAX_PROCESSES {
                        let message = format!("more than {MAX_PROCESSES} processes");
                        self.messages.at(process.here, "", Diagnostic::error("too-many-processes", message));
                        break;
                    }
                    file.processes.push(process);
                }
                TokenKind::End => break,
                TokenKind::Data if file.processes.is_empty() => {
                    self.unexpected("a process", Some("put all global variables into one `data` section"));
                    self.next();
                    self.declarations(TokenKind::Name);
                }
                _ => {
                    self.unexpected("`process`", None);
                    self.next();
                    self.skip_to_section();
                }
            }
        }
        if file.processes.is_empty() && !self.messages.has_errors() {
            self.unexpected("a process", Some("a file needs at least one `process … text …`"));
        }
        file
    }

    fn combinations(&mut self) -> Vec<Combination<'a>> {
        let mut combinations = Vec::new();
        loop {
            let start = self.mark();
            let mut entries = Vec::new();
            while let TokenKind::Name | TokenKind::Star = self.peek() {
                let token = self.next();
                let label = (token.kind == TokenKind::Name).then(|| token.text(self.text));
                entries.push((label, token.here));
            }
            if entries.is_empty() {
                self.unexpected("a label or `*`", Some("write one label, or `*`, per process"));
            } else {
                combinations.push(Combination { entries, here: self.since(start) });
            }
            match self.peek() {
                TokenKind::Semicolon => {
                    self.next();
                }
                TokenKind::Data | TokenKind::Process | TokenKind::Predicates | TokenKind::End => {
                    return combinations;
                }
                _ => {
                    if !combinations.is_empty() {
                        self.unexpected("`;`, `data` or `process`", None);
                    }
                    self.skip_to_section();
                    return combinations;
                }
            }
        }
    }

    /// Predicates guide a search of Memorax that does not exist here. They are parsed and dropped.
    fn predicates(&mut self) {
        loop {
            if self.condition().is_err() {
                self.skip_to_section();
                return;
            }
            match self.peek() {
                TokenKind::Semicolon => {
                    self.next();
                }
                TokenKind::Data | TokenKind::Process => return,
                _ => {
                    self.unexpected("`;`, `data` or `process`", None);
                    self.skip_to_section();
                    return;
                }
            }
        }
    }

    fn process(&mut self) -> Process<'a> {
        let start = self.mark();
        self.next();
        let mut count = 1;
        if self.peek() == TokenKind::LeftParen {
            self.next();
            if self.peek() == TokenKind::Number {
                let here = self.here();
                count = self.number().map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX));
                if count == 0 {
                    let error = Diagnostic::error("empty-process", "this process has no copies");
                    self.messages.at(
                        here,
                        "",
                        error.help("remove the process, or give it at least one copy"),
                    );
                    count = 1;
                }
            } else {
                self.unexpected("the number of copies", Some("`process(2)` declares two processes"));
            }
            if self.expect(TokenKind::RightParen, None).is_err() {
                self.skip_to_section();
            }
        }
        let here = self.since(start);
        let (mut data, mut registers) = (None, None);
        loop {
            let (section, kind, name) = match self.peek() {
                TokenKind::Data => (&mut data, TokenKind::Name, "data"),
                TokenKind::Registers => (&mut registers, TokenKind::Register, "registers"),
                TokenKind::Text => break,
                TokenKind::Process | TokenKind::End => {
                    self.unexpected("`text`", Some("the code of a process follows the word `text`"));
                    break;
                }
                _ if self.starts_statement() => {
                    self.unexpected("`text`", Some("the code of a process follows the word `text`"));
                    break;
                }
                _ => {
                    self.unexpected("`data`, `registers` or `text`", None);
                    self.next();
                    self.skip_to_section();
                    continue;
                }
            };
            let place = self.next().here;
            let declared = self.declarations(kind);
            if section.is_some() {
                let message = format!("this process already has a `{name}` section");
                let error = Diagnostic::error("duplicate-section", message);
                self.messages.at(place, "", error.help("merge the two sections"));
            }
            section.get_or_insert_with(Vec::new).extend(declared);
        }
        let mut body = Vec::new();
        if self.peek() == TokenKind::Text {
            self.next();
            body = self.body();
        } else if self.starts_statement() {
            body = self.body();
        }
        let labels = std::mem::take(&mut self.labels);
        let (data, registers) = (data.unwrap_or_default(), registers.unwrap_or_default());
        Process { count, data, registers, labels, body, here }
    }

    /// Declarations of variables (`TokenKind::Name`) or registers (`TokenKind::Register`), at least one.
    fn declarations(&mut self, kind: TokenKind) -> Vec<Declaration<'a>> {
        let mut declarations = Vec::new();
        let start = self.tokens.taken();
        loop {
            match self.peek() {
                found if found == kind => {
                    let start = self.mark();
                    let name = self.word();
                    let (mut init, mut domain) = (Some(0), None);
                    // Even if there is an error after the name, the name counts as declared, so that its uses
                    // are not errors.
                    if self.declaration(&mut init, &mut domain).is_err() {
                        self.skip_declaration();
                    }
                    declarations.push(Declaration { name, init, domain, here: self.since(start) });
                }
                TokenKind::Name => {
                    self.unexpected("a register", Some("declare a register as `$r = 0 : [0:1]`"));
                    self.next();
                    self.skip_declaration();
                }
                TokenKind::Register => {
                    self.unexpected("a variable", Some("declare registers in a `registers` section"));
                    self.next();
                    self.skip_declaration();
                }
                TokenKind::Semicolon | TokenKind::Comma => {
                    self.unexpected(
                        "a declaration",
                        Some("write declarations one after another, without separators"),
                    );
                    self.next();
                }
                _ if self.tokens.taken() == start => {
                    self.unexpected("a declaration", Some("declare a variable as `x = 0 : [0:1]`"));
                    self.skip_to_section();
                    return declarations;
                }
                _ => return declarations,
            }
        }
    }

    /// The initial value and the domain.
    fn declaration(&mut self, init: &mut Option<Value>, domain: &mut Option<(Value, Value)>) -> Parse<()> {
        self.grow(2)?;
        self.expect(TokenKind::Equal, Some("a declaration needs an initial value: `x = 0 : [0:1]`"))?;
        let start = self.mark();
        *init = match self.peek() {
            TokenKind::Star => {
                self.next();
                None
            }
            _ => Some(self.integer()?),
        };
        let value_here = self.since(start);
        if self.peek() != TokenKind::Colon {
            return Ok(());
        }
        self.next();
        if self.peek() == TokenKind::Name && self.peek_text() == "Z" {
            self.next();
            return Ok(());
        }
        let open = self.mark();
        self.expect(
            TokenKind::LeftBracket,
            Some("a domain is a range such as `[0:1]`, or `Z` for all integers"),
        )?;
        let lo = self.integer()?;
        self.expect(TokenKind::Colon, Some("write a domain as `[0:1]`"))?;
        let hi = self.integer()?;
        self.expect(TokenKind::RightBracket, None)?;
        let here = self.since(open);
        if lo > hi {
            let error = Diagnostic::error("empty-domain", format!("the domain from {lo} to {hi} is empty"));
            self.messages.at(here, "", error.help(format!("did you mean `[{hi}:{lo}]`?")));
            return Ok(());
        }
        *domain = Some((lo, hi));
        if let Some(value) = init.filter(|value| *value < lo || hi < *value) {
            let error = Diagnostic::error(
                "outside-domain",
                format!("the initial value {value} is not in the domain"),
            );
            self.messages.at_both(value_here, "", Some((here, "the domain")), error);
        }
        Ok(())
    }

    /// A number with an optional sign.
    fn integer(&mut self) -> Parse<Value> {
        let negative = self.peek() == TokenKind::Minus;
        if negative {
            self.next();
        }
        if self.peek() != TokenKind::Number {
            self.unexpected("a number", None);
            return Err(Reported);
        }
        let value = self.number()?;
        Ok(if negative { -value } else { value })
    }

    /// The value of the number that comes next.
    pub(super) fn number(&mut self) -> Parse<Value> {
        let token = self.next();
        token.text(self.text).parse().map_err(|_| {
            let message = "this number is too large".to_owned();
            let error = Diagnostic::error("number-too-large", message);
            self.messages.at(token.here, "", error.help(format!("the largest number is {}", Value::MAX)));
            Reported
        })
    }

    /// The name or register that comes next.
    pub(super) fn word(&mut self) -> Word<'a> {
        let token = self.next();
        let text = token.text(self.text);
        Word { text: text.strip_prefix('$').unwrap_or(text), here: token.here }
    }

    /// The kind of the next token.
    pub(super) fn peek(&self) -> TokenKind {
        self.tokens.peek().kind
    }

    /// The kind of the token after the next.
    pub(super) fn peek_second(&self) -> TokenKind {
        self.tokens.peek_second().kind
    }

    /// The text of the next token.
    pub(super) fn peek_text(&self) -> &'a str {
        self.tokens.peek().text(self.text)
    }

    /// The place of the next token.
    pub(super) fn here(&self) -> Here {
        self.tokens.peek().here
    }

    /// The current position, for [`Parser::since`].
    pub(super) fn mark(&self) -> Mark {
        self.tokens.mark()
    }

    /// Takes the next token. At the end of the file it stays there.
    pub(super) fn next(&mut self) -> Token {
        self.tokens.take(self.messages)
    }

    /// Takes the next token, which must be of that kind.
    pub(super) fn expect(&mut self, kind: TokenKind, help: Option<&str>) -> Parse<Token> {
        if self.peek() == kind {
            return Ok(self.next());
        }
        self.unexpected(kind.describe(), help);
        Err(Reported)
    }

    /// The place from a position up to here.
    pub(super) fn since(&self, start: Mark) -> Here {
        self.tokens.since(start)
    }

    /// Reports that the next token is not what was expected.
    pub(super) fn unexpected(&mut self, expected: &str, help: Option<&str>) {
        let token = self.tokens.peek();
        let text = token.text(self.text);
        let found = match token.kind {
            TokenKind::Name | TokenKind::Register | TokenKind::Number | TokenKind::Reserved
                if text.len() <= 40 =>
            {
                format!("`{text}`")
            }
            kind => kind.describe().to_owned(),
        };
        let mut error = Diagnostic::error("unexpected-token", format!("expected {expected}, found {found}"));
        let wanted = expected.split('`').skip(1).step_by(2);
        if let Some(help) = help {
            error = error.help(help);
        } else if let Some(word) = (token.kind == TokenKind::Name).then(|| nearest(text, wanted)).flatten() {
            error = error.help(format!("did you mean `{word}`?"));
        }
        self.report_once("", None, error);
    }

    /// Reports an error at the next token, unless an error was already reported there.
    pub(super) fn report_once(&mut self, text: &str, context: Option<(Here, &str)>, error: Diagnostic) {
        if self.reported_at != Some(self.tokens.taken()) && self.peek() != TokenKind::Broken {
            self.reported_at = Some(self.tokens.taken());
            self.messages.at_both(self.tokens.peek().here, text, context, error);
        }
    }

    /// Adds to the size of the program. If it is too large, the rest of the file is skipped.
    pub(super) fn grow(&mut self, by: usize) -> Parse<()> {
        self.size += by;
        if self.size <= MAX_SIZE {
            return Ok(());
        }
        let message = format!("the program has more than {MAX_SIZE} expressions and statements");
        self.report_once("up to here", None, Diagnostic::error("too-large", message));
        self.tokens.give_up(self.messages);
        self.reported_at = Some(self.tokens.taken());
        Err(Reported)
    }

    /// Skips to the next section.
    fn skip_to_section(&mut self) {
        while !matches!(
            self.peek(),
            TokenKind::Data
                | TokenKind::Process
                | TokenKind::Predicates
                | TokenKind::Registers
                | TokenKind::Text
                | TokenKind::End
        ) {
            self.next();
        }
    }

    /// Skips to the next declaration: a name followed by `=`.
    fn skip_declaration(&mut self) {
        loop {
            match self.peek() {
                TokenKind::Data
                | TokenKind::Process
                | TokenKind::Registers
                | TokenKind::Text
                | TokenKind::End => return,
                TokenKind::Name | TokenKind::Register if self.peek_second() == TokenKind::Equal => return,
                _ => drop(self.next()),
            }
        }
    }
}
