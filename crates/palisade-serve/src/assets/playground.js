// The playground: an editor, questions to the server on this machine, answers as in a report.
(() => {
  "use strict";

  const get = (id) => document.getElementById(id);
  const text = get("text");
  const result = get("result");
  let examples = [];
  // The question that is being answered, if any: how to abort it, and the token to stop it by.
  let current = null;
  // Stepping by hand: the question without choices, and the choices so far.
  let walk = null;

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  // The editor: a transparent text over its coloured copy. The copy determines the size of both.
  function draw() {
    const lines = text.value.split("\n");
    const colours = get("colours");
    const state = { depth: 0 };
    colours.replaceChildren();
    lines.forEach((line) => {
      palisadeHighlight.into(colours, line, get("language").value, state);
      colours.append("\n");
    });
    const gutter = get("gutter");
    while (gutter.childElementCount > lines.length) gutter.lastChild.remove();
    while (gutter.childElementCount < lines.length) gutter.append(element("span", "", String(gutter.childElementCount + 1)));
  }

  function edited() {
    markErrors([]);
    draw();
    remember();
  }

  function remember() {
    try {
      localStorage.setItem("palisade", JSON.stringify({ text: text.value, language: get("language").value, example: get("example").value }));
    } catch { /* Without storage the text is not remembered. */ }
  }

  function remembered() {
    try { return JSON.parse(localStorage.getItem("palisade")); } catch { return null; }
  }

  function markErrors(places) {
    for (const old of get("gutter").querySelectorAll(".wrong")) old.classList.remove("wrong");
    for (const [line] of places) get("gutter").children[line - 1]?.classList.add("wrong");
  }

  function goTo(line, column) {
    const lines = text.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, other) => sum + other.length + 1, 0);
    const at = before + [...(lines[line - 1] || "")].slice(0, column - 1).join("").length;
    text.focus();
    text.setSelectionRange(at, at);
    get("gutter").children[line - 1]?.scrollIntoView({ block: "nearest" });
  }

  let leaving = false;
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask("check");
    } else if (event.key === "Escape") {
      leaving = true;
      return;
    } else if (event.key === "Tab" && !event.shiftKey && !leaving) {
      event.preventDefault();
      document.execCommand("insertText", false, "    ");
    }
    leaving = false;
  });
  text.addEventListener("input", () => {
    get("example").value = "";
    edited();
  });
  get("language").addEventListener("change", edited);

  // Examples.
  function choose(path) {
    const example = examples.find((other) => other.path === path);
    if (!example) return;
    get("example").value = path;
    get("language").value = example.language;
    text.value = example.text;
    edited();
    get("editor").scrollTop = 0;
  }

  get("example").addEventListener("change", () => {
    const path = get("example").value;
    if (!path) return;
    history.replaceState(null, "", "#" + path);
    choose(path);
  });
  addEventListener("hashchange", () => choose(decodeURIComponent(location.hash.slice(1))));

  function fill(select, values) {
    for (const value of values) {
      const option = element("option", "", value);
      option.value = value;
      select.append(option);
    }
  }

  async function begin() {
    const menus = await (await fetch("/examples.json")).json();
    examples = menus.examples;
    fill(get("language"), menus.languages);
    fill(get("engine"), menus.engines);
    for (const model of menus.models) {
      const option = element("option", "", model.toUpperCase());
      option.value = model;
      get("model").append(option);
    }
    get("model").value = "tso";
    const groups = new Map();
    for (const example of examples) {
      const [folder] = example.path.split("/");
      if (!groups.has(folder)) {
        const group = element("optgroup", "");
        group.label = folder;
        groups.set(folder, group);
        get("example").append(group);
      }
      const option = element("option", "", example.path.slice(folder.length + 1));
      option.value = example.path;
      groups.get(folder).append(option);
    }
    const kept = remembered();
    if (location.hash.length > 1) {
      choose(decodeURIComponent(location.hash.slice(1)));
    } else if (kept && kept.text) {
      get("language").value = kept.language;
      get("example").value = kept.example;
      text.value = kept.text;
      draw();
    } else {
      choose("mutex/peterson.pal");
    }
    if (!text.value) choose("mutex/peterson.pal");
    document.body.dataset.ready = "";
  }

  // Questions.
  function question(command) {
    return {
      command,
      program: text.value,
      name: get("example").value || "program." + get("language").value,
      language: get("language").value,
      model: get("model").value,
      engine: command === "robust" ? "auto" : get("engine").value,
      threads: get("threads").value,
      goal: get("goal").value,
      place: get("place").value,
      all: get("all").checked,
    };
  }

  function ask(command) {
    if (command === "step") {
      walk = { question: question("step"), choices: [], start: 0 };
      step();
    } else {
      get("steps").hidden = true;
      walk = null;
      send(question(command), showAnswer);
    }
  }

  function step() {
    send({ ...walk.question, choices: walk.choices, start: walk.start }, showSteps);
  }

  // Sends a question, shows the server's progress reports, and then the answer. A new question aborts the old one.
  async function send(question, show) {
    if (current) current.abort.abort();
    const mine = { abort: new AbortController(), token: null };
    current = mine;
    markErrors([]);
    working("sending");
    try {
      const response = await fetch("/api/run", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(question),
        signal: mine.abort.signal,
      });
      if (!response.ok) throw new Error(await response.text());
      let last = null;
      for await (const event of events(response.body)) {
        last = event.event;
        if (current !== mine) return;
        if (event.event === "waiting") working("waiting, " + (event.ahead === 0 ? "next in line" : event.ahead + " ahead"));
        else if (event.event === "started") { mine.token = event.token; working("running"); }
        else if (event.event === "progress") working(event.seconds.toFixed(1) + " s" + (event.doing ? ": " + event.doing : ""));
        else if (event.event === "error") problem(event.message);
        else if (event.event === "done") show(event);
      }
      if (last !== "done" && last !== "error") throw new Error("the server closed the connection without an answer");
    } catch (error) {
      if (current === mine && error.name !== "AbortError") problem(error.message);
    } finally {
      if (current === mine) { current = null; working(null); }
    }
  }

  // The lines of a stream, each a JSON value.
  async function* events(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line) yield JSON.parse(line);
    }
  }

  function working(words) {
    get("working").hidden = words === null;
    if (words !== null) get("status").textContent = words;
  }

  get("stop").addEventListener("click", () => {
    if (!current) return;
    if (!current.token) { current.abort.abort(); current = null; working(null); problem("stopped"); return; }
    working("stopping");
    fetch("/api/stop", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(current.token) });
  });

  function problem(message) {
    result.replaceChildren(element("p", "problem", message));
  }

  // The server has escaped all text that comes from the program.
  function showAnswer(event) {
    result.innerHTML = event.html;
    markErrors(event.errors || []);
    palisade.show(result);
    for (const place of result.querySelectorAll(".diagnostics .place")) {
      place.addEventListener("click", () => goTo(Number(place.dataset.line), Number(place.dataset.column)));
    }
  }

  function showSteps(event) {
    const fromList = get("next").contains(document.activeElement);
    showAnswer(event);
    if (event.errors) { get("steps").hidden = true; return; }
    const list = get("next");
    list.replaceChildren();
    event.next.forEach((next, index) => {
      const button = element("button", "", element("span", "who", next.process), next.line ? ", line " + next.line + ": " : " ", element("code", "", next.text));
      if (next.effect) button.append(" → ", element("span", "effect", next.effect));
      button.type = "button";
      button.addEventListener("click", () => { walk.choices.push(index); step(); });
      list.append(element("li", "t" + (next.thread % 6), button));
    });
    if (event.next.length === 0) list.append(element("li", "muted", "No step is possible: all processes have ended or are stuck."));
    get("undo").disabled = walk.choices.length === 0;
    const start = get("start");
    start.replaceChildren();
    event.starts.forEach((memory, index) => {
      const option = element("option", "", memory || "as declared");
      option.value = index;
      start.append(option);
    });
    start.value = walk.start;
    get("start-label").hidden = event.starts.length < 2;
    get("steps").hidden = false;
    if (fromList) list.querySelector("button")?.focus();
  }

  get("undo").addEventListener("click", () => { walk.choices.pop(); step(); });
  get("restart").addEventListener("click", () => { walk.choices = []; step(); });
  get("start").addEventListener("change", () => { walk.start = Number(get("start").value); walk.choices = []; step(); });
  for (const button of document.querySelectorAll("[data-ask]")) button.addEventListener("click", () => ask(button.dataset.ask));

  begin();
})();
