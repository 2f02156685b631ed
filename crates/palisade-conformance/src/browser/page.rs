//! One page: navigate, run scripts, press keys, click, take pictures.

use super::pipe::Pipe;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to check whether it has happened.
const LOOK: Duration = Duration::from_millis(20);

/// A page. Everything that goes wrong in it (exceptions, errors on its console, failed requests) is kept; see
/// [`Page::problems`].
pub struct Page<'b> {
    pipe: &'b mut Pipe,
    session: String,
    problems: Vec<String>,
    requests: Vec<String>,
}

/// How a page is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
    /// On paper.
    Print,
}

impl<'b> Page<'b> {
    pub(crate) fn new(pipe: &'b mut Pipe, session: String) -> Page<'b> {
        Page { pipe, session, problems: Vec::new(), requests: Vec::new() }
    }

    /// Sends a command of the protocol.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let result = self.pipe.call(Some(&self.session), method, params);
        self.take_events();
        result
    }

    fn take_events(&mut self) {
        for event in std::mem::take(&mut self.pipe.events) {
            let params = &event["params"];
            match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => {
                    self.problems.push(params["exceptionDetails"].to_string());
                }
                Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                    self.problems.push(params["entry"].to_string());
                }
                Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                    self.problems.push(params["args"].to_string());
                }
                Some("Network.requestWillBeSent") => {
                    self.requests.push(params["request"]["url"].as_str().unwrap_or("").to_owned());
                }
                _ => {}
            }
        }
    }

    /// Goes to an address and waits until it has loaded.
    pub fn open(&mut self, address: &str) {
        let result = self.call("Page.navigate", json!({ "url": address }));
        assert!(result["errorText"].is_null(), "{address}: {}", result["errorText"]);
        self.wait_until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Sets the size of the window, in CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets how the page is shown.
    pub fn show(&mut self, shown: Shown) {
        let (media, scheme) = match shown {
            Shown::Light => ("screen", "light"),
            Shown::Dark => ("screen", "dark"),
            Shown::Print => ("print", "light"),
        };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
    }

    /// Sets whether pages may run scripts from now on.
    pub fn allow_scripts(&mut self, allowed: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": !allowed }));
    }

    /// The value of an expression, which may be a promise.
    ///
    /// # Panics
    /// If it throws.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut result = self.call("Runtime.evaluate", params);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {}",
            result["exceptionDetails"]["exception"]["description"]
        );
        result["result"]["value"].take()
    }

    /// The value of an expression as text.
    pub fn text(&mut self, expression: &str) -> String {
        match self.eval(expression) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// Waits until an expression is true, for at most half a minute. The expression is evaluated repeatedly
    /// from here, because pages that are being left, or may not run scripts, cannot poll by themselves.
    pub fn wait_until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        let params = json!({ "expression": format!("!!({expression})"), "returnByValue": true });
        while Instant::now() < end {
            let answer = self.call("Runtime.evaluate", params.clone());
            if answer["result"]["value"] == true {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let body = self.text("document.body.innerText");
        panic!("never true: {expression}\nproblems: {:?}\nthe page says:\n{body}", self.problems);
    }

    /// Clicks the middle of the first element that matches a selector, like a mouse.
    pub fn click(&mut self, selector: &str) {
        let quoted = Value::from(selector).to_string();
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({quoted}); if (!e) return null; e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        assert!(place.is_array(), "no element matches {selector}");
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key by its name, e.g. `ArrowRight`, optionally with Ctrl.
    pub fn press(&mut self, key: &str, ctrl: bool) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Delete" => 46,
            " " => 32,
            "Tab" => 9,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let modifiers = if ctrl { 2 } else { 0 };
        let text = match key {
            " " => " ",
            "Enter" => "\r",
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": if key == " " { "Space" } else { key },
                "windowsVirtualKeyCode": code, "modifiers": modifiers,
            });
            if kind == "keyDown" && !text.is_empty() && !ctrl {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types text where the focus is.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// A picture of the page as PNG, written to a file.
    pub fn picture(&mut self, file: &Path) {
        let shot =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": false }));
        let data = decode_base64(shot["data"].as_str().expect("a picture has data"));
        assert!(data.starts_with(b"\x89PNG"), "a picture is a PNG");
        std::fs::write(file, data).expect("a picture can be written");
    }

    /// How many sheets of paper the page prints on.
    pub fn printed_pages(&mut self) -> usize {
        let printed = self.call("Page.printToPDF", json!({ "printBackground": true }));
        let data = decode_base64(printed["data"].as_str().expect("a print has data"));
        assert!(data.starts_with(b"%PDF"), "a print is a PDF");
        let text = String::from_utf8_lossy(&data);
        text.matches("/Type /Page\n").count().max(1)
    }

    /// What went wrong so far.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The addresses that the page has requested so far.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|&digit| digit == byte)) {
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decode_base64(text), bytes.as_bytes());
        }
    }
}
