//! Metadata: what debug information needs is kept, the rest is skipped.

use super::{Mention, Parse, Parser};
use crate::calls::ArgumentValue;
use crate::debug::{Node, NodeId, SourceType};
use crate::token::{Token, unescape};
use palisade_base::{Diagnostic, Span};

/// The value of a field such as `line: 5`.
#[derive(Clone, Copy)]
enum Field<'a> {
    /// `!5`, or a node that is written in place.
    Node(NodeId),
    /// `"text"`, with escapes.
    Text(&'a str),
    /// Anything else, as it is written.
    Raw(&'a str),
}

/// The fields of a node. Fields without a name have an empty one.
struct Fields<'a>(Vec<(&'a str, Field<'a>)>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<Field<'a>> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    fn node(&self, name: &str) -> Option<NodeId> {
        match self.get(name)? {
            Field::Node(node) => Some(node),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<Box<str>> {
        match self.get(name)? {
            Field::Text(raw) => Some(String::from_utf8_lossy(&unescape(raw)).into()),
            _ => None,
        }
    }

    fn raw(&self, name: &str) -> Option<&'a str> {
        match self.get(name)? {
            Field::Raw(raw) => Some(raw),
            _ => None,
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.raw(name)?.parse().ok()
    }

    fn line(&self) -> u32 {
        self.number("line").and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.raw("flags").is_some_and(|flags| flags.split('|').any(|word| word.trim() == flag))
    }
}

impl<'a> Parser<'a> {
    /// `!5 = …`
    pub(super) fn metadata_definition(&mut self, number: u32) -> Parse<()> {
        let span = self.current.span;
        let id = self.node_id(number);
        self.advance();
        self.sign(b'=')?;
        self.eat_word("distinct");
        let node = match self.token() {
            Token::Sign(b'!') | Token::MetadataName(_) => self.node()?,
            token => return Err(self.expected("a node of metadata", token)),
        };
        if self.node_mentions[id].defined {
            let message = format!("`!{number}` is defined twice");
            return Err(Box::new(Diagnostic::error("duplicate-name", message).at(span, "")));
        }
        self.node_mentions[id].defined = true;
        self.module.debug.nodes[id] = node;
        Ok(())
    }

    /// `!llvm.ident = !{!3}`: lists that say nothing about the program.
    pub(super) fn named_metadata(&mut self) -> Parse<()> {
        self.advance();
        self.sign(b'=')?;
        self.eat_word("distinct");
        match self.token() {
            Token::Sign(b'!') => self.node().map(|_| ()),
            token => Err(self.expected("a list of metadata", token)),
        }
    }

    /// The id of `!5`, at its first mention a new one.
    fn node_id(&mut self, number: u32) -> NodeId {
        if let Some(&id) = self.nodes.get(&number) {
            return id;
        }
        let id = self.push_node(Node::Other, Mention { defined: false, span: self.current.span });
        self.nodes.insert(number, id);
        id
    }

    fn push_node(&mut self, node: Node, mention: Mention) -> NodeId {
        self.node_mentions.push(mention);
        self.module.debug.nodes.push(node)
    }

    /// A node by number or in place.
    pub(super) fn metadata_node(&mut self) -> Parse<NodeId> {
        match self.token() {
            Token::MetadataNode(number) => {
                let id = self.node_id(number);
                self.advance();
                Ok(id)
            }
            Token::MetadataName(_) | Token::Sign(b'!') => {
                let span = self.current.span;
                let node = self.node()?;
                Ok(self.push_node(node, Mention { defined: true, span }))
            }
            token => Err(self.expected("a node of metadata", token)),
        }
    }

    /// A node that is written in place: a list, a string or `!DIFile(…)`.
    fn node(&mut self) -> Parse<Node> {
        self.nested(|parser| match parser.token() {
            Token::MetadataName(name) => {
                parser.advance();
                parser.specialized(name)
            }
            _ => {
                parser.sign(b'!')?;
                match parser.token() {
                    Token::Text(_) => {
                        parser.advance();
                        Ok(Node::Other)
                    }
                    _ => parser.tuple(),
                }
            }
        })
    }

    /// `{!1, null, i32 5}`
    fn tuple(&mut self) -> Parse<Node> {
        self.sign(b'{')?;
        let mut items = Vec::new();
        while !self.at_sign(b'}') {
            items.push(self.item_of_tuple()?);
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b'}')?;
        Ok(Node::Tuple(items.into()))
    }

    fn item_of_tuple(&mut self) -> Parse<Option<NodeId>> {
        match self.token() {
            Token::MetadataNode(_) | Token::MetadataName(_) => self.metadata_node().map(Some),
            Token::Sign(b'!') => match self.peek() {
                Token::Text(_) => {
                    self.advance();
                    self.advance();
                    Ok(None)
                }
                _ => self.metadata_node().map(Some),
            },
            _ => self.skip_value().map(|()| None),
        }
    }

    /// Skips to the next comma or closing bracket.
    fn skip_value(&mut self) -> Parse<()> {
        loop {
            match self.token() {
                Token::Sign(b',' | b')' | b'}' | b']' | b'>') => return Ok(()),
                Token::Sign(b'(' | b'{' | b'[' | b'<') => self.skip_brackets()?,
                Token::End => return Err(self.expected("a value", Token::End)),
                _ => self.advance(),
            }
        }
    }

    /// `(field: value, …)`
    fn specialized(&mut self, name: &str) -> Parse<Node> {
        self.sign(b'(')?;
        let mut fields = Fields(Vec::new());
        while !self.at_sign(b')') {
            let name = match self.token() {
                Token::Label(crate::token::Name::Plain(name)) => {
                    self.advance();
                    name
                }
                _ => "",
            };
            let value = self.field()?;
            fields.0.push((name, value));
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b')')?;
        Ok(build(name, &fields))
    }

    fn field(&mut self) -> Parse<Field<'a>> {
        match self.token() {
            Token::MetadataNode(_) | Token::MetadataName(_) => self.metadata_node().map(Field::Node),
            Token::Sign(b'!') if !matches!(self.peek(), Token::Text(_)) => {
                self.metadata_node().map(Field::Node)
            }
            Token::Text(raw) => {
                self.advance();
                Ok(Field::Text(raw))
            }
            _ => {
                let start = self.current.span.start;
                self.skip_value()?;
                let span = Span { start, end: self.last_end.max(start) };
                Ok(Field::Raw(self.source.slice(span)))
            }
        }
    }

    /// Metadata as an argument of a call, after the type `metadata`.
    pub(super) fn metadata_argument(&mut self, locals: &mut super::locals::Locals) -> Parse<ArgumentValue> {
        match self.token() {
            Token::Sign(b'!') => {
                if let Token::Text(raw) = self.peek() {
                    self.advance();
                    self.advance();
                    return Ok(ArgumentValue::Text(String::from_utf8_lossy(&unescape(raw)).into()));
                }
                self.metadata_node().map(ArgumentValue::Node)
            }
            Token::MetadataNode(_) | Token::MetadataName(_) => self.metadata_node().map(ArgumentValue::Node),
            _ => {
                let (_, operand) = self.typed_operand(locals)?;
                Ok(ArgumentValue::Operand(operand))
            }
        }
    }
}

/// What a node with these fields means.
fn build(name: &str, fields: &Fields<'_>) -> Node {
    let scope = |function: bool| Node::Scope {
        function,
        name: fields.text("name"),
        parent: fields.node("scope"),
        file: fields.node("file"),
        line: fields.line(),
    };
    let ty = |tag: &str| {
        Node::Type(Box::new(SourceType {
            tag: fields.raw("tag").unwrap_or(tag).into(),
            name: fields.text("name"),
            base: fields.node("baseType"),
            bits: fields.number("size"),
            offset_bits: fields.number("offset").unwrap_or(0),
            bit_field: fields.has_flag("DIFlagBitField"),
            elements: fields.node("elements"),
            is_static: fields.has_flag("DIFlagStaticMember"),
        }))
    };
    match name {
        "DILocation" => Node::Location {
            line: fields.line(),
            column: fields.number("column").and_then(|column| u32::try_from(column).ok()).unwrap_or(0),
            scope: fields.node("scope"),
            inlined_at: fields.node("inlinedAt"),
        },
        "DIFile" => Node::File {
            name: fields.text("filename").unwrap_or_default(),
            directory: fields.text("directory").unwrap_or_default(),
        },
        "DISubprogram" => scope(true),
        "DILexicalBlock" | "DILexicalBlockFile" | "DINamespace" | "DIModule" | "DICompileUnit"
        | "DICommonBlock" => scope(false),
        "DILocalVariable" | "DIGlobalVariable" => Node::Variable {
            name: fields.text("name").unwrap_or_default(),
            ty: fields.node("type"),
            parameter: fields.number("arg").and_then(|number| u32::try_from(number).ok()),
            scope: fields.node("scope"),
            file: fields.node("file"),
            line: fields.line(),
        },
        "DIGlobalVariableExpression" => {
            Node::GlobalExpression { variable: fields.node("var"), expression: fields.node("expr") }
        }
        "DIExpression" => {
            let raw = |(_, field): &(&str, Field<'_>)| match field {
                Field::Raw(raw) | Field::Text(raw) => (*raw).into(),
                Field::Node(_) => "!".into(),
            };
            Node::Expression(fields.0.iter().map(raw).collect())
        }
        "DIBasicType" => ty("DW_TAG_base_type"),
        "DIDerivedType" => ty("DW_TAG_member"),
        "DICompositeType" => ty("DW_TAG_structure_type"),
        "DISubroutineType" => ty("DW_TAG_subroutine_type"),
        "DISubrange" => Node::Range { count: fields.number("count") },
        _ => Node::Other,
    }
}
