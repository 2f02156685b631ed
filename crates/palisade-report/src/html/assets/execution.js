// Steps through the execution of a real program. Everything it shows is in the table of steps, and is only ever inserted
// as text.
const palisadeExecution = (() => {
  "use strict";

  const PAUSE = 700;

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  // Scrolls a container, never the page, such that an element is inside it.
  function reveal(container, inner) {
    const [outer, box] = [container.getBoundingClientRect(), inner.getBoundingClientRect()];
    if (box.top < outer.top || box.bottom > outer.bottom) container.scrollTop += box.top - outer.top - outer.height / 2;
    if (box.left < outer.left || box.right > outer.right) container.scrollLeft += box.left - outer.left - 24;
  }

  class Stepper {
    // `use` is called when this viewer was used last.
    constructor(section, use) {
      this.section = section;
      this.player = section.querySelector(".player");
      this.range = section.querySelector("input[type=range]");
      this.count = section.querySelector(".count");
      this.caption = section.querySelector(".caption");
      this.listing = section.querySelector(".listing");
      this.picture = section.querySelector(".tall");
      this.foldSwitch = section.querySelector(".local-switch");
      this.rows = [...section.querySelectorAll(".steps tbody tr")];
      this.drawn = [...section.querySelectorAll("svg [data-step]")];
      this.timer = null;
      this.position = 0;
      this.listen(use);
      this.player.hidden = false;
      this.chooseShown();
      this.go(this.shown.length - 1);
    }

    // The steps that the slider passes.
    chooseShown() {
      const all = this.foldSwitch && this.foldSwitch.checked;
      this.shown = this.rows.filter((row) => all || !row.classList.contains("local"));
      if (this.shown.length === 0) this.shown = this.rows;
      this.range.max = Math.max(0, this.shown.length - 1);
    }

    listen(use) {
      const actions = {
        first: () => this.go(0),
        previous: () => this.go(this.position - 1),
        next: () => this.go(this.position + 1),
        last: () => this.go(this.shown.length - 1),
        play: () => this.toggle(),
      };
      for (const button of this.player.querySelectorAll("button[data-do]")) {
        button.addEventListener("click", () => {
          if (button.dataset.do !== "play") this.pause();
          actions[button.dataset.do]();
        });
      }
      this.range.addEventListener("input", () => {
        this.pause();
        this.go(Number(this.range.value));
      });
      this.section.addEventListener("click", (event) => {
        use(this);
        const target = event.target.closest("[data-step]");
        if (!target || !this.section.contains(target)) return;
        this.pause();
        this.goToStep(Number(target.dataset.step));
      });
      this.section.addEventListener("focusin", () => use(this));
      if (this.foldSwitch) {
        this.foldSwitch.addEventListener("change", () => {
          const step = Number(this.shown[this.position].dataset.step);
          this.chooseShown();
          this.goToStep(step);
        });
      }
    }

    // Goes to a step, or to the next one that is shown.
    goToStep(step) {
      const position = this.shown.findIndex((row) => Number(row.dataset.step) >= step);
      this.go(position < 0 ? this.shown.length - 1 : position);
    }

    go(position) {
      if (this.shown.length === 0) return;
      this.position = Math.max(0, Math.min(position, this.shown.length - 1));
      this.draw();
    }

    toggle() {
      if (this.timer) { this.pause(); return; }
      if (this.position === this.shown.length - 1) this.go(0);
      this.setPlaying(true);
      this.timer = setInterval(() => {
        if (!this.section.isConnected) { this.pause(); return; }
        this.go(this.position + 1);
        if (this.position === this.shown.length - 1) this.pause();
      }, PAUSE);
    }

    pause() {
      clearInterval(this.timer);
      this.timer = null;
      this.setPlaying(false);
    }

    setPlaying(playing) {
      this.player.classList.toggle("playing", playing);
      this.player.querySelector(".play").setAttribute("aria-label", playing ? "Pause" : "Play");
    }

    draw() {
      const row = this.shown[this.position];
      const last = this.position === this.shown.length - 1;
      this.range.value = this.position;
      this.count.textContent = "step " + row.cells[0].textContent + " of " + this.rows[this.rows.length - 1].cells[0].textContent;
      this.describe(row, last);
      this.mark(row);
      if (last && this.picture) this.picture.scrollTop = this.picture.scrollHeight;
      for (const [action, off] of [["first", this.position === 0], ["previous", this.position === 0], ["next", last], ["last", last]]) {
        // Not `disabled`: a button that vanishes under the keyboard would lose the focus.
        this.player.querySelector(`[data-do=${action}]`).setAttribute("aria-disabled", String(off));
      }
    }

    colour(row) {
      return [...row.classList].find((name) => /^t\d$/.test(name));
    }

    // What the step did, in words.
    describe(row, last) {
      const [, who, place, text, effect] = [...row.cells].map((cell) => cell.textContent);
      const note = row.dataset.note || "";
      const what = element("span", "what", element("strong", "who", who));
      if (place) what.append(", " + place + (text ? ": " : ""));
      if (text) what.append(element("code", "", text));
      what.append(" → ", element("span", "effect", note ? effect.replace(". " + note, "") : effect));
      this.caption.className = "caption " + this.colour(row);
      this.caption.replaceChildren(what);
      if (note) this.caption.append(element("span", "note", note + "."));
      if (last && this.section.dataset.why) this.caption.append(element("span", "end", this.section.dataset.why));
      this.range.setAttribute("aria-valuetext", this.count.textContent + ": " + this.caption.textContent);
    }

    // Marks the step in the source, the picture and the table.
    mark(row) {
      const step = Number(row.dataset.step);
      if (this.marked) this.marked.classList.remove("now-step");
      row.classList.add("now-step");
      this.marked = row;
      for (const drawn of this.drawn) {
        const number = Number(drawn.dataset.step);
        drawn.classList.toggle("now-step", number === step);
        drawn.classList.toggle("later", number > step);
      }
      const node = this.section.querySelector(`svg .node[data-step="${step}"] rect`);
      if (node && this.picture) reveal(this.picture, node);
      for (const old of this.listing.querySelectorAll(".now-line")) old.classList.remove("now-line", "t0", "t1", "t2", "t3", "t4", "t5");
      const line = row.dataset.at && this.listing.querySelector(`[data-line="${row.dataset.at}"]`);
      if (!line) return;
      line.classList.add("now-line", this.colour(row));
      reveal(this.listing, line);
    }
  }

  return Stepper;
})();
