// Links that contain a program: its language, its model, its text, compressed, and values of its constants, in the part of
// the address that is not sent to any server.
const palisadeLink = (() => {
  "use strict";

  // Larger programs than the server accepts are not read from links.
  const LARGEST = 512 * 1024;

  function toBase64(bytes) {
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  }

  function fromBase64(text) {
    return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  }

  async function collect(stream) {
    const parts = [];
    let size = 0;
    const reader = stream.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
      if (size > LARGEST) throw new Error("the program in the link is too long");
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  // `~pal,tso,zBYTES`, or with `u` instead of `z` where the browser cannot compress. With constants: `~pal,tso,zBYTES,N=3,M=4`.
  async function write(language, model, text, constants = "") {
    const bytes = new TextEncoder().encode(text);
    const given = constants.split(/[\s,;]+/).filter((word) => /^\w+=(?:-?\d+|true|false)$/.test(word)).map((word) => "," + word).join("");
    if (typeof CompressionStream === "undefined") return `~${language},${model},u${toBase64(bytes)}${given}`;
    const packed = await collect(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw")));
    return `~${language},${model},z${toBase64(packed)}${given}`;
  }

  // Whether a fragment is meant as a link, complete or not.
  const isLink = (fragment) => fragment.startsWith("~");

  // The program of a link. `known` has the languages and models that there are. If the link is damaged, the error says what
  // is wrong with it.
  async function read(fragment, known) {
    const [language, model, packed, ...given] = fragment.slice(1).split(",");
    const incomplete = (why) => new Error("This link is incomplete: " + why);
    if (packed === undefined) throw incomplete("it has no program.");
    if (!known.languages.includes(language)) throw new Error("This link is for the language `" + language + "`, which is not known here.");
    if (!known.models.includes(model)) throw new Error("This link is for the memory model `" + model + "`, which is not known here.");
    if (!/^[zu][A-Za-z0-9_-]*$/.test(packed)) throw incomplete("its program is damaged.");
    if (!given.every((word) => /^\w+=(?:-?\d+|true|false)$/.test(word))) throw incomplete("a value of a constant is missing or damaged.");
    try {
      let bytes = fromBase64(packed.slice(1));
      if (packed[0] === "z") bytes = await collect(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
      return { language, model, constants: given.join(" "), text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
    } catch {
      throw incomplete("a part of its program is missing or damaged.");
    }
  }

  return { write, isLink, read };
})();
