// Colours for the input languages. Splits a text into pieces, each with a kind. Used by listings and the editor.
const palisadeHighlight = (() => {
  "use strict";

  const words = (text) => new Set(text.split(" "));
  const languages = {
    pal: {
      keywords: words("import const enum struct shared private process proc forbid final live leaves terminates blocking let skip assume await assert if else for in while loop break continue goto choose or atomic return spawn on count forall exists wrap"),
      fences: words("fence sfence cas xchg exchange fetch_add fetch_sub fetch_and fetch_or fetch_xor"),
      values: words("true false any bool int u8 u16 u32 i8 i16 i32"),
      line: "//", open: "/*", close: "*/", labels: true,
    },
    rmm: {
      keywords: words("assume data do either else endmacro forbidden goto if macro my nop not or predicates process registers text then while write read"),
      fences: words("fence llfence ssfence locked slocked cas syncrd syncwr"),
      values: words("true false"),
      open: "/*", close: "*/", labels: true,
    },
    litmus: {
      keywords: words("exists forall not locations X86 X86_64 and or"),
      fences: words("MFENCE SFENCE LFENCE LOCK XCHG CMPXCHG XADD mfence sfence lfence lock xchg cmpxchg xadd"),
      values: words("true false"),
      open: "(*", close: "*)", strings: true,
    },
    trencher: {
      keywords: words("thread initial final transition end memory_size write read local check noop"),
      fences: words("mfence lock unlock"),
      values: words(""),
      line: "#",
    },
    c: {
      keywords: words("alignas auto bool break case catch char class const constexpr continue default delete do double else enum extern final float for goto if inline int int8_t int16_t int32_t int64_t long namespace new operator override private protected public register restrict return short signed size_t sizeof static struct switch template this throw try typedef typename uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile while _Atomic _Bool _Thread_local thread_local"),
      fences: words("atomic_thread_fence atomic_signal_fence __sync_synchronize memory_order_seq_cst"),
      values: words("true false NULL nullptr"),
      line: "//", open: "/*", close: "*/", flat: true, labels: true,
    },
    rust: {
      keywords: words("as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type union unsafe use where while bool char f32 f64 i8 i16 i32 i64 isize str u8 u16 u32 u64 usize"),
      fences: words("fence SeqCst"),
      values: words("true false None Some Ok Err"),
      line: "//", open: "/*", close: "*/",
    },
  };

  // The pieces of one line. `state.depth` is the comment nesting depth at the start of the line, and is updated to
  // that at its end.
  function pieces(text, language, state) {
    const rules = languages[language] || languages.pal;
    const found = [];
    const add = (kind, piece) => found.push({ kind, text: piece });
    let at = 0;
    while (at < text.length) {
      const rest = text.slice(at);
      if (state.depth > 0) {
        let end = at;
        while (end < text.length && state.depth > 0) {
          if (text.startsWith(rules.close, end)) { state.depth -= 1; end += 2; }
          else if (!rules.flat && text.startsWith(rules.open, end)) { state.depth += 1; end += 2; }
          else end += 1;
        }
        add("comment", text.slice(at, end));
        at = end;
      } else if (rules.line && rest.startsWith(rules.line)) {
        add("comment", rest);
        at = text.length;
      } else if (rules.open && rest.startsWith(rules.open)) {
        state.depth = 1;
        add("comment", rules.open);
        at += 2;
      } else if (rules.strings && rest.startsWith('"')) {
        const end = text.indexOf('"', at + 1);
        const stop = end < 0 ? text.length : end + 1;
        add("comment", text.slice(at, stop));
        at = stop;
      } else {
        const word = /^[$%]?[\p{L}_][\p{L}\p{N}_]*/u.exec(rest);
        const number = /^(0x[0-9a-fA-F_]+|[0-9][0-9_]*)/.exec(rest);
        const space = /^\s+/.exec(rest);
        if (word) {
          const after = text.slice(at + word[0].length);
          const isLabel = rules.labels && /^\s*:(?![:=])/.test(after) && /^\s*$/.test(text.slice(0, at));
          const kind = rules.keywords.has(word[0]) ? "keyword"
            : rules.fences.has(word[0]) ? "fence"
            : rules.values.has(word[0]) ? "value"
            : isLabel ? "label"
            : /@\s*$/.test(text.slice(0, at)) ? "label" : "";
          add(kind, word[0]);
          at += word[0].length;
        } else if (number) {
          add("value", number[0]);
          at += number[0].length;
        } else if (space) {
          add("", space[0]);
          at += space[0].length;
        } else {
          const character = String.fromCodePoint(rest.codePointAt(0));
          add("", character);
          at += character.length;
        }
      }
    }
    return found;
  }

  // Puts the pieces of a text into an element.
  function into(parent, text, language, state) {
    let plain = "";
    const flush = () => {
      if (plain) parent.append(plain);
      plain = "";
    };
    for (const piece of pieces(text, language, state)) {
      if (!piece.kind) { plain += piece.text; continue; }
      flush();
      const span = document.createElement("span");
      span.className = "h-" + piece.kind;
      span.textContent = piece.text;
      parent.append(span);
    }
    flush();
  }

  // Colours a listing of the report. Its text does not change.
  function listing(list) {
    const state = { depth: 0 };
    for (const code of list.querySelectorAll("code")) {
      for (const node of [...code.childNodes]) {
        if (node.nodeType !== Node.TEXT_NODE) continue;
        const piece = document.createDocumentFragment();
        into(piece, node.data, list.dataset.language, state);
        node.replaceWith(piece);
      }
    }
  }

  return { into, listing, pieces };
})();
