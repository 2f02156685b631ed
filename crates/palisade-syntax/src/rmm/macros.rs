//! Macros: `macro NAME(params) … endmacro` and `NAME(args)`.
//!
//! The body of a macro and its arguments are sequences of tokens. They need not be whole statements or
//! expressions. A parameter is replaced where it appears in the macro's body. Macro calls in an argument are
//! expanded too, but parameter names in an argument are not replaced.
//!
//! *Invariant*: a token that comes from a macro carries the call, and a position in the macro's body.
//!
//! *Cost*: linear in the output. Nested calls can make that exponential, so there is a limit.

use super::lexer::lex;
use super::messages::Messages;
use super::stream::Stream;
use super::token::{CallId, Here, Token, TokenKind};
use crate::report::plural;
use palisade_base::Diagnostic;
use std::collections::HashMap;
use std::ops::Range;

/// How many tokens macros can produce, counting every time a token is moved.
const MAX_MOVES: usize = 8_000_000;

/// The tokens with macros expanded; `None` if there would be too many.
pub(crate) fn expand<'a>(text: &'a str, messages: &mut Messages) -> Option<Stream<'a>> {
    if !text.contains("macro") {
        return Some(Stream::of_text(text, messages));
    }
    let lexed = lex(text, messages);
    expanded(text, &lexed, messages).map(Stream::of_tokens)
}

fn expanded(text: &str, lexed: &[Token], messages: &mut Messages) -> Option<Vec<Token>> {
    let mut expander = Expander {
        text,
        lexed,
        definitions: Vec::new(),
        by_name: HashMap::new(),
        feeds: vec![Feed::File { at: 0 }],
        put_back: None,
        pool: Vec::new(),
        moves: 0,
        messages,
    };
    expander.run()
}

/// A macro.
struct Definition<'a> {
    params: Vec<&'a str>,
    body: Range<usize>,
    name: Here,
    /// Whether a call of it is being expanded.
    active: bool,
}

/// A source of tokens. The innermost is on top.
enum Feed {
    /// The file itself, always at the bottom.
    File { at: usize },
    /// The body of a macro.
    Body { definition: usize, at: usize, args: Vec<Range<usize>>, call: CallId },
    /// An argument in place of a parameter.
    Argument { at: usize, end: usize, here: Here },
}

struct Expander<'a, 'm> {
    text: &'a str,
    lexed: &'a [Token],
    definitions: Vec<Definition<'a>>,
    by_name: HashMap<&'a str, usize>,
    feeds: Vec<Feed>,
    put_back: Option<Token>,
    /// The tokens of all arguments.
    pool: Vec<Token>,
    moves: usize,
    messages: &'m mut Messages,
}

