// What is wrong with the program, below it: the line with a caret, and what to do. Texts are only ever inserted as text.
const palisadeProblems = (() => {
  "use strict";

  const { element } = palisadePlayer;
  const list = document.getElementById("problems");
  const title = document.getElementById("problems-title");
  const hint = title.textContent;
  // How long to wait after the last key.
  const PAUSE = 350;
  let timer = null;
  let asking = null;

  function count(number, word) {
    return number + " " + word + (number === 1 ? "" : "s");
  }

  // The line, and carets below the place. Tabs stay tabs, so that the carets are where they belong.
  function excerpt({ text, column, length }) {
    const before = [...text].slice(0, column - 1).map((c) => (c === "\t" ? "\t" : " ")).join("");
    return element("pre", "", text + "\n" + before, element("b", "", "^".repeat(length)));
  }

  function item(problem) {
    const made = element("li", problem.severity, element("strong", "", problem.severity), " ");
    if (problem.line) {
      const place = element("button", "place", "line " + problem.line);
      place.type = "button";
      place.addEventListener("click", () => palisadeEditor.goTo(problem.line, problem.column));
      made.append(place, " ");
    }
    made.append(problem.message);
    if (problem.line) made.append(excerpt(problem));
    if (problem.help) made.append(element("p", "help", "help: " + problem.help));
    return made;
  }

  function show(problems) {
    const errors = problems.filter((problem) => problem.severity === "error").length;
    const warnings = problems.length - errors;
    const parts = [errors && count(errors, "error"), warnings && count(warnings, "warning")].filter(Boolean);
    title.textContent = parts.join(", ") || hint;
    list.replaceChildren(...problems.map(item));
    palisadeEditor.underline(problems);
  }

  // Asks the server what is wrong, a moment after the last change. If it does not answer, nothing is shown.
  function later(question) {
    clearTimeout(timer);
    if (asking) asking.abort();
    timer = setTimeout(async () => {
      const mine = new AbortController();
      asking = mine;
      try {
        for await (const event of palisadeServer.ask(question(), mine.signal)) {
          if (event.event === "done" && asking === mine && event.problems) show(event.problems);
        }
      } catch { /* The server is busy or gone; the next question says so. */ }
    }, PAUSE);
  }

  // Forgets what was asked, because a newer answer is there.
  function stop() {
    clearTimeout(timer);
    if (asking) asking.abort();
    asking = null;
  }

  return { show, later, stop };
})();
