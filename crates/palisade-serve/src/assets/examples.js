// The examples: a dialog with one line about each, by topic.
const palisadeExamples = (() => {
  "use strict";

  const { element } = palisadePlayer;
  const get = (id) => document.getElementById(id);
  const dialog = get("examples");
  let examples = [];
  let choose = () => {};

  function build() {
    const topics = new Map();
    for (const example of examples) {
      if (!topics.has(example.topic)) topics.set(example.topic, element("ul", ""));
      const button = element("button", "", element("strong", "", example.name), element("span", "about", example.about));
      button.type = "button";
      button.dataset.path = example.path;
      button.addEventListener("click", () => { dialog.close(); choose(example); });
      topics.get(example.topic).append(element("li", "", button));
    }
    for (const [topic, list] of topics) get("topics").append(element("section", "", element("h3", "", topic), list));
  }

  function filter() {
    const words = get("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const section of get("topics").children) {
      let here = 0;
      for (const item of section.querySelectorAll("li")) {
        const text = (section.querySelector("h3").textContent + " " + item.textContent + " " + item.firstChild.dataset.path).toLowerCase();
        item.hidden = !words.every((word) => text.includes(word));
        if (!item.hidden) here += 1;
      }
      section.hidden = here === 0;
      found += here;
    }
    get("none-found").hidden = found > 0;
  }

  get("open-examples").addEventListener("click", () => { dialog.showModal(); get("find").focus(); });
  get("close-examples").addEventListener("click", () => dialog.close());
  get("find").addEventListener("input", filter);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  return {
    // `chosen` is called with the example that was chosen.
    begin(all, chosen) { examples = all; choose = chosen; build(); },
    find: (path) => examples.find((example) => example.path === path),
    // Shows which example it is, or that it is none.
    name(path) {
      get("example").textContent = path || "your own program";
      get("example").dataset.path = path;
    },
    get path() { return get("example").dataset.path; },
  };
})();
