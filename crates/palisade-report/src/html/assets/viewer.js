// Steps through runs. Text from programs is only ever inserted as text.
const palisade = (() => {
  "use strict";

  const { Player, element, breakable } = palisadePlayer;
  const PAUSE = 1100;
  const viewers = new Set();
  let active = null;

  // Called by the viewer that was used last.
  function use(viewer) {
    active = viewer;
  }

  // All states of a run, computed from the first one and the changes of each step.
  function states(data) {
    let now = { threads: data.start, memory: data.memory };
    const all = [now];
    for (const step of data.steps) {
      const threads = now.threads.slice();
      threads[step.t] = step.thread;
      if (step.spawned) threads[step.spawned[0]] = step.spawned[1];
      const memory = now.memory.slice();
      for (const [cell, value] of step.memory) memory[cell] = value;
      now = { threads, memory };
      all.push(now);
    }
    return all;
  }

  class Viewer extends Player {
    // `elsewhere` returns the lines of the program if the page shows them outside the run.
    constructor(section, elsewhere) {
      super(section, use, PAUSE);
      this.elsewhere = elsewhere;
      this.data = JSON.parse(section.querySelector(":scope > .run-data").textContent);
      this.states = states(this.data);
      this.build();
      this.start();
    }

    // The states that the slider passes: the first, and those after each step that is shown.
    chooseShown() {
      const steps = this.data.steps;
      this.shown = [0];
      steps.forEach((step, index) => {
        if (this.showsAll() || !step.local || index + 1 === steps.length) this.shown.push(index + 1);
      });
    }

    stepHere() {
      return this.shown[this.position] - 1;
    }

    // Of several runs, the one in use marks the lines that are shown outside.
    get listing() {
      if (this.own) return this.own;
      return this.elsewhere && current() === this ? this.elsewhere() : null;
    }

    build() {
      const all = this.section.querySelector(".lanes");
      const idle = new Set(this.data.idle);
      const folded = idle.size > 0 ? this.foldAway(all, idle) : null;
      this.lanes = this.data.threads.map((name, index) => {
        const where = element("span", "where");
        const registers = element("span", "registers");
        const card = element("div", "card", element("strong", "name", name), where, registers);
        const queue = element("ol", "queue");
        queue.setAttribute("aria-label", "store buffer of " + name + ", newest first");
        const leap = element("div", "leap");
        leap.setAttribute("aria-hidden", "true");
        const lane = element("div", "lane t" + (index % 6), card, element("div", "track", leap, queue));
        lane.setAttribute("role", "listitem");
        (idle.has(index) ? folded : all).insertBefore(lane, idle.has(index) ? null : folded && folded.parentElement);
        return { lane, where, registers, queue, leap };
      });
      const list = this.section.querySelector(".memory dl");
      this.cells = this.data.cells.map((name) => {
        const value = element("dd", "");
        const cell = element("div", "cell", element("dt", "", ...breakable(name)), value);
        list.append(cell);
        return { cell, value };
      });
      const others = this.data.others;
      this.section.querySelector(".others").textContent =
        others > 0 ? (this.cells.length > 0 ? "and " : "") + others + (others === 1 ? " cell" : " cells") + " that the run does not touch" : "";
    }

    // A place for processes that take no step. It is closed at first.
    foldAway(lanes, idle) {
      const names = this.data.threads.filter((_, index) => idle.has(index));
      const words = names.length > 6 ? names.length + " processes" : names.join(", ");
      const inside = element("div", "idle-lanes");
      inside.setAttribute("role", "list");
      const details = element("details", "idle", element("summary", "", words + (names.length === 1 ? " takes no step" : " take no step")), inside);
      lanes.append(details);
      return inside;
    }

    // Goes to the state after a step, or to the next state that is shown.
    goToStep(step) {
      const position = this.shown.findIndex((state) => state >= step + 1);
      this.go(position < 0 ? this.shown.length - 1 : position);
    }

    // Whether the run ends with steps that are repeated forever.
    repeats() {
      return this.data.cycle !== null && this.data.cycle < this.data.steps.length;
    }

    again() {
      this.goToStep(this.data.cycle);
    }

    draw() {
      const index = this.shown[this.position];
      const state = this.states[index];
      const step = index > 0 ? this.data.steps[index - 1] : null;
      this.count.textContent = "step " + index + " of " + this.data.steps.length
        + (this.repeats() && index > this.data.cycle ? ", again and again" : "");
      this.describe(step);
      this.lanes.forEach((lane, thread) => this.drawLane(lane, state.threads[thread], step, thread, index));
      this.drawMemory(state, step);
      this.mark(step, index, state);
    }

    // What the step did, in words.
    describe(step) {
      this.caption.replaceChildren();
      this.caption.className = "caption";
      if (!step) {
        this.caption.append(element("span", "what", "The start: all buffers are empty."));
      } else {
        this.caption.classList.add("t" + (step.t % 6));
        const what = element("span", "what", element("strong", "who", this.data.threads[step.t]));
        if (step.line) what.append(", line " + (step.at || step.line) + ": ", element("code", "", step.text));
        else what.append(" " + step.text);
        if (step.effect) what.append(" → ", element("span", "effect", step.effect));
        this.caption.append(what);
        if (step.note) this.caption.append(element("span", "note", step.note + "."));
      }
    }

    drawLane(lane, thread, step, index, state) {
      const mine = step !== null && step.t === index;
      lane.lane.classList.toggle("now", mine);
      lane.lane.classList.toggle("absent", thread === null);
      lane.queue.replaceChildren();
      lane.leap.textContent = "";
      lane.lane.classList.toggle("leaping", mine && step.over.length > 0);
      if (thread === null) {
        lane.where.textContent = "not started";
        lane.registers.textContent = "";
        return;
      }
      const at = thread.label ? "at " + thread.label : thread.line ? "at line " + (thread.at || thread.line) : "";
      lane.where.textContent = thread.ended ? "ended" : thread.in ? thread.in + " " + at : at;
      lane.registers.textContent = thread.registers.map(([name, value]) => name + "=" + value).join("  ");
      const over = mine ? new Set(step.over) : new Set();
      // The oldest store is next to memory, on the right.
      for (const entry of thread.buffer.slice().reverse()) {
        if (entry === null) {
          lane.queue.append(element("li", "barrier", "sfence"));
          continue;
        }
        const [cell, value, store] = entry;
        const item = element("li", "entry", element("span", "store", ...breakable(cell + " = " + value)));
        if (store !== null) {
          item.append(element("small", "", "step " + (store + 1)));
          item.classList.toggle("fresh", store === state - 1);
          item.classList.toggle("overtaken", over.has(store));
        }
        lane.queue.append(item);
      }
      if (thread.buffer.length === 0) lane.queue.append(element("li", "none", "empty"));
      if (mine && step.over.length > 0) lane.leap.textContent = step.effect + ", past " + (step.over.length === 1 ? "a store" : step.over.length + " stores") + " that wait" + (step.over.length === 1 ? "s" : "");
    }

    drawMemory(state, step) {
      const changed = new Set(step ? step.memory.map(([cell]) => cell) : []);
      this.cells.forEach(({ cell, value }, index) => {
        value.replaceChildren(...breakable(state.memory[index]));
        cell.classList.toggle("changed", changed.has(index));
        cell.classList.toggle("read", step !== null && step.cell === index && ["read", "locked"].includes(step.kind));
      });
    }

    // Marks the step in the program, the picture and the table.
    mark(step, index, state) {
      for (const old of this.section.querySelectorAll(".now-step, .later")) old.classList.remove("now-step", "later");
      for (const drawn of this.section.querySelectorAll("[data-step]")) {
        const number = Number(drawn.dataset.step);
        if (number === index - 1) drawn.classList.add("now-step");
        else if (number >= index) drawn.classList.add("later");
      }
      if (!this.listing) return;
      if (!this.own) this.markOutside();
      for (const marks of this.listing.querySelectorAll(".marks")) marks.replaceChildren();
      state.threads.forEach((thread, number) => {
        const line = thread && !thread.ended && thread.line && this.line(thread.line);
        if (!line) return;
        const dot = element("i", "t" + (number % 6));
        dot.title = this.data.threads[number] + " is here";
        line.querySelector(".marks").append(dot);
      });
      this.markLine(step && step.line && this.line(step.line), step && "t" + (step.t % 6));
    }

    // Marks the lines that the run passes, and those of the broken property. A listing of the run itself has these marks.
    markOutside() {
      for (const line of this.listing.querySelectorAll(".line")) {
        line.classList.toggle("passed", this.data.passed.includes(Number(line.dataset.line)));
        line.classList.toggle("broken", this.data.broken.includes(Number(line.dataset.line)));
      }
    }
  }

  // The viewer that receives keys: the one with the focus, else the one used last, else the first visible one.
  function current() {
    for (const viewer of viewers) if (!viewer.section.isConnected) viewers.delete(viewer);
    if (active && !active.section.isConnected) active = null;
    const visible = [...viewers].filter((viewer) => viewer.player.offsetParent !== null);
    if (active && visible.includes(active)) return active;
    return visible.find((viewer) => viewer.player.getBoundingClientRect().bottom > 0) || visible[0] || null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = event.target;
    if (target.closest("input, textarea, select, .wide, .listing")) return;
    const viewer = current();
    if (!viewer) return;
    const keys = {
      ArrowLeft: () => viewer.go(viewer.position - 1),
      ArrowRight: () => viewer.go(viewer.position + 1),
      Home: () => viewer.go(0),
      End: () => viewer.go(viewer.shown.length - 1),
    };
    const play = event.key === " " && !target.closest("button, summary, a");
    if (!keys[event.key] && !play) return;
    event.preventDefault();
    if (play) {
      viewer.toggle();
    } else {
      viewer.pause();
      keys[event.key]();
    }
  });

  // Activates all runs inside an element. `elsewhere` returns the lines of the program if they are shown outside of it, or
  // null while they do not fit.
  function show(root, elsewhere) {
    for (const list of root.querySelectorAll("ol.lines:not([data-shown])")) {
      list.dataset.shown = "";
      palisadeHighlight.listing(list);
    }
    for (const section of root.querySelectorAll("section.run:not([data-shown])")) {
      section.dataset.shown = "";
      viewers.add(new Viewer(section, elsewhere));
    }
    for (const section of root.querySelectorAll("section.execution:not([data-shown])")) {
      section.dataset.shown = "";
      viewers.add(new palisadeExecution(section, use));
    }
    redraw();
    for (const place of root.querySelectorAll(".diagnostics .place")) {
      place.addEventListener("click", () => {
        const article = place.closest("article") || root;
        const line = article.querySelector(`.listing [data-line="${place.dataset.line}"]`);
        if (line) line.scrollIntoView({ block: "center" });
      });
    }
  }

  // Shows the run in use again, because the lines outside have changed.
  function redraw() {
    const viewer = current();
    if (viewer) viewer.draw();
  }

  return { show, redraw };
})();
