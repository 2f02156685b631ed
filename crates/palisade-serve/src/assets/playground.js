// The playground: puts the editor, the examples, the questions and the answers together.
(() => {
  "use strict";

  const { element } = palisadePlayer;
  const get = (id) => document.getElementById(id);
  const [editor, examples] = [palisadeEditor, palisadeExamples];
  const result = get("result");
  // The question that is being answered, if any: how to abort it, and the token to stop it by.
  let current = null;
  // The question that the answer on the page is about.
  let answered = null;
  // The text that the address stands for.
  let addressed = null;

  // What was typed is still there when the page is opened again.
  function remember() {
    try {
      localStorage.setItem("palisade", JSON.stringify({ text: editor.value, language: editor.language, example: examples.path, constants: constants() }));
    } catch { /* Without storage the text is not remembered. */ }
  }

  function remembered() {
    try { return JSON.parse(localStorage.getItem("palisade")); } catch { return null; }
  }

  // The values given for constants, which only .pal programs have.
  const constants = () => (editor.language === "pal" ? get("constants").value.trim() : "");

  // Whether the answer is about the program in the editor.
  function isCurrent() {
    return answered !== null && answered.program === editor.value && answered.language === editor.language && answered.constants === constants();
  }

  // The lines that a run marks: those of the editor, while the answer is about them.
  const lines = () => (isCurrent() ? editor.root : null);

  function edited() {
    const example = examples.find(examples.path);
    if (example && example.text !== editor.value) examples.name("");
    // Reloading the page must not bring back an older text.
    if (editor.value !== addressed) {
      if (location.hash) history.replaceState(null, "", location.pathname);
      complain("");
    }
    get("constants-label").hidden = editor.language !== "pal";
    remember();
    get("stale").hidden = answered === null || isCurrent();
    palisade.redraw();
    palisadeProblems.later(() => question("read"));
  }

  // Shows a program. Its text replaces what is in the editor.
  function open(text, language, path, given = "") {
    addressed = text;
    examples.name(path);
    get("language").value = language;
    get("constants").value = given;
    editor.set(text);
  }

  function choose(example) {
    complain("");
    history.replaceState(null, "", "#" + example.path);
    open(example.text, example.language, example.path);
  }

  // Says what is wrong with the address. Nothing is, if there are no words.
  function complain(words) {
    get("address-fault").textContent = words;
    get("address-fault").hidden = words === "";
  }

  function decoded(fragment) {
    try { return decodeURIComponent(fragment); } catch { return fragment; }
  }

  // The program of the address: an example, or one's own. Returns false if there is none, and says why if there should be.
  async function openAddress() {
    const fragment = decoded(location.hash.slice(1));
    complain("");
    // Fragments that name a part of the page are no programs.
    if (fragment === "" || document.getElementById(fragment)) return false;
    const example = examples.find(fragment);
    if (example) {
      open(example.text, example.language, example.path);
      return true;
    }
    try {
      if (!palisadeLink.isLink(fragment)) throw new Error("There is no example `" + fragment + "`.");
      const values = (id) => [...get(id).options].map((option) => option.value);
      const own = await palisadeLink.read(fragment, { languages: values("language"), models: values("model") });
      get("model").value = own.model;
      open(own.text, own.language, "", own.constants);
      return true;
    } catch (error) {
      complain(error.message);
      return false;
    }
  }

  async function copyLink() {
    const status = get("link-status");
    const own = examples.path === "" || constants() !== "";
    const fragment = own ? await palisadeLink.write(editor.language, get("model").value, editor.value, constants()) : examples.path;
    addressed = editor.value;
    complain("");
    history.replaceState(null, "", "#" + fragment);
    try {
      await navigator.clipboard.writeText(location.href);
      status.textContent = "copied";
    } catch {
      status.textContent = "the link is in the address bar";
    }
  }

  function fill(select, values, name = (value) => value) {
    for (const value of values) {
      const option = element("option", "", name(value));
      option.value = value;
      select.append(option);
    }
  }

  async function begin() {
    const menus = await (await fetch("/examples.json")).json();
    fill(get("language"), menus.languages);
    fill(get("engine"), menus.engines);
    fill(get("model"), menus.models, (model) => model.toUpperCase());
    get("model").value = "tso";
    examples.begin(menus.examples, choose);
    editor.onChange(edited);
    const kept = remembered();
    if (!await openAddress()) {
      const fault = get("address-fault").textContent;
      if (kept && kept.text) open(kept.text, kept.language, kept.example || "", kept.constants || "");
      else choose(examples.find("mutex/peterson.pal"));
      complain(fault);
    }
    document.body.dataset.ready = "";
  }

  // Questions.
  function question(command) {
    return {
      command,
      program: editor.value,
      name: examples.path || "program." + editor.language,
      language: editor.language,
      model: get("model").value,
      constants: constants(),
      engine: command === "robust" ? "auto" : get("engine").value,
      threads: get("threads").value,
      goal: get("goal").value,
      place: get("place").value,
      all: get("all").checked,
    };
  }

  function ask(command) {
    palisadeWalk.end();
    if (command === "step") palisadeWalk.begin(question("step"), send);
    else send(question(command));
  }

  // Sends a question, shows the server's progress reports, and then the answer. A new question aborts the old one.
  async function send(question) {
    if (current) current.abort.abort();
    palisadeProblems.stop();
    const mine = { abort: new AbortController(), token: null };
    current = mine;
    working("sending");
    try {
      for await (const event of palisadeServer.ask(question, mine.abort.signal)) {
        if (current !== mine) return;
        if (event.event === "waiting") working("waiting, " + (event.ahead === 0 ? "next in line" : event.ahead + " ahead"));
        else if (event.event === "started") { mine.token = event.token; working("running"); }
        else if (event.event === "progress") working(event.seconds.toFixed(1) + " s" + (event.doing ? ": " + event.doing : ""));
        else if (event.event === "error") problem(event.message);
        else if (event.event === "done") show(event, question);
      }
    } catch (error) {
      if (current === mine && error.name !== "AbortError") problem(error.message);
    } finally {
      if (current === mine) { current = null; working(null); }
    }
  }

  function working(words) {
    get("working").hidden = words === null;
    if (words !== null) get("status").textContent = words;
  }

  function stop() {
    if (!current) return;
    if (current.token) {
      working("stopping");
      palisadeServer.stop(current.token);
    } else {
      current.abort.abort();
      current = null;
      working(null);
      problem("stopped");
    }
  }

  function forget() {
    answered = null;
    editor.clear();
    get("stale").hidden = true;
  }

  function problem(message) {
    working(null);
    forget();
    result.replaceChildren(element("p", "problem", message));
    reveal(result);
  }

  // Scrolls the page if the beginning of an answer is not in its upper part. Readers who want no motion see none.
  function reveal(answer) {
    const { top } = answer.getBoundingClientRect();
    if (top >= 0 && top <= innerHeight / 2) return;
    answer.scrollIntoView({ block: "start", behavior: "instant" });
  }

  // Shows an answer. The server has escaped all text that comes from the program.
  function show(event, question) {
    working(null);
    const [walking, stays] = [palisadeWalk.hasFocus(), palisadeWalk.isInUse()];
    forget();
    palisadeProblems.show(event.problems || []);
    answered = question;
    if (!event.html) {
      palisadeWalk.end();
      result.replaceChildren(refusal(event, question));
      reveal(document.querySelector(".problems"));
      return;
    }
    result.innerHTML = event.html;
    palisade.show(result, lines);
    get("stale").hidden = isCurrent();
    if (event.next) palisadeWalk.show(event, walking);
    offerFences(event.texts || []);
    offerRuns(question);
    // Whoever takes steps by hand stays at the list of steps.
    if (!stays) reveal(event.next ? get("steps") : result);
  }

  function refusal(event, question) {
    const heading = element("h2", "", element("span", "badge", event.word), " ", element("span", "file", question.name));
    return element("header", "verdict error", heading, element("p", "why", event.why + ", shown below the program"));
  }

  function action(words, act) {
    const button = element("button", "act", words);
    button.type = "button";
    button.addEventListener("click", act);
    return button;
  }

  // Fences are applied to the text that they were found for, and the result is checked.
  function offerFences(texts) {
    for (const set of result.querySelectorAll("[data-set]")) {
      const text = texts[Number(set.dataset.set)];
      if (!text) continue;
      const heading = set.querySelector("h3");
      const what = set.dataset.changes || "fence";
      const words = set.querySelectorAll(".fences > li").length === 1 ? `Apply this ${what}` : `Apply these ${what}s`;
      heading.after(action(words, () => {
        editor.replace(text);
        result.focus();
        ask("check");
      }));
    }
  }

  // From a table to the runs behind it.
  function offerRuns(question) {
    for (const model of result.querySelectorAll("[data-standing=bad]")) {
      model.append(action("Show the run", () => { get("model").value = model.dataset.model; ask("check"); }));
    }
    for (const row of result.querySelectorAll("[data-outcome]")) {
      const number = Number(row.dataset.outcome);
      const button = action("show a run", () => send({ ...question, outcome: number }));
      button.setAttribute("aria-label", "show a run to outcome " + number);
      row.lastElementChild.append(" ", button);
    }
  }

  addEventListener("hashchange", openAddress);
  get("link").addEventListener("click", copyLink);
  get("constants").addEventListener("input", edited);
  get("stop").addEventListener("click", stop);
  editor.onKey((event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    ask("check");
  });
  for (const button of document.querySelectorAll("[data-ask]")) button.addEventListener("click", () => ask(button.dataset.ask));

  begin();
})();
