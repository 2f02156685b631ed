// The grammar gives every word, number and comment of the corpus the right kind of scope. The words are found by
// a scanner of its own.

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

const ROOT = path.join(__dirname, "..", "..", "..");
const GRAMMAR = path.join(__dirname, "..", "syntaxes", "pal.tmLanguage.json");

/** Keywords, and the beginning of the scope that each has. */
const WORDS = new Map(
  Object.entries({
    "storage.type": ["const", "enum", "shared", "private", "process", "proc", "let"],
    "keyword.other.property": ["forbid", "final"],
    "support.type": ["bool", "int"],
    "storage.modifier": ["blocking"],
    "keyword.control": [
      "if", "else", "for", "while", "loop", "break", "continue", "goto", "choose", "or", "atomic", "return", "spawn", "skip",
      "assume", "await", "assert",
    ],
    "keyword.other.fence": ["fence", "sfence"],
    "support.function": [
      "any", "cas", "xchg", "fetch_add", "fetch_sub", "fetch_and", "fetch_or", "fetch_xor",
    ],
    "constant.language": ["true", "false"],
  }).flatMap(([scope, words]) => words.map((word) => [word, scope])),
);

async function load() {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(GRAMMAR, "utf8"), GRAMMAR),
  });
  return registry.loadGrammar("source.pal");
}

function programs(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    return entry.isDirectory() ? programs(file) : file.endsWith(".pal") ? [file] : [];
  });
}

/** For each character of a text, by line, the innermost scope. */
function scopes(grammar, text) {
  let stack = textmate.INITIAL;
  return text.split("\n").map((line) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    const found = new Array(line.length).fill("");
    for (const token of tokens) {
      found.fill(token.scopes.join(" "), token.startIndex, Math.min(token.endIndex, line.length));
    }
    return found;
  });
}

function check(grammar, name, text) {
  const found = scopes(grammar, text);
  let checked = 0;
  const expect = (line, column, scope, what) => {
    const actual = found[line][column];
    assert.ok(actual.includes(scope), `${name}:${line + 1}:${column + 1}: ${what} is ${actual}, not ${scope}`);
    checked += 1;
  };
  let depth = 0;
  text.split("\n").forEach((line, number) => {
    const pattern = /\/\*|\*\/|\/\/.*|`[^`]*`|[A-Za-z_][A-Za-z0-9_]*|[0-9][A-Za-z0-9_]*/g;
    for (const match of line.matchAll(pattern)) {
      const [word] = match;
      if (word === "/*" || word === "*/" || depth > 0) {
        expect(number, match.index, "comment.block", word);
        depth += word === "/*" ? 1 : word === "*/" ? -1 : 0;
      } else if (word.startsWith("//")) {
        expect(number, match.index, "comment.line", word);
        expect(number, line.length - 1, "comment.line", word);
      } else if (/^[0-9]/.test(word)) {
        expect(number, match.index, "constant.numeric", word);
      } else if (WORDS.has(word)) {
        expect(number, match.index, WORDS.get(word), word);
      } else {
        assert.ok(!found[number][match.index].includes("invalid"), `${name}:${number + 1}: ${word} is invalid`);
      }
    }
  });
  return checked;
}

test("the corpus", async () => {
  const grammar = await load();
  const files = programs(path.join(ROOT, "corpus"));
  assert.ok(files.length > 50, `only ${files.length} programs`);
  let checked = 0;
  for (const file of files) {
    checked += check(grammar, file, fs.readFileSync(file, "utf8"));
  }
  assert.ok(checked > 3000, `only ${checked} words`);
});

test("labels, names and properties", async () => {
  const grammar = await load();
  const text = "process P(i: 0..1) {\ncs: skip;\n    goto cs; /* a /* b */ c */ x = `y z`;\n}\nforbid P(0)@cs;\ndeadlock-free;\nlive end;\n";
  const found = scopes(grammar, text);
  const at = (line, word) => found[line][text.split("\n")[line].indexOf(word)];
  assert.match(at(0, "P"), /entity\.name\.function/);
  assert.match(at(1, "cs"), /entity\.name\.label/);
  assert.match(at(2, "cs"), /entity\.name\.label/);
  assert.match(at(2, "c */"), /comment\.block/);
  assert.match(at(2, "`y"), /variable\.other\.quoted/);
  assert.doesNotMatch(at(0, "i:"), /label/);
  assert.match(at(4, "cs"), /entity\.name\.label/);
  assert.match(at(5, "deadlock"), /keyword\.other\.property/);
  assert.match(at(6, "live"), /keyword\.other\.property/);
});
