//! C programs in the playground: answers as from the command, and nothing of this machine shows.

use crate::common::Scratch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

const STORE_BUFFERING: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
atomic_int x, y;
int a, b;
static void *left(void *unused) {
    atomic_store_explicit(&x, 1, memory_order_release);
    a = atomic_load_explicit(&y, memory_order_acquire);
    return NULL;
}
static void *right(void *unused) {
    atomic_store_explicit(&y, 1, memory_order_release);
    b = atomic_load_explicit(&x, memory_order_acquire);
    return NULL;
}
int main(void) {
    pthread_t l, r;
    pthread_create(&l, NULL, left, NULL);
    pthread_create(&r, NULL, right, NULL);
    pthread_join(l, NULL);
    pthread_join(r, NULL);
    assert(a == 1 || b == 1);
    return 0;
}
";

/// A server that is ended when this is dropped.
struct Serving {
    server: Child,
    address: String,
}

impl Serving {
    fn start(scratch: &Scratch, args: &[&str]) -> Serving {
        let mut command = scratch.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut server = command.args(args).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let output = server.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("it prints its address");
        let address = line.trim_start_matches("serving  http://").trim_end().trim_end_matches('/').to_owned();
        Serving { server, address }
    }

    fn send(&self, request: &str) -> String {
        let mut connection = TcpStream::connect(&self.address).expect("it listens");
        connection.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers");
        answer
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    /// The whole answer, and its last event.
    fn ask(&self, command: &str, program: &str) -> (String, Value) {
        let body =
            json!({ "command": command, "program": program, "language": "c", "model": "tso" }).to_string();
        let answer = self.send(&format!(
            "POST /api/run HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        ));
        let last = answer
            .split("\r\n")
            .filter(|line| line.starts_with('{'))
            .last()
            .unwrap_or_else(|| panic!("{answer}"));
        let event = serde_json::from_str(last.trim_end()).expect("an event is JSON");
        (answer, event)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn c_programs_are_answered() {
    let scratch = Scratch::new("serve_c_answers");
    let serving = Serving::start(&scratch, &[]);
    assert!(serving.get("/examples.json").contains("\"c/peterson.c\""));
    let (_, found) = serving.ask("check", STORE_BUFFERING);
    assert_eq!(found["word"], "unsafe", "{found}");
    let html = found["html"].as_str().expect("an answer");
    assert!(
        html.contains("class=\"timeline\"") && html.contains("line 9: "),
        "lines are those of the program: {html}"
    );
    let (_, found) = serving.ask("compare", STORE_BUFFERING);
    assert!(found["html"].as_str().is_some_and(|html| html.contains("only with store buffers")), "{found}");
    let (_, found) = serving.ask("fences", STORE_BUFFERING);
    let fixed = found["texts"][0].as_str().unwrap_or_else(|| panic!("{found}"));
    let (_, found) = serving.ask("check", fixed);
    assert_eq!(found["word"], "safe", "{found}");
    let (_, found) = serving.ask("read", "int main(void) {\n  retrun 0;\n}\n");
    let problem = &found["problems"][0];
    assert_eq!(
        (&problem["line"], &problem["column"], &problem["length"]),
        (&json!(2), &json!(3), &json!(6)),
        "{found}"
    );
    drop(serving);

    let serving = Serving::start(&scratch, &["--no-c"]);
    assert!(!serving.get("/examples.json").contains("\"c/peterson.c\""));
    let (_, found) = serving.ask("check", STORE_BUFFERING);
    assert!(found["message"].as_str().is_some_and(|message| message.contains("does not read C")), "{found}");
}

#[test]
fn no_file_of_this_machine_shows() {
    const SECRET: &str = "palisade_secret";
    let scratch = Scratch::new("serve_c_sealed")
        .file("secret.h", format!("{SECRET} one two;\n").repeat(40))
        .file("fine.h", format!("int {SECRET};\n"));
    let serving = Serving::start(&scratch, &["--timeout", "3"]);
    let (secret, fine) = (scratch.path("secret.h"), scratch.path("fine.h"));
    let (secret, fine) = (secret.display(), fine.display());
    let main = "int main(void) { return 0; }\n";
    for attempt in [
        format!("#include \"{secret}\"\n{main}"),
        format!("#include <{secret}>\n{main}"),
        format!("#include \"/usr/include/../..{secret}\"\n{main}"),
        format!("#include \"secret.h\"\n{main}"),
        format!("#define FILE \"{secret}\"\n#include FILE\n{main}"),
        format!("%:include \"{secret}\"\n{main}"),
        format!("#inc\\\nlude \"{secret}\"\n{main}"),
        format!("#include_next \"{secret}\"\n{main}"),
        format!("#import \"{secret}\"\n{main}"),
        format!("char text[] = {{\n#embed \"{secret}\"\n}};\n{main}"),
        format!("#pragma GCC dependency \"{secret}\"\n{main}"),
        // Lines of a run are quoted. These are not the program's.
        format!("#include <assert.h>\n#line 1 \"{secret}\"\nint main(void) {{\n  assert(0);\n}}\n"),
        format!("#line 3 \"{secret}\"\nint main(void) {{\n  retrun 0;\n}}\n"),
        "#include \"/proc/self/environ\"\nint main(void) { return 0; }\n".to_owned(),
    ] {
        let (answer, _) = serving.ask("check", &attempt);
        let shown = answer.replace(&secret.to_string(), "");
        assert!(!shown.contains(SECRET) && !shown.contains("PATH="), "{attempt}\n{answer}");
    }
    // Whether a file exists does not show either.
    let probe = format!("#if __has_include(\"{fine}\")\n#error seen\n#endif\n{main}");
    assert_eq!(serving.ask("read", &probe).1["word"], "read");
    assert_ne!(serving.ask("read", &format!("#include \"{fine}\"\n{main}")).1["word"], "read");
    // A program that clang would expand without end.
    let mut bomb = String::from("#define A0 1+1\n");
    (1..40).for_each(|n| bomb.push_str(&format!("#define A{n} A{0}+A{0}\n", n - 1)));
    let (_, found) = serving.ask("check", &format!("{bomb}int main(void) {{ return A39; }}\n"));
    assert!(found["word"] == "unknown" || found["event"] == "error" || found["word"] == "error", "{found}");
}
