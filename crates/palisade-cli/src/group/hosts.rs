//! The hosts file: one address per line, as timely's own programs read it. Empty lines and comments are skipped.

use crate::files;
use palisade::Diagnostic;
use std::path::Path;

/// The addresses in a hosts file.
pub fn read(path: &Path) -> Result<Vec<String>, Diagnostic> {
    parse(&files::text(path)?)
}

fn parse(text: &str) -> Result<Vec<String>, Diagnostic> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let addresses: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let has_port = |address: &&String| {
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    let help = "write one HOST:PORT per line, such as 192.168.0.7:2101";
    if let Some(wrong) = addresses.iter().find(|address| !has_port(address)) {
        return Err(Diagnostic::error("hosts-file", format!("`{wrong}` is not an address")).help(help));
    }
    if addresses.is_empty() {
        return Err(Diagnostic::error("hosts-file", "there is no address in it").help(help));
    }
    let mut sorted = addresses.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("`{}` is there twice", pair[0]);
        return Err(Diagnostic::error("hosts-file", message).help("give every process a port of its own"));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_read_and_files_that_are_not() {
        let check = |text: &str, expected: Result<&[&str], &str>| {
            let found = parse(text);
            let found = found.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            let found = found.map_err(|error| error.message.as_str());
            assert_eq!(found, expected.map(<[&str]>::to_vec), "{text}");
        };
        check("a:1\n\n# all others\nb.example:2101 # fast\n", Ok(&["a:1", "b.example:2101"]));
        check("[::1]:7", Ok(&["[::1]:7"]));
        check("", Err("there is no address in it"));
        check("a:1\nb", Err("`b` is not an address"));
        check("a:70000", Err("`a:70000` is not an address"));
        check("a:1\na:1", Err("`a:1` is there twice"));
    }
}
