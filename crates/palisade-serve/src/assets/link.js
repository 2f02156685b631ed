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

  // The program of a link, or null if it is not one.
  async function read(fragment) {
    const found = /^~([a-z]+),([a-z]+),([zu])([A-Za-z0-9_-]*)((?:,\w+=(?:-?\d+|true|false))*)$/.exec(fragment);
    if (!found) return null;
    const [, language, model, kind, data, given] = found;
    const constants = given.split(",").filter((word) => word !== "").join(" ");
    try {
      let bytes = fromBase64(data);
      if (kind === "z") bytes = await collect(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
      return { language, model, constants, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
    } catch {
      return null;
    }
  }

  return { write, read };
})();
