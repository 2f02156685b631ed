// The VS Code extension: starts `palisade lsp`, and shows runs beside the text.

const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

const LANGUAGES = ["pal", "rmm", "litmus", "trencher", "c"];

/** @type {LanguageClient | undefined} */
let client;

/** The pages that are open, by the file that they are about. */
const panels = new Map();

async function activate(context) {
  const settings = vscode.workspace.getConfiguration("palisade");
  const server = { command: settings.get("path"), args: ["lsp"], transport: TransportKind.stdio };
  client = new LanguageClient("palisade", "Palisade", server, {
    documentSelector: LANGUAGES.flatMap((language) => [
      { scheme: "file", language },
      { scheme: "untitled", language },
    ]),
    initializationOptions: {
      model: settings.get("model"),
      checkOnSave: settings.get("checkOnSave"),
      budget: settings.get("budget"),
      constants: settings.get("constants"),
    },
  });
  const register = (name, action) => context.subscriptions.push(vscode.commands.registerCommand(name, action));
  register("palisade.checkFile", () => ask("palisade.check"));
  register("palisade.robustFile", () => ask("palisade.robust"));
  register("palisade.fencesFile", () => ask("palisade.fences"));
  register("palisade.showRun", showRun);
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("palisade")) {
        const again = "Reload";
        const chosen = await vscode.window.showInformationMessage("Reload the window to use the new settings.", again);
        if (chosen === again) {
          await vscode.commands.executeCommand("workbench.action.reloadWindow");
        }
      }
    }),
  );
  try {
    await client.start();
  } catch (error) {
    const path = settings.get("path");
    vscode.window.showErrorMessage(`Palisade: \`${path} lsp\` could not be started. Set palisade.path. (${error})`);
  }
}

/** Runs a command of the server on the file in the active editor. The server shows what goes wrong. */
async function ask(command) {
  const document = vscode.window.activeTextEditor?.document;
  if (!client || !document) {
    return undefined;
  }
  const uri = client.code2ProtocolConverter.asUri(document.uri);
  try {
    return await client.sendRequest("workspace/executeCommand", { command, arguments: [uri] });
  } catch (error) {
    client.outputChannel.appendLine(`${command}: ${error}`);
    return undefined;
  }
}

/** Shows the run that breaks the program, or the answer, as a page beside the text. */
async function showRun() {
  const file = vscode.window.activeTextEditor?.document.fileName;
  const answer = await ask("palisade.html");
  if (!answer?.html) {
    return;
  }
  const title = `${answer.word}: ${file.split(/[\\/]/).pop()}`;
  const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
  let panel = panels.get(file);
  if (panel) {
    panel.title = title;
    panel.reveal(place.viewColumn, place.preserveFocus);
  } else {
    panel = vscode.window.createWebviewPanel("palisade.run", title, place, {
      enableScripts: true,
      localResourceRoots: [],
    });
    panel.onDidDispose(() => panels.delete(file));
    panels.set(file, panel);
  }
  panel.webview.html = answer.html;
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
