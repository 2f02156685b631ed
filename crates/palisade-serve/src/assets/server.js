// Questions to the server that served this page, and their answers.
const palisadeServer = (() => {
  "use strict";

  const post = (path, value, signal) => fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
    signal,
  });

  // The events of an answer, the last of which is `done` or `error`.
  async function* ask(question, signal) {
    const response = await post("/api/run", question, signal);
    if (!response.ok) throw new Error(await response.text());
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let last = null;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        const event = JSON.parse(line);
        last = event.event;
        yield event;
      }
    }
    if (last !== "done" && last !== "error") throw new Error("the server closed the connection without an answer");
  }

  // Makes a run answer with what it has.
  const stop = (token) => post("/api/stop", token);

  return { ask, stop };
})();
