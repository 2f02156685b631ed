//! What can be fetched: the page, its style and scripts, and the corpus as examples. All of it is built in.

use crate::http::Response;
use palisade::report::html;
use palisade::{Language, Model, engines};
use serde_json::{Value, json};

const INDEX: &str = include_str!("assets/index.html");
const STYLE: &str = include_str!("assets/playground.css");
const SCRIPT: &str = include_str!("assets/playground.js");

/// The page at a path.
pub(crate) fn page(path: &str, version: &str) -> Option<Response> {
    let css = "text/css; charset=utf-8";
    let js = "text/javascript; charset=utf-8";
    let response = match path {
        "/" => {
            let text = INDEX.replace("{{logo}}", html::LOGO).replace("{{version}}", version);
            Response::new("text/html; charset=utf-8", text)
        }
        "/report.css" => Response::new(css, html::STYLE),
        "/playground.css" => Response::new(css, STYLE),
        "/report.js" => Response::new(js, html::SCRIPT),
        "/playground.js" => Response::new(js, SCRIPT),
        "/examples.json" => Response::new("application/json", examples().to_string()),
        _ => return None,
    };
    Some(response)
}

/// The example programs, and the values for the page's menus.
fn examples() -> Value {
    let examples = palisade_corpus::texts().iter().filter_map(|(path, text)| {
        let language = Language::from_name(path.rsplit('.').next()?)?;
        Some(json!({ "path": path, "language": language.name(), "text": text }))
    });
    let names = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>();
    json!({
        "examples": examples.collect::<Vec<_>>(),
        "languages": names(&mut Language::ALL.into_iter().map(Language::name)),
        "models": names(&mut Model::ALL.into_iter().map(Model::name)),
        "engines": names(&mut std::iter::once("auto").chain(engines().iter().map(|engine| engine.name()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_complete() {
        let all = examples();
        let examples = all["examples"].as_array().expect("a list");
        assert!(examples.len() > 80, "{}", examples.len());
        for language in Language::ALL {
            assert!(
                examples.iter().any(|example| example["language"] == language.name()),
                "{}",
                language.name()
            );
        }
        for example in examples {
            let path = example["path"].as_str().expect("a path");
            assert!(!path.starts_with('/') && !path.contains('\\'), "{path}");
        }
    }

    #[test]
    fn pages_link_only_to_pages() {
        for (text, mark) in [(INDEX, "src=\""), (INDEX, "href=\"/")] {
            for rest in text.split(mark).skip(1) {
                let path = rest.split('"').next().expect("an attribute ends");
                let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
                assert!(page(&path, "").is_some(), "{path}");
            }
        }
        assert!(page("/../Cargo.toml", "").is_none());
    }
}
