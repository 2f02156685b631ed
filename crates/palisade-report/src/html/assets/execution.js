// Steps through the execution of a real program. Everything it shows is in the table of steps, and is only ever inserted
// as text.
const palisadeExecution = (() => {
  "use strict";

  const { Player, element, reveal } = palisadePlayer;
  const PAUSE = 700;

  class Stepper extends Player {
    constructor(section, use) {
      super(section, use, PAUSE);
      this.picture = section.querySelector(".tall");
      this.rows = [...section.querySelectorAll(".steps tbody tr")];
      this.drawn = [...section.querySelectorAll("svg [data-step]")];
      this.start();
    }

    // The steps that the slider passes.
    chooseShown() {
      this.shown = this.rows.filter((row) => this.showsAll() || !row.classList.contains("local"));
      if (this.shown.length === 0) this.shown = this.rows;
    }

    stepHere() {
      return Number(this.shown[this.position].dataset.step);
    }

    // Goes to a step, or to the next one that is shown.
    goToStep(step) {
      const position = this.shown.findIndex((row) => Number(row.dataset.step) >= step);
      this.go(position < 0 ? this.shown.length - 1 : position);
    }

    draw() {
      const row = this.shown[this.position];
      this.count.textContent = "step " + row.cells[0].textContent + " of " + this.rows[this.rows.length - 1].cells[0].textContent;
      this.describe(row);
      this.mark(row);
      if (this.isLast() && this.picture) this.picture.scrollTop = this.picture.scrollHeight;
    }

    colour(row) {
      return [...row.classList].find((name) => /^t\d$/.test(name));
    }

    // What the step did, in words.
    describe(row) {
      const [, who, place, text, effect] = [...row.cells].map((cell) => cell.textContent);
      const note = row.dataset.note || "";
      const what = element("span", "what", element("strong", "who", who));
      if (place) what.append(", " + place + (text ? ": " : ""));
      if (text) what.append(element("code", "", text));
      what.append(" → ", element("span", "effect", note ? effect.replace(". " + note, "") : effect));
      this.caption.className = "caption " + this.colour(row);
      this.caption.replaceChildren(what);
      if (note) this.caption.append(element("span", "note", note + "."));
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
      // One of two pictures is shown, by the room there is.
      const nodes = this.section.querySelectorAll(`svg .node[data-step="${step}"] rect`);
      const node = [...nodes].find((found) => found.checkVisibility());
      if (node && this.picture) reveal(this.picture, node);
      this.markLine(row.dataset.at && this.line(row.dataset.at), this.colour(row));
    }
  }

  return Stepper;
})();
