// The extension with an editor and a client that only record what it asks of them: it registers the commands that
// package.json promises, asks the server for commands that the server has, and passes the settings on.

const assert = require("node:assert");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const test = require("node:test");

const MANIFEST = require("../package.json");
const SERVER = path.join(__dirname, "..", "..", "..", "crates", "palisade-lsp", "src");

/** What the extension did. */
class Recorded {
  commands = new Map();
  requests = [];
  panels = [];
  messages = [];
  starts = 0;
  stops = 0;
}

/** Loads the extension with a recording editor. `answer` is what the server says to every command. */
function load({ settings = {}, answer = {}, starts = true } = {}) {
  const recorded = new Recorded();
  const values = Object.fromEntries(
    Object.entries(MANIFEST.contributes.configuration.properties).map(([name, { default: value }]) => [
      name.replace("palisade.", ""),
      value,
    ]),
  );
  const disposable = { dispose() {} };
  const vscode = {
    ViewColumn: { Beside: -2 },
    workspace: {
      getConfiguration: (section) => {
        assert.equal(section, "palisade");
        return {
          get: (name) => {
            assert.ok(name in values, `package.json has no setting palisade.${name}`);
            return settings[name] ?? values[name];
          },
        };
      },
      onDidChangeConfiguration: (listener) => {
        recorded.changed = listener;
        return disposable;
      },
    },
    commands: {
      registerCommand: (name, action) => {
        assert.ok(!recorded.commands.has(name), `${name} is registered twice`);
        recorded.commands.set(name, action);
        return disposable;
      },
      executeCommand: async (name) => recorded.messages.push(name),
    },
    window: {
      activeTextEditor: { document: { uri: "file:///a/lock.pal", fileName: "/a/lock.pal" } },
      showErrorMessage: (text) => recorded.messages.push(text),
      showInformationMessage: async (text, button) => {
        recorded.messages.push(text);
        return button;
      },
      createWebviewPanel: (kind, title, place, options) => {
        const panel = {
          kind,
          title,
          place,
          options,
          webview: { html: "" },
          reveal: () => (panel.revealed = true),
          onDidDispose: (listener) => (panel.close = listener),
        };
        recorded.panels.push(panel);
        return panel;
      },
    },
  };
  class LanguageClient {
    constructor(id, name, server, options) {
      Object.assign(recorded, { server, options });
      this.code2ProtocolConverter = { asUri: (uri) => uri };
      this.outputChannel = { appendLine: (text) => recorded.messages.push(text) };
    }
    async start() {
      recorded.starts += 1;
      if (!starts) {
        throw new Error("ENOENT");
      }
    }
    async stop() {
      recorded.stops += 1;
    }
    async sendRequest(method, params) {
      recorded.requests.push([method, params]);
      return answer;
    }
  }
  const stubs = { vscode, "vscode-languageclient/node": { LanguageClient, TransportKind: { stdio: 0 } } };
  const original = Module._load;
  const file = require.resolve("../src/extension.js");
  delete require.cache[file];
  Module._load = (request, ...rest) => stubs[request] ?? original(request, ...rest);
  try {
    return { extension: require(file), recorded };
  } finally {
    Module._load = original;
  }
}

test("commands, languages and settings are those of package.json and of the server", async () => {
  const { extension, recorded } = load({ settings: { path: "/opt/palisade", model: "pso" } });
  await extension.activate({ subscriptions: [] });
  assert.equal(recorded.starts, 1);
  assert.deepEqual(recorded.server.command, "/opt/palisade");
  assert.deepEqual(recorded.server.args, ["lsp"]);

  const promised = MANIFEST.contributes.commands.map(({ command }) => command);
  assert.deepEqual([...recorded.commands.keys()].sort(), promised.sort());

  // The client registers the server's commands by their names, so the extension's must be others.
  const lens = fs.readFileSync(path.join(SERVER, "lens.rs"), "utf8");
  const offered = new Set([...lens.matchAll(/"(palisade\.[a-z]+)"/g)].map(([, name]) => name));
  assert.ok(offered.size >= 4, `only ${[...offered]}`);
  assert.ok(promised.every((name) => !offered.has(name)));
  for (const name of promised) {
    await recorded.commands.get(name)();
  }
  const asked = recorded.requests.map(([method, { command, arguments: [uri] }]) => {
    assert.equal(method, "workspace/executeCommand");
    assert.equal(uri, "file:///a/lock.pal");
    return command;
  });
  assert.deepEqual(asked.sort(), [...offered].sort());

  const { initializationOptions, documentSelector } = recorded.options;
  const settings = fs.readFileSync(path.join(SERVER, "settings.rs"), "utf8");
  for (const name of Object.keys(initializationOptions)) {
    assert.ok(settings.includes(`"${name}" =>`), `the server has no option ${name}`);
  }
  assert.equal(initializationOptions.model, "pso");

  const languages = new Set(documentSelector.map(({ language }) => language));
  const contributed = MANIFEST.contributes.languages.map(({ id }) => id);
  assert.deepEqual([...languages].sort(), [...contributed, "c"].sort());
  await extension.deactivate();
  assert.equal(recorded.stops, 1);
});

test("the run is shown beside the text, once per file", async () => {
  const { extension, recorded } = load({ answer: { word: "unsafe", html: "<p>a run</p>" } });
  await extension.activate({ subscriptions: [] });
  await recorded.commands.get("palisade.showRun")();
  const [panel] = recorded.panels;
  assert.equal(panel.title, "unsafe: lock.pal");
  assert.equal(panel.webview.html, "<p>a run</p>");
  assert.equal(panel.place.viewColumn, -2);
  assert.ok(panel.options.enableScripts);
  await recorded.commands.get("palisade.showRun")();
  assert.equal(recorded.panels.length, 1);
  assert.ok(panel.revealed);
  panel.close();
  await recorded.commands.get("palisade.showRun")();
  assert.equal(recorded.panels.length, 2);
});

test("a command that is not there is named", async () => {
  const { extension, recorded } = load({ starts: false });
  await extension.activate({ subscriptions: [] });
  assert.match(recorded.messages[0], /`palisade lsp` could not be started. Set palisade.path/);
});

test("everything that package.json refers to is there", () => {
  const { main, contributes, dependencies } = MANIFEST;
  const files = [
    main,
    ...contributes.languages.flatMap(({ configuration }) => configuration ?? []),
    ...contributes.grammars.map(({ path: file }) => file),
  ];
  const root = path.join(__dirname, "..");
  for (const file of files) {
    assert.ok(fs.existsSync(path.join(root, file)), file);
  }
  const commands = new Set(contributes.commands.map(({ command }) => command));
  for (const { command } of Object.values(contributes.menus).flat()) {
    assert.ok(commands.has(command), command);
  }
  // What the extension loads is installed with it.
  const source = fs.readFileSync(path.join(root, main), "utf8");
  for (const [, name] of source.matchAll(/require\("([^"./]+)/g)) {
    assert.ok(name === "vscode" || name in dependencies, name);
  }
});
