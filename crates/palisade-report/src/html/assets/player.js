// What all viewers share: the buttons, the slider and the keys that step through something. Text from programs is only
// ever inserted as text.
const palisadePlayer = (() => {
  "use strict";

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  // A text of the program that may be broken at the joints of its words, and elsewhere only if one of them is too long.
  function breakable(text) {
    const parts = String(text).split(/(?<=[_.=])|(?=\[)|(?<=[a-z])(?=[A-Z])/);
    return parts.flatMap((part, index) => (index === 0 ? [part] : [document.createElement("wbr"), part]));
  }

  // Scrolls a container, never the page, such that an element is inside it.
  function reveal(container, inner) {
    const [outer, box] = [container.getBoundingClientRect(), inner.getBoundingClientRect()];
    if (box.top < outer.top || box.bottom > outer.bottom) container.scrollTop += box.top - outer.top - outer.height / 2;
    if (box.left < outer.left || box.right > outer.right) container.scrollLeft += box.left - outer.left - 24;
  }

  // A viewer has `chooseShown`, which sets `shown`; `stepHere`, the step at the current position; `goToStep`; `draw`.
  class Player {
    // `use` is called when this viewer was used last. `pause` is the time between two steps, in milliseconds.
    constructor(section, use, pause) {
      this.section = section;
      this.time = pause;
      this.player = section.querySelector(".player");
      this.range = section.querySelector("input[type=range]");
      this.count = section.querySelector(".count");
      this.caption = section.querySelector(".caption");
      this.own = section.querySelector(".listing");
      this.foldSwitch = section.querySelector(".local-switch");
      this.timer = null;
      this.position = 0;
      this.listen(use);
    }

    // Shows the last step.
    start() {
      this.player.hidden = false;
      this.fold();
      this.go(this.shown.length - 1);
    }

    showsAll() {
      return this.foldSwitch !== null && this.foldSwitch.checked;
    }

    fold() {
      this.chooseShown();
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
          const step = this.stepHere();
          this.fold();
          this.goToStep(step);
        });
      }
    }

    go(position) {
      if (this.shown.length === 0) return;
      this.position = Math.max(0, Math.min(position, this.shown.length - 1));
      this.range.value = this.position;
      this.draw();
      const [first, last] = [this.position === 0, this.isLast()];
      for (const [action, off] of [["first", first], ["previous", first], ["next", last], ["last", last]]) {
        // Not `disabled`: a button that vanishes under the keyboard would lose the focus.
        this.player.querySelector(`[data-do=${action}]`).setAttribute("aria-disabled", String(off));
      }
      this.range.setAttribute("aria-valuetext", this.count.textContent + ": " + this.caption.textContent);
    }

    isLast() {
      return this.position === this.shown.length - 1;
    }

    // Whether it continues after the last step.
    repeats() {
      return false;
    }

    // Goes on after the last step, if it repeats.
    again() {}

    toggle() {
      if (this.timer) { this.pause(); return; }
      if (this.isLast()) this.go(0);
      this.setPlaying(true);
      this.timer = setInterval(() => {
        if (!this.section.isConnected) { this.pause(); return; }
        if (this.isLast()) this.again();
        else this.go(this.position + 1);
        if (this.isLast() && !this.repeats()) this.pause();
      }, this.time);
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

    // The program's lines: those of the run itself, or those that are shown elsewhere. May be null.
    get listing() {
      return this.own;
    }

    line(number) {
      return this.listing && this.listing.querySelector(`[data-line="${number}"]`);
    }

    // Marks a line of the source in a colour, and no other.
    markLine(line, colour) {
      if (!this.listing) return;
      for (const old of this.listing.querySelectorAll(".now-line")) old.classList.remove("now-line", "t0", "t1", "t2", "t3", "t4", "t5");
      if (!line) return;
      line.classList.add("now-line", colour);
      reveal(this.listing, line);
    }
  }

  return { Player, element, breakable, reveal };
})();