impl<'a> Expander<'a, '_> {
    fn run(&mut self) -> Option<Vec<Token>> {
        let mut out = Vec::with_capacity(self.lexed.len());
        loop {
            let token = self.next();
            if self.moves > MAX_MOVES {
                let error = Diagnostic::error("macro-too-large", "the expansion of macros is too large");
                let help = format!("nested calls can produce at most {MAX_MOVES} tokens");
                self.messages.at(token.here, "", error.help(help));
                return None;
            }
            match token.kind {
                TokenKind::Macro => self.define(token),
                TokenKind::EndMacro => {
                    let error = Diagnostic::error("unexpected-token", "`endmacro` without `macro`");
                    self.messages.at(token.here, "", error);
                }
                TokenKind::Name if self.by_name.contains_key(token.text(self.text)) => {
                    if !self.call(token) {
                        out.push(Token { kind: TokenKind::Broken, ..token });
                    }
                }
                TokenKind::End => {
                    out.push(token);
                    return Some(out);
                }
                _ => out.push(token),
            }
        }
    }

    /// The next token, with parameters replaced.
    fn next(&mut self) -> Token {
        if let Some(token) = self.put_back.take() {
            return token;
        }
        loop {
            match self.feeds.last_mut().expect("the file is always the first feed") {
                Feed::File { at } => {
                    let token = self.lexed[*at];
                    *at += usize::from(token.kind != TokenKind::End);
                    return token;
                }
                Feed::Body { definition, at, args, call } => {
                    let definition = &mut self.definitions[*definition];
                    if *at == definition.body.end {
                        definition.active = false;
                        self.feeds.pop();
                        continue;
                    }
                    let token = self.lexed[*at];
                    *at += 1;
                    self.moves += 1;
                    let here = Here { span: token.here.span, call: *call };
                    debug_assert!(*call != CallId::NONE, "a body is read only for a call");
                    let param = (token.kind == TokenKind::Name)
                        .then(|| definition.params.iter().position(|param| *param == token.text(self.text)))
                        .flatten();
                    match param.map(|param| args[param].clone()) {
                        Some(Range { start, end }) => {
                            self.feeds.push(Feed::Argument { at: start, end, here })
                        }
                        None => return Token { here, ..token },
                    }
                }
                Feed::Argument { at, end, here } => {
                    if at == end {
                        self.feeds.pop();
                        continue;
                    }
                    debug_assert!(
                        here.call != CallId::NONE,
                        "an argument is read only inside a macro's body"
                    );
                    let token = Token { here: *here, ..self.pool[*at] };
                    *at += 1;
                    self.moves += 1;
                    return token;
                }
            }
        }
    }

    /// Parses a definition after `macro`. Definitions do not nest, so this is always in the file itself.
    fn define(&mut self, start: Token) {
        let name = self.next();
        let mut usable = self.is_name(name, "the macro's name");
        let mut params = Vec::new();
        let mut token = if usable { self.next() } else { name };
        if token.kind == TokenKind::LeftParen {
            token = self.next();
            while token.kind != TokenKind::RightParen {
                if !self.is_name(token, "a parameter or `)`") {
                    usable = false;
                    break;
                }
                let param = token.text(self.text);
                if params.contains(&param) {
                    let error = Diagnostic::error(
                        "duplicate-name",
                        format!("the parameter `{param}` is declared twice"),
                    );
                    self.messages.at(token.here, "", error);
                }
                params.push(param);
                token = self.next();
                if token.kind == TokenKind::Comma {
                    token = self.next();
                }
            }
            if usable {
                token = self.next();
            }
        } else if usable {
            self.unexpected(token, "`(`");
        }
        let Feed::File { at } = self.feeds[0] else { unreachable!("the file is the first feed") };
        let first = at - usize::from(token.kind != TokenKind::End);
        let mut end = first;
        while !matches!(self.lexed[end].kind, TokenKind::EndMacro | TokenKind::End) {
            if self.lexed[end].kind == TokenKind::Macro {
                let error = Diagnostic::error("unexpected-token", "a macro cannot be defined inside a macro");
                let help = "end the first one with `endmacro`";
                self.messages.at_both(
                    self.lexed[end].here,
                    "",
                    Some((start.here, "this macro is not closed")),
                    error.help(help),
                );
                usable = false;
            }
            end += 1;
        }
        if self.lexed[end].kind == TokenKind::End {
            let error = Diagnostic::error("unterminated-macro", "this macro is not closed");
            self.messages.at(start.here, "it begins here", error.help("end it with `endmacro`"));
            usable = false;
        }
        self.feeds[0] = Feed::File { at: end + usize::from(self.lexed[end].kind == TokenKind::EndMacro) };
        if !usable {
            return;
        }
        let word = name.text(self.text);
        if let Some(&first) = self.by_name.get(word) {
            let error = Diagnostic::error("duplicate-name", format!("the macro `{word}` is defined twice"));
            let before = self.definitions[first].name;
            self.messages.at_both(name.here, "", Some((before, "first defined here")), error);
            return;
        }
        self.by_name.insert(word, self.definitions.len());
        self.definitions.push(Definition { params, body: first..end, name: name.here, active: false });
    }

    /// Parses the arguments of a call after its name, and starts to expand its body. Returns whether that
    /// worked.
    fn call(&mut self, name: Token) -> bool {
        let word = name.text(self.text);
        let index = self.by_name[word];
        let open = self.next();
        if open.kind != TokenKind::LeftParen {
            let error = Diagnostic::error(
                "unexpected-token",
                format!("the macro `{word}` is used without arguments"),
            );
            let help = format!("call it as `{word}(…)`, or rename the macro or the other item");
            self.messages.at_both(
                name.here,
                "",
                Some((self.definitions[index].name, "the macro")),
                error.help(help),
            );
            self.put_back = Some(open);
            return false;
        }
        let Some(args) = self.arguments(name) else { return false };
        let definition = &mut self.definitions[index];
        if args.len() != definition.params.len() {
            let message = format!(
                "the macro `{word}` takes {}, not {}",
                plural(definition.params.len(), "argument"),
                args.len()
            );
            let defined = Some((definition.name, "defined here"));
            self.messages.at_both(name.here, "", defined, Diagnostic::error("wrong-arity", message));
            return false;
        }
        if definition.active {
            let error = Diagnostic::error("recursive-macro", format!("the macro `{word}` calls itself"));
            self.messages.at(
                name.here,
                "",
                error.help("macros are expanded in place, so they cannot be recursive"),
            );
            return false;
        }
        definition.active = true;
        let at = definition.body.start;
        let call = self.messages.call(name.here);
        self.moves += 1;
        self.feeds.push(Feed::Body { definition: index, at, args, call });
        true
    }

    /// Parses arguments up to the closing parenthesis; `None` if the file ends before it.
    fn arguments(&mut self, name: Token) -> Option<Vec<Range<usize>>> {
        let mut args = Vec::new();
        let mut start = self.pool.len();
        let mut nesting = 1;
        loop {
            let token = self.next();
            let ends_argument = match token.kind {
                TokenKind::Comma => nesting == 1,
                TokenKind::LeftParen => {
                    nesting += 1;
                    false
                }
                TokenKind::RightParen => {
                    nesting -= 1;
                    nesting == 0
                }
                TokenKind::End | TokenKind::Macro | TokenKind::EndMacro => {
                    let error =
                        Diagnostic::error("unterminated-call", "the arguments of this call are not closed");
                    self.messages.at(name.here, "", error.help("end them with `)`"));
                    self.put_back = Some(token);
                    return None;
                }
                _ => false,
            };
            if !ends_argument {
                self.pool.push(token);
                continue;
            }
            let end = self.pool.len();
            let has_no_arguments = token.kind == TokenKind::RightParen && args.is_empty() && end == start;
            if end == start && !has_no_arguments {
                let error = Diagnostic::error("empty-argument", "an argument of a macro is empty");
                self.messages.at(token.here, "", error);
            }
            if !has_no_arguments {
                args.push(start..end);
            }
            if token.kind == TokenKind::RightParen {
                return Some(args);
            }
            start = end;
        }
    }

    fn is_name(&mut self, token: Token, expected: &str) -> bool {
        if token.kind != TokenKind::Name {
            self.unexpected(token, expected);
        }
        token.kind == TokenKind::Name
    }

    fn unexpected(&mut self, token: Token, expected: &str) {
        let message = format!("expected {expected}, found {}", token.kind.describe());
        let help = "write `macro NAME(a,b) … endmacro`";
        self.messages.at(token.here, "", Diagnostic::error("unexpected-token", message).help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<String, Vec<&'static str>> {
        let mut messages = Messages::default();
        let lexed = lex(text, &mut messages);
        let tokens = expanded(text, &lexed, &mut messages).unwrap_or_default();
        if messages.has_errors() {
            let errors = messages.finish(Default::default()).unwrap_err();
            return Err(errors.iter().map(|error| error.id).collect());
        }
        let words: Vec<&str> =
            tokens.iter().map(|token| token.text(text)).filter(|word| !word.is_empty()).collect();
        Ok(words.join(" "))
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(words(text).as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn calls_are_replaced_by_the_text() {
        check("macro m() nop; nop endmacro a m() b m()", "a nop ; nop b nop ; nop");
        check("macro m(x,y) x + y endmacro m(1,(2,3)) m($r, 4-5)", "1 + ( 2 , 3 ) $r + 4 - 5");
        check(
            "macro p(i) [4+i] endmacro macro q(x) cas(x,0,1) endmacro q(p(2))",
            "cas ( [ 4 + 2 ] , 0 , 1 )",
        );
        check("macro half(x) process text x endmacro half(nop); fence", "process text nop ; fence");
        check("macro p(x) x x endmacro macro q(x) p(x) endmacro q(y)", "y y");
        check("macro p(x) x x endmacro macro q(y) p(x) endmacro q(z)", "x x");
        check("macro n() 2 endmacro [0:n()]", "[ 0 : 2 ]");
    }

    #[test]
    fn nonsense_is_rejected() {
        let check = |text: &str, id: &'static str| assert_eq!(words(text), Err(vec![id]), "{text}");
        check("macro m(x) x endmacro m()", "wrong-arity");
        check("macro m(x) x endmacro m(1,2)", "wrong-arity");
        check("macro m(x) x endmacro m(1", "unterminated-call");
        check("macro m(x,y) x endmacro m(1,)", "empty-argument");
        check("macro m(x) x endmacro m", "unexpected-token");
        check("macro m() m() endmacro m()", "recursive-macro");
        check("macro m(x) x endmacro m(m(1))", "recursive-macro");
        check("macro a() b() endmacro macro b() a() endmacro a()", "recursive-macro");
        check("macro m(x,x) x endmacro", "duplicate-name");
        check("macro m() endmacro macro m() endmacro", "duplicate-name");
        check("macro m() nop", "unterminated-macro");
        check("macro if() nop endmacro", "unexpected-token");
        check("macro m nop endmacro", "unexpected-token");
        check("endmacro", "unexpected-token");
        check("macro a() macro b() endmacro nop", "unexpected-token");
    }

    #[test]
    fn growth_is_limited() {
        let mut text = "macro m0() nop; nop endmacro ".to_owned();
        for i in 1..60 {
            text += &format!("macro m{i}() m{}() m{}() endmacro ", i - 1, i - 1);
        }
        assert_eq!(words(&(text.clone() + "m59()")), Err(vec!["macro-too-large"]));
        let nothing = text.replace("nop; nop", "") + "m59()";
        assert_eq!(words(&nothing), Err(vec!["macro-too-large"]));
    }
}
