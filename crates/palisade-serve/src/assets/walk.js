// Stepping by hand: the server lists the possible steps, and one is chosen. Every question has all choices so far.
const palisadeWalk = (() => {
  "use strict";

  const { element } = palisadePlayer;
  const get = (id) => document.getElementById(id);
  let walk = null;
  let send = () => {};

  function step() {
    send({ ...walk.question, choices: walk.choices, start: walk.start });
  }

  function choice(next, index) {
    const button = element("button", "", element("span", "who", next.process), next.line ? ", line " + next.line + ": " : " ", element("code", "", next.text));
    if (next.effect) button.append(" → ", element("span", "effect", next.effect));
    button.type = "button";
    button.addEventListener("click", () => { walk.choices.push(index); step(); });
    return element("li", "t" + (next.thread % 6), button);
  }

  // Shows the choices. The answer itself is shown by the page.
  function show(event, hadFocus) {
    const list = get("next");
    list.replaceChildren(...event.next.map(choice));
    if (event.next.length === 0) list.append(element("li", "muted", "No step is possible: all processes have ended or are stuck."));
    get("undo").disabled = walk.choices.length === 0;
    const start = get("start");
    start.replaceChildren(...event.starts.map((memory, index) => {
      const option = element("option", "", memory || "as declared");
      option.value = index;
      return option;
    }));
    start.value = walk.start;
    get("start-label").hidden = event.starts.length < 2;
    get("steps").hidden = false;
    if (hadFocus) list.querySelector("button")?.focus();
  }

  get("undo").addEventListener("click", () => { walk.choices.pop(); step(); });
  get("restart").addEventListener("click", () => { walk.choices = []; step(); });
  get("start").addEventListener("change", () => { walk.start = Number(get("start").value); walk.choices = []; step(); });

  return {
    // Begins at the start. `ask` is called with every question.
    begin(question, ask) { send = ask; walk = { question, choices: [], start: 0 }; step(); },
    end() { walk = null; get("steps").hidden = true; },
    show,
    // Whether the focus is on one of the steps, and whether it is on any control for stepping.
    hasFocus: () => get("next").contains(document.activeElement),
    isInUse: () => get("steps").contains(document.activeElement),
  };
})();
