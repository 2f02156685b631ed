// The editor: a transparent text area over its coloured copy. The copy has the same structure as a listing of a report, so
// that a run marks its lines in the same way.
const palisadeEditor = (() => {
  "use strict";

  const { element } = palisadePlayer;
  const get = (id) => document.getElementById(id);
  const [text, lines, root] = [get("text"), get("lines"), get("editor")];
  const listeners = [];
  let leaving = false;

  function rows() {
    return text.value.split("\n");
  }

  function draw() {
    const state = { depth: 0 };
    const all = rows();
    while (lines.childElementCount > all.length) lines.lastChild.remove();
    all.forEach((row, index) => {
      if (index >= lines.childElementCount) {
        const made = element("li", "line", element("span", "marks"), element("code", ""));
        made.dataset.line = index + 1;
        lines.append(made);
      }
      const code = lines.children[index].querySelector("code");
      code.replaceChildren();
      palisadeHighlight.into(code, row, get("language").value, state);
    });
    root.style.setProperty("--digits", Math.max(2, String(all.length).length));
  }

  // Removes the marks of a run.
  function clear() {
    for (const line of lines.children) {
      line.className = "line";
      line.querySelector(".marks").replaceChildren();
    }
  }

  function changed() {
    clear();
    draw();
    listeners.forEach((listener) => listener());
  }

  // A new text, for example another program.
  function set(value) {
    text.value = value;
    root.scrollTop = 0;
    changed();
  }

  // Replaces the text such that the browser can undo it.
  function replace(value) {
    text.focus();
    text.select();
    if (!document.execCommand("insertText", false, value)) set(value);
  }

  // Where a character is in the text. Lines and columns are counted from 1, columns in characters.
  function offset(line, column) {
    const all = rows();
    const before = all.slice(0, line - 1).reduce((sum, row) => sum + row.length + 1, 0);
    return before + [...(all[line - 1] || "")].slice(0, column - 1).join("").length;
  }

  function goTo(line, column, length) {
    const at = offset(line, column);
    text.focus();
    text.setSelectionRange(at, length ? offset(line, column + length) : at);
    lines.children[line - 1]?.scrollIntoView({ block: "nearest" });
  }

  // The part of a line as a range of its coloured copy.
  function range({ line, column, length }) {
    const code = lines.children[line - 1]?.querySelector("code");
    if (!code) return null;
    const row = [...(rows()[line - 1] || "")];
    const ends = [row.slice(0, column - 1).join("").length, row.slice(0, column - 1 + length).join("").length];
    const found = document.createRange();
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    let at = 0;
    let begun = false;
    while (walker.nextNode()) {
      const size = walker.currentNode.data.length;
      if (!begun && ends[0] <= at + size) { found.setStart(walker.currentNode, ends[0] - at); begun = true; }
      if (begun && ends[1] <= at + size) { found.setEnd(walker.currentNode, ends[1] - at); return found; }
      at += size;
    }
    return null;
  }

  // Underlines what is wrong, and marks its lines. Browsers that cannot underline still mark the lines.
  function underline(places) {
    for (const old of lines.querySelectorAll(".wrong, .doubtful")) old.classList.remove("wrong", "doubtful");
    for (const [name, severity] of [["wrong", "error"], ["doubtful", "warning"]]) {
      const mine = places.filter((place) => place.severity === severity && place.line);
      mine.forEach((place) => lines.children[place.line - 1]?.classList.add(name));
      if (CSS.highlights) CSS.highlights.set(name, new Highlight(...mine.map(range).filter(Boolean)));
    }
  }

  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { leaving = true; return; }
    if (event.key === "Tab" && !event.shiftKey && !leaving) {
      event.preventDefault();
      document.execCommand("insertText", false, "    ");
    }
    leaving = false;
  });
  text.addEventListener("input", changed);
  get("language").addEventListener("change", changed);

  return {
    root, clear, set, replace, goTo, underline,
    get value() { return text.value; },
    get language() { return get("language").value; },
    onChange(listener) { listeners.push(listener); },
    onKey(listener) { text.addEventListener("keydown", listener); },
  };
})();
