//! Chromium for the tests of pages: started without a window, driven by its own protocol, ended when dropped.
//!
//! The protocol is that of the developer tools: JSON messages, each followed by a zero byte, through a pair
//! of pipes that Chromium expects as descriptors 3 and 4 (`--remote-debugging-pipe`). A shell redirects its
//! standard input and output there. So there is no port, nothing to wait for, and no other dependency.
//! However the test ends, the pipe closes and Chromium exits.

mod look;
mod page;
mod pipe;

pub use page::{Page, Shown};

use pipe::Pipe;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The names under which Chromium is installed.
const NAMES: [&str; 2] = ["chromium", "chromium-browser"];

/// As few surprises as possible: no window, no network access, no data from an earlier run.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
     --disable-component-update --disable-sync --disable-extensions --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe";

/// A running Chromium.
pub struct Browser {
    child: Child,
    pipe: Option<Pipe>,
    folder: PathBuf,
}

impl Browser {
    /// Starts Chromium.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    pub fn start() -> Browser {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("palisade-browser-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the browser can be made");
        let name = NAMES.into_iter().find(|name| is_installed(name)).unwrap_or_else(|| {
            panic!(
                "this test needs Chromium (Debian package `chromium`): install it, or run ./test, which installs it"
            )
        });
        let script = format!(
            "exec {name} {FLAGS} --user-data-dir=\"$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>\"$0/log\""
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Browser { child, pipe: Some(Pipe::new(input, output)), folder }
    }

    /// Opens an empty page of a given size, for instance that of a phone.
    pub fn page(&mut self, width: u32, height: u32) -> Page<'_> {
        let pipe = self.pipe.as_mut().expect("the pipe exists until the browser is dropped");
        let target = pipe.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let target = target["targetId"].clone();
        let attached =
            pipe.call(None, "Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        let session = attached["sessionId"].as_str().expect("a session has a name").to_owned();
        let mut page = Page::new(pipe, session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.resize(width, height);
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // It may have exited already, which is fine.
            pipe.send(None, "Browser.close", Value::Null);
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn is_installed(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", name]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}
