//! The hosts file: one address per line, as timely's own programs read it. Empty lines and comments are skipped.

use crate::files;
use palisade::{Diagnostic, report};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long looking up names may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The addresses in a hosts file.
pub fn read(path: &Path) -> Result<Vec<String>, Diagnostic> {
    parse(&files::text(path)?)
}

fn parse(text: &str) -> Result<Vec<String>, Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let addresses: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let has_port = |address: &&String| {
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    let help = "write one HOST:PORT per line, such as 192.168.0.7:2101";
    if let Some(wrong) = addresses.iter().find(|address| !has_port(address)) {
        return Err(Diagnostic::error("hosts-file", format!("`{wrong}` is not an address")).help(help));
    }
    // It is an argument of ssh, too, which must not take it for an option.
    let is_odd = |address: &&String| {
        let odd = |letter: char| letter.is_whitespace() || letter.is_control();
        address.starts_with('-') || address.contains(odd)
    };
    if let Some(wrong) = addresses.iter().find(is_odd) {
        let message = format!("`{}` is not the name of a host", report::visible(wrong));
        return Err(Diagnostic::error("hosts-file", message).help(help));
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

/// The hosts that the addresses are on, or `None` if that is not known: a name was not found in time, or an address stands
/// for any host. Addresses with different names that are the same are refused, as far as their names are found.
pub fn look_up(addresses: &[String]) -> Result<Option<BTreeSet<IpAddr>>, Diagnostic> {
    let (sender, found) = channel();
    let all = addresses.to_vec();
    // Nobody waits for this thread longer than that.
    std::thread::spawn(move || {
        for address in all {
            let found: Vec<SocketAddr> =
                address.to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect);
            if sender.send((address, found)).is_err() {
                return;
            }
        }
    });
    let mut known: BTreeMap<SocketAddr, String> = BTreeMap::new();
    let mut hosts = BTreeSet::new();
    let deadline = Instant::now() + PATIENCE;
    while let Ok((address, sockets)) = found.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        hosts.extend(sockets.iter().map(|socket| socket.ip().to_canonical()));
        let Some(&socket) = sockets.first() else { continue };
        if let Some(other) = known.get(&socket) {
            let message = format!("`{other}` and `{address}` are the same address");
            return Err(Diagnostic::error("hosts-file", message).help("give every process a port of its own"));
        }
        known.insert(socket, address);
    }
    let are_known = known.len() == addresses.len() && !hosts.iter().any(IpAddr::is_unspecified);
    Ok(are_known.then_some(hosts))
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
        check("\u{feff}a:1\n", Ok(&["a:1"]));
        check("-oProxyCommand=x:1", Err("`-oProxyCommand=x:1` is not the name of a host"));
        check("a b:1", Err("`a b:1` is not the name of a host"));
    }

    #[test]
    fn hosts_of_addresses_and_addresses_that_are_the_same() {
        let check = |addresses: [&str; 2], expected: Result<Option<&[&str]>, &str>| {
            let found = look_up(&addresses.map(str::to_owned));
            let expected = expected.map(|hosts| {
                let address = |host: &&str| host.parse::<IpAddr>().expect("it is an address");
                hosts.map(|hosts| hosts.iter().map(address).collect::<BTreeSet<_>>())
            });
            assert_eq!(found.map_err(|error| error.message), expected.map_err(str::to_owned));
        };
        check(["127.0.0.1:7", "127.0.0.1:8"], Ok(Some(&["127.0.0.1"])));
        check(["127.0.0.1:7", "[::ffff:127.0.0.2]:8"], Ok(Some(&["127.0.0.1", "127.0.0.2"])));
        check(["127.0.0.1:7", "0.0.0.0:8"], Ok(None));
        check(["127.0.0.1:7", "127.0.0.1:07"], Err("`127.0.0.1:7` and `127.0.0.1:07` are the same address"));
    }
}
