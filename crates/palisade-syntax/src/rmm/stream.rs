//! The tokens of a file, one after another. Without macros they come directly from the text and are not
//! stored.

use super::lexer::Lexer;
use super::messages::Messages;
use super::token::{Here, Token, TokenKind};

/// A position in a stream.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    /// The place of the token.
    here: Here,
    /// Its number.
    at: usize,
}

/// Where tokens come from.
enum Origin<'a> {
    /// The text.
    Text(Lexer<'a>),
    /// The expanded tokens. `at` counts tokens, so the index of the token after the next two is known.
    Expanded(Vec<Token>),
}

/// Tokens with two tokens of lookahead.
pub(crate) struct Stream<'a> {
    origin: Origin<'a>,
    next: Token,
    second: Token,
    last: Token,
    /// How many tokens were taken.
    at: usize,
}

impl<'a> Stream<'a> {
    /// The tokens of a text without macros.
    pub fn of_text(text: &'a str, messages: &mut Messages) -> Stream<'a> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next(messages);
        let second = lexer.next(messages);
        Stream { origin: Origin::Text(lexer), next, second, last: next, at: 0 }
    }

    /// A stream of these tokens. The last one must be [`TokenKind::End`].
    pub fn of_tokens(tokens: Vec<Token>) -> Stream<'a> {
        let end = *tokens.last().expect("the last token is the end");
        let (next, second) = (tokens[0], tokens.get(1).copied().unwrap_or(end));
        Stream { origin: Origin::Expanded(tokens), next, second, last: next, at: 0 }
    }

    /// The next token.
    pub fn peek(&self) -> Token {
        self.next
    }

    /// The token after it.
    pub fn peek_second(&self) -> Token {
        self.second
    }

    /// Takes the next token. At the end it stays there.
    pub fn take(&mut self, messages: &mut Messages) -> Token {
        let taken = self.next;
        if taken.kind != TokenKind::End {
            self.at += 1;
            self.last = taken;
            self.next = self.second;
            self.second = match &mut self.origin {
                Origin::Text(lexer) => lexer.next(messages),
                Origin::Expanded(tokens) => tokens.get(self.at + 1).copied().unwrap_or(self.next),
            };
        }
        taken
    }

    /// How many tokens were taken.
    pub fn taken(&self) -> usize {
        self.at
    }

    /// The position of the next token.
    pub fn mark(&self) -> Mark {
        Mark { here: self.next.here, at: self.at }
    }

    /// The place from a position up to here. If macros are involved, it covers only what is in the same text
    /// as the first token.
    pub fn since(&self, start: Mark) -> Here {
        if self.at == start.at {
            return start.here;
        }
        let last = match &self.origin {
            Origin::Expanded(tokens) if self.last.here.call != start.here.call => {
                let taken = tokens[start.at..self.at].iter().rev();
                taken.map(|token| token.here).find(|here| here.call == start.here.call).unwrap_or(start.here)
            }
            _ => self.last.here,
        };
        Here { span: start.here.span.to(last.span), ..start.here }
    }

    /// Skips everything up to the end.
    pub fn give_up(&mut self, messages: &mut Messages) {
        if let Origin::Text(lexer) = &mut self.origin {
            lexer.give_up();
        }
        while self.next.kind != TokenKind::End {
            self.take(messages);
        }
    }
}
